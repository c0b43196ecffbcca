"""One run being followed: finds its streams as they appear, and looks at each of them once for all who follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from hyperpod_jlab.logs.activity import Activity
from hyperpod_jlab.logs.dormancy import FEW, Dormancy, Node
from hyperpod_jlab.logs.pace import GROWTH, LINGER, SWEEP, Budget
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.reader import Reader, Subscriber
from hyperpod_jlab.logs.ring import Ring
from hyperpod_jlab.logs.source import Chunk, Origin, SourceSet
from hyperpod_jlab.logs.stream import Stream, stream_of
from hyperpod_jlab.logs.wakeup import Wakeups

T = TypeVar("T")

_DISCOVER_FIRST = 0.1
_DISCOVER_SLOWEST = 1.0
_MANY = 256
_GAP = 0.003


class Means(Protocol):
    """What all feeds of a process share."""

    budget: Budget
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

    readers: list[Reader]
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

    def __init__(self, means: Means, sources: SourceSet, ended: Callable[[Feed], None]) -> None:
        self.sources = sources
        self.readers: dict[Stream, Reader] = {}
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

    def subscribe(self, member: Member, stream: Stream, place: Place) -> Reader:
        """The reader of a stream; it starts at `place` when nobody follows the stream yet."""
        reader = self.readers.get(stream)
        if reader is None:
            now = time.monotonic()
            ring = Ring(self._means.ring_limit)
            # Who comes to follow has just read all that there was.
            reader = Reader(self.sources.open(stream), place, ring, now, grown=now, looked=now)
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

    def want(self, reader: Reader) -> None:
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
                await asyncio.sleep(_GAP)
            await self._pause()

    def _plan(self, now: float) -> _Job | None:
        nodes = self._dormancy.due(self.readers, now)
        nudged: list[Reader] = []
        due: list[Reader] = []
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
