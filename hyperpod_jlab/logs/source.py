"""The interface of every kind of log source.

There are files in a bundle (`bundle_file`), and streams from elsewhere that are copied into a file
on this machine and read there: a pod's, and a node's from CloudWatch. All methods may block: they
are called in worker threads, by one thread at a time for each source object.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic_core import from_json

from hyperpod_jlab.logs.stream import CHECK_BYTES, Position, Stream, build_check
from hyperpod_jlab.storage import descent

# --------------------------------------------------------------------------------------------------
# Activity records: one small file per node that reports which of its streams have grown, so that
# the others stay closed.

HEARTBEAT = 5.0
"""Maximum interval in seconds at which a live launcher writes its record."""

_MAX_RECORD = 4 << 20
_MAX_FOREIGN = 64 << 10


@dataclass(frozen=True, slots=True)
class StreamActivity:
    """A stream's size (bytes) and the time of its last change (Unix seconds)."""

    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class Activity:
    """One node's record: when it was written (Unix seconds), whether it is the last one, and its streams."""

    time: float
    ended: bool
    streams: Mapping[Stream, StreamActivity]


def read_activity(path: Path, attempt: int, node_rank: int) -> Activity | None:
    """A node's activity record, or None without a valid one. Blocking."""
    try:
        record = from_json(descent.read(path, _MAX_FOREIGN if descent.is_foreign(path) else _MAX_RECORD))
        streams = {
            Stream(attempt, node_rank, None if name == "node" else int(name)): _stream(entry)
            for name, entry in record["streams"].items()
        }
        return Activity(float(record["time"]), bool(record.get("ended")), streams)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        # The record is only an optimization: without it the files themselves are checked.
        return None


def _stream(entry: Mapping[str, Any]) -> StreamActivity:
    return StreamActivity(int(entry["size"]), float(entry["changed"]))


@dataclass(frozen=True, slots=True)
class Origin:
    """The writer of a stream.

    Attributes:
        stream: The stream.
        node: The node's name, or None while it is unknown.
        rank: The global rank, or None for a node's own log.
    """

    stream: Stream
    node: str | None
    rank: int | None


MarkKind = Literal["attempt", "truncated", "replaced", "gap", "unreadable"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something about a stream that its reader must see, in words."""

    kind: MarkKind
    text: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive bytes of one source.

    Attributes:
        data: The bytes.
        offset: Their offset in the source.
        preceding: Up to `CHECK_BYTES` bytes just before them.
        identity: Identifies this file among others of the same name.
        stamps: Increasing pairs (index in `data`, Unix time): the bytes from there on have that
            time. A source sets them only if it knows the times better than the reader.
        mark: An event just before these bytes, if any.
        restarted: The source restarted: these bytes follow its start, not the requested position.
        start: The position of the first byte, if the source knows it and it does not follow from
            the bytes.
    """

    data: bytes
    offset: int
    preceding: bytes = b""
    identity: int = 0
    stamps: Sequence[tuple[int, float]] = field(default=())
    mark: Mark | None = None
    restarted: bool = False
    start: Position | None = None

    def position_at(self, index: int) -> Position:
        """The position of ``data[index]``."""
        if index == 0 and self.start is not None:
            return self.start
        if self.offset + index == 0:
            return Position(0)
        tail = self.data[max(0, index - CHECK_BYTES) : index]
        if index < CHECK_BYTES:
            tail = (self.preceding + tail)[-CHECK_BYTES:]
        return Position(self.offset + index, build_check(self.identity, tail))

    @property
    def opens_line(self) -> bool:
        """Whether the first byte starts a line."""
        return not self.preceding or self.preceding.endswith(b"\n")

    def time_at(self, index: int) -> float | None:
        """The time of ``data[index]`` in Unix seconds, or None when unknown."""
        time_found: float | None = None
        for begin, time in self.stamps:
            if begin > index:
                break
            time_found = time
        return time_found


class LogSource(Protocol):
    """One stream's bytes, wherever they are stored. Reading never raises: an error becomes a mark."""

    @property
    def stream(self) -> Stream: ...

    def open_fd(self) -> int | None:
        """A local file that contains exactly the source's bytes, opened for searching (the caller closes it); None if there is no such file.

        Raises:
            OSError: It cannot be opened.
        """
        ...

    def read(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes from a position on; empty when there are none yet."""
        ...

    def read_back(self, place: Position, limit: int) -> Chunk:
        """Up to `limit` bytes before a position; empty at the source's start."""
        ...

    def size(self) -> int:
        """The source's current size, without opening it if possible."""
        ...

    def known_end(self) -> Position:
        """The source's end; not checked if that would open a file of a shared file system."""
        ...

    def end(self) -> Position:
        """The source's current end."""
        ...

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Increasing pairs (offset, Unix time) for the bytes from `begin` to `end`; the first one is at `begin`."""
        ...

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte written at `time` (Unix seconds) or later, or None when times are unknown."""
        ...

    def changed(self) -> float | None:
        """When the source last grew, in Unix seconds, if known."""
        ...

    def close(self) -> None:
        """Close open files."""
        ...


class SourceSet(Protocol):
    """All sources of one run."""

    @property
    def key(self) -> Hashable:
        """A key that is the same for all source sets of the same run in this process: they share one feed."""
        ...

    @property
    def processes_per_node(self) -> int:
        """Number of ranks on each node, from which global ranks follow."""
        ...

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The existing streams of one attempt or of all, in order. Blocking."""
        ...

    def attempts(self) -> list[int]:
        """The attempts that have logs, in increasing order. Blocking."""
        ...

    def ended_streams(self) -> frozenset[Stream]:
        """Streams known to be complete, as of the last call of `streams`.

        Their last line is shown at once, with or without newline. Streams of earlier attempts, and
        of an ended run, may be omitted.
        """
        ...

    def open(self, stream: Stream) -> LogSource:
        """A new source object for a stream, which may not exist yet. Opens nothing until the first read."""
        ...

    def folder(self, attempt: int | None) -> Path | None:
        """The local folder in which an attempt's files appear and grow, None when there is none.

        Without an attempt, the parent of the attempts' folders.
        """
        ...

    def origin(self, stream: Stream) -> Origin:
        """The stream's origin. Blocking."""
        ...

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """A node's activity record, known without opening its streams, or None. Blocking."""
        ...
