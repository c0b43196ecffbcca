"""Slurm's partitions as queues: their rules from `scontrol show partition`, what is free from their nodes, what waits from the jobs.

Only an administrator writes these lines, and no value in them holds a blank, so that they can be read as words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.cluster import Node, Queue, Resource
from hyperpod_jlab.orchestrators.slurm.job import SlurmJob, to_limit

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
        min_nodes=_number(values.get("MinNodes", "")),
        max_nodes=_number(values.get("MaxNodes", "")),
        max_time=_seconds(values.get("MaxTime", "")),
        default_time=_seconds(values.get("DefaultTime", "")),
        priority=_number(values.get("PriorityTier", "")),
        nodes=_number(values.get("TotalNodes", "")) or 0,
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
        _row(
            one,
            within.get(one.name, []),
            (running.get(one.name, 0), waiting.get(one.name, 0)),
            _usable(one, groups),
        )
        for one in partitions
    ]


def _row(
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


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _seconds(text: str) -> int | None:
    limit = to_limit(text)
    return None if limit is None else int(limit)
