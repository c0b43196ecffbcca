"""What a run costs: at most, before it is submitted, and so far, afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hyperpod_jlab.clusters.node_shapes import KnownNode, known_nodes
from hyperpod_jlab.clusters.prices import read_prices
from hyperpod_jlab.core.cost import HOUR_S, Cost, Execution, Price, Prices, Shape, cost_of, share_of_node
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.core.usage import attempt_end
from hyperpod_jlab.engines.repairs import read_records
from hyperpod_jlab.run.resources import read_resources
from hyperpod_jlab.storage.big_records import Deadline, TooSlowError
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError

if TYPE_CHECKING:
    from hyperpod_jlab.core.allowance import Allowance
    from hyperpod_jlab.core.cluster import Queue
    from hyperpod_jlab.core.config import CostConfig
    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.engines.protocol import NativeFacts
    from hyperpod_jlab.run.services import Hyperpod

_CLOCKS_DIFFER_S = 86_400.0
"""How much earlier than the run, by the clock of the submitting machine, a node may say that it started."""
_LISTED_CHILDREN = 100
"""Children whose records a list of runs reads for the costs of the newest arrays: each costs a look into its folder."""
_QUOTAS_WAIT_S = 3.0

# --------------------------------------------------------------------------------------------------
# After the submit.


@dataclass(frozen=True, kw_only=True)
class RunCost(Cost):
    """What a run has cost so far, in all its attempts; of an array, all its children together.

    Attributes:
        run_id: The run.
        source: The scheduler's accounting, or the run's own records.
        gpu_utilization: Percent of the time in which its GPUs were busy, in the newest attempt that was measured; null if none was.
        notes: What is missing, one sentence each.
    """

    run_id: str
    source: Literal["accounting", "records"]
    gpu_utilization: float | None = None
    notes: tuple[str, ...] = ()


async def read_run_cost(hyperpod: Hyperpod, run_id: str) -> RunCost:
    """What a run has cost so far.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: Its records cannot be read.
    """
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    run = await hyperpod.runs.get(run_id)
    source: Literal["accounting", "records"] = "accounting"
    missing: tuple[str, ...] = ()
    accounted = await _accounted(hyperpod, bundle, run.cluster)
    if accounted is not None and not _is_behind(accounted, run):
        executions = accounted
    else:
        source = "records"
        executions, missing = await asyncio.to_thread(_recorded, bundle, run)
    utilization = await hyperpod.big_reads.run(lambda deadline: _utilization(bundle, deadline))
    names = {name for one in executions for name in one.nodes}
    notes: tuple[str, ...]
    if run.cluster not in hyperpod.settings.clusters:
        currency = hyperpod.settings.cost.currency
        cost = cost_of(executions, {}, Prices(currency), now=time.time())
        notes = (f"the cluster {run.cluster} is not configured, so its prices are not known",)
    else:
        known = await known_nodes(hyperpod.clusters, run.cluster, names)
        shapes, default = known.shapes, known.only or Shape()
        types = {shapes.get(name, default).instance_type for name in names}
        read = await read_prices(hyperpod.clusters, hyperpod.settings, run.cluster, types)
        cost = cost_of(executions, known.shapes, read.prices, now=time.time(), default=known.only)
        notes = read.notes if cost.amount is None else ()
        if cost.amount is not None and _had_parts(executions, shapes, default):
            notes = ("the run had only a part of its nodes, and is charged for that part",)
    if missing:
        cost = replace(cost, amount=None, wasted_amount=None)
    return RunCost(**vars(cost), run_id=run_id, source=source, gpu_utilization=utilization, notes=(*missing, *notes))


def _had_parts(executions: Sequence[Execution], shapes: Mapping[str, Shape], default: Shape) -> bool:
    """Whether an execution had only a part of a node."""
    return any(
        share_of_node(one, shapes.get(name, default), len(one.nodes)) < 1 for one in executions for name in one.nodes
    )


def _is_behind(executions: Sequence[Execution], run: Run) -> bool:
    """Whether the accounting does not know yet what the records tell: it learns of starts and ends some seconds later."""
    return len(executions) < len(run.attempts) or (run.status.ended and any(one.ended_at is None for one in executions))


async def _accounted(hyperpod: Hyperpod, bundle: BundleReader, cluster: str) -> list[Execution] | None:
    if cluster not in hyperpod.settings.clusters:
        return None
    history = hyperpod.engines.get(cluster).history
    return None if history is None else await history.executions(bundle)


def _recorded(bundle: BundleReader, run: Run) -> tuple[list[Execution], tuple[str, ...]]:
    """The executions from the records of a run, or of an array's children: one for each node, whose clock it goes by. And what is missing."""
    try:
        spec = bundle.spec()
    except DamagedBundleError:
        spec = None
    all_records = read_records(bundle)
    ends = {attempt.number: attempt.ended_at for attempt in run.attempts}
    executions = [
        execution
        for records in all_records
        for execution in executions_of(records, spec, ended=run.status.ended, ends=ends)
    ]
    since = min(records.head.created_at for records in all_records) if all_records else 0.0
    believed = [one for one in executions if one.started_at >= since - _CLOCKS_DIFFER_S]
    is_damaged = any(records.damage for records in all_records) or run.state == "unknown"
    if is_damaged or len(believed) < len(executions):
        return believed, ("some records of the run cannot be read, so hours are missing",)
    return believed, ()


