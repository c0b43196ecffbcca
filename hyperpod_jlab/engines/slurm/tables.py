"""The cluster's tables: nodes, queues and all users' jobs, from few shared queries."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import pwd
import re
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.cluster import UNUSABLE, Cluster, Job, Node, Queue, Resource, Rows, gpu_totals
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob, parse_limit, parse_time
from hyperpod_jlab.engines.slurm.queue import PollInterval, Snapshot, controller_query, local_user_name
from hyperpod_jlab.engines.slurm.reasons import RUNNING, cached_message, find_code
from hyperpod_jlab.engines.slurm.rows import (
    ACCELERATORS,
    Fields,
    Gres,
    expand,
    long_format,
    new_delimiter,
    parse_gres,
    parse_long,
    resources,
)

if TYPE_CHECKING:
    from hyperpod_jlab.engines.slurm.job_queue import JobQueue

# --------------------------------------------------------------------------------------------------
# The nodes of a cluster, from one listing.
#
# The source is `sinfo -N` and not `scontrol show node`: a node's reason and comment are free text,
# written by an administrator or by a health check that repeats a program's output, and scontrol's
# lines do not mark where such a text ends. sinfo has the same fields, including device indices. It
# omits nodes outside of every queue; no job can use those.

MIB = 1024**2

FIELDS = Fields(
    fixed=(
        ("name", "NodeList"),
        ("state", "StateComplete"),
        ("cpus", "CPUsState"),
        ("load", "CPUsLoad"),
        ("memory", "Memory"),
        ("memory_used", "AllocMem"),
        ("features", "Features"),
        ("gres", "Gres"),
        ("gres_used", "GresUsed"),
        ("by", "UserLong"),
        ("since", "Timestamp"),
        ("partition", "PartitionName"),
    ),
    free=(("comment", "Comment"), ("reason", "Reason")),
)
"""The fields requested from sinfo for each node in each partition (man sinfo, ``-O``)."""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node. Memory is in bytes, `since` in Unix seconds.

    Attributes:
        base: Slurm's state without flags, in lower case: idle, mixed, allocated, down, ...
        flags: The flags, in lower case: drain, fail, powered_down, ...
        memory_free: Memory that no job has requested.
    """

    name: str
    base: str
    flags: frozenset[str]
    cpus: int
    cpus_free: int
    load: float | None
    memory: int
    memory_free: int
    features: tuple[str, ...]
    gres: tuple[Gres, ...]
    gres_used: tuple[Gres, ...]
    set_by: str | None
    since: float | None
    partitions: tuple[str, ...]
    comment: str | None
    reason: str | None

    @property
    def state(self) -> str:
        return find_state(self.base, self.flags)

    @property
    def is_usable(self) -> bool:
        return self.state not in UNUSABLE


def nodes_command() -> tuple[list[str], str]:
    """The command that lists the nodes, and its row delimiter."""
    delimiter = new_delimiter()
    return ["sinfo", "--Node", "--noheader", "--all", f"--Format={long_format(delimiter, FIELDS)}"], delimiter


@without_collections()
def parse_nodes(text: str, delimiter: str) -> dict[str, SlurmNode]:
    """Parse the output of `nodes_command`, by name: each node once, with all its partitions."""
    rows: dict[str, dict[str, str]] = {}
    partitions: dict[str, list[str]] = {}
    for row in parse_long(text, delimiter, FIELDS):
        name = row["name"]
        rows.setdefault(name, row)
        members = partitions.setdefault(name, [])
        if row["partition"] not in members:
            members.append(row["partition"])
    return {name: _node(row, tuple(sorted(partitions[name]))) for name, row in rows.items()}


