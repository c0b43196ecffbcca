"""What every kind of log source can do.

There are files in a bundle (`bundle_file`), and streams from elsewhere that are copied into a file on this machine and read
there: a pod's, and CloudWatch's of nodes. All methods may block: they are called in worker threads, by one thread at a time for
each source object.
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
# Activity records: one small file a node that tells which of its streams have grown, so that the others stay closed.

HEARTBEAT = 5.0
"""A launcher that lives writes its record at least this often (seconds)."""

_MAX_RECORD = 4 << 20
_MAX_FOREIGN = 64 << 10


@dataclass(frozen=True, slots=True)
class StreamActivity:
    """How long a stream is (bytes) and when that last changed (Unix seconds)."""

    size: int
    changed: float


@dataclass(frozen=True, slots=True)
class Activity:
    """One node's record: when it was written (Unix seconds), whether it is the last one, and its streams."""

    time: float
    ended: bool
    streams: Mapping[Stream, StreamActivity]


def read_activity(path: Path, attempt: int, node_rank: int) -> Activity | None:
    """A node's activity record, or None when there is none that can be understood. Blocking."""
    try:
        record = from_json(
            descent.read(path, _MAX_FOREIGN if descent.is_foreign(path) else _MAX_RECORD)
        )
        streams = {
            Stream(attempt, node_rank, None if name == "node" else int(name)): _stream(entry)
            for name, entry in record["streams"].items()
        }
        return Activity(float(record["time"]), bool(record.get("ended")), streams)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError):
        # The record only saves work: without it the files themselves are looked at.
        return None


def _stream(entry: Mapping[str, Any]) -> StreamActivity:
    return StreamActivity(int(entry["size"]), float(entry["changed"]))


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a stream.

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
        offset: How many bytes of the source lie before them.
        preceding: Up to `TAIL` bytes that lie just before them.
        identity: What tells this file from another under the same name.
        stamps: Rising pairs (index in `data`, Unix time): the bytes from there on were first seen at that time. A source gives them only
            where it knows better than who reads it.
        mark: What happened just before these bytes, if anything.
        restarted: The source began anew: these bytes follow its start, not the place that was asked for.
        start: The place before the first byte, where the source knows it and it does not follow from the bytes.
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
        """The place before ``data[index]``."""
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
        """Whether the first byte begins a line."""
        return not self.preceding or self.preceding.endswith(b"\n")

    def time_at(self, index: int) -> float | None:
        """When ``data[index]`` was first seen, in Unix seconds, or None when nobody noted it."""
        time_found: float | None = None
        for begin, time in self.stamps:
            if begin > index:
                break
            time_found = time
        return time_found


class LogSource(Protocol):
    """One stream's bytes, wherever they lie. Reading never raises: what is wrong comes as a mark."""

    @property
    def stream(self) -> Stream:
        """Which stream this is."""
        ...

    def open_fd(self) -> int | None:
        """A file on this machine that holds just the source's bytes, opened for searching (the caller closes it); None where there is no such file.

        Raises:
            OSError: It cannot be opened.
        """
        ...

    def read(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes from a place on; none when there are none yet."""
        ...

    def read_back(self, place: Position, limit: int) -> Chunk:
        """Up to `limit` bytes that end at a place; none at the source's start."""
        ...

    def size(self) -> int:
        """How many bytes the source has now, without opening it where that can be had."""
        ...

    def known_end(self) -> Position:
        """Where the source ends now; without a check where that would mean to open a file of a shared file system."""
        ...

    def end(self) -> Position:
        """Where the source ends now."""
        ...

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Rising pairs (offset, Unix time) for the bytes from `begin` to `end`; the first is for `begin` itself."""
        ...

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte seen at `time` (Unix seconds) or later, or None when nobody noted times."""
        ...

    def changed(self) -> float | None:
        """When the source last grew, in Unix seconds, as far as known."""
        ...

    def close(self) -> None:
        """Give back what reading holds open."""
        ...


class SourceSet(Protocol):
    """All sources of one run."""

    @property
    def key(self) -> Hashable:
        """What is the same for all source sets of the same run in this process: they share one feed."""
        ...

    @property
    def processes_per_node(self) -> int:
        """Ranks on each node, from which global ranks follow."""
        ...

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """The streams that exist now, of one attempt or of all, in order. Blocking."""
        ...

    def attempts(self) -> list[int]:
        """The attempts that have logs, in rising order. Blocking."""
        ...

    def ended_streams(self) -> frozenset[Stream]:
        """Streams of which is known that nothing is added any more, as of the last call of `streams`.

        What they end with is shown at once, newline or not. Those of earlier attempts, and all once the run has ended,
        need not be named.
        """
        ...

    def open(self, stream: Stream) -> LogSource:
        """A source object of its own for a stream, which need not exist yet. Opens nothing until it is read."""
        ...

    def folder(self, attempt: int | None) -> Path | None:
        """The folder on this machine in which an attempt's files appear and grow, None when there is none.

        Without an attempt: the folder in which the attempts' folders appear.
        """
        ...

    def origin(self, stream: Stream) -> Origin:
        """Who writes a stream. Blocking."""
        ...

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """What is known of all streams of a node without opening them, or None. Blocking."""
        ...
