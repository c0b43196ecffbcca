"""A run's id in this engine: the machine that runs it and the run's own id."""

from __future__ import annotations

from hyperpod_jlab.storage.processes import machine


def scheduler_id(run_id: str) -> str:
    """The scheduler id of a run that this machine runs."""
    return f"{machine()}:{run_id}"
