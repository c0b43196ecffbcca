"""Reads a source for all of its followers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from hyperpod_jlab.logs.source import HEARTBEAT, Activity, Chunk, LogSource, Mark
from hyperpod_jlab.logs.stream import CHECK_BYTES, Position, Stream

# --------------------------------------------------------------------------------------------------
# The newest bytes of a source, buffered for followers that keep up.
#
# A follower that falls out of the ring reads from the source again, by position; so the ring's size
# limits memory, not how slow a follower may be.

_OVERHEAD = 500


@dataclass(frozen=True, slots=True)
class Slice:
    """The ring's data after a position.

    Attributes:
        chunk: The bytes; empty when there is nothing yet.
        generation: Their generation: a truncated or replaced source starts a new one.
        has_more: More data follows.
        closing: The following data does not continue these bytes: an unfinished line in them stays
            unfinished.
    """

    chunk: Chunk
    generation: int
    has_more: bool = False
    closing: bool = False


class Ring:
    """Consecutive chunks of one source, the oldest dropped first.

    Attributes:
        limit: Maximum size in bytes.
        size: Current size in bytes, with overhead.
        generation: The source's current generation.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.generation = 0
        self._chunks: deque[tuple[int, Chunk]] = deque()

    def add(self, chunk: Chunk) -> None:
        """Append the next bytes; drops the oldest ones beyond the limit, but never these."""
        if chunk.restarted:
            self.generation += 1
        self._chunks.append((self.generation, chunk))
        self.size += len(chunk.data) + _OVERHEAD
        while self.size > self.limit and len(self._chunks) > 1:
            _, oldest = self._chunks.popleft()
            self.size -= len(oldest.data) + _OVERHEAD

    def read_after(self, position: Position, generation: int | None, limit: int) -> Slice | None:
        """Up to `limit` bytes after a position (at least one chunk), or None when the position is not in the ring.

        Args:
            position: The position.
            generation: Its generation, from an earlier slice; None when unknown.
            limit: Bytes after which no further chunk is added.
        """
        following: list[tuple[int, Chunk]] = []
        for entry in reversed(self._chunks):
            index = position.offset - entry[1].offset
            if (
                generation in (None, entry[0])
                and 0 <= index <= len(entry[1].data)
                and _same_position(entry[1].position_at(index), position)
            ):
                return _slice(entry, index, following, limit)
            following.append(entry)
        return None


def _same_position(left: Position, right: Position) -> bool:
    return not left.check or not right.check or left.check == right.check


def _breaks(chunk: Chunk) -> bool:
    """Whether the bytes do not continue the previous ones."""
    return chunk.restarted or chunk.mark is not None


def _slice(entry: tuple[int, Chunk], index: int, following: list[tuple[int, Chunk]], limit: int) -> Slice:
    """Join the chunk's data from `index` on and the chunks after it (in `following`, newest first)."""
    generation, chunk = entry
    is_new_generation = index == len(chunk.data) and bool(following) and following[-1][1].restarted
    if is_new_generation:
        (generation, chunk), index = following.pop(), 0
    preceding = (
        chunk.data[index - CHECK_BYTES : index]
        if index >= CHECK_BYTES
        else (chunk.preceding + chunk.data[:index])[-CHECK_BYTES:]
    )
    parts = [chunk.data[index:]]
    stamps = [(max(0, begin - index), time) for begin, time in chunk.stamps]
    size = len(parts[0])
    while following and size < limit and not _breaks(following[-1][1]):
        _, later_chunk = following.pop()
        stamps.extend((begin + size, time) for begin, time in later_chunk.stamps)
        parts.append(later_chunk.data)
        size += len(later_chunk.data)
    joined = Chunk(
        parts[0] if len(parts) == 1 else b"".join(parts),
        chunk.offset + index,
        preceding,
        chunk.identity,
        # The last timestamp of an index applies.
        stamps=tuple(dict(stamps).items()),
        mark=chunk.mark if is_new_generation or (index == 0 and not chunk.restarted) else None,
        restarted=is_new_generation,
        start=chunk.start if index == 0 else None,
    )
    return Slice(joined, generation, has_more=bool(following), closing=bool(following) and _breaks(following[-1][1]))


# --------------------------------------------------------------------------------------------------
# The poll interval: short while bytes arrive, long when quiet, and limited in total by the budget.

FAST_POLL_S = 0.05
"""Seconds between reads while bytes arrive."""

WARM = 0.08
"""Seconds between reads for `LINGER` seconds after that: a line every few seconds is still seen at once."""

