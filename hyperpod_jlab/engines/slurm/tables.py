"""The cluster as its tables show it: nodes, queues and everybody's jobs, from few looks that all who ask share."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import pwd
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.cluster import UNUSABLE, Cluster, Job, Node, Queue, Resource
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob, to_limit, to_time
from hyperpod_jlab.engines.slurm.queue import IDLE, SharedQueue, Snapshot, asked_of_controller
from hyperpod_jlab.engines.slurm.reasons import RUNNING, code_of, words_of
from hyperpod_jlab.engines.slurm.rows import (
    ACCELERATORS,
    Fields,
    Gres,
    expand,
    long_format,
    new_mark,
    parse_gres,
    parse_long,
    resources,
)

# --------------------------------------------------------------------------------------------------
# The nodes of a cluster, from one listing.
#
# `sinfo -N` is the source and not `scontrol show node`: a node's reason and comment are free text that an administrator, or a health check that repeats
# what a program said, writes, and in scontrol's lines nothing tells where such a text ends. sinfo has the same fields, the devices' numbers too. Nodes that
# are in no queue are not in it; no job can have them.

MIB = 1024**2

FIELDS = Fields(
    plain=(
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
"""What sinfo is asked for of each node in each partition (man sinfo, ``-O``)."""


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node. Memory is in bytes, `since` in Unix seconds.

    Attributes:
        base: Slurm's state without flags, in lower case: idle, mixed, allocated, down, ...
        flags: The flags, in lower case: drain, fail, powered_down, ...
        memory_free: What no job has asked for.
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
    by: str | None
    since: float | None
    partitions: tuple[str, ...]
    comment: str | None
    reason: str | None

    @property
    def state(self) -> str:
        """One of `hyperpod_jlab.core.cluster.NODE_STATES`."""
        return state_word(self.base, self.flags)

    @property
    def usable(self) -> bool:
        """Whether new jobs may start there."""
        return self.state not in UNUSABLE


def nodes_command() -> tuple[list[str], str]:
    """The command that lists the nodes, and the mark of its rows."""
    mark = new_mark()
    return [
        "sinfo",
        "--Node",
        "--noheader",
        "--all",
        f"--Format={long_format(mark, FIELDS)}",
    ], mark


@without_collections()
def parse_nodes(text: str, mark: str) -> dict[str, SlurmNode]:
    """What the command of `nodes_command` was answered, by name: one of each node, with all its partitions."""
    rows: dict[str, dict[str, str]] = {}
    partitions: dict[str, list[str]] = {}
    for row in parse_long(text, mark, FIELDS):
        name = row["name"]
        rows.setdefault(name, row)
        within = partitions.setdefault(name, [])
        if row["partition"] not in within:
            within.append(row["partition"])
    return {name: _node(row, tuple(sorted(partitions[name]))) for name, row in rows.items()}


def _node(row: Mapping[str, str], partitions: tuple[str, ...]) -> SlurmNode:
    base, *flags = row["state"].lower().split("+")
    _, idle, _, total = (_number(part) for part in (row["cpus"] + "///").split("/")[:4])
    memory = _number(row["memory"]) * MIB
    return SlurmNode(
        name=row["name"],
        base=base,
        flags=frozenset(flags),
        cpus=total,
        cpus_free=idle,
        load=_load(row["load"]),
        memory=memory,
        memory_free=max(0, memory - _number(row["memory_used"]) * MIB),
        features=_listed(row["features"]),
        gres=parse_gres(row["gres"]),
        gres_used=parse_gres(row["gres_used"]),
        by=None if row["by"] in _NOBODY else re.sub(r"\(\d+\)$", "", row["by"]),
        since=to_time(row["since"]),
        partitions=partitions,
        comment=None if row["comment"] in _NOTHING else row["comment"],
        reason=None if row["reason"] in _NOTHING else row["reason"],
    )


_INSTANCE = re.compile(r"(ml\.)?[a-z][a-z0-9-]*\.(\d*x?large|small|medium|micro|nano|metal)(-\w+)?")
"""EC2's and SageMaker's names of instance types, which AWS's tools give to nodes as a feature."""

_NOBODY = frozenset({"Unknown", "N/A", "(null)", ""})
_NOTHING = frozenset({"none", "(null)", "N/A", ""})


