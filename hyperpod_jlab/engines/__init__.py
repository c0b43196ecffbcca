"""One folder for each orchestrator: `local`, `slurm`, `kubernetes`, all behind `engines.protocol`."""
