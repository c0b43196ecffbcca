"""The node table, from facts about each node and its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cluster import UNUSABLE, Node
from hyperpod_jlab.engines.kubernetes.api.pod_state import parse_timestamp
from hyperpod_jlab.engines.kubernetes.kinds.kind import CORDON_ANNOTATION
from hyperpod_jlab.engines.kubernetes.submit.resources import milli, to_units
from hyperpod_jlab.engines.kubernetes.tables.devices import find_model, resources
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, group_by_node, job_names, sum_pod_requests

# --------------------------------------------------------------------------------------------------
# A node's conditions, taints and labels as one of our states and a sentence. Pure.

HEALTH_LABEL = "sagemaker.amazonaws.com/node-health-status"
DEEP_CHECK_LABEL = "sagemaker.amazonaws.com/deep-health-check-status"
FAULT_LABELS = ("sagemaker.amazonaws.com/fault-types", "sagemaker.amazonaws.com/fault-reasons")
"""Labels of HyperPod's nodes (research, aws.md 2.6)."""

_HEALTH = {
    "Unschedulable": ("failed", "HyperPod found a fault in it"),
    "UnschedulablePendingReplacement": ("failed", "HyperPod replaces it"),
    "UnschedulablePendingReboot": ("rebooting", "HyperPod restarts it"),
}

_DEEP_CHECK = {
    "InProgress": ("maintenance", "HyperPod's deep health check runs on it"),
    "Failed": ("failed", "it did not pass HyperPod's deep health check"),
}

_TERMINATION_TAINTS = {
    "node.kubernetes.io/out-of-service": "it is out of service",
    "karpenter.sh/disrupted": "Karpenter is removing it",
    "karpenter.sh/disruption": "Karpenter is removing it",
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler is removing it",
    "DeletionCandidateOfClusterAutoscaler": "the cluster autoscaler may remove it",
}
"""Taints of terminating nodes."""

_SOFT = frozenset({"DeletionCandidateOfClusterAutoscaler"})
"""Taints that repel no pod."""

_STARTING = frozenset(
    {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "fsx.csi.aws.com/agent-not-ready",
        "karpenter.sh/unregistered",
    }
)
"""Taints of a node until all of its system pods run."""

_PRESSURE = {
    "MemoryPressure": "it is low on memory",
    "DiskPressure": "it is low on disk space",
    "PIDPressure": "it is low on process ids",
    "NetworkUnavailable": "its network is not available",
}

_NODE_TAINT_PREFIX = "node.kubernetes.io/"
"""Prefix of Kubernetes' own taints, which duplicate conditions."""

_MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class NodeState:
    """One of `hyperpod_jlab.core.cluster.NODE_STATES`, its reason, since when (Kubernetes' time format), and its source."""

    label: str
    reason: str | None = None
    since: str | None = None
    set_by: str | None = None


def node_state(node: Mapping[str, Any], *, busy: bool) -> NodeState:
    """The state of a node.

    Args:
        node: The object.
        busy: Whether it has pods that a drain would evict.
    """
    meta, spec = node["metadata"], node.get("spec") or {}
    taints: Sequence[Mapping[str, Any]] = spec.get("taints") or []
    labels = meta.get("labels") or {}
    conditions = {str(condition["type"]): condition for condition in (node.get("status") or {}).get("conditions") or []}
    if meta.get("deletionTimestamp"):
        return NodeState("powering-off", "it is being removed", meta["deletionTimestamp"])
    states = [
        *_from_ready(conditions, taints),
        *_from_hyperpod(labels),
        *_from_cordon(spec, taints, busy, (meta.get("annotations") or {}).get(CORDON_ANNOTATION)),
        *_from_pressure(conditions),
    ]
    if states:
        return states[0]
    return NodeState("up", _limits(conditions, taints))


def _from_ready(
    conditions: Mapping[str, Mapping[str, Any]], taints: Sequence[Mapping[str, Any]]
) -> Iterator[NodeState]:
    ready_condition = conditions.get("Ready")
    starting = [str(taint["key"]) for taint in taints if taint["key"] in _STARTING]
    if ready_condition is None:
        yield NodeState("starting", "its kubelet has not reported yet")
        return
    since = ready_condition.get("lastTransitionTime")
    message = str(ready_condition.get("message") or ready_condition.get("reason") or "")[:_MAX_TEXT]
    if ready_condition.get("status") == "Unknown":
        yield NodeState("not-answering", "its kubelet stopped reporting: the node or its network is down", since)
    elif ready_condition.get("status") != "True":
        yield NodeState("down", f"it is not ready: {message}" if message else "it is not ready", since)
    elif starting:
        yield NodeState("starting", f"its system pods are still starting ({', '.join(starting)})")


