"""Many streams as one, in the order of time.

Bytes that one index record covers were seen at the same time, so whole stretches are merged, not single lines: the cost of
merging depends on how often the streams take turns, not on how much they wrote. Between streams without an index the time of
the file's last change decides. Attempts never mix.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hyperpod_jlab.logs.block import LineBlock
from hyperpod_jlab.logs.lines import whole
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.source import Chunk, LogSource, Origin

Key = tuple[int, float, int, int]
"""Where a line stands among those of all streams: attempt, time, node rank, local rank."""

_ALL_BUFFERS = 8 << 20
_LARGEST_BUFFER = 1 << 20
_SMALLEST_BUFFER = 20 << 10


def buffer_size(lanes: int) -> int:
    """Bytes that each of so many lanes may hold."""
    return max(_SMALLEST_BUFFER, min(_LARGEST_BUFFER, _ALL_BUFFERS // max(1, lanes)))


class Lane:
    """One stream on its way forward, from a place to an end that is fixed beforehand."""

    def __init__(
        self,
        source: LogSource,
        origin: Origin,
        place: Place,
        end: int,
        *,
        buffer: int,
        flush: bool,
        collapse: bool = True,
    ) -> None:
        self.source = source
        self.origin = origin
        self.place = place
        self._end = end
        self._buffer = buffer
        self._flush = flush
        self._collapse = collapse
        self._changed: float | None = None
        self._chunk: Chunk | None = None
        self._at = 0
        self._stop = 0

    def key(self) -> Key | None:
        """The order of the next line, or None when there is none. Reads ahead. Blocking."""
        if self._at >= self._stop and not self._fill():
            return None
        assert self._chunk is not None
        _, node, local = self.origin.stream.order
        return (self.origin.stream.attempt, self._time(self._chunk, self._at), node, local)

    def take(self, until: Key | None) -> LineBlock:
        """The lines from here on whose keys lie before `until` (all that are at hand, when None); at least one."""
        chunk = self._chunk
        assert chunk is not None
        begin = self._at
        end = self._stop if until is None else self._reach(chunk, until)
        mark = chunk.mark if begin == 0 else None
        self._at = end
        self.place = chunk.place(end)
        return LineBlock(self.origin, chunk, begin, end, mark=mark, collapse=self._collapse)

    def close(self) -> None:
        """Give back the source's open file."""
        self.source.close()

    def _fill(self) -> bool:
        """Read the next bytes; tells whether there are whole pieces among them, or a mark."""
        self._chunk = None
        room = self._end - self.place.offset
        if room <= 0:
            return False
        chunk = self.source.read(self.place, min(self._buffer, room))
        if self._buffer < _LARGEST_BUFFER:
            # Many lanes: so many files must not all stay open.
            self.source.close()
        if chunk.restarted:
            self._end = max(self.source.end().offset, len(chunk.data))
        size = len(chunk.data)
        at_end = chunk.offset + size >= self._end
        self._at = 0
        self._stop = size if at_end and self._flush else whole(chunk.data, 0, size)
        if chunk.mark is not None and not chunk.data:
            # Nothing to read any more (or the file cannot be read): the mark is this lane's last word.
            self._end = 0
        if self._stop == 0 and chunk.mark is None:
            return False
        self._chunk = replace(chunk, stamps=self._stamps(chunk))
        return True

    def _stamps(self, chunk: Chunk) -> tuple[tuple[int, float], ...]:
        base = chunk.offset
        found = self.source.stamps(base, base + len(chunk.data))
        return tuple((offset - base, time) for offset, time in found)

    def _time(self, chunk: Chunk, index: int) -> float:
        time = chunk.time_at(index)
        if time is not None:
            return time
        if self._changed is None:
            self._changed = self.source.changed() or 0.0
        return self._changed

    def _reach(self, chunk: Chunk, until: Key) -> int:
        """Where the first line begins that is not due before `until`."""
        attempt, node, local = self.origin.stream.order
        for index, time in chunk.stamps:
            if index <= self._at or (attempt, time, node, local) < until:
                continue
            # A line belongs to the time of its first byte, so the line at hand goes on to its end.
            newline = chunk.data.find(b"\n", index - 1, self._stop)
            return self._stop if newline < 0 else newline + 1
        return self._stop


def merge_forward(lanes: Iterable[Lane]) -> Iterator[LineBlock]:
    """The lanes' lines in the order of time. Blocking; ends when all lanes are at their ends."""
    heap: list[tuple[Key, int, Lane]] = []
    for number, lane in enumerate(lanes):
        key = lane.key()
        if key is None:
            lane.close()
        else:
            heap.append((key, number, lane))
    heapq.heapify(heap)
    while heap:
        _, number, lane = heap[0]
        rival = min((entry[0] for entry in heap[1:3]), default=None)
        yield lane.take(rival)
        following = lane.key()
        if following is None:
            heapq.heappop(heap)
            lane.close()
        else:
            heapq.heapreplace(heap, (following, number, lane))
