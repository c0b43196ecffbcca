"""How many pods of a run would fit now, on the nodes and in the queue's quota, and whether one ever does. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.core.cluster import UNUSABLE, Blocker, Holder, StartNow
from hyperpod_jlab.engines.kubernetes.submit.render import HEALTH
from hyperpod_jlab.engines.kubernetes.tables.devices import computes, split_name
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobFacts
from hyperpod_jlab.engines.kubernetes.tables.kueue import ClusterQueueRow, available
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, group_by_node, sum_pod_requests

_UNLIMITED = 1_000_000
_MAX_BLOCKERS = 20

_AUTOSCALER_LABELS = ("karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool")
"""Labels of nodes that an autoscaler adds and removes: more may be added."""


@dataclass(frozen=True)
class QuotaRequest:
    """What a run requests.

    Attributes:
        nodes: The number of pods, one per node.
        per_pod: The requests of each, in thousandths.
        labels: The required node labels.
    """

    nodes: int
    per_pod: Mapping[str, int]
    labels: Mapping[str, str]

    @property
    def accelerator(self) -> str | None:
        """The name of the requested accelerators."""
        return next((name for name in self.per_pod if computes(name)), None)

    def with_accelerators(self, count: int) -> dict[str, int]:
        """Each pod's requests with another number of accelerators."""
        name = self.accelerator
        return {**self.per_pod, **({name: count * 1000} if name is not None else {})}


