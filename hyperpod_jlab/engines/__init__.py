"""The engines, one folder for each orchestrator: `local`, `slurm`, `kubernetes`; all implement `engines.protocol`."""
