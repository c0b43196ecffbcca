"""A follower of a run: receives what the readers have read, each line once, at its own speed."""

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
from hyperpod_jlab.logs.lines import LineBlock, LogBatch, character_boundary, last_complete
from hyperpod_jlab.logs.reader import (
    FEW,
    LINGER,
    POLL_GROWTH,
    SWEEP_S,
    IdleTracker,
    Node,
    ReadBudget,
    Ring,
    Slice,
    SourceReader,
    Subscriber,
)
from hyperpod_jlab.logs.source import Activity, Chunk, LogSource, Mark, Origin, SourceSet
from hyperpod_jlab.logs.stream import Position, Stream, parse_stream
from hyperpod_jlab.storage import descent

# --------------------------------------------------------------------------------------------------
# inotify as an additional wake-up: where it works, changes show at once; elsewhere they only show
# later.
#
# Lustre and NFS report only this machine's own writes, so a missing notification does not mean that
# nothing has changed.

_LOG = logging.getLogger(__name__)
_EVENT = struct.Struct("iIII")
_BUFFER = 64 << 10
_GAP = 0.002


class Wakeups:
    """Watches folders and reports the names of created or written files.

    Args:
        on_change: Called in the event loop with a watched folder and the names in it.
    """

    def __init__(self, on_change: Callable[[Path, set[str]], None]) -> None:
        self._on_change = on_change
        self._folders: dict[int, Path] = {}
        self._inotify: Any = None
        self._fd = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resuming: asyncio.TimerHandle | None = None

    def start(self) -> bool:
        """Start in the running event loop; returns whether inotify is available."""
        if sys.platform != "linux":
            return False
        try:
            from asyncinotify import Inotify

            self._inotify = Inotify()
            self._fd = self._inotify.fd
            self._loop = asyncio.get_running_loop()
            # Events arrive in bursts while ranks write; they are parsed in one pass, not one object
            # each.
            self._loop.add_reader(self._fd, self._read)
        except (ImportError, OSError, NotImplementedError) as error:
            _LOG.debug("no inotify, logs are polled only: %s", error)
            self.stop()
            return False
        return True

    def watch(self, folder: Path) -> None:
        """Watch a folder, once; a missing one is ignored."""
        if self._inotify is None or folder in self._folders.values():
            return
        from asyncinotify import Mask

        try:
            with descent.opened_folder(folder) as descriptor:
                watch_id = self._inotify.add_watch(
                    Path(f"/proc/self/fd/{descriptor}"), Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.ONLYDIR
                )
        except OSError as error:
            _LOG.debug("%s is polled only: %s", folder, error)
            return
        self._folders[watch_id.wd] = folder

    def stop(self) -> None:
        """Stop watching."""
        if self._resuming is not None:
            self._resuming.cancel()
        if self._inotify is not None:
            if self._loop is not None and not self._loop.is_closed():
                # By number: at the end of the process inotify itself may already be closed.
                self._loop.remove_reader(self._fd)
            self._inotify.close()
        self._inotify = None
        self._folders.clear()

    def _resume(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(OSError):  # closed at the end of the process
                self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _BUFFER)
        except OSError:  # nothing to read, or closed at the end of the process
            return
        # In a burst, an occasional read is enough.
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._resuming = self._loop.call_later(_GAP, self._resume)
        names: dict[int, set[str]] = {}
        position = 0
        while position + _EVENT.size <= len(data):
            wd, _, _, length = _EVENT.unpack_from(data, position)
            position += _EVENT.size
            name = data[position : position + length].rstrip(b"\0")
            position += length
            names.setdefault(wd, set()).add(os.fsdecode(name))
        for wd, changed_names in names.items():
            if wd in self._folders:
                self._on_change(self._folders[wd], changed_names)
            elif wd == -1:
                # The kernel's queue overflowed: anything may have changed anywhere.
                for folder in self._folders.values():
                    self._on_change(folder, set())


# --------------------------------------------------------------------------------------------------
# One followed run: finds its streams as they appear, and reads each of them once for all followers.

T = TypeVar("T")

_FIRST_DISCOVERY_S = 0.1
_DISCOVER_SLOWEST = 1.0
_BUSY_READERS = 256
_FEED_GAP = 0.003


class HubContext(Protocol):
    """State shared by all feeds of a process."""

    budget: ReadBudget
    notifications: bool
    reads: int

    @property
    def ring_limit(self) -> int:
        """Current maximum size of one ring in bytes."""
        ...

    async def thread(self, function: Callable[..., T], *args: object) -> T:
        """Run a blocking function in a thread."""
        ...


