"""Jobs of all users as tables show them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from hyperpod_jlab.model.bulk import without_collections
from hyperpod_jlab.model.cluster import Job, Resource
from hyperpod_jlab.orchestrators.slurm.job import SlurmJob
from hyperpod_jlab.orchestrators.slurm.job_words import RUNNING, code_of, words_of
from hyperpod_jlab.orchestrators.slurm.tables.gres import ACCELERATORS, Gres
from hyperpod_jlab.orchestrators.slurm.tables.hostlist import expand

_ENDED = {"COMPLETED": "succeeded", "CANCELLED": "cancelled", "REVOKED": "cancelled"}

_FAILED = {
    "TIMEOUT": "it reached its time limit",
    "DEADLINE": "it reached its deadline",
    "OUT_OF_MEMORY": "it used more memory than it had asked for",
    "NODE_FAIL": "a node failed",
    "BOOT_FAIL": "a node did not boot",
    "PREEMPTED": "a job with a higher priority took its place",
}


class JobRows:
    """Makes rows of jobs, and keeps those of jobs that are as they were."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[SlurmJob, Job]] = {}

    @without_collections()
    def of(self, jobs: Sequence[SlurmJob], me: frozenset[str]) -> list[Job]:
        """The jobs as tables show them (see `job_rows`)."""
        kept: dict[int, tuple[SlurmJob, Job]] = {}
        for job in jobs:
            mine = job.user in me
            before = self._kept.get(id(job))
            same = before is not None and before[0] is job and before[1].mine == mine
            kept[id(job)] = before if before is not None and same else (job, _row(job, mine))
        self._kept = kept
        return [row for _, row in kept.values()]


def job_rows(jobs: Sequence[SlurmJob], me: frozenset[str]) -> list[Job]:
    """The jobs as tables show them.

    Args:
        jobs: The jobs.
        me: This user's names on the cluster. A run id counts in this user's own jobs only: anybody may write any comment.
    """
    return JobRows().of(jobs, me)


def state_word(job: SlurmJob) -> str:
    """One of `hyperpod_jlab.model.cluster.JOB_STATES`."""
    if job.state == "RUNNING":
        return "running"
    if job.ended:
        return _ENDED.get(job.state, "failed")
    if job.state == "SUSPENDED":
        return "suspended"
    if job.held:
        return "held"
    return "waiting" if job.waiting else "running"


def _row(job: SlurmJob, mine: bool) -> Job:
    state = state_word(job)
    began = job.started if job.ended or not job.waiting else None
    if job.ended and not job.node_list:
        began = None  # it never started; squeue shows when it ended
    return Job(
        scheduler_id=job.scheduler_id,
        name=job.name,
        user=job.user,
        state=state,
        mine=mine,
        queue=job.partition or None,
        reason=_reason(job, state),
        reason_code=code_of(job),
        nodes=expand(job.node_list) if job.node_list else (),
        node_count=job.node_count or None,
        cpus=job.cpus or None,
        accelerators=_accelerators(job.gres),
        resources=_resources(job.gres),
        array=job.array_task,
        account=_known(job.account),
        qos=_known(job.qos),
        priority=job.priority,
        time_limit=int(job.limit) if job.limit is not None else None,
        run_id=job.run_id if mine else None,
        submitted_at=job.submitted,
        started_at=began,
        ends_at=job.ends if began is not None or job.ended else None,
        expected_start=job.started if state == "waiting" else None,
    )


def _reason(job: SlurmJob, state: str) -> str | None:
    if state == "running":
        return RUNNING.get(job.state)
    if state == "failed":
        return _FAILED.get(job.state) or words_of(job.reason)
    if state in {"succeeded", "cancelled"}:
        return None
    return words_of(job.reason)


def _known(text: str) -> str | None:
    return None if text in {"", "(null)", "N/A"} else text


@lru_cache(maxsize=1024)
def _accelerators(found: tuple[Gres, ...]) -> int:
    return sum(one.count for one in found if one.name in ACCELERATORS)


@lru_cache(maxsize=1024)
def _resources(found: tuple[Gres, ...]) -> tuple[Resource, ...]:
    return tuple(
        Resource(
            one.name, one.type, one.count, used=one.count, accelerator=one.name in ACCELERATORS
        )
        for one in found
    )
