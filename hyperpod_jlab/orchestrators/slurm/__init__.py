"""The Slurm engine: Slurm's own commands, on this machine or on a login node; code and logs travel by the storage partition."""
