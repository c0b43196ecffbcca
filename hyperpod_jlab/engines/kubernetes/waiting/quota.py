"""Whether a run can ever start: its queue, the queue's quota, its priority class, and whether any node is large enough."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError, nearest_hint
from hyperpod_jlab.core.finding import Finding, unused_gpus
from hyperpod_jlab.core.instance_types import InstanceType
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.kinds.choice import find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import PRIORITY_LABEL, QUEUE_LABEL, find_labels
from hyperpod_jlab.engines.kubernetes.submit.render import LABEL_FIELDS, node_selector
from hyperpod_jlab.engines.kubernetes.submit.resources import GPU, milli, resources
from hyperpod_jlab.engines.kubernetes.tables.jobs import list_pod_groups
from hyperpod_jlab.engines.kubernetes.tables.kueue import ClusterQueueRow, KueueSnapshot, LocalQueueRow, closed_reason
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.what_if import (
    QueueHeadroom,
    QuotaRequest,
    compute_headroom,
    find_infeasible,
    format_amount,
)

# --------------------------------------------------------------------------------------------------
# What a run requests from queues and nodes, from its spec or a user's own manifest. Pure.


@dataclass(frozen=True)
class RequestedResources:
    """What a run requests.

    Attributes:
        parts: Its pods, identical ones grouped.
        queue: The local queue.
        priority: The priority class.
        manifest: Whether it comes from a user's own manifest, which is then the place to change it.
    """

    parts: tuple[QuotaRequest, ...]
    queue: str | None
    priority: str | None
    manifest: bool = False

    def field(self, name: str | None) -> str | None:
        """The spec field of a finding; `name` is the field of a spec without a manifest."""
        return "source" if self.manifest else name

    @property
    def without_queue_note(self) -> str:
        """How to use no queue."""
        if self.manifest:
            return f"remove the label {QUEUE_LABEL} from the manifest"
        return "leave out --queue"


def requested_by_spec(spec: JobSpec, instance_type: InstanceType | None, *, hyperpod: bool) -> RequestedResources:
    """A spec's requests, with the facts about its instance type; on HyperPod for healthy nodes."""
    amounts = {name: milli(text) for name, text in resources(spec, instance_type).items()}
    what_if_request = QuotaRequest(spec.resources.nodes, amounts, node_selector(spec, hyperpod=hyperpod))
    return RequestedResources((what_if_request,), spec.queue, spec.priority)


def requested_by_manifest(document: Mapping[str, Any]) -> RequestedResources:
    """A manifest's requests."""
    kind = find_kind(document)
    parts = list_pod_groups(kind, document.get("spec") or {}) if kind is not None else []
    labels = find_labels(document)
    return RequestedResources(
        tuple(QuotaRequest(part.pods, dict(part.per_pod), dict(part.selector)) for part in parts),
        labels.get(QUEUE_LABEL),
        labels.get(PRIORITY_LABEL),
        manifest=True,
    )


@dataclass(frozen=True)
class QuotaContext:
    """Facts about a cluster; None for what is not readable.

    Attributes:
        namespace: The run's namespace.
        kueue: The queues; None without Kueue.
        priorities: The workload priority classes.
        nodes: The nodes.
    """

    namespace: str
    kueue: KueueSnapshot | None
    priorities: Mapping[str, int] | None
    nodes: Sequence[NodeFacts] | None


async def capacity_findings(
    tables: KubernetesTables, spec: JobSpec, context: InstanceType | None, *, hyperpod: bool
) -> list[Finding]:
    """Findings of the cluster's queues and nodes about a spec; what is not readable is skipped.

    Args:
        tables: The cluster.
        spec: The spec; for one submitted unchanged, use `manifest_findings`.
        context: Facts about its instance type.
        hyperpod: Whether it is a HyperPod cluster, whose runs require healthy nodes.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    if spec.source.kind == "native":
        return []
    namespace = spec.kubernetes.namespace or tables.list_cache.namespace
    return await _findings(tables, namespace, requested_by_spec(spec, context, hyperpod=hyperpod))


async def manifest_findings(tables: KubernetesTables, document: Mapping[str, Any]) -> list[Finding]:
    """The same for a user's own manifest that the API server would accept.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    return await _findings(tables, str(document["metadata"]["namespace"]), requested_by_manifest(document))


