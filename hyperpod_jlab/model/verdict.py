"""A scheduler's verdicts on what ended, as states, codes and words."""

from __future__ import annotations

from dataclasses import replace

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.model.run import Attempt, State

VERDICTS: dict[str, tuple[State, str, str]] = {
    "TIMEOUT": ("failed", "timeout", "it reached its time limit"),
    "OOM": ("failed", "out_of_memory", "it ran out of memory"),
    "NODE_FAIL": ("failed", "node_fail", "a node failed"),
    "PREEMPTED": ("failed", "preempted", "it was preempted"),
    "LOST": ("failed", "lost", "its processes are gone and left no word"),
    "CANCELLED": ("cancelled", "cancelled", "it was cancelled"),
    "REQUEUED": ("failed", "requeued", "it was requeued"),
    "DEPENDENCY": ("failed", "dependency", "a run that it waits for did not succeed"),
    "REFUSED": ("failed", "refused", "the scheduler refused it"),
    "FAILED": ("failed", "failed", "the scheduler says that it failed"),
}
"""By the verdict of an observation."""


def after_requeue(last: Attempt, observation: Observation) -> Attempt:
    """An attempt that was to be followed by another, of a run that ended instead: why it did says more."""
    state, code, words = VERDICTS.get(observation.verdict or "", ("", "", ""))
    if last.reason_code != "requeued" or state != "failed" or code == "requeued":
        return last
    reason, exit_code = observation.reason or words, last.exit_code or observation.exit_code
    return replace(
        last,
        reason=reason,
        reason_code=observation.reason_code or code,
        exit_code=exit_code or None,
    )
