"""What streams have by now, from a cursor on, in the order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.lines import LineBlock, LogBatch, whole
from hyperpod_jlab.logs.source import (
    Activity,
    Chunk,
    LogSource,
    Mark,
    Origin,
    SourceSet,
    StreamActivity,
)
from hyperpod_jlab.logs.stream import LAUNCHER_LINE, START, Position, Stream

# --------------------------------------------------------------------------------------------------
# Going backward: where the last N lines of many streams begin, or the lines since a time.
#
# Both give places only. The lines themselves are then read forward from there, so that there is one way in which lines are made.

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
        self, source: LogSource, place: Position, activity: StreamActivity | None = None
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


def place_since(source: LogSource, time: float) -> Position:
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
    chunk = source.read(Position(offset - 1), _FIRST_READ)
    newline = chunk.data.find(b"\n")
    # Within a very long line, or one that is being written, begin in its middle rather than leave it out.
    return chunk.place(newline + 1 if newline >= 0 else min(1, len(chunk.data)))


# --------------------------------------------------------------------------------------------------
# Many streams as one, in the order of time.
#
# Bytes that one index record covers were seen at the same time, so whole stretches are merged, not single lines: the cost of
# merging depends on how often the streams take turns, not on how much they wrote. Between streams without an index the time of
# the file's last change decides. Attempts never mix.

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
        place: Position,
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


_BATCH_BYTES = 1 << 20
_BATCH_BLOCKS = 1000


def read_on(
    sources: SourceSet,
    streams: Iterable[Stream],
    cursor: Cursor,
    *,
    flush: bool,
    until: Cursor | None = None,
    collapse: bool = True,
) -> Iterator[LogBatch]:
    """Batches of all that lies between a cursor and the streams' present ends. Blocking.

    Args:
        sources: Where the streams lie.
        streams: The streams to read.
        cursor: Where to begin.
        flush: Give a last line that has no newline (yet) as well. In all attempts but the newest, and in streams that
            are over, where it can get none any more, it is given anyway.
        until: Where to stop in each stream, instead of at its end.
        collapse: Show of progress bars only the last state.
    """
    lanes: list[Lane] = []
    wanted = [stream for stream in streams if stream.attempt >= cursor.first_attempt]
    buffer = buffer_size(len(wanted))
    newest = max((stream.attempt for stream in wanted), default=0)
    over = sources.over()
    for stream in wanted:
        place = cursor.place(stream)
        source = sources.open(stream)
        end = source.size() if until is None else end_in(until, source).offset
        if end <= place.offset and (until is not None or not place.check):
            continue
        origin = sources.origin(stream)
        # Even with nothing after a place the lane must look: the file may have been cut, or be another one.
        lane = Lane(
            source,
            origin,
            place,
            max(end, place.offset + 1),
            buffer=buffer,
            flush=flush or stream.attempt < newest or stream in over,
            collapse=collapse,
        )
        lanes.append(lane)
    yield from _batches(merge_forward(lanes), cursor, AttemptMarks(cursor, wanted))


def end_in(cursor: Cursor, source: LogSource) -> Position:
    """Where a source is left by a cursor: at its end, when its attempt is done with. Blocking."""
    if source.stream.attempt < cursor.first_attempt:
        return Position(source.size())
    return cursor.place(source.stream)


class AttemptMarks:
    """Puts a mark before the first block of every attempt but the first, of a run or of each child of an array."""

    def __init__(self, cursor: Cursor, streams: Iterable[Stream]) -> None:
        self._seen: dict[int | None, set[int]] = {}
        for stream, place in cursor.places.items():
            if place.offset:
                self._seen.setdefault(stream.child, set()).add(stream.own.attempt)
        if cursor.first_attempt > 1:
            self._seen.setdefault(None, {cursor.first_attempt - 1})
        for stream in sorted(streams, key=lambda stream: stream.order):
            self._seen.setdefault(stream.child, {stream.own.attempt})

    def put(self, block: LineBlock) -> LineBlock:
        """The block, with a mark when it opens an attempt."""
        index, attempt = block.origin.stream.child, block.origin.stream.own.attempt
        seen = self._seen.setdefault(index, {attempt})
        if attempt in seen:
            return block
        seen.add(attempt)
        words = f"attempt {attempt} started"
        return block.marked(Mark("attempt", words if index is None else f"{index}: {words}"))


def _batches(
    blocks: Iterator[LineBlock], cursor: Cursor, marks: AttemptMarks
) -> Iterator[LogBatch]:
    held: list[LineBlock] = []
    size = 0
    for block in blocks:
        held.append(marks.put(block))
        size += block.size
        if size >= _BATCH_BYTES or len(held) >= _BATCH_BLOCKS:
            batch = LogBatch(cursor, held)
            yield batch
            # Attempts come one after the other; the last but one may still get a late word.
            newest = held[-1].origin.stream.attempt
            cursor, held, size = batch.after.sealed(newest - 1), [], 0
    if held:
        yield LogBatch(cursor, held)


def start_of_tail(
    sources: SourceSet, streams: Iterable[Stream], end: Cursor, count: int
) -> tuple[Cursor, int]:
    """The cursor before the last `count` lines that lie before `end`, and how many lines there are. Blocking."""
    known = ActivityCache(sources)
    lanes: list[BackLane] = []
    for stream in streams:
        source = sources.open(stream)
        lanes.append(BackLane(source, end_in(end, source), known.of(stream)))
    before = {lane.source.stream: lane.place for lane in lanes}
    found = back_by_lines(lanes, count)
    places = {lane.source.stream: lane.place for lane in lanes}
    moved = [stream.attempt for stream, place in places.items() if place != before[stream]]
    start = Cursor({**end.places, **places}, run=end.run)
    return start.sealed(min([end.first_attempt, *moved])), found


def start_since(sources: SourceSet, streams: Iterable[Stream], time: float) -> Cursor:
    """The cursor before the first lines that were seen at `time` (Unix seconds) or later. Blocking."""
    places: dict[Stream, Position] = {}
    known = ActivityCache(sources)
    for stream in streams:
        activity = known.of(stream)
        if activity is not None and activity.changed < time - 1.0:
            places[stream] = Position(activity.size)
        else:
            source = sources.open(stream)
            places[stream] = place_since(source, time)
            source.close()
    return Cursor(places)


def cursor_at(
    sources: SourceSet, streams: Iterable[Stream], stream: Stream, place: Position, time: float
) -> Cursor:
    """The cursor before one line: all that comes before it in the order of time is before the cursor. Blocking.

    Args:
        sources: Where the streams lie.
        streams: The streams that the cursor is for.
        stream: The line's stream.
        place: Where the line begins.
        time: When it was first seen, in Unix seconds.
    """
    places: dict[Stream, Position] = {}
    known = ActivityCache(sources)
    for other in streams:
        if other.attempt > stream.attempt:
            continue
        activity = known.of(other)
        if other == stream:
            places[other] = place
        elif other.attempt < stream.attempt:
            places[other] = Position(sources.open(other).size())
        elif activity is not None and activity.changed < time - 1.0:
            places[other] = Position(activity.size)
        else:
            # Of lines seen at the same time those of the lower ranks come first.
            source = sources.open(other)
            places[other] = place_since(source, time + 1e-6 if other.order < stream.order else time)
            source.close()
    return Cursor(places).sealed(stream.attempt - 1)


def ends_of(sources: SourceSet, streams: Iterable[Stream]) -> Cursor:
    """The cursor behind all that is there now. Blocking; opens nothing on a shared file system."""
    return Cursor({stream: sources.open(stream).known_end() for stream in streams})


class ActivityCache:
    """Activity records, each node's read once."""

    def __init__(self, sources: SourceSet) -> None:
        self._sources = sources
        self._nodes: dict[tuple[int, int], Activity | None] = {}

    def of(self, stream: Stream) -> StreamActivity | None:
        """What its node's record says of a stream, or None. Blocking."""
        node = (stream.attempt, stream.node_rank)
        if node not in self._nodes:
            self._nodes[node] = self._sources.activity(*node)
        activity = self._nodes[node]
        return None if activity is None else activity.streams.get(stream)
