"""One who follows a run: takes what its readers have read, each line once, at its own speed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import struct
import sys
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.history import AttemptMarks
from hyperpod_jlab.logs.lines import LineBlock, LogBatch, cut, whole
from hyperpod_jlab.logs.reader import (
    FEW,
    GROWTH,
    LINGER,
    SWEEP,
    Dormancy,
    Node,
    ReadBudget,
    Ring,
    Slice,
    SourceReader,
    Subscriber,
)
from hyperpod_jlab.logs.source import Activity, Chunk, LogSource, Mark, Origin, SourceSet
from hyperpod_jlab.logs.stream import Position, Stream, stream_of
from hyperpod_jlab.storage import descent

# --------------------------------------------------------------------------------------------------
# inotify as an additional wake-up: where it works, news is seen at once; where it does not, nothing is lost but time.
#
# Lustre and NFS report only this machine's own writes, so no notification never means no news.

_LOG = logging.getLogger(__name__)
_EVENT = struct.Struct("iIII")
_BUFFER = 64 << 10
_GAP = 0.002


class Wakeups:
    """Watches folders and tells the names of the files in them that were made or written to.

    Args:
        told: Called in the event loop with a watched folder and the names in it.
    """

    def __init__(self, told: Callable[[Path, set[str]], None]) -> None:
        self._told = told
        self._folders: dict[int, Path] = {}
        self._inotify: Any = None
        self._fd = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resuming: asyncio.TimerHandle | None = None

    def start(self) -> bool:
        """Begin, in the running event loop; tells whether there is an inotify to be had."""
        if sys.platform != "linux":
            return False
        try:
            from asyncinotify import Inotify

            self._inotify = Inotify()
            self._fd = self._inotify.fd
            self._loop = asyncio.get_running_loop()
            # Events come in floods while ranks write; they are parsed in one go, not one object each.
            self._loop.add_reader(self._fd, self._read)
        except (ImportError, OSError, NotImplementedError) as error:
            _LOG.debug("no inotify, logs are polled only: %s", error)
            self.stop()
            return False
        return True

    def watch(self, folder: Path) -> None:
        """Watch a folder, once; one that is not there is not watched."""
        if self._inotify is None or folder in self._folders.values():
            return
        from asyncinotify import Mask

        try:
            with descent.opened_folder(folder) as opened:
                watch = self._inotify.add_watch(
                    Path(f"/proc/self/fd/{opened}"),
                    Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.ONLYDIR,
                )
        except OSError as error:
            _LOG.debug("%s is polled only: %s", folder, error)
            return
        self._folders[watch.wd] = folder

    def stop(self) -> None:
        """Watch nothing any more."""
        if self._resuming is not None:
            self._resuming.cancel()
        if self._inotify is not None:
            if self._loop is not None and not self._loop.is_closed():
                # By its number: at the end of the process the inotify itself may have been closed before.
                self._loop.remove_reader(self._fd)
            self._inotify.close()
        self._inotify = None
        self._folders.clear()

    def _resume(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(OSError):  # closed, at the end of the process
                self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _BUFFER)
        except OSError:  # nothing there; or it was closed, at the end of the process
            return
        # Under a flood it is enough to hear of it now and then.
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._resuming = self._loop.call_later(_GAP, self._resume)
        names: dict[int, set[str]] = {}
        at = 0
        while at + _EVENT.size <= len(data):
            wd, _, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = data[at : at + length].rstrip(b"\0")
            at += length
            names.setdefault(wd, set()).add(os.fsdecode(name))
        for wd, told in names.items():
            if wd in self._folders:
                self._told(self._folders[wd], told)
            elif wd == -1:
                # The kernel's queue overflowed: anything may have happened anywhere.
                for folder in self._folders.values():
                    self._told(folder, set())


# --------------------------------------------------------------------------------------------------
# One run being followed: finds its streams as they appear, and looks at each of them once for all who follow.

T = TypeVar("T")

_DISCOVER_FIRST = 0.1
_DISCOVER_SLOWEST = 1.0
_MANY = 256
_FEED_GAP = 0.003


class HubContext(Protocol):
    """What all feeds of a process share."""

    budget: ReadBudget
    notifications: bool
    reads: int

    @property
    def ring_limit(self) -> int:
        """Bytes that one ring may hold now."""
        ...

    async def thread(self, work: Callable[..., T], *args: object) -> T:
        """Do something that blocks."""
        ...


class Member(Subscriber, Protocol):
    """One who follows the run."""

    def found(self) -> None:
        """There are new streams, or the feed has failed."""
        ...


@dataclass(frozen=True, slots=True)
class _Job:
    """What one hop into a thread is to do."""

    readers: list[SourceReader]
    nodes: list[Node]
    discover: bool


@dataclass(frozen=True, slots=True)
class _Result:
    chunks: list[Chunk]
    records: list[Activity | None]
    origins: dict[Stream, Origin] | None
    attempts: list[int]
    over: frozenset[Stream]


class Feed:
    """See the module.

    Attributes:
        sources: The run's sources.
        readers: The streams that are followed.
        origins: All streams known by now, in order, with who writes them; None until they were looked for.
        attempts: The attempts known by now.
        over: The streams to which nothing is added any more: of earlier attempts, and what the sources say.
        failure: What ended the feed, if it was not its last member's leaving.
    """

    def __init__(
        self, means: HubContext, sources: SourceSet, ended: Callable[[Feed], None]
    ) -> None:
        self.sources = sources
        self.readers: dict[Stream, SourceReader] = {}
        self.origins: dict[Stream, Origin] | None = None
        self.attempts: list[int] = []
        self.over: frozenset[Stream] = frozenset()
        self.failure: BaseException | None = None
        self._means = means
        self._ended = ended
        self._members: set[Member] = set()
        self._dormancy = Dormancy()
        self._discover_due = 0.0
        self._discover_rest = _DISCOVER_FIRST
        self._poke = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wakeups = Wakeups(self._told)

    def join(self, member: Member) -> None:
        """Begin to follow; the first one starts the feed."""
        self._members.add(member)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="hyperpod-log-feed")
            self._task.add_done_callback(self._done)

    def leave(self, member: Member) -> None:
        """Follow no more; the last one ends the feed."""
        self._members.discard(member)
        for stream in list(self.readers):
            self.unsubscribe(member, stream)
        if not self._members and self._task is not None:
            self._task.cancel()
            self._ended(self)

    async def close(self) -> None:
        """End the feed, whoever follows."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def subscribe(self, member: Member, stream: Stream, place: Position) -> SourceReader:
        """The reader of a stream; it starts at `place` when nobody follows the stream yet."""
        reader = self.readers.get(stream)
        if reader is None:
            now = time.monotonic()
            ring = Ring(self._means.ring_limit)
            # Who comes to follow has just read all that there was.
            reader = SourceReader(
                self.sources.open(stream), place, ring, now, grown=now, looked=now
            )
            if len(self.readers) >= FEW:
                # Of very many streams most are quiet: their nodes' records tell which are not.
                reader.grown, reader.due, reader.asleep = now - LINGER, now + SWEEP, True
            self.readers[stream] = reader
            self._poke.set()
        reader.subscribers.add(member)
        return reader

    def unsubscribe(self, member: Member, stream: Stream) -> None:
        """Follow one stream no more."""
        reader = self.readers.get(stream)
        if reader is not None:
            reader.subscribers.discard(member)
            if not reader.subscribers:
                del self.readers[stream]

    def want(self, reader: SourceReader) -> None:
        """Say that all there is was taken, and more is wanted."""
        if not reader.wanted:
            reader.wanted = True
            if reader.nudged or reader.due <= time.monotonic():
                self._poke.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._wakeups.stop()
        if not task.cancelled():
            self.failure = task.exception()
            self._ended(self)
        for member in tuple(self._members):
            member.found()

    async def _run(self) -> None:
        if self._means.notifications and self._wakeups.start():
            self._watch()
        while True:
            self._poke.clear()
            now = time.monotonic()
            job = self._plan(now)
            if job is not None:
                result = await self._means.thread(self._work, job)
                self._take(job, result)
                await asyncio.sleep(_FEED_GAP)
            await self._pause()

    def _plan(self, now: float) -> _Job | None:
        nodes = self._dormancy.due(self.readers, now)
        nudged: list[SourceReader] = []
        due: list[SourceReader] = []
        for reader in self.readers.values():
            if reader.wanted:
                if reader.nudged:
                    nudged.append(reader)
                elif reader.due <= now:
                    due.append(reader)
        discover = self._discover_due <= now
        nodes = nodes[: self._means.budget.take(len(nodes), now)]
        granted = self._means.budget.take(len(due), now)
        if granted < len(due):
            due = sorted(due, key=lambda reader: reader.due)[:granted]
        # A notification means that there is something to read, so it costs nothing of the budget for vain looks.
        readers = nudged + due
        for reader in readers:
            # Cleared before the look: a notification during it is for bytes that it may have missed.
            reader.nudged = False
        if not readers and not nodes and not discover:
            return None
        self._means.reads += len(readers) + len(nodes)
        return _Job(readers, nodes, discover)

    def _work(self, job: _Job) -> _Result:
        """All of a tick's blocking work, in a thread."""
        now, unix = time.monotonic(), time.time()
        keep_open = len(self.readers) <= 2 * FEW
        chunks = [reader.look(now, unix, keep_open=keep_open) for reader in job.readers]
        records = [self.sources.activity(*node) for node in job.nodes]
        origins: dict[Stream, Origin] | None = None
        attempts: list[int] = []
        over = self.over
        if job.discover:
            attempts = self.sources.attempts()
            # Once all is known, new streams can only come in the newest attempt.
            wanted = (
                None if self.origins is None or attempts != self.attempts else (attempts or [0])[-1]
            )
            known = self.origins or {}
            origins = {
                stream: origin
                if (origin := known.get(stream)) and origin.node
                else self.sources.origin(stream)
                for stream in self.sources.streams(wanted)
            }
            newest = max((stream.attempt for stream in origins), default=0)
            earlier = (stream for stream in (*known, *origins) if stream.attempt < newest)
            over = self.sources.over().union(earlier)
        return _Result(chunks, records, origins, attempts, over)

    def _take(self, job: _Job, result: _Result) -> None:
        now = time.monotonic()
        limit = self._means.ring_limit
        for reader, chunk in zip(job.readers, result.chunks, strict=True):
            reader.ring.limit = limit
            reader.absorb(chunk, now)
        for node, record in zip(job.nodes, result.records, strict=True):
            self._dormancy.told(node, record, self.readers, now)
            if (
                record is not None
                and self.origins is not None
                and not record.streams.keys() <= self.origins.keys()
            ):
                self._discover_due = now
        self._bid_farewell(result.over)
        if result.origins is not None:
            self._discovered(result.origins, result.attempts, now)

    def _bid_farewell(self, over: frozenset[Stream]) -> None:
        """Have a last look at streams of which was just heard that they are over."""
        for stream in over - self.over:
            reader = self.readers.get(stream)
            if reader is not None:
                reader.farewell = reader.nudged = True
                self._poke.set()
        self.over = over

    def _discovered(self, origins: dict[Stream, Origin], attempts: list[int], now: float) -> None:
        known = self.origins
        self.origins = {**(known or {}), **origins}
        self.attempts = attempts
        if known is None or len(self.origins) > len(known):
            self._discover_rest = _DISCOVER_FIRST
            self._watch()
            for member in tuple(self._members):
                member.found()
        else:
            slowest = _DISCOVER_SLOWEST if len(known) < _MANY else 3 * _DISCOVER_SLOWEST
            self._discover_rest = min(slowest, self._discover_rest * GROWTH)
        self._discover_due = now + self._discover_rest

    async def _pause(self) -> None:
        now = time.monotonic()
        due = min(self._discover_due, self._dormancy.next_due())
        for reader in self.readers.values():
            if reader.wanted and reader.due < due:
                due = reader.due
        wait = max(due - now, self._means.budget.wait())
        if wait <= 0:
            return
        try:
            async with asyncio.timeout(wait):
                await self._poke.wait()
        except TimeoutError:
            return

    def _watch(self) -> None:
        for attempt in (None, *self.attempts[-1:]):
            folder = self.sources.folder(attempt)
            if folder is not None:
                self._wakeups.watch(folder)

    def _told(self, folder: Path, names: set[str]) -> None:
        """Notifications: names of files in an attempt's folder that were made or written to."""
        attempt = self.attempts[-1] if self.attempts else 0
        if not names or folder != self.sources.folder(attempt):
            self._discover_due = 0.0
        if not names:
            for every in self.readers.values():
                every.nudged = True
        for name in names:
            stream = stream_of(attempt, name)
            if stream is None:
                continue
            reader = self.readers.get(stream)
            if reader is not None:
                reader.nudged = True
            elif self.origins is not None and stream not in self.origins:
                self._discover_due = 0.0
        self._poke.set()


