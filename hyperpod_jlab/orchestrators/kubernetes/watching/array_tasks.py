"""The tasks of an array: each is a run of one pod, told by its index in the array's Job. Pure."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hyperpod_jlab.model.ranges import parse_array, parse_ranges
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.kinds.conditions import status_of, unix_time, whole
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod

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
                f"{at_once} tasks of its array run at once, and others come before",
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
