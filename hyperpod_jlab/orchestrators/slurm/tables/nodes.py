"""The nodes of a cluster, from one listing.

`sinfo -N` is the source and not `scontrol show node`: a node's reason and comment are free text that an administrator, or a health check that repeats
what a program said, writes, and in scontrol's lines nothing tells where such a text ends. sinfo has the same fields, the devices' numbers too. Nodes that
are in no queue are not in it; no job can have them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.model.bulk import without_collections
from hyperpod_jlab.model.cluster import UNUSABLE, Node
from hyperpod_jlab.orchestrators.slurm.job import WAITING, SlurmJob, to_time
from hyperpod_jlab.orchestrators.slurm.rows import Fields, long_format, new_mark, parse_long
from hyperpod_jlab.orchestrators.slurm.tables.gres import Gres, parse_gres, resources
from hyperpod_jlab.orchestrators.slurm.tables.hostlist import expand

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
        """One of `hyperpod_jlab.model.cluster.NODE_STATES`."""
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
    """Slurm's state and flags as one word of `hyperpod_jlab.model.cluster.NODE_STATES` (man sinfo, NODE STATE CODES)."""
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
        return replace(row, reason="it restarts as soon as no job runs on it") if waits else row
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
