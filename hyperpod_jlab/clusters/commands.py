"""``hpj clusters``, ``nodes``, ``queues`` and ``jobs``: what the clusters are and do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import (
    Table,
    moment,
    page_options,
    print_fields,
    print_json,
    print_notes,
    print_table,
    show_list,
)
from hyperpod_jlab.cli.parameters import CLUSTER
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.clusters.reach import with_reach
from hyperpod_jlab.core.cluster import JOB_ENDED, Rows, notes_of
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import format_duration, format_ranges, format_size
from hyperpod_jlab.core.reach import READY

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Cluster, Job, Node, Queue, Resource
    from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, InstanceGroup, JoinedNode
    from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# HyperPod clusters and their instances as rows of a table.

CLUSTER_TITLES = (
    *("CLUSTER", "KIND", "STATE", "NODES", "GROUPS", "SOFTWARE", "CREATED"),
    *("CONFIGURED AS", "MOUNTED HERE", "SUBMIT", "REASON"),
)
JOINED_TITLES = (
    *("INSTANCE", "GROUP", "TYPE", "STATE", "HOST", "VERSION", "SOFTWARE", "LAUNCHED"),
    *("NODE", "SCHEDULER", "JOBS", "REASON"),
)

_SOFTWARE = {
    "UpToDate": "up to date",
    "UpdateAvailable": "update available",
    "SecurityUpdateRequired": "security update required",
    "EndOfLife": "end of life",
}


def cluster_row(cluster: HyperpodCluster) -> Sequence[str]:
    """The cells of a HyperPod cluster; what is not known is a hyphen."""
    known = cluster.groups is not None
    return (
        cluster.name,
        cluster.orchestrator or "unknown",
        cluster.state,
        f"{cluster.nodes}/{cluster.target}" if known else "-",
        ", ".join(map(_group, cluster.groups or ())) or "-",
        software(cluster.image_status),
        moment(cluster.created_at),
        ", ".join(cluster.configured_as) or "-",
        _mounted(cluster.mounted_here),
        cluster.reach.word if cluster.reach else "-",
        cluster.reason or "",
    )


def reach_notes(clusters: Sequence[HyperpodCluster]) -> list[str]:
    """A hint for those to which one could submit, and how to see what is missing for the others."""
    words = [one.reach.word for one in clusters if one.reach]
    ready = words.count(READY)
    others = [word for word in words if word not in {READY, "configured"}]
    refused = Counter(
        one.reach.sentence for one in clusters if one.reach and one.reach.word == "no-right"
    )
    notes = [
        f"whether one can submit to {count} of {len(clusters)} clusters from here is not known: {words}"
        for words, count in refused.items()
    ]
    if ready:
        notes.append(f"{ready} can be added to the configuration: hpj config add NAME")
    if others:
        notes.append(
            "what is missing to submit to a cluster from here: hpj clusters --hyperpod NAME"
        )
    return notes


def joined_row(row: JoinedNode) -> Sequence[str]:
    """The cells of a node as AWS and the scheduler know it; what is not known is a hyphen."""
    node = row.node
    reasons = (
        row.instance.reason if row.instance else None,
        node.reason if node else None,
        row.remark,
    )
    return (
        *(_instance_cells(row.instance) if row.instance else ("-",) * 8),
        node.name if node else "-",
        node.state if node else "-",
        str(len(node.jobs)) if node else "-",
        "; ".join(reason.rstrip(".") for reason in reasons if reason),
    )


def _instance_cells(instance: Instance) -> Sequence[str]:
    return (
        instance.name,
        instance.instance_group,
        instance.instance_type,
        instance.state,
        instance.host or "-",
        instance.image_version or "-",
        software(instance.image_status),
        moment(instance.launched_at),
    )


def _group(group: InstanceGroup) -> str:
    """Such as ``workers 3/4``, with the state where it is not the usual one."""
    state = "" if group.state in {None, "in-service"} else f" {group.state}"
    return f"{group.name} {group.current}/{group.target}{state}"


def _mounted(paths: tuple[str, ...] | None) -> str:
    """Where the cluster's file systems are here; a hyphen where it is not known which those are."""
    return "-" if paths is None else ", ".join(paths) or "no"


def software(status: str | None) -> str:
    """Whether updates of the software are due."""
    return "-" if status is None else _SOFTWARE.get(status, status)


# --------------------------------------------------------------------------------------------------
# All about one HyperPod cluster, for a terminal.