def state_word(base: str, flags: frozenset[str]) -> str:
    """Slurm's state and flags as one word of `hyperpod_jlab.core.cluster.NODE_STATES` (man sinfo, NODE STATE CODES)."""
    if flags >= {"reboot_requested", "drain"}:
        return "rebooting"
    for flag, word in _FIRST:
        if flag in flags:
            return word
    if base in _BASE:
        return _BASE[base]
    busy = base in {"allocated", "mixed"} or "completing" in flags
    for flag, word, busy_word in _THEN:
        if flag in flags:
            return busy_word if busy else word
    return "up"


_FIRST = (
    ("reboot_issued", "rebooting"),
    ("powering_up", "starting"),
    ("power_up", "starting"),
    ("powering_down", "powering-off"),
    ("power_down", "powering-off"),
    ("powered_down", "powered-off"),
    ("invalid_reg", "misconfigured"),
)
"""Flags that say more than the state, and our words."""

_BASE = {
    "down": "down",
    "error": "down",
    "future": "unknown",
    "inval": "misconfigured",
    "unknown": "unknown",
}
"""States in which a node does nothing."""

_THEN = (
    ("fail", "failed", "failing"),
    ("drain", "drained", "draining"),
    ("not_responding", "not-answering", "not-answering"),
    ("maintenance", "maintenance", "maintenance"),
    ("reserved", "reserved", "reserved"),
)
"""Flags of nodes that are there, our words, and those for nodes that jobs still run on."""


@without_collections()
def node_rows(nodes: Iterable[SlurmNode], jobs: Sequence[SlurmJob]) -> list[Node]:
    """The nodes as tables show them, each with the jobs that run on it."""
    on = jobs_on_nodes(jobs)
    return [_row(node, tuple(on.get(node.name, ()))) for node in nodes]


def _row(node: SlurmNode, jobs: tuple[str, ...]) -> Node:
    state, usable = node.state, node.usable
    devices = resources(node.gres, node.gres_used, usable=usable)
    accelerators = [one for one in devices if one.accelerator]
    types = {one.label for one in accelerators}
    row = Node(
        name=node.name,
        state=state,
        cpus=node.cpus,
        cpus_free=node.cpus_free if usable else 0,
        cpu_load=node.load,
        memory=node.memory,
        memory_free=node.memory_free if usable else 0,
        accelerators=sum(one.total for one in accelerators),
        accelerators_free=sum(one.free for one in accelerators),
        accelerator_type=", ".join(sorted(types)) or None,
        resources=tuple(devices),
        features=node.features,
        instance_type=next((word for word in node.features if _INSTANCE.fullmatch(word)), None),
        comment=node.comment,
        queues=node.partitions,
        jobs=jobs,
    )
    if state in {"up", "reserved", "powered-off"}:
        # From 24.05 on a node that works again keeps the reason why it did not.
        waits = "reboot_requested" in node.flags
        return replace(row, reason="it restarts when no job is running on it") if waits else row
    return replace(row, reason=node.reason, reason_since=node.since, reason_by=node.by)


def jobs_on_nodes(jobs: Iterable[SlurmJob]) -> dict[str, list[str]]:
    """Ids of the jobs that have nodes now, by node."""
    on: dict[str, list[str]] = {}
    for job in jobs:
        if job.node_list and not job.ended and (job.state not in WAITING or _keeps(job)):
            for name in expand(job.node_list):
                on.setdefault(name, []).append(job.scheduler_id)
    return on


def _keeps(job: SlurmJob) -> bool:
    """A suspended job keeps its nodes' memory and devices."""
    return job.state == "SUSPENDED"


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _load(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else None


def _listed(text: str) -> tuple[str, ...]:
    return () if text in {"(null)", ""} else tuple(text.split(","))


# --------------------------------------------------------------------------------------------------
# Slurm's partitions as queues: their rules from `scontrol show partition`, what is free from their nodes, what waits from the jobs.
#
# Only an administrator writes these lines, and no value in them holds a blank, so that they can be read as words.

COMMAND = ("scontrol", "--oneliner", "--all", "show", "partition")

STATES = {"UP": "up", "DOWN": "down", "DRAIN": "draining", "INACTIVE": "inactive"}
"""Slurm's word for a partition's state, and ours (man slurm.conf, State of partitions)."""

_WORD = re.compile(r"(?:^| )([A-Za-z]+)=(\S*)")
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
    """What `COMMAND` was answered, in the order of the cluster."""
    found = []
    for line in text.splitlines():
        values = dict(_WORD.findall(line))
        if "PartitionName" in values:
            found.append(_partition(values))
    return found


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
        min_nodes=_queues_number(values.get("MinNodes", "")),
        max_nodes=_queues_number(values.get("MaxNodes", "")),
        max_time=_seconds(values.get("MaxTime", "")),
        default_time=_seconds(values.get("DefaultTime", "")),
        priority=_queues_number(values.get("PriorityTier", "")),
        nodes=_queues_number(values.get("TotalNodes", "")) or 0,
    )