def _node(row: Mapping[str, str], partitions: tuple[str, ...]) -> SlurmNode:
    base, *flags = row["state"].lower().split("+")
    _, idle, _, total = (_parse_int(part) for part in (row["cpus"] + "///").split("/")[:4])
    memory = _parse_int(row["memory"]) * MIB
    return SlurmNode(
        name=row["name"],
        base=base,
        flags=frozenset(flags),
        cpus=total,
        cpus_free=idle,
        load=_load(row["load"]),
        memory=memory,
        memory_free=max(0, memory - _parse_int(row["memory_used"]) * MIB),
        features=_split_list(row["features"]),
        gres=parse_gres(row["gres"]),
        gres_used=parse_gres(row["gres_used"]),
        set_by=None if row["by"] in _NO_USER else re.sub(r"\(\d+\)$", "", row["by"]),
        since=parse_time(row["since"]),
        partitions=partitions,
        comment=None if row["comment"] in _NO_VALUE else row["comment"],
        reason=None if row["reason"] in _NO_VALUE else row["reason"],
    )


_INSTANCE = re.compile(r"(ml\.)?[a-z][a-z0-9-]*\.(\d*x?large|small|medium|micro|nano|metal)(-\w+)?")
"""EC2's and SageMaker's instance type names, which AWS's tools set as a node feature."""

_NO_USER = frozenset({"Unknown", "N/A", "(null)", ""})
_NO_VALUE = frozenset({"none", "(null)", "N/A", ""})


def find_state(base: str, flags: frozenset[str]) -> str:
    """Slurm's state and flags as one of `hyperpod_jlab.core.cluster.NODE_STATES` (man sinfo, NODE STATE CODES)."""
    if flags >= {"reboot_requested", "drain"}:
        return "rebooting"
    for flag, label in _STATE_FLAGS:
        if flag in flags:
            return label
    if base in _BASE:
        return _BASE[base]
    busy = base in {"allocated", "mixed"} or "completing" in flags
    for flag, label, busy_label in _STATE_SUFFIXES:
        if flag in flags:
            return busy_label if busy else label
    return "up"


_STATE_FLAGS = (
    ("reboot_issued", "rebooting"),
    ("powering_up", "starting"),
    ("power_up", "starting"),
    ("powering_down", "powering-off"),
    ("power_down", "powering-off"),
    ("powered_down", "powered-off"),
    ("invalid_reg", "misconfigured"),
)
"""Flags that are more specific than the state, and our names."""

_BASE = {"down": "down", "error": "down", "future": "unknown", "inval": "misconfigured", "unknown": "unknown"}
"""States in which a node does nothing."""

_STATE_SUFFIXES = (
    ("fail", "failed", "failing"),
    ("drain", "drained", "draining"),
    ("not_responding", "not-answering", "not-answering"),
    ("maintenance", "maintenance", "maintenance"),
    ("reserved", "reserved", "reserved"),
)
"""Flags of reachable nodes, our names, and the names for nodes with running jobs."""


@without_collections()
def node_rows(nodes: Iterable[SlurmNode], jobs: Sequence[SlurmJob]) -> list[Node]:
    """The rows of the node table, each with the jobs that run on the node."""
    jobs_by_node = group_by_node(jobs)
    return [_row(node, tuple(jobs_by_node.get(node.name, ()))) for node in nodes]


def _row(node: SlurmNode, jobs: tuple[str, ...]) -> Node:
    state, usable = node.state, node.is_usable
    devices = resources(node.gres, node.gres_used, is_usable=usable)
    accelerators = [device for device in devices if device.accelerator]
    types = {gres.label for gres in accelerators}
    row = Node(
        name=node.name,
        state=state,
        cpus=node.cpus,
        cpus_free=node.cpus_free if usable else 0,
        cpu_load=node.load,
        memory=node.memory,
        memory_free=node.memory_free if usable else 0,
        accelerators=sum(gres.total for gres in accelerators),
        accelerators_free=sum(gres.free for gres in accelerators),
        accelerator_type=", ".join(sorted(types)) or None,
        resources=tuple(devices),
        features=node.features,
        instance_type=next((label for label in node.features if _INSTANCE.fullmatch(label)), None),
        comment=node.comment,
        queues=node.partitions,
        jobs=jobs,
    )
    if state in {"up", "reserved", "powered-off"}:
        # From 24.05 on, a recovered node keeps the reason for its failure.
        is_reboot_pending = "reboot_requested" in node.flags
        return replace(row, reason="it restarts when no job is running on it") if is_reboot_pending else row
    return replace(row, reason=node.reason, reason_since=node.since, reason_by=node.set_by)


