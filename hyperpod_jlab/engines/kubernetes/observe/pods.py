"""The pods of runs, as small rows: which run, which node of it, and what became of them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from hyperpod_jlab.core.quantities import parse_array, parse_ranges
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    ContainerState,
    PodState,
    parse_timestamp,
    pod_state,
)
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    RUN_LABEL,
    Kind,
    as_int,
    find_labels,
    find_status,
    parse_time,
)
from hyperpod_jlab.engines.kubernetes.tables.pods import pod_row

_END_PHASES = frozenset({"Succeeded", "Failed"})
_MAX_MESSAGE = 600


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run.

    Attributes:
        run_id: The run that its label names; "" for one of a job that was sent elsewhere.
        node_rank: Its place among the run's nodes; None when it does not say.
        container: Of its containers the one that counts: the first.
        created: When it was made (Unix seconds), as far as known.
        state: What the kubelet says of it.
        problem: Why it does not run, in Kubernetes' words: a reason and a message; None when it runs, has ended, or has only begun to start.
        termination: Who ended it, and how: a reason and a message; None when it ended by itself, or has not.
        memory: What its container may have of it, as its limit says; None without one.
        other_containers: Its other containers, those apart that only prepare it.
    """

    run_id: str
    node_rank: int | None
    container: str
    created: float | None
    state: PodState
    problem: tuple[str, str] | None = None
    termination: tuple[str, str] | None = None
    memory: str | None = None
    other_containers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.state.name

    @property
    def uid(self) -> str:
        """Its uid."""
        return self.state.uid

    @property
    def is_ended(self) -> bool:
        """Whether its containers have ended for good."""
        return self.state.phase in _END_PHASES

    @property
    def main(self) -> ContainerState:
        """The container that counts."""
        return self.state.container(self.container)


def parse_pod(pod: Mapping[str, Any]) -> RunPod:
    """The row of a pod."""
    spec, row = pod.get("spec") or {}, pod_row(pod)
    containers = spec.get("containers") or [{}]
    limits = (containers[0].get("resources") or {}).get("limits") or {}
    ranks = (kind.node_rank(pod) for kind in KINDS)
    return RunPod(
        run_id=str(find_labels(pod).get(RUN_LABEL, "")),
        node_rank=next((rank for rank in ranks if rank is not None), None),
        container=str(containers[0].get("name", "")),
        created=parse_timestamp(pod["metadata"].get("creationTimestamp")),
        state=pod_state(pod),
        problem=row.problem if row is not None else None,
        termination=_find_termination(pod.get("status") or {}),
        memory=str(limits["memory"]) if limits.get("memory") else None,
        other_containers=tuple(str(container.get("name", "")) for container in containers[1:]),
    )


def _find_termination(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Who ended a pod: the cluster, by the pod's own reason or by its condition ``DisruptionTarget``."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")[:_MAX_MESSAGE]
    for condition in status.get("conditions") or []:
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")[
                :_MAX_MESSAGE
            ]
    return None


