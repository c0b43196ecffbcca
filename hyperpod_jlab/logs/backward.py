"""Going backward: where the last N lines of many streams begin, or the lines since a time.

Both give places only. The lines themselves are then read forward from there, so that there is one way in which lines are made.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from hyperpod_jlab.logs.activity import StreamActivity
from hyperpod_jlab.logs.place import START, Place
from hyperpod_jlab.logs.source import Chunk, LogSource
from hyperpod_jlab.logs.stream import LAUNCHER_LINE

_FIRST_READ = 16 << 10
_LARGEST_READ = 4 << 20

BackKey = tuple[int, float, int, int]
"""A line's key as in `merge`, with all signs turned, so that the latest comes first."""


class BackLane:
    """One stream on its way backward, line by line.

    Args:
        source: The stream's source.
        place: Where to start from: the lines before it are walked.
        activity: What is known of the stream without opening it: it stays closed while others have later lines.
    """

    def __init__(
        self, source: LogSource, place: Place, activity: StreamActivity | None = None
    ) -> None:
        self.source = source
        self.place = place
        self._activity = activity
        self._chunk: Chunk | None = None
        self._at = 0
        self._line = 0
        self._changed: float | None = None

    def bound(self) -> BackKey | None:
        """A key that no line of the stream comes before, or None when it has no lines. Opens nothing."""
        if self.place.offset == 0:
            return None
        # A second of grace: the record and the index are written one after the other.
        time = self._activity.changed + 1.0 if self._activity is not None else float("inf")
        return self._key(time)

    def key(self) -> BackKey | None:
        """The key of the last line before the place, or None when there is none. Blocking."""
        if self.place.offset == 0 or not self._find_line():
            return None
        assert self._chunk is not None
        return self._key(self._time(self._chunk, self._line))

    def step(self) -> bool:
        """Go back over the line whose key was asked for; tells whether it is one that is shown."""
        assert self._chunk is not None
        self._at = self._line
        self.place = self._chunk.place(self._line)
        own = self.source.stream.local_rank is None
        return not (own and self._chunk.data.startswith(LAUNCHER_LINE, self._line))

    def _key(self, time: float) -> BackKey:
        attempt, node, local = self.source.stream.order
        return (-attempt, -time, -node, -local)

    def _find_line(self) -> bool:
        size = _FIRST_READ
        while True:
            if self._chunk is None or self._at == 0:
                self._load(size)
            chunk = self._chunk
            assert chunk is not None
            if self._at == 0:
                return False
            # The newline that ends the line itself does not count.
            newline = chunk.data.rfind(b"\n", 0, self._at - 1)
            if newline >= 0 or chunk.offset == 0:
                self._line = newline + 1
                return True
            if self._at >= _LARGEST_READ:
                # So long a line is cut: its beginning is found by going back again.
                self._line = 0
                return True
            size = min(_LARGEST_READ, max(size, len(chunk.data)) * 4)
            self._at = 0

    def _load(self, size: int) -> None:
        chunk = self.source.read_back(self.place, size)
        base = chunk.offset
        # There may be hundreds of lanes, and a large part of them is looked at once only.
        self.source.close()
        stamps = self.source.stamps(base, base + len(chunk.data)) if chunk.data else []
        self._chunk = Chunk(
            chunk.data,
            base,
            chunk.before,
            chunk.identity,
            stamps=tuple((offset - base, time) for offset, time in stamps),
        )
        self._at = len(chunk.data)

    def _time(self, chunk: Chunk, index: int) -> float:
        time = chunk.time_at(index)
        if time is not None:
            return time
        if self._changed is None:
            self._changed = self.source.changed() or 0.0
        return self._changed


def back_by_lines(lanes: Iterable[BackLane], count: int) -> int:
    """Move the lanes' places back over the last `count` lines of all of them; returns how many there were. Blocking."""
    heap: list[tuple[BackKey, bool, int, BackLane]] = []
    for number, lane in enumerate(lanes):
        bound = lane.bound()
        if bound is not None:
            heap.append((bound, False, number, lane))
    heapq.heapify(heap)
    done = 0
    while heap and done < count:
        _, known, number, lane = heap[0]
        if known:
            done += lane.step()
        key = lane.key()
        if key is None:
            heapq.heappop(heap)
            lane.source.close()
        else:
            heapq.heapreplace(heap, (key, True, number, lane))
    for *_, lane in heap:
        lane.source.close()
    return done


def place_since(source: LogSource, time: float) -> Place:
    """Where the first line begins that was seen at `time` (Unix seconds) or later. Blocking."""
    offset = source.offset_at(time)
    if offset is None:
        changed = source.changed()
        return source.end() if changed is not None and changed < time else START
    if offset == 0:
        return START
    end = source.end()
    if offset >= end.offset:
        return end
    chunk = source.read(Place(offset - 1), _FIRST_READ)
    newline = chunk.data.find(b"\n")
    # Within a very long line, or one that is being written, begin in its middle rather than leave it out.
    return chunk.place(newline + 1 if newline >= 0 else min(1, len(chunk.data)))
