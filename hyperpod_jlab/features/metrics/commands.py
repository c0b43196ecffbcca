"""``hpj metrics``: what the ranks of a run print and what its hardware does; GPUs, EFA and health of a HyperPod cluster and its nodes."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.numbers import format_alarm, format_number, format_progress, sparkline
from hyperpod_jlab.cli.output import Table, print_json, print_list, print_table
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, AgeParam, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.metric_names import order_names
from hyperpod_jlab.core.quantities import format_duration, format_size
from hyperpod_jlab.features.metrics.models import METRICS, RunMetricReport
from hyperpod_jlab.features.metrics.service import NODE_TABLE_METRICS, node_metrics
from hyperpod_jlab.run.resources import read_resources

if TYPE_CHECKING:
    from hyperpod_jlab.features.metrics.models import MetricSet, TimeRange, TimeSeries
    from hyperpod_jlab.run.metrics import MetricSeries, MetricSummary
    from hyperpod_jlab.run.resources import ResourceSeries, RunResources
    from hyperpod_jlab.run.services import Hyperpod

_MAX_WIDTH, _MIN_WIDTH, _LABEL_WIDTH = 60, 10, 70
_NODE_METRIC = "gpu-utilization"
_NODE_WIDTH = 20
_HOUR = 3600.0

_HELP = """\
Show metrics of a run, of a HyperPod cluster or of its nodes.

Of a run: the numbers that its ranks print (loss, learning rate, steps and others, see the documentation), and what its nodes use, as the launcher measures it.

