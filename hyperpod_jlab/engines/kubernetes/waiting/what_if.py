"""How many pods of a run would find room now, on the nodes and in the queue's quota, and whether one ever does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.cluster import UNUSABLE, Holder
from hyperpod_jlab.engines.kubernetes.submit.render import HEALTH
from hyperpod_jlab.engines.kubernetes.tables.devices import computes, split_name
from hyperpod_jlab.engines.kubernetes.tables.kueue import ClusterQueueRow, available
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, by_node, summed

_PLENTY = 1_000_000

_GROWS = ("karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool")
"""Labels of nodes that something adds and takes away: others may come."""


@dataclass(frozen=True)
class WhatIfRequest:
    """What a run asks for.

    Attributes:
        nodes: How many pods, each on a node.
        each: What each asks for, in thousandths.
        labels: Labels that their nodes must have.
    """

    nodes: int
    each: Mapping[str, int]
    labels: Mapping[str, str]

    @property
    def accelerator(self) -> str | None:
        """The name of the accelerators that it asks for."""
        return next((name for name in self.each if computes(name)), None)

    def with_accelerators(self, count: int) -> dict[str, int]:
        """What each pod asks for, with another number of accelerators."""
        name = self.accelerator
        return {**self.each, **({name: count * 1000} if name is not None else {})}


def fits(each: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether so much is there."""
    return all(free.get(name, 0) >= amount for name, amount in each.items())


def free_nodes(
    nodes: Iterable[NodeFacts], pods: Iterable[PodRow], labels: Mapping[str, str]
) -> list[dict[str, int]]:
    """What is free on each node that takes pods and has these labels."""
    on = by_node(pods)
    found = []
    for node in nodes:
        here = on.get(node.name, [])
        if node.tainted or node.state(here).word in UNUSABLE or not _matches(node, labels):
            continue
        used = summed(here)
        found.append({name: amount - used.get(name, 0) for name, amount in node.allocatable})
    return found


def _matches(node: NodeFacts, labels: Mapping[str, str]) -> bool:
    has = dict(node.labels)
    return all(has.get(name) == value for name, value in labels.items())


@dataclass(frozen=True)
class Never:
    """Why no node that there is can take a pod of a run, even an empty one.

    Attributes:
        words: Why, as the beginning of a sentence.
        may_come: Whether one that can may be added: nodes are put in groups, or something adds them as they are asked for.
        label: The label that no node has; None where it is not for that.
        resource: The resource of which no node has enough; None where it is not for that.
    """

    words: str
    may_come: bool
    label: str | None = None
    resource: str | None = None


def never_on_nodes(wanted: WhatIfRequest, nodes: Sequence[NodeFacts]) -> Never | None:
    """Why no node takes a pod of the run, however long it waits; None when one does, or when nodes are unknown.

    A node that is ill today may be well tomorrow, so that its health counts not.
    """
    if not nodes:
        return None
    labels = {name: value for name, value in wanted.labels.items() if name != HEALTH}
    able = [node for node in nodes if _matches(node, labels)]
    if not able:
        return _no_such_node(labels, nodes)
    if any(fits(wanted.each, dict(node.allocatable)) for node in able):
        return None
    grows = any(name in dict(node.labels) for node in nodes for name in _GROWS)
    lacking = lacks_on_nodes(wanted, able)
    if lacking is None:
        return Never("no node has all resources that it requests per node", grows)
    name, most = lacking
    has = f"no node has more than {shown_amount(name, most)}" if most else "no node has any"
    asked = shown_amount(name, wanted.each[name])
    return Never(f"it requests {asked} on each node, but {has}", grows, resource=name)


def _no_such_node(labels: Mapping[str, str], nodes: Sequence[NodeFacts]) -> Never:
    """For a label that no node has; where each is on some node, for all of them."""
    missing = {
        name: value
        for name, value in labels.items()
        if not any(dict(node.labels).get(name) == value for node in nodes)
    }
    shown = ", ".join(f"{name}={value}" for name, value in (missing or labels).items())
    many = "labels" if len(missing or labels) > 1 else "label"
    return Never(
        f"no node has the {many} {shown}", may_come=True, label=next(iter(missing or labels))
    )


def lacks_on_nodes(wanted: WhatIfRequest, nodes: Sequence[NodeFacts]) -> tuple[str, int] | None:
    """The first resource of which no node has as much as a pod asks for, and how much one has at most; None when each can be had on some node."""
    for name, amount in wanted.each.items():
        most = max((dict(node.allocatable).get(name, 0) for node in nodes), default=0)
        if most < amount:
            return name, most
    return None