class Member(Subscriber, Protocol):
    """A follower of the run."""

    def on_found(self) -> None:
        """New streams were found, or the feed has failed."""
        ...


@dataclass(frozen=True, slots=True)
class _Job:
    """The work for one call into a thread."""

    readers: list[SourceReader]
    nodes: list[Node]
    discover: bool


@dataclass(frozen=True, slots=True)
class _Result:
    chunks: list[Chunk]
    records: list[Activity | None]
    origins: dict[Stream, Origin] | None
    attempts: list[int]
    ended_streams: frozenset[Stream]


class Feed:
    """One followed run (see the comment above).

    Attributes:
        sources: The run's sources.
        readers: The readers of the followed streams.
        origins: All known streams in order, with their origins; None before the first search.
        attempts: The known attempts.
        ended_streams: The completed streams: those of earlier attempts, and those that the sources report.
        failure: The error that ended the feed, if any.
    """

    def __init__(self, context: HubContext, sources: SourceSet, ended: Callable[[Feed], None]) -> None:
        self.sources = sources
        self.readers: dict[Stream, SourceReader] = {}
        self.origins: dict[Stream, Origin] | None = None
        self.attempts: list[int] = []
        self.ended_streams: frozenset[Stream] = frozenset()
        self.failure: BaseException | None = None
        self._context = context
        self._ended = ended
        self._members: set[Member] = set()
        self._idle_tracker = IdleTracker()
        self._next_discovery = 0.0
        self._discovery_pause = _FIRST_DISCOVERY_S
        self._poke = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wakeups = Wakeups(self._on_change)

    def join(self, member: Member) -> None:
        """Add a follower; the first one starts the feed."""
        self._members.add(member)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="hyperpod-log-feed")
            self._task.add_done_callback(self._done)

    def leave(self, member: Member) -> None:
        """Remove a follower; the last one ends the feed."""
        self._members.discard(member)
        for stream in list(self.readers):
            self.unsubscribe(member, stream)
        if not self._members and self._task is not None:
            self._task.cancel()
            self._ended(self)

    async def close(self) -> None:
        """End the feed, even with followers."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def subscribe(self, member: Member, stream: Stream, position: Position) -> SourceReader:
        """The reader of a stream; it starts at `position` when the stream has no followers yet."""
        reader = self.readers.get(stream)
        if reader is None:
            now = time.monotonic()
            ring = Ring(self._context.ring_limit)
            # A new follower has just read everything available.
            reader = SourceReader(self.sources.open(stream), position, ring, now, grown=now, read_at=now)
            if len(self.readers) >= FEW:
                # Of very many streams most are quiet: their nodes' records show which ones are
                # active.
                reader.grown, reader.next_read_at, reader.asleep = now - LINGER, now + SWEEP_S, True
            self.readers[stream] = reader
            self._poke.set()
        reader.subscribers.add(member)
        return reader

    def unsubscribe(self, member: Member, stream: Stream) -> None:
        """Stop following one stream."""
        reader = self.readers.get(stream)
        if reader is not None:
            reader.subscribers.discard(member)
            if not reader.subscribers:
                del self.readers[stream]

    def request_read(self, reader: SourceReader) -> None:
        """Report that all available bytes were taken and more are wanted."""
        if not reader.is_wanted:
            reader.is_wanted = True
            if reader.nudged or reader.next_read_at <= time.monotonic():
                self._poke.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._wakeups.stop()
        if not task.cancelled():
            self.failure = task.exception()
            self._ended(self)
        for member in tuple(self._members):
            member.on_found()

    async def _run(self) -> None:
        if self._context.notifications and self._wakeups.start():
            self._watch()
        while True:
            self._poke.clear()
            now = time.monotonic()
            job = self._plan(now)
            if job is not None:
                result = await self._context.thread(self._run_job, job)
                self._take_chunk(job, result)
                await asyncio.sleep(_FEED_GAP)
            await self._next_wait()

    def _plan(self, now: float) -> _Job | None:
        nodes = self._idle_tracker.due_nodes(self.readers, now)
        nudged: list[SourceReader] = []
        due_readers: list[SourceReader] = []
        for reader in self.readers.values():
            if reader.is_wanted:
                if reader.nudged:
                    nudged.append(reader)
                elif reader.next_read_at <= now:
                    due_readers.append(reader)
        discover = self._next_discovery <= now
        nodes = nodes[: self._context.budget.acquire(len(nodes), now)]
        granted = self._context.budget.acquire(len(due_readers), now)
        if granted < len(due_readers):
            due_readers = sorted(due_readers, key=lambda reader: reader.next_read_at)[:granted]
        # A notification means that there is something to read, so it does not count against the
        # budget for fruitless reads.
        readers = nudged + due_readers
        for reader in readers:
            # Cleared before the read: a notification during the read is for bytes that it may have
            # missed.
            reader.nudged = False
        if not readers and not nodes and not discover:
            return None
        self._context.reads += len(readers) + len(nodes)
        return _Job(readers, nodes, discover)

    def _run_job(self, job: _Job) -> _Result:
        """All blocking work of a tick, in a thread."""
        now, unix = time.monotonic(), time.time()
        keep_open = len(self.readers) <= 2 * FEW
        chunks = [reader.read_source(now, unix, keep_open=keep_open) for reader in job.readers]
        records = [self.sources.activity(*node) for node in job.nodes]
        origins: dict[Stream, Origin] | None = None
        attempts: list[int] = []
        ended_streams = self.ended_streams
        if job.discover:
            attempts = self.sources.attempts()
            # Once all streams are known, new ones can appear only in the newest attempt.
            wanted_streams = None if self.origins is None or attempts != self.attempts else (attempts or [0])[-1]
            known_origins = self.origins or {}
            origins = {
                stream: origin if (origin := known_origins.get(stream)) and origin.node else self.sources.origin(stream)
                for stream in self.sources.streams(wanted_streams)
            }
            newest = max((stream.attempt for stream in origins), default=0)
            earlier = (stream for stream in (*known_origins, *origins) if stream.attempt < newest)
            ended_streams = self.sources.ended_streams().union(earlier)
        return _Result(chunks, records, origins, attempts, ended_streams)

    def _take_chunk(self, job: _Job, result: _Result) -> None:
        now = time.monotonic()
        limit = self._context.ring_limit
        for reader, chunk in zip(job.readers, result.chunks, strict=True):
            reader.ring.limit = limit
            reader.accept(chunk, now)
        for node, record in zip(job.nodes, result.records, strict=True):
            self._idle_tracker.on_activity(node, record, self.readers, now)
            if record is not None and self.origins is not None and not record.streams.keys() <= self.origins.keys():
                self._next_discovery = now
        self._final_reads(result.ended_streams)
        if result.origins is not None:
            self._on_discovered(result.origins, result.attempts, now)

    def _final_reads(self, ended_streams: frozenset[Stream]) -> None:
        """Schedule a last read of streams that were just reported as completed."""
        for stream in ended_streams - self.ended_streams:
            reader = self.readers.get(stream)
            if reader is not None:
                reader.farewell = reader.nudged = True
                self._poke.set()
        self.ended_streams = ended_streams

    def _on_discovered(self, origins: dict[Stream, Origin], attempts: list[int], now: float) -> None:
        known_origins = self.origins
        self.origins = {**(known_origins or {}), **origins}
        self.attempts = attempts
        if known_origins is None or len(self.origins) > len(known_origins):
            self._discovery_pause = _FIRST_DISCOVERY_S
            self._watch()
            for member in tuple(self._members):
                member.on_found()
        else:
            slowest = _DISCOVER_SLOWEST if len(known_origins) < _BUSY_READERS else 3 * _DISCOVER_SLOWEST
            self._discovery_pause = min(slowest, self._discovery_pause * POLL_GROWTH)
        self._next_discovery = now + self._discovery_pause

    async def _next_wait(self) -> None:
        now = time.monotonic()
        next_due_at = min(self._next_discovery, self._idle_tracker.next_due())
        for reader in self.readers.values():
            if reader.is_wanted and reader.next_read_at < next_due_at:
                next_due_at = reader.next_read_at
        wait = max(next_due_at - now, self._context.budget.wait_s())
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

    def _on_change(self, folder: Path, names: set[str]) -> None:
        """Handle notifications: names of created or written files in an attempt's folder."""
        attempt = self.attempts[-1] if self.attempts else 0
        if not names or folder != self.sources.folder(attempt):
            self._next_discovery = 0.0
        if not names:
            for every in self.readers.values():
                every.nudged = True
        for name in names:
            stream = parse_stream(attempt, name)
            if stream is None:
                continue
            reader = self.readers.get(stream)
            if reader is not None:
                reader.nudged = True
            elif self.origins is not None and stream not in self.origins:
                self._next_discovery = 0.0
        self._poke.set()


