"""``hpj clusters``, ``nodes``, ``queues`` and ``jobs``: what the clusters are and do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, moment, print_list, print_table
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.model.cluster import Cluster, Job, Node, Queue
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.quantities import format_duration, format_size


class _Item(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


Item = TypeVar("Item", bound=_Item)
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_CLUSTER_HELP = "Cluster to ask. Default: the configured default cluster."


def _page_options(function: Decorated) -> Decorated:
    function = click.option("--cursor", help="Go on after an earlier page: its 'next' in --json.")(
        function
    )
    return click.option(
        "--limit", type=click.IntRange(min=1), help="At most this many. Default: all."
    )(function)


@click.command(
    cls=HpjCommand,
    help="List the configured clusters and whether they answer.",
    examples=("hpj clusters", "hpj clusters --json"),
)
@_page_options
def clusters(limit: int | None, cursor: str | None) -> None:
    """List clusters."""
    found = with_services(lambda hyperpod: hyperpod.clusters())
    titles = ("CLUSTER", "KIND", "DEFAULT", "STATE", "NODES", "RUNNING", "WAITING", "REASON")
    _show("clusters", titles, found, _cluster_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List the nodes of a cluster: their state, and what is free on them.",
    examples=("hpj nodes", "hpj nodes --cluster ml-slurm"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@_page_options
def nodes(cluster: str | None, limit: int | None, cursor: str | None) -> None:
    """List nodes."""
    found = with_services(lambda hyperpod: hyperpod.nodes(cluster))
    titles = (
        "NODE",
        "STATE",
        "CPUS",
        "MEMORY",
        "GPUS",
        "FREE",
        "TYPE",
        "INSTANCE",
        "JOBS",
        "REASON",
    )
    _show("nodes", titles, found, _node_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List the queues of a cluster that you may use.",
    examples=("hpj queues --cluster ml-slurm",),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@_page_options
def queues(cluster: str | None, limit: int | None, cursor: str | None) -> None:
    """List queues."""
    found = with_services(lambda hyperpod: hyperpod.queues(cluster))
    titles = ("QUEUE", "DEFAULT", "STATE", "NODES", "SLOTS", "FREE", "LIMIT", "RUNNING", "WAITING")
    _show("queues", titles, found, _queue_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List what runs and waits on a cluster, of all users.",
    examples=("hpj jobs", "hpj jobs --cluster ml-slurm --json"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@_page_options
def jobs(cluster: str | None, limit: int | None, cursor: str | None) -> None:
    """List jobs."""
    found = with_services(lambda hyperpod: hyperpod.jobs(cluster))
    titles = ("JOB", "NAME", "USER", "STATE", "QUEUE", "NODES", "SUBMITTED", "RUN", "REASON")
    _show("jobs", titles, found, _job_row, (limit, cursor))


def _show(
    name: str,
    titles: tuple[str, ...],
    items: Sequence[Item],
    row: Callable[[Item], Sequence[str]],
    page: tuple[int | None, str | None],
) -> None:
    shown, following = _page(items, *page)
    if invocation().as_json:
        print_list(name, [item.to_dict() for item in shown], following)
    else:
        print_table(Table(titles, [row(item) for item in shown], empty=f"no {name}"))


def _page(
    items: Sequence[Item], limit: int | None, cursor: str | None
) -> tuple[Sequence[Item], str | None]:
    if cursor is not None and not cursor.isdecimal():
        raise InvalidInputError(
            "--cursor: this is no cursor of such a list",
            code="invalid_cursor",
            hint="take it from 'next' of the page before",
            detail={"field": "cursor"},
        )
    begin = int(cursor or 0)
    end = len(items) if limit is None else begin + limit
    return items[begin:end], str(end) if end < len(items) else None


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _cluster_row(cluster: Cluster) -> Sequence[str]:
    return (
        cluster.name,
        cluster.orchestrator,
        _yes(cluster.default),
        cluster.state,
        _number(cluster.nodes),
        _number(cluster.running),
        _number(cluster.waiting),
        cluster.reason or "",
    )


def _node_row(node: Node) -> Sequence[str]:
    return (
        node.name,
        node.state,
        _number(node.cpus),
        format_size(node.memory) if node.memory else "-",
        str(node.accelerators),
        str(node.accelerators_free),
        node.accelerator_type or "-",
        node.instance_type or "-",
        str(len(node.jobs)),
        node.reason or "",
    )


def _queue_row(queue: Queue) -> Sequence[str]:
    return (
        queue.name,
        _yes(queue.default),
        queue.state,
        _number(queue.nodes),
        _number(queue.slots),
        _number(queue.slots_free),
        format_duration(queue.time_limit) if queue.time_limit else "-",
        str(queue.running),
        str(queue.waiting),
    )


def _job_row(job: Job) -> Sequence[str]:
    return (
        job.scheduler_id,
        job.name,
        job.user,
        job.state,
        job.queue or "-",
        str(len(job.nodes)),
        moment(job.submitted_at),
        job.run_id or "-",
        job.reason or "",
    )
