"""A run's logs as a launcher and its ranks would write them, and one who reads them and keeps book."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.lines import LogBatch, LogLine
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.source import SourceSet
from hyperpod_jlab.logs.stream import Stream


class RunFolder:
    """The records of one run, and what the log service asks of runs."""

    def __init__(self, root: Path, processes_per_node: int = 2) -> None:
        self.root = root
        self.per_node = processes_per_node
        self.ended = True
        self.asked = 0

    def sources(self, run_id: str) -> SourceSet:
        return RecordStreams(self.root, self.per_node)

    async def is_ended(self, run_id: str) -> bool:
        self.asked += 1
        return self.ended

    def stream(self, rank: int | None, attempt: int = 1, node: int = 0) -> Stream:
        if rank is None:
            return Stream(attempt, node, None)
        return Stream(attempt, rank // self.per_node, rank % self.per_node)

    def path(self, rank: int | None = 0, attempt: int = 1, node: int = 0) -> Path:
        stream = self.stream(rank, attempt, node)
        folder = self.root / "logs" / f"attempt-{attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / stream.file_name

    def write(self, rank: int | None, data: bytes | str, at: float | None = None, attempt: int = 1) -> None:
        """Append to a rank's log; with a time, note it in the index as the launcher does."""
        path = self.path(rank, attempt)
        offset = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        if at is not None:
            with path.with_suffix(".idx").open("ab") as file:
                file.write(struct.pack("<qq", round(at * 1e9), offset))

    def activity(
        self, node: int, streams: dict[str, tuple[int, float]], *, attempt: int = 1, ended: bool = False
    ) -> None:
        self.path(0, attempt)
        folder = self.root / "logs" / f"attempt-{attempt}"
        record = {
            "time": time.time(),
            "ended": ended,
            "streams": {key: {"size": size, "changed": changed} for key, (size, changed) in streams.items()},
        }
        temporary = folder / f".node-{node}.tmp"
        temporary.write_text(json.dumps(record))
        temporary.replace(folder / f"node-{node}.activity.json")

    def node_name(self, node: int, name: str, attempt: int = 1) -> None:
        folder = self.root / "status" / f"attempt-{attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"node-{node}.json").write_text(json.dumps({"node": name}))


class Ledger:
    """Books which bytes of which stream a client has taken, and complains at once about a gap or a repeat.

    A client may stop after any line: what counts is the line's cursor.
    """

    def __init__(self) -> None:
        self.next: dict[Stream, int] = {}
        self.taken: dict[Stream, bytearray] = {}
        self.marks: list[tuple[Stream, str]] = []
        self.cursor: str | None = None

    def take(self, line: LogLine) -> None:
        stream = line._block.origin.stream
        if line._segment is None:
            self.marks.append((stream, str(line.mark)))
            if line.mark in ("truncated", "replaced"):
                self.next[stream] = 0
                self.taken[stream] = bytearray()
            self.cursor = line.cursor
            return
        block, piece = line._block, line._segment
        begin, end = block._begin_of(piece), block.ends[piece]
        self._book(stream, block.chunk.offset + begin, block.chunk.data[begin:end])
        self.cursor = line.cursor
        for other, place in Cursor.parse(line.cursor).positions.items():
            expected = self.next.get(other, 0)
            # A newline that only ends a line already shown is taken without being a line of its own.
            assert place.offset in (expected, expected + 1, expected + 2), (other, place.offset, expected)
            if place.offset > expected:
                self._newline(other, place.offset - expected)

    def take_all(self, batch: LogBatch) -> None:
        for line in batch:
            self.take(line)
        for stream, place in batch.end_position.positions.items():
            if place.offset > self.next.get(stream, 0):
                self._newline(stream, place.offset - self.next.get(stream, 0))
        self.cursor = batch.end_position.text()

    def _book(self, stream: Stream, offset: int, data: bytes) -> None:
        expected = self.next.get(stream, 0)
        if offset in (expected + 1, expected + 2):
            self._newline(stream, offset - expected)
            expected = offset
        assert offset == expected, f"{stream}: {offset} comes after {expected}"
        self.taken.setdefault(stream, bytearray()).extend(data)
        self.next[stream] = offset + len(data)

    def _newline(self, stream: Stream, length: int) -> None:
        assert length in (1, 2)
        self.taken.setdefault(stream, bytearray()).extend(b"\r\n"[-length:])
        self.next[stream] = self.next.get(stream, 0) + length
