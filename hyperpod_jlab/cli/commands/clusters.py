"""``hpj clusters``, ``nodes``, ``queues`` and ``jobs``: what the clusters are and do."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.hyperpod_detail import show_cluster
from hyperpod_jlab.cli.hyperpod_tables import (
    CLUSTER_TITLES,
    JOINED_TITLES,
    cluster_row,
    joined_row,
    reach_notes,
)
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.listing import page_options, print_notes, show_list
from hyperpod_jlab.cli.output import moment
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.cli.terminal import is_terminal
from hyperpod_jlab.model.cluster import (
    JOB_ENDED,
    Cluster,
    Job,
    Node,
    Queue,
    Resource,
    Rows,
    notes_of,
)
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.quantities import format_duration, format_size
from hyperpod_jlab.model.ranges import format_ranges
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.reach import with_reach

_LONGEST_NAME = 24
_NODE_TITLES = (
    *("NODE", "STATE", "GPUS FREE", "GPUS USED", "CPUS FREE", "LOAD"),
    *("MEMORY", "QUEUES", "JOBS", "REASON"),
)
_QUEUE_TITLES = (
    *("QUEUE", "STATE", "NODES FREE", "GPUS FREE", "CPUS FREE", "SLOTS FREE"),
    *("LIMIT", "USUAL", "RUNNING", "WAITING", "WHO", "REASON"),
)
_JOB_TITLES = ("JOB", "NAME", "USER", "STATE", "QUEUE", "NODES", "GPUS", "CPUS", "LIMIT")
_PATIENCE = 15.0
"""Seconds for which a cluster is waited for. That is longer than a page waits, for here nobody asks again by himself."""

_CLUSTER_HELP = "Cluster to ask. Default: the configured default cluster."

_REGION_HELP = "AWS region, with --hyperpod. Default: $AWS_REGION, or that of the AWS configuration or of Studio."


@click.command(
    cls=HpjCommand,
    help="List the configured clusters and whether they answer; or all HyperPod clusters of your AWS account, or all about one.",
    examples=(
        *("hpj clusters", "hpj clusters --json", "hpj clusters --hyperpod"),
        "hpj clusters --hyperpod ml-cluster",
    ),
)
@click.option(
    "--hyperpod",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="The HyperPod clusters of the AWS account, configured or not; with a name or ARN all about this one.",
)
@click.option("--region", metavar="REGION", help=_REGION_HELP)
@page_options
def clusters(
    hyperpod: str | None, region: str | None, limit: int | None, cursor: str | None
) -> None:
    """List clusters."""
    if hyperpod:
        show_cluster(hyperpod, region)
        return
    if hyperpod is not None:
        told = with_services(lambda services: _hyperpod_clusters(services, region), asking=True)
        show_list("clusters", CLUSTER_TITLES, told, cluster_row, (limit, cursor))
        if not invocation().as_json:
            print_notes(reach_notes(told))
        return
    _refuse_region(region)
    found = with_services(lambda hyperpod: hyperpod.clusters(_PATIENCE), asking=True)
    titles = ("CLUSTER", "KIND", "DEFAULT", "STATE", "NODES", "RUNNING", "WAITING", "REASON")
    show_list("clusters", titles, found, _cluster_row, (limit, cursor))
    if not invocation().as_json:
        print_notes(f"{one.name}: {note}" for one in found for note in one.notes)


@click.command(
    cls=HpjCommand,
    help="List the nodes of a cluster: their state, and what is free on them.",
    examples=("hpj nodes", "hpj nodes --cluster ml-slurm", "hpj nodes --hyperpod ml-cluster"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@click.option(
    "--hyperpod",
    metavar="NAME",
    help="The nodes of this HyperPod cluster as AWS knows them, beside what its scheduler knows where it is configured.",
)
@click.option("--region", metavar="REGION", help=_REGION_HELP)
@page_options
def nodes(
    cluster: str | None,
    hyperpod: str | None,
    region: str | None,
    limit: int | None,
    cursor: str | None,
) -> None:
    """List nodes."""
    if hyperpod is not None:
        _refuse_both(cluster)
        told = with_services(
            lambda services: services.hyperpod_clusters(region).nodes(hyperpod, services.engines),
            asking=True,
        )
        show_list("nodes", JOINED_TITLES, told, joined_row, (limit, cursor))
        return
    _refuse_region(region)
    found = with_services(lambda hyperpod: hyperpod.nodes(cluster), asking=True)
    show_list("nodes", _NODE_TITLES, found, _node_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List the queues of a cluster: their limits, what is free in them, and who may use them.",
    examples=("hpj queues --cluster ml-slurm",),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@page_options
def queues(cluster: str | None, limit: int | None, cursor: str | None) -> None:
    """List queues."""
    found = with_services(lambda hyperpod: hyperpod.queues(cluster), asking=True)
    show_list("queues", _QUEUE_TITLES, found, _queue_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List what runs and waits on a cluster, of all users.",
    examples=("hpj jobs", "hpj jobs --ended", "hpj jobs --cluster ml-slurm --json"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@click.option(
    "--ended", is_flag=True, help="What ended, as long as the cluster remembers it, instead."
)
@page_options
def jobs(cluster: str | None, ended: bool, limit: int | None, cursor: str | None) -> None:
    """List jobs."""
    found = with_services(lambda hyperpod: hyperpod.jobs(cluster), asking=True)
    shown = Rows([job for job in found if (job.state in JOB_ENDED) == ended], notes_of(found))
    if ended:
        shown.sort(key=lambda job: job.ends_at or 0.0, reverse=True)
    titles = (*_JOB_TITLES, "ENDED" if ended else "SUBMITTED", "RUN", "REASON")
    show_list("jobs", titles, shown, _job_row, (limit, cursor))


async def _hyperpod_clusters(services: Hyperpod, region: str | None) -> Rows[HyperpodCluster]:
    found = await services.hyperpod_clusters(region).clusters()
    return await with_reach(found, services.reaches(region))


def _refuse_region(region: str | None) -> None:
    if region is not None:
        raise InvalidInputError(
            "--region is for --hyperpod only: a configured cluster is where it is",
            code="usage",
            detail={"field": "region"},
        )


def _refuse_both(cluster: str | None) -> None:
    if cluster is not None:
        raise InvalidInputError(
            "--cluster names a configured cluster, --hyperpod one of AWS: give one of them",
            code="usage",
            detail={"field": "cluster"},
        )


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


def _free(free: int | None, total: int | None) -> str:
    """Such as 5/8, or 8 where it is not known how many are free; nothing where there is nothing."""
    if not total:
        return "-"
    return str(total) if free is None else f"{free}/{total}"


def _devices(found: Sequence[Resource]) -> str:
    """What computes, by type: ``h100 5/8, 1g.10gb 7/7``."""
    kinds = [one for one in found if one.accelerator]
    return ", ".join(f"{one.label} {one.free}/{one.total}" for one in kinds) or "-"


def _used(found: Sequence[Resource]) -> str:
    """Numbers of the devices that jobs have, such as ``0-1,4``; how many where they have none."""
    numbers = sorted({at for one in found for at in (*one.used_at, *one.shared_at)})
    if numbers:
        return format_ranges(numbers)
    return str(sum(one.used for one in found if one.accelerator) or "-")


def _many(names: Sequence[str], most: int = 3) -> str:
    """The names, or the first of many and how many more there are."""
    more = [f"+{len(names) - most}"] if len(names) > most else []
    return ",".join([*names[:most], *more]) or "-"


def _who(queue: Queue) -> str:
    """Who may use a queue."""
    parts = [
        f"{word} {','.join(names)}"
        for word, names in (
            ("groups", queue.groups),
            ("accounts", queue.accounts),
            ("QoS", queue.qos),
            ("not", queue.denied),
        )
        if names
    ]
    text = "; ".join(parts) or "everybody"
    return f"not you ({text})" if queue.usable is False else text


def _node_row(node: Node) -> Sequence[str]:
    by = f" ({node.reason_by}, {moment(node.reason_since)})" if node.reason_by else ""
    return (
        node.name,
        node.state,
        _devices(node.resources)
        if node.resources
        else _free(node.accelerators_free, node.accelerators),
        _used(node.resources),
        _free(node.cpus_free, node.cpus),
        "-" if node.cpu_load is None else f"{node.cpu_load:.1f}",
        format_size(node.memory) if node.memory else "-",
        _many(node.queues),
        str(len(node.jobs)),
        f"{node.reason}{by}" if node.reason else "",
    )


def _queue_row(queue: Queue) -> Sequence[str]:
    return (
        f"{queue.name}*" if queue.default else queue.name,
        queue.state,
        _free(queue.nodes_free, queue.nodes),
        _devices(queue.resources),
        _free(queue.cpus_free, queue.cpus),
        _free(queue.slots_free, queue.slots),
        format_duration(queue.time_limit) if queue.time_limit else "-",
        format_duration(queue.default_time) if queue.default_time else "-",
        str(queue.running),
        str(queue.waiting),
        _who(queue),
        queue.reason or "",
    )


def _job_row(job: Job) -> Sequence[str]:
    return (
        job.scheduler_id,
        _short(job.name),
        job.user,
        job.state,
        job.queue or "-",
        str(len(job.nodes) or job.node_count or "-"),
        str(job.accelerators or "-"),
        _number(job.cpus),
        format_duration(job.time_limit) if job.time_limit else "-",
        moment(job.ends_at if job.state in JOB_ENDED else job.submitted_at),
        job.run_id or "-",
        job.reason or "",
    )


def _short(name: str) -> str:
    """A name, cut where a person would no longer read the rest of the line for it."""
    wide = is_terminal(sys.stdout) and len(name) > _LONGEST_NAME
    return f"{name[: _LONGEST_NAME - 1]}\u2026" if wide else name
