"""Logs of the nodes of HyperPod clusters, as CloudWatch Logs has them: life cycle scripts, health monitoring, deep health checks."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import find_cluster, find_instance, is_called
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.node_logs.aws import end_of_log, last_lines, lines_after, list_logs
from hyperpod_jlab.features.node_logs.models import (
    BEGIN,
    LOG_KINDS,
    NODE_KINDS,
    NodeLog,
    NodeLogLine,
    NodeLogPosition,
    PlacedLine,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
)
from hyperpod_jlab.logs.pattern import Matcher, Pattern

MOST_LINES = 10_000
"""The most lines that one look at the end of a log gives."""

TAIL = 100
"""How many of the last lines are given where nobody says it."""

_SOON, _LATE = 2.0, 30.0
"""Seconds between two looks at a log that is followed: after new lines, and when none came for long."""

_TIMEOUT = 10
"""Looks in a row that may fail for want of an answer while a log is followed."""

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")


@dataclass(frozen=True)
class NodeLogRequest:
    """Which lines of which logs.

    Attributes:
        streams: The logs, by AWS' names.
        tail: How many of the last lines to begin with, of all logs together. With `since` or `cursor` it is not looked at.
        since: Begin with lines of this time (Unix seconds).
        cursor: Begin behind an earlier line.
        ahead: How many lines are to be read ahead of each log; None: as many as AWS gives.
    """

    streams: tuple[str, ...]
    tail: int = TAIL
    since: float | None = None
    cursor: str | None = None
    ahead: int | None = None


class NodeLogs:
    """Logs of nodes in one region.

    Args:
        aws: AWS in that region.
        describe: Knows a cluster by its name or ARN; default: AWS is asked each time.
        known: Instances of a cluster that need not be asked for.
    """

    def __init__(
        self,
        aws: Aws,
        describe: Callable[[str], Awaitable[HyperpodCluster]] | None = None,
        known: Callable[[str], Sequence[Instance]] | None = None,
    ) -> None:
        self.aws = aws
        self._describe = describe or partial(find_cluster, aws)
        self._known = known or (lambda _: ())

    async def logs(
        self, cluster: str, limit: int | None = None, kind: str | None = None
    ) -> list[NodeLog]:
        """The logs of a cluster, those that were written last first.

        Args:
            cluster: Name or ARN.
            limit: How many at the most; None: all. AWS gives fifty at a time.
            kind: Only those of this kind: a word of `LOG_KINDS`. Then all of them are read.

        Raises:
            NotFoundError: There is no such cluster, or it has no log group.
            HyperpodError: See `aws.errors`.
        """
        group = await self.group(cluster)
        found: list[NodeLog] = []
        prefix = None if kind is None else f"{LOG_KINDS[kind]}/"
        async for page in list_logs(self.aws, group, prefix):
            found += page
            if kind is None and limit is not None and len(found) >= limit:
                break
        if kind is not None:
            found.sort(key=lambda log: log.last_at or 0, reverse=True)
        return found[:limit]

    async def streams_of(self, cluster: str, node: str, kind: str | None = None) -> tuple[str, ...]:
        """The names of a node's logs, whether they have been written or not.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`); one that AWS does not list any more by its instance id.
            kind: One of `NODE_KINDS`; None: all of them.

        Raises:
            NotFoundError: There is no such cluster or node.
            HyperpodError: See `aws.errors`.
        """
        kinds = NODE_KINDS if kind is None else (kind,)
        if not set(kinds) <= set(NODE_KINDS):
            raise InvalidInputError(
                f"no node has a {kind} log of its own",
                hint="leave out the node to see which logs there are, and name one as --stream",
                detail={"field": "kind"},
            )
        known = (one for one in self._known(cluster) if is_called(one, node))
        try:
            one = next(known, None) or await find_instance(self.aws, cluster, node)
        except NotFoundError as error:
            if error.code != "no_such_node" or not _INSTANCE.fullmatch(node):
                raise
            # It may have been replaced, and why it went is what its logs tell.
            found = [log for log in await self.logs(cluster) if log.instance == node]
            if not found:
                raise
            return tuple(sorted(log.stream for log in found if log.kind in kinds))
        return tuple(f"{LOG_KINDS[word]}/{one.instance_group}/{one.name}" for word in kinds)

    async def lines(
        self, cluster: str, request: NodeLogRequest, *, follow: bool = False
    ) -> AsyncGenerator[list[NodeLogLine], None]:
        """The lines asked for, in the order of time, then with `follow` each new one once, without end.

        A log that is not there has no lines; with `follow` it may come to be.

        Raises:
            NotFoundError: There is no such cluster, it has no log group, or (without `follow`) none of the logs is there.
            InvalidInputError: The cursor is none of these logs.
            HyperpodError: See `aws.errors`.
        """
        reader = LogReader(self.aws, await self.group(cluster), request)
        async for batch in reader.begin(follow=follow):
            yield batch
        if not follow and len(reader.absent) == len(request.streams):
            raise _no_logs(request.streams)
        wait, failures = _SOON, 0
        while follow:
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LATE)
            try:
                async for batch in reader.new_lines():
                    wait = _SOON
                    yield batch
                failures = 0
            except UnreachableError:
                failures += 1
                if failures > _TIMEOUT:
                    raise

    async def group(self, cluster: str) -> str:
        """The log group of a cluster.

        Raises:
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        found = await self._describe(cluster)
        return log_group(found.arn, found.name)


