"""Records of jobs that run without our launcher (a user's own manifest, or an adopted job), written from their pods' statuses.

The run's spec marks them: its source is ``native``. Their object is found like any run's
(`poll.RunLocation`: the manifest in the bundle, or ``adopted.json`` for an external one), their
pods by the kind's own labels (`Kind.pods_selector`, `Kind.node_rank`), and their nodes' logs are
the pods' raw lines (`pod_log.PodLog`). Such bundles need nothing else.

Any number of observers may write at once. A pod's first container of a node is its attempt 1; each
restart, and each replacement pod, is the next. All observers write the same, and existing files
stay. An end is recorded only if a container ended by itself; for other ends, the cluster's state
applies.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.engines.kubernetes.api.pod_state import Exit
from hyperpod_jlab.engines.kubernetes.observe.pods import KnownPod, RunPod, assign_ranks
from hyperpod_jlab.engines.kubernetes.observe.verdicts import NOT_STARTED_REASONS
from hyperpod_jlab.engines.kubernetes.waiting.messages import explain_reason
from hyperpod_jlab.engines.native_records import NativeRecords, node_record, read_record
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_NODE = re.compile(r"node-[0-9]+\.json")
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class ContainerStart:
    """A started container.

    Attributes:
        rank: The node's rank.
        uid: The pod's uid; `pod` is its name.
        restart: Number of the container's restarts before it.
        started_at: When it started (Unix seconds).
        exit: How it ended by itself; None while it runs, or if it was terminated.
    """

    rank: int
    uid: str
    restart: int
    pod: str
    node: str
    started_at: float
    exit: Exit | None = None

    @classmethod
    def from_pod(cls, pod: RunPod, rank: int, restart: int) -> ContainerStart:
        main = pod.main
        newest = restart == main.restart
        exit_ = main.exit if newest else main.previous
        started_at = main.started_at if newest else None
        # A pod that is being deleted restarts no container, so those before its newest one ended by
        # themselves.
        ended_alone = pod.termination is None and not pod.state.deleting
        own_exit = exit_ if ended_alone or not newest else None
        return cls(rank, pod.uid, restart, pod.name, pod.state.node or "", started_at or pod.created or 0.0, own_exit)

    def record(self) -> dict[str, Any]:
        """As the record of its node."""
        end = self.exit
        error: dict[str, Any] | None = None
        if end is not None and end.reason in NOT_STARTED_REASONS:
            reason = explain_reason(end.reason, end.message or "")
            error = {"code": reason.code, "message": reason.message, "hint": None, "detail": {}}
        return node_record(
            self.rank,
            self.node,
            self.started_at,
            ended_at=(end.ended_at or self.started_at) if end is not None else None,
            exit_code=end.code if end is not None else None,
            error=error,
            host=self.pod,
            pod_uid=self.uid,
            restart=self.restart,
        )


class PodRecorder:
    """The records of one run. Methods may block.

    Args:
        bundle: The run's bundle.
        scheduler_id: Its object's name.
    """

    def __init__(self, bundle: BundleReader, scheduler_id: str) -> None:
        self._status = bundle.records / "status"
        self._records = NativeRecords(bundle)
        self._scheduler_id = scheduler_id

    def record(self, pods: Sequence[RunPod]) -> None:
        """Record the pods' current statuses; skips a partition that is not writable."""
        with contextlib.suppress(OSError, StorageError):
            for rank, pod in self.rank_pods(pods):
                if pod.main.previous is not None and pod.main.restart > 0:
                    self._write(ContainerStart.from_pod(pod, rank, pod.main.restart - 1))
                if pod.main.container_id:
                    self._write(ContainerStart.from_pod(pod, rank, pod.main.restart))

    def rank_pods(self, pods: Sequence[RunPod]) -> list[tuple[int, RunPod]]:
        """Pods with their ranks; a recorded pod keeps its rank."""
        lacks_ranks = any(pod.node_rank is None for pod in pods)
        return assign_ranks(pods, self._known_pods() if lacks_ranks else None)

    def find_number(self, container_start: ContainerStart) -> int:
        """The attempt of a container; its record is created if needed."""
        while True:
            find_number = self._find_number(container_start)
            if find_number is not None:
                return find_number
            find_number = self._next_number(container_start)
            self._records.claim(
                self._scheduler_id,
                find_number,
                str(find_number),
                node=container_start.node or None,
                time=container_start.started_at,
            )
            if self._records.create(self._records.node(find_number, container_start.rank), container_start.record()):
                return find_number

    def _write(self, container_start: ContainerStart) -> None:
        path = self._records.node(self.find_number(container_start), container_start.rank)
        if read_record(path).get("ended_at") is None:
            self._records.replace(path, container_start.record())

    def _find_number(self, container_start: ContainerStart) -> int | None:
        """The attempt of a container that has a record."""
        for find_number, record in self._known_attempts(container_start.rank).items():
            if (record.get("pod_uid"), record.get("restart")) == (container_start.uid, container_start.restart):
                return find_number
        return None

    def _next_number(self, container_start: ContainerStart) -> int:
        """The number for a container without a record."""
        known_attempts = self._known_attempts(container_start.rank)
        for find_number, record in known_attempts.items():
            if record.get("pod_uid") == container_start.uid:
                return max(1, find_number + container_start.restart - int(record.get("restart", 0)))
        return max(known_attempts, default=0) + 1 + container_start.restart

    def _known_attempts(self, rank: int) -> dict[int, dict[str, Any]]:
        attempts = {}
        for find_number, folder in _attempt_folders(self._status):
            record = read_record(folder / f"node-{rank}.json")
            if record:
                attempts[find_number] = record
        return attempts

    def _known_pods(self) -> dict[str, KnownPod]:
        """The recorded pods by uid, oldest first."""
        pods: dict[str, KnownPod] = {}
        for _, folder in _attempt_folders(self._status):
            for name in filter(_NODE.fullmatch, _names(folder)):
                record = read_record(folder / name)
                if record.get("pod_uid") and isinstance(record.get("node_rank"), int):
                    has_succeeded = record.get("ended_at") is not None and record.get("exit_code") == 0
                    pods[str(record["pod_uid"])] = KnownPod(record["node_rank"], has_succeeded)
        return pods


def _names(folder: Path) -> list[str]:
    try:
        return sorted(descent.list_names(folder))
    except OSError:
        return []


def _attempt_folders(status: Path) -> list[tuple[int, Path]]:
    """The folders of a run's attempts by number, oldest first."""
    folders = [(_ATTEMPT.fullmatch(name), status / name) for name in _names(status)]
    return sorted((int(match[1]), folder) for match, folder in folders if match is not None)
