"""Usage of clusters: from the scheduler's accounting where it has one, else from the runs on this partition."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hyperpod_jlab.aws.consoles import costs_console
from hyperpod_jlab.aws.session import home_region
from hyperpod_jlab.clusters.node_shapes import known_nodes
from hyperpod_jlab.clusters.prices import read_prices
from hyperpod_jlab.core.cluster import Job, notes_of
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.features.cost.models import DAY_S, BillLink, By, UsageCounter, UsageReport, Use, uses_of_job
from hyperpod_jlab.run.cost import executions_of_row
from hyperpod_jlab.run.history import log_note
from hyperpod_jlab.run.listing import RunFilter

if TYPE_CHECKING:
    from hyperpod_jlab.core.config import Settings
    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.core.spec import JobSpec
    from hyperpod_jlab.run.services import Hyperpod

MAX_PERIOD_S = 400 * 86_400


async def read_usage(
    hyperpod: Hyperpod, by: By, begin: float, end: float | None = None, clusters: Sequence[str] = ()
) -> UsageReport:
    """Count who used how much. A cluster that does not answer is left out, and a note says so.

    Entries of the configuration that reach the same cluster are counted once, under the first name.

    Args:
        hyperpod: The services.
        by: What is told apart.
        begin: The period's begin (Unix seconds).
        end: Its end; None: now.
        clusters: Names in the configuration; empty: all.

    Raises:
        InvalidInputError: The period is empty or too long.
        NotFoundError: A cluster is not configured.
        HyperpodError: The only cluster does not answer.
    """
    now = time.time()
    end = now if end is None else min(end, now)
    # "400d" was subtracted from a moment ago.
    if not 0 < end - begin < MAX_PERIOD_S + DAY_S:
        raise InvalidInputError(
            "the period must begin in the past, before it ends, and have at most 400 days",
            code="invalid_period",
            hint="choose another begin or end",
            detail={"field": "begin"},
        )
    settings = hyperpod.settings
    names = [hyperpod.engines.get(name).name for name in clusters] or list(settings.clusters)
    groups = await _same_clusters(hyperpod, list(dict.fromkeys(names)))
    counter = UsageCounter(by, begin, end, settings.cost.currency)
    notes = [
        f"{' and '.join(group)} are the same cluster, which is counted once, as {group[0]}"
        for group in groups
        if len(group) > 1
    ]
    runs = await _runs(hyperpod)
    if not clusters:
        notes += _not_configured(runs, settings.clusters, (begin, end))
    for group in groups:
        try:
            notes += await _count(hyperpod, group, counter, (begin, end), runs)
        except HyperpodError as error:
            if len(groups) == 1:
                raise
            notes.append(f"{group[0]} is not counted: {error.message}")
    return counter.report(notes, await asyncio.to_thread(_bills, settings, groups))


def _bills(settings: Settings, groups: Iterable[Sequence[str]]) -> list[BillLink]:
    """Where AWS shows what it charges for the clusters whose name in AWS the configuration has. Asks nothing."""
    links = []
    for group in groups:
        aws_name = settings.clusters[group[0]].hyperpod_cluster
        if aws_name is not None:
            url = costs_console(aws_name.rpartition("/")[2], region_of(aws_name) or home_region())
            links += [BillLink(group[0], url)] if url else []
    return links


async def _same_clusters(hyperpod: Hyperpod, names: Sequence[str]) -> list[list[str]]:
    """The names in groups that reach the same cluster; only orchestrators that have several names are asked."""
    kinds = Counter(hyperpod.settings.clusters[name].orchestrator for name in names)

    async def key_of(name: str) -> tuple[str, str]:
        kind = hyperpod.settings.clusters[name].orchestrator
        if kinds[kind] > 1:
            with contextlib.suppress(HyperpodError):  # it is said when it is counted
                identity = await hyperpod.engines.get(name).identity()
                return kind, identity or name
        return kind, name

    groups: dict[tuple[str, str], list[str]] = {}
    for name, key in zip(names, await asyncio.gather(*map(key_of, names)), strict=True):
        groups.setdefault(key, []).append(name)
    return list(groups.values())


async def _runs(hyperpod: Hyperpod) -> list[Run]:
    return list((await hyperpod.runs.list(RunFilter(everyone=True))).runs)


def _not_configured(runs: Iterable[Run], clusters: Collection[str], period: tuple[float, float]) -> list[str]:
    """A note on the runs of a period that are not counted because their cluster is not configured."""
    left_out = [
        run
        for run in runs
        if run.cluster
        and run.cluster not in clusters
        and (run.started_at is not None or run.children)
        and _is_in(run, period)
    ]
    if not left_out:
        return []
    names = ", ".join(sorted({run.cluster for run in left_out}))
    if len(left_out) == 1:
        return [f"1 run of a cluster that is not configured is not counted: {names}"]
    return [f"{len(left_out)} runs of clusters that are not configured are not counted: {names}"]


def _is_in(run: Run, period: tuple[float, float]) -> bool:
    """Whether a run may have used something in a period."""
    return run.created_at < period[1] and (run.ended_at or period[1]) >= period[0]


async def _count(
    hyperpod: Hyperpod, names: Sequence[str], counter: UsageCounter, period: tuple[float, float], runs: Sequence[Run]
) -> list[str]:
    """Count the jobs of one cluster, which has one or more names in the configuration; returns notes."""
    cluster = names[0]
    own_runs = [run for run in runs if run.cluster in names]
    known = await known_nodes(hyperpod.clusters, cluster)
    shapes, default = known.shapes, known.only
    types = {shape.instance_type for shape in shapes.values()} or {None}
    read = await read_prices(hyperpod.clusters, hyperpod.settings, cluster, types)
    notes = list(read.notes)
    counter.add_nodes(cluster, known.launched, read.prices)

    def add(uses: Iterable[Use]) -> None:
        for use in uses:
            counter.add(cluster, use, shapes, read.prices, default)

    history = hyperpod.engines.get(cluster).history
    if history is not None:
        notebooks = {run.run_id: run.notebook for run in own_runs}
        try:
            async for part in history.jobs_between(*period):
                await asyncio.to_thread(add, _uses_of(part, notebooks))
                notes += notes_of(part)
        except HyperpodError as error:
            if error.code != "no_accounting" or hyperpod.engines.get(cluster).history is not None:
                raise
            return await _count(hyperpod, names, counter, period, runs)  # now it is known
    else:
        await asyncio.to_thread(add, await _recorded_uses(hyperpod, own_runs, period))
        notes.append(await _count_seen(hyperpod, names, add, period, own_runs))
    return notes


def _uses_of(jobs: Iterable[Job], notebooks: Mapping[str, str | None]) -> Iterator[Use]:
    for job in jobs:
        yield from uses_of_job(job, notebooks.get(job.run_id or ""))


async def _recorded_uses(hyperpod: Hyperpod, runs: Iterable[Run], period: tuple[float, float]) -> list[Use]:
    """What runs used in a period by their records; those of an array are its children's."""
    uses = []
    for run in runs:
        if not _is_in(run, period):
            continue
        spec = await asyncio.to_thread(_spec_of, hyperpod, run)
        for one in await hyperpod.runs.children(run.run_id) if run.children else (run,):
            uses += [
                Use(one.run_id, execution, run.user, None, run.queue, run.notebook)
                for execution in executions_of_row(one, spec)
            ]
    return uses


