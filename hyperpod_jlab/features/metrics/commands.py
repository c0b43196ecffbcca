"""``hpj metrics``: GPUs, EFA and health of a HyperPod cluster and its nodes, or of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.naming import find_run
from hyperpod_jlab.cli.output import Table, print_json, print_list, print_table
from hyperpod_jlab.cli.parameters import CLUSTER, RUN, AgeParam, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import format_duration, format_size
from hyperpod_jlab.features.metrics.models import METRICS
from hyperpod_jlab.features.metrics.service import NODE_TABLE_METRICS, node_metrics, run_metrics

if TYPE_CHECKING:
    from hyperpod_jlab.features.metrics.models import (
        MetricSet,
        RunMetricSets,
        TimeRange,
        TimeSeries,
    )
    from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# A time series as one line of text.

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*#@"


def sparkline(values: Sequence[float | None], maximum: float, width: int) -> str:
    """Values as bars between 0 and `maximum`, one character each; a missing value is a gap.

    Args:
        values: The values, in time order.
        maximum: The value of a full bar.
        width: Maximum number of characters; with more values each character is the maximum of several.
    """
    blocks = _BLOCKS if _supports_blocks() else _ASCII
    count = min(width, len(values))
    parts = [
        values[len(values) * index // count : len(values) * (index + 1) // count]
        for index in range(count)
    ]
    return "".join(_bar(part, maximum, blocks) for part in parts)


def _bar(part: Sequence[float | None], maximum: float, blocks: str) -> str:
    present = [value for value in part if value is not None]
    if not present:
        return " "
    share = max(present) / maximum if maximum > 0 else 0.0
    return blocks[max(0, min(len(blocks) - 1, int(share * len(blocks))))]


def _supports_blocks() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        _BLOCKS.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True


_MAX_WIDTH, _MIN_WIDTH, _LABEL_WIDTH = 60, 10, 70
_NODE_METRIC = "gpu-utilization"
_NODE_WIDTH = 20
_HOUR = 3600.0

_HELP = """\
Show metrics of a run, of a HyperPod cluster or of its nodes: GPU and GPU memory utilization, EFA traffic and health.

The source is the cluster's workspace in Amazon Managed Service for Prometheus, if it has one, otherwise CloudWatch. For a cluster or a run, each value
is the mean over its nodes. On EKS, the metrics of a cluster are those of the whole EKS cluster. The metrics of a run cover the time in which it ran.
"""

_EXAMPLES = (
    "hpj metrics last",
    "hpj metrics last --by-node --attempt 2",
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
@click.option(
    "--node", metavar="NODE", help="Show only this node: its instance id or its name in Kubernetes."
)
@click.option("--by-node", is_flag=True, help="Show one row for each node.")
@click.option(
    "--attempt",
    type=click.IntRange(min=1),
    metavar="N",
    help="For a run: show only this attempt. Default: all.",
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
@region_option
def metrics(
    run: str | None,
    cluster: str | None,
    node: str | None,
    by_node: bool,
    attempt: int | None,
    since: float | None,
    limit: int | None,
    region: str | None,
) -> None:
    """Show metrics."""
    _check(node, by_node, limit)
    if run is not None:
        _check_run(cluster, node, since)
        _show_run(run, attempt, region, by_node=by_node, limit=limit)
        return
    if cluster is None:
        raise InvalidInputError(
            "give a run, or a HyperPod cluster with --cluster",
            code="usage",
            hint="hpj metrics last, or hpj metrics --cluster NAME",
        )
    if attempt is not None:
        raise InvalidInputError("--attempt can be used only with a run", code="usage")
    _show_cluster(cluster, node, since or _HOUR, region, by_node=by_node, limit=limit)


def _check(node: str | None, by_node: bool, limit: int | None) -> None:
    if by_node and node is not None:
        raise InvalidInputError("give --node or --by-node, not both", code="usage")
    if limit is not None and not by_node:
        raise InvalidInputError(
            "--limit can be used only with --by-node", code="usage", detail={"field": "limit"}
        )


def _check_run(cluster: str | None, node: str | None, since: float | None) -> None:
    options = {"--cluster": cluster, "--node": node, "--since": since}
    for option, value in options.items():
        if value is not None:
            raise InvalidInputError(f"{option} cannot be used with a run", code="usage")


def _show_cluster(
    cluster: str,
    node: str | None,
    since: float,
    region: str | None,
    *,
    by_node: bool,
    limit: int | None,
) -> None:
    async def read(hyperpod: Hyperpod) -> list[MetricSet]:
        resolved = await hyperpod.clusters.resolve_hyperpod(cluster, region)
        service = node_metrics(hyperpod, resolved.region)
        if by_node:
            return await service.read_nodes(resolved.aws_name, since, limit)
        if node is not None:
            return [await service.read_node(resolved.aws_name, node, since)]
        return [await service.read_cluster(resolved.aws_name, since)]

    metric_sets = with_services(read, asking=True)
    if by_node:
        _show_nodes(metric_sets)
    else:
        _show(metric_sets[0])


def _show_run(
    text: str, attempt: int | None, region: str | None, *, by_node: bool, limit: int | None
) -> None:
    async def read(hyperpod: Hyperpod) -> RunMetricSets:
        run_id = await find_run(hyperpod, text)
        service = run_metrics(hyperpod, region)
        return await service.read_run(run_id, attempt)

    measured = with_services(read, asking=True)
    if by_node:
        _show_nodes(measured.nodes[:limit])
    elif invocation().as_json:
        print_json(measured)
    else:
        _show(measured.whole, measured.run_id)


def _show(measured: MetricSet, run_id: str | None = None) -> None:
    if invocation().as_json:
        print_json(measured)
        return
    window = measured.window
    if measured.courses:
        print(_headline(measured, run_id))
    rows = [
        (
            course.metric.name,
            *(_value(course, value) for value in _figures(course)),
            sparkline(_values_by_period(course, window), _chart_maximum(course), _chart_width()),
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
        (
            metric_set.node or "-",
            *(_last(metric_set, name) for name in NODE_TABLE_METRICS),
            _node_course(metric_set),
        )
        for metric_set in metric_sets
    ]
    titles = ("INSTANCE", "GPU", "GPU MEMORY", "EFA IN", "EFA OUT", "CPU", "GPU COURSE")
    print_table(Table(titles, rows, empty="no metrics of nodes for this time"))
    _print_notes(metric_sets)


def _headline(measured: MetricSet, run_id: str | None) -> str:
    window = measured.window
    subject = f"{run_id} on {measured.cluster}" if run_id else measured.cluster
    node = f", node {measured.node}" if measured.node else ""
    length = format_duration(window.end - window.begin)
    period_text = format_duration(window.period)
    return f"{printable(subject + node)}: {length}, one value every {period_text}, from {measured.source}"


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
    return sparkline(
        _values_by_period(course, measured.window), _chart_maximum(course), _NODE_WIDTH
    )


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