SLOW_POLL_S = 1.0
"""The maximum seconds between reads."""

POLL_GROWTH = 1.5
"""The factor by which the interval grows after a fruitless read."""

LINGER = 30.0
"""Seconds for which a stream stays warm after its last byte."""

SWEEP_S = 30.0
"""Seconds between reads of a sleeping stream, whose record reports its growth."""

_HOT = 1.0


def next_pause(quiet_s: float, last: float) -> float:
    """Seconds until the next read.

    Args:
        quiet_s: Seconds since the last bytes.
        last: The previous pause in seconds.
    """
    if quiet_s < _HOT:
        return FAST_POLL_S
    if quiet_s < LINGER:
        return WARM
    return min(SLOW_POLL_S, max(WARM, last) * POLL_GROWTH)


class ReadBudget:
    """Reads per second that all readers share; unused reads are kept for a tenth of a second.

    Args:
        rate: Reads per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._capacity = max(1.0, rate / 10)
        self._tokens = self._capacity
        self._filled = 0.0

    def acquire(self, requested: int, now: float) -> int:
        """How many of this many reads are allowed now (`now` in monotonic seconds)."""
        self._tokens = min(self._capacity, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        granted = min(requested, int(self._tokens))
        self._tokens -= granted
        return granted

    def wait_s(self) -> float:
        """Seconds until a read is allowed."""
        return max(0.0, (1.0 - self._tokens) / self._rate)


_MAX_READ_BYTES = 1 << 20
_LIVE_S = 2.0


class Subscriber(Protocol):
    """Receives a stream's changes."""

    def on_change(self, stream: Stream) -> None:
        """A stream has new bytes, or a new mark."""
        ...


@dataclass
class SourceReader:
    """One followed source: its reader's position, and the time of its next read. Times are monotonic seconds.

    Attributes:
        source: The source; used in worker threads, by one read at a time.
        position: The position up to which it was read.
        ring: The newest bytes.
        next_read_at: The time of the next read.
        is_wanted: A follower has taken everything and waits for more.
        nudged: A notification reported a change.
        asleep: Its node's activity record is watched instead; it is still read when due, which is
            rare.
        grown: The time of the last bytes.
        read_at: The time of the last read.
        pause_s: The current pause between reads, in seconds.
        at_end: The last read found nothing more.
        problem: Why it is unreadable, if it is.
        farewell: It was just reported as complete: the next read is final, and its result is always
            reported.
        subscribers: Its followers.
    """

    source: LogSource
    position: Position
    ring: Ring
    next_read_at: float
    grown: float
    read_at: float = 0.0
    pause_s: float = FAST_POLL_S
    is_wanted: bool = True
    nudged: bool = False
    asleep: bool = False
    problem: Mark | None = None
    farewell: bool = False
    at_end: bool = True

    def __post_init__(self) -> None:
        self.subscribers: set[Subscriber] = set()

    def read_source(self, now: float, unix: float, *, keep_open: bool) -> Chunk:
        """Read new data. Blocking; changes nothing but the source's open file.

        Args:
            now: Monotonic seconds.
            unix: The same time in Unix seconds.
            keep_open: Leave a quiet file open.
        """
        limit = min(_MAX_READ_BYTES, self.ring.limit)
        chunk = self.source.read(self.position, limit)
        if not chunk.data:
            if not keep_open and now - self.grown > _LIVE_S:
                self.source.close()
            return chunk
        if chunk.stamps:  # the source knows the times better than the reader
            return chunk
        if self.at_end and now - self.read_at < _LIVE_S:
            # The last read found nothing here, so these bytes are as new as this read.
            return replace(chunk, stamps=((0, unix),))
        base = chunk.offset
        stamps = self.source.stamps(base, base + len(chunk.data))
        return replace(chunk, stamps=tuple((offset - base, time) for offset, time in stamps))

    def accept(self, chunk: Chunk, now: float) -> None:
        """Process the result of a read, notify the subscribers, and schedule the next read."""
        self.read_at = now
        self.at_end = len(chunk.data) < min(_MAX_READ_BYTES, self.ring.limit)
        problem = chunk.mark if chunk.mark is not None and chunk.mark.kind == "unreadable" else None
        has_news = self.farewell or (problem is not None and problem != self.problem)
        self.farewell = self.farewell and not self.at_end
        self.problem = problem
        if chunk.data or chunk.restarted:
            self.ring.add(chunk)
            self.position = chunk.position_at(len(chunk.data))
            self.grown = now
            self.is_wanted = False
            has_news = True
        self.pause_s = next_pause(now - self.grown, self.pause_s)
        if self.asleep and not chunk.data:
            self.next_read_at = now + SWEEP_S
        else:
            self.asleep = False
            self.next_read_at = now + (self.pause_s if self.at_end else 0.0)
        if has_news:
            for subscriber in tuple(self.subscribers):
                subscriber.on_change(self.source.stream)