def _from_hyperpod(labels: Mapping[str, str]) -> Iterator[NodeState]:
    health = _HEALTH.get(labels.get(HEALTH_LABEL, ""))
    deep = _DEEP_CHECK.get(labels.get(DEEP_CHECK_LABEL, ""))
    faults = "; ".join(labels[name] for name in FAULT_LABELS if labels.get(name))
    # During the deep check HyperPod also reports a node as unschedulable; the check is more
    # specific.
    deep_check_running = deep is not None and deep[0] == "maintenance"
    for state in (deep, health) if deep_check_running else (health, deep):
        if state is not None:
            label, reason = state
            yield NodeState(label, f"{reason}: {faults}" if faults else reason, set_by="HyperPod")


def _from_cordon(
    spec: Mapping[str, Any], taints: Sequence[Mapping[str, Any]], busy: bool, cordon_reason: str | None
) -> Iterator[NodeState]:
    termination_reasons = [
        taint
        for taint in taints
        if taint["key"] in _TERMINATION_TAINTS and taint["key"] not in _SOFT and taint.get("effect") != _PREFER
    ]
    label = "draining" if busy else "drained"
    if termination_reasons:
        yield NodeState(
            label, _TERMINATION_TAINTS[termination_reasons[0]["key"]], termination_reasons[0].get("timeAdded")
        )
    if spec.get("unschedulable"):
        added = [taint for taint in taints if taint["key"] == "node.kubernetes.io/unschedulable"]
        since = added[0].get("timeAdded") if added else None
        text = "it is cordoned and accepts no new pods"
        yield NodeState(label, f"{text} ({cordon_reason[:_MAX_TEXT]})" if cordon_reason else text, since)


