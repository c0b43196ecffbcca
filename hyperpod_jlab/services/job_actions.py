"""What a user does to jobs of a cluster's queue: those that are runs get it as runs, with their journals, the others from their engine."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.cluster import Job
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.model.job_actions import MOST_JOBS, Change, JobResult, check_change
from hyperpod_jlab.model.records import Action, ActionKind
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.services.actions import check_action, write_action
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.services.runs import Runs
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
    """Do something to jobs of a cluster's queue, one result each, in their order; one that is named twice is acted on once.

    Args:
        engines: The engines.
        runs: The runs.
        cluster: The cluster, or None for the default one.
        action: What to do.
        jobs: The scheduler's ids, as the cluster's list of jobs has them.
        change: With the action ``change``: what to change.

    Raises:
        InvalidInputError: There is no such cluster, there are no jobs or too many, or nothing to change.
        UnreachableError: The cluster does not answer.
    """
    check_change(action, change)
    wanted = list(dict.fromkeys(jobs))
    if not 0 < len(wanted) <= MOST_JOBS:
        raise InvalidInputError(
            f"{len(wanted)} jobs are named; there must be 1 to {MOST_JOBS}",
            detail={"field": "jobs"},
        )
    engine = engines.get(cluster)
    found = {job: _not_an_id(job) for job in wanted if not _ID.fullmatch(job)}
    known = _runs_of(await engine.jobs()) if len(found) < len(wanted) else {}
    ours = {job: known[job] for job in wanted if job not in found and job in known}
    begun: dict[str, _Begun] = {}
    for job, run_id in ours.items():
        if engine.capabilities.acts_by_id:
            begun_or_not = await _begin(runs, engine, job, run_id, action)
            if isinstance(begun_or_not, _Begun):
                begun[job] = begun_or_not
                continue
            result = begun_or_not
        else:
            result = await _as_run(runs, job, run_id, action, change)
        if result is not None:
            found[job] = result
    rest = [job for job in wanted if job not in found]
    try:
        done = await engine.act_on_jobs(action, rest, change) if rest else []
    except HyperpodError:
        await _end(begun.values(), action, change, failed=True)
        raise
    found |= {result.scheduler_id: result for result in done}
    for job, one in begun.items():
        await _end([one], action, change, failed=found[job].error is not None)
    return [found[job] for job in wanted]


@dataclass(frozen=True)
class _Begun:
    """A run whose job is about to be acted on, and what its journal says of that."""

    run: Run
    bundle: BundleReader
    made: Action | None


async def _begin(
    runs: Runs, engine: Orchestrator, job: str, run_id: str, action: ActionKind
) -> _Begun | JobResult | None:
    """Look whether it fits and write it into the run's journal; else why not. None: the run lies on another storage partition."""
    try:
        run = await runs.get(run_id)
        bundle = await asyncio.to_thread(runs.bundle, run_id)
        if action == "cancel" and run.status.ended:
            return JobResult(job)
        check_action(run, action, engine)
        made = None
        if action != "change":  # that is written once it was done
            made = await asyncio.to_thread(write_action, run, bundle, action)
    except NotFoundError as error:
        return None if error.code == "no_such_run" else JobResult(job, error)
    except HyperpodError as error:
        return JobResult(job, error)
    return _Begun(run, bundle, made)


async def _end(
    begun: Iterable[_Begun], action: ActionKind, change: Change | None, *, failed: bool
) -> None:
    """Bring the journals in step with what was done."""
    for one in begun:
        with contextlib.suppress(HyperpodError):  # it is done, or not, all the same
            if failed and one.made is not None:
                await asyncio.to_thread(one.bundle.drop_action, one.made)
            elif not failed and action == "change":
                await asyncio.to_thread(write_action, one.run, one.bundle, action, change)


def _not_an_id(job: str) -> JobResult:
    return JobResult(
        job[:60],
        InvalidInputError(
            f"'{job[:60]}' is no job's id", hint="see: hpj jobs", detail={"field": "jobs"}
        ),
    )


def _runs_of(rows: Sequence[Job]) -> Mapping[str, str]:
    """The runs that jobs are, by the jobs' ids; those tasks of an array that share a row, since they wait, are left to the engine."""
    found: dict[str, str] = {}
    for row in rows:
        if row.run_id is None:
            continue
        if row.array is None:
            found[row.scheduler_id] = row.run_id
            continue
        found.setdefault(row.scheduler_id.rpartition("_")[0], row.run_id)  # the array as a whole
        if row.array.isdecimal():
            found[row.scheduler_id] = f"{row.run_id}.{row.array}"
    return found


async def _as_run(
    runs: Runs, job: str, run_id: str, action: ActionKind, change: Change | None
) -> JobResult | None:
    """What came of it; None when the run lies on another storage partition than this."""
    try:
        await runs.act(run_id, action, change, wait=False)
    except NotFoundError as error:
        return None if error.code == "no_such_run" else JobResult(job, error)
    except HyperpodError as error:
        return JobResult(job, error)
    return JobResult(job)