# --------------------------------------------------------------------------------------------------
# Idle streams that need no reads, because their node's activity record reports their growth.
#
# Of 512 ranks usually a few write. The others are put to sleep, and one small file per node is read
# instead. This is only an optimization: a missing or outdated record wakes its streams, and each
# stream is read occasionally anyway.

FEW = 32
"""With at most this many readers none sleeps, because reading them is cheap."""

RECORDS_A_SECOND = 200.0
"""Maximum records read per second with very many nodes (an array of hundreds), to leave reads for the logs."""

_QUIET_S = 5.0
_FASTEST = 0.25

Node = tuple[int, int]
"""Attempt and node rank."""


@dataclass
class _NodeWatch:
    """One node's record: the time of its next read, and of its last observed update (monotonic seconds)."""

    next_check_at: float
    pause_s: float = _FASTEST
    time: float = 0.0
    renewed_at: float = 0.0
    ended: bool = False
    sleeping_readers: list[SourceReader] = field(default_factory=list)

    def alive(self, now: float) -> bool:
        return self.ended or now - self.renewed_at < 3 * HEARTBEAT


class IdleTracker:
    """Puts quiet readers to sleep and wakes them."""

    def __init__(self) -> None:
        self._node_watches: dict[Node, _NodeWatch] = {}

    def due_nodes(self, readers: Mapping[Stream, SourceReader], now: float) -> list[Node]:
        """The nodes whose records must be read now; decides which readers sleep."""
        if len(readers) <= FEW:
            self._wake(readers.values())
            self._node_watches.clear()
            return []
        sleeping: dict[Node, list[SourceReader]] = {}
        for stream, reader in readers.items():
            if now - reader.grown > _QUIET_S:
                sleeping.setdefault((stream.attempt, stream.node_rank), []).append(reader)
        for node in self._node_watches.keys() - sleeping.keys():
            del self._node_watches[node]
        for node, sleepers in sleeping.items():
            # A node that has not been queried yet counts as alive until its record is read.
            node_watch = self._node_watches.setdefault(node, _NodeWatch(next_check_at=now, renewed_at=now))
            node_watch.sleeping_readers = sleepers
            if not node_watch.alive(now):
                self._wake(sleepers)
        due_nodes = [
            (node_watch.next_check_at, node)
            for node, node_watch in self._node_watches.items()
            if node_watch.next_check_at <= now
        ]
        return [node for _, node in sorted(due_nodes)]

    def on_activity(
        self, node: Node, record: Activity | None, readers: Mapping[Stream, SourceReader], now: float
    ) -> None:
        """Process a node's record; wakes the streams that have grown and puts the other quiet ones to sleep."""
        node_watch = self._node_watches.get(node)
        if node_watch is None:
            return
        grown = False
        if record is None:
            node_watch.renewed_at = float("-inf")
        else:
            if record.time != node_watch.time:
                node_watch.time, node_watch.renewed_at, node_watch.ended = (record.time, now, record.ended)
            self._wake(
                sleeper for sleeper in node_watch.sleeping_readers if sleeper.source.stream not in record.streams
            )
            for stream, activity in record.streams.items():
                reader = readers.get(stream)
                if reader is None:
                    continue
                if activity.size > reader.position.offset:
                    grown = True
                    reader.asleep, reader.next_read_at = False, now
                elif not reader.asleep and now - reader.grown > _QUIET_S and node_watch.alive(now):
                    reader.asleep, reader.next_read_at = True, now + SWEEP_S
        node_watch.pause_s = _FASTEST if grown else min(SLOW_POLL_S, node_watch.pause_s * POLL_GROWTH)
        node_watch.next_check_at = now + max(node_watch.pause_s, len(self._node_watches) / RECORDS_A_SECOND)

    def next_due(self) -> float:
        """The time of the next record read (monotonic seconds)."""
        return min((node_watch.next_check_at for node_watch in self._node_watches.values()), default=float("inf"))

    @staticmethod
    def _wake(readers: Iterable[SourceReader]) -> None:
        for reader in readers:
            if reader.asleep:
                reader.asleep, reader.next_read_at = False, 0.0
