"""What sbatch is given: the script of a run, further flags, and users' own scripts."""
