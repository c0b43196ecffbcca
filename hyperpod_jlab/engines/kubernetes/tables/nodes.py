"""Nodes as tables show them, from small facts of each and the pods on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cluster import UNUSABLE, Node
from hyperpod_jlab.engines.kubernetes.api.pod_log import parse_timestamp
from hyperpod_jlab.engines.kubernetes.kinds.kind import CORDON_ANNOTATION
from hyperpod_jlab.engines.kubernetes.submit.resources import milli, to_units
from hyperpod_jlab.engines.kubernetes.tables.devices import find_model, resources
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, by_node, job_names, summed

# --------------------------------------------------------------------------------------------------
# What a node's conditions, taints and labels say, as one of our words and a sentence. Pure.

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

_LEAVING = {
    "node.kubernetes.io/out-of-service": "it is out of service",
    "karpenter.sh/disrupted": "Karpenter is removing it",
    "karpenter.sh/disruption": "Karpenter is removing it",
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler is removing it",
    "DeletionCandidateOfClusterAutoscaler": "the cluster autoscaler may remove it",
}
"""Taints of nodes that end."""

_SOFT = frozenset({"DeletionCandidateOfClusterAutoscaler"})
"""Those that keep no pod away."""

_STARTING = frozenset(
    {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "fsx.csi.aws.com/agent-not-ready",
        "karpenter.sh/unregistered",
    }
)
"""Taints that nodes have until all that belongs on them runs."""

_PRESSURE = {
    "MemoryPressure": "it is low on memory",
    "DiskPressure": "it is low on disk space",
    "PIDPressure": "it is low on process ids",
    "NetworkUnavailable": "its network is not available",
}

_OWN_TAINTS = "node.kubernetes.io/"
"""Beginning of the taints that Kubernetes itself gives, which say the same as conditions."""

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class NodeState:
    """A word of `hyperpod_jlab.core.cluster.NODE_STATES`, why, since when (time as Kubernetes writes it), and who says so."""

    word: str
    reason: str | None = None
    since: str | None = None
    by: str | None = None


def node_state(node: Mapping[str, Any], *, busy: bool) -> NodeState:
    """The state of a node.

    Args:
        node: The object.
        busy: Whether pods run on it that would have to go if it were drained.
    """
    meta, spec = node["metadata"], node.get("spec") or {}
    taints: Sequence[Mapping[str, Any]] = spec.get("taints") or []
    labels = meta.get("labels") or {}
    conditions = {
        str(one["type"]): one for one in (node.get("status") or {}).get("conditions") or []
    }
    if meta.get("deletionTimestamp"):
        return NodeState("powering-off", "it is being removed", meta["deletionTimestamp"])
    found = [
        *_from_ready(conditions, taints),
        *_from_hyperpod(labels),
        *_from_cordon(spec, taints, busy, (meta.get("annotations") or {}).get(CORDON_ANNOTATION)),
        *_from_pressure(conditions),
    ]
    if found:
        return found[0]
    return NodeState("up", _limits(conditions, taints))


def _from_ready(
    conditions: Mapping[str, Mapping[str, Any]], taints: Sequence[Mapping[str, Any]]
) -> Iterator[NodeState]:
    ready = conditions.get("Ready")
    starting = [str(one["key"]) for one in taints if one["key"] in _STARTING]
    if ready is None:
        yield NodeState("starting", "its kubelet has not reported yet")
        return
    since = ready.get("lastTransitionTime")
    said = str(ready.get("message") or ready.get("reason") or "")[:_LONGEST]
    if ready.get("status") == "Unknown":
        yield NodeState(
            "not-answering",
            "its kubelet stopped reporting: the node or its network is down",
            since,
        )
    elif ready.get("status") != "True":
        yield NodeState("down", f"it is not ready: {said}" if said else "it is not ready", since)
    elif starting:
        yield NodeState("starting", f"its system pods are still starting ({', '.join(starting)})")


def _from_hyperpod(labels: Mapping[str, str]) -> Iterator[NodeState]:
    health = _HEALTH.get(labels.get(HEALTH_LABEL, ""))
    deep = _DEEP_CHECK.get(labels.get(DEEP_CHECK_LABEL, ""))
    faults = "; ".join(labels[name] for name in FAULT_LABELS if labels.get(name))
    # While the deep check runs HyperPod calls a node unschedulable too; the check says more.
    running = deep is not None and deep[0] == "maintenance"
    for found in (deep, health) if running else (health, deep):
        if found is not None:
            word, reason = found
            yield NodeState(word, f"{reason}: {faults}" if faults else reason, by="HyperPod")


def _from_cordon(
    spec: Mapping[str, Any], taints: Sequence[Mapping[str, Any]], busy: bool, why: str | None
) -> Iterator[NodeState]:
    leaving = [
        one
        for one in taints
        if one["key"] in _LEAVING and one["key"] not in _SOFT and one.get("effect") != _PREFER
    ]
    word = "draining" if busy else "drained"
    if leaving:
        yield NodeState(word, _LEAVING[leaving[0]["key"]], leaving[0].get("timeAdded"))
    if spec.get("unschedulable"):
        added = [one for one in taints if one["key"] == "node.kubernetes.io/unschedulable"]
        since = added[0].get("timeAdded") if added else None
        words = "it is cordoned and accepts no new pods"
        yield NodeState(word, f"{words} ({why[:_LONGEST]})" if why else words, since)


def _from_pressure(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[NodeState]:
    for name, words in _PRESSURE.items():
        found = conditions.get(name)
        if found is not None and found.get("status") == "True":
            yield NodeState(
                "failing", f"{words}, so it accepts no new pods", found.get("lastTransitionTime")
            )


_PREFER = "PreferNoSchedule"


def _limits(
    conditions: Mapping[str, Mapping[str, Any]], taints: Sequence[Mapping[str, Any]]
) -> str | None:
    """What there is to say of a node that takes pods: which ones only, and what other watchers found."""
    parts = []
    kept = [taint_text(one) for one in taints if keeps_away(one)]
    if kept:
        parts.append(f"only for pods that tolerate {', '.join(kept)}")
    parts += [
        f"{name} is {one.get('status')}: {str(one.get('message') or '')[:_LONGEST]}".rstrip(": ")
        for name, one in conditions.items()
        if name not in _PRESSURE and name != "Ready" and _is_bad(name, one)
    ]
    return "; ".join(parts) or None


def keeps_away(taint: Mapping[str, Any]) -> bool:
    """Whether a taint that somebody gave keeps pods away that do not tolerate it."""
    key = str(taint["key"])
    return taint.get("effect") != _PREFER and not key.startswith(_OWN_TAINTS) and key not in _SOFT


def taint_text(taint: Mapping[str, Any]) -> str:
    """A taint as kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint.get('effect', '')}"


