"""The existing content of streams, from a cursor on, ordered by time."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.lines import MAX_LINE_BYTES, LineBlock, LogBatch, last_complete
from hyperpod_jlab.logs.source import Activity, Chunk, LogSource, Mark, Origin, SourceSet, StreamActivity
from hyperpod_jlab.logs.stream import LAUNCHER_LINE, START_POSITION, Position, Stream

# --------------------------------------------------------------------------------------------------
# Backward: where the last N lines of many streams start, or the lines since a time.
#
# Both return only positions. The lines are then read forward from there, so that lines are produced
# in only one way.

_FIRST_READ_BYTES = 16 << 10
_MAX_READ_BYTES = 4 << 20

BackwardKey = tuple[int, float, int, int]
"""A line's key as in forward merging, with all signs inverted, so that the latest comes first."""


class BackwardLane:
    """One stream read backward, line by line.

    Args:
        source: The stream's source.
        position: The start; the lines before it are visited.
        activity: The stream's activity, known without opening it: it stays closed while others have
            later lines.
    """

    def __init__(self, source: LogSource, position: Position, activity: StreamActivity | None = None) -> None:
        self.source = source
        self.position = position
        self._activity = activity
        self._chunk: Chunk | None = None
        self._offset = 0
        self._line = 0
        self._changed: float | None = None

    def bound(self) -> BackwardKey | None:
        """A lower bound for the keys of the stream's lines, or None without lines. Opens nothing."""
        if self.position.offset == 0:
            return None
        # One second of tolerance: the record and the index are written one after the other.
        time = self._activity.changed + 1.0 if self._activity is not None else float("inf")
        return self._key(time)

    def key(self) -> BackwardKey | None:
        """The key of the last line before the position, or None when there is none. Blocking."""
        if self.position.offset == 0 or not self._find_line():
            return None
        assert self._chunk is not None
        return self._key(self._time(self._chunk, self._line))

    def step(self) -> tuple[bool, int]:
        """Move back over the current line; returns whether it is one that is shown, and its size in bytes."""
        assert self._chunk is not None
        size = self._offset - self._line
        self._offset = self._line
        self.position = self._chunk.position_at(self._line)
        is_node_log = self.source.stream.local_rank is None
        return not (is_node_log and self._chunk.data.startswith(LAUNCHER_LINE, self._line)), size

    def _key(self, time: float) -> BackwardKey:
        attempt, node, local = self.source.stream.sort_key
        return (-attempt, -time, -node, -local)

    def _find_line(self) -> bool:
        size = _FIRST_READ_BYTES
        while True:
            if self._chunk is None or self._offset == 0:
                self._load(size)
            chunk = self._chunk
            assert chunk is not None
            if self._offset == 0:
                return False
            # The newline that ends the line itself does not count.
            newline = chunk.data.rfind(b"\n", 0, self._offset - 1)
            if newline >= 0 or chunk.offset == 0:
                self._line = newline + 1
                return True
            if self._offset >= _MAX_READ_BYTES:
                # A line this long is cut: going back further finds its start.
                self._line = 0
                return True
            size = min(_MAX_READ_BYTES, max(size, len(chunk.data)) * 4)
            self._offset = 0

    def _load(self, size: int) -> None:
        chunk = self.source.read_back(self.position, size)
        base = chunk.offset
        # There may be hundreds of lanes, and many are read only once.
        self.source.close()
        stamps = self.source.stamps(base, base + len(chunk.data)) if chunk.data else []
        self._chunk = Chunk(
            chunk.data,
            base,
            chunk.preceding,
            chunk.identity,
            stamps=tuple((offset - base, time) for offset, time in stamps),
        )
        self._offset = len(chunk.data)

    def _time(self, chunk: Chunk, index: int) -> float:
        time = chunk.time_at(index)
        if time is not None:
            return time
        if self._changed is None:
            self._changed = self.source.changed() or 0.0
        return self._changed


_MAX_HIDDEN_BYTES = 64 << 20