QUIET_S = 0.5
"""Seconds of quiet after which an unfinished line is shown."""

PARTIAL_LINE_S = 1.0
"""Interval in seconds at which a growing unfinished line, such as a progress bar, is shown."""

SETTLED_S = 10.0
"""Seconds of quiet after which a stream of an attempt that ended long ago is no longer followed."""

FINAL_READ_S = 2.0
"""Seconds for which new streams wait for the last read of those that have just ended."""

_BATCH = 1 << 20
_MAX_OWN_READS = 4


@dataclass
class _Lane:
    """A stream as one follower sees it. Times are monotonic seconds."""

    origin: Origin
    reader: SourceReader
    position: Position
    generation: int | None = None
    partial_since: float | None = None
    shown_at: float = 0.0
    problem: Mark | None = None
    own_source: LogSource | None = None
    gap: int | None = None


@dataclass(frozen=True)
class FollowOptions:
    """A follower's options for its lines.

    Attributes:
        collapse: Show only the last state of progress bars.
        partial: Show unfinished lines after a while; otherwise only whole ones (and pieces of very
            long ones).
        exact: Return raw bytes instead of lines.
    """

    collapse: bool = True
    partial: bool = True
    exact: bool = False


class Follower:
    """Follows the wanted streams of a feed from a cursor on; use it in an ``async with``.

    Args:
        context: The hub's context.
        feed: The run's feed.
        cursor: The start.
        is_wanted: Selects the streams to follow.
        options: The options for lines.
    """

    def __init__(
        self,
        context: HubContext,
        feed: Feed,
        cursor: Cursor,
        is_wanted: Callable[[Stream], bool],
        options: FollowOptions,
    ) -> None:
        self.cursor = cursor
        self._context = context
        self._feed = feed
        self._is_wanted = is_wanted
        self._options = options
        self._lanes: dict[Stream, _Lane] = {}
        # An ordered set: streams left over the last time come first the next time.
        self._new_streams: dict[Stream, None] = {}
        self._changed = asyncio.Event()
        self._is_stopped = False
        self._adopted = 0
        self._grace: float | None = None
        self._marks: AttemptMarks | None = None
        self._alarms: dict[Stream, float] = {}
        feed.join(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)

    def on_change(self, stream: Stream) -> None:
        """A stream's reader has new data."""
        self._new_streams[stream] = None
        self._changed.set()

    def on_found(self) -> None:
        """The feed has found streams, or has failed."""
        self._changed.set()

    def stop(self) -> None:
        """Make `next` return once there is nothing more."""
        self._is_stopped = True
        self._changed.set()

    async def next(self) -> LogBatch | None:
        """The next lines; None when stopped and nothing more is available."""
        # A follower that always finds data must still yield to other tasks.
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
                self.cursor = batch.end_position
                return batch
            if self._is_stopped:
                return None
            await self._sleep(now)

    async def _sleep(self, now: float) -> None:
        """Sleep until something changes, or an unfinished line is due."""
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
        """Start to follow streams that the feed has found."""
        origins = self._feed.origins
        if origins is None or len(origins) == self._adopted or self._awaits_final_read():
            return
        self._adopted = len(origins)
        if self._marks is None:
            self._marks = AttemptMarks(self.cursor, origins)
        self._drop_ended_attempts(max(stream.attempt for stream in origins) - 1)
        for stream, origin in origins.items():
            if stream in self._lanes or stream.attempt < self.cursor.first_attempt or not self._is_wanted(stream):
                continue
            position = self.cursor.position(stream)
            self._lanes[stream] = _Lane(origin, self._feed.subscribe(self, stream, position), position)
            self._new_streams[stream] = None

    def _awaits_final_read(self) -> bool:
        """Whether recently ended streams may still have data, which comes before that of new streams."""
        if not any(lane.reader.farewell for lane in self._lanes.values()):
            self._grace = None
            return False
        now = time.monotonic()
        if self._grace is None:
            self._grace = now + FINAL_READ_S
        return now < self._grace

    def _drop_ended_attempts(self, first_attempt: int) -> None:
        """Drop attempts that ended long ago, once all of their data was taken."""
        ended_streams = [stream for stream in self._lanes if stream.attempt < first_attempt]
        now = time.monotonic()
        if not all(self._is_finished(self._lanes[stream], now) for stream in ended_streams):
            return
        for stream in ended_streams:
            del self._lanes[stream]
            self._new_streams.pop(stream, None)
            self._feed.unsubscribe(self, stream)
        self.cursor = self.cursor.seal(first_attempt)

    def _is_finished(self, lane: _Lane, now: float) -> bool:
        reader = lane.reader
        return reader.at_end and now - reader.grown > SETTLED_S and lane.position.offset == reader.position.offset

    async def _collect(self, now: float) -> list[LineBlock]:
        """The data of the fresh streams, as much as fits into a batch."""
        due_streams = [stream for stream, alarm in self._alarms.items() if alarm <= now]
        for stream in due_streams:
            del self._alarms[stream]
        self._new_streams.update(dict.fromkeys(due_streams))
        blocks: list[LineBlock] = []
        lagging: list[_Lane] = []
        size = 0
        earliest = min((stream.attempt for stream in self._new_streams), default=0)
        for stream in list(self._new_streams):
            if size >= _BATCH:
                break
            if stream.attempt > earliest:  # it must wait for earlier attempts
                continue
            del self._new_streams[stream]
            lane = self._lanes.get(stream)
            if lane is None:
                continue
            self._report_problem(lane, blocks)
            ring_slice = lane.reader.ring.read_after(lane.position, lane.generation, _BATCH)
            if ring_slice is None and _is_behind(lane):
                lagging.append(lane)
                continue
            size += self._show_slice(lane, ring_slice, blocks, now)
        if self._new_streams:
            self._changed.set()
        if lagging:
            self._new_streams.update(dict.fromkeys(lane.origin.stream for lane in lagging[_MAX_OWN_READS:]))
            await self._read_directly(lagging[:_MAX_OWN_READS], blocks, now)
        blocks.sort(key=lambda block: (block.origin.stream.attempt, block.time or 0.0, block.origin.stream.sort_key))
        return [self._marks.insert_marks(block) for block in blocks] if self._marks else blocks

    def _report_problem(self, lane: _Lane, blocks: list[LineBlock]) -> None:
        problem = lane.reader.problem
        if problem is not None and problem != lane.problem:
            empty_chunk = Chunk(b"", lane.position.offset, start=lane.position)
            blocks.append(LineBlock(lane.origin, empty_chunk, 0, 0, mark=problem))
        lane.problem = problem

    def _show_slice(self, lane: _Lane, ring_slice: Slice | None, blocks: list[LineBlock], now: float) -> int:
        """Take the ring's data; returns the number of bytes."""
        lane.own_source = None
        if ring_slice is None:
            self._feed.request_read(lane.reader)
            return 0
        lane.generation = ring_slice.generation
        consumed = self._take_chunk(
            lane, ring_slice.chunk, blocks, now, last=not ring_slice.has_more, closing=ring_slice.closing
        )
        if ring_slice.has_more:
            self._new_streams[lane.origin.stream] = None
        else:
            self._feed.request_read(lane.reader)
        return consumed

    async def _read_directly(self, lanes: list[_Lane], blocks: list[LineBlock], now: float) -> None:
        """Read data from the sources that the rings do not have, or not yet."""
        for lane in lanes:
            if lane.own_source is None:
                lane.own_source = self._feed.sources.open(lane.origin.stream)
        requests = [(lane.own_source, lane.position) for lane in lanes if lane.own_source is not None]
        chunks = await self._context.thread(_read_all, requests)
        self._context.reads += len(lanes)
        for lane, chunk in zip(lanes, chunks, strict=True):
            lane.generation = None
            consumed = self._take_chunk(lane, chunk, blocks, now, last=len(chunk.data) < _BATCH, closing=False)
            if consumed or chunk.restarted:
                self._new_streams[lane.origin.stream] = None
            else:
                self._feed.request_read(lane.reader)

    def _take_chunk(
        self, lane: _Lane, chunk: Chunk, blocks: list[LineBlock], now: float, *, last: bool, closing: bool
    ) -> int:
        """Make a block of the pieces in a chunk; returns the number of bytes."""
        size = len(chunk.data)
        stop = size if closing or self._options.exact else last_complete(chunk.data, 0, size)
        if stop < size and last:
            stop = self._show_partial(lane, chunk, stop, now)
        else:
            lane.partial_since = None
        # The reader reports an unreadable source, once.
        chunk_mark = None if chunk.mark is not None and chunk.mark.kind == "unreadable" else chunk.mark
        if chunk_mark is not None and not chunk.restarted:
            chunk_mark = None if lane.gap == chunk.offset else chunk_mark
            lane.gap = chunk.offset
        if stop or chunk_mark is not None:
            origins = self._feed.origins or {}
            lane.origin = origins.get(lane.origin.stream, lane.origin)
            block = LineBlock(lane.origin, chunk, 0, stop, mark=chunk_mark, collapse=self._options.collapse)
            blocks.append(block)
        if stop or chunk.restarted:
            lane.position = chunk.position_at(stop)
        return stop

    def _show_partial(self, lane: _Lane, chunk: Chunk, begin: int, now: float) -> int:
        """Where to stop in an unfinished line: after it when it is due, else before it."""
        stream = lane.origin.stream
        if stream in self._feed.ended_streams and not lane.reader.farewell:
            return len(chunk.data)
        if not self._options.partial:
            return begin
        if begin or lane.partial_since is None:
            lane.partial_since = now
        due_at = min(lane.reader.grown + QUIET_S, lane.partial_since + PARTIAL_LINE_S)
        if b"\r" in chunk.data[begin:]:
            due_at = max(due_at, lane.shown_at + PARTIAL_LINE_S)
        if now < due_at:
            self._alarms[stream] = due_at
            return begin
        lane.shown_at, lane.partial_since = now, None
        return character_boundary(chunk.data, begin, len(chunk.data))


