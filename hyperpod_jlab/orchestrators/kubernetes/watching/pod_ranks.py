"""Which node of its run a pod is. Pure.

Most pods say so by a label. Those of a Job without indexes do not: there a pod that comes after one that failed, was removed or was ended is a retry, and takes the place of
the one before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod


@dataclass(frozen=True)
class KnownPod:
    """A pod that was noted down.

    Attributes:
        rank: The node's rank.
        well: Whether it ended well, so that no other comes in its place.
    """

    rank: int
    well: bool


def ranked(
    pods: Sequence[RunPod], known: Mapping[str, KnownPod] | None = None
) -> list[tuple[int, RunPod]]:
    """Pods with their ranks.

    Args:
        pods: The pods that the cluster has.
        known: Those of pods that do not say their rank which were noted down, by uid, the oldest first; some may be gone.
    """
    known = known or {}
    own = {pod.node_rank for pod in pods if pod.node_rank is not None}
    present = {pod.uid for pod in pods}
    ranks = {pod.uid: known[pod.uid].rank for pod in pods if pod.uid in known}
    holders: dict[int, RunPod | KnownPod] = {
        one.rank: one for uid, one in known.items() if uid not in present
    }
    silent = [pod for pod in pods if pod.node_rank is None]
    for pod in sorted(silent, key=lambda pod: (pod.created or 0.0, pod.name)):
        rank = ranks.get(pod.uid)
        if rank is None:
            rank = _place(pod, holders, own, set(ranks.values()))
            ranks[pod.uid] = rank
        holders[rank] = pod
    return [(pod.node_rank if pod.node_rank is not None else ranks[pod.uid], pod) for pod in pods]


def _place(
    pod: RunPod, holders: Mapping[int, RunPod | KnownPod], own: set[int], held: set[int]
) -> int:
    """The rank of a pod that nobody has seen before: that of one that it replaces, else the first free one."""
    for rank in sorted(holders.keys() - own):
        if _is_replaced(holders[rank], pod):
            return rank
    taken = own | holders.keys() | held
    return next(rank for rank in range(len(taken) + 1) if rank not in taken)


def _is_replaced(before: RunPod | KnownPod, pod: RunPod) -> bool:
    if isinstance(before, KnownPod):
        return not before.well
    if before.state.phase == "Succeeded":
        return False
    over = before.ended or before.state.deleting or before.ended_by is not None
    ended = before.main.exit.at if before.main.exit is not None else None
    return over and (ended or before.created or 0.0) <= (pod.created or 0.0)
