"""Search on behalf of the log service: bounds from cursors, cursors for hits."""

from __future__ import annotations

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.history import cursor_at, end_in, ends_of
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.search import Hit, Search, Stretch, Thread
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.services.log_request import Direction, SearchHit, SearchResult
from hyperpod_jlab.services.log_view import View


async def search(
    view: View, thread: Thread, direction: Direction, limit: int, seconds: float
) -> SearchResult:
    """Search what a view shows, see `LogService.search`.

    Raises:
        InvalidInputError: The view has no pattern.
    """
    if view.matcher is None:
        raise InvalidInputError("a search needs a pattern", detail={"field": "grep"})
    streams = await thread(view.streams)
    lanes, given = await thread(_lanes, view, streams, direction)
    searching = Search(lanes, view.matcher, direction, thread)
    try:
        hits = await searching.run(limit, seconds)
        found = tuple([await thread(_hit, view, streams, hit) for hit in hits])
        rest = None if searching.complete else searching.rest(given).text()
    finally:
        searching.close()
    return SearchResult(found, rest, searching.scanned)


def _lanes(view: View, streams: list[Stream], direction: Direction) -> tuple[list[Stretch], Cursor]:
    """What to search of each stream, and the cursor that says so. Blocking."""
    given = view.given
    if given is None:
        given = Cursor() if direction == "forward" else ends_of(view.sources, streams)
    lanes: list[Stretch] = []
    places: dict[Stream, Place] = {}
    for stream in streams:
        source = view.sources.open(stream)
        place = places[stream] = end_in(given, source)
        begin, end = (place.offset, source.size()) if direction == "forward" else (0, place.offset)
        if begin < end:
            lanes.append((source, view.sources.origin(stream), begin, end))
    return lanes, view.ours(Cursor(places))


def _hit(view: View, streams: list[Stream], hit: Hit) -> SearchHit:
    stream = hit.origin.stream
    cursor = view.ours(cursor_at(view.sources, streams, stream, hit.place, hit.key[1]))
    own = stream.own
    return SearchHit(
        attempt=own.attempt,
        node=hit.origin.node or f"node-{own.node_rank}",
        node_rank=own.node_rank,
        rank=hit.origin.rank,
        time=hit.time,
        line=hit.line,
        match=hit.match,
        cursor=cursor.text(),
        index=stream.child,
    )