def _spec_of(hyperpod: Hyperpod, run: Run) -> JobSpec | None:
    """The spec of a run; None if it cannot be read, or the run was deleted just now."""
    with contextlib.suppress(HyperpodError):
        return hyperpod.runs.bundle(run.run_id).spec()
    return None


async def _count_seen(
    hyperpod: Hyperpod,
    names: Sequence[str],
    add: Callable[[Iterable[Use]], None],
    period: tuple[float, float],
    runs: Iterable[Run],
) -> str:
    """Count the jobs that were seen on a cluster without accounting and that are none of these runs; returns what is missing."""
    if hyperpod.engines.get(names[0]).scheduler.runs_locally:
        return "on the local cluster, the runs of this storage partition are counted"
    seen: dict[tuple[str | None, str, float | None], Job] = {}
    for name in names:
        for job in await asyncio.to_thread(hyperpod.job_log(name).between, *period):
            # Only the entry with a job's namespace tells its run, and leaves the namespace out of its id.
            key = (job.account, job.scheduler_id.rpartition("/")[2], job.started_at)
            if key not in seen or job.run_id is not None:
                seen[key] = job
    # The cluster tells the run of this user's jobs only; a run of another user has its job's id in its records.
    run_ids = {run.run_id for run in runs}
    job_ids = {run.scheduler_id for run in runs}
    others = [
        job for job in seen.values() if job.run_id not in run_ids and job.scheduler_id.rpartition("/")[2] not in job_ids
    ]
    await asyncio.to_thread(add, _uses_of(others, {}))
    return await log_note(hyperpod, names[0])
