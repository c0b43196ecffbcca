"""The one who reads a source, for all who follow it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from hyperpod_jlab.logs.source import HEARTBEAT, Activity, Chunk, LogSource, Mark
from hyperpod_jlab.logs.stream import TAIL, Position, Stream

# --------------------------------------------------------------------------------------------------
# The newest bytes of a source, kept for those who follow closely.
#
# Who falls out of the ring reads from the source again, by place; so the ring's size is a bound on memory, not on patience.

_OVERHEAD = 500


@dataclass(frozen=True, slots=True)
class Slice:
    """What the ring has after a place.

    Attributes:
        chunk: The bytes; none when there is nothing yet.
        life: Which of the source's lives they belong to: a source that was cut or replaced begins a new one.
        more: There is more behind them.
        closing: What follows does not go on with these bytes: an unfinished line in them stays unfinished.
    """

    chunk: Chunk
    life: int
    more: bool = False
    closing: bool = False


class Ring:
    """Consecutive chunks of one source, the oldest dropped first.

    Attributes:
        limit: Most bytes to keep.
        size: Bytes kept, with what keeping them costs.
        life: The source's present life.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.life = 0
        self._chunks: deque[tuple[int, Chunk]] = deque()

    def add(self, chunk: Chunk) -> None:
        """Take the bytes that follow; drops the oldest beyond the limit, but never these."""
        if chunk.restarted:
            self.life += 1
        self._chunks.append((self.life, chunk))
        self.size += len(chunk.data) + _OVERHEAD
        while self.size > self.limit and len(self._chunks) > 1:
            _, oldest = self._chunks.popleft()
            self.size -= len(oldest.data) + _OVERHEAD

    def after(self, place: Position, life: int | None, limit: int) -> Slice | None:
        """Up to `limit` bytes after a place (at least one chunk's), or None when the place is not in the ring.

        Args:
            place: The place.
            life: The life that it belongs to, as a slice told, or None when that is not known.
            limit: Bytes after which no further chunk is taken.
        """
        following: list[tuple[int, Chunk]] = []
        for held in reversed(self._chunks):
            index = place.offset - held[1].offset
            if (
                life in (None, held[0])
                and 0 <= index <= len(held[1].data)
                and _same(held[1].place(index), place)
            ):
                return _slice(held, index, following, limit)
            following.append(held)
        return None


def _same(one: Position, other: Position) -> bool:
    return not one.check or not other.check or one.check == other.check


def _breaks(chunk: Chunk) -> bool:
    """Whether the bytes do not simply go on with those before them."""
    return chunk.restarted or chunk.mark is not None


def _slice(
    held: tuple[int, Chunk], index: int, following: list[tuple[int, Chunk]], limit: int
) -> Slice:
    """Join the chunk's data from `index` on and the chunks after it (in `following`, the newest first)."""
    life, chunk = held
    new_life = index == len(chunk.data) and bool(following) and following[-1][1].restarted
    if new_life:
        (life, chunk), index = following.pop(), 0
    before = (
        chunk.data[index - TAIL : index]
        if index >= TAIL
        else (chunk.before + chunk.data[:index])[-TAIL:]
    )
    parts = [chunk.data[index:]]
    stamps = [(max(0, begin - index), time) for begin, time in chunk.stamps]
    size = len(parts[0])
    while following and size < limit and not _breaks(following[-1][1]):
        _, later = following.pop()
        stamps.extend((begin + size, time) for begin, time in later.stamps)
        parts.append(later.data)
        size += len(later.data)
    joined = Chunk(
        parts[0] if len(parts) == 1 else b"".join(parts),
        chunk.offset + index,
        before,
        chunk.identity,
        # The last stamp of an index holds.
        stamps=tuple(dict(stamps).items()),
        mark=chunk.mark if new_life or (index == 0 and not chunk.restarted) else None,
        restarted=new_life,
        start=chunk.start if index == 0 else None,
    )
    return Slice(
        joined, life, more=bool(following), closing=bool(following) and _breaks(following[-1][1])
    )


# --------------------------------------------------------------------------------------------------
# How often to look: fast while bytes arrive, slowly when quiet, and never more often in all than the budget allows.

FAST = 0.05
"""Seconds between looks while bytes arrive."""

