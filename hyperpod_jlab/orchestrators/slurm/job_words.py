"""A job's state and reason in words, the same for runs and for the table of everybody's jobs."""

from __future__ import annotations

from functools import lru_cache

from hyperpod_jlab.orchestrators.slurm.job import SlurmJob
from hyperpod_jlab.orchestrators.slurm.waiting.reasons import reason_code, reason_words

RUNNING = {
    "CONFIGURING": "its nodes are being made ready",
    "COMPLETING": "its nodes are being cleared",
    "STAGE_OUT": "its files are being staged out",
    "STOPPED": "it was stopped, and keeps its nodes",
}
"""What goes on in states in which a job has nodes, beside running."""

_NOTHING = frozenset({"None", "", "(null)"})

# Thousands of jobs wait for the same reason.
_code_of = lru_cache(maxsize=4096)(reason_code)
words_of = lru_cache(maxsize=4096)(reason_words)
"""`reason_words`, remembered."""


def code_of(job: SlurmJob) -> str | None:
    """Why a job waits, as a code: one of the contract's where it has one, else Slurm's own."""
    if job.state == "SUSPENDED":
        return "suspended"
    if job.held:
        return "held"
    return None if job.reason in _NOTHING else _code_of(job.reason)