Of a HyperPod cluster and its nodes: GPU and GPU memory utilization, EFA traffic and health, from the cluster's workspace in Amazon Managed Service for
Prometheus, if it has one, otherwise from CloudWatch. For a cluster, each value is the mean over its nodes. On EKS it is that of the whole EKS cluster.
"""

_EXAMPLES = (
    "hpj metrics last",
    "hpj metrics last --name loss --rank 0 --json",
    "hpj metrics last --attempt 2",
    "hpj metrics --cluster research-eks",
    "hpj metrics --cluster research-eks --node hyperpod-i-0123456789abcdef0 --since 6h",
    "hpj metrics --cluster research-eks --by-node",
    "hpj metrics --cluster ml-cluster --since 7d --json",
)


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.argument("run", type=RUN, required=False)
@click.option(
    "--cluster",
    type=CLUSTER,
    help="Show this HyperPod cluster instead of a run: its name in the configuration, or its name or ARN in AWS.",
)
@click.option("--node", metavar="NODE", help="Show only this node: its instance id or its name in Kubernetes.")
@click.option("--by-node", is_flag=True, help="For a cluster: show one row for each node.")
@click.option(
    "--attempt", type=click.IntRange(min=1), metavar="N", help="For a run: show only this attempt. Default: all."
)
@click.option(
    "--since",
    type=AgeParam(),
    help="For a cluster: show this much time, such as 30m or 7d, at most 63 days. Default: 1h.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --by-node: show at most this many nodes. Default: all.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="For a run: show only this number that its ranks print. Can be repeated.",
)
@click.option(
    "--rank",
    "ranks",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="For a run: show only this rank. Can be repeated.",
)
@click.option("--last", is_flag=True, help="For a run: only the newest value of each number.")
@region_option
def metrics(run: str | None, **options: Any) -> None:
    """Show metrics."""
    chosen = _Options(**options)
    _check(chosen.node, chosen.by_node, chosen.limit)
    if run is not None:
        _check_run(chosen)
        _show_run(run, chosen)
        return
    if chosen.names or chosen.ranks or chosen.last:
        raise InvalidInputError("--name, --rank and --last can be used only with a run", code="usage")
    if chosen.cluster is None:
        raise InvalidInputError(
            "give a run, or a HyperPod cluster with --cluster",
            code="usage",
            hint="hpj metrics last, or hpj metrics --cluster NAME",
        )
    if chosen.attempt is not None:
        raise InvalidInputError("--attempt can be used only with a run", code="usage")
    _show_cluster(chosen.cluster, chosen)


@dataclass(frozen=True)
class _Options:
    """What was given on the command line."""

    cluster: str | None
    node: str | None
    by_node: bool
    attempt: int | None
    since: float | None
    limit: int | None
    names: tuple[str, ...]
    ranks: tuple[int, ...]
    last: bool
    region: str | None


def _check(node: str | None, by_node: bool, limit: int | None) -> None:
    if by_node and node is not None:
        raise InvalidInputError("give --node or --by-node, not both", code="usage")
    if limit is not None and not by_node:
        raise InvalidInputError("--limit can be used only with --by-node", code="usage", detail={"field": "limit"})


def _check_run(chosen: _Options) -> None:
    options = {
        "--cluster": chosen.cluster,
        "--node": chosen.node,
        "--since": chosen.since,
        "--region": chosen.region,
        "--by-node": chosen.by_node or None,
    }
    for option, value in options.items():
        if value is not None:
            raise InvalidInputError(f"{option} cannot be used with a run", code="usage")


def _show_cluster(cluster: str, chosen: _Options) -> None:
    since = chosen.since or _HOUR

    async def read(hyperpod: Hyperpod) -> list[MetricSet]:
        resolved = await hyperpod.clusters.resolve_hyperpod(cluster, chosen.region)
        service = node_metrics(hyperpod, resolved.region)
        if chosen.by_node:
            return await service.read_nodes(resolved.aws_name, since, chosen.limit)
        if chosen.node is not None:
            return [await service.read_node(resolved.aws_name, chosen.node, since)]
        return [await service.read_cluster(resolved.aws_name, since)]

    metric_sets = with_services(read, asking=True)
    if chosen.by_node:
        _show_nodes(metric_sets)
    else:
        _show(metric_sets[0])


def _show_run(text: str, chosen: _Options) -> None:
    async def read(hyperpod: Hyperpod) -> tuple[RunMetricReport, MetricSummary, str]:
        run_id = await find_run(hyperpod, text)
        run = await hyperpod.runs.get(run_id)
        await asyncio.to_thread(hyperpod.runs.check_no_array, run_id)
        printed = await asyncio.to_thread(hyperpod.metrics.get, run_id)
        await asyncio.to_thread(printed.refresh)
        series, _ = printed.read(chosen.names, chosen.ranks)
        series = [one for one in series if chosen.attempt in {None, one.attempt}]
        if chosen.last:
            series = [replace(one, points=one.points[-1:]) for one in series]
        resources = await asyncio.to_thread(read_resources, hyperpod.runs.bundle(run_id), chosen.attempt)
        ended = run.status.ended
        missing = printed.explain_missing(chosen.names, chosen.ranks, chosen.attempt, ended=ended)
        # A rank or an attempt that prints nothing may have used something.
        if missing is not None and (chosen.names or not _used(resources, chosen.ranks)):
            raise missing
        summary = printed.summary(ended=ended)
        empty = f"no numbers in the output{'' if ended else ' so far'}"
        empty = empty if missing is None else str(missing)
        return RunMetricReport(run_id, series, resources), summary, empty

    found, summary, empty = with_services(read, asking=True)
    if invocation().as_json:
        print_json(found)
        return
    _print_summary(found.run_id, summary)
    _print_series(found.series, empty, is_last=chosen.last)
    if not chosen.names:
        _print_resources(_used(found.resources, chosen.ranks))


def _print_summary(run_id: str, summary: MetricSummary) -> None:
    progress = format_progress(summary.progress)
    print(f"{run_id}  {progress}" if progress else run_id)
    for alarm in summary.alarms:
        print(f"alarm {printable(format_alarm(alarm))}")


_MAX_ROWS = 60
_LAST_COLUMNS = 5
"""Columns of the table of numbers for the newest values alone."""


def _print_series(series: Sequence[MetricSeries], empty: str, *, is_last: bool) -> None:
    order = {name: place for place, name in enumerate(order_names([one.name for one in series]))}
    ordered = sorted(series, key=lambda one: order.get(one.name, len(order)))
    rows: list[tuple[str, ...]] = []
    for one in ordered[:_MAX_ROWS]:
        values = [value for _, _, value in one.points]
        finite = [value for value in values if value is not None]
        step = one.points[-1][0] if one.points else None
        rows.append(
            (
                printable(one.name),
                str(one.rank),
                str(one.attempt),
                "-" if step is None else str(step),
                format_number(values[-1]) if values else "-",
                format_number(min(finite)) if finite else "-",
                format_number(max(finite)) if finite else "-",
                sparkline(values, min(finite), max(finite), _chart_width()) if finite else "",
            )
        )
    titles: tuple[str, ...] = ("NUMBER", "RANK", "ATTEMPT", "STEP", "LAST", "LOWEST", "HIGHEST", "COURSE")
    if is_last:
        titles, rows = titles[:_LAST_COLUMNS], [row[:_LAST_COLUMNS] for row in rows]
    print_table(Table(titles, rows, empty=empty))
    if len(ordered) > _MAX_ROWS:
        print(f"and {len(ordered) - _MAX_ROWS} more; choose with --name or --rank")


_KINDS = {"cpu": "CPUs busy", "memory": "memory", "gpu": "GPU busy", "gpu_memory": "GPU memory"}


def _used(resources: RunResources, ranks: Collection[int]) -> list[ResourceSeries]:
    """What these ranks used; without any: what all ranks, nodes and GPUs used."""
    return [one for one in resources.series if not ranks or one.rank in ranks]


def _print_resources(series: Sequence[ResourceSeries]) -> None:
    """What the launcher measured."""
    rows = []
    measured = [one for one in series if any(value is not None for value in one.values)]
    for one in measured[:_MAX_ROWS]:
        whose = f"rank {one.rank}" if one.rank is not None else f"node {one.node_rank}"
        whose = f"GPU {one.gpu} of node {one.node_rank}" if one.gpu is not None else whose
        highest = one.limit or max(value for value in one.values if value is not None)
        rows.append(
            (
                _KINDS[one.kind],
                whose,
                _amount(one.kind, one.last),
                _amount(one.kind, one.peak),
                sparkline(one.values, 0.0, highest, _chart_width()),
            )
        )
    if rows:
        print()
        print_table(Table(("USED", "BY", "LAST", "HIGHEST", "COURSE"), rows))
    if len(measured) > _MAX_ROWS:
        print(f"and {len(measured) - _MAX_ROWS} more; choose with --rank")


def _amount(kind: str, value: float | None) -> str:
    if value is None:
        return "-"
    if kind in {"memory", "gpu_memory"}:
        return format_size(round(value))
    return f"{value:.0f} %" if kind == "gpu" else f"{value:.2f}"


def _show(measured: MetricSet) -> None:
    if invocation().as_json:
        print_json(measured)
        return
    window = measured.window
    if measured.courses:
        print(_headline(measured))
    rows = [
        (
            course.metric.name,
            *(_value(course, value) for value in _figures(course)),
            sparkline(_values_by_period(course, window), 0.0, _chart_maximum(course), _chart_width()),
            course.metric.meaning,
        )
        for course in measured.courses.values()
    ]
    titles = ("METRIC", "LAST", "MEAN", "LOWEST", "HIGHEST", "COURSE", "OF")
    print_table(Table(titles, rows, empty="no metrics"))
    _print_notes([measured])


def _print_notes(metric_sets: Sequence[MetricSet]) -> None:
    for note in dict.fromkeys(note for metric_set in metric_sets for note in metric_set.notes):
        print(f"note: {printable(note)}", file=sys.stderr)


def _show_nodes(metric_sets: Sequence[MetricSet]) -> None:
    if invocation().as_json:
        print_list("nodes", metric_sets, None)
        return
    rows = [
        (metric_set.node or "-", *(_last(metric_set, name) for name in NODE_TABLE_METRICS), _node_course(metric_set))
        for metric_set in metric_sets
    ]
    titles = ("INSTANCE", "GPU", "GPU MEMORY", "EFA IN", "EFA OUT", "CPU", "GPU COURSE")
    print_table(Table(titles, rows, empty="no metrics of nodes for this time"))
    _print_notes(metric_sets)


def _headline(measured: MetricSet) -> str:
    window = measured.window
    node = f", node {measured.node}" if measured.node else ""
    length = format_duration(window.end - window.begin)
    period_text = format_duration(window.period)
    return f"{printable(measured.cluster + node)}: {length}, one value every {period_text}, from {measured.source}"


def _figures(course: TimeSeries) -> tuple[float, float, float, float]:
    values = course.values
    return values[-1], course.mean, min(values), max(values)


def _value(course: TimeSeries, value: float) -> str:
    unit = course.metric.unit
    if unit == "percent":
        return f"{value:.3g} %"
    if unit == "bytes/s":
        return f"{format_size(round(value))}/s"
    if unit == "celsius":
        return f"{value:.0f} °C"
    return f"{value:.3g}/s" if unit == "packets/s" else f"{value:.4g}"


def _last(measured: MetricSet, name: str) -> str:
    course = measured.courses.get(name)
    return "-" if course is None else _value(course, course.values[-1])


def _node_course(measured: MetricSet) -> str:
    course = measured.courses.get(_NODE_METRIC)
    if course is None:
        return ""
    return sparkline(_values_by_period(course, measured.window), 0.0, _chart_maximum(course), _NODE_WIDTH)


def _values_by_period(course: TimeSeries, window: TimeRange) -> list[float | None]:
    """A value for each period of the window; None if missing."""
    value_by_time = dict(course.points)
    count = int((window.end - window.begin) // window.period) + 1
    return [value_by_time.get(window.begin + window.period * index) for index in range(count)]


def _chart_maximum(course: TimeSeries) -> float:
    """The value of a full bar: 100 for percentages, else the highest value."""
    return 100.0 if METRICS[course.metric.name].unit == "percent" else max(course.values)


def _chart_width() -> int:
    if not is_terminal(sys.stdout):
        return _MAX_WIDTH
    return max(_MIN_WIDTH, min(_MAX_WIDTH, shutil.get_terminal_size().columns - _LABEL_WIDTH))
