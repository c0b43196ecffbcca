"""Pages of nodes' logs in both directions, and a search in them: what a log viewer asks for."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.aws.node_logs import last_lines
from hyperpod_jlab.logs.matcher import Matcher
from hyperpod_jlab.logs.pattern import Pattern
from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.model.node_log import (
    BEGIN,
    Place,
    PlacedLine,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
)
from hyperpod_jlab.services.node_logs import LogReader, NodeLogRequest, NodeLogs

SEARCH_SECONDS = 5.0
"""Seconds after which a search gives what it found so far."""

_ROWS = re.compile(r"\r?\n|\r")


@dataclass(frozen=True)
class LineOfLog:
    """A line: when it was written (Unix seconds), in which log, and what it says."""

    time: float
    stream: str
    text: str


@dataclass(frozen=True)
class NodeLogPage:
    """Some lines in the order of time.

    Attributes:
        lines: The lines.
        before: Cursor before them.
        after: Cursor behind them.
        at_start: Whether nothing lies before them.
        at_end: Whether nothing lay behind them just now.
    """

    lines: Sequence[LineOfLog]
    before: str
    after: str
    at_start: bool
    at_end: bool


@dataclass(frozen=True)
class NodeLogHit:
    """A line in which something was found: `match` are its begin and end in the line, `cursor` lies before it."""

    line: LineOfLog
    match: tuple[int, int]
    cursor: str


class NodeLogPages:
    """Pages of one cluster's logs.

    Args:
        logs: The logs of its region.
        cluster: Its name or ARN.
        streams: Which logs, by AWS' names; one that is not there has no lines.
    """

    def __init__(self, logs: NodeLogs, cluster: str, streams: Sequence[str]) -> None:
        self._logs = logs
        self._cluster = cluster
        self._streams = tuple(dict.fromkeys(streams))

    async def backward(self, cursor: str | None, limit: int) -> NodeLogPage:
        """The last lines, or those before a cursor.

        Raises:
            InvalidInputError: The cursor is none of these logs.
            NotFoundError: There is no such cluster, or it has no log group.
            HyperpodError: See `aws.errors`.
        """
        given = {} if cursor is None else decode_cursor(cursor)
        if cursor is not None and given.keys() != set(self._streams):
            raise invalid_cursor()
        group = await self._logs.group(self._cluster)
        found = await asyncio.gather(
            *(self._last(group, one, limit, given.get(one)) for one in self._streams)
        )
        merged = sorted((line for lines in found for line in lines), key=_milliseconds)
        cut, kept = merged[:-limit], merged[-limit:]
        after = dict.fromkeys(self._streams, BEGIN) | {one.stream: one.place for one in merged}
        after |= given
        # Before what is kept lies what is left out, and of a log of which nothing was found nothing.
        before = after | {one.stream: one.place for one in cut}
        for line in reversed(kept):
            before[line.stream] = Place(line.place.milliseconds, line.place.seen - 1)
        return NodeLogPage(
            _given(kept),
            encode_cursor(before),
            encode_cursor(after),
            at_start=not cut and all(len(lines) < limit for lines in found),
            at_end=cursor is None,
        )

    async def forward(self, cursor: str | None, limit: int) -> NodeLogPage:
        """The first lines, or those behind a cursor.

        Raises:
            HyperpodError: As with `backward`.
        """
        start = cursor or encode_cursor(dict.fromkeys(self._streams, BEGIN))
        places = decode_cursor(start)
        reader = await self._reader(start, limit + 1)
        lines: list[PlacedLine] = []
        async for ready in reader.placed_lines():
            lines += ready
            if len(lines) > limit:
                break
        shown = lines[:limit]
        places |= {line.stream: line.place for line in shown}
        return NodeLogPage(
            _given(shown), start, encode_cursor(places), cursor is None, len(lines) <= limit
        )

    async def search(
        self, pattern: Pattern, cursor: str | None, limit: int, seconds: float = SEARCH_SECONDS
    ) -> tuple[list[NodeLogHit], str | None]:
        """Lines that match, from the first or from a cursor on, and where to search on (None: all was searched).

        Of the last line there may be more hits than were asked for, where it has several rows (see `rows_of`).

        Raises:
            InvalidInputError: The pattern takes too long, or the cursor is none of these logs.
            HyperpodError: As with `backward`.
        """
        until = time.monotonic() + seconds
        start = cursor or encode_cursor(dict.fromkeys(self._streams, BEGIN))
        places = decode_cursor(start)
        reader = await self._reader(start, None)
        hits: list[NodeLogHit] = []
        async with Matcher(pattern) as matcher:
            async for ready in reader.placed_lines():
                found = await _matching(matcher, ready)
                for number, line in enumerate(ready):
                    if len(hits) >= limit:
                        return hits, encode_cursor(places)
                    for text in found.get(number, ()):
                        shown = LineOfLog(_seconds(line), line.stream, text)
                        hits.append(NodeLogHit(shown, _span(pattern, text), encode_cursor(places)))
                    places[line.stream] = line.place
                if time.monotonic() > until:
                    return hits, encode_cursor(places)
        return hits, None

    async def _last(
        self, group: str, stream: str, count: int, before: Place | None
    ) -> list[PlacedLine]:
        try:
            return await last_lines(self._logs.aws, group, stream, count, before=before)
        except NotFoundError as error:
            if error.code != "no_log":
                raise
            return []

    async def _reader(self, cursor: str, ahead: int | None) -> LogReader:
        group = await self._logs.group(self._cluster)
        request = NodeLogRequest(self._streams, cursor=cursor, ahead=ahead)
        return LogReader(self._logs.aws, group, request)


def rows_of(text: str) -> list[str]:
    """A line of CloudWatch as rows: what a node writes at once may have several, or a bar that is drawn again and again."""
    return _ROWS.split(text.rstrip("\r\n"))


async def _matching(matcher: Matcher, lines: Sequence[PlacedLine]) -> dict[int, list[str]]:
    """The rows that match, by their line's number."""
    rows = [(number, row) for number, line in enumerate(lines) for row in rows_of(line.text)]
    found: dict[int, list[str]] = {}
    for at in await matcher.filter([row for _, row in rows]):
        number, row = rows[at]
        found.setdefault(number, []).append(row)
    return found


def _span(pattern: Pattern, text: str) -> tuple[int, int]:
    """Where in a line that matches: the search process has shown that it takes no time."""
    match = re.search(pattern.text, text, re.IGNORECASE if pattern.ignore_case else 0)
    return match.span() if match else (0, 0)


def _given(lines: Sequence[PlacedLine]) -> list[LineOfLog]:
    return [LineOfLog(_seconds(line), line.stream, line.text) for line in lines]


def _seconds(line: PlacedLine) -> float:
    return line.place.milliseconds / 1000


def _milliseconds(line: PlacedLine) -> int:
    return line.place.milliseconds