def executions_of(
    records: RunRecords, spec: JobSpec | None, *, ended: bool, ends: Mapping[int, float | None] | None = None
) -> list[Execution]:
    """The executions of one run by its records, one for each node.

    Args:
        records: Its records.
        spec: Its spec, which tells what it asked for on each node; None: not known.
        ended: Whether the run, or its array, is known to have ended: then nodes without a record of their end ended with the others.
        ends: When attempts ended, for those of which no node recorded its end.
    """
    own = derive(records, StateContext(time.time()))  # a child may end long before its array
    ended = ended or own.ended
    known = {**{one.number: one.ended_at for one in own.attempts}, **(ends or {})}
    last = max((attempt.number for attempt in records.attempts), default=0)
    gpus, cpus = (0, None) if spec is None else _asked(spec)
    found = []
    for attempt in records.attempts:
        seen = known.get(attempt.number)
        is_over = ended or attempt.number < last or seen is not None
        end = (attempt_end(records, attempt) or seen) if is_over else None
        for node in attempt.nodes:
            stop = node.ended_at if node.ended_at is not None else end
            if stop is None and is_over:  # nothing tells when it ended
                stop = node.started_at
            found.append(
                Execution(
                    node.started_at,
                    stop,
                    (node.node,),
                    accelerators=gpus,
                    cpus=cpus,
                    exclusive=spec is not None and _is_exclusive(spec),
                    repeated=attempt.number < last,
                )
            )
    return found


async def list_costs(hyperpod: Hyperpod, runs: Sequence[Run]) -> dict[str, Cost]:
    """What runs have cost, by id, from their rows, and of the newest arrays from their children's records: asks no cluster, so it is a first look."""
    found: dict[str, Cost] = {}
    arrays = await asyncio.to_thread(_array_executions, hyperpod, runs)
    for cluster in {run.cluster for run in runs} & hyperpod.settings.clusters.keys():
        known = await known_nodes(hyperpod.clusters, cluster, cached_only=True)
        shapes, default = known.shapes, known.only
        types = {shape.instance_type for shape in shapes.values()} | {None}
        read = await read_prices(hyperpod.clusters, hyperpod.settings, cluster, types, cached_only=True)
        for run in runs:
            if run.cluster == cluster and run.started_at is not None:
                executions = arrays.get(run.run_id) if run.children else executions_of_row(run)
                if executions is not None:
                    found[run.run_id] = cost_of(executions, shapes, read.prices, now=time.time(), default=default)
    return found


def _array_executions(hyperpod: Hyperpod, runs: Sequence[Run]) -> dict[str, list[Execution]]:
    """The executions of the newest arrays that have at most `_LISTED_CHILDREN` started children together, by id."""
    found: dict[str, list[Execution]] = {}
    left = _LISTED_CHILDREN
    for run in runs:
        started = sum(n for state, n in (run.children or {}).items() if state != "waiting")
        if not 0 < started <= left:
            continue
        left -= started
        with contextlib.suppress(HyperpodError):  # it was deleted just now, or cannot be read
            executions, missing = _recorded(hyperpod.runs.bundle(run.run_id), run)
            if not missing:
                found[run.run_id] = executions
    return found


