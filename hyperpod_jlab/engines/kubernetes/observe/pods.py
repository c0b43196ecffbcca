"""The pods of runs as small rows: the run, its node, and the pod's state."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from hyperpod_jlab.core.quantities import parse_array, parse_ranges
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.pod_state import ContainerState, PodState, parse_timestamp, pod_state
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind, as_int, find_labels, find_status, parse_time
from hyperpod_jlab.engines.kubernetes.tables.pods import pod_row

_END_PHASES = frozenset({"Succeeded", "Failed"})
_MAX_MESSAGE = 600


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run.

    Attributes:
        run_id: The run in its label; "" for an external job's pod.
        node_rank: Its rank among the run's nodes; None when it has no such label.
        container: The name of its main container: the first one.
        created: When it was created (Unix seconds), if known.
        state: Its state from the kubelet.
        problem: Why it does not run, as Kubernetes' reason and message; None when it runs, has
            ended, or is just starting.
        termination: Why it was terminated, as a reason and a message; None when it ended by itself
            or has not ended.
        memory: Its container's memory limit; None without one.
        other_containers: Its other containers, without init containers.
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
        return self.state.name

    @property
    def uid(self) -> str:
        return self.state.uid

    @property
    def is_ended(self) -> bool:
        return self.state.phase in _END_PHASES

    @property
    def main(self) -> ContainerState:
        """The main container."""
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
    """Why the cluster terminated a pod: the pod's own reason, or its condition ``DisruptionTarget``."""
    if status.get("reason"):
        return str(status["reason"]), str(status.get("message") or "")[:_MAX_MESSAGE]
    for condition in status.get("conditions") or []:
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return str(condition.get("reason") or ""), str(condition.get("message") or "")[:_MAX_MESSAGE]
    return None


def sort_pods(pods: list[RunPod]) -> list[RunPod]:
    """Pods sorted by rank; of several with one rank, the newest is last."""
    return sorted(
        pods, key=lambda pod: (pod.node_rank if pod.node_rank is not None else 1 << 30, pod.created or 0.0, pod.name)
    )


# --------------------------------------------------------------------------------------------------
# Which node of its run a pod is. Pure.
#
# Most pods have a label for it. Pods of a Job without indexes do not: a pod that follows one that
# failed, was deleted or was terminated is a retry, and takes its rank.


@dataclass(frozen=True)
class KnownPod:
    """A recorded pod.

    Attributes:
        rank: The node's rank.
        has_succeeded: Whether it succeeded, so that no other pod replaces it.
    """

    rank: int
    has_succeeded: bool


def assign_ranks(pods: Sequence[RunPod], known_pods: Mapping[str, KnownPod] | None = None) -> list[tuple[int, RunPod]]:
    """Assign ranks to pods.

    Args:
        pods: The cluster's pods.
        known_pods: Recorded pods without a rank label, by uid, oldest first; some may be gone.
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
    pod: RunPod, pods_by_rank: Mapping[int, RunPod | KnownPod], own_ranks: set[int], assigned_ranks: set[int]
) -> int:
    """The rank of a new pod: that of the pod that it replaces, else the first free one."""
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
# The tasks of an array: each is a run with one pod, identified by its index in the array's Job.
# Pure.

LIMIT = "array_limit"
"""The reason code of a task that waits because the array's limit is reached."""


@lru_cache(maxsize=64)
def parse_indices(array: str) -> tuple[int, ...]:
    """The indices of an array, in order."""
    return parse_array(array).indices


def find_position(array: str, index: int) -> int:
    """The Job's index for an array index."""
    return bisect.bisect_left(parse_indices(array), index)


@dataclass(frozen=True, slots=True)
class Task:
    """A Job's state of one of its indexes.

    Attributes:
        has_succeeded: Whether it succeeded; None before its end.
        ended_at: When its pod ended (Unix seconds), if known.
        has_pod: Whether the cluster has a pod for it.
    """

    has_succeeded: bool | None
    ended_at: float | None
    has_pod: bool

    def observe(self, observation: Observation, job: Mapping[str, Any]) -> Observation:
        """The task's observation.

        Args:
            observation: The whole Job's observation.
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
            return observation.model_copy(update={**end_fields, "reason": None, "reason_code": None})
        if observation.state == "ended" or observation.reason_code is not None:  # for example suspended
            return observation
        reason, code = None, None
        parallelism = as_int((job.get("spec") or {}).get("parallelism"))
        if not self.has_pod and as_int(find_status(job).get("active")) >= parallelism:
            reason, code = (f"{parallelism} tasks of its array run at once, and other tasks are before it", LIMIT)
        return observation.model_copy(update={"state": "waiting", "reason": reason, "reason_code": code})


class Tasks:
    """The tasks of one Job.

    Args:
        job: The Job, or None if it does not exist.
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
        """The indexes with active pods: an ended pod may be replaced."""
        return self._pods.keys() - self.completed - self.failed

    def pods(self, position: int) -> tuple[RunPod, ...]:
        """The pods of a task, as those of a run with one node."""
        return tuple(self._pods.get(position, ()))

    def build_task(self, position: int) -> Task:
        """The Job's state of a task."""
        pods = self.pods(position)
        end_times = [pod.main.exit.ended_at for pod in pods if pod.main.exit and pod.main.exit.ended_at]
        has_succeeded = True if position in self.completed else False if position in self.failed else None
        return Task(has_succeeded, max(end_times, default=None), bool(pods))


def _indexes(text: object) -> frozenset[int]:
    """Parse indexes from a Job's status, such as ``0,2-4``."""
    try:
        return frozenset(parse_ranges(str(text)) if text else ())
    except ValueError:
        return frozenset()


# --------------------------------------------------------------------------------------------------
# The objects of runs as small rows: their status, without the pod template, which may contain the
# code.

_DROPPED = frozenset({"template", "managedFields", "podTemplateOverrides", "podSpecOverrides", "env"})


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job.

    Attributes:
        kind: Its kind.
        run_id: The run in its label; "" without one.
        uid: The object's uid.
        job: The object without its large parts.
        task: The array task that the row represents; None for the whole object.
    """

    kind: Kind
    run_id: str
    uid: str
    job: Mapping[str, Any] = field(repr=False)
    task: Task | None = None

    def observe(self, now: float) -> Observation:
        """Its observation of the run at `now` (Unix seconds)."""
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


REDUCE: Mapping[str, Callable[[Mapping[str, Any]], JobRow]] = {kind.name: partial(job_row, kind) for kind in KINDS}
"""Row functions by kind name: one function each, so that all callers share an informer."""


def _drop_large(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _drop_large(value) for key, value in content.items() if key not in _DROPPED}
    if isinstance(content, list):
        return [_drop_large(value) for value in content]
    return content
