"""What a user does to jobs of a cluster's queue: those that are runs get it as runs, with their journals, the others from their engine."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import platform
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hyperpod_jlab.capture.files import run_name
from hyperpod_jlab.clusters.identity import shared_space
from hyperpod_jlab.core.cluster import Job, Rows, notes_of
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnsupportedError,
)
from hyperpod_jlab.core.job_actions import MAX_JOBS, ActionKind, Change, JobResult, check_change
from hyperpod_jlab.core.records import Action, Head, Submission
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.spec import FilesSpec, JobSpec, NativeSource, Resources
from hyperpod_jlab.engines.launch import launch_plan
from hyperpod_jlab.engines.protocol import ExternalJob, Orchestrator, tables_of
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.run.service import Runs, check_action, write_action
from hyperpod_jlab.storage.bundle import BundleWriter
from hyperpod_jlab.storage.files import to_json
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BUNDLE_FORMAT, BundleReader

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
    if not 0 < len(wanted) <= MAX_JOBS:
        raise InvalidInputError(
            f"{len(wanted)} jobs are given, but 1 to {MAX_JOBS} are allowed",
            detail={"field": "jobs"},
        )
    engine = engines.get(cluster)
    found = {job: _not_an_id(job) for job in wanted if not _ID.fullmatch(job)}
    known = _runs_of(await tables_of(engine).jobs()) if len(found) < len(wanted) else {}
    ours = {job: known[job] for job in wanted if job not in found and job in known}
    begun: dict[str, _Begun] = {}
    for job, run_id in ours.items():
        if engine.job_actions is not None and engine.job_actions.covers_runs:
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
        done = await _act_on_rest(engine, action, rest, change) if rest else []
    except HyperpodError:
        await _end(begun.values(), action, change, failed=True)
        raise
    found |= {result.scheduler_id: result for result in done}
    for job, one in begun.items():
        await _end([one], action, change, failed=found[job].error is not None)
    return [found[job] for job in wanted]


async def _act_on_rest(
    engine: Orchestrator, action: ActionKind, jobs: Sequence[str], change: Change | None
) -> list[JobResult]:
    """Act on jobs that are no runs of this storage partition; where the engine has none, there are no such jobs."""
    if engine.job_actions is not None:
        return await engine.job_actions.act_on_jobs(action, jobs, change)
    return [
        JobResult(job, NotFoundError(f"job {job[:60]} not found", code="no_such_job"))
        for job in jobs
    ]


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
            f"'{job[:60]}' is not a job id", hint="see: hpj jobs", detail={"field": "jobs"}
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


# --------------------------------------------------------------------------------------------------
# Which jobs of a cluster's queue are runs that can be opened here: a run of the same user's may lie on another storage partition.

_GOOD_FOR = 60.0
"""Seconds for which it is not looked again: a run lies on the partition before the cluster has its job, and stays until it is cleaned."""


_FEW = 50
"""Runs that are looked for one by one."""

_NEVER = (float("-inf"), False)


class JobLinks:
    """Links jobs to the runs of one partition.

    Args:
        partition: The partition.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._known: dict[str, tuple[float, bool]] = {}

    async def linked(self, rows: Sequence[Job]) -> list[Job]:
        """The rows; those of runs that are not here have no run's id."""
        if not any(row.run_id is not None for row in rows):
            return rows if isinstance(rows, list) else list(rows)
        return await asyncio.to_thread(self._linked, rows)

    def _linked(self, rows: Sequence[Job]) -> list[Job]:
        self._look_at_once({row.run_id for row in rows if row.run_id is not None})
        found = [
            row if row.run_id is None or self._is_here(row.run_id) else replace(row, run_id=None)
            for row in rows
        ]
        ids = {row.run_id for row in rows}
        self._known = {run_id: seen for run_id, seen in self._known.items() if run_id in ids}
        return Rows(found, notes_of(rows))

    def _look_at_once(self, run_ids: set[str]) -> None:
        """Where many runs are asked for that are not known yet, list what is there instead of looking for each in each user's folder."""
        now = time.monotonic()
        new = [one for one in run_ids if now - self._known.get(one, _NEVER)[0] > _GOOD_FOR]
        if len(new) <= _FEW or not self._partition.shared:
            return
        try:
            here = self._partition.run_ids()
        except StorageError:  # nobody can look
            here = set()
        for one in new:
            self._known[one] = (now, one.partition(".")[0] in here)

    def _is_here(self, run_id: str) -> bool:
        at, here = self._known.get(run_id, _NEVER)
        if time.monotonic() - at > _GOOD_FOR:
            try:
                here = self._partition.holds(run_id)
            except (InvalidInputError, StorageError):  # no id of a run, or nobody can look
                here = False
            self._known[run_id] = (time.monotonic(), here)
        return here


