"""Ways to run Slurm's commands: on this machine, or on a login node by ssh."""