def executions_of_row(run: Run, spec: JobSpec | None = None) -> list[Execution]:
    """The executions of a run by its row.

    Args:
        run: The run.
        spec: Its spec, which alone tells the CPUs and whether it asked for whole nodes; None: not known.
    """
    last = max((attempt.number for attempt in run.attempts), default=0)
    if spec is not None:
        gpus, cpus = _asked(spec)
    elif run.gpus_per_node is None:  # a native file
        gpus, cpus = 0, None
    else:
        gpus, cpus = run.gpus_per_node, run.processes_per_node
    return [
        Execution(
            attempt.started_at,
            attempt.ended_at,
            attempt.nodes,
            count := len(attempt.nodes) or run.nodes,
            accelerators=gpus * count,
            cpus=None if cpus is None else cpus * count,
            exclusive=spec is not None and _is_exclusive(spec),
            repeated=attempt.number < last,
        )
        for attempt in run.attempts
        if attempt.started_at is not None
    ]


def _utilization(bundle: BundleReader, deadline: Deadline) -> float | None:
    try:
        resources = read_resources(bundle, deadline=deadline)
    except TooSlowError:
        return None
    values = [
        value for series in resources.series if series.kind == "gpu" for value in series.values if value is not None
    ]
    return round(sum(values) / len(values), 1) if values else None


# --------------------------------------------------------------------------------------------------
# Before the submit.


@dataclass(frozen=True)
class QuotaShare:
    """What share of a team's quota a run takes.

    Attributes:
        quota: Whose it is: such as ``queue team-a`` of Kueue, or ``account research`` of Slurm.
        unit: ``GPUs`` or ``GPU-hours``.
        nominal: The quota in its unit.
        used: What is used of it now.
        share: The share that the run takes: of GPUs while it runs, of GPU-hours until its time limit. More than 1 does not fit.
    """

    quota: str
    unit: str
    nominal: float
    used: float
    share: float


@dataclass(frozen=True)
class Estimate:
    """What a run would cost on the most expensive nodes that it may get.

    Attributes:
        currency: The currency, as ISO 4217.
        per_hour: Money for an hour while it runs, all tasks of an array that run at once together; null if a price is not known.
        at_most: Money until its time limit, for all tasks of an array and all attempts that `max_restarts` allows; null without a time limit.
        node_hours: The same in node-hours.
        gpu_hours: The same in GPU-hours; null like `gpus`, too.
        gpus: GPUs, or other accelerators, that it would have at once; null if a native file does not tell.
        prices: The prices that were used.
        shares: The quotas of its team, with the share of each that it takes.
        notes: What is missing or assumed, one sentence each.
    """

    currency: str
    per_hour: float | None
    at_most: float | None
    node_hours: float | None
    gpu_hours: float | None
    gpus: int | None
    prices: tuple[Price, ...] = ()
    shares: tuple[QuotaShare, ...] = ()
    notes: tuple[str, ...] = ()


async def estimate(
    hyperpod: Hyperpod, spec: JobSpec, cluster: str, time_limit: int | None, facts: NativeFacts | None = None
) -> Estimate:
    """What a run would cost.

    Args:
        hyperpod: The services.
        spec: Its spec.
        cluster: Its cluster, by its name in the configuration.
        time_limit: Its time limit in seconds, also that of its queue; None: it has none.
        facts: What a native file asks for.
    """
    known = await known_nodes(hyperpod.clusters, cluster)
    candidates = {node.shape for node in known.present.values() if _may_run(spec, node)} or {
        Shape(spec.resources.instance_type)
    }
    types = {shape.instance_type for shape in candidates}
    read = await read_prices(hyperpod.clusters, hyperpod.settings, cluster, types)
    notes = read.notes if known.problem is None else (*read.notes, known.problem)
    found = estimate_of(spec, candidates, read.prices, time_limit, facts=facts, notes=notes)
    return replace(found, shares=await _quota_shares(hyperpod, spec, cluster, found))


