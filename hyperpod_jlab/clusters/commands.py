"""``hpj clusters``, ``nodes``, ``queues`` and ``jobs``."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import (
    Table,
    format_moment,
    page_options,
    print_fields,
    print_json,
    print_list,
    print_notes,
    print_table,
    show_list,
    without_empty,
)
from hyperpod_jlab.cli.parameters import cluster_argument, region_option
from hyperpod_jlab.cli.terminal import is_terminal, printable
from hyperpod_jlab.clusters.reach import TIMEOUT_S
from hyperpod_jlab.core.cluster import JOB_ENDED, Rows, notes_of
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.quantities import format_duration, format_ranges, format_size
from hyperpod_jlab.core.reach import READY

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Cluster, Job, Node, Queue, Resource
    from hyperpod_jlab.core.hyperpod import HyperpodCluster, InstanceGroup
    from hyperpod_jlab.run.services import Hyperpod

_SOFTWARE = {
    "UpToDate": "up to date",
    "UpdateAvailable": "update available",
    "SecurityUpdateRequired": "security update required",
    "EndOfLife": "end of life",
}


def reach_notes(clusters: Sequence[Cluster]) -> list[str]:
    """How to add the clusters to the configuration, or how to find out what that requires."""
    reach_states = [cluster.hyperpod.reach for cluster in clusters if cluster.hyperpod and cluster.hyperpod.reach]
    words_by_cluster = [reach.word for reach in reach_states]
    ready_count = words_by_cluster.count(READY)
    not_ready = [reach_word for reach_word in words_by_cluster if reach_word not in {READY, "configured"}]
    refused = Counter(reach.sentence for reach in reach_states if reach.word == "no-right")
    notes = [
        f"it is unknown whether you can submit to {count} of {len(reach_states)} HyperPod clusters from here: {sentence}"
        for sentence, count in refused.items()
    ]
    if ready_count:
        notes.append(f"you can add {ready_count} to the configuration: hpj config add NAME")
    if not_ready:
        notes.append("'hpj show NAME' shows what is missing to submit to a cluster from here")
    return notes


def _group(group: InstanceGroup) -> str:
    """For example ``workers 3/4``, with the state unless it is the normal one."""
    state = "" if group.state in {None, "in-service"} else f" {group.state}"
    return f"{group.name} {group.current}/{group.target}{state}"


def _mounted_paths(paths: tuple[str, ...] | None) -> str:
    """Where the cluster's file systems are mounted on this machine; a hyphen if its file systems are unknown."""
    return "-" if paths is None else ", ".join(paths) or "no"


def software(status: str | None) -> str:
    """Whether software updates are pending."""
    return "-" if status is None else _SOFTWARE.get(status, status)


# --------------------------------------------------------------------------------------------------
# The details of a cluster.

_GROUP_TITLES = ("GROUP", "STATE", "TYPE", "NODES", "ROLE", "CAPACITY", "LIFECYCLE SCRIPT")


async def find_cluster(services: Hyperpod, name: str) -> Cluster:
    """A cluster with all known details, including whether you can submit to it from this machine (see `Clusters.cluster`)."""
    return await services.clusters.cluster(name, wait=TIMEOUT_S)


def show_cluster(cluster: Cluster) -> None:
    """Print the details of a cluster."""
    if invocation().as_json:
        print_json(cluster)
        return
    print_fields(_facts(cluster))
    hyperpod = cluster.hyperpod
    if hyperpod is not None:
        _print_reach(hyperpod)
        print("\nsettings:")
        for setting in hyperpod.settings:
            meaning = f"  ({setting.meaning})" if setting.meaning else ""
            print(printable(f"  {setting.name}  {setting.value}{meaning}"))
        print()
        print_table(Table(_GROUP_TITLES, [_group_row(group) for group in hyperpod.groups or ()]))
    print_notes(cluster.notes)


