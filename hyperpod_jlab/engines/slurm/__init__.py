"""The Slurm engine: Slurm's own commands, on this machine or on a login node over SSH."""