def queue_rows(
    partitions: Sequence[SlurmPartition],
    nodes: Sequence[Node],
    jobs: Iterable[SlurmJob],
    groups: frozenset[str] | None = None,
) -> list[Queue]:
    """The partitions as tables show them.

    Args:
        partitions: Their rules.
        nodes: All nodes.
        jobs: All jobs.
        groups: The groups of this user on the cluster; None when they are not known from here.
    """
    within: dict[str, list[Node]] = {}
    for node in nodes:
        for name in node.queues:
            within.setdefault(name, []).append(node)
    running, waiting = _counts(jobs)
    return [
        _queues_row(
            one,
            within.get(one.name, []),
            (running.get(one.name, 0), waiting.get(one.name, 0)),
            _usable(one, groups),
        )
        for one in partitions
    ]


def _queues_row(
    one: SlurmPartition, nodes: Sequence[Node], counts: tuple[int, int], usable: bool | None
) -> Queue:
    devices = _summed(nodes)
    accelerators = [device for device in devices if device.accelerator]
    return Queue(
        name=one.name,
        state=one.state,
        default=one.default,
        usable=usable,
        groups=one.groups if not one.root_only else ("root",),
        accounts=one.accounts,
        qos=one.qos,
        denied=one.denied,
        nodes=one.nodes,
        nodes_free=sum(node.cpus_free == node.cpus and bool(node.cpus) for node in nodes),
        min_nodes=one.min_nodes or None,
        max_nodes=one.max_nodes,
        cpus=sum(node.cpus or 0 for node in nodes),
        cpus_free=sum(node.cpus_free or 0 for node in nodes),
        accelerators=sum(device.total for device in accelerators),
        accelerators_free=sum(device.free for device in accelerators),
        resources=tuple(devices),
        time_limit=one.max_time,
        default_time=one.default_time,
        priority=one.priority,
        running=counts[0],
        waiting=counts[1],
    )


def _summed(nodes: Iterable[Node]) -> list[Resource]:
    """The devices of several nodes together: without numbers, which each node counts for itself."""
    sums: dict[tuple[str, str | None, bool], list[int]] = {}
    for node in nodes:
        for one in node.resources:
            so_far = sums.setdefault((one.name, one.type, one.accelerator), [0, 0, 0])
            for at, count in enumerate((one.total, one.used, one.free)):
                so_far[at] += count
    return [
        Resource(name, kind, total, used, free, accelerator=accelerator)
        for (name, kind, accelerator), (total, used, free) in sums.items()
    ]


def _counts(jobs: Iterable[SlurmJob]) -> tuple[dict[str, int], dict[str, int]]:
    """How many jobs run and wait in each partition. One that would take any of several waits in each."""
    running: dict[str, int] = {}
    waiting: dict[str, int] = {}
    for job in jobs:
        if not job.ended:
            counts = waiting if job.waiting else running
            for name in job.partition.split(","):
                counts[name] = counts.get(name, 0) + 1
    return running, waiting


def _usable(one: SlurmPartition, groups: frozenset[str] | None) -> bool | None:
    """Whether one in these groups may use a partition; None when that is up to what is not known: accounts, QoS."""
    if one.root_only:
        return None if groups is None else "root" in groups
    if one.groups:
        if groups is None:
            return None
        if groups.isdisjoint(one.groups):
            return False
    return None if one.accounts or one.qos or one.denied else True


def _names(text: str) -> tuple[str, ...]:
    return () if text in _ALL else tuple(text.split(","))


