"""User actions on jobs of a cluster's queue: through the journal for jobs that are runs, through the engine for the others."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.core.cluster import Job, Rows, notes_of
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, StorageError
from hyperpod_jlab.core.job_actions import MAX_JOBS, ActionKind, Change, JobResult, check_change
from hyperpod_jlab.core.records import Action
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.engines.protocol import Orchestrator, require_tables
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.run.service import Runs, check_action, write_action
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\[\],:%/-]{0,999}")


async def act_on_jobs(
    engines: Engines,
    runs: Runs,
    cluster: str | None,
    action: ActionKind,
    jobs: Sequence[str],
    change: Change | None = None,
) -> list[JobResult]:
    """Act on jobs of a cluster's queue; one result each, in order. A duplicate id is acted on once.

    Args:
        engines: The engines.
        runs: The runs.
        cluster: The cluster, or None for the default one.
        action: The action.
        jobs: The scheduler's ids, as the cluster's list of jobs has them.
        change: With the action ``change``: what to change.

    Raises:
        NotFoundError: The cluster does not exist.
        InvalidInputError: No jobs or too many, or nothing to change.
        UnreachableError: The cluster does not answer.
    """
    check_change(action, change)
    job_ids = list(dict.fromkeys(jobs))
    if not 0 < len(job_ids) <= MAX_JOBS:
        raise InvalidInputError(
            f"{len(job_ids)} jobs are given, but 1 to {MAX_JOBS} are allowed", detail={"field": "jobs"}
        )
    engine = engines.get(cluster)
    results = {job: _invalid_id_result(job) for job in job_ids if not _ID.fullmatch(job)}
    run_ids = _runs_of(await require_tables(engine).jobs()) if len(results) < len(job_ids) else {}
    own_runs = {job: run_ids[job] for job in job_ids if job not in results and job in run_ids}
    started: dict[str, _StartedAction] = {}
    for job, run_id in own_runs.items():
        if engine.job_actions is not None and engine.job_actions.covers_runs:
            started_or_result = await _start_action(runs, engine, job, run_id, action)
            if isinstance(started_or_result, _StartedAction):
                started[job] = started_or_result
                continue
            result = started_or_result
        else:
            result = await _act_as_run(runs, job, run_id, action, change)
        if result is not None:
            results[job] = result
    rest = [job for job in job_ids if job not in results]
    try:
        foreign_results = await _act_on_foreign_jobs(engine, action, rest, change) if rest else []
    except HyperpodError:
        await _finish_actions(started.values(), action, change, has_failed=True)
        raise
    results |= {result.scheduler_id: result for result in foreign_results}
    for job, action_started in started.items():
        await _finish_actions([action_started], action, change, has_failed=results[job].error is not None)
    return [results[job] for job in job_ids]


async def _act_on_foreign_jobs(
    engine: Orchestrator, action: ActionKind, jobs: Sequence[str], change: Change | None
) -> list[JobResult]:
    """Act on jobs that are not runs of this storage partition; an engine without external jobs reports them as not found."""
    if engine.job_actions is not None:
        return await engine.job_actions.act_on_jobs(action, jobs, change)
    return [JobResult(job, NotFoundError(f"job {job[:60]} not found", code="no_such_job")) for job in jobs]


@dataclass(frozen=True)
class _StartedAction:
    """A run whose job is about to be acted on, and its journal entry."""

    run: Run
    bundle: BundleReader
    record: Action | None


async def _start_action(
    runs: Runs, engine: Orchestrator, job: str, run_id: str, action: ActionKind
) -> _StartedAction | JobResult | None:
    """Check the action and write it to the run's journal; returns the error if it does not fit. None: the run is on another storage partition."""
    try:
        run = await runs.get(run_id)
        bundle = await asyncio.to_thread(runs.bundle, run_id)
        if action == "cancel" and run.status.ended:
            return JobResult(job)
        check_action(run, action, engine)
        written = None
        if action != "change":  # `change` is written afterwards
            written = await asyncio.to_thread(write_action, run, bundle, action)
    except NotFoundError as error:
        return None if error.code == "no_such_run" else JobResult(job, error)
    except HyperpodError as error:
        return JobResult(job, error)
    return _StartedAction(run, bundle, written)