WARM = 0.08
"""Seconds between looks for `LINGER` seconds after that: a line every few seconds is still seen at once."""

SLOW = 1.0
"""The longest time between looks, in seconds."""

GROWTH = 1.5
"""By what the time between looks grows when there was nothing to see."""

LINGER = 30.0
"""Seconds for which a stream stays warm after its last byte."""

SWEEP = 30.0
"""A stream that sleeps, because a record tells when it grows, is looked at this often all the same (seconds)."""

_HOT = 1.0


def pause(quiet: float, last: float) -> float:
    """Seconds until the next look.

    Args:
        quiet: Seconds since bytes last arrived.
        last: The pause before this look, in seconds.
    """
    if quiet < _HOT:
        return FAST
    if quiet < LINGER:
        return WARM
    return min(SLOW, max(WARM, last) * GROWTH)


class ReadBudget:
    """A number of looks a second that all readers share: looks saved are kept for a tenth of a second.

    Args:
        rate: Looks a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate / 10)
        self._left = self._most
        self._filled = 0.0

    def take(self, wanted: int, now: float) -> int:
        """How many of so many looks may be done now (`now` in monotonic seconds)."""
        self._left = min(self._most, self._left + (now - self._filled) * self._rate)
        self._filled = now
        granted = min(wanted, int(self._left))
        self._left -= granted
        return granted

    def wait(self) -> float:
        """Seconds until a look is allowed."""
        return max(0.0, (1.0 - self._left) / self._rate)


_LONGEST_READ = 1 << 20
_STILL_LIVE = 2.0


class Subscriber(Protocol):
    """Who is told that a stream has news."""

    def news(self, stream: Stream) -> None:
        """There are new bytes, or a new mark, in a stream."""
        ...


@dataclass
class SourceReader:
    """One source that is being followed: where its reader stands, and when it looks next. Times are monotonic seconds.

    Attributes:
        source: The source; used in worker threads, by one look at a time.
        place: How far it was read.
        ring: The newest bytes.
        due: When to look next.
        wanted: Somebody has taken all there is and waits for more.
        nudged: A notification says that there is something to see.
        asleep: Its node's activity record is watched in its place; it is still looked at when due, which is seldom.
        grown: When bytes last came.
        looked: When it was last looked at.
        rest: The present pause between looks, in seconds.
        at_end: When it was last looked at, there was no more to read.
        trouble: What keeps it from being read, if anything.
        farewell: Nothing is added any more, as was just heard: the next look is the last word, and is told whatever it finds.
        subscribers: Who follows it.
    """

    source: LogSource
    place: Position
    ring: Ring
    due: float
    grown: float
    looked: float = 0.0
    rest: float = FAST
    wanted: bool = True
    nudged: bool = False
    asleep: bool = False
    trouble: Mark | None = None
    farewell: bool = False
    at_end: bool = True

    def __post_init__(self) -> None:
        self.subscribers: set[Subscriber] = set()

    def look(self, now: float, unix: float, *, keep_open: bool) -> Chunk:
        """Read what has come. Blocking; changes nothing but the source's open file.

        Args:
            now: Monotonic seconds.
            unix: The same moment in Unix seconds.
            keep_open: Leave a quiet file open.
        """
        limit = min(_LONGEST_READ, self.ring.limit)
        chunk = self.source.read(self.place, limit)
        if not chunk.data:
            if not keep_open and now - self.grown > _STILL_LIVE:
                self.source.close()
            return chunk
        if chunk.stamps:  # the source knows better than whoever looks
            return chunk
        if self.at_end and now - self.looked < _STILL_LIVE:
            # At the last look there was nothing here, so these bytes are as new as this moment.
            return replace(chunk, stamps=((0, unix),))
        base = chunk.offset
        found = self.source.stamps(base, base + len(chunk.data))
        return replace(chunk, stamps=tuple((offset - base, time) for offset, time in found))

    def absorb(self, chunk: Chunk, now: float) -> None:
        """Take what a look has read, tell the subscribers, and plan the next look."""
        self.looked = now
        self.at_end = len(chunk.data) < min(_LONGEST_READ, self.ring.limit)
        trouble = chunk.mark if chunk.mark is not None and chunk.mark.kind == "unreadable" else None
        news = self.farewell or (trouble is not None and trouble != self.trouble)
        self.farewell = self.farewell and not self.at_end
        self.trouble = trouble
        if chunk.data or chunk.restarted:
            self.ring.add(chunk)
            self.place = chunk.place(len(chunk.data))
            self.grown = now
            self.wanted = False
            news = True
        self.rest = pause(now - self.grown, self.rest)
        if self.asleep and not chunk.data:
            self.due = now + SWEEP
        else:
            self.asleep = False
            self.due = now + (self.rest if self.at_end else 0.0)
        if news:
            for subscriber in tuple(self.subscribers):
                subscriber.news(self.source.stream)


# --------------------------------------------------------------------------------------------------
# Which streams need not be looked at: their node's activity record tells when they grow.
#
# Of 512 ranks mostly a few write. The others are put to sleep, and one small file a node is read in their place. It is a help
# only: a record that is missing, or not renewed, wakes its streams, and each is looked at now and then anyway.

FEW = 32
"""With no more readers than this nobody sleeps: looking at them is cheap."""

RECORDS_A_SECOND = 200.0
"""Of very many nodes (an array of hundreds) this many records are read a second at the most, to leave looks for the logs."""

_QUIET = 5.0
_FASTEST = 0.25

Node = tuple[int, int]
"""Attempt and node rank."""


@dataclass
class _Watch:
    """One node's record: when to read it next, and when it was last seen to be renewed (monotonic seconds)."""

    due: float
    rest: float = _FASTEST
    time: float = 0.0
    renewed: float = 0.0
    ended: bool = False
    quiet: list[SourceReader] = field(default_factory=list)

    def alive(self, now: float) -> bool:
        return self.ended or now - self.renewed < 3 * HEARTBEAT