def _queues_number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _seconds(text: str) -> int | None:
    limit = to_limit(text)
    return None if limit is None else int(limit)


# --------------------------------------------------------------------------------------------------
# Jobs of all users as tables show them.

_ENDED = {"COMPLETED": "succeeded", "CANCELLED": "cancelled", "REVOKED": "cancelled"}

_FAILED = {
    "TIMEOUT": "it reached its time limit",
    "DEADLINE": "it reached its deadline",
    "OUT_OF_MEMORY": "it exceeded its requested memory",
    "NODE_FAIL": "a node failed",
    "BOOT_FAIL": "a node did not boot",
    "PREEMPTED": "a job with a higher priority preempted it",
}


class JobRows:
    """Makes rows of jobs, and keeps those of jobs that are as they were."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[SlurmJob, Job]] = {}

    @without_collections()
    def of(self, jobs: Sequence[SlurmJob], me: frozenset[str]) -> list[Job]:
        """The jobs as tables show them (see `job_rows`)."""
        kept: dict[int, tuple[SlurmJob, Job]] = {}
        for job in jobs:
            mine = job.user in me
            before = self._kept.get(id(job))
            same = before is not None and before[0] is job and before[1].mine == mine
            kept[id(job)] = (
                before if before is not None and same else (job, _job_rows_row(job, mine))
            )
        self._kept = kept
        return [row for _, row in kept.values()]


def job_rows(jobs: Sequence[SlurmJob], me: frozenset[str]) -> list[Job]:
    """The jobs as tables show them.

    Args:
        jobs: The jobs.
        me: This user's names on the cluster. A run id counts in this user's own jobs only: anybody may write any comment.
    """
    return JobRows().of(jobs, me)


def job_state_word(job: SlurmJob) -> str:
    """One of `hyperpod_jlab.core.cluster.JOB_STATES`."""
    if job.state == "RUNNING":
        return "running"
    if job.ended:
        return _ENDED.get(job.state, "failed")
    if job.state == "SUSPENDED":
        return "suspended"
    if job.held:
        return "held"
    return "waiting" if job.waiting else "running"


def _job_rows_row(job: SlurmJob, mine: bool) -> Job:
    state = job_state_word(job)
    began = job.started if job.ended or not job.waiting else None
    if job.ended and not job.node_list:
        began = None  # it never started; squeue shows when it ended
    return Job(
        scheduler_id=job.scheduler_id,
        name=job.name,
        user=job.user,
        state=state,
        mine=mine,
        queue=job.partition or None,
        reason=_reason(job, state),
        reason_code=code_of(job),
        nodes=expand(job.node_list) if job.node_list else (),
        node_count=job.node_count or None,
        cpus=job.cpus or None,
        accelerators=_accelerators(job.gres),
        resources=_resources(job.gres),
        array=job.array_task,
        account=_known(job.account),
        qos=_known(job.qos),
        priority=job.priority,
        time_limit=int(job.limit) if job.limit is not None else None,
        run_id=job.run_id if mine else None,
        submitted_at=job.submitted,
        started_at=began,
        ends_at=job.ends if began is not None or job.ended else None,
        expected_start=job.started if state == "waiting" else None,
    )


def _reason(job: SlurmJob, state: str) -> str | None:
    if state == "running":
        return RUNNING.get(job.state)
    if state == "failed":
        return _FAILED.get(job.state) or words_of(job.reason)
    if state in {"succeeded", "cancelled"}:
        return None
    return words_of(job.reason)


def _known(text: str) -> str | None:
    return None if text in {"", "(null)", "N/A"} else text


@lru_cache(maxsize=1024)
def _accelerators(found: tuple[Gres, ...]) -> int:
    return sum(one.count for one in found if one.name in ACCELERATORS)


@lru_cache(maxsize=1024)
def _resources(found: tuple[Gres, ...]) -> tuple[Resource, ...]:
    return tuple(
        Resource(
            one.name, one.type, one.count, used=one.count, accelerator=one.name in ACCELERATORS
        )
        for one in found
    )


FRESH = 5.0
"""Age in seconds up to which somebody who opens or refreshes a table is shown an earlier look."""

SELDOM = 600.0
"""The same for what changes only by an administrator's hand, where it is not what is asked for."""

_FOREVER = float("inf")