def sort_pods(pods: list[RunPod]) -> list[RunPod]:
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
        has_succeeded: Whether it ended well, so that no other comes in its place.
    """

    rank: int
    has_succeeded: bool


def assign_ranks(
    pods: Sequence[RunPod], known_pods: Mapping[str, KnownPod] | None = None
) -> list[tuple[int, RunPod]]:
    """Pods with their ranks.

    Args:
        pods: The pods that the cluster has.
        known_pods: Those of pods that do not say their rank which were noted down, by uid, the oldest first; some may be gone.
    """
    known_pods = known_pods or {}
    own_ranks = {pod.node_rank for pod in pods if pod.node_rank is not None}
    present = {pod.uid for pod in pods}
    ranks = {pod.uid: known_pods[pod.uid].rank for pod in pods if pod.uid in known_pods}
    pods_by_rank: dict[int, RunPod | KnownPod] = {
        known_pod.rank: known_pod for uid, known_pod in known_pods.items() if uid not in present
    }
    unranked = [pod for pod in pods if pod.node_rank is None]
    for pod in sorted(unranked, key=lambda pod: (pod.created or 0.0, pod.name)):
        rank = ranks.get(pod.uid)
        if rank is None:
            rank = _find_rank(pod, pods_by_rank, own_ranks, set(ranks.values()))
            ranks[pod.uid] = rank
        pods_by_rank[rank] = pod
    return [(pod.node_rank if pod.node_rank is not None else ranks[pod.uid], pod) for pod in pods]


def _find_rank(
    pod: RunPod,
    pods_by_rank: Mapping[int, RunPod | KnownPod],
    own_ranks: set[int],
    assigned_ranks: set[int],
) -> int:
    """The rank of a pod that nobody has seen before: that of one that it replaces, else the first free one."""
    for rank in sorted(pods_by_rank.keys() - own_ranks):
        if _is_replaced_by(pods_by_rank[rank], pod):
            return rank
    used_ranks = own_ranks | pods_by_rank.keys() | assigned_ranks
    return next(rank for rank in range(len(used_ranks) + 1) if rank not in used_ranks)


def _is_replaced_by(earlier: RunPod | KnownPod, pod: RunPod) -> bool:
    if isinstance(earlier, KnownPod):
        return not earlier.has_succeeded
    if earlier.state.phase == "Succeeded":
        return False
    is_over = earlier.is_ended or earlier.state.deleting or earlier.termination is not None
    ended_at = earlier.main.exit.ended_at if earlier.main.exit is not None else None
    return is_over and (ended_at or earlier.created or 0.0) <= (pod.created or 0.0)


# --------------------------------------------------------------------------------------------------
# The tasks of an array: each is a run of one pod, told by its index in the array's Job. Pure.

LIMIT = "array_limit"
"""The reason code of a task that waits because enough others run."""


@lru_cache(maxsize=64)
def parse_indices(array: str) -> tuple[int, ...]:
    """The indices of an array, in order."""
    return parse_array(array).indices


def find_position(array: str, index: int) -> int:
    """The index that an array's Job has for one of the array's."""
    return bisect.bisect_left(parse_indices(array), index)


@dataclass(frozen=True, slots=True)
class Task:
    """What a Job says of one of its indexes.

    Attributes:
        has_succeeded: Whether it ended well; None when it has not ended.
        ended_at: When its pod ended (Unix seconds), as far as known.
        has_pod: Whether the cluster has a pod of it.
    """

    has_succeeded: bool | None
    ended_at: float | None
    has_pod: bool

    def observe(self, observation: Observation, job: Mapping[str, Any]) -> Observation:
        """The word on the task.

        Args:
            observation: What the Job says of all of them.
            job: The Job.
        """
        if self.has_succeeded is not None:
            job_started_at = parse_time(find_status(job).get("startTime"), 0.0)
            end_fields = {
                "time": min(observation.time, self.ended_at or job_started_at),
                "state": "ended",
                "verdict": "COMPLETED" if self.has_succeeded else "FAILED",
                "exit_code": 0 if self.has_succeeded else None,
            }
            return observation.model_copy(
                update={**end_fields, "reason": None, "reason_code": None}
            )
        if observation.state == "ended" or observation.reason_code is not None:  # such as suspended
            return observation
        reason, code = None, None
        parallelism = as_int((job.get("spec") or {}).get("parallelism"))
        if not self.has_pod and as_int(find_status(job).get("active")) >= parallelism:
            reason, code = (
                f"{parallelism} tasks of its array run at once, and other tasks are before it",
                LIMIT,
            )
        return observation.model_copy(
            update={"state": "waiting", "reason": reason, "reason_code": code}
        )


class Tasks:
    """The tasks of one Job.

    Args:
        job: The Job; None: it is not there.
        pods: Its pods.
    """

    def __init__(self, job: Mapping[str, Any] | None, pods: Sequence[RunPod]) -> None:
        status = find_status(job or {})
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

    def pods(self, position: int) -> tuple[RunPod, ...]:
        """The pods of a task, as those of a run of one node."""
        return tuple(self._pods.get(position, ()))

    def build_task(self, position: int) -> Task:
        """What the Job says of a task."""
        pods = self.pods(position)
        end_times = [
            pod.main.exit.ended_at for pod in pods if pod.main.exit and pod.main.exit.ended_at
        ]
        has_succeeded = (
            True if position in self.completed else False if position in self.failed else None
        )
        return Task(has_succeeded, max(end_times, default=None), bool(pods))


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
        observation = self.kind.observe(self.job, now)
        return observation if self.task is None else self.task.observe(observation, self.job)


def job_row(kind: Kind, job: Mapping[str, Any]) -> JobRow:
    """The row of an object."""
    return JobRow(
        kind=kind,
        run_id=str(find_labels(job).get(RUN_LABEL, "")),
        uid=str(job["metadata"].get("uid", "")),
        job=_drop_large(job),
    )


REDUCE: Mapping[str, Callable[[Mapping[str, Any]], JobRow]] = {
    kind.name: partial(job_row, kind) for kind in KINDS
}
"""Makes the rows of a kind, by its name: one function each, so that all who ask share a watch."""


def _drop_large(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _drop_large(value) for key, value in content.items() if key not in _DROPPED}
    if isinstance(content, list):
        return [_drop_large(value) for value in content]
    return content
