"""Logs of the nodes of HyperPod clusters, as CloudWatch Logs has them: life cycle scripts, health monitoring, deep health checks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.node_logs import (
    end_of_log,
    last_lines,
    lines_after,
    list_logs,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.model.node_log import (
    BEGIN,
    LOG_KINDS,
    NODE_KINDS,
    NodeLog,
    NodeLogLine,
    Place,
    PlacedLine,
    decode_cursor,
    encode_cursor,
    invalid_cursor,
)
from hyperpod_jlab.services.hyperpod_instances import find_cluster, find_instance, is_called

MOST_LINES = 10_000
"""The most lines that one look at the end of a log gives."""

TAIL = 100
"""How many of the last lines are given where nobody says it."""

_SOON, _LATE = 2.0, 30.0
"""Seconds between two looks at a log that is followed: after new lines, and when none came for long."""

_PATIENCE = 10
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
                if failures > _PATIENCE:
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
            start = Place(max(0, int(request.since * 1000)), 0)
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