QUIET = 0.5
"""An unfinished line is shown once its stream has been quiet for so long (seconds)."""

TIMEOUT = 1.0
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
    reader: SourceReader
    place: Position
    life: int | None = None
    waiting_since: float | None = None
    shown: float = 0.0
    trouble: Mark | None = None
    own: LogSource | None = None
    gap: int | None = None


@dataclass(frozen=True)
class FollowOptions:
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
        means: HubContext,
        feed: Feed,
        cursor: Cursor,
        wanted: Callable[[Stream], bool],
        manner: FollowOptions,
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
        due = min(lane.reader.grown + QUIET, lane.waiting_since + TIMEOUT)
        if b"\r" in chunk.data[begin:]:
            due = max(due, lane.shown + TIMEOUT)
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


def _read_all(places: list[tuple[LogSource, Position]]) -> list[Chunk]:
    """Read from several sources, each with the times of its bytes. Blocking."""
    chunks = []
    for source, place in places:
        chunk = source.read(place, _BATCH)
        source.close()
        base = chunk.offset
        found = source.stamps(base, base + len(chunk.data)) if chunk.data else []
        chunks.append(replace(chunk, stamps=tuple((offset - base, time) for offset, time in found)))
    return chunks


# --------------------------------------------------------------------------------------------------
# Following: one reader a source in this process, however many follow it, and none when nobody does.

