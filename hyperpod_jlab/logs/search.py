"""Finding lines in many streams, in the order of time, a stretch of a file at a time.

The matching itself happens in the matcher's process; only lines that match are read and decoded here.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from hyperpod_jlab.core.errors import UnsupportedError
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.history import Key
from hyperpod_jlab.logs.lines import PIECE, cut
from hyperpod_jlab.logs.pattern import Matcher, PatternMatch
from hyperpod_jlab.logs.source import LogSource, Origin
from hyperpod_jlab.logs.stream import Position

Direction = Literal["forward", "backward"]

_FIRST_STRETCH = 1 << 20
_LONGEST_STRETCH = 64 << 20
_LEAD = 1024


Stretch = tuple[LogSource, Origin, int, int]
"""What to search of a stream: its source, who writes it, first byte, end."""


class Thread(Protocol):
    """Does something that blocks in a thread."""

    async def __call__(self, work: Callable[..., Any], *args: object) -> Any:
        """Do it."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that matches.

    Attributes:
        origin: Who wrote it.
        time: When it was first seen (Unix seconds), or None when nobody noted it.
        line: Its text, or 16 KiB of it around the match.
        match: Where the match lies in `line`, in characters.
        place: Where the shown text begins in its stream.
        after: Where the line ends in its stream.
        key: Where it stands among the lines of all streams.
    """

    origin: Origin
    time: float | None
    line: str
    match: tuple[int, int]
    place: Position
    after: Position
    key: Key


@dataclass
class _Lane:
    """One stream: the bytes that are still to be searched, and what was found but not given yet, nearest first."""

    source: LogSource
    origin: Origin
    begin: int
    end: int
    stretch: int = _FIRST_STRETCH
    found: deque[Hit] = field(default_factory=deque)
    frontier: Key = (0, 0.0, 0, 0)

    @property
    def done(self) -> bool:
        return self.begin >= self.end


class Search:
    """A search through streams between two cursors.

    Args:
        lanes: What to search.
        matcher: The pattern.
        direction: Which end to begin at.
        thread: Runs what blocks.
    """

    def __init__(
        self,
        lanes: Sequence[Stretch],
        matcher: Matcher,
        direction: Direction,
        thread: Thread,
    ) -> None:
        self._lanes = [_Lane(*lane) for lane in lanes]
        self._matcher = matcher
        self._forward = direction == "forward"
        self._thread = thread
        self.scanned = 0

    async def run(self, limit: int, seconds: float) -> list[Hit]:
        """The next hits in order, at most `limit`, as far as they are found in so many seconds."""
        deadline = time.monotonic() + seconds
        hits: list[Hit] = []
        for lane in self._lanes:
            await self._thread(self._look_ahead, lane)
        while len(hits) < limit:
            nearest = self._nearest([lane for lane in self._lanes if not lane.done])
            hits += self._ready(nearest, limit - len(hits))
            if len(hits) == limit or nearest is None or time.monotonic() >= deadline:
                break
            await self._scan(nearest, max(limit, 100))
        return hits

    @property
    def complete(self) -> bool:
        """Whether all was searched and given."""
        return all(lane.done and not lane.found for lane in self._lanes)

    def rest(self, given: Cursor) -> Cursor:
        """The cursor from which a search goes on: forward before, backward behind what was not given yet."""
        places = dict(given.places)
        for lane in self._lanes:
            if lane.found:
                hit = lane.found[0]
                place = hit.place if self._forward else hit.after
            else:
                place = Position(lane.begin if self._forward else lane.end)
            places[lane.origin.stream] = place
        return Cursor(places, given.first_attempt, given.run)

    def close(self) -> None:
        """Close the files."""
        for lane in self._lanes:
            lane.source.close()

    def _nearest(self, lanes: Sequence[_Lane]) -> _Lane | None:
        pick = min if self._forward else max
        return pick(lanes, key=lambda lane: lane.frontier, default=None)

    def _ready(self, nearest: _Lane | None, most: int) -> list[Hit]:
        """Hits that nothing still to be searched can come before."""
        ready: list[Hit] = []
        bound = None if nearest is None else nearest.frontier
        while len(ready) < most:
            lanes = [lane for lane in self._lanes if lane.found]
            if not lanes:
                break
            pick = min if self._forward else max
            first = pick(lanes, key=lambda lane: lane.found[0].key)
            key = first.found[0].key
            if bound is not None and (key > bound if self._forward else key < bound):
                break
            ready.append(first.found.popleft())
        return ready

    async def _scan(self, lane: _Lane, most: int) -> None:
        """Search the lane's next stretch."""
        if self._forward:
            begin, end = lane.begin, min(lane.end, lane.begin + lane.stretch)
        else:
            begin, end = max(lane.begin, lane.end - lane.stretch), lane.end
        found, reached = await self._found(lane, begin, end, most)
        self.scanned += min(reached, end) - begin
        if not self._forward and len(found) == most and reached < end and lane.stretch > PIECE:
            # Backward the last ones come first: look at less at once.
            lane.stretch //= 8
            return
        hits = await self._thread(self._hits, lane, found)
        if self._forward:
            lane.begin = max(reached, begin + 1)
            lane.found.extend(hits)
        else:
            lane.end = begin
            lane.found.extend(reversed(hits))
        lane.stretch = min(_LONGEST_STRETCH, lane.stretch * 4)
        await self._thread(self._look_ahead, lane)

    async def _found(
        self, lane: _Lane, begin: int, end: int, most: int
    ) -> tuple[list[PatternMatch], int]:
        """What the matcher finds in a stretch of a lane, and how far it has looked; a file that cannot be opened has nothing."""
        try:
            opened = await self._thread(lane.source.opened)
        except OSError:
            return [], end
        if opened is None:
            raise UnsupportedError(
                f"the log of {lane.origin.node or 'this node'} cannot be searched, because it is not a file here"
            )
        try:
            return await self._matcher.scan(opened, begin, end, most)
        finally:
            os.close(opened)

    def _look_ahead(self, lane: _Lane) -> None:
        """Note where the lane's search stands in the order of time. Blocking."""
        lane.frontier = self._key(lane, max(0, lane.begin if self._forward else lane.end - 1))[0]

    def _key(self, lane: _Lane, offset: int) -> tuple[Key, float | None]:
        attempt, node, local = lane.origin.stream.order
        stamps = lane.source.stamps(offset, offset + 1)
        seen = stamps[0][1] if stamps else None
        order = seen if seen is not None else lane.source.changed() or 0.0
        return (attempt, order, node, local), seen

    def _hits(self, lane: _Lane, found: Sequence[PatternMatch]) -> list[Hit]:
        """Read the lines that match. Blocking."""
        try:
            return [self._hit(lane, line) for line in found]
        finally:
            lane.source.close()

    def _hit(self, lane: _Lane, line: PatternMatch) -> Hit:
        begin = line.begin
        if line.end - line.begin > PIECE:
            room = line.end - line.begin - PIECE
            begin += max(0, min(line.match_begin - _LEAD, room))
        chunk = lane.source.read(Position(begin), min(PIECE, line.end - begin))
        data = chunk.data
        skip = 0 if begin == line.begin else _char_start(data)
        stop = cut(data, skip, len(data)) if begin + len(data) < line.end else len(data)
        ahead = begin + skip - line.begin
        key, seen = self._key(lane, line.begin)
        newline = lane.source.read(Position(line.end), 1)
        return Hit(
            origin=lane.origin,
            time=seen,
            line=data[skip:stop].decode("utf-8", "replace"),
            match=(
                _characters(data[skip : skip + line.match_begin - ahead]),
                _characters(data[skip : skip + line.match_end - ahead]),
            ),
            place=chunk.place(skip),
            after=newline.place(len(newline.data)),
            key=key,
        )


def _characters(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))


def _char_start(data: bytes) -> int:
    """The first index at which a UTF-8 character begins."""
    for index in range(min(4, len(data))):
        if data[index] & 0xC0 != 0x80:
            return index
    return 0
