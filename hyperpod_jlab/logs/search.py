"""Searches lines in many streams, ordered by time, one section of a file at a time.

The matcher's threads do the matching; only matching lines are read and decoded here.
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
from hyperpod_jlab.logs.lines import MAX_LINE_BYTES, character_boundary
from hyperpod_jlab.logs.pattern import Matcher, PatternMatch
from hyperpod_jlab.logs.source import LogSource, Origin
from hyperpod_jlab.logs.stream import Position

Direction = Literal["forward", "backward"]

_FIRST_RANGE_BYTES = 1 << 20
_MAX_RANGE_BYTES = 64 << 20
_LEAD = 1024


Stretch = tuple[LogSource, Origin, int, int]
"""A section of a stream to search: its source, origin, first byte and end."""


class Thread(Protocol):
    """Runs a blocking function in a thread."""

    async def __call__(self, function: Callable[..., Any], *args: object) -> Any: ...


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching line.

    Attributes:
        origin: Its origin.
        time: Its time (Unix seconds), or None when unknown.
        line: Its text, or 16 KiB of it around the match.
        match: The match's offsets in `line`, in characters.
        position: The start of the shown text in its stream.
        position_after: The line's end in its stream.
        key: Its order among the lines of all streams.
    """

    origin: Origin
    time: float | None
    line: str
    match: tuple[int, int]
    position: Position
    position_after: Position
    key: Key


@dataclass
class _Lane:
    """One stream: the bytes left to search, and pending hits, nearest first."""

    source: LogSource
    origin: Origin
    begin: int
    end: int
    stretch: int = _FIRST_RANGE_BYTES
    matches: deque[Hit] = field(default_factory=deque)
    frontier: Key = (0, 0.0, 0, 0)

    @property
    def is_done(self) -> bool:
        return self.begin >= self.end