def fits(per_pod: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Whether the amounts are available."""
    return all(free.get(name, 0) >= quantity for name, quantity in per_pod.items())


def free_nodes(nodes: Iterable[NodeFacts], pods: Iterable[PodRow], labels: Mapping[str, str]) -> list[dict[str, int]]:
    """The free resources of each node that accepts pods and has these labels."""
    pods_by_node = group_by_node(pods)
    free_by_node = []
    for node in nodes:
        node_pods = pods_by_node.get(node.name, [])
        if node.tainted or node.state(node_pods).label in UNUSABLE or not _matches(node, labels):
            continue
        used_amounts = sum_pod_requests(node_pods)
        free_by_node.append({name: quantity - used_amounts.get(name, 0) for name, quantity in node.allocatable})
    return free_by_node


def _matches(node: NodeFacts, labels: Mapping[str, str]) -> bool:
    node_labels = dict(node.labels)
    return all(node_labels.get(name) == value for name, value in labels.items())


@dataclass(frozen=True)
class Infeasible:
    """Why no existing node can run a pod, even an empty node.

    Attributes:
        message: The cause, as the beginning of a sentence.
        may_be_added: Whether a suitable node may be added: to an instance group, or by an
            autoscaler.
        label: The label that no node has, if that is the cause.
        resource: The resource of which no node has enough, if that is the cause.
    """

    message: str
    may_be_added: bool
    label: str | None = None
    resource: str | None = None


def find_infeasible(request: QuotaRequest, nodes: Sequence[NodeFacts]) -> Infeasible | None:
    """Why no node can ever run a pod of the run; None when one can, or when nodes are unknown.

    Node health is ignored, because an unhealthy node may recover.
    """
    if not nodes:
        return None
    labels = {name: value for name, value in request.labels.items() if name != HEALTH}
    matching_nodes = [node for node in nodes if _matches(node, labels)]
    if not matching_nodes:
        return _no_matching_node(labels, nodes)
    if any(fits(request.per_pod, dict(node.allocatable)) for node in matching_nodes):
        return None
    has_autoscaler = any(name in dict(node.labels) for node in nodes for name in _AUTOSCALER_LABELS)
    missing_resource = find_missing_resource(request, matching_nodes)
    if missing_resource is None:
        return Infeasible("no node has all resources that it requests per node", has_autoscaler)
    name, max_available = missing_resource
    node_labels = f"no node has more than {format_amount(name, max_available)}" if max_available else "no node has any"
    requested_text = format_amount(name, request.per_pod[name])
    return Infeasible(f"it requests {requested_text} on each node, but {node_labels}", has_autoscaler, resource=name)


def _no_matching_node(labels: Mapping[str, str], nodes: Sequence[NodeFacts]) -> Infeasible:
    """The cause for a label that no node has; if each label is on some node, for all of them together."""
    missing_labels = {
        name: value for name, value in labels.items() if not any(dict(node.labels).get(name) == value for node in nodes)
    }
    labels_text = ", ".join(f"{name}={value}" for name, value in (missing_labels or labels).items())
    label_noun = "labels" if len(missing_labels or labels) > 1 else "label"
    return Infeasible(
        f"no node has the {label_noun} {labels_text}", may_be_added=True, label=next(iter(missing_labels or labels))
    )


def find_missing_resource(request: QuotaRequest, nodes: Sequence[NodeFacts]) -> tuple[str, int] | None:
    """The first resource of which no node has as much as a pod requests, and the largest amount on one node; None when some node has each."""
    for name, quantity in request.per_pod.items():
        max_available = max((dict(node.allocatable).get(name, 0) for node in nodes), default=0)
        if max_available < quantity:
            return name, max_available
    return None


def format_amount(name: str, thousandths: int) -> str:
    """Format an amount: ``8 GPUs``, ``64.0 GiB of memory``, ``1.5 CPUs``."""
    if name == "memory":
        return f"{thousandths / 1000 / 2**30:.4g} GiB of memory"
    number = f"{thousandths / 1000:g}"
    if name == "cpu":
        return f"{number} CPU" if number == "1" else f"{number} CPUs"
    base_name, kind = split_name(name)
    if base_name == "gpu":
        gpus = "GPU" if number == "1" else "GPUs"
        return f"{number} {gpus}" if kind is None else f"{number} {gpus} ({kind})"
    return f"{number} {name}"


@dataclass(frozen=True)
class QueueHeadroom:
    """What a queue can give a new job now, by flavor, in thousandths; resources without quota are not counted."""

    by_flavor: Mapping[str, Mapping[str, int]]

    def nodes(self, per_pod: Mapping[str, int]) -> int:
        """The number of pods with these requests that fit, all in one flavor."""
        return max((_max_count(free, per_pod) for free in self.by_flavor.values()), default=0)


def _max_count(free: Mapping[str, int], per_pod: Mapping[str, int]) -> int:
    counts = [free.get(name, 0) // quantity for name, quantity in per_pod.items() if quantity]
    return min(counts, default=_UNLIMITED)


def compute_headroom(
    queue: ClusterQueueRow, queues: Iterable[ClusterQueueRow], *, ignore_usage: bool = False
) -> QueueHeadroom:
    """What a cluster queue can give now or, with `ignore_usage`, when it is empty."""
    all_queues = list(queues)
    free_by_flavor: dict[str, dict[str, int]] = {}
    for quota in queue.quotas:
        free, max_available = available(queue, quota, all_queues)
        free_by_flavor.setdefault(quota.flavor, {})[quota.resource] = max_available if ignore_usage else free
    return QueueHeadroom(free_by_flavor)


@dataclass(frozen=True)
class Alternatives:
    """What would start now instead, and how many alternatives were checked."""

    changes: tuple[StartNow, ...]
    try_count: int


def smaller(
    request: QuotaRequest, free: Sequence[Mapping[str, int]] | None, queue: QueueHeadroom | None
) -> Alternatives:
    """The largest number of nodes that fits now, else the largest number of accelerators in all.

    Args:
        request: The run.
        free: The free resources of each node; None when unknown.
        queue: What its queue can give; None without one, or when unknown.
    """
    if free is None and queue is None:
        return Alternatives((), 0)

    def max_nodes(per_pod: Mapping[str, int]) -> int:
        nodes_by_capacity = sum(fits(per_pod, node_free) for node_free in free) if free is not None else _UNLIMITED
        return min(nodes_by_capacity, queue.nodes(per_pod) if queue is not None else _UNLIMITED)

    count = max_nodes(request.per_pod)
    if count >= request.nodes:
        return Alternatives((), 0)  # there is capacity: it starts soon, or waits for something else
    if count >= 1:
        noun = "node" if count == 1 else "nodes"
        text = f"with {count} {noun} instead of {request.nodes} (--nodes {count})"
        return Alternatives((StartNow(text, nodes=count),), 1)
    try_count = int(request.nodes > 1)
    name = request.accelerator
    node_labels = request.per_pod.get(name or "", 0) // 1000
    fitting: list[tuple[int, int]] = []  # nodes, accelerators on each
    for fewer in range(node_labels - 1, 0, -1):
        try_count += 1
        count = min(request.nodes, max_nodes(request.with_accelerators(fewer)))
        if count >= 1:
            fitting.append((count, fewer))
    if not fitting:
        return Alternatives((), try_count)
    count, fewer = max(fitting, key=math.prod)
    noun = "accelerator" if fewer == 1 else "accelerators"
    text = f"{fewer} {noun} on each node instead of {node_labels}"
    if count == request.nodes:
        change = StartNow(f"with {text} (--gpus-per-node {fewer})", gpus_per_node=fewer)
    else:
        nodes_text = f"with {count} {'node' if count == 1 else 'nodes'} instead of {request.nodes}"
        options = f"--nodes {count} --gpus-per-node {fewer}"
        change = StartNow(f"{nodes_text} and {text} ({options})", nodes=count, gpus_per_node=fewer)
    return Alternatives((change,), try_count)


def _holding_pods(pods: Iterable[PodRow], resource: str | None) -> Iterator[tuple[PodRow, str, int]]:
    """Pods that hold accelerators (of this name, if given), or at least a node: each with that node and its accelerators.

    The nodes' own pods are left out.
    """
    for pod in pods:
        if pod.node is None or pod.is_node_pod:
            continue
        devices = sum(
            quantity // 1000
            for name, quantity in pod.requests
            if (name == resource if resource is not None else computes(name))
        )
        if resource is None or devices:
            yield pod, pod.node, devices


def find_holders(pods: Iterable[PodRow], resource: str | None) -> tuple[Holder, ...]:
    """The users whose pods hold accelerators (of this name, if given), or at least nodes, largest first."""
    totals_by_owner: dict[str, tuple[int, set[str], set[str]]] = {}
    for pod, node, devices in _holding_pods(pods, resource):
        device_count, nodes, jobs = totals_by_owner.setdefault(pod.owner, (0, set(), set()))
        nodes.add(node)
        jobs.add(f"{pod.namespace}/{pod.job or pod.name}")
        totals_by_owner[pod.owner] = (device_count + devices, nodes, jobs)
    holders = [
        Holder(user, accelerators=devices, nodes=len(nodes), jobs=len(jobs))
        for user, (devices, nodes, jobs) in totals_by_owner.items()
    ]
    return tuple(sorted(holders, key=lambda holder: (-holder.accelerators, -holder.nodes, holder.user)))


def find_blockers(pods: Iterable[PodRow], resource: str | None, jobs: Iterable[JobFacts]) -> tuple[Blocker, ...]:
    """The same job by job; a pod without a job counts as one."""
    facts = {(job.namespace, job.kind.lower(), job.name): job for job in jobs}
    pods_by_job: dict[tuple[str, str, str], list[tuple[PodRow, str, int]]] = {}
    for pod, node, devices in _holding_pods(pods, resource):
        key = (pod.namespace, pod.kind, pod.job or pod.name)
        pods_by_job.setdefault(key, []).append((pod, node, devices))
    return sort_blockers(
        describe_blocker(
            facts.get(key),
            job=f"{key[0]}/{key[2]}",
            name=key[2],
            user=holding[0][0].owner,
            nodes=len({node for _, node, _ in holding}),
            accelerators=sum(devices for _, _, devices in holding),
        )
        for key, holding in pods_by_job.items()
    )


def describe_blocker(
    facts: JobFacts | None, *, job: str, name: str, user: str, nodes: int, accelerators: int
) -> Blocker:
    """A job that holds what a run waits for, with the facts of its object if they are known."""
    blocker = Blocker(job, name, user, nodes=nodes, accelerators=accelerators)
    if facts is None:
        return blocker
    ends_at = None
    if facts.started_at is not None and facts.time_limit is not None:
        ends_at = facts.started_at + facts.time_limit
    return replace(blocker, name=facts.title or name, run_id=facts.run_id, ends_at=ends_at)


def sort_blockers(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """The first to end first, then the largest; at most `_MAX_BLOCKERS`."""

    def key(blocker: Blocker) -> tuple[float, int, str]:
        ends_at = math.inf if blocker.ends_at is None else blocker.ends_at
        return ends_at, -blocker.accelerators, blocker.job

    return tuple(sorted(blockers, key=key)[:_MAX_BLOCKERS])