def shown_amount(name: str, thousandths: int) -> str:
    """An amount as people say it: ``8 GPUs``, ``64.0 GiB of memory``, ``1.5 CPUs``."""
    if name == "memory":
        return f"{thousandths / 1000 / 2**30:.4g} GiB of memory"
    number = f"{thousandths / 1000:g}"
    if name == "cpu":
        return f"{number} CPU" if number == "1" else f"{number} CPUs"
    plain, kind = split_name(name)
    if plain == "gpu":
        gpus = "GPU" if number == "1" else "GPUs"
        return f"{number} {gpus}" if kind is None else f"{number} {gpus} ({kind})"
    return f"{number} {name}"


@dataclass(frozen=True)
class QueueRoom:
    """What a queue can give to a new job now, by flavor, in thousandths; what it has no quota for is not counted."""

    by_flavor: Mapping[str, Mapping[str, int]]

    def nodes(self, each: Mapping[str, int]) -> int:
        """For how many pods that ask for this each it is enough: all of them in one flavor."""
        return max((_times(free, each) for free in self.by_flavor.values()), default=0)


def _times(free: Mapping[str, int], each: Mapping[str, int]) -> int:
    counts = [free.get(name, 0) // amount for name, amount in each.items() if amount]
    return min(counts, default=_PLENTY)


def queue_room(
    queue: ClusterQueueRow, queues: Iterable[ClusterQueueRow], *, ever: bool = False
) -> QueueRoom:
    """What a cluster queue can give now, or, with `ever`, when nobody else has anything."""
    listed = list(queues)
    found: dict[str, dict[str, int]] = {}
    for quota in queue.quotas:
        left, most = available(queue, quota, listed)
        found.setdefault(quota.flavor, {})[quota.resource] = most if ever else left
    return QueueRoom(found)


@dataclass(frozen=True)
class Alternatives:
    """What would start now in a run's place: a sentence each, and how many ways were looked at."""

    sentences: tuple[str, ...]
    tried: int


def smaller(
    wanted: WhatIfRequest, free: Sequence[Mapping[str, int]] | None, queue: QueueRoom | None
) -> Alternatives:
    """The largest number of nodes, else of accelerators on one node, that finds room now.

    Args:
        wanted: The run.
        free: What is free on each node; None when that is not known.
        queue: What its queue can give; None without one, or when that is not known.
    """
    if free is None and queue is None:
        return Alternatives((), 0)

    def nodes_for(each: Mapping[str, int]) -> int:
        on_nodes = sum(fits(each, one) for one in free) if free is not None else _PLENTY
        return min(on_nodes, queue.nodes(each) if queue is not None else _PLENTY)

    count = nodes_for(wanted.each)
    if count >= wanted.nodes:
        return Alternatives(
            (), 0
        )  # there is room: it starts in a moment, or waits for something else
    if count >= 1:
        word = "node" if count == 1 else "nodes"
        words = f"with {count} {word} instead of {wanted.nodes} (--nodes {count})"
        return Alternatives((words,), 1)
    tried = int(wanted.nodes > 1)
    name = wanted.accelerator
    has = wanted.each.get(name or "", 0) // 1000
    for fewer in range(has - 1, 0, -1):
        tried += 1
        if nodes_for(wanted.with_accelerators(fewer)) >= 1:
            word = "accelerator" if fewer == 1 else "accelerators"
            one = f"with 1 node instead of {wanted.nodes} and " if wanted.nodes > 1 else "with "
            option = "--nodes 1 " if wanted.nodes > 1 else ""
            words = f"{one}{fewer} {word} on each node instead of {has} ({option}--gpus-per-node {fewer})"
            return Alternatives((words,), tried)
    return Alternatives((), tried)


def holders_of(pods: Iterable[PodRow], resource: str | None) -> tuple[Holder, ...]:
    """Who holds accelerators (of this name, where one is given), or at least nodes, most first; pods of the nodes themselves count not."""
    held: dict[str, tuple[int, set[str], set[str]]] = {}
    for pod in pods:
        if pod.node is None or pod.of_the_node:
            continue
        devices = sum(
            amount // 1000
            for name, amount in pod.requests
            if (name == resource if resource is not None else computes(name))
        )
        if resource is not None and not devices:
            continue
        so_far, nodes, jobs = held.setdefault(pod.owner, (0, set(), set()))
        nodes.add(pod.node)
        jobs.add(f"{pod.namespace}/{pod.job or pod.name}")
        held[pod.owner] = (so_far + devices, nodes, jobs)
    found = [
        Holder(user, accelerators=devices, nodes=len(nodes), jobs=len(jobs))
        for user, (devices, nodes, jobs) in held.items()
    ]
    return tuple(sorted(found, key=lambda one: (-one.accelerators, -one.nodes, one.user)))
