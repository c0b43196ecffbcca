"""The pods of a run that one can get into: which they are, by their nodes' ranks, and whether they run."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import ConflictError, NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS

_OURS = tuple(kind.container for kind in KINDS)


@dataclass(frozen=True)
class ReachablePod:
    """A pod of a run, as one gets into it.

    Attributes:
        name: Its name.
        namespace: Its namespace.
        node_rank: The rank of its node.
        node: The node it is on, or None.
        container: The container in which the run's processes are.
        running: Whether that runs.
        phase: What Kubernetes says of it.
    """

    name: str
    namespace: str
    node_rank: int
    node: str | None
    container: str
    running: bool
    phase: str

    @classmethod
    def of(cls, pod: Mapping[str, Any], rank: int) -> ReachablePod:
        """A pod as the API server gives it."""
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        names = [str(one["name"]) for one in spec.get("containers") or []]
        default = (meta.get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
        found = [name for name in (default, *_OURS) if name in names]
        container = str((found or names or [""])[0])
        states = {one["name"]: one for one in status.get("containerStatuses") or []}
        state = (states.get(container) or {}).get("state") or {}
        return cls(
            name=str(meta["name"]),
            namespace=str(meta["namespace"]),
            node_rank=rank,
            node=spec.get("nodeName"),
            container=container,
            running="running" in state and "deletionTimestamp" not in meta,
            phase=str(status.get("phase") or "Pending"),
        )


def by_rank(pods: Iterable[Mapping[str, Any]], kind: Kind) -> list[ReachablePod]:
    """The pods in the order of their ranks; of several with one rank the one that runs, else the newest. Pods that say no rank are counted in their order."""
    made = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""))
    said = [(kind.node_rank(pod), pod) for pod in made]
    numbers = itertools.count()
    rows = [ReachablePod.of(pod, rank if rank is not None else next(numbers)) for rank, pod in said]
    found = {row.node_rank: row for row in sorted(rows, key=lambda row: row.running)}
    return [found[rank] for rank in sorted(found)]


def pod_of(pods: Iterable[ReachablePod], node_rank: int) -> ReachablePod:
    """The pod of a node's rank, which runs.

    Raises:
        NotFoundError: The run has no pod of that rank.
        ConflictError: It does not run.
    """
    known = {pod.node_rank: pod for pod in pods}
    if node_rank not in known:
        there = ", ".join(map(str, known)) or "none"
        raise NotFoundError(
            f"the run has no pod for node {node_rank} now",
            code="no_such_node",
            hint=f"nodes with a pod: {there}",
            detail={"node": node_rank},
        )
    pod = known[node_rank]
    if not pod.running:
        raise ConflictError(
            f"the pod {pod.name} does not run; it is {pod.phase.lower()}",
            code="pod_not_running",
            hint="ports can be reached while a run runs; see: hpj why"
            if pod.phase == "Pending"
            else "ports can be reached while a run runs",
            detail={"pod": pod.name, "phase": pod.phase},
        )
    return pod