def _from_pressure(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[NodeState]:
    for name, text in _PRESSURE.items():
        state = conditions.get(name)
        if state is not None and state.get("status") == "True":
            yield NodeState("failing", f"{text}, so it accepts no new pods", state.get("lastTransitionTime"))


_PREFER = "PreferNoSchedule"


def _limits(conditions: Mapping[str, Mapping[str, Any]], taints: Sequence[Mapping[str, Any]]) -> str | None:
    """Notes on a node that accepts pods: its restrictions, and findings of other monitors."""
    parts = []
    blocking_taints = [format_taint(taint) for taint in taints if blocks_pods(taint)]
    if blocking_taints:
        parts.append(f"only for pods that tolerate {', '.join(blocking_taints)}")
    parts += [
        f"{name} is {condition.get('status')}: {str(condition.get('message') or '')[:_MAX_TEXT]}".rstrip(": ")
        for name, condition in conditions.items()
        if name not in _PRESSURE and name != "Ready" and _is_fault(name, condition)
    ]
    return "; ".join(parts) or None


def blocks_pods(taint: Mapping[str, Any]) -> bool:
    """Whether a user's taint repels pods that do not tolerate it."""
    key = str(taint["key"])
    return taint.get("effect") != _PREFER and not key.startswith(_NODE_TAINT_PREFIX) and key not in _SOFT


def format_taint(taint: Mapping[str, Any]) -> str:
    """A taint as kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect', '')}"


def _is_fault(name: str, condition: Mapping[str, Any]) -> bool:
    """Third-party conditions: those named ready are good when True (EKS' node agent), the others are faults (node problem detector)."""
    return condition.get("status") == ("False" if name.endswith("Ready") else "True")


_INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_INSTANCE_GROUP = ("sagemaker.amazonaws.com/instance-group-name", "eks.amazonaws.com/nodegroup")
_SHOWN_LABELS = (
    "topology.kubernetes.io/zone",
    "eks.amazonaws.com/capacityType",
    "karpenter.sh/capacity-type",
    "topology.k8s.aws/ultraserver-id",
    "topology.k8s.aws/network-node-layer-3",
)
"""Labels whose values are useful to users (research, aws.md 2.6)."""


_TOLERATED = frozenset({"nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa"})
"""Taints that clusters add to nodes with accelerators, and whose tolerations they add to pods (admission plugin ExtendedResourceToleration)."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node.

    Attributes:
        idle: Its state without pods that a drain would evict.
        busy: Its state with such pods.
        allocatable: The allocatable resources in thousandths, by Kubernetes name.
        features: Features from its labels.
        labels: All labels.
        tainted: Whether it requires a special toleration; pods with accelerators are assumed to
            tolerate the taints of accelerator nodes.
    """

    name: str
    idle: NodeState
    busy: NodeState
    allocatable: tuple[tuple[str, int], ...]
    model: str | None
    features: tuple[str, ...]
    instance_type: str | None
    instance_group: str | None
    labels: tuple[tuple[str, str], ...]
    tainted: bool

    def state(self, pods: Iterable[PodRow]) -> NodeState:
        """Its state with these pods."""
        return self.busy if any(not pod.is_node_pod for pod in pods) else self.idle


def node_facts(node: Mapping[str, Any]) -> NodeFacts:
    """Facts from a node's object."""
    meta = node["metadata"]
    labels: Mapping[str, str] = meta.get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    idle = node_state(node, busy=False)
    # Only a draining state depends on the pods.
    busy = node_state(node, busy=True) if idle.label == "drained" else idle
    instance_type = _first_label(labels, _INSTANCE_TYPE)
    return NodeFacts(
        name=str(meta["name"]),
        idle=idle,
        busy=busy,
        allocatable=tuple((name, milli(text)) for name, text in allocatable.items()),
        model=find_model(labels, instance_type),
        features=tuple(dict.fromkeys(labels[name] for name in _SHOWN_LABELS if labels.get(name))),
        instance_type=instance_type,
        instance_group=_first_label(labels, _INSTANCE_GROUP),
        labels=tuple(labels.items()),
        tainted=any(
            blocks_pods(taint) and str(taint["key"]) not in _TOLERATED
            for taint in (node.get("spec") or {}).get("taints") or []
        ),
    )


def _first_label(labels: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


class NodeRows:
    """Builds node rows, and reuses those of nodes with unchanged facts and pods."""

    def __init__(self) -> None:
        self._cached_rows: dict[str, tuple[NodeFacts, Sequence[PodRow] | None, Node]] = {}

    @without_collections()
    def convert(self, nodes: Iterable[NodeFacts], pods: Iterable[PodRow] | None, namespace: str) -> list[Node]:
        """The rows of the node table. The first call may be slow.

        Args:
            nodes: The nodes.
            pods: The pods of all namespaces; None when they are not readable, so that free
                resources are unknown.
            namespace: The namespace of this cluster's runs.
        """
        pods_by_node = group_by_node(pods or ())
        cached_rows: dict[str, tuple[NodeFacts, Sequence[PodRow] | None, Node]] = {}
        for node in nodes:
            node_pods = pods_by_node.get(node.name, ()) if pods is not None else None
            cached = self._cached_rows.get(node.name)
            if cached is None or cached[0] is not node or cached[1] != node_pods:
                cached = (node, node_pods, _row(node, node_pods, namespace))
            cached_rows[node.name] = cached
        self._cached_rows = cached_rows
        return [row for _, _, row in cached_rows.values()]


def _row(node: NodeFacts, pods: Sequence[PodRow] | None, namespace: str) -> Node:
    state = node.state(pods or ())
    is_usable = state.label not in UNUSABLE
    available, used = dict(node.allocatable), (sum_pod_requests(pods) if pods is not None else None)
    devices = resources(available, used, is_usable=is_usable, model=node.model)
    accelerators = [device for device in devices if device.accelerator]

    def free(name: str) -> int | None:
        if used is None:
            return None
        return to_units(max(0, available.get(name, 0) - used.get(name, 0))) if is_usable else 0

    return Node(
        name=node.name,
        state=state.label,
        reason=state.reason,
        reason_since=parse_timestamp(state.since),
        reason_by=state.set_by,
        cpus=to_units(available.get("cpu", 0)),
        cpus_free=free("cpu"),
        memory=to_units(available.get("memory", 0)),
        memory_free=free("memory"),
        accelerators=sum(device.total for device in accelerators),
        accelerators_free=sum(device.free for device in accelerators) if used is not None else None,
        accelerator_type=", ".join(sorted({device.label for device in accelerators})) or None,
        resources=devices if used is not None else (),
        features=node.features,
        instance_type=node.instance_type,
        instance_group=node.instance_group,
        jobs=job_names(pods or (), namespace),
    )