def _is_bad(name: str, condition: Mapping[str, Any]) -> bool:
    """Others' conditions: those that are called ready are good when True (EKS' node agent), the rest are faults (node problem detector)."""
    return condition.get("status") == ("False" if name.endswith("Ready") else "True")


_INSTANCE_TYPE = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_INSTANCE_GROUP = ("sagemaker.amazonaws.com/instance-group-name", "eks.amazonaws.com/nodegroup")
_SHOWN = (
    "topology.kubernetes.io/zone",
    "eks.amazonaws.com/capacityType",
    "karpenter.sh/capacity-type",
    "topology.k8s.aws/ultraserver-id",
    "topology.k8s.aws/network-node-layer-3",
)
"""Labels whose values tell people something (research, aws.md 2.6)."""


_TOLERATED = frozenset({"nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa"})
"""Taints that clusters give to nodes with accelerators, and the tolerations for them to pods (admission plugin ExtendedResourceToleration)."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node.

    Attributes:
        idle: Its state when no pod that would have to go is on it.
        busy: Its state otherwise.
        allocatable: What pods may have, in thousandths, by names in Kubernetes.
        features: What its labels tell.
        labels: All of them.
        tainted: Whether it is for pods that tolerate something special; those with accelerators are taken to tolerate what accelerators' nodes are tainted with.
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
        """Its state with these pods on it."""
        return self.busy if any(not pod.of_the_node for pod in pods) else self.idle


def node_facts(node: Mapping[str, Any]) -> NodeFacts:
    """The facts of a node's object."""
    meta = node["metadata"]
    labels: Mapping[str, str] = meta.get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    idle = node_state(node, busy=False)
    # Only what drains depends on the pods that are there.
    busy = node_state(node, busy=True) if idle.word == "drained" else idle
    instance_type = _first(labels, _INSTANCE_TYPE)
    return NodeFacts(
        name=str(meta["name"]),
        idle=idle,
        busy=busy,
        allocatable=tuple((name, milli(text)) for name, text in allocatable.items()),
        model=find_model(labels, instance_type),
        features=tuple(dict.fromkeys(labels[name] for name in _SHOWN if labels.get(name))),
        instance_type=instance_type,
        instance_group=_first(labels, _INSTANCE_GROUP),
        labels=tuple(labels.items()),
        tainted=any(
            keeps_away(one) and str(one["key"]) not in _TOLERATED
            for one in (node.get("spec") or {}).get("taints") or []
        ),
    )


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


class NodeRows:
    """Makes rows of nodes, and keeps those of nodes that are as they were with the same pods on them."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[NodeFacts, Sequence[PodRow] | None, Node]] = {}

    @without_collections()
    def of(
        self, nodes: Iterable[NodeFacts], pods: Iterable[PodRow] | None, namespace: str
    ) -> list[Node]:
        """The nodes as tables show them. May take a while the first time.

        Args:
            nodes: The nodes.
            pods: The pods of all namespaces; None when they may not be seen, so that what is free is not known.
            namespace: The namespace of this cluster's runs.
        """
        on = by_node(pods or ())
        kept: dict[str, tuple[NodeFacts, Sequence[PodRow] | None, Node]] = {}
        for node in nodes:
            here = on.get(node.name, ()) if pods is not None else None
            before = self._kept.get(node.name)
            if before is None or before[0] is not node or before[1] != here:
                before = (node, here, _row(node, here, namespace))
            kept[node.name] = before
        self._kept = kept
        return [row for _, _, row in kept.values()]


def _row(node: NodeFacts, pods: Sequence[PodRow] | None, namespace: str) -> Node:
    state = node.state(pods or ())
    usable = state.word not in UNUSABLE
    has, used = dict(node.allocatable), (summed(pods) if pods is not None else None)
    devices = resources(has, used, is_usable=usable, model=node.model)
    computing = [one for one in devices if one.accelerator]

    def free(name: str) -> int | None:
        if used is None:
            return None
        return to_units(max(0, has.get(name, 0) - used.get(name, 0))) if usable else 0

    return Node(
        name=node.name,
        state=state.word,
        reason=state.reason,
        reason_since=parse_timestamp(state.since),
        reason_by=state.by,
        cpus=to_units(has.get("cpu", 0)),
        cpus_free=free("cpu"),
        memory=to_units(has.get("memory", 0)),
        memory_free=free("memory"),
        accelerators=sum(one.total for one in computing),
        accelerators_free=sum(one.free for one in computing) if used is not None else None,
        accelerator_type=", ".join(sorted({one.label for one in computing})) or None,
        resources=devices if used is not None else (),
        features=node.features,
        instance_type=node.instance_type,
        instance_group=node.instance_group,
        jobs=job_names(pods or (), namespace),
    )