async def _quota_shares(hyperpod: Hyperpod, spec: JobSpec, cluster: str, found: Estimate) -> tuple[QuotaShare, ...]:
    """The shares of the scheduler's quotas that a run takes; none if there are none, or the cluster does not answer soon."""
    if not found.gpus:
        return ()
    engine = hyperpod.engines.get(cluster)
    try:
        async with asyncio.timeout(_QUOTAS_WAIT_S):
            if engine.allowance_limits is not None:
                query = engine.allowance_limits.allowances(spec.account, spec.qos)
                return _shares_of_hours(await query, found.gpu_hours or 0.0)
            if spec.queue is None or engine.tables is None:
                return ()
            queues = await hyperpod.snapshots.last(("queues", cluster), lambda: hyperpod.queues(cluster))
            return _shares_of_queue(spec.queue, queues.value, found.gpus)
    except (TimeoutError, HyperpodError):
        return ()


def _shares_of_hours(allowances: Sequence[Allowance], gpu_hours: float) -> tuple[QuotaShare, ...]:
    """The shares of limits of GPU-hours."""
    return tuple(
        QuotaShare(f"{one.owner} {one.name}", "GPU-hours", one.limit, one.used, round(gpu_hours / one.limit, 4))
        for one in allowances
        if one.resource == "gpu" and one.limit
    )


def _shares_of_queue(queue: str, queues: Sequence[Queue], gpus: int) -> tuple[QuotaShare, ...]:
    """The shares of a Kueue queue's quotas of accelerators, such as ``nvidia.com/gpu``."""
    return tuple(
        QuotaShare(f"queue {one.name}", "GPUs", quota.nominal, quota.used, round(gpus / quota.nominal, 4))
        for one in queues
        if one.name == queue
        for quota in one.quotas
        if quota.nominal and "/" in quota.resource and not quota.resource.endswith("/efa")
    )


def _may_run(spec: JobSpec, node: KnownNode) -> bool:
    """Whether a run may get this node, as far as the spec says."""
    resources = spec.resources
    wanted = resources.accelerator
    return (
        (spec.queue is None or not node.queues or spec.queue in node.queues)
        and resources.instance_type in (None, node.shape.instance_type)
        and resources.instance_group in (None, node.instance_group)
        and (not wanted.count or (node.shape.accelerators or 0) >= wanted.count)
        and (wanted.type is None or node.accelerator_type in (None, wanted.type))
    )


def estimate_of(
    spec: JobSpec,
    candidates: set[Shape],
    prices: Prices,
    time_limit: int | None,
    *,
    facts: NativeFacts | None = None,
    notes: tuple[str, ...] = (),
    now: float | None = None,
) -> Estimate:
    """What a run would cost on the most expensive of the nodes that it may get. Pure.

    Args:
        spec: Its spec.
        candidates: What these nodes have.
        prices: Their prices.
        time_limit: Its time limit in seconds; None: it has none.
        facts: What a native file asks for.
        notes: What is known to be missing.
        now: Unix seconds; default: the time.
    """
    count, array = spec.resources.nodes, spec.array
    gpus: int | None
    gpus, cpus = _asked(spec)
    if facts is not None:
        count, array, gpus = facts.nodes, facts.array, facts.gpus_per_node
        time_limit = time_limit or facts.time_limit
        if gpus is None:
            notes = (*notes, "the file does not tell how many GPUs it uses")
    execution = Execution(
        time.time() if now is None else now,
        node_count=count,
        accelerators=(gpus or 0) * count,
        cpus=None if cpus is None else cpus * count,
        exclusive=_is_exclusive(spec),
    )
    tasks, at_once = _tasks(array)
    attempts = 1 + spec.max_restarts
    hours = None if time_limit is None else time_limit / HOUR_S * attempts
    begin = execution.started_at
    node_prices = {
        shape: [
            (price, share_of_node(execution, shape, count))
            for _, _, price in prices.over(shape.instance_type, begin, begin + (time_limit or 0))
        ]
        for shape in candidates
    }
    used = [price for found in node_prices.values() for price, _ in found]
    rates = [price.price * share for found in node_prices.values() for price, share in found if price]
    per_hour = None if None in used or not rates else max(rates) * count
    if per_hour is not None and len(set(rates)) > 1:
        notes = (
            *notes,
            f"the nodes that it may get have several prices; the highest is shown, the lowest is {min(rates) * count:.2f} an hour",
        )
    if any(share < 1 for found in node_prices.values() for _, share in found):
        notes = (*notes, "the run takes only a part of each node, and is charged for that part")
    if attempts > 1 and hours is not None:
        notes = (*notes, f"the most is for {attempts} attempts, because of max_restarts")
    if hours is None:
        notes = (*notes, "it has no time limit, so it may cost any amount")
    return Estimate(
        currency=prices.currency,
        per_hour=None if per_hour is None else per_hour * at_once,
        at_most=None if per_hour is None or hours is None else per_hour * hours * tasks,
        node_hours=None if hours is None else count * hours * tasks,
        gpu_hours=None if hours is None or gpus is None else gpus * count * hours * tasks,
        gpus=None if gpus is None else gpus * count * at_once,
        prices=tuple(dict.fromkeys(price for price in used if price is not None)),
        notes=notes,
    )


