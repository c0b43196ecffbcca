"""Search on behalf of the log service: bounds from cursors, cursors for hits."""

from __future__ import annotations

from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.history import cursor_at, ends_of
from hyperpod_jlab.logs.search import Hit, Search, Thread
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
    given = view.given or Cursor()
    ends: Cursor = await thread(ends_of, view.sources, streams)
    until = view.given or ends
    if direction == "forward":
        bounds = {
            stream: (given.place(stream).offset, ends.place(stream).offset) for stream in streams
        }
    else:
        bounds = {stream: (0, until.place(stream).offset) for stream in streams}
    lanes = [
        (view.sources.open(stream), await thread(view.sources.origin, stream), begin, end)
        for stream, (begin, end) in bounds.items()
        if begin < end and stream.attempt >= given.first_attempt
    ]
    searching = Search(lanes, view.matcher, direction, thread)
    try:
        hits = await searching.run(limit, seconds)
        found = tuple([await thread(_hit, view, streams, hit) for hit in hits])
        rest = (
            None
            if searching.complete
            else searching.rest(given if direction == "forward" else until).text()
        )
    finally:
        searching.close()
    return SearchResult(found, rest, searching.scanned)


def _hit(view: View, streams: list[Stream], hit: Hit) -> SearchHit:
    stream = hit.origin.stream
    cursor = cursor_at(view.sources, streams, stream, hit.place, hit.key[1])
    return SearchHit(
        attempt=stream.attempt,
        node=hit.origin.node or f"node-{stream.node_rank}",
        node_rank=stream.node_rank,
        rank=hit.origin.rank,
        time=hit.time,
        line=hit.line,
        match=hit.match,
        cursor=cursor.text(),
    )