# --------------------------------------------------------------------------------------------------
# Adopting a job: one that was sent elsewhere, such as with sbatch, becomes a run with the same panel and the same log view.

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


async def adopt(
    engines: Engines, job: str, cluster: str | None = None, name: str | None = None
) -> str:
    """Take a job of this user's into the list of runs; returns the run's id.

    Args:
        engines: The engines.
        job: The job's id.
        cluster: Its cluster, or None for the default one.
        name: A name for people; the job's own when left out.

    Raises:
        UnsupportedError: The cluster has no jobs from elsewhere.
        InvalidInputError: It is no job's id, or the cluster or the name is none.
        NotFoundError: There is no such job.
        DeniedError: It is somebody else's.
        RefusedError: It is none that has a log.
        ConflictError: It is a run already; which one stands in the detail.
        StorageError: The partition cannot be written to.
    """
    engine = engines.get(cluster)
    adoption = engine.adoption
    if adoption is None:
        raise UnsupportedError(
            f"jobs of {engine.kind} clusters cannot be adopted",
            hint="use another cluster with --cluster; see: hpj clusters",
            detail={"cluster": engine.name, "job": job[:60]},
        )
    found = await adoption.foreign_job(job)
    if found.run_id is not None and await asyncio.to_thread(engines.partition.holds, found.run_id):
        raise _known(job, found.run_id)
    run_id = adopted_id(engine.name, found)
    spec = _spec(found, name)
    made = await asyncio.to_thread(_make_bundle, engines, engine, run_id, spec, found)
    if not made:
        raise _known(job, run_id)
    await adoption.adopted(BundleReader(engines.partition, run_id))
    return run_id


def adopted_id(cluster: str, job: ExternalJob) -> str:
    """The run id of an adopted job. It follows from the job, so that adopting it twice, even at once, makes one run."""
    submitted = job.submitted_at or 0.0
    told = f"{cluster}\0{job.scheduler_id}\0{submitted:.0f}"
    number = int.from_bytes(hashlib.sha256(told.encode()).digest()[:8])
    tail = "".join(_LETTERS[number >> 5 * place & 31] for place in range(6))
    return f"{datetime.fromtimestamp(submitted, UTC):%Y%m%d-%H%M%S}-{tail}"


def _known(job: str, run_id: str) -> ConflictError:
    return ConflictError(
        f"the job {job} is already the run {run_id}",
        code="already_adopted",
        hint=f"see: hpj show {run_id}",
        detail={"job": job, "run_id": run_id},
    )


def _spec(job: ExternalJob, name: str | None) -> JobSpec:
    from hyperpod_jlab.core.validation import parse

    facts = job.facts
    given = {
        "name": name,
        "source": NativeSource(path=_path(job)).model_dump(),
        "files": FilesSpec(project=False).model_dump(),
        "resources": Resources(nodes=min(facts.nodes, 10_000)).model_dump(),
        "queue": facts.queue,
        "array": facts.array,
    }
    return parse(JobSpec, given)


def _path(job: ExternalJob) -> str:
    """Where the script lay, without what no path of ours may hold."""
    kept = "".join(letter for letter in job.path if ord(letter) >= 32 and ord(letter) != 127)
    return kept[:4096] or "script"


def _make_bundle(
    engines: Engines, engine: Orchestrator, run_id: str, spec: JobSpec, job: ExternalJob
) -> bool:
    now = time.time()
    head = Head(
        format=BUNDLE_FORMAT,
        run_id=run_id,
        name=run_name(spec.name, job.facts.name or f"job-{job.scheduler_id}"),
        user=current_user(),
        space=shared_space(),
        host=platform.node(),
        created_at=now,
        cluster=engine.name,
        orchestrator=engine.kind,
        spec_digest=hashlib.sha256(spec.model_dump_json().encode()).hexdigest(),
        queue=spec.queue,
        kind=job.kind,
        nodes=spec.resources.nodes,
        processes_per_node=1,
        array=spec.array,
    )
    submission = Submission(
        scheduler_id=job.scheduler_id, submitted_at=min(job.submitted_at or now, now)
    )
    with BundleWriter(engines.partition, run_id) as writer:
        if job.script is not None:
            writer.add_bytes(*job.script)
        for path, data in job.files.items():
            writer.write(path, data)
        writer.write("spec.json", spec.model_dump_json().encode())
        writer.write("launch.json", to_json(launch_plan(spec, run_id, (), None)))
        writer.write("submission.json", to_json(submission.model_dump()))
        writer.write("bundle.json", to_json(head.model_dump(exclude_none=True)))
        return writer.commit()
