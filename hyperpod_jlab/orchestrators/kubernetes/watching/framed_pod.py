"""A pod in which our launcher prints frames: its logs byte by byte, its records as files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hyperpod_jlab.orchestrators.kubernetes.api.pod_log import Entry, Item, Portion
from hyperpod_jlab.orchestrators.kubernetes.watching.frames import (
    FrameReader,
    LogBytes,
    RecordFile,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import PodSpool
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes, Piece
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_records import (
    SpooledRecords,
    attempt_of,
    is_claim,
)
from hyperpod_jlab.storage.records import BundleReader

PODS_FOLDER = "pods"
"""In the folder of logs: what pods print beside their launchers' frames."""

_LONGEST_LINE = 1 << 20


class FramedPod(PodSpool):
    """See the module."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        super().__init__(bundle, pod, modes)
        self._records = SpooledRecords(bundle.records, modes)
        self._beside = self._logs / PODS_FOLDER / f"{pod.name}.{pod.uid[:8]}.log"

    def _begin(self) -> None:
        self._frames = FrameReader()
        self._line: list[bytes] = []
        self._length = 0
        self._stamp = 0

    def _put(self, portion: Portion) -> bool:
        pieces: dict[Path, list[Piece]] = {}
        for stamp, line in self._lines(portion.items):
            frame = self._frames.read(line)
            if isinstance(frame, LogBytes):
                path = self._logs / self._log_name(frame)
                pieces.setdefault(path, []).append(Piece(frame.offset, frame.data, stamp))
            elif isinstance(frame, RecordFile):
                self._write(pieces)  # what a record tells of logs is told when they are there
                pieces.clear()
                self._put_record(frame)
            elif not self._frames.midway:
                said = Piece(self._now.said, line + b"\n", stamp)
                pieces.setdefault(self._beside, []).append(said)
                self._count(said=said.offset + len(said.data))
        self._write(pieces)
        return not self._line and not self._frames.midway

    def _lines(self, items: Iterable[Item]) -> Iterable[tuple[int, bytes]]:
        """Whole lines with their times; one that never ends is cut, for it is none of the launcher's."""
        for item in items:
            if not isinstance(item, Entry):
                continue
            if item.starts:
                self._line, self._length, self._stamp = [], 0, item.stamp
            self._line.append(item.data)
            self._length += len(item.data)
            if item.ends or self._length > _LONGEST_LINE:
                line, self._line, self._length = b"".join(self._line), [], 0
                yield self._stamp, line

    def _log_name(self, frame: LogBytes) -> str:
        number = self._now.attempts.get(frame.attempt, frame.attempt)
        rank = "" if frame.local_rank is None else f".rank-{frame.local_rank}"
        return f"attempt-{number}/node-{frame.node}{rank}.log"

    def _put_record(self, file: RecordFile) -> None:
        told = attempt_of(file.path)
        if told is not None and file.content is not None and is_claim(file.path):
            number = self._records.attempt(told, file.content)
            self._count(attempts={**self._now.attempts, told: number})
            return
        self._records.put(file, None if told is None else self._now.attempts.get(told, told))