def move_back(lanes: Iterable[BackwardLane], count: int, max_bytes: int | None = None) -> int:
    """Move the lanes' positions back over their last `count` lines in total; returns how many there were. Blocking.

    A line that is shown in parts counts as one, but all lines together have no more bytes than `count` parts and `max_bytes`, and those that are not shown at
    most 64 MiB: after that, the rest counts as if it were there.
    """
    heap: list[tuple[BackwardKey, bool, int, BackwardLane]] = []
    for number, lane in enumerate(lanes):
        bound = lane.bound()
        if bound is not None:
            heap.append((bound, False, number, lane))
    heapq.heapify(heap)
    moved_lines, hidden_left = 0, _MAX_HIDDEN_BYTES
    shown_left = min(count * MAX_LINE_BYTES, max_bytes or sys.maxsize)
    while heap and moved_lines < count:
        _, priority, number, lane = heap[0]
        if priority:
            is_shown, size = lane.step()
            moved_lines += is_shown
            shown_left -= size if is_shown else 0
            hidden_left -= 0 if is_shown else size
            if min(shown_left, hidden_left) < 0:
                moved_lines = count
        key = lane.key()
        if key is None:
            heapq.heappop(heap)
            lane.source.close()
        else:
            heapq.heapreplace(heap, (key, True, number, lane))
    for *_, lane in heap:
        lane.source.close()
    return moved_lines


def position_since(source: LogSource, time: float) -> Position:
    """The position of the first line written at `time` (Unix seconds) or later. Blocking."""
    offset = source.offset_at(time)
    if offset is None:
        changed = source.changed()
        return source.end() if changed is not None and changed < time else START_POSITION
    if offset == 0:
        return START_POSITION
    end = source.end()
    if offset >= end.offset:
        return end
    chunk = source.read(Position(offset - 1), _FIRST_READ_BYTES)
    newline = chunk.data.find(b"\n")
    # Inside a very long or unfinished line, start in its middle rather than skip it.
    return chunk.position_at(newline + 1 if newline >= 0 else min(1, len(chunk.data)))


# --------------------------------------------------------------------------------------------------
# Many streams as one, ordered by time.
#
# Bytes covered by one index record have the same time, so whole blocks are merged, not single
# lines: the cost of merging depends on how often the streams alternate, not on their size. For
# streams without an index, the file's modification time is used. Attempts never mix.

Key = tuple[int, float, int, int]
"""A line's order among all streams: attempt, time, node rank, local rank."""

_ALL_BUFFERS = 8 << 20
_MAX_BUFFER_BYTES = 1 << 20
_MIN_BUFFER_BYTES = 20 << 10


