"""Records of jobs that run without our launcher (a user's own manifest, an adopted job), written from what their pods' statuses say.

Which runs these are is told by their spec: its source is ``native``. Their object is found as that of any run is (`look.Where`: the manifest in the bundle, and
``adopted.json`` for one that was sent elsewhere), their pods by the kind's own labels (`Kind.pods_selector`, `Kind.node_rank`), and their nodes' logs are the
pods' raw lines (`pod_spool.RawPod`). Nothing else is asked of those who make such bundles.

Any number of observers may write at once. A pod's first container of a node is its attempt 1; each restart of it, and each pod that comes anew in its place, is the
next. All write the same, and what is there stays. An end is written only where a container ended by itself; what else ended it is the cluster's word.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.engines.kubernetes.api.pod_log import Exit
from hyperpod_jlab.engines.kubernetes.observe.pods import KnownPod, RunPod, ranked
from hyperpod_jlab.engines.kubernetes.observe.spool_files import attempt_folders
from hyperpod_jlab.engines.kubernetes.observe.verdicts import NOT_STARTED
from hyperpod_jlab.engines.kubernetes.waiting.messages import told
from hyperpod_jlab.engines.native_records import NativeRecords, node_record, read_record
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

_NODE = re.compile(r"node-[0-9]+\.json")


@dataclass(frozen=True)
class Begun:
    """A container that has begun.

    Attributes:
        rank: The node's rank.
        uid: The pod's uid; `pod` is its name.
        restart: Number of the container's restarts before it.
        at: When it began (Unix seconds).
        exit: How it ended by itself; None while it runs, or when it was ended.
    """

    rank: int
    uid: str
    restart: int
    pod: str
    node: str
    at: float
    exit: Exit | None = None

    @classmethod
    def of(cls, pod: RunPod, rank: int, restart: int) -> Begun:
        """A container of a pod."""
        main = pod.main
        newest = restart == main.restart
        exit_ = main.exit if newest else main.previous
        began = main.started_at if newest else None
        # A pod that is being ended starts no container again: those before its newest one ended by themselves.
        left_alone = pod.ended_by is None and not pod.state.deleting
        by_itself = exit_ if left_alone or not newest else None
        return cls(
            rank,
            pod.uid,
            restart,
            pod.name,
            pod.state.node or "",
            began or pod.created or 0.0,
            by_itself,
        )

    def record(self) -> dict[str, Any]:
        """As the record of its node."""
        end = self.exit
        error: dict[str, Any] | None = None
        if end is not None and end.reason in NOT_STARTED:
            found = told(end.reason, end.message or "")
            error = {"code": found.code, "message": found.words, "hint": None, "detail": {}}
        return node_record(
            self.rank,
            self.node,
            self.at,
            ended_at=(end.at or self.at) if end is not None else None,
            exit_code=end.code if end is not None else None,
            error=error,
            host=self.pod,
            pod_uid=self.uid,
            restart=self.restart,
        )


class NativeRecorder:
    """The records of one run. Methods may block.

    Args:
        bundle: The run.
        scheduler_id: Its object's name.
    """

    def __init__(self, bundle: BundleReader, scheduler_id: str) -> None:
        self._status = bundle.records / "status"
        self._records = NativeRecords(bundle)
        self._scheduler_id = scheduler_id

    def play(self, pods: Sequence[RunPod]) -> None:
        """Write down what the pods' statuses say now; a partition that cannot be written to is passed over."""
        with contextlib.suppress(OSError, StorageError):
            for rank, pod in self.ranked(pods):
                if pod.main.previous is not None and pod.main.restart > 0:
                    self._write(Begun.of(pod, rank, pod.main.restart - 1))
                if pod.main.container_id:
                    self._write(Begun.of(pod, rank, pod.main.restart))

    def ranked(self, pods: Sequence[RunPod]) -> list[tuple[int, RunPod]]:
        """Pods with their ranks; one that was noted down keeps its own."""
        silent = any(pod.node_rank is None for pod in pods)
        return ranked(pods, self._known() if silent else None)

    def number(self, begun: Begun) -> int:
        """The attempt of a container; its record is made if need be."""
        while True:
            number = self._find(begun)
            if number is not None:
                return number
            number = self._next(begun)
            self._records.claim(
                self._scheduler_id, number, str(number), node=begun.node or None, time=begun.at
            )
            if self._records.create(self._records.node(number, begun.rank), begun.record()):
                return number

    def _write(self, begun: Begun) -> None:
        path = self._records.node(self.number(begun), begun.rank)
        if read_record(path).get("ended_at") is None:
            self._records.replace(path, begun.record())

    def _find(self, begun: Begun) -> int | None:
        """The attempt of a container whose record is there."""
        for number, record in self._known_of(begun.rank).items():
            if (record.get("pod_uid"), record.get("restart")) == (begun.uid, begun.restart):
                return number
        return None

    def _next(self, begun: Begun) -> int:
        """The number for a container that has none."""
        known = self._known_of(begun.rank)
        for number, record in known.items():
            if record.get("pod_uid") == begun.uid:
                return max(1, number + begun.restart - int(record.get("restart", 0)))
        return max(known, default=0) + 1 + begun.restart

    def _known_of(self, rank: int) -> dict[int, dict[str, Any]]:
        """A node's records by attempt."""
        found = {}
        for number, folder in attempt_folders(self._status):
            record = read_record(folder / f"node-{rank}.json")
            if record:
                found[number] = record
        return found

    def _known(self) -> dict[str, KnownPod]:
        """The pods that are noted down, by uid, the oldest first."""
        found: dict[str, KnownPod] = {}
        for _, folder in attempt_folders(self._status):
            for name in filter(_NODE.fullmatch, _names(folder)):
                record = read_record(folder / name)
                if record.get("pod_uid") and isinstance(record.get("node_rank"), int):
                    well = record.get("ended_at") is not None and record.get("exit_code") == 0
                    found[str(record["pod_uid"])] = KnownPod(record["node_rank"], well)
        return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(descent.list_names(folder))
    except OSError:
        return []