class SlurmTables:
    """Tables of one cluster.

    A panel that only shows the clusters costs one squeue a minute and one sinfo in ten; a page that is open and not refreshed costs nothing.

    Args:
        client: The cluster's commands.
        jobs: Everybody's jobs.
        mine: This user's jobs.
        here: Whether the commands run on this machine, so that users and groups are the same there.
    """

    def __init__(
        self,
        client: SlurmClient,
        jobs: SharedQueue,
        mine: SharedQueue,
        *,
        here: bool,
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._mine = mine
        self._here = here
        self._names: frozenset[str] = frozenset()
        self.node_watch = asked_of_controller(self._look_at_nodes)
        self.queue_watch = asked_of_controller(self._look_at_queues)
        # Tables are asked for page by page: rows are kept until there is a newer look.
        self._node_rows: Cache[Hashable, tuple[list[Node], object]] = Cache(_FOREVER, limit=1)
        self._rows = JobRows()
        self._job_rows: Cache[Hashable, list[Job]] = Cache(_FOREVER, limit=1)

    async def nodes(self) -> list[Node]:
        """All nodes, with the jobs on them."""
        nodes, jobs = await asyncio.gather(self.node_watch.get(FRESH), self._jobs.get(FRESH))
        return await self._rows_of_nodes(nodes, jobs)

    async def queues(self) -> list[Queue]:
        """All partitions."""
        partitions, nodes, jobs = await asyncio.gather(
            self.queue_watch.get(FRESH), self.node_watch.get(FRESH), self._jobs.get(FRESH)
        )
        rows = await self._rows_of_nodes(nodes, jobs)
        groups = await asyncio.to_thread(self._groups)
        return await asyncio.to_thread(queue_rows, partitions, rows, jobs.jobs, groups)

    async def jobs(self) -> list[Job]:
        """Everybody's jobs; those that ended as long as the controller remembers them."""
        snapshot = await self._jobs.get(FRESH)
        me = await self._me(snapshot)
        make = partial(asyncio.to_thread, self._rows.of, snapshot.jobs, me)
        return await self._job_rows.get((snapshot.time, me), make)

    async def cluster(self, name: str, kind: str) -> Cluster:
        """The cluster in one line."""
        jobs, nodes = await asyncio.gather(self._jobs.get(IDLE), self.node_watch.get(SELDOM))
        states = [node.state for node in nodes.values()]
        return Cluster(
            name=name,
            orchestrator=kind,
            default=False,
            state="up",
            reason="; ".join(self._client.transport.notes) or None,
            nodes=len(states),
            running=sum(not job.ended and not job.waiting for job in jobs.jobs),
            waiting=sum(job.waiting for job in jobs.jobs),
            detail={
                "nodes_unusable": sum(state in UNUSABLE for state in states),
                "scheduler_calls": self._client.calls_last_minute,
            },
        )

    async def _look_at_nodes(self) -> dict[str, SlurmNode]:
        argv, mark = nodes_command()
        return await asyncio.to_thread(parse_nodes, await self._client.ask(argv), mark)

    async def _look_at_queues(self) -> list[SlurmPartition]:
        return parse_partitions(await self._client.ask(COMMAND))

    async def _rows_of_nodes(self, nodes: dict[str, SlurmNode], jobs: Snapshot) -> list[Node]:
        async def make() -> tuple[list[Node], object]:
            # The nodes are kept too, so that no other look gets the same id.
            return await asyncio.to_thread(node_rows, nodes.values(), jobs.jobs), nodes

        rows, _ = await self._node_rows.get((id(nodes), jobs.time), make)
        return rows

    async def _me(self, everybodys: Snapshot) -> frozenset[str]:
        """This user's name on the cluster: where only a login node knows it, as its own jobs say."""
        if self._here:
            return frozenset({_name_here()})
        if everybodys.jobs:
            mine = await self._mine.get(SELDOM if self._names else IDLE)
            self._names |= {job.user for job in mine.jobs}
        return self._names

    def _groups(self) -> frozenset[str] | None:
        """The groups of this user, where they are those of this machine. None for root, who may do everything."""
        if not self._here or os.geteuid() == 0:
            return None
        return _groups_of(_name_here())


def _name_here() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _groups_of(user: str) -> frozenset[str] | None:
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return None
    names = set()
    for number in numbers:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return frozenset(names)
