"""The pods of runs, as small rows: which run, which node of it, and what became of them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from hyperpod_jlab.core.quantities import parse_array, parse_ranges
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.pod_log import ContainerState, PodState, pod_state, when
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    RUN_LABEL,
    Kind,
    labels_of,
    status_of,
    unix_time,
    whole,
)
from hyperpod_jlab.engines.kubernetes.tables.pods import pod_row

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


# --------------------------------------------------------------------------------------------------
# Which node of its run a pod is. Pure.
#
# Most pods say so by a label. Those of a Job without indexes do not: there a pod that comes after one that failed, was removed or was ended is a retry, and takes the place of
# the one before.


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


# --------------------------------------------------------------------------------------------------
# The tasks of an array: each is a run of one pod, told by its index in the array's Job. Pure.

LIMIT = "array_limit"
"""The reason code of a task that waits because enough others run."""


@lru_cache(maxsize=64)
def indices_of(array: str) -> tuple[int, ...]:
    """The indices of an array, in order."""
    return parse_array(array).indices


def place_in(array: str, index: int) -> int:
    """The index that an array's Job has for one of the array's."""
    return bisect.bisect_left(indices_of(array), index)


@dataclass(frozen=True, slots=True)
class Task:
    """What a Job says of one of its indexes.

    Attributes:
        well: Whether it ended well; None when it has not ended.
        ended_at: When its pod ended (Unix seconds), as far as known.
        has_pod: Whether the cluster has a pod of it.
    """

    well: bool | None
    ended_at: float | None
    has_pod: bool

    def observe(self, said: Observation, job: Mapping[str, Any]) -> Observation:
        """The word on the task.

        Args:
            said: What the Job says of all of them.
            job: The Job.
        """
        if self.well is not None:
            begun = unix_time(status_of(job).get("startTime"), 0.0)
            ended = {
                "time": min(said.time, self.ended_at or begun),
                "state": "ended",
                "verdict": "COMPLETED" if self.well else "FAILED",
                "exit_code": 0 if self.well else None,
            }
            return said.model_copy(update={**ended, "reason": None, "reason_code": None})
        if said.state == "ended" or said.reason_code is not None:  # such as suspended
            return said
        reason, code = None, None
        at_once = whole((job.get("spec") or {}).get("parallelism"))
        if not self.has_pod and whole(status_of(job).get("active")) >= at_once:
            reason, code = (
                f"{at_once} tasks of its array run at once, and other tasks are before it",
                LIMIT,
            )
        return said.model_copy(update={"state": "waiting", "reason": reason, "reason_code": code})


class Tasks:
    """The tasks of one Job.

    Args:
        job: The Job; None: it is not there.
        pods: Its pods.
    """

    def __init__(self, job: Mapping[str, Any] | None, pods: Sequence[RunPod]) -> None:
        status = status_of(job or {})
        self.completed = _indexes(status.get("completedIndexes"))
        self.failed = _indexes(status.get("failedIndexes"))
        self._pods: dict[int, list[RunPod]] = {}
        for pod in pods:
            if pod.node_rank is not None:
                self._pods.setdefault(pod.node_rank, []).append(replace(pod, node_rank=0))

    @property
    def live(self) -> set[int]:
        """The indexes with pods that have not ended for good: another pod may come in place of one that did."""
        return self._pods.keys() - self.completed - self.failed

    def pods(self, place: int) -> tuple[RunPod, ...]:
        """The pods of a task, as those of a run of one node."""
        return tuple(self._pods.get(place, ()))

    def task(self, place: int) -> Task:
        """What the Job says of a task."""
        pods = self.pods(place)
        ends = [pod.main.exit.at for pod in pods if pod.main.exit and pod.main.exit.at]
        well = True if place in self.completed else False if place in self.failed else None
        return Task(well, max(ends, default=None), bool(pods))


def _indexes(text: object) -> frozenset[int]:
    """Indexes as a Job's status lists them, such as ``0,2-4``."""
    try:
        return frozenset(parse_ranges(str(text)) if text else ())
    except ValueError:
        return frozenset()


# --------------------------------------------------------------------------------------------------
# The objects of runs, as small rows: what their status says, without the pods' template, in which the code may travel.

_DROPPED = frozenset(
    {"template", "managedFields", "podTemplateOverrides", "podSpecOverrides", "env"}
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job.

    Attributes:
        kind: Its kind.
        run_id: The run that its label names; "" without one.
        uid: Its own id.
        job: The object, without what is large.
        task: Which of its tasks the row is of, where it is an array's; None for the whole.
    """

    kind: Kind
    run_id: str
    uid: str
    job: Mapping[str, Any] = field(repr=False)
    task: Task | None = None

    def observe(self, now: float) -> Observation:
        """What it says of its run, seen at `now` (Unix seconds)."""
        word = self.kind.observe(self.job, now)
        return word if self.task is None else self.task.observe(word, self.job)


def job_row(kind: Kind, job: Mapping[str, Any]) -> JobRow:
    """The row of an object."""
    return JobRow(
        kind=kind,
        run_id=str(labels_of(job).get(RUN_LABEL, "")),
        uid=str(job["metadata"].get("uid", "")),
        job=_without_large(job),
    )


REDUCE: Mapping[str, Callable[[Mapping[str, Any]], JobRow]] = {
    kind.name: partial(job_row, kind) for kind in KINDS
}
"""Makes the rows of a kind, by its name: one function each, so that all who ask share a watch."""


def _without_large(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: _without_large(value) for key, value in found.items() if key not in _DROPPED}
    if isinstance(found, list):
        return [_without_large(value) for value in found]
    return found