def _asked(spec: JobSpec) -> tuple[int, int | None]:
    """The accelerators and the CPUs that a run asks for on each node; None: not known, as for a native file."""
    if spec.source.kind == "native":
        return 0, None
    return spec.resources.accelerator.count, spec.resources.cpus or spec.resources.processes


def _tasks(text: str | None) -> tuple[int, int]:
    """How many tasks an array has, and how many of them run at once."""
    if text is None:
        return 1, 1
    array = parse_array(text)
    count = len(array.indices)
    return count, min(count, array.throttle or count)


def _is_exclusive(spec: JobSpec) -> bool:
    """Whether a run asks Slurm for whole nodes."""
    return spec.slurm.flags.get("exclusive") in (True, "", "exclusive")


def limit_findings(estimate: Estimate, config: CostConfig, *, accepted: bool) -> list[Finding]:
    """Error: a run may cost more than the configuration allows, or than it allows without a confirmation. Warning: that is not known.

    Args:
        estimate: What it would cost.
        config: The configuration.
        accepted: Whether the user has confirmed it.
    """
    infinite = float("inf")
    money = infinite if estimate.per_hour and estimate.at_most is None else estimate.at_most
    gpu_hours = infinite if estimate.gpus and estimate.gpu_hours is None else estimate.gpu_hours
    refusals = ((money, config.refuse_over, estimate.currency), (gpu_hours, config.refuse_gpu_hours_over, "GPU-hours"))
    confirmations = (
        (money, config.confirm_over, estimate.currency),
        (gpu_hours, config.confirm_gpu_hours_over, "GPU-hours"),
    )
    for value, limit, unit in refusals:
        if value is not None and limit is not None and value > limit:
            return [_over("cost_refused", value, limit, unit, "an administrator has set this limit")]
    for value, limit, unit in confirmations:
        if not accepted and value is not None and limit is not None and value > limit:
            return [
                _over(
                    "cost_not_confirmed",
                    value,
                    limit,
                    unit,
                    "or confirm it with --accept-cost (in Python accept_cost=True)",
                )
            ]
    return [
        Finding(
            level="warning",
            code="cost_unknown",
            message=f"the limit of {limit:,.2f} {unit} was not checked, because {reason}",
            hint=hint,
        )
        for unit, limits, is_unknown, reason, hint in (
            (
                estimate.currency,
                (config.refuse_over, config.confirm_over),
                estimate.per_hour is None,
                "no price is known",
                "an administrator can set prices below [cost.prices], or limits in GPU-hours",
            ),
            (
                "GPU-hours",
                (config.refuse_gpu_hours_over, config.confirm_gpu_hours_over),
                estimate.gpus is None,
                "the file does not tell how many GPUs it uses",
                "write them with --gpus-per-node or --gres, or in the resources of the pods",
            ),
        )
        if is_unknown
        for limit in sorted(one for one in limits if one is not None)[:1]
    ]


def _over(code: str, value: float, limit: float, unit: str, hint: str) -> Finding:
    verb = "use" if unit == "GPU-hours" else "cost"
    if value == float("inf"):
        message = f"the run has no time limit, so it may {verb} more than {limit:,.2f} {unit}"
        return Finding(
            level="error",
            code=code,
            message=message,
            hint=f"set a time limit with --time-limit; {hint}",
            field="time_limit",
        )
    message = f"the run may {verb} {value:,.2f} {unit}, which is over the limit of {limit:,.2f} {unit}"
    return Finding(
        level="error",
        code=code,
        message=message,
        hint=f"use fewer nodes or a shorter time limit; {hint}",
        field="resources.nodes",
    )
