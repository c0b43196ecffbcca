"""Whether a spec can ever start: its queue, that queue's quota, its priority class, and whether any node is large enough."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError, nearest_hint
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.kubernetes.sending.placement import HEALTH, node_selector
from hyperpod_jlab.orchestrators.kubernetes.sending.resources import resources
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import ClusterQueueRow, LocalQueueRow
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue_look import KueueSeen
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import NODES
from hyperpod_jlab.orchestrators.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.orchestrators.kubernetes.tables.quantity import milli
from hyperpod_jlab.orchestrators.kubernetes.tables.queues import why_closed
from hyperpod_jlab.orchestrators.kubernetes.tables.view import ClusterView
from hyperpod_jlab.orchestrators.kubernetes.waiting.room import (
    Wanted,
    lacks_on_nodes,
    never_on_nodes,
    queue_room,
    shown_amount,
)

_GROWS = ("karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool")
"""Labels of nodes that something adds and takes away: larger ones may come."""


@dataclass(frozen=True)
class Known:
    """What is known of a cluster; None for what may not be seen.

    Attributes:
        namespace: Where the run goes.
        kueue: The queues; None without Kueue.
        priorities: The priority classes of workloads.
        nodes: The nodes.
    """

    namespace: str
    kueue: KueueSeen | None
    priorities: Mapping[str, int] | None
    nodes: Sequence[NodeFacts] | None


async def room_findings(view: ClusterView, spec: JobSpec, *, hyperpod: bool) -> list[Finding]:
    """What the cluster's queues and nodes have to say about a spec; what may not be seen says nothing.

    Args:
        view: The cluster.
        spec: The spec.
        hyperpod: Whether it is a HyperPod cluster, whose runs want healthy nodes.

    Raises:
        UnreachableError: It does not answer.
    """
    if spec.source.kind == "native":
        return []
    try:
        kueue, priorities, nodes = await asyncio.gather(
            view.kueue.look(),
            view.kueue.priority_classes(),
            view.looks.everywhere(NODES, node_facts),
        )
    except UnreachableError:
        raise
    except HyperpodError:
        return []
    namespace = spec.kubernetes.namespace or view.looks.namespace
    return findings(spec, Known(namespace, kueue, priorities, nodes.rows), hyperpod=hyperpod)


def findings(spec: JobSpec, known: Known, *, hyperpod: bool = False) -> list[Finding]:
    """The same from what is known. Pure."""
    wanted = wanted_of(spec, hyperpod=hyperpod)
    found = list(_queue(spec, wanted, known))
    found += _priority(spec, known)
    found += _nodes(wanted, known.nodes)
    return found


def wanted_of(spec: JobSpec, *, hyperpod: bool) -> Wanted:
    """What a spec asks for."""
    labels = node_selector(spec, hyperpod=hyperpod)
    labels.pop(HEALTH, None)  # a node that is ill today may be well tomorrow
    each = {name: milli(text) for name, text in resources(spec).items()}
    return Wanted(spec.resources.nodes, each, labels)


def _queue(spec: JobSpec, wanted: Wanted, known: Known) -> Iterator[Finding]:
    if spec.queue is None or known.kueue is None:
        if spec.queue is not None:
            yield Finding(
                level="warning",
                code="no_kueue",
                message=f"the cluster has no queues (Kueue is not installed), so that the queue {spec.queue} counts for nothing",
                hint="leave out --queue",
                field="queue",
            )
        return
    local = known.kueue.local(known.namespace, spec.queue)
    if local is None:
        yield from _unknown(spec.queue, known, known.kueue)
        return
    queue = known.kueue.cluster_queue_of(local)
    closed = why_closed(local, queue)
    if closed is not None:
        yield Finding(
            level="warning",
            code="queue_closed",
            message=f"nothing starts from the queue {local.name} now: {closed}",
            hint="name another one with --queue; see: hpj queues",
            field="queue",
        )
    if queue is not None:
        yield from _quota(wanted, local, queue, known.kueue)


def _unknown(name: str, known: Known, kueue: KueueSeen) -> Iterator[Finding]:
    here = [one.name for one in kueue.locals_ if one.namespace == known.namespace]
    right = kueue.hidden_in(known.namespace)
    if right is not None:
        yield Finding(
            level="warning",
            code="unchecked_queue",
            message=f"whether the namespace {known.namespace} has a queue '{name[:60]}' could not be checked: the right to {right} is missing",
            hint="without such a queue the run would wait for ever: ask the cluster's admin for its name, or for that right",
            field="queue",
        )
        return
    yield Finding(
        level="error",
        code="unknown_queue",
        message=f"the namespace {known.namespace} has no queue '{name[:60]}': the run would wait for ever",
        hint=nearest_hint(name[:60], here) or "leave out --queue: the namespace has no queues",
        field="queue",
    )


def _quota(
    wanted: Wanted, local: LocalQueueRow, queue: ClusterQueueRow, kueue: KueueSeen
) -> Iterator[Finding]:
    """A request over what the queue can ever give: its own quota and what it may borrow."""
    if not queue.quotas:
        return
    room = queue_room(queue, (kueue.queues or {}).values(), ever=True)
    if room.nodes(wanted.each) >= wanted.nodes:
        return
    # Of the flavor that gives most, what of it is too little.
    best = max(room.by_flavor.values(), key=lambda most: _share(wanted, most))
    for name, amount in wanted.each.items():
        most = best.get(name)
        if most is None:
            message = f"the queue {local.name} has no quota for {name}, so that a run that asks for it never starts from there"
        elif amount * wanted.nodes > most:
            message = f"it asks for {shown_amount(name, amount * wanted.nodes)} in all, and the queue {local.name} can give {shown_amount(name, most)} at most, borrowed ones counted: the run would wait for ever"
        else:
            continue
        yield Finding(
            level="error",
            code="over_quota",
            message=message,
            hint="ask for less, or name another queue; see: hpj queues",
            field=_field(name),
        )
        return


def _share(wanted: Wanted, most: Mapping[str, int]) -> float:
    shares = [
        most.get(name, 0) / (amount * wanted.nodes)
        for name, amount in wanted.each.items()
        if amount
    ]
    return min(shares, default=1.0)


def _field(resource: str) -> str:
    return {"cpu": "resources.cpus", "memory": "resources.memory"}.get(
        resource, "resources.gpus_per_node"
    )


def _priority(spec: JobSpec, known: Known) -> Iterator[Finding]:
    """A workload's priority class; without a queue the priority is that of the pods, which the dry run looks at."""
    if spec.priority is None or spec.queue is None or known.priorities is None:
        return
    if spec.priority not in known.priorities:
        yield Finding(
            level="error",
            code="unknown_priority",
            message=f"the cluster has no priority class '{spec.priority[:60]}' for jobs in queues",
            hint=nearest_hint(spec.priority[:60], known.priorities),
            field="priority",
        )


def _nodes(wanted: Wanted, nodes: Sequence[NodeFacts] | None) -> Iterator[Finding]:
    never = never_on_nodes(wanted, nodes or ())
    if never is None:
        return
    grows = any(name in dict(node.labels) for node in nodes or () for name in _GROWS)
    unlabelled = bool(wanted.labels) and never.startswith("no node has the labels")
    lacking = lacks_on_nodes(wanted, nodes or ())
    yield Finding(
        level="warning" if grows or unlabelled else "error",
        code="no_such_node" if unlabelled else "too_large",
        message=f"{never}: the run waits until one is added"
        if grows or unlabelled
        else f"{never}: the run would wait for ever",
        hint="see: hpj nodes",
        field="resources.instance_type" if unlabelled else _field(lacking[0] if lacking else ""),
    )
