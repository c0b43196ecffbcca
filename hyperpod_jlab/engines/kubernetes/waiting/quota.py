"""Whether a run can ever start: its queue, that queue's quota, its priority class, and whether any node is large enough."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError, nearest_hint
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.kinds.kind import PRIORITY_LABEL, QUEUE_LABEL, find_labels
from hyperpod_jlab.engines.kubernetes.submit.render import LABEL_FIELDS, node_selector
from hyperpod_jlab.engines.kubernetes.submit.resources import milli, resources
from hyperpod_jlab.engines.kubernetes.tables.jobs import parts_of
from hyperpod_jlab.engines.kubernetes.tables.kueue import (
    ClusterQueueRow,
    KueueSnapshot,
    LocalQueueRow,
    why_closed,
)
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.what_if import (
    QueueRoom,
    WhatIfRequest,
    never_on_nodes,
    queue_room,
    shown_amount,
)

# --------------------------------------------------------------------------------------------------
# What a run asks for of queues and nodes, by its spec or by a user's own manifest. Pure.


@dataclass(frozen=True)
class RequestedResources:
    """What a run asks for.

    Attributes:
        parts: Its pods, those that are alike together.
        queue: The local queue.
        priority: The priority class.
        manifest: Whether a user's own manifest says so, so that it is there that something can be changed.
    """

    parts: tuple[WhatIfRequest, ...]
    queue: str | None
    priority: str | None
    manifest: bool = False

    def field(self, name: str | None) -> str | None:
        """The field of the spec that a finding is about, where that of a spec without a manifest is `name`."""
        return "source" if self.manifest else name

    @property
    def without_queue(self) -> str:
        """How to name none."""
        if self.manifest:
            return f"remove the label {QUEUE_LABEL} from the manifest"
        return "leave out --queue"


def asked_by(spec: JobSpec, known: InstanceType | None, *, hyperpod: bool) -> RequestedResources:
    """What a spec asks for, with what is known of its instance type; on HyperPod for healthy nodes."""
    each = {name: milli(text) for name, text in resources(spec, known).items()}
    wanted = WhatIfRequest(spec.resources.nodes, each, node_selector(spec, hyperpod=hyperpod))
    return RequestedResources((wanted,), spec.queue, spec.priority)


def asked_in(document: Mapping[str, Any]) -> RequestedResources:
    """What a manifest asks for."""
    parts = parts_of(document.get("spec") or {})
    labels = find_labels(document)
    return RequestedResources(
        tuple(WhatIfRequest(one.pods, dict(one.each), dict(one.selector)) for one in parts),
        labels.get(QUEUE_LABEL),
        labels.get(PRIORITY_LABEL),
        manifest=True,
    )


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
    kueue: KueueSnapshot | None
    priorities: Mapping[str, int] | None
    nodes: Sequence[NodeFacts] | None


async def room_findings(
    view: KubernetesTables, spec: JobSpec, known: InstanceType | None, *, hyperpod: bool
) -> list[Finding]:
    """What the cluster's queues and nodes have to say about a spec; what may not be seen says nothing.

    Args:
        view: The cluster.
        spec: The spec; of one that is sent as it was written its manifest is asked about (`manifest_findings`).
        known: What is known of its instance type.
        hyperpod: Whether it is a HyperPod cluster, whose runs want healthy nodes.

    Raises:
        UnreachableError: It does not answer.
    """
    if spec.source.kind == "native":
        return []
    namespace = spec.kubernetes.namespace or view.looks.namespace
    return await _findings(view, namespace, asked_by(spec, known, hyperpod=hyperpod))


async def manifest_findings(view: KubernetesTables, document: Mapping[str, Any]) -> list[Finding]:
    """The same about a user's own manifest, which the API server would take as it is.

    Raises:
        UnreachableError: It does not answer.
    """
    return await _findings(view, str(document["metadata"]["namespace"]), asked_in(document))


async def _findings(
    view: KubernetesTables, namespace: str, asked: RequestedResources
) -> list[Finding]:
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
    return findings(asked, Known(namespace, kueue, priorities, nodes.rows))


def findings(asked: RequestedResources, known: Known) -> list[Finding]:
    """The same from what is known. Pure."""
    found = list(_queue(asked, known))
    found += _priority(asked, known)
    found += _nodes(asked, known.nodes)
    return found


def _queue(asked: RequestedResources, known: Known) -> Iterator[Finding]:
    if asked.queue is None or known.kueue is None:
        if asked.queue is not None:
            yield Finding(
                level="warning",
                code="no_kueue",
                message=f"the cluster has no queues (Kueue is not installed), so the queue {asked.queue} has no effect",
                hint=asked.without_queue,
                field=asked.field("queue"),
            )
        return
    local = known.kueue.local(known.namespace, asked.queue)
    if local is None:
        yield from _unknown(asked, asked.queue, known, known.kueue)
        return
    queue = known.kueue.cluster_queue_of(local)
    closed = why_closed(local, queue)
    if closed is not None:
        yield Finding(
            level="warning",
            code="queue_closed",
            message=f"the queue {local.name} starts no jobs now: {closed}",
            hint="use another queue with --queue; see: hpj queues",
            field=asked.field("queue"),
        )
    if queue is not None:
        yield from _quota(asked, local, queue, known.kueue)


def _unknown(
    asked: RequestedResources, name: str, known: Known, kueue: KueueSnapshot
) -> Iterator[Finding]:
    here = [one.name for one in kueue.locals_ if one.namespace == known.namespace]
    right = kueue.hidden_in(known.namespace)
    if right is not None:
        yield Finding(
            level="warning",
            code="unchecked_queue",
            message=f"whether the namespace {known.namespace} has a queue '{name[:60]}' could not be checked: you do not have the "
            f"permission to {right}",
            hint="without such a queue the run waits forever: ask your cluster administrator for its name or for that permission",
            field=asked.field("queue"),
        )
        return
    yield Finding(
        level="error",
        code="unknown_queue",
        message=f"queue '{name[:60]}' not found in the namespace {known.namespace}: the run would wait forever",
        hint=nearest_hint(name[:60], here) or f"{asked.without_queue}: the namespace has no queues",
        field=asked.field("queue"),
    )


def _quota(
    asked: RequestedResources, local: LocalQueueRow, queue: ClusterQueueRow, kueue: KueueSnapshot
) -> Iterator[Finding]:
    """A request over what the queue can ever give: its own quota and what it may borrow."""
    if not queue.quotas:
        return
    room = queue_room(queue, (kueue.queues or {}).values(), ever=True)
    over = next((found for part in asked.parts if (found := _over(part, room, local))), None)
    if over is None and len(asked.parts) > 1:  # pods that are not alike may have different flavors
        over = _over(_as_one(asked.parts), _all_flavors(room), local)
    if over is not None:
        name, message = over
        yield Finding(
            level="error",
            code="over_quota",
            message=message,
            hint="request less, or use another queue; see: hpj queues",
            field=asked.field(_field(name)),
        )


def _over(wanted: WhatIfRequest, room: QueueRoom, local: LocalQueueRow) -> tuple[str, str] | None:
    """Of which resource pods ask for more than a queue can ever give, and the sentence for it; None when they do not."""
    if room.nodes(wanted.each) >= wanted.nodes:
        return None
    # Of the flavor that gives most, what of it is too little.
    best = max(room.by_flavor.values(), key=lambda most: _share(wanted, most))
    for name, amount in wanted.each.items():
        most = best.get(name)
        if most is None and amount:
            return (
                name,
                f"the queue {local.name} has no quota for {name}, so a run that requests it never starts",
            )
        if most is not None and amount * wanted.nodes > most:
            return (
                name,
                (
                    f"it requests {shown_amount(name, amount * wanted.nodes)} in total, but the queue {local.name} can provide at most "
                    f"{shown_amount(name, most)}, including borrowed quota: the run would wait forever"
                ),
            )
    return None


def _as_one(parts: Sequence[WhatIfRequest]) -> WhatIfRequest:
    """All pods as if they were one."""
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.each.items():
            total[name] = total.get(name, 0) + amount * part.nodes
    return WhatIfRequest(1, total, {})


def _all_flavors(room: QueueRoom) -> QueueRoom:
    """What all flavors can give together, as if they were one."""
    total: dict[str, int] = {}
    for flavor in room.by_flavor.values():
        for name, amount in flavor.items():
            total[name] = total.get(name, 0) + amount
    return QueueRoom({"": total})


def _share(wanted: WhatIfRequest, most: Mapping[str, int]) -> float:
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


def _priority(asked: RequestedResources, known: Known) -> Iterator[Finding]:
    """A workload's priority class; without a queue the priority is that of the pods, which the dry run looks at."""
    if asked.priority is None or asked.queue is None or known.priorities is None:
        return
    if asked.priority not in known.priorities:
        yield Finding(
            level="error",
            code="unknown_priority",
            message=f"the cluster has no priority class '{asked.priority[:60]}' for jobs in queues",
            hint=nearest_hint(asked.priority[:60], known.priorities),
            field=asked.field("priority"),
        )


def _nodes(asked: RequestedResources, nodes: Sequence[NodeFacts] | None) -> Iterator[Finding]:
    found = (never_on_nodes(part, nodes or ()) for part in asked.parts)
    never = next((one for one in found if one is not None), None)
    if never is None:
        return
    of = _field(never.resource or "") if never.label is None else LABEL_FIELDS.get(never.label)
    yield Finding(
        level="warning" if never.may_come else "error",
        code="too_large" if never.label is None else "no_such_node",
        message=f"{never.words}: the run waits until one is added"
        if never.may_come
        else f"{never.words}: the run would wait forever",
        hint="see: hpj nodes",
        field=asked.field(of),
    )