class Search:
    """A search through streams between two cursors.

    Args:
        lanes: The sections to search.
        matcher: The pattern.
        direction: The direction of the search.
        thread: Runs blocking functions.
    """

    def __init__(self, lanes: Sequence[Stretch], matcher: Matcher, direction: Direction, thread: Thread) -> None:
        self._lanes = [_Lane(*lane) for lane in lanes]
        self._matcher = matcher
        self._forward = direction == "forward"
        self._thread = thread
        self.scanned = 0

    async def run(self, limit: int, seconds: float) -> list[Hit]:
        """The next hits in order, at most `limit`, found within this many seconds."""
        deadline = time.monotonic() + seconds
        hits: list[Hit] = []
        for lane in self._lanes:
            await self._thread(self._set_order, lane)
        while len(hits) < limit:
            nearest = self._nearest([lane for lane in self._lanes if not lane.is_done])
            hits += self._ready_hits(nearest, limit - len(hits))
            if len(hits) == limit or nearest is None or time.monotonic() >= deadline:
                break
            await self._scan(nearest, max(limit, 100))
        return hits

    @property
    def complete(self) -> bool:
        """Whether everything was searched and returned."""
        return all(lane.is_done and not lane.matches for lane in self._lanes)

    def cursor_after_hits(self, start_cursor: Cursor) -> Cursor:
        """The cursor at which a search continues: forward before the pending hits, backward after them."""
        positions = dict(start_cursor.positions)
        for lane in self._lanes:
            if lane.matches:
                hit = lane.matches[0]
                position = hit.position if self._forward else hit.position_after
            else:
                position = Position(lane.begin if self._forward else lane.end)
            positions[lane.origin.stream] = position
        return Cursor(positions, start_cursor.first_attempt, start_cursor.run)

    def close(self) -> None:
        """Close the files."""
        for lane in self._lanes:
            lane.source.close()

    def _nearest(self, lanes: Sequence[_Lane]) -> _Lane | None:
        pick = min if self._forward else max
        return pick(lanes, key=lambda lane: lane.frontier, default=None)

    def _ready_hits(self, nearest: _Lane | None, limit: int) -> list[Hit]:
        """Hits before which nothing unsearched can come."""
        hits_ready: list[Hit] = []
        bound = None if nearest is None else nearest.frontier
        while len(hits_ready) < limit:
            lanes = [lane for lane in self._lanes if lane.matches]
            if not lanes:
                break
            pick = min if self._forward else max
            first = pick(lanes, key=lambda lane: lane.matches[0].key)
            key = first.matches[0].key
            if bound is not None and (key > bound if self._forward else key < bound):
                break
            hits_ready.append(first.matches.popleft())
        return hits_ready

    async def _scan(self, lane: _Lane, limit: int) -> None:
        """Search the lane's next section."""
        if self._forward:
            begin, end = lane.begin, min(lane.end, lane.begin + lane.stretch)
        else:
            begin, end = max(lane.begin, lane.end - lane.stretch), lane.end
        matches, scanned_to = await self._find_matches(lane, begin, end, limit)
        self.scanned += min(scanned_to, end) - begin
        if not self._forward and len(matches) == limit and scanned_to < end and lane.stretch > MAX_LINE_BYTES:
            # Backward, the last hits come first: search smaller sections.
            lane.stretch //= 8
            return
        hits = await self._thread(self._hits, lane, matches)
        if self._forward:
            lane.begin = max(scanned_to, begin + 1)
            lane.matches.extend(hits)
        else:
            lane.end = begin
            lane.matches.extend(reversed(hits))
        lane.stretch = min(_MAX_RANGE_BYTES, lane.stretch * 4)
        await self._thread(self._set_order, lane)

    async def _find_matches(self, lane: _Lane, begin: int, end: int, limit: int) -> tuple[list[PatternMatch], int]:
        """The matches in a section of a lane, and how far the search got; empty for a file that cannot be opened."""
        try:
            fd = await self._thread(lane.source.open_fd)
        except OSError:
            return [], end
        if fd is None:
            raise UnsupportedError(
                f"the log of {lane.origin.node or 'this node'} cannot be searched, because it is not a file here"
            )
        try:
            return await self._matcher.scan(fd, begin, end, limit)
        finally:
            os.close(fd)

    def _set_order(self, lane: _Lane) -> None:
        """Record the lane's current search position in time order. Blocking."""
        lane.frontier = self._key(lane, max(0, lane.begin if self._forward else lane.end - 1))[0]

    def _key(self, lane: _Lane, offset: int) -> tuple[Key, float | None]:
        attempt, node, local = lane.origin.stream.sort_key
        stamps = lane.source.stamps(offset, offset + 1)
        first_time = stamps[0][1] if stamps else None
        sort_time = first_time if first_time is not None else lane.source.changed() or 0.0
        return (attempt, sort_time, node, local), first_time

    def _hits(self, lane: _Lane, matches: Sequence[PatternMatch]) -> list[Hit]:
        """Read the matching lines. Blocking."""
        try:
            return [self._hit(lane, line) for line in matches]
        finally:
            lane.source.close()

    def _hit(self, lane: _Lane, line: PatternMatch) -> Hit:
        begin = line.begin
        if line.end - line.begin > MAX_LINE_BYTES:
            max_length = line.end - line.begin - MAX_LINE_BYTES
            begin += max(0, min(line.match_begin - _LEAD, max_length))
        chunk = lane.source.read(Position(begin), min(MAX_LINE_BYTES, line.end - begin))
        data = chunk.data
        skip = 0 if begin == line.begin else _character_start(data)
        stop = character_boundary(data, skip, len(data)) if begin + len(data) < line.end else len(data)
        offset_in_line = begin + skip - line.begin
        key, first_time = self._key(lane, line.begin)
        newline = lane.source.read(Position(line.end), 1)
        return Hit(
            origin=lane.origin,
            time=first_time,
            line=data[skip:stop].decode("utf-8", "replace"),
            match=(
                _characters(data[skip : skip + line.match_begin - offset_in_line]),
                _characters(data[skip : skip + line.match_end - offset_in_line]),
            ),
            position=chunk.position_at(skip),
            position_after=newline.position_at(len(newline.data)),
            key=key,
        )


def _characters(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))


def _character_start(data: bytes) -> int:
    """The first index at which a UTF-8 character starts."""
    for index in range(min(4, len(data))):
        if data[index] & 0xC0 != 0x80:
            return index
    return 0
