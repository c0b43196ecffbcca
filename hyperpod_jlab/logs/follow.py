"""One who follows a run: takes what its readers have read, each line once, at its own speed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from hyperpod_jlab.logs.block import LineBlock, LogBatch
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.feed import Feed, Means
from hyperpod_jlab.logs.history import AttemptMarks
from hyperpod_jlab.logs.lines import cut, whole
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.reader import Reader
from hyperpod_jlab.logs.ring import Slice
from hyperpod_jlab.logs.source import Chunk, LogSource, Mark, Origin
from hyperpod_jlab.logs.stream import Stream

QUIET = 0.5
"""An unfinished line is shown once its stream has been quiet for so long (seconds)."""

PATIENCE = 1.0
"""An unfinished line that keeps growing, such as a progress bar, is shown about this often (seconds)."""

SETTLED = 10.0
"""A stream of an attempt long over is followed no more once it was quiet for so long (seconds)."""

LAST_WORDS = 2.0
"""So long (seconds) new streams wait for the last look at those that have just ended."""

_BATCH = 1 << 20
_OWN_READS = 4


@dataclass
class _Lane:
    """A stream as one follower sees it. Times are monotonic seconds."""

    origin: Origin
    reader: Reader
    place: Place
    life: int | None = None
    waiting_since: float | None = None
    shown: float = 0.0
    trouble: Mark | None = None
    own: LogSource | None = None
    gap: int | None = None


@dataclass(frozen=True)
class Manner:
    """How a follower wants its lines.

    Attributes:
        collapse: Show of progress bars only the last state.
        partial: Show unfinished lines after a while; else only whole ones (and pieces of very long ones).
        exact: No lines at all, but bytes as they come.
    """

    collapse: bool = True
    partial: bool = True
    exact: bool = False


class Follower:
    """Follows the wanted streams of a feed from a cursor on; use it in an ``async with``.

    Args:
        means: The hub.
        feed: The run's feed.
        cursor: Where to begin.
        wanted: Which streams to follow.
        manner: How to show lines.
    """

    def __init__(
        self,
        means: Means,
        feed: Feed,
        cursor: Cursor,
        wanted: Callable[[Stream], bool],
        manner: Manner,
    ) -> None:
        self.cursor = cursor
        self._means = means
        self._feed = feed
        self._wanted = wanted
        self._manner = manner
        self._lanes: dict[Stream, _Lane] = {}
        # An ordered set: who was left over the last time comes first the next time.
        self._fresh: dict[Stream, None] = {}
        self._changed = asyncio.Event()
        self._stopped = False
        self._adopted = 0
        self._grace: float | None = None
        self._marks: AttemptMarks | None = None
        self._alarms: dict[Stream, float] = {}
        feed.join(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._feed.leave(self)

    def news(self, stream: Stream) -> None:
        """The reader of a stream has something."""
        self._fresh[stream] = None
        self._changed.set()

    def found(self) -> None:
        """The feed has found streams, or has failed."""
        self._changed.set()

    def stop(self) -> None:
        """Make `next` return once it finds nothing more."""
        self._stopped = True
        self._changed.set()

    async def next(self) -> LogBatch | None:
        """The next lines; None once it was stopped and nothing more is at hand."""
        # Whoever always finds something must still let the others run.
        await asyncio.sleep(0)
        while True:
            self._changed.clear()
            if self._feed.failure is not None:
                raise self._feed.failure
            self._adopt()
            now = time.monotonic()
            blocks = await self._collect(now)
            if blocks:
                batch = LogBatch(self.cursor, blocks)
                self.cursor = batch.after
                return batch
            if self._stopped:
                return None
            await self._sleep(now)

    async def _sleep(self, now: float) -> None:
        """Until something changes, or an unfinished line is to be shown."""
        alarms = [*self._alarms.values()]
        if self._grace is not None and self._grace > now:
            alarms.append(self._grace)
        alarm = min(alarms, default=None)
        try:
            async with asyncio.timeout(None if alarm is None else max(0.0, alarm - now)):
                await self._changed.wait()
        except TimeoutError:
            return

    def _adopt(self) -> None:
        """Begin to follow streams that the feed has found."""
        origins = self._feed.origins
        if origins is None or len(origins) == self._adopted or self._awaits_last_words():
            return
        self._adopted = len(origins)
        if self._marks is None:
            self._marks = AttemptMarks(self.cursor, origins)
        self._seal(max(stream.attempt for stream in origins) - 1)
        for stream, origin in origins.items():
            if (
                stream in self._lanes
                or stream.attempt < self.cursor.first_attempt
                or not self._wanted(stream)
            ):
                continue
            place = self.cursor.place(stream)
            self._lanes[stream] = _Lane(origin, self._feed.subscribe(self, stream, place), place)
            self._fresh[stream] = None

    def _awaits_last_words(self) -> bool:
        """Whether what ended a moment ago may still have something to say, which comes before what begins now."""
        if not any(lane.reader.farewell for lane in self._lanes.values()):
            self._grace = None
            return False
        now = time.monotonic()
        if self._grace is None:
            self._grace = now + LAST_WORDS
        return now < self._grace

    def _seal(self, first_attempt: int) -> None:
        """Leave off attempts that are long over, once all of theirs was taken."""
        over = [stream for stream in self._lanes if stream.attempt < first_attempt]
        now = time.monotonic()
        if not all(self._is_over(self._lanes[stream], now) for stream in over):
            return
        for stream in over:
            del self._lanes[stream]
            self._fresh.pop(stream, None)
            self._feed.unsubscribe(self, stream)
        self.cursor = self.cursor.sealed(first_attempt)

    def _is_over(self, lane: _Lane, now: float) -> bool:
        reader = lane.reader
        return (
            reader.at_end
            and now - reader.grown > SETTLED
            and lane.place.offset == reader.place.offset
        )

    async def _collect(self, now: float) -> list[LineBlock]:
        """What the fresh streams have, as much as fits a batch."""
        due = [stream for stream, alarm in self._alarms.items() if alarm <= now]
        for stream in due:
            del self._alarms[stream]
        self._fresh.update(dict.fromkeys(due))
        blocks: list[LineBlock] = []
        behind: list[_Lane] = []
        size = 0
        earliest = min((stream.attempt for stream in self._fresh), default=0)
        for stream in list(self._fresh):
            if size >= _BATCH:
                break
            if (
                stream.attempt > earliest
            ):  # its turn comes when the attempts before it have had theirs
                continue
            del self._fresh[stream]
            lane = self._lanes.get(stream)
            if lane is None:
                continue
            self._tell_trouble(lane, blocks)
            held = lane.reader.ring.after(lane.place, lane.life, _BATCH)
            if held is None and _is_behind(lane):
                behind.append(lane)
                continue
            size += self._show(lane, held, blocks, now)
        if self._fresh:
            self._changed.set()
        if behind:
            self._fresh.update(dict.fromkeys(lane.origin.stream for lane in behind[_OWN_READS:]))
            await self._read_own(behind[:_OWN_READS], blocks, now)
        blocks.sort(
            key=lambda block: (
                block.origin.stream.attempt,
                block.time or 0.0,
                block.origin.stream.order,
            )
        )
        return [self._marks.put(block) for block in blocks] if self._marks else blocks

    def _tell_trouble(self, lane: _Lane, blocks: list[LineBlock]) -> None:
        trouble = lane.reader.trouble
        if trouble is not None and trouble != lane.trouble:
            nothing = Chunk(b"", lane.place.offset, start=lane.place)
            blocks.append(LineBlock(lane.origin, nothing, 0, 0, mark=trouble))
        lane.trouble = trouble

    def _show(self, lane: _Lane, held: Slice | None, blocks: list[LineBlock], now: float) -> int:
        """Take what the ring has; returns how many bytes that were."""
        lane.own = None
        if held is None:
            self._feed.want(lane.reader)
            return 0
        lane.life = held.life
        taken = self._take(lane, held.chunk, blocks, now, last=not held.more, closing=held.closing)
        if held.more:
            self._fresh[lane.origin.stream] = None
        else:
            self._feed.want(lane.reader)
        return taken

    async def _read_own(self, lanes: list[_Lane], blocks: list[LineBlock], now: float) -> None:
        """Read from the sources themselves what is no more, or not yet, in the rings."""
        for lane in lanes:
            if lane.own is None:
                lane.own = self._feed.sources.open(lane.origin.stream)
        wanted = [(lane.own, lane.place) for lane in lanes if lane.own is not None]
        chunks = await self._means.thread(_read_all, wanted)
        self._means.reads += len(lanes)
        for lane, chunk in zip(lanes, chunks, strict=True):
            lane.life = None
            taken = self._take(
                lane, chunk, blocks, now, last=len(chunk.data) < _BATCH, closing=False
            )
            if taken or chunk.restarted:
                self._fresh[lane.origin.stream] = None
            else:
                self._feed.want(lane.reader)

    def _take(
        self,
        lane: _Lane,
        chunk: Chunk,
        blocks: list[LineBlock],
        now: float,
        *,
        last: bool,
        closing: bool,
    ) -> int:
        """Make a block of the pieces in a chunk; returns how many bytes they have."""
        size = len(chunk.data)
        stop = size if closing or self._manner.exact else whole(chunk.data, 0, size)
        if stop < size and last:
            stop = self._unfinished(lane, chunk, stop, now)
        else:
            lane.waiting_since = None
        # That a source cannot be read is its reader's to tell, once.
        mark = None if chunk.mark is not None and chunk.mark.kind == "unreadable" else chunk.mark
        if mark is not None and not chunk.restarted:
            mark = None if lane.gap == chunk.offset else mark
            lane.gap = chunk.offset
        if stop or mark is not None:
            origins = self._feed.origins or {}
            lane.origin = origins.get(lane.origin.stream, lane.origin)
            block = LineBlock(
                lane.origin, chunk, 0, stop, mark=mark, collapse=self._manner.collapse
            )
            blocks.append(block)
        if stop or chunk.restarted:
            lane.place = chunk.place(stop)
        return stop

    def _unfinished(self, lane: _Lane, chunk: Chunk, begin: int, now: float) -> int:
        """Where to stop in an unfinished line: behind it when it is time to show it, else before it."""
        stream = lane.origin.stream
        if stream in self._feed.over and not lane.reader.farewell:
            return len(chunk.data)
        if not self._manner.partial:
            return begin
        if begin or lane.waiting_since is None:
            lane.waiting_since = now
        due = min(lane.reader.grown + QUIET, lane.waiting_since + PATIENCE)
        if b"\r" in chunk.data[begin:]:
            due = max(due, lane.shown + PATIENCE)
        if now < due:
            self._alarms[stream] = due
            return begin
        lane.shown, lane.waiting_since = now, None
        return cut(chunk.data, begin, len(chunk.data))


def _is_behind(lane: _Lane) -> bool:
    """Whether a place that is not in the ring must be read from the source."""
    ring, read = lane.reader.ring, lane.reader.place
    if ring.size == 0:
        return lane.place.offset < read.offset
    return lane.place.offset <= read.offset or lane.life != ring.life


def _read_all(places: list[tuple[LogSource, Place]]) -> list[Chunk]:
    """Read from several sources, each with the times of its bytes. Blocking."""
    chunks = []
    for source, place in places:
        chunk = source.read(place, _BATCH)
        source.close()
        base = chunk.offset
        found = source.stamps(base, base + len(chunk.data)) if chunk.data else []
        chunks.append(replace(chunk, stamps=tuple((offset - base, time) for offset, time in found)))
    return chunks
