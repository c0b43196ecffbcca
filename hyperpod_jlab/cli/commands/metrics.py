"""``hpj metrics``: GPUs, EFA and health of a HyperPod cluster and its nodes."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_json, print_list, print_table
from hyperpod_jlab.cli.parameters import AgeParam
from hyperpod_jlab.cli.sparkline import sparkline
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.node_metrics import METRICS, Course, Measured, Window
from hyperpod_jlab.model.quantities import format_duration, format_size
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.node_metrics import BY_NODE, NodeMetrics

_WIDEST, _NARROWEST, _BESIDE = 60, 10, 70
_NODE_COURSE = "gpu-utilization"
_NODE_WIDTH = 20

_HELP = """\
Show the metrics of a HyperPod cluster, or of its nodes, that CloudWatch has: use of GPUs and of their memory, EFA, health.

Of a cluster each value is the mean over its nodes. On EKS the cluster's metrics are those of the whole EKS cluster.
"""

_EXAMPLES = (
    "hpj metrics --hyperpod research-eks",
    "hpj metrics --hyperpod research-eks --node hyperpod-i-0123456789abcdef0 --since 6h",
    "hpj metrics --hyperpod research-eks --by-node",
    "hpj metrics --hyperpod ml-cluster --since 7d --json",
)


@click.command(cls=HpjCommand, help=_HELP, examples=_EXAMPLES)
@click.option(
    "--hyperpod",
    "cluster",
    metavar="NAME",
    required=True,
    help="The HyperPod cluster: name or ARN.",
)
@click.option(
    "--node", metavar="NODE", help="Only this node: its instance id or its name in Kubernetes."
)
@click.option("--by-node", is_flag=True, help="A row for each node.")
@click.option(
    "--since",
    type=AgeParam(),
    default="1h",
    show_default=True,
    help="How long to look back, as in 30m or 7d; 63 days at the most.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="At most so many nodes, with --by-node. Default: all.",
)
@click.option(
    "--region",
    metavar="REGION",
    help="AWS region. Default: $AWS_REGION, or that of the AWS configuration or of Studio.",
)
def metrics(
    cluster: str,
    node: str | None,
    by_node: bool,
    since: float,
    limit: int | None,
    region: str | None,
) -> None:
    """Show metrics."""
    _check(node, by_node, limit)

    async def read(hyperpod: Hyperpod) -> list[Measured]:
        service = NodeMetrics(hyperpod.hyperpod_clusters(region).aws)
        if by_node:
            return await service.of_nodes(cluster, since, limit)
        if node is not None:
            return [await service.of_node(cluster, node, since)]
        return [await service.of_cluster(cluster, since)]

    found = with_services(read, asking=True)
    if by_node:
        _show_nodes(found)
    else:
        _show(found[0])


def _check(node: str | None, by_node: bool, limit: int | None) -> None:
    if by_node and node is not None:
        raise InvalidInputError("give --node or --by-node, not both", code="usage")
    if limit is not None and not by_node:
        raise InvalidInputError(
            "--limit is for --by-node only", code="usage", detail={"field": "limit"}
        )


def _show(measured: Measured) -> None:
    if invocation().as_json:
        print_json(measured.to_dict())
        return
    window = measured.window
    if measured.courses:
        print(_headline(measured))
    rows = [
        (
            course.metric.name,
            *(_value(course, value) for value in _figures(course)),
            sparkline(_steps(course, window), _highest(course), _room()),
            course.metric.meaning,
        )
        for course in measured.courses.values()
    ]
    titles = ("METRIC", "LAST", "MEAN", "LOWEST", "HIGHEST", "COURSE", "OF")
    print_table(Table(titles, rows, empty="no metrics"))
    for note in measured.notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def _show_nodes(found: Sequence[Measured]) -> None:
    if invocation().as_json:
        print_list("nodes", [one.to_dict() for one in found], None)
        return
    rows = [
        (
            one.node or "-",
            *(_last(one, name) for name in BY_NODE),
            _node_course(one),
        )
        for one in found
    ]
    titles = ("INSTANCE", "GPU", "GPU MEMORY", "EFA IN", "EFA OUT", "CPU", "GPU COURSE")
    print_table(Table(titles, rows, empty="no metrics of nodes in this time"))


def _headline(measured: Measured) -> str:
    window = measured.window
    what = f"{measured.cluster}, node {measured.node}" if measured.node else measured.cluster
    length = format_duration(window.end - window.begin)
    return f"{printable(what)}: {length}, a value each {format_duration(window.period)}"


def _figures(course: Course) -> tuple[float, float, float, float]:
    values = course.values
    return values[-1], sum(values) / len(values), min(values), max(values)


def _value(course: Course, value: float) -> str:
    unit = course.metric.unit
    if unit == "percent":
        return f"{value:.3g} %"
    if unit == "bytes/s":
        return f"{format_size(round(value))}/s"
    if unit == "celsius":
        return f"{value:.0f} °C"
    return f"{value:.3g}/s" if unit == "packets/s" else f"{value:.4g}"


def _last(measured: Measured, name: str) -> str:
    course = measured.courses.get(name)
    return "-" if course is None else _value(course, course.values[-1])


def _node_course(measured: Measured) -> str:
    course = measured.courses.get(_NODE_COURSE)
    if course is None:
        return ""
    return sparkline(_steps(course, measured.window), _highest(course), _NODE_WIDTH)


def _steps(course: Course, window: Window) -> list[float | None]:
    """A value for each period of the window; None where there is none."""
    known = dict(course.points)
    count = int((window.end - window.begin) // window.period) + 1
    return [known.get(window.begin + window.period * at) for at in range(count)]


def _highest(course: Course) -> float:
    """What a whole bar stands for: all of what there is, else the highest value."""
    return 100.0 if METRICS[course.metric.name].unit == "percent" else max(course.values)


def _room() -> int:
    if not is_terminal(sys.stdout):
        return _WIDEST
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns - _BESIDE))