async def _finish_actions(
    started: Iterable[_StartedAction], action: ActionKind, change: Change | None, *, has_failed: bool
) -> None:
    """Update the journals with the results."""
    for item in started:
        with contextlib.suppress(HyperpodError):  # the action's result stands regardless
            if has_failed and item.record is not None:
                await asyncio.to_thread(item.bundle.drop_action, item.record)
            elif not has_failed and action == "change":
                await asyncio.to_thread(write_action, item.run, item.bundle, action, change)


def _invalid_id_result(job: str) -> JobResult:
    return JobResult(
        job[:60],
        InvalidInputError(f"'{job[:60]}' is not a job id", hint="list jobs with: hpj jobs", detail={"field": "jobs"}),
    )


def _runs_of(rows: Sequence[Job]) -> Mapping[str, str]:
    """The run of each job, by job id. Waiting tasks of an array that share a row are left to the engine."""
    run_ids: dict[str, str] = {}
    for row in rows:
        if row.run_id is None:
            continue
        if row.array is None:
            run_ids[row.scheduler_id] = row.run_id
            continue
        run_ids.setdefault(row.scheduler_id.rpartition("_")[0], row.run_id)  # the array as a whole
        if row.array.isdecimal():
            run_ids[row.scheduler_id] = f"{row.run_id}.{row.array}"
    return run_ids


async def _act_as_run(runs: Runs, job: str, run_id: str, action: ActionKind, change: Change | None) -> JobResult | None:
    """The result; None if the run is on another storage partition."""
    try:
        await runs.act(run_id, action, change, wait=False)
    except NotFoundError as error:
        return None if error.code == "no_such_run" else JobResult(job, error)
    except HyperpodError as error:
        return JobResult(job, error)
    return JobResult(job)


# --------------------------------------------------------------------------------------------------
# Which jobs of a queue are runs that can be opened: a run of the same user may be on another
# storage partition.

_TTL_S = 60.0
"""TTL of a lookup, in seconds: a run is on the partition before the cluster has its job, and stays there until it is cleaned."""


_MAX_SINGLE_LOOKUPS = 50
"""Up to this many runs are looked up one by one."""

_NOT_CHECKED = (float("-inf"), False)


class JobLinks:
    """Links jobs to the runs of one partition.

    Args:
        partition: The partition.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._checked_runs: dict[str, tuple[float, bool]] = {}

    async def linked(self, rows: Sequence[Job]) -> list[Job]:
        """The rows; the run id is removed if the run is not on this partition."""
        if not any(row.run_id is not None for row in rows):
            return rows if isinstance(rows, list) else list(rows)
        return await asyncio.to_thread(self._link, rows)

    def _link(self, rows: Sequence[Job]) -> list[Job]:
        self._prefetch({row.run_id for row in rows if row.run_id is not None})
        links = [
            row if row.run_id is None or self._is_known_run(row.run_id) else replace(row, run_id=None) for row in rows
        ]
        ids = {row.run_id for row in rows}
        self._checked_runs = {run_id: entry for run_id, entry in self._checked_runs.items() if run_id in ids}
        return Rows(links, notes_of(rows), rows.as_of if isinstance(rows, Rows) else None)

    def _prefetch(self, run_ids: set[str]) -> None:
        """For many unknown runs, list the partition instead of looking up each run in each user's folder."""
        now = time.monotonic()
        unknown_ids = [run_id for run_id in run_ids if now - self._checked_runs.get(run_id, _NOT_CHECKED)[0] > _TTL_S]
        if len(unknown_ids) <= _MAX_SINGLE_LOOKUPS or not self._partition.shared:
            return
        try:
            existing = self._partition.run_ids()
        except StorageError:  # the partition cannot be read
            existing = set()
        for run_id in unknown_ids:
            self._checked_runs[run_id] = (now, run_id.partition(".")[0] in existing)

    def _is_known_run(self, run_id: str) -> bool:
        checked_at, exists = self._checked_runs.get(run_id, _NOT_CHECKED)
        if time.monotonic() - checked_at > _TTL_S:
            try:
                exists = self._partition.has_run(run_id)
            except (InvalidInputError, StorageError):  # not a run id, or the partition cannot be read
                exists = False
            self._checked_runs[run_id] = (time.monotonic(), exists)
        return exists
