"""What a node's conditions, taints and labels say, as one of our words and a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.kinds.names import CORDON_ANNOTATION

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
    "karpenter.sh/disrupted": "Karpenter takes it away",
    "karpenter.sh/disruption": "Karpenter takes it away",
    "ToBeDeletedByClusterAutoscaler": "the cluster autoscaler takes it away",
    "DeletionCandidateOfClusterAutoscaler": "the cluster autoscaler may take it away",
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
    "MemoryPressure": "its memory is nearly used up",
    "DiskPressure": "its disk is nearly full",
    "PIDPressure": "it has nearly as many processes as it can have",
    "NetworkUnavailable": "its network is not set up",
}

_OWN_TAINTS = "node.kubernetes.io/"
"""Beginning of the taints that Kubernetes itself gives, which say the same as conditions."""

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class NodeState:
    """A word of `hyperpod_jlab.model.cluster.NODE_STATES`, why, since when (time as Kubernetes writes it), and who says so."""

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
        yield NodeState("starting", "its kubelet has not said anything yet")
        return
    since = ready.get("lastTransitionTime")
    said = str(ready.get("message") or ready.get("reason") or "")[:_LONGEST]
    if ready.get("status") == "Unknown":
        yield NodeState(
            "not-answering",
            "its kubelet has stopped answering: the node or its network is down",
            since,
        )
    elif ready.get("status") != "True":
        yield NodeState("down", f"it is not ready: {said}" if said else "it is not ready", since)
    elif starting:
        yield NodeState("starting", f"not all that belongs on it runs yet ({', '.join(starting)})")


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
        words = "it is cordoned: it takes no new pods"
        yield NodeState(word, f"{words} ({why[:_LONGEST]})" if why else words, since)


def _from_pressure(conditions: Mapping[str, Mapping[str, Any]]) -> Iterator[NodeState]:
    for name, words in _PRESSURE.items():
        found = conditions.get(name)
        if found is not None and found.get("status") == "True":
            yield NodeState(
                "failing", f"{words}, so it takes no new pods", found.get("lastTransitionTime")
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
