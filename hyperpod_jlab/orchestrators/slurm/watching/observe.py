"""What Slurm says of a run, as observations: pure functions of its jobs in the queue and of its executions so far."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import AttemptRecords, Observation
from hyperpod_jlab.orchestrators.slurm.job import ENDED, WAITING, SlurmJob
from hyperpod_jlab.orchestrators.slurm.job_words import RUNNING, code_of, words_of
from hyperpod_jlab.orchestrators.slurm.watching.history import Execution

OBSERVER = "slurm"

VERDICTS = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
    "TIMEOUT": "TIMEOUT",
    "DEADLINE": "TIMEOUT",
    "OUT_OF_MEMORY": "OOM",
    "NODE_FAIL": "NODE_FAIL",
    "BOOT_FAIL": "NODE_FAIL",
    "PREEMPTED": "PREEMPTED",
    "REQUEUED": "REQUEUED",
    "REVOKED": "LOST",
}
"""A job's last state, and the verdict on its last attempt."""

_ENDED = {
    "DEADLINE": "it reached its deadline",
    "BOOT_FAIL": "a node did not boot",
    "REVOKED": "another cluster of the federation runs it",
}


def observe(job: SlurmJob, now: float) -> Observation:
    """The observation of a job in the queue, seen at `now` (Unix seconds)."""
    if job.ended:
        return _ended(job, now)
    if job.state in WAITING:
        return Observation(
            time=now,
            observer=OBSERVER,
            scheduler_id=job.scheduler_id,
            state="waiting",
            reason=words_of(job.reason),
            reason_code=code_of(job),
        )
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=job.scheduler_id,
        state="running",
        reason=RUNNING.get(job.state),
    )


def _ended(job: SlurmJob, now: float) -> Observation:
    never = job.reason == "DependencyNeverSatisfied"
    verdict = "DEPENDENCY" if never else VERDICTS[job.state]
    return Observation(
        time=_not_later(job.ends, now),
        observer=OBSERVER,
        scheduler_id=job.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else None,
        reason=_ENDED.get(job.state),
    )


def observe_execution(execution: Execution, now: float) -> Observation:
    """The observation of a job that has left the queue: its last execution."""
    verdict = VERDICTS.get(execution.state, "LOST")
    code = execution.exit_code or (128 + execution.signal if execution.signal else 0)
    return Observation(
        time=_not_later(execution.end, now),
        observer=OBSERVER,
        scheduler_id=execution.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else code or None,
        reason=_ENDED.get(execution.state),
    )


def lost(scheduler_id: str | None, now: float, *, accounting: bool) -> Observation:
    """The observation of a job that Slurm does not know any more."""
    kept = "" if accounting else ", and the cluster keeps no accounting"
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        state="ended",
        verdict="LOST",
        reason=f"Slurm knows nothing of its job any more{kept}",
        reason_code="lost",
    )


def unasked(error: HyperpodError, now: float) -> Observation:
    """The observation of a job that left the queue while the accounting, which knows how, does not answer."""
    return Observation(
        time=now,
        observer=OBSERVER,
        state="waiting",
        reason=f"its job has left Slurm's queue, and how it ended cannot be asked: {error.message}",
        reason_code=error.code,
    )


def _not_later(moment: float | None, now: float) -> float:
    """The controller's clock may run ahead of ours."""
    return now if moment is None else min(moment, now)


def newest(jobs: Sequence[SlurmJob], scheduler_id: str | None) -> SlurmJob | None:
    """The job that counts for a run: the one that the records name, else one that lives, else the newest."""
    named = [
        job for job in jobs if scheduler_id in {job.job_id, job.array_job_id, job.scheduler_id}
    ]
    alive = [job for job in named or jobs if job.state not in ENDED]
    return max(alive or named or jobs, key=lambda job: int(job.job_id), default=None)


def round_of(attempt: AttemptRecords) -> int | None:
    """Which execution of the job an attempt belongs to, counted from 0: restarts within one execution have the same."""
    if attempt.claim is None:
        return None
    first, dot, _ = attempt.claim.incarnation.partition(".")
    return int(first) if dot and first.isdecimal() else None


def cut_short(attempts: Sequence[AttemptRecords], executions_begun: int) -> list[AttemptRecords]:
    """The attempts that a requeue ended: the last ones of executions that are over.

    Args:
        attempts: All attempts of the run.
        executions_begun: How many executions of the job have begun and are not to be looked at: the number of the first that is not over.
    """
    last: dict[int, AttemptRecords] = {}
    for attempt in attempts:
        number = round_of(attempt)
        if number is not None and number < executions_begun:
            last[number] = attempt
    return [last[number] for number in sorted(last)]


def requeued(
    attempt: AttemptRecords, execution: Execution | None, now: float, *, told: str | None = None
) -> Observation:
    """The verdict on an attempt after which the job went back into the queue.

    Args:
        attempt: The attempt.
        execution: What the accounting says of it, or None.
        now: Unix seconds.
        told: What else tells why, where there is no accounting: a verdict, or None.
    """
    verdict = VERDICTS.get(execution.state, "REQUEUED") if execution else told or "REQUEUED"
    if verdict in {"COMPLETED", "FAILED"}:  # it asked for its requeue itself
        verdict = "REQUEUED"
    return Observation(
        time=_not_later(execution.end if execution else None, now),
        observer=OBSERVER,
        attempt=attempt.number,
        state="waiting",
        verdict=verdict,
        reason_code="recovering",
    )