class LogReader:
    """How far several logs have been read.

    Args:
        aws: AWS in the cluster's region.
        group: The cluster's log group.
        request: Which logs.

    Raises:
        InvalidInputError: Its cursor is none of these logs.
    """

    def __init__(self, aws: Aws, group: str, request: NodeLogRequest) -> None:
        self._aws = aws
        self._group = group
        self._request = request
        self._places = dict.fromkeys(request.streams, BEGIN)
        if request.cursor is not None:
            self._places = decode_cursor(request.cursor)
            if self._places.keys() != set(request.streams):
                raise invalid_cursor()
        self.absent: set[str] = set()

    async def begin(self, *, follow: bool) -> AsyncIterator[list[NodeLogLine]]:
        """The lines with which the request begins; with `follow` what is left out of them is not given later."""
        request = self._request
        if request.cursor is None and request.since is None:
            yield await self._tail(request.tail, follow=follow)
            return
        if request.cursor is None and request.since is not None:
            start = NodeLogPosition(max(0, int(request.since * 1000)), 0)
            self._places = dict.fromkeys(request.streams, start)
        async for batch in self.new_lines():
            yield batch

    async def new_lines(self) -> AsyncIterator[list[NodeLogLine]]:
        """What was written behind the places, which move on."""
        async for lines in self.placed_lines():
            yield self._given(lines)

    async def placed_lines(self) -> AsyncIterator[list[PlacedLine]]:
        """What was written behind the places, merged by time: a page of each log at the most is held. The places stay."""
        sources = {stream: self._pages(stream) for stream in self._request.streams}
        held = {stream: await anext(source, None) for stream, source in sources.items()}
        while pages := [page for page in held.values() if page]:
            # Lines later than the end of some log's page may have to wait for those on its next one.
            safe = min(page[-1].place.milliseconds for page in pages)
            ready: list[PlacedLine] = []
            for stream, page in held.items():
                cut = sum(line.place.milliseconds <= safe for line in page or ())
                ready += (page or [])[:cut]
                held[stream] = page and page[cut:]
            yield sorted(ready, key=_milliseconds)
            for stream, page in held.items():
                if page == []:
                    held[stream] = await anext(sources[stream], None)

    async def _tail(self, count: int, *, follow: bool) -> list[NodeLogLine]:
        found: list[PlacedLine] = []
        for stream in self._request.streams:
            try:
                if count:
                    found += await last_lines(self._aws, self._group, stream, count)
                elif follow:
                    self._places[stream] = await end_of_log(self._aws, self._group, stream)
            except NotFoundError as error:
                self._note_absent(stream, error)
        ordered = sorted(found, key=_milliseconds)
        # What was left out lies before what is given, also of a log of which nothing is.
        for line in ordered[:-count]:
            self._places[line.stream] = line.place
        return self._given(ordered[-count:])

    async def _pages(self, stream: str) -> AsyncIterator[list[PlacedLine]]:
        try:
            given = (self._aws, self._group, stream, self._places[stream], self._request.ahead)
            async for page in lines_after(*given):
                self.absent.discard(stream)
                yield page
        except NotFoundError as error:
            self._note_absent(stream, error)

    def _note_absent(self, stream: str, error: NotFoundError) -> None:
        if error.code != "no_log":
            raise error
        self.absent.add(stream)

    def _given(self, lines: Sequence[PlacedLine]) -> list[NodeLogLine]:
        given: list[NodeLogLine] = []
        for line in sorted(lines, key=_milliseconds):
            self._places[line.stream] = line.place
            cursor = encode_cursor(self._places)
            time = line.place.milliseconds / 1000
            given.append(NodeLogLine(time, NodeLog(line.stream), line.text, cursor))
        return given


def _milliseconds(line: PlacedLine) -> int:
    return line.place.milliseconds


def _no_logs(streams: Sequence[str]) -> NotFoundError:
    return NotFoundError(
        f"none of these logs has been written: {', '.join(streams)}",
        code="no_log",
        hint="a node writes its life cycle log when its scripts run, and a health log only when something is found; "
        "hpj node-logs without a node lists the logs that there are",
        detail={"streams": list(streams)},
    )


# --------------------------------------------------------------------------------------------------
# Pages of nodes' logs in both directions, and a search in them: what a log viewer asks for.

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
        merged = sorted(
            (line for lines in found for line in lines), key=_node_log_pages_milliseconds
        )
        cut, kept = merged[:-limit], merged[-limit:]
        after = dict.fromkeys(self._streams, BEGIN) | {one.stream: one.place for one in merged}
        after |= given
        # Before what is kept lies what is left out, and of a log of which nothing was found nothing.
        before = after | {one.stream: one.place for one in cut}
        for line in reversed(kept):
            before[line.stream] = NodeLogPosition(line.place.milliseconds, line.place.seen - 1)
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
        self, group: str, stream: str, count: int, before: NodeLogPosition | None
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


def _node_log_pages_milliseconds(line: PlacedLine) -> int:
    return line.place.milliseconds