def _is_behind(lane: _Lane) -> bool:
    """Whether a position is not in the ring and must be read from the source."""
    ring, read = lane.reader.ring, lane.reader.position
    if ring.size == 0:
        return lane.position.offset < read.offset
    return lane.position.offset <= read.offset or lane.generation != ring.generation


def _read_all(requests: list[tuple[LogSource, Position]]) -> list[Chunk]:
    """Read from several sources, each with the times of its bytes. Blocking."""
    chunks = []
    for source, position in requests:
        chunk = source.read(position, _BATCH)
        source.close()
        base = chunk.offset
        stamps = source.stamps(base, base + len(chunk.data)) if chunk.data else []
        chunks.append(replace(chunk, stamps=tuple((offset - base, time) for offset, time in stamps)))
    return chunks


# --------------------------------------------------------------------------------------------------
# The hub: one reader per source in this process for any number of followers, and none without
# followers.

Result = TypeVar("Result")

READS_A_SECOND = 500.0
"""Reads per second that all feeds of a hub share."""

_RINGS = 16 << 20
_MAX_RING_BYTES = 4 << 20
_MIN_RING_BYTES = 32 << 10


class Hub:
    """All feeds of this process.

    Args:
        budget: Reads per second for all feeds together.
        notifications: Use inotify as an additional wake-up if available.
        threads: Maximum number of concurrent blocking reads.
    """

    def __init__(self, *, budget: float = READS_A_SECOND, notifications: bool = True, threads: int = 4) -> None:
        self.budget = ReadBudget(budget)
        self.notifications = notifications
        self.reads = 0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="hyperpod-logs")
        self._feeds: dict[Hashable, Feed] = {}
        self._closed = False

    async def thread(self, function: Callable[..., Result], *args: object) -> Result:
        """Run a blocking function in one of the hub's threads.

        Raises:
            CancelledError: The hub is closed; pending work ends the same way.
        """
        if self._closed:
            raise asyncio.CancelledError
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    def feed(self, key: Hashable, sources: SourceSet) -> Feed:
        """The feed of a run, created with the first caller's sources. Call `Feed.join` before the next await."""
        if key not in self._feeds:
            self._feeds[key] = Feed(self, sources, lambda feed: self._forget(key, feed))
        return self._feeds[key]

    def _forget(self, key: Hashable, feed: Feed) -> None:
        if self._feeds.get(key) is feed:
            del self._feeds[key]

    @property
    def ring_limit(self) -> int:
        """Current maximum size of one source's ring in bytes."""
        readers = sum(len(feed.readers) for feed in self._feeds.values())
        return max(_MIN_RING_BYTES, min(_MAX_RING_BYTES, _RINGS // max(1, readers)))

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    async def close(self) -> None:
        """End all feeds and release the threads."""
        for feed in list(self._feeds.values()):
            await feed.close()
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
