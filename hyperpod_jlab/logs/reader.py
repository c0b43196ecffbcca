"""The one who reads a source, for all who follow it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from hyperpod_jlab.logs.pace import FAST, SWEEP, pause
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.ring import Ring
from hyperpod_jlab.logs.source import Chunk, LogSource, Mark
from hyperpod_jlab.logs.stream import Stream

_LONGEST_READ = 1 << 20
_STILL_LIVE = 2.0


class Subscriber(Protocol):
    """Who is told that a stream has news."""

    def news(self, stream: Stream) -> None:
        """There are new bytes, or a new mark, in a stream."""
        ...


@dataclass
class Reader:
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
    place: Place
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
