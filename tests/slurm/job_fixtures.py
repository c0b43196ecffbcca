"""Jobs of the queue as data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hyperpod_jlab.engines.slurm.jobs import SlurmJob

_PLAIN = SlurmJob(
    job_id="1",
    array_job_id="1",
    array_task=None,
    state="PENDING",
    reason="Priority",
    user="alice",
    partition="batch",
    submitted=0.0,
    started_at=None,
    ends_at=None,
    limit=3600.0,
    node_count=1,
    node_list="",
    cpus=1,
    gres=(),
    priority=100,
    qos="normal",
    account="research",
    dependency=None,
    run_id=None,
    folder="/",
    name="job",
)


def job(job_id: str, **changes: Any) -> SlurmJob:
    """A job that waits for its turn."""
    return replace(_PLAIN, job_id=job_id, array_job_id=job_id, **changes)
