"""Nodes as tables show them, from small facts of each and the pods on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.bulk import without_collections
from hyperpod_jlab.model.cluster import UNUSABLE, Node
from hyperpod_jlab.orchestrators.kubernetes.api.pod_state import when
from hyperpod_jlab.orchestrators.kubernetes.tables.devices import model_of, resources
from hyperpod_jlab.orchestrators.kubernetes.tables.node_state import (
    NodeState,
    keeps_away,
    node_state,
)
from hyperpod_jlab.orchestrators.kubernetes.tables.pods import PodRow, by_node, job_names, summed
from hyperpod_jlab.orchestrators.kubernetes.tables.quantity import milli, whole

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
        model=model_of(labels, instance_type),
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
    devices = resources(has, used, usable=usable, model=node.model)
    computing = [one for one in devices if one.accelerator]

    def free(name: str) -> int | None:
        if used is None:
            return None
        return whole(max(0, has.get(name, 0) - used.get(name, 0))) if usable else 0

    return Node(
        name=node.name,
        state=state.word,
        reason=state.reason,
        reason_since=when(state.since),
        reason_by=state.by,
        cpus=whole(has.get("cpu", 0)),
        cpus_free=free("cpu"),
        memory=whole(has.get("memory", 0)),
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