Result = TypeVar("Result")

READS_A_SECOND = 500.0
"""Looks a second that all feeds of a hub share."""

_RINGS = 16 << 20
_LARGEST_RING = 4 << 20
_SMALLEST_RING = 32 << 10


class Hub:
    """All feeds of this process.

    Args:
        budget: Looks a second for all feeds together.
        notifications: Use inotify as an additional wake-up where there is one.
        threads: How many reads may block at the same time.
    """

    def __init__(
        self, *, budget: float = READS_A_SECOND, notifications: bool = True, threads: int = 4
    ) -> None:
        self.budget = ReadBudget(budget)
        self.notifications = notifications
        self.reads = 0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="hyperpod-logs")
        self._feeds: dict[Hashable, Feed] = {}
        self._closed = False

    async def thread(self, work: Callable[..., Result], *args: object) -> Result:
        """Do something that blocks in one of the hub's threads.

        Raises:
            CancelledError: The hub is closed; work that had not begun by then ends the same way.
        """
        if self._closed:
            raise asyncio.CancelledError
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def feed(self, key: Hashable, sources: SourceSet) -> Feed:
        """The feed of a run; the first who asks brings its sources. Call `Feed.join` before anything is awaited."""
        if key not in self._feeds:
            self._feeds[key] = Feed(self, sources, lambda feed: self._forget(key, feed))
        return self._feeds[key]

    def _forget(self, key: Hashable, feed: Feed) -> None:
        if self._feeds.get(key) is feed:
            del self._feeds[key]

    @property
    def ring_limit(self) -> int:
        """Bytes that one source's ring may hold now."""
        readers = sum(len(feed.readers) for feed in self._feeds.values())
        return max(_SMALLEST_RING, min(_LARGEST_RING, _RINGS // max(1, readers)))

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def close(self) -> None:
        """End all feeds and give back the threads."""
        for feed in list(self._feeds.values()):
            await feed.close()
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