class Dormancy:
    """Puts quiet readers to sleep and wakes them."""

    def __init__(self) -> None:
        self._watches: dict[Node, _Watch] = {}

    def due(self, readers: Mapping[Stream, SourceReader], now: float) -> list[Node]:
        """The nodes whose records are to be read now; settles who sleeps."""
        if len(readers) <= FEW:
            self._wake(readers.values())
            self._watches.clear()
            return []
        quiet: dict[Node, list[SourceReader]] = {}
        for stream, reader in readers.items():
            if now - reader.grown > _QUIET:
                quiet.setdefault((stream.attempt, stream.node_rank), []).append(reader)
        for node in self._watches.keys() - quiet.keys():
            del self._watches[node]
        for node, sleepers in quiet.items():
            # A node that was not asked yet is taken to be alive until it has answered.
            watch = self._watches.setdefault(node, _Watch(due=now, renewed=now))
            watch.quiet = sleepers
            if not watch.alive(now):
                self._wake(sleepers)
        found = [(watch.due, node) for node, watch in self._watches.items() if watch.due <= now]
        return [node for _, node in sorted(found)]

    def told(
        self,
        node: Node,
        record: Activity | None,
        readers: Mapping[Stream, SourceReader],
        now: float,
    ) -> None:
        """Take what a node's record says; wakes the streams that have grown and puts the other quiet ones to sleep."""
        watch = self._watches.get(node)
        if watch is None:
            return
        grown = False
        if record is None:
            watch.renewed = float("-inf")
        else:
            if record.time != watch.time:
                watch.time, watch.renewed, watch.ended = record.time, now, record.ended
            self._wake(each for each in watch.quiet if each.source.stream not in record.streams)
            for stream, activity in record.streams.items():
                reader = readers.get(stream)
                if reader is None:
                    continue
                if activity.size > reader.place.offset:
                    grown = True
                    reader.asleep, reader.due = False, now
                elif not reader.asleep and now - reader.grown > _QUIET and watch.alive(now):
                    reader.asleep, reader.due = True, now + SWEEP
        watch.rest = _FASTEST if grown else min(SLOW, watch.rest * GROWTH)
        watch.due = now + max(watch.rest, len(self._watches) / RECORDS_A_SECOND)

    def next_due(self) -> float:
        """When the next record is to be read (monotonic seconds)."""
        return min((watch.due for watch in self._watches.values()), default=float("inf"))

    @staticmethod
    def _wake(readers: Iterable[SourceReader]) -> None:
        for reader in readers:
            if reader.asleep:
                reader.asleep, reader.due = False, 0.0