def _facts(cluster: Cluster) -> list[tuple[str, str | None]]:
    rows = [
        ("cluster", cluster.name),
        ("orchestrator", cluster.orchestrator),
        ("configured", "yes" if cluster.configured else f"no; add it with: {cluster.configure}"),
        ("default", "yes" if cluster.default else None),
        ("state", cluster.state),
        ("reason", cluster.reason),
        ("nodes", None if cluster.nodes is None else str(cluster.nodes)),
        ("running", None if cluster.running is None else str(cluster.running)),
        ("waiting", None if cluster.waiting is None else str(cluster.waiting)),
    ]
    hyperpod = cluster.hyperpod
    if hyperpod is None:
        return rows
    mounted = hyperpod.mounted_here
    return [
        *rows,
        ("hyperpod", hyperpod.name),
        ("aws state", hyperpod.state),
        ("instances", f"{hyperpod.nodes}/{hyperpod.target}"),
        ("software", software(hyperpod.image_status) if hyperpod.image_status else None),
        ("created", format_moment(hyperpod.created_at)),
        ("arn", hyperpod.arn),
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


_MAX_NAME_LENGTH = 24
_CLUSTER_TITLES = (
    *("CLUSTER", "ORCHESTRATOR", "DEFAULT", "STATE", "NODES", "RUNNING", "WAITING", "CONFIGURED"),
    *("HYPERPOD", "AWS STATE", "INSTANCES", "GROUPS", "SOFTWARE", "CREATED"),
    *("MOUNTED HERE", "SUBMIT", "REASON"),
)
_NODE_TITLES = (
    *("NODE", "STATE", "GPUS FREE", "GPUS USED", "CPUS FREE", "LOAD", "MEMORY", "QUEUES", "JOBS"),
    *("INSTANCE", "GROUP", "TYPE", "AWS STATE", "HOST", "VERSION", "SOFTWARE", "LAUNCHED"),
    "REASON",
)
_QUEUE_TITLES = (
    *("QUEUE", "STATE", "NODES FREE", "GPUS FREE", "CPUS FREE", "SLOTS FREE"),
    *("TIME LIMIT", "DEFAULT LIMIT", "RUNNING", "WAITING", "ALLOWED", "REASON"),
)
_JOB_TITLES = ("JOB", "NAME", "USER", "STATE", "QUEUE", "NODES", "GPUS", "CPUS", "TIME LIMIT")
_JOB_NARROW = (
    *(("NAME", 16), ("CPUS", 0), ("TIME LIMIT", 0), ("NODES", 0), ("QUEUE", 12), ("JOB", 16)),
    *(("NAME", 8), ("QUEUE", 0), ("USER", 8), ("SUBMITTED", 0), ("ENDED", 0), ("GPUS", 0)),
    ("USER", 0),
)
"""What gives way to the run and the reason on a narrow terminal."""
_TIMEOUT = 15.0
"""Seconds to wait for a cluster: longer than a page waits, since a command does not poll."""


@click.command(
    cls=HpjCommand,
    help="List the clusters: those of the configuration, and the HyperPod clusters of your AWS account. 'hpj show CLUSTER' shows the details of one.",
    examples=("hpj clusters", "hpj clusters --json", "hpj clusters --region us-east-2"),
)
@region_option
@page_options
def clusters(region: str | None, limit: int | None, cursor: str | None) -> None:
    """List clusters."""

    async def read(services: Hyperpod) -> Rows[Cluster]:
        rows = await services.clusters.list_all(region, seconds=_TIMEOUT, wait=_TIMEOUT)
        notes = list(rows.notes)
        if region is not None and isinstance(rows.problem, InvalidInputError):
            raise rows.problem
        if rows.problem is not None and (region is not None or await _may_have_account(services)):
            hint = f" ({rows.problem.hint})" if rows.problem.hint else ""
            notes.append(f"AWS does not list all HyperPod clusters: {rows.problem.message}{hint}")
        return Rows(rows.clusters, notes)

    rows = with_services(read, asking=True)
    show_list("clusters", _CLUSTER_TITLES, rows, _cluster_row, (limit, cursor))
    if not invocation().as_json:
        print_notes(f"{cluster.name}: {note}" for cluster in rows for note in cluster.notes)
        print_notes(reach_notes(rows))


async def _may_have_account(services: Hyperpod) -> bool:
    """Whether there may be an AWS account; without one, a failure of AWS needs no note."""
    return await asyncio.to_thread(services.hyperpod_clusters().points_to_aws)


@click.command(
    cls=HpjCommand,
    help="List the nodes of a cluster, with their state, free resources and, on HyperPod, their instances.",
    examples=("hpj nodes", "hpj nodes ml-slurm", "hpj nodes ml-slurm --json"),
)
@cluster_argument
@region_option
@page_options
def nodes(cluster: str | None, region: str | None, limit: int | None, cursor: str | None) -> None:
    """List nodes."""

    async def read(services: Hyperpod) -> Rows[Node]:
        table = await services.clusters.nodes(cluster, region, wait=_TIMEOUT)
        if table.problem is not None:
            raise table.problem
        return Rows(table.nodes, table.notes)

    show_list("nodes", _NODE_TITLES, with_services(read, asking=True), _node_row, (limit, cursor))


@click.command(
    cls=HpjCommand,
    help="List the queues of a cluster, with their limits, free resources and permitted users.",
    examples=("hpj queues ml-slurm",),
)
@cluster_argument
@page_options
def queues(cluster: str | None, limit: int | None, cursor: str | None) -> None:
    """List queues."""
    rows = with_services(lambda hyperpod: hyperpod.queues(cluster), asking=True)
    show_list("queues", _QUEUE_TITLES, rows, _queue_row, (limit, cursor))


_JOBS_HELP = """\
List the running and waiting jobs of all users on a cluster.

With --ended, list the jobs that have ended, the latest first: those that Slurm's accounting shows you, 100 at a time; on other clusters those that were seen from here.
"""


@click.command(
    cls=HpjCommand, help=_JOBS_HELP, examples=("hpj jobs", "hpj jobs --ended --user alice", "hpj jobs ml-slurm --json")
)
@cluster_argument
@click.option("--ended", is_flag=True, help="List the jobs that have ended instead.")
@click.option("--user", metavar="NAME", help="List the jobs of this user only.")
@partial(page_options, default="all; with --ended 100, at most 1000")
def jobs(cluster: str | None, ended: bool, user: str | None, limit: int | None, cursor: str | None) -> None:
    """List jobs."""
    if ended:
        _show_ended(cluster, user, limit, cursor)
        return
    if user is not None:
        from hyperpod_jlab.run.history import check_user

        check_user(user)
    rows = with_services(lambda hyperpod: hyperpod.jobs(cluster), asking=True)
    active = [job for job in rows if job.state not in JOB_ENDED and user in {None, job.user}]
    selected = Rows(active, notes_of(rows))
    titles = (*_JOB_TITLES, "SUBMITTED", "RUN", "REASON")
    show_list("jobs", titles, selected, _job_row, (limit, cursor), _JOB_NARROW)


def _show_ended(cluster: str | None, user: str | None, limit: int | None, cursor: str | None) -> None:
    from hyperpod_jlab.run.history import PAGE_ROWS, read_ended_jobs

    page = with_services(
        lambda hyperpod: read_ended_jobs(hyperpod, cluster, limit or PAGE_ROWS, cursor, user), asking=True
    )
    if invocation().as_json:
        print_list("jobs", page.jobs, page.next, page.notes)
        return
    titles = (*_JOB_TITLES, "ENDED", "RUN", "REASON")
    rows = [_job_row(job) for job in page.jobs]
    print_table(without_empty(Table(titles, rows, empty="no jobs", narrow=_JOB_NARROW)))
    more = f"older jobs follow: --cursor {page.next}"
    print_notes((*page.notes, *([more] if page.next else [])))


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _cluster_row(cluster: Cluster) -> Sequence[str]:
    return (
        cluster.name,
        cluster.orchestrator,
        _yes_no(cluster.default),
        cluster.state,
        _number(cluster.nodes),
        _number(cluster.running),
        _number(cluster.waiting),
        _yes_no(cluster.configured),
        *(_hyperpod_cells(cluster.hyperpod) if cluster.hyperpod else ("-",) * 8),
        cluster.reason or "",
    )


def _hyperpod_cells(cluster: HyperpodCluster) -> Sequence[str]:
    is_described = cluster.groups is not None
    return (
        cluster.name,
        cluster.state,
        f"{cluster.nodes}/{cluster.target}" if is_described else "-",
        ", ".join(map(_group, cluster.groups or ())) or "-",
        software(cluster.image_status),
        format_moment(cluster.created_at),
        _mounted_paths(cluster.mounted_here),
        cluster.reach.word if cluster.reach else "-",
    )


def _free_of_total(free: int | None, total: int | None) -> str:
    """For example 5/8, or 8 if the number of free ones is unknown; empty if there are none."""
    if not total:
        return "-"
    return str(total) if free is None else f"{free}/{total}"


def _format_devices(resources: Sequence[Resource]) -> str:
    """Devices by type, for example ``h100 5/8, 1g.10gb 7/7``."""
    kinds = [resource for resource in resources if resource.accelerator]
    return ", ".join(f"{resource.label} {resource.free}/{resource.total}" for resource in kinds) or "-"


def _used_indices(resources: Sequence[Resource]) -> str:
    """Indices of the devices in use, for example ``0-1,4``; their number if they have no indices."""
    numbers = sorted({index for resource in resources for index in (*resource.used_at, *resource.shared_at)})
    if numbers:
        return format_ranges(numbers)
    return str(sum(resource.used for resource in resources if resource.accelerator) or "-")


def _join_names(names: Sequence[str], limit: int = 3) -> str:
    """The first names and the number of the others."""
    remainder = [f"+{len(names) - limit}"] if len(names) > limit else []
    return ",".join([*names[:limit], *remainder]) or "-"


def _allowed_users(queue: Queue) -> str:
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
    author = f" ({node.reason_by}, {format_moment(node.reason_since)})" if node.reason_by else ""
    reasons = (f"{node.reason}{author}" if node.reason else None, node.instance_reason)
    return (
        node.name,
        node.state,
        _format_devices(node.resources)
        if node.resources
        else _free_of_total(node.accelerators_free, node.accelerators),
        _used_indices(node.resources),
        _free_of_total(node.cpus_free, node.cpus),
        "-" if node.cpu_load is None else f"{node.cpu_load:.1f}",
        format_size(node.memory) if node.memory else "-",
        _join_names(node.queues),
        str(len(node.jobs)),
        node.instance or "-",
        node.instance_group or "-",
        node.instance_type or "-",
        node.instance_state or "-",
        node.host or "-",
        node.image_version or "-",
        software(node.image_status),
        format_moment(node.launched_at) if node.launched_at else "-",
        "; ".join(dict.fromkeys(item for item in reasons if item)),
    )


def _queue_row(queue: Queue) -> Sequence[str]:
    return (
        f"{queue.name}*" if queue.default else queue.name,
        queue.state,
        _free_of_total(queue.nodes_free, queue.nodes),
        _format_devices(queue.resources),
        _free_of_total(queue.cpus_free, queue.cpus),
        _free_of_total(queue.slots_free, queue.slots),
        format_duration(queue.time_limit) if queue.time_limit else "-",
        format_duration(queue.default_time) if queue.default_time else "-",
        str(queue.running),
        str(queue.waiting),
        _allowed_users(queue),
        queue.reason or "",
    )


def _job_row(job: Job) -> Sequence[str]:
    return (
        job.scheduler_id,
        _shorten(job.name),
        job.user,
        job.state,
        job.queue or "-",
        str(len(job.nodes) or job.node_count or "-"),
        str(job.accelerators or "-"),
        _number(job.cpus),
        format_duration(job.time_limit) if job.time_limit else "-",
        format_moment(job.ends_at if job.state in JOB_ENDED else job.submitted_at),
        job.run_id or "-",
        job.reason or "",
    )


def _shorten(name: str) -> str:
    """Cut a name to a length that keeps the rest of the line readable."""
    wide = is_terminal(sys.stdout) and len(name) > _MAX_NAME_LENGTH
    return f"{name[: _MAX_NAME_LENGTH - 1]}\u2026" if wide else name
