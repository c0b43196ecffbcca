"""The ended jobs of all users, page by page into the past: from the accounting, else from the log of jobs that were seen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hyperpod_jlab.core.cluster import JOB_ENDED, Job, notes_of
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.wire import iso_time
from hyperpod_jlab.run.listing import RunFilter

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run, State
    from hyperpod_jlab.engines.protocol import Orchestrator
    from hyperpod_jlab.run.services import Hyperpod

MAX_AGE_S = 400 * 86_400.0
MAX_ROWS = 1000
PAGE_ROWS = 100
_USER_NAME = r"\w[\w.@$+-]*"
"""One name: not an option of a command, and not a list."""
_ENDED_RUNS: tuple[State, ...] = ("succeeded", "failed", "cancelled")


@dataclass(frozen=True)
class EndedJobs:
    """A page of ended jobs.

    Attributes:
        jobs: The jobs, the latest end first. A requeued job has a row for each execution.
        next: The cursor of the next page; null if there is none.
        notes: What is missing, one sentence each.
    """

    jobs: tuple[Job, ...]
    next: str | None = None
    notes: tuple[str, ...] = ()


def check_user(user: str | None) -> None:
    """Check what a list of jobs is filtered by.

    Raises:
        InvalidInputError: It is not the name of one user.
    """
    if user is not None and not re.fullmatch(_USER_NAME, user):
        raise InvalidInputError(
            f"'{user[:60]}' is not the name of a user",
            code="invalid_user",
            hint="use one name from the column USER",
            detail={"field": "user"},
        )


async def read_ended_jobs(
    hyperpod: Hyperpod, cluster: str | None, limit: int = PAGE_ROWS, cursor: str | None = None, user: str | None = None
) -> EndedJobs:
    """A page of the jobs that have ended on a cluster, as far back as 400 days.

    Args:
        hyperpod: The services.
        cluster: Its name in the configuration; None: the default one.
        limit: The number of rows.
        cursor: The end of the page before.
        user: Only this user's jobs; None: everybody's.

    Raises:
        InvalidInputError: The cursor or the name of the user is not valid.
        NotFoundError: The cluster is not configured.
    """
    check_user(user)
    engine = hyperpod.engines.get(cluster)
    end, skipped = (time.time(), 0) if cursor is None else _parse(cursor)
    begin = time.time() - MAX_AGE_S
    limit = min(limit, MAX_ROWS)
    rows: list[Job] = []
    parts: AsyncIterator[list[Job]]
    notes: tuple[str, ...] = ()
    if engine.history is not None:
        # One that started and ended in the last second of the page before belongs to this one.
        parts = engine.history.jobs_between(begin, end + 1, user)
    else:
        seen = await _seen(hyperpod, engine, begin, end)
        parts = _one_part([job for job in seen if user in {None, job.user}])
        if not engine.scheduler.runs_locally:
            notes = (await log_note(hyperpod, engine.name),)
    try:
        async for part in parts:
            notes = notes or notes_of(part)
            rows += [job for job in part if job.ends_at is not None and job.ends_at <= end and job.state in JOB_ENDED]
            if len(rows) > skipped + limit:
                break
    except HyperpodError as error:
        if error.code != "no_accounting" or engine.history is not None:
            raise
        return await read_ended_jobs(hyperpod, cluster, limit, cursor, user)  # now it is known
    page = rows[skipped : skipped + limit]
    if engine.scheduler.runs_locally:
        page = await asyncio.to_thread(_with_time_limits, hyperpod, page)
    following = None
    if len(rows) > skipped + limit:
        last = page[-1].ends_at or 0.0
        same = sum(job.ends_at == last for job in rows[: skipped + limit])
        following = f"{last!r}:{same}"
    return EndedJobs(tuple(page), following, notes)


async def _seen(hyperpod: Hyperpod, engine: Orchestrator, begin: float, end: float) -> list[Job]:
    """The jobs that the queue of a cluster without accounting has, and that it had earlier."""
    cluster = engine.name
    if engine.scheduler.runs_locally:
        found = await hyperpod.runs.list(RunFilter(cluster, states=_ENDED_RUNS, everyone=True))
        return sorted(map(_job_of, found.runs), key=lambda job: -(job.ends_at or 0.0))
    listed = await hyperpod.jobs(cluster)  # notes them in the log
    logged = await asyncio.to_thread(hyperpod.job_log(cluster).between, begin, end)
    by_key = {(job.scheduler_id, job.started_at): job for job in (*logged, *listed)}
    return sorted(by_key.values(), key=lambda job: -(job.ends_at or 0.0))


def _job_of(run: Run) -> Job:
    """A run of a local cluster, whose jobs are its runs."""
    return Job(
        scheduler_id=run.run_id,
        name=run.name,
        user=run.user,
        state=run.state,
        mine=run.uid == os.getuid(),
        reason=run.reason,
        nodes=run.attempts[-1].nodes if run.attempts else (),
        node_count=run.nodes,
        accelerators=(run.gpus_per_node or 0) * run.nodes,
        run_id=run.run_id,
        submitted_at=run.submitted_at,
        started_at=run.started_at,
        ends_at=run.ended_at,
    )


def _with_time_limits(hyperpod: Hyperpod, jobs: Iterable[Job]) -> list[Job]:
    """Jobs of a local cluster with the limits of their specs, which a list of runs does not have."""
    found = []
    for job in jobs:
        limit = None
        with contextlib.suppress(HyperpodError):  # it was deleted just now, or cannot be read
            limit = hyperpod.runs.bundle(job.scheduler_id).spec().time_limit
        found.append(replace(job, time_limit=limit))
    return found


async def log_note(hyperpod: Hyperpod, cluster: str) -> str:
    """What the log of a cluster without accounting does not have."""
    since = await asyncio.to_thread(hyperpod.job_log(cluster).since)
    if since is None:
        return f"{cluster} has no accounting, and no ended jobs were seen from here yet"
    return f"{cluster} has no accounting: shown are the jobs that were seen from here, since {(iso_time(since) or '')[:10]}"


async def _one_part(jobs: list[Job]) -> AsyncIterator[list[Job]]:
    yield jobs


def _parse(cursor: str) -> tuple[float, int]:
    end, _, skipped = cursor.partition(":")
    try:
        found = float(end), int(skipped)
    except ValueError as error:
        raise _bad_cursor() from error
    if not (0 <= found[0] < 1e11 and 0 <= found[1] <= 1_000_000):
        raise _bad_cursor()
    return found


def _bad_cursor() -> InvalidInputError:
    return InvalidInputError(
        "the cursor is not valid",
        code="invalid_cursor",
        hint="use the value of 'next' of the page before",
        detail={"field": "cursor"},
    )