def group_by_node(jobs: Iterable[SlurmJob]) -> dict[str, list[str]]:
    """Ids of the jobs that have nodes now, by node."""
    jobs_by_node: dict[str, list[str]] = {}
    for job in jobs:
        if job.node_list and not job.is_ended and (job.state not in WAITING or _occupies_nodes(job)):
            for name in expand(job.node_list):
                jobs_by_node.setdefault(name, []).append(job.scheduler_id)
    return jobs_by_node


def _occupies_nodes(job: SlurmJob) -> bool:
    """A suspended job keeps its nodes' memory and devices."""
    return job.state == "SUSPENDED"


def _parse_int(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _load(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _split_list(text: str) -> tuple[str, ...]:
    return () if text in {"(null)", ""} else tuple(text.split(","))


# --------------------------------------------------------------------------------------------------
# Slurm's partitions as queues: their rules from `scontrol show partition`, free resources from
# their nodes, waiting jobs from the queue.
#
# Only an administrator writes these lines, and no value contains a blank, so they can be split at
# blanks.

COMMAND = ("scontrol", "--oneliner", "--all", "show", "partition")

STATES = {"UP": "up", "DOWN": "down", "DRAIN": "draining", "INACTIVE": "inactive"}
"""Slurm's partition states, and ours (man slurm.conf, State of partitions)."""

_FIELD = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
_ALL = frozenset({"ALL", "(null)", "N/A", "NONE", ""})


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A partition's rules. Times are in seconds; an empty list of names allows all.

    Attributes:
        root_only: Whether only root may submit to it.
    """

    name: str
    state: str
    default: bool
    groups: tuple[str, ...]
    accounts: tuple[str, ...]
    qos: tuple[str, ...]
    denied: tuple[str, ...]
    root_only: bool
    min_nodes: int | None
    max_nodes: int | None
    max_time: int | None
    default_time: int | None
    priority: int | None
    nodes: int


def parse_partitions(text: str) -> list[SlurmPartition]:
    """Parse the output of `COMMAND`, in the cluster's order."""
    partitions = []
    for line in text.splitlines():
        values = dict(_FIELD.findall(line))
        if "PartitionName" in values:
            partitions.append(_partition(values))
    return partitions


def _partition(values: Mapping[str, str]) -> SlurmPartition:
    state = values.get("State", "")
    return SlurmPartition(
        name=values["PartitionName"],
        state=STATES.get(state, state.lower() or "unknown"),
        default=values.get("Default") == "YES",
        groups=_names(values.get("AllowGroups", "")),
        accounts=_names(values.get("AllowAccounts", "")),
        qos=_names(values.get("AllowQos", "")),
        denied=(*_names(values.get("DenyAccounts", "")), *_names(values.get("DenyQos", ""))),
        root_only=values.get("RootOnly") == "YES",
        min_nodes=_parse_number(values.get("MinNodes", "")),
        max_nodes=_parse_number(values.get("MaxNodes", "")),
        max_time=_seconds(values.get("MaxTime", "")),
        default_time=_seconds(values.get("DefaultTime", "")),
        priority=_parse_number(values.get("PriorityTier", "")),
        nodes=_parse_number(values.get("TotalNodes", "")) or 0,
    )


def queue_rows(
    partitions: Sequence[SlurmPartition],
    nodes: Sequence[Node],
    jobs: Iterable[SlurmJob],
    groups: frozenset[str] | None = None,
) -> list[Queue]:
    """The rows of the queue table.

    Args:
        partitions: Their rules.
        nodes: All nodes.
        jobs: All jobs.
        groups: This user's groups on the cluster; None when they are unknown on this machine.
    """
    members: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.queues:
            members.setdefault(name, []).append(node)
    running, waiting = _counts(jobs)
    return [
        _queues_row(
            partition,
            members.get(partition.name, []),
            (running.get(partition.name, 0), waiting.get(partition.name, 0)),
            _is_usable(partition, groups),
        )
        for partition in partitions
    ]


def _queues_row(
    partition: SlurmPartition, nodes: Sequence[Node], counts: tuple[int, int], usable: bool | None
) -> Queue:
    devices = _sum_resources(nodes)
    accelerators = [device for device in devices if device.accelerator]
    return Queue(
        name=partition.name,
        state=partition.state,
        default=partition.default,
        usable=usable,
        groups=partition.groups if not partition.root_only else ("root",),
        accounts=partition.accounts,
        qos=partition.qos,
        denied=partition.denied,
        nodes=partition.nodes,
        nodes_free=sum(node.cpus_free == node.cpus and bool(node.cpus) for node in nodes),
        min_nodes=partition.min_nodes or None,
        max_nodes=partition.max_nodes,
        cpus=sum(node.cpus or 0 for node in nodes),
        cpus_free=sum(node.cpus_free or 0 for node in nodes),
        accelerators=sum(device.total for device in accelerators),
        accelerators_free=sum(device.free for device in accelerators),
        resources=tuple(devices),
        time_limit=partition.max_time,
        default_time=partition.default_time,
        priority=partition.priority,
        running=counts[0],
        waiting=counts[1],
    )


def _sum_resources(nodes: Iterable[Node]) -> list[Resource]:
    """The devices of several nodes together, without indices, which are per node."""
    sums: dict[tuple[str, str | None, bool], list[int]] = {}
    for node in nodes:
        for resource in node.resources:
            totals = sums.setdefault((resource.name, resource.type, resource.accelerator), [0, 0, 0])
            for index, count in enumerate((resource.total, resource.used, resource.free)):
                totals[index] += count
    return [
        Resource(name, kind, total, used, free, accelerator=accelerator)
        for (name, kind, accelerator), (total, used, free) in sums.items()
    ]


def _counts(jobs: Iterable[SlurmJob]) -> tuple[dict[str, int], dict[str, int]]:
    """Running and waiting jobs in each partition. A job that accepts several partitions counts as waiting in each."""
    running: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for job in jobs:
        if not job.is_ended:
            counts = waiting if job.is_waiting else running
            for name in job.partition.split(","):
                counts[name] = counts.get(name, 0) + 1
    return running, waiting


def _is_usable(partition: SlurmPartition, groups: frozenset[str] | None) -> bool | None:
    """Whether a user in these groups may use a partition; None if that depends on what is unknown: accounts, QoS."""
    if partition.root_only:
        return None if groups is None else "root" in groups
    if partition.groups:
        if groups is None:
            return None
        if groups.isdisjoint(partition.groups):
            return False
    return None if partition.accounts or partition.qos or partition.denied else True


def _names(text: str) -> tuple[str, ...]:
    return () if text in _ALL else tuple(text.split(","))


def _parse_number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _seconds(text: str) -> int | None:
    limit = parse_limit(text)
    return None if limit is None else int(limit)


# --------------------------------------------------------------------------------------------------
# The job table of all users.

END_STATES = {"COMPLETED": "succeeded", "CANCELLED": "cancelled", "REVOKED": "cancelled"}
"""Slurm's states of jobs that ended, and ours; all others mean that the job failed."""

FAILED = {
    "TIMEOUT": "it reached its time limit",
    "DEADLINE": "it reached its deadline",
    "OUT_OF_MEMORY": "it exceeded its requested memory",
    "NODE_FAIL": "a node failed",
    "BOOT_FAIL": "a node did not boot",
    "PREEMPTED": "a job with a higher priority preempted it",
}
"""Why a job failed, by Slurm's state."""


class JobRows:
    """Builds job rows, and reuses those of unchanged jobs."""

    def __init__(self) -> None:
        self._cached_rows: dict[int, tuple[SlurmJob, Job]] = {}

    @without_collections()
    def convert(self, jobs: Sequence[SlurmJob], own_names: frozenset[str]) -> list[Job]:
        """The rows of the job table (see `job_rows`)."""
        cached_rows: dict[int, tuple[SlurmJob, Job]] = {}
        for job in jobs:
            is_own = job.user in own_names
            cached = self._cached_rows.get(id(job))
            is_unchanged = cached is not None and cached[0] is job and cached[1].mine == is_own
            cached_rows[id(job)] = cached if cached is not None and is_unchanged else (job, _job_row(job, is_own))
        self._cached_rows = cached_rows
        return [row for _, row in cached_rows.values()]


def job_rows(jobs: Sequence[SlurmJob], own_names: frozenset[str]) -> list[Job]:
    """The rows of the job table.

    Args:
        jobs: The jobs.
        own_names: This user's names on the cluster. A run id counts only in this user's own jobs,
            because any user may write any comment.
    """
    return JobRows().convert(jobs, own_names)


def job_state(job: SlurmJob) -> str:
    """One of `hyperpod_jlab.core.cluster.JOB_STATES`."""
    if job.state == "RUNNING":
        return "running"
    if job.is_ended:
        return END_STATES.get(job.state, "failed")
    if job.state == "SUSPENDED":
        return "suspended"
    if job.is_held:
        return "held"
    return "waiting" if job.is_waiting else "running"


def _job_row(job: SlurmJob, is_own: bool) -> Job:
    state = job_state(job)
    started_at = job.started_at if job.is_ended or not job.is_waiting else None
    if job.is_ended and not job.node_list:
        started_at = None  # it never started; squeue shows its end time
    return Job(
        scheduler_id=job.scheduler_id,
        name=job.name,
        user=job.user,
        state=state,
        mine=is_own,
        queue=job.partition or None,
        reason=_reason(job, state),
        reason_code=find_code(job),
        nodes=expand(job.node_list) if job.node_list else (),
        node_count=job.node_count or None,
        cpus=job.cpus or None,
        accelerators=accelerators_of(job.gres),
        resources=resources_of(job.gres),
        array=job.array_task,
        account=value_or_none(job.account),
        qos=value_or_none(job.qos),
        priority=job.priority,
        time_limit=int(job.limit) if job.limit is not None else None,
        run_id=job.run_id if is_own else None,
        submitted_at=job.submitted,
        started_at=started_at,
        ends_at=job.ends_at if started_at is not None or job.is_ended else None,
        expected_start=job.started_at if state == "waiting" else None,
    )


def _reason(job: SlurmJob, state: str) -> str | None:
    if state == "running":
        return RUNNING.get(job.state)
    if state == "failed":
        return FAILED.get(job.state) or cached_message(job.reason)
    if state in {"succeeded", "cancelled"}:
        return None
    return cached_message(job.reason)


def value_or_none(text: str) -> str | None:
    """Slurm's text, or None for one that stands for no value."""
    return None if text in {"", "(null)", "N/A"} else text


@lru_cache(maxsize=1024)
def accelerators_of(gres: tuple[Gres, ...]) -> int:
    """The number of accelerators of a job."""
    return sum(entry.count for entry in gres if entry.name in ACCELERATORS)


@lru_cache(maxsize=1024)
def resources_of(gres: tuple[Gres, ...]) -> tuple[Resource, ...]:
    """The devices of a job by type."""
    return tuple(
        Resource(entry.name, entry.type, entry.count, used=entry.count, accelerator=entry.name in ACCELERATORS)
        for entry in gres
    )


NAMES_TTL_S = 600.0
"""Maximum age in seconds of data that only an administrator changes."""

_INFINITE = float("inf")


class SlurmTables:
    """Tables of one cluster, all from the same snapshots of its jobs and nodes.

    They are read again as often as the poll interval says: at most two calls a minute while nothing happens.

    Args:
        client: The cluster's commands.
        queue: Its queue.
        pace: The poll interval.
        runs_here: Whether the commands run on this machine, so that groups are the same there.
    """

    def __init__(self, client: SlurmClient, queue: JobQueue, pace: PollInterval, *, runs_here: bool) -> None:
        self._client = client
        self._queue = queue
        self._pace = pace
        self._runs_here = runs_here
        self._read_with: tuple[object, Snapshot] | None = None
        self.nodes_query = controller_query(self._load_nodes)
        self.queues_query = controller_query(self._load_queues)
        # Tables are requested page by page, so rows are cached until the next snapshot.
        self._node_rows: Cache[Hashable, tuple[Rows[Node], object]] = Cache(_INFINITE, limit=1)
        self._rows = JobRows()
        self._job_rows: Cache[Hashable, Rows[Job]] = Cache(_INFINITE, limit=1)

    async def nodes(self) -> Rows[Node]:
        """All nodes, with the jobs on them."""
        nodes, jobs = await self._snapshots()
        return await self._build_node_rows(nodes, jobs)

    async def queues(self) -> Rows[Queue]:
        (nodes, jobs), partitions = await asyncio.gather(self._snapshots(), self.queues_query.get(NAMES_TTL_S))
        rows = await self._build_node_rows(nodes, jobs)
        groups = await asyncio.to_thread(self._groups)
        queues = await asyncio.to_thread(queue_rows, partitions, rows, jobs.jobs, groups)
        return Rows(queues, as_of=rows.as_of)

    async def jobs(self) -> Rows[Job]:
        """All users' jobs, including ended ones while the controller still knows them."""
        snapshot = await self._queue.all_queue.get(self._pace.table_max_age)
        own_names = frozenset({await self._queue.user_name()})

        async def make() -> Rows[Job]:
            rows = await asyncio.to_thread(self._rows.convert, snapshot.jobs, own_names)
            return Rows(rows, as_of=snapshot.time)

        return await self._job_rows.get((snapshot.time, own_names), make)

    async def cluster(self, name: str, kind: str) -> Cluster:
        """The cluster's summary."""
        nodes, jobs = await self._snapshots()
        rows = await self._build_node_rows(nodes, jobs)
        return Cluster(
            name=name,
            orchestrator=kind,
            default=False,
            state="up",
            reason="; ".join(self._client.transport.notes) or None,
            nodes=len(rows),
            running=sum(not job.is_ended and not job.is_waiting for job in jobs.jobs),
            waiting=sum(job.is_waiting for job in jobs.jobs),
            as_of=rows.as_of,
            gpus=gpu_totals(rows),
            detail={
                "nodes_unusable": sum(row.state in UNUSABLE for row in rows),
                "scheduler_calls": self._client.calls_last_minute,
            },
        )

    def forget(self) -> None:
        """Invalidate all snapshots but those of names."""
        self._queue.forget()
        self.nodes_query.forget()

    async def _snapshots(self) -> tuple[dict[str, SlurmNode], Snapshot]:
        """The nodes and the jobs. Nodes that were read before a job changed may contradict the jobs, so they are read again."""
        jobs, nodes = await asyncio.gather(
            self._queue.all_queue.get(self._pace.table_max_age), self.nodes_query.get(self._pace.table_max_age)
        )
        if self._read_with is None or self._read_with[0] is not nodes:
            self._read_with = nodes, jobs
        elif self._read_with[1] is not jobs and jobs.has_changed_since(self._read_with[1]):
            nodes = await self.nodes_query.get(jobs.age)
            self._read_with = nodes, jobs
        return nodes, jobs

    async def _load_nodes(self) -> dict[str, SlurmNode]:
        argv, delimiter = nodes_command()
        return await asyncio.to_thread(parse_nodes, await self._client.query(argv), delimiter)

    async def _load_queues(self) -> list[SlurmPartition]:
        return parse_partitions(await self._client.query(COMMAND))

    async def _build_node_rows(self, nodes: dict[str, SlurmNode], jobs: Snapshot) -> Rows[Node]:
        as_of = min(jobs.time, time.time() - self.nodes_query.age)

        async def make() -> tuple[Rows[Node], object]:
            rows = await asyncio.to_thread(node_rows, nodes.values(), jobs.jobs)
            # The value includes the nodes themselves, so that no other snapshot gets the same id.
            return Rows(rows, as_of=as_of), nodes

        rows, _ = await self._node_rows.get((id(nodes), jobs.time), make)
        return rows

    def _groups(self) -> frozenset[str] | None:
        """This user's groups, if they are this machine's. None for root, who may use every queue."""
        if not self._runs_here or os.geteuid() == 0:
            return None
        return _user_groups(local_user_name())


def _user_groups(user: str) -> frozenset[str] | None:
    try:
        gids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return None
    names = set()
    for number in gids:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return frozenset(names)