_GROUP_TITLES = ("GROUP", "STATE", "TYPE", "NODES", "ROLE", "CAPACITY", "LIFE CYCLE SCRIPT")


def show_cluster(name: str, region: str | None) -> None:
    """Print all about a HyperPod cluster: what it is, whether one can submit to it from here, its settings and groups.

    Args:
        name: Its name or ARN.
        region: Its region; default: see `aws.session.Aws`.
    """

    async def read(services: Hyperpod) -> HyperpodCluster:
        found = await services.hyperpod_clusters(region).cluster(name)
        reaches = services.reaches(region)
        try:
            return (await reaches.looked([found]))[0]
        finally:
            await reaches.close()

    cluster = with_services(read, asking=True)
    if invocation().as_json:
        print_json(cluster)
        return
    print_fields(_facts(cluster))
    _print_reach(cluster)
    print("\nsettings:")
    for setting in cluster.settings:
        meaning = f"  ({setting.meaning})" if setting.meaning else ""
        print(printable(f"  {setting.name}  {setting.value}{meaning}"))
    print()
    print_table(Table(_GROUP_TITLES, [_group_row(group) for group in cluster.groups or ()]))


def _facts(cluster: HyperpodCluster) -> list[tuple[str, str | None]]:
    mounted = cluster.mounted_here
    return [
        ("cluster", cluster.name),
        ("kind", cluster.orchestrator or "unknown"),
        ("state", cluster.state),
        ("reason", cluster.reason),
        ("nodes", f"{cluster.nodes}/{cluster.target}"),
        ("software", software(cluster.image_status) if cluster.image_status else None),
        ("created", moment(cluster.created_at)),
        ("arn", cluster.arn),
        ("configured as", ", ".join(cluster.configured_as)),
        ("mounted here", None if mounted is None else ", ".join(mounted) or "no"),
    ]


def _print_reach(cluster: HyperpodCluster) -> None:
    reach = cluster.reach
    if reach is None:
        return
    print()
    print(printable(f"submit from here: {reach.word}: {reach.sentence}"))
    if reach.next_step:
        print(printable(f"  next: {reach.next_step}"))
    if reach.config:
        print("  for the configuration file:")
        for line in reach.config.splitlines():
            print(printable(f"    {line}"))


def _group_row(group: InstanceGroup) -> Sequence[str]:
    return (
        group.name,
        group.state or "-",
        group.instance_type or "-",
        f"{group.current}/{group.target}",
        group.slurm_role or "-",
        group.capacity or "-",
        group.script or "-",
    )


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
_TIMEOUT = 15.0
"""Seconds for which a cluster is waited for. That is longer than a page waits, for here nobody asks again by himself."""

_CLUSTER_HELP = "Cluster name. Default: the configured default cluster."

_REGION_HELP = "With --hyperpod: AWS region. Default: $AWS_REGION, the region of the AWS configuration, or the region of Studio."


@click.command(
    cls=HpjCommand,
    help="List the configured clusters and whether they respond. With --hyperpod, list the HyperPod clusters of your AWS account, or show the details of one.",
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
    help="List the HyperPod clusters of your AWS account, configured or not. With a name or ARN, show the details of that cluster.",
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
    found = with_services(lambda hyperpod: hyperpod.clusters(_TIMEOUT), asking=True)
    titles = ("CLUSTER", "KIND", "DEFAULT", "STATE", "NODES", "RUNNING", "WAITING", "REASON")
    show_list("clusters", titles, found, _cluster_row, (limit, cursor))
    if not invocation().as_json:
        print_notes(f"{one.name}: {note}" for one in found for note in one.notes)


@click.command(
    cls=HpjCommand,
    help="List the nodes of a cluster, with their state and free resources.",
    examples=("hpj nodes", "hpj nodes --cluster ml-slurm", "hpj nodes --hyperpod ml-cluster"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@click.option(
    "--hyperpod",
    metavar="NAME",
    help="List the nodes of this HyperPod cluster as AWS reports them. If the cluster is configured, the data of its scheduler is added.",
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
    help="List the queues of a cluster, with their limits, free resources and permitted users.",
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
    help="List the running and waiting jobs of all users on a cluster.",
    examples=("hpj jobs", "hpj jobs --ended", "hpj jobs --cluster ml-slurm --json"),
)
@click.option("--cluster", type=CLUSTER, help=_CLUSTER_HELP)
@click.option(
    "--ended", is_flag=True, help="List ended jobs instead, as long as the cluster remembers them."
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