def buffer_size(lanes: int) -> int:
    """Bytes that each of this many lanes may buffer."""
    return max(_MIN_BUFFER_BYTES, min(_MAX_BUFFER_BYTES, _ALL_BUFFERS // max(1, lanes)))


class Lane:
    """One stream read forward, from a position to a fixed end."""

    def __init__(
        self,
        source: LogSource,
        origin: Origin,
        position: Position,
        end: int,
        *,
        buffer: int,
        flush: bool,
        collapse: bool = True,
    ) -> None:
        self.source = source
        self.origin = origin
        self.position = position
        self._end = end
        self._buffer = buffer
        self._flush = flush
        self._collapse = collapse
        self._changed: float | None = None
        self._chunk: Chunk | None = None
        self._offset = 0
        self._stop_offset = 0

    def key(self) -> Key | None:
        """The key of the next line, or None when there is none. Reads ahead. Blocking."""
        if self._offset >= self._stop_offset and not self._fill():
            return None
        assert self._chunk is not None
        _, node, local = self.origin.stream.sort_key
        return (self.origin.stream.attempt, self._time(self._chunk, self._offset), node, local)

    def take_block(self, limit_key: Key | None) -> LineBlock:
        """The next lines with keys below `limit_key` (all buffered ones with None); at least one."""
        chunk = self._chunk
        assert chunk is not None
        begin = self._offset
        end = self._stop_offset if limit_key is None else self._find_stop(chunk, limit_key)
        mark = chunk.mark if begin == 0 else None
        self._offset = end
        self.position = chunk.position_at(end)
        return LineBlock(self.origin, chunk, begin, end, mark=mark, collapse=self._collapse)

    def close(self) -> None:
        """Close the source's file."""
        self.source.close()

    def _fill(self) -> bool:
        """Read the next bytes; returns whether they contain whole pieces, or a mark."""
        self._chunk = None
        remaining = self._end - self.position.offset
        if remaining <= 0:
            return False
        chunk = self.source.read(self.position, min(self._buffer, remaining))
        if self._buffer < _MAX_BUFFER_BYTES:
            # With many lanes, not all files can stay open.
            self.source.close()
        if chunk.restarted:
            self._end = max(self.source.end().offset, len(chunk.data))
        size = len(chunk.data)
        at_end = chunk.offset + size >= self._end
        self._offset = 0
        self._stop_offset = size if at_end and self._flush else last_complete(chunk.data, 0, size)
        if chunk.mark is not None and not chunk.data:
            # Nothing is left to read (or the file is unreadable): the mark is this lane's last
            # item.
            self._end = 0
        if self._stop_offset == 0 and chunk.mark is None:
            return False
        self._chunk = replace(chunk, stamps=self._stamps(chunk))
        return True

    def _stamps(self, chunk: Chunk) -> tuple[tuple[int, float], ...]:
        base = chunk.offset
        stamps = self.source.stamps(base, base + len(chunk.data))
        return tuple((offset - base, time) for offset, time in stamps)

    def _time(self, chunk: Chunk, index: int) -> float:
        time = chunk.time_at(index)
        if time is not None:
            return time
        if self._changed is None:
            self._changed = self.source.changed() or 0.0
        return self._changed

    def _find_stop(self, chunk: Chunk, limit_key: Key) -> int:
        """The start of the first line that is not due before `limit_key`."""
        attempt, node, local = self.origin.stream.sort_key
        for index, time in chunk.stamps:
            if index <= self._offset or (attempt, time, node, local) < limit_key:
                continue
            # A line has the time of its first byte, so the current line is taken to its end.
            newline = chunk.data.find(b"\n", index - 1, self._stop_offset)
            return self._stop_offset if newline < 0 else newline + 1
        return self._stop_offset


def merge_forward(lanes: Iterable[Lane]) -> Iterator[LineBlock]:
    """The lanes' lines ordered by time. Blocking; ends when all lanes are at their ends."""
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
        next_key = min((entry[0] for entry in heap[1:3]), default=None)
        yield lane.take_block(next_key)
        following = lane.key()
        if following is None:
            heapq.heappop(heap)
            lane.close()
        else:
            heapq.heapreplace(heap, (following, number, lane))


_BATCH_BYTES = 1 << 20
_BATCH_BLOCKS = 1000


def read_forward(
    sources: SourceSet,
    streams: Iterable[Stream],
    cursor: Cursor,
    *,
    flush: bool,
    end_limit: Cursor | None = None,
    collapse: bool = True,
) -> Iterator[LogBatch]:
    """Batches of everything between a cursor and the streams' current ends. Blocking.

    Args:
        sources: The sources of the streams.
        streams: The streams to read.
        cursor: The start.
        flush: Return a last line without newline too. In earlier attempts and completed streams,
            where no newline can follow, it is always returned.
        end_limit: The end in each stream, instead of its current end.
        collapse: Show only the last state of progress bars.
    """
    lanes: list[Lane] = []
    selected = [stream for stream in streams if stream.attempt >= cursor.first_attempt]
    buffer = buffer_size(len(selected))
    newest = max((stream.attempt for stream in selected), default=0)
    ended_streams = sources.ended_streams()
    for stream in selected:
        position = cursor.position(stream)
        source = sources.open(stream)
        end = source.size() if end_limit is None else end_position(end_limit, source).offset
        if end <= position.offset and (end_limit is not None or not position.check):
            continue
        origin = sources.origin(stream)
        # Even without data after the position the lane must check: the file may have been truncated
        # or replaced.
        lane = Lane(
            source,
            origin,
            position,
            max(end, position.offset + 1),
            buffer=buffer,
            flush=flush or stream.attempt < newest or stream in ended_streams,
            collapse=collapse,
        )
        lanes.append(lane)
    yield from _batches(merge_forward(lanes), cursor, AttemptMarks(cursor, selected))


def end_position(cursor: Cursor, source: LogSource) -> Position:
    """A cursor's position in a source: its end if the cursor has its attempt as complete. Blocking."""
    if source.stream.attempt < cursor.first_attempt:
        return Position(source.size())
    return cursor.position(source.stream)


class AttemptMarks:
    """Puts a mark before the first block of every attempt but the first, of a run or of each child of an array."""

    def __init__(self, cursor: Cursor, streams: Iterable[Stream]) -> None:
        self._seen_attempts: dict[int | None, set[int]] = {}
        for stream, position in cursor.positions.items():
            if position.offset:
                self._seen_attempts.setdefault(stream.child, set()).add(stream.without_child.attempt)
        if cursor.first_attempt > 1:
            self._seen_attempts.setdefault(None, {cursor.first_attempt - 1})
        for stream in sorted(streams, key=lambda stream: stream.sort_key):
            self._seen_attempts.setdefault(stream.child, {stream.without_child.attempt})

    def insert_marks(self, block: LineBlock) -> LineBlock:
        """The block, with a mark if it is the first of an attempt."""
        index, attempt = block.origin.stream.child, block.origin.stream.without_child.attempt
        seen_attempts = self._seen_attempts.setdefault(index, {attempt})
        if attempt in seen_attempts:
            return block
        seen_attempts.add(attempt)
        label = f"attempt {attempt} started"
        return block.with_mark(Mark("attempt", label if index is None else f"{index}: {label}"))


def _batches(blocks: Iterator[LineBlock], cursor: Cursor, marks: AttemptMarks) -> Iterator[LogBatch]:
    pending: list[LineBlock] = []
    size = 0
    for block in blocks:
        pending.append(marks.insert_marks(block))
        size += block.size
        if size >= _BATCH_BYTES or len(pending) >= _BATCH_BLOCKS:
            batch = LogBatch(cursor, pending)
            yield batch
            # Attempts follow each other; the last but one may still get late lines.
            newest = pending[-1].origin.stream.attempt
            cursor, pending, size = batch.end_position.seal(newest - 1), [], 0
    if pending:
        yield LogBatch(cursor, pending)


def start_of_tail(
    sources: SourceSet, streams: Iterable[Stream], end: Cursor, count: int, max_bytes: int | None = None
) -> tuple[Cursor, int]:
    """The cursor before the last `count` lines before `end`, and the number of lines; with `max_bytes`, before fewer of them. Blocking."""
    activity_cache = ActivityCache(sources)
    lanes: list[BackwardLane] = []
    for stream in streams:
        source = sources.open(stream)
        lanes.append(BackwardLane(source, end_position(end, source), activity_cache.get(stream)))
    positions_before = {lane.source.stream: lane.position for lane in lanes}
    line_count = move_back(lanes, count, max_bytes)
    positions = {lane.source.stream: lane.position for lane in lanes}
    moved_attempts = [stream.attempt for stream, position in positions.items() if position != positions_before[stream]]
    start = Cursor({**end.positions, **positions}, run=end.run)
    return start.seal(min([end.first_attempt, *moved_attempts])), line_count


def start_since(sources: SourceSet, streams: Iterable[Stream], time: float) -> Cursor:
    """The cursor before the first lines written at `time` (Unix seconds) or later. Blocking."""
    positions: dict[Stream, Position] = {}
    activity_cache = ActivityCache(sources)
    for stream in streams:
        activity = activity_cache.get(stream)
        if activity is not None and activity.changed < time - 1.0:
            positions[stream] = Position(activity.size)
        else:
            source = sources.open(stream)
            positions[stream] = position_since(source, time)
            source.close()
    return Cursor(positions)


def cursor_at(sources: SourceSet, streams: Iterable[Stream], stream: Stream, position: Position, time: float) -> Cursor:
    """The cursor before one line: everything earlier in time is before the cursor. Blocking.

    Args:
        sources: The sources of the streams.
        streams: The cursor's streams.
        stream: The line's stream.
        position: The line's start.
        time: Its time in Unix seconds.
    """
    positions: dict[Stream, Position] = {}
    activity_cache = ActivityCache(sources)
    for other_stream in streams:
        if other_stream.attempt > stream.attempt:
            continue
        activity = activity_cache.get(other_stream)
        if other_stream == stream:
            positions[other_stream] = position
        elif other_stream.attempt < stream.attempt:
            positions[other_stream] = Position(sources.open(other_stream).size())
        elif activity is not None and activity.changed < time - 1.0:
            positions[other_stream] = Position(activity.size)
        else:
            # Of lines with the same time, those of lower ranks come first.
            source = sources.open(other_stream)
            positions[other_stream] = position_since(
                source, time + 1e-6 if other_stream.sort_key < stream.sort_key else time
            )
            source.close()
    return Cursor(positions).seal(stream.attempt - 1)


def end_cursor(sources: SourceSet, streams: Iterable[Stream]) -> Cursor:
    """The cursor after all current data. Blocking; opens nothing on a shared file system."""
    return Cursor({stream: sources.open(stream).known_end() for stream in streams})


class ActivityCache:
    """Activity records; each node's is read once."""

    def __init__(self, sources: SourceSet) -> None:
        self._sources = sources
        self._nodes: dict[tuple[int, int], Activity | None] = {}

    def get(self, stream: Stream) -> StreamActivity | None:
        """A stream's entry in its node's record, or None. Blocking."""
        node = (stream.attempt, stream.node_rank)
        if node not in self._nodes:
            self._nodes[node] = self._sources.activity(*node)
        activity = self._nodes[node]
        return None if activity is None else activity.streams.get(stream)
