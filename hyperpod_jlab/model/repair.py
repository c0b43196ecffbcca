"""A run whose node is being repaired has not failed: what its records say of the attempt is not the last word."""

from __future__ import annotations

from dataclasses import replace

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.model.run import Attempt


def under_repair(running: Attempt, observation: Observation | None) -> Attempt:
    """A running attempt, with the scheduler's word that it recovers; as it is where there is none, or it is being cancelled."""
    if observation is None or running.state != "running" or running.reason_code == "cancelling":
        return running
    if observation.state != "running" or observation.reason_code != "recovering":
        return running
    return replace(running, reason=observation.reason, reason_code="recovering")
