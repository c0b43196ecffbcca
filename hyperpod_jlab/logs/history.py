"""What streams have by now, from a cursor on, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hyperpod_jlab.logs.activity import Activity, StreamActivity
from hyperpod_jlab.logs.backward import BackLane, back_by_lines, place_since
from hyperpod_jlab.logs.block import LineBlock, LogBatch
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.merge import Lane, buffer_size, merge_forward
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.source import LogSource, Mark, SourceSet
from hyperpod_jlab.logs.stream import Stream

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


def end_in(cursor: Cursor, source: LogSource) -> Place:
    """Where a source is left by a cursor: at its end, when its attempt is done with. Blocking."""
    if source.stream.attempt < cursor.first_attempt:
        return Place(source.size())
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
    places: dict[Stream, Place] = {}
    known = ActivityCache(sources)
    for stream in streams:
        activity = known.of(stream)
        if activity is not None and activity.changed < time - 1.0:
            places[stream] = Place(activity.size)
        else:
            source = sources.open(stream)
            places[stream] = place_since(source, time)
            source.close()
    return Cursor(places)


def cursor_at(
    sources: SourceSet, streams: Iterable[Stream], stream: Stream, place: Place, time: float
) -> Cursor:
    """The cursor before one line: all that comes before it in the order of time is before the cursor. Blocking.

    Args:
        sources: Where the streams lie.
        streams: The streams that the cursor is for.
        stream: The line's stream.
        place: Where the line begins.
        time: When it was first seen, in Unix seconds.
    """
    places: dict[Stream, Place] = {}
    known = ActivityCache(sources)
    for other in streams:
        if other.attempt > stream.attempt:
            continue
        activity = known.of(other)
        if other == stream:
            places[other] = place
        elif other.attempt < stream.attempt:
            places[other] = Place(sources.open(other).size())
        elif activity is not None and activity.changed < time - 1.0:
            places[other] = Place(activity.size)
        else:
            # Of lines seen at the same time those of the lower ranks come first.
            source = sources.open(other)
            places[other] = place_since(source, time + 1e-6 if other.order < stream.order else time)
            source.close()
    return Cursor(places).sealed(stream.attempt - 1)


def ends_of(sources: SourceSet, streams: Iterable[Stream]) -> Cursor:
    """The cursor behind all that is there now. Blocking; opens nothing."""
    return Cursor({stream: Place(sources.open(stream).size()) for stream in streams})


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
