"""The pods of runs, as small rows: which run, which node of it, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.api.pod_state import (
    ContainerState,
    PodState,
    pod_state,
    when,
)
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.tables.pods import pod_row

_ENDED = frozenset({"Succeeded", "Failed"})
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run.

    Attributes:
        run_id: The run that its label names; "" for one of a job that was sent elsewhere.
        node_rank: Its place among the run's nodes; None when it does not say.
        container: Of its containers the one that counts: the first.
        created: When it was made (Unix seconds), as far as known.
        state: What the kubelet says of it.
        trouble: Why it does not run, in Kubernetes' words: a reason and a message; None when it runs, has ended, or has only begun to start.
        ended_by: Who ended it, and how: a reason and a message; None when it ended by itself, or has not.
        memory: What its container may have of it, as its limit says; None without one.
        others: Its other containers, those apart that only prepare it.
    """

    run_id: str
    node_rank: int | None
    container: str
    created: float | None
    state: PodState
    trouble: tuple[str, str] | None = None
    ended_by: tuple[str, str] | None = None
    memory: str | None = None
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.state.name

    @property
    def uid(self) -> str:
        """Its uid."""
        return self.state.uid

    @property
    def ended(self) -> bool:
        """Whether its containers have ended for good."""
        return self.state.phase in _ENDED

    @property
    def main(self) -> ContainerState:
        """The container that counts."""
        return self.state.container(self.container)


def run_pod(pod: Mapping[str, Any]) -> RunPod:
    """The row of a pod."""
    spec, row = pod.get("spec") or {}, pod_row(pod)
    containers = spec.get("containers") or [{}]
    limits = (containers[0].get("resources") or {}).get("limits") or {}
    ranks = (kind.node_rank(pod) for kind in KINDS)
    return RunPod(
        run_id=str(labels_of(pod).get(RUN_LABEL, "")),
        node_rank=next((rank for rank in ranks if rank is not None), None),
        container=str(containers[0].get("name", "")),
        created=when(pod["metadata"].get("creationTimestamp")),
        state=pod_state(pod),
        trouble=row.trouble if row is not None else None,
        ended_by=_ended_by(pod.get("status") or {}),
        memory=str(limits["memory"]) if limits.get("memory") else None,
        others=tuple(str(one.get("name", "")) for one in containers[1:]),
    )


def _ended_by(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Who ended a pod: the cluster, by the pod's own reason or by its condition ``DisruptionTarget``."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")[:_LONGEST]
    for one in status.get("conditions") or []:
        if one.get("type") == "DisruptionTarget" and one.get("status") == "True":
            return str(one.get("reason") or ""), str(one.get("message") or "")[:_LONGEST]
    return None


def in_order(pods: list[RunPod]) -> list[RunPod]:
    """Pods in the order of their nodes' ranks; of several of one rank the newest last."""
    return sorted(
        pods,
        key=lambda pod: (
            pod.node_rank if pod.node_rank is not None else 1 << 30,
            pod.created or 0.0,
            pod.name,
        ),
    )