async def _findings(tables: KubernetesTables, namespace: str, requested: RequestedResources) -> list[Finding]:
    try:
        kueue, priorities, nodes = await asyncio.gather(
            tables.kueue.load(), tables.kueue.priority_classes(), tables.list_cache.everywhere(NODES, node_facts)
        )
    except UnreachableError:
        raise
    except HyperpodError:
        return []
    return findings(requested, QuotaContext(namespace, kueue, priorities, nodes.rows))


def findings(requested: RequestedResources, context: QuotaContext) -> list[Finding]:
    """The findings from known facts. Pure."""
    results = list(_queue(requested, context))
    results += _priority(requested, context)
    results += _nodes(requested, context.nodes)
    return results or list(_unused_gpus(requested, context.nodes or ()))


def _unused_gpus(requested: RequestedResources, nodes: Sequence[NodeFacts]) -> Iterator[Finding]:
    if requested.manifest or any(part.accelerator for part in requested.parts):
        return
    candidates = [
        node for node in nodes if all(part.labels.items() <= dict(node.labels).items() for part in requested.parts)
    ]
    counts = [dict(node.allocatable).get(GPU, 0) // 1000 for node in candidates]
    if counts and min(counts) > 0:
        models = {node.model for node in candidates if node.model is not None}
        yield unused_gpus("the nodes", models, max(counts))


def _queue(requested: RequestedResources, context: QuotaContext) -> Iterator[Finding]:
    if requested.queue is None or context.kueue is None:
        if requested.queue is not None:
            yield Finding(
                level="warning",
                code="no_kueue",
                message=f"the cluster has no queues (Kueue is not installed), so the queue {requested.queue} has no effect",
                hint=requested.without_queue_note,
                field=requested.field("queue"),
            )
        return
    local = context.kueue.local(context.namespace, requested.queue)
    if local is None:
        yield from _unknown_queue(requested, requested.queue, context, context.kueue)
        return
    queue = context.kueue.cluster_queue_of(local)
    closed = closed_reason(local, queue)
    if closed is not None:
        yield Finding(
            level="warning",
            code="queue_closed",
            message=f"the queue {local.name} starts no jobs now: {closed}",
            hint="use another queue with --queue; list queues with: hpj queues",
            field=requested.field("queue"),
        )
    if queue is not None:
        yield from _quota(requested, local, queue, context.kueue)


def _unknown_queue(
    requested: RequestedResources, name: str, context: QuotaContext, kueue: KueueSnapshot
) -> Iterator[Finding]:
    own_queues = [local_queue.name for local_queue in kueue.local_queues if local_queue.namespace == context.namespace]
    missing_permission = kueue.missing_permission_in(context.namespace)
    if missing_permission is not None:
        yield Finding(
            level="warning",
            code="unchecked_queue",
            message=f"whether the namespace {context.namespace} has a queue '{name[:60]}' could not be checked: you do not have the "
            f"permission to {missing_permission}",
            hint="without such a queue the run waits forever: ask your cluster administrator for its name or for that permission",
            field=requested.field("queue"),
        )
        return
    yield Finding(
        level="error",
        code="unknown_queue",
        message=f"queue '{name[:60]}' not found in the namespace {context.namespace}: the run would wait forever",
        hint=nearest_hint(name[:60], own_queues) or f"{requested.without_queue_note}: the namespace has no queues",
        field=requested.field("queue"),
    )


def _quota(
    requested: RequestedResources, local: LocalQueueRow, queue: ClusterQueueRow, kueue: KueueSnapshot
) -> Iterator[Finding]:
    """A request above the queue's maximum: its own quota and what it may borrow."""
    if not queue.quotas:
        return
    headroom = compute_headroom(queue, (kueue.queues or {}).values(), ignore_usage=True)
    excess = next(
        (excess_text for part in requested.parts if (excess_text := _find_excess(part, headroom, local))), None
    )
    if excess is None and len(requested.parts) > 1:  # different pods may have different flavors
        excess = _find_excess(_merge_parts(requested.parts), _merge_flavors(headroom), local)
    if excess is not None:
        name, message = excess
        yield Finding(
            level="error",
            code="over_quota",
            message=message,
            hint="request less, or use another queue; list queues with: hpj queues",
            field=requested.field(_field(name)),
        )


def _find_excess(
    what_if_request: QuotaRequest, headroom: QueueHeadroom, local: LocalQueueRow
) -> tuple[str, str] | None:
    """The resource of which pods request more than a queue can ever give, and its sentence; None without one."""
    if headroom.nodes(what_if_request.per_pod) >= what_if_request.nodes:
        return None
    # What is insufficient in the flavor that gives most.
    best_flavor = max(headroom.by_flavor.values(), key=lambda available: _capacity_share(what_if_request, available))
    for name, quantity in what_if_request.per_pod.items():
        available = best_flavor.get(name)
        if available is None and quantity:
            return (name, f"the queue {local.name} has no quota for {name}, so a run that requests it never starts")
        if available is not None and quantity * what_if_request.nodes > available:
            return (
                name,
                (
                    f"it requests {format_amount(name, quantity * what_if_request.nodes)} in total, but the queue {local.name} can provide at most "
                    f"{format_amount(name, available)}, including borrowed quota: the run would wait forever"
                ),
            )
    return None


def _merge_parts(parts: Sequence[QuotaRequest]) -> QuotaRequest:
    """All pods as one request."""
    total: dict[str, int] = {}
    for part in parts:
        for name, quantity in part.per_pod.items():
            total[name] = total.get(name, 0) + quantity * part.nodes
    return QuotaRequest(1, total, {})


def _merge_flavors(headroom: QueueHeadroom) -> QueueHeadroom:
    """The maximum of all flavors together, as one flavor."""
    total: dict[str, int] = {}
    for flavor in headroom.by_flavor.values():
        for name, quantity in flavor.items():
            total[name] = total.get(name, 0) + quantity
    return QueueHeadroom({"": total})


def _capacity_share(what_if_request: QuotaRequest, available: Mapping[str, int]) -> float:
    shares = [
        available.get(name, 0) / (quantity * what_if_request.nodes)
        for name, quantity in what_if_request.per_pod.items()
        if quantity
    ]
    return min(shares, default=1.0)


def _field(resource: str) -> str:
    return {"cpu": "resources.cpus", "memory": "resources.memory"}.get(resource, "resources.gpus_per_node")


def _priority(requested: RequestedResources, context: QuotaContext) -> Iterator[Finding]:
    """A workload's priority class; without a queue the priority is that of the pods, which the dry run checks."""
    if requested.priority is None or requested.queue is None or context.priorities is None:
        return
    if requested.priority not in context.priorities:
        yield Finding(
            level="error",
            code="unknown_priority",
            message=f"the cluster has no priority class '{requested.priority[:60]}' for jobs in queues",
            hint=nearest_hint(requested.priority[:60], context.priorities),
            field=requested.field("priority"),
        )


def _nodes(requested: RequestedResources, nodes: Sequence[NodeFacts] | None) -> Iterator[Finding]:
    results = (find_infeasible(part, nodes or ()) for part in requested.parts)
    infeasible = next((result for result in results if result is not None), None)
    if infeasible is None:
        return
    field = _field(infeasible.resource or "") if infeasible.label is None else LABEL_FIELDS.get(infeasible.label)
    yield Finding(
        level="warning" if infeasible.may_be_added else "error",
        code="too_large" if infeasible.label is None else "no_such_node",
        message=f"{infeasible.message}: the run waits until one is added"
        if infeasible.may_be_added
        else f"{infeasible.message}: the run would wait forever",
        hint="list nodes with: hpj nodes",
        field=requested.field(field),
    )
