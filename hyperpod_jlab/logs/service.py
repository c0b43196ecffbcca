"""The log service: what every face asks when it shows, follows, pages or searches a run's logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeVar

from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.wire import HIDDEN, Time, Wire
from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.cursor import Cursor, run_mark
from hyperpod_jlab.logs.follow import Feed, Follower, FollowOptions, Hub
from hyperpod_jlab.logs.history import (
    cursor_at,
    end_cursor,
    end_position,
    read_forward,
    start_of_tail,
    start_since,
)
from hyperpod_jlab.logs.lines import LineBlock, LogBatch, LogLine
from hyperpod_jlab.logs.pattern import Matcher, parse_pattern
from hyperpod_jlab.logs.search import Hit, Search, Stretch, Thread
from hyperpod_jlab.logs.source import Activity, Mark, SourceSet
from hyperpod_jlab.logs.stream import LAUNCHER_LINE, Position, Stream
from hyperpod_jlab.storage.mounts import GONE_CODE

# --------------------------------------------------------------------------------------------------
# What faces ask the log service for, and what they get.

Direction = Literal["forward", "backward"]


class LogCatalog(Protocol):
    """What the log service must know of the logs that it reads: those of runs, or of nodes."""

    def sources(self, run_id: str) -> SourceSet:
        """The sources of a log. May block; NotFoundError when there is no such log."""
        ...

    async def is_ended(self, run_id: str) -> bool:
        """Whether nothing more can come: a run is in a terminal state, after which no further attempt can start.

        Asked about once a second by each follower, so it must not cost a scheduler call each time.
        """
        ...


@dataclass(frozen=True)
class LogRequest:
    """Which lines of a run somebody wants.

    Attributes:
        run_id: The run, an array (then all its children), or a child of one; for logs that are of no run, what `KnownLogs` calls them.
        attempt: Only this attempt; None for all.
        node: Only the node of this rank; None for all.
        ranks: Only these global ranks; None for all.
        node_logs: Whether the nodes' own logs (launcher, setup lines) come too; None: unless ranks are asked for.
        tail: Begin with the last so many lines (of those that match, with `grep`).
        since: Begin with the first lines seen at this Unix time (seconds) or later.
        grep: Only lines in which this regular expression is found.
        ignore_case: Whether upper and lower case are the same to `grep`.
        cursor: Go on from here; `tail` and `since` are then not looked at.
        follow: Go on until the run (or the attempt asked for) has ended.
        collapse: Show of progress bars, which go back with a carriage return, only what they showed last.
        partial: With `follow`, show a line that is not finished after a while as far as it is; else only whole lines.
    """

    run_id: str
    attempt: int | None = None
    node: int | None = None
    ranks: tuple[int, ...] | None = None
    node_logs: bool | None = None
    tail: int | None = None
    since: float | None = None
    grep: str | None = None
    ignore_case: bool = False
    cursor: str | None = None
    follow: bool = False
    collapse: bool = True
    partial: bool = True

    def check(self) -> None:
        """Look for numbers that make no sense.

        Raises:
            InvalidInputError: There is one; the detail names its field.
        """
        numbers = {"attempt": (self.attempt, 1), "node": (self.node, 0), "tail": (self.tail, 0)}
        for name, (number, minimum) in numbers.items():
            if number is not None and number < minimum:
                raise _out_of_range(name, number, minimum)
        for rank in self.ranks or ():
            if rank < 0:
                raise _out_of_range("rank", rank, 0)


@dataclass(frozen=True)
class LogPage:
    """Some lines of history and the cursors on both sides of them.

    Attributes:
        lines: The lines, in the order in which they are shown.
        before: Page backward from here.
        after: Page forward, or follow, from here.
        at_start: There is nothing before the page.
        at_end: There was nothing after the page when it was read.
    """

    lines: LogBatch
    before: str
    after: str
    at_start: bool
    at_end: bool


@dataclass(frozen=True)
class SearchHit:
    """A line that matches.

    Attributes:
        attempt: Its attempt, from 1.
        node: Its node's name, or ``node-R`` while that is unknown.
        node_rank: Its node's rank.
        rank: Its global rank; None for a node's own log.
        time: When it was first seen (Unix seconds), or None when nobody noted it.
        line: Its text, or 16 KiB of it around the match.
        match: Begin and end of the (first) match in `line`, in characters.
        cursor: A page forward from here begins with the line; a page backward ends before it.
        index: In an array's log the index of the child; None in a run's own log.
    """

    attempt: int
    node: str
    node_rank: int
    rank: int | None
    time: float | None
    line: str
    match: tuple[int, int]
    cursor: str
    index: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """What a search has found.

    Attributes:
        hits: The hits, nearest to where the search began first.
        next: Where to search on, in the same direction; None when all was searched.
        scanned: Bytes that were searched.
    """

    hits: tuple[SearchHit, ...]
    next: str | None
    scanned: int


def check_limit(limit: int) -> None:
    """Look whether a page or a list of hits may have so many lines.

    Raises:
        InvalidInputError: It may not.
    """
    if limit < 1:
        raise _out_of_range("limit", limit, 1)


def _out_of_range(field: str, number: int, minimum: int) -> InvalidInputError:
    return InvalidInputError(
        f"{field} must be at least {minimum}, not {number}", detail={"field": field}
    )


# --------------------------------------------------------------------------------------------------
# A request made concrete: which streams of a run it means, where to begin, and which lines to show.

AttemptReasonLookup = Callable[[str, int], Awaitable[str | None]]
"""Tells why an attempt of a run, or of an array's child, ended; None when that is not known."""


class LogView:
    """One request and the sources behind it. Methods without ``async`` may block. Use it in an ``async with``.

    Raises:
        InvalidInputError: The request's numbers, cursor or pattern make no sense, or not for this run.
    """

    def __init__(
        self, request: LogRequest, sources: SourceSet, reasons: AttemptReasonLookup | None = None
    ) -> None:
        request.check()
        self._find_attempt_reason = reasons
        self.request = request
        self.sources = sources
        self._ranks = None if request.ranks is None else frozenset(request.ranks)
        self._check_node()
        self._run = run_mark(request.run_id)
        self.start_cursor = None if request.cursor is None else self._parse(request.cursor)
        self.matcher: Matcher | None = None
        if request.grep is not None:
            self.matcher = Matcher(parse_pattern(request.grep, ignore_case=request.ignore_case))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.matcher is not None:
            await self.matcher.close()

    def is_wanted(self, stream: Stream) -> bool:
        """Whether the request means a stream."""
        request, own_stream = self.request, stream.without_child
        if request.attempt is not None and own_stream.attempt != request.attempt:
            return False
        if request.node is not None and own_stream.node_rank != request.node:
            return False
        rank = stream.rank(self.sources.processes_per_node)
        if rank is None:
            return self._ranks is None if request.node_logs is None else request.node_logs
        return self._ranks is None or rank in self._ranks

    def streams(self) -> list[Stream]:
        """The streams meant that exist now."""
        return [
            stream
            for stream in self.sources.streams(self.request.attempt)
            if self.is_wanted(stream)
        ]

    def start(self) -> Cursor:
        """Where to begin; with a pattern and `tail` the caller must search instead."""
        return (
            self.start_cursor
            if self.start_cursor is not None
            else self.check_own_cursor(self._find_start())
        )

    def check_own_cursor(self, cursor: Cursor) -> Cursor:
        """The same cursor, saying that it belongs to this run."""
        return Cursor(cursor.positions, cursor.first_attempt, self._run)

    def _find_start(self) -> Cursor:
        if self.request.tail is not None:
            streams = self.streams()
            return start_of_tail(
                self.sources, streams, end_cursor(self.sources, streams), self.request.tail
            )[0]
        if self.request.since is not None:
            return start_since(self.sources, self.streams(), self.request.since)
        return Cursor()

    def _parse(self, text: str) -> Cursor:
        cursor = Cursor.parse(text)
        if cursor.run not in ("", self._run):  # those of older versions do not say
            raise InvalidInputError(
                f"this cursor belongs to another log, not to {self.request.run_id}",
                code="invalid_cursor",
                hint="use a cursor of this log, or leave it out",
                detail={"field": "cursor", "run_id": self.request.run_id},
            )
        return self.check_own_cursor(cursor)

    def _check_node(self) -> None:
        node, per_node = self.request.node, self.sources.processes_per_node
        if node is None or not self._ranks or any(rank // per_node == node for rank in self._ranks):
            return
        last = (node + 1) * per_node - 1
        own_text = (
            f"only rank {last}" if per_node == 1 else f"the ranks {last - per_node + 1}-{last}"
        )
        raise InvalidInputError(
            f"rank {min(self._ranks)} is not on node {node}"
            if len(self._ranks) == 1
            else f"none of these ranks is on node {node}",
            code="rank_elsewhere",
            hint=f"node {node} has {own_text}",
            detail={"field": "node", "run_id": self.request.run_id},
        )

    async def format_batch(self, batch: LogBatch) -> LogBatch:
        """The batch with only those lines shown that the request asks for, and with why attempts began."""
        if any(_opens_attempt(block) for block in batch.blocks):
            batch = LogBatch(
                batch.start, [await self._with_attempt_reason(block) for block in batch.blocks]
            )
        if self.matcher is None and all(block.origin.rank is not None for block in batch.blocks):
            return batch
        return LogBatch(batch.start, [await self._filter_block(block) for block in batch.blocks])

    async def _with_attempt_reason(self, block: LineBlock) -> LineBlock:
        """The block; when it opens an attempt, its mark says why the one before ended."""
        if self._find_attempt_reason is None or block.mark is None or not _opens_attempt(block):
            return block
        index, attempt = block.origin.stream.child, block.origin.stream.without_child.attempt
        run_id = self.request.run_id if index is None else f"{self.request.run_id}.{index}"
        reason = await self._find_attempt_reason(run_id, attempt - 1)
        return (
            block
            if reason is None
            else block.with_mark(Mark("attempt", f"{block.mark.text}: {reason}"))
        )

    async def _filter_block(self, block: LineBlock) -> LineBlock:
        selected: Sequence[int] | None = None
        if self.matcher is not None and _opens_attempt(block):
            block = block.with_mark(None)  # who asks for certain lines wants no others
        data = block.chunk.data
        if block.origin.rank is None and data.find(LAUNCHER_LINE, block.begin, block.end) >= 0:
            prefix = LAUNCHER_LINE.decode()
            selected = [
                index for index, text in enumerate(block.texts()) if not text.startswith(prefix)
            ]
        if self.matcher is None or selected == []:
            return block if selected is None else block.select_segments(selected)
        if self.matcher.excludes(data, block.begin, block.end):
            return block.select_segments([])
        texts = block.texts()
        if selected is not None:
            hits = await self.matcher.filter([texts[index] for index in selected])
            return block.select_segments([selected[hit] for hit in hits])
        return block.select_segments(await self.matcher.filter(texts))


def _opens_attempt(block: LineBlock) -> bool:
    return block.mark is not None and block.mark.kind == "attempt"


# --------------------------------------------------------------------------------------------------
# Search on behalf of the log service: bounds from cursors, cursors for hits.


async def search(
    log_view: LogView, thread: Thread, direction: Direction, limit: int, seconds: float
) -> SearchResult:
    """Search what a view shows, see `LogService.search`.

    Raises:
        InvalidInputError: The view has no pattern.
    """
    if log_view.matcher is None:
        raise InvalidInputError("a search needs a pattern", detail={"field": "grep"})
    streams = await thread(log_view.streams)
    lanes, start_cursor = await thread(_lanes, log_view, streams, direction)
    searching = Search(lanes, log_view.matcher, direction, thread)
    try:
        hits = await searching.run(limit, seconds)
        hits_found = tuple([await thread(_hit, log_view, streams, hit) for hit in hits])
        next_cursor = (
            None if searching.complete else searching.cursor_after_hits(start_cursor).text()
        )
    finally:
        searching.close()
    return SearchResult(hits_found, next_cursor, searching.scanned)


def _lanes(
    log_view: LogView, streams: list[Stream], direction: Direction
) -> tuple[list[Stretch], Cursor]:
    """What to search of each stream, and the cursor that says so. Blocking."""
    start_cursor = log_view.start_cursor
    if start_cursor is None:
        start_cursor = Cursor() if direction == "forward" else end_cursor(log_view.sources, streams)
    lanes: list[Stretch] = []
    positions: dict[Stream, Position] = {}
    for stream in streams:
        source = log_view.sources.open(stream)
        position = positions[stream] = end_position(start_cursor, source)
        begin, end = (
            (position.offset, source.size()) if direction == "forward" else (0, position.offset)
        )
        if begin < end:
            lanes.append((source, log_view.sources.origin(stream), begin, end))
    return lanes, log_view.check_own_cursor(Cursor(positions))


def _hit(log_view: LogView, streams: list[Stream], hit: Hit) -> SearchHit:
    stream = hit.origin.stream
    cursor = log_view.check_own_cursor(
        cursor_at(log_view.sources, streams, stream, hit.position, hit.key[1])
    )
    own_stream = stream.without_child
    return SearchHit(
        attempt=own_stream.attempt,
        node=hit.origin.node or f"node-{own_stream.node_rank}",
        node_rank=own_stream.node_rank,
        rank=hit.origin.rank,
        time=hit.time,
        line=hit.line,
        match=hit.match,
        cursor=cursor.text(),
        index=stream.child,
    )


# --------------------------------------------------------------------------------------------------
# Which logs a run has: what can be chosen, how long each is, and who has fallen silent.

SILENCE_S = 60.0
"""A rank is silent when it has said nothing for so long (seconds) until another one of its attempt said something."""

_TRUSTED = 15.0  # seconds: an activity record that is older may be of a launcher that is dead


@dataclass(frozen=True)
class LogStream(Wire):
    """One log.

    Attributes:
        attempt: Its attempt, from 1.
        node_rank: Its node's rank.
        node: Its node's name, or ``node-R`` while that is unknown.
        rank: Its global rank; None for a node's own log.
        local_rank: Its rank on the node; None for a node's own log.
        index: In an array the index of the child; None otherwise.
        size: Its length in bytes.
        last_at: When it last grew (Unix seconds); None when nobody knows.
        silent: Whether it is a rank's that has fallen silent while others have not.
    """

    attempt: int = field(metadata=HIDDEN)
    node_rank: int
    node: str
    rank: int | None
    local_rank: int | None
    index: int | None
    size: int
    last_at: Time | None
    silent: bool = False


def log_streams(sources: SourceSet) -> dict[int, list[LogStream]]:
    """The logs of a run by attempt, each in the order of ranks. May block."""
    streams_by_node: dict[tuple[int, int | None], list[LogStream]] = {}
    for log_stream in _list_streams(sources):
        streams_by_node.setdefault((log_stream.attempt, log_stream.index), []).append(log_stream)
    attempts: dict[int, list[LogStream]] = {}
    for attempt, index in sorted(streams_by_node, key=lambda key: (key[0], key[1] or 0)):
        # A child of an array that has ended is not silent because others go on.
        attempts.setdefault(attempt, []).extend(_mark_silent(streams_by_node[attempt, index]))
    return attempts


def _list_streams(sources: SourceSet) -> Iterator[LogStream]:
    records: dict[tuple[int, int], Activity | None] = {}
    for stream in sources.streams():
        key = (stream.attempt, stream.node_rank)
        if key not in records:
            records[key] = sources.activity(*key)
        origin = sources.origin(stream)
        own_stream = stream.without_child
        size, last_at = _size(sources, stream, records[key])
        yield LogStream(
            attempt=own_stream.attempt,
            node_rank=own_stream.node_rank,
            node=origin.node or f"node-{own_stream.node_rank}",
            rank=origin.rank,
            local_rank=own_stream.local_rank,
            index=stream.child,
            size=size,
            last_at=last_at,
        )


def _size(sources: SourceSet, stream: Stream, record: Activity | None) -> tuple[int, float | None]:
    """From the node's record where one can rely on it: no file has to be looked at then."""
    if record is not None and (record.ended or time.time() - record.time < _TRUSTED):
        activity = record.streams.get(stream)
        if activity is not None:
            return activity.size, activity.changed
    source = sources.open(stream)
    try:
        return source.size(), source.changed()
    finally:
        source.close()


def _mark_silent(streams: list[LogStream]) -> list[LogStream]:
    spoken = [
        log_stream.last_at
        for log_stream in streams
        if log_stream.rank is not None and log_stream.last_at is not None
    ]
    newest, first = max(spoken, default=0.0), min(spoken, default=0.0)
    return [
        replace(
            log_stream,
            silent=log_stream.rank is not None
            and newest - (log_stream.last_at if log_stream.last_at is not None else first)
            > SILENCE_S,
        )
        for log_stream in streams
    ]


# --------------------------------------------------------------------------------------------------
# Whether a run has the log that is asked for.


def check_choice(run: Run, request: LogRequest) -> None:
    """Look whether the run has the ranks, the node and the attempt.

    Raises:
        NotFoundError: It has not.
    """
    count = run.nodes * run.processes_per_node
    if request.ranks and max(request.ranks) >= count:
        valid_text = "only rank 0" if count == 1 else f"the ranks 0-{count - 1}"
        raise no_such_log(run.run_id, f"rank {max(request.ranks)}", valid_text)
    if request.node is not None and request.node >= run.nodes:
        raise no_such_node(run, str(request.node))
    if request.attempt is not None and not run.children:  # those of an array have their own
        last = run.status.attempts[-1].number if run.status.attempts else 0
        # One that has not begun yet can be waited for.
        if request.attempt > last and (run.status.ended or not request.follow):
            valid_text = f"{last} attempt" + "s" * (last != 1)
            raise no_such_log(run.run_id, f"attempt {request.attempt}", valid_text)


async def check_request(get: Callable[[str], Awaitable[Run]], request: LogRequest) -> None:
    """`check_choice` for faces that have not looked at the run yet. Who asks for all, or goes on from a cursor, is not looked at again.

    Raises:
        NotFoundError: There is no such run, or it has not what is asked for.
    """
    chosen = request.ranks or request.node is not None or request.attempt is not None
    if chosen and request.cursor is None:
        check_choice(await get(request.run_id), request)


def node_names(run: Run) -> tuple[str, ...]:
    """What the nodes of the newest attempt are called, in the order of their ranks."""
    return run.status.attempts[-1].nodes if run.status.attempts else ()


def no_such_node(run: Run, node: str) -> NotFoundError:
    """The error for a node, by rank or name, that the run has not."""
    valid_text = "only node 0" if run.nodes == 1 else f"the nodes 0-{run.nodes - 1}"
    names = node_names(run)
    return no_such_log(
        run.run_id,
        f"node {node[:60]}",
        valid_text + (f" ({', '.join(names[:8])})" if names else ""),
    )


def no_such_log(run_id: str, subject: str, valid_text: str | None = None) -> NotFoundError:
    """The error for something of which the run has no log.

    Args:
        run_id: The run.
        subject: What it has not, as in "rank 9".
        valid_text: What it has instead.
    """
    hint = f"see: hpj show {run_id}" if valid_text is None else f"it has {valid_text}"
    return NotFoundError(f"{run_id} has no {subject}", code="no_such_log", hint=hint)


__all__ = [
    "LogBatch",
    "LogCatalog",
    "LogLine",
    "LogPage",
    "LogRequest",
    "LogService",
    "SearchHit",
    "SearchResult",
]

T = TypeVar("T")


class CatchUp(Protocol):
    """Waits until all that a run's nodes have said by now can be read; who follows need not have all at once."""

    async def __call__(self, run_id: str, *, follow: bool) -> None:
        """Wait for it."""
        ...


_LOG = logging.getLogger(__name__)
_RAW_BYTES = 1 << 20
_END_POLL_S = 1.0
_QUIET_S = 0.6
"""Seconds without a line after which a run may have ended."""
_FINAL_READ_DELAYS_S = (0.0, 0.25)
_CURSOR_INTERVAL_S = 1.0


class _LastActivity:
    """When lines came last, by the monotonic clock."""

    at = float("-inf")


class LogService:
    """Reads logs for all faces of one process; belongs to one event loop.

    Args:
        catalog: Tells where a log lies and whether it has ended.
        hub: Reads what is being followed; one of its own when left out.
        reasons: Tells why an attempt ended, for the mark before the next one.
        catch_up: Sees that what a run's nodes have said by now can be read.
    """

    def __init__(
        self,
        catalog: LogCatalog,
        hub: Hub | None = None,
        reasons: AttemptReasonLookup | None = None,
        catch_up: CatchUp | None = None,
    ) -> None:
        self._find_attempt_reason = reasons
        self._catch_up_logs = catch_up
        self._catalog = catalog
        self.hub = hub or Hub()

    async def close(self) -> None:
        """End all follows and give back the threads."""
        await self.hub.close()

    async def lines(self, request: LogRequest) -> AsyncGenerator[LogBatch, None]:
        """The lines asked for, in batches; ends when all are there, or with `follow` once the run has ended.

        A batch may be empty and yet move the cursor (`LogBatch.after`). Close the iterator to stop early.

        Raises:
            InvalidInputError: The request's numbers, cursor or pattern make no sense, or the pattern takes too long.
            NotFoundError: There is no such run.
        """
        async with await self._view(request) as log_view:
            cursor_sent_at = 0.0
            async with aclosing(self._read_all(log_view)) as batches:
                async for batch in batches:
                    batch_shown = await log_view.format_batch(batch)
                    now = time.monotonic()
                    if not batch_shown.empty or now - cursor_sent_at > _CURSOR_INTERVAL_S:
                        cursor_sent_at = now
                        yield batch_shown

    async def raw(
        self,
        run_id: str,
        *,
        rank: int | None = None,
        node: int | None = None,
        attempt: int | None = None,
        follow: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """One stream's exact bytes: a rank's, or with only a node named that node's own log; else rank 0's.

        Without an attempt it is the newest one that has the stream; following waits for it to appear.

        Raises:
            NotFoundError: There is no such stream, or no such run.
            InvalidInputError: It is an array: exact bytes are those of one of its children.
        """
        if rank is None and node is None:
            rank = 0
        request = LogRequest(
            run_id,
            attempt,
            node,
            () if rank is None else (rank,),
            node_logs=rank is None,
            follow=follow,
        )
        async with await self._view(request) as log_view:
            if isinstance(log_view.sources, ArrayStreams):
                raise _raw_array_error(run_id, await self.hub.thread(log_view.sources.streams))
            stream = await self._raw_stream(log_view)
            cursor = Cursor()
            if follow:
                follower = Follower(
                    self.hub, self._feed(log_view), cursor, stream.__eq__, FollowOptions(exact=True)
                )
                async with aclosing(self._follow_until_end(log_view, follower)) as batches:
                    async for batch in batches:
                        cursor = batch.end_position
                        for block in batch.blocks:
                            yield block.chunk.data[block.begin : block.end]
            source = log_view.sources.open(stream)
            position = cursor.position(stream)
            for delay in _FINAL_READ_DELAYS_S if follow else (0.0,):
                await asyncio.sleep(delay)
                while (chunk := await self.hub.thread(source.read, position, _RAW_BYTES)).data:
                    position = chunk.position_at(len(chunk.data))
                    yield chunk.data

    async def streams(self, run_id: str) -> dict[int, list[LogStream]]:
        """The logs of a run by attempt, each in the order of ranks.

        Raises:
            NotFoundError: There is no such run.
        """
        if self._catch_up_logs is not None:
            await self._catch_up_logs(run_id, follow=True)
        return await self.hub.thread(lambda: log_streams(self._catalog.sources(run_id)))

    async def page(
        self, request: LogRequest, direction: Direction = "backward", limit: int = 200
    ) -> LogPage:
        """Some lines before or after the request's cursor (None: from the end, or from the start).

        Raises:
            InvalidInputError: As with `lines`.
            NotFoundError: There is no such run.
        """
        check_limit(limit)
        async with await self._view(request) as log_view:
            if direction == "forward":
                return await self._forward_page(log_view, limit)
            return await self._backward_page(log_view, limit)

    async def search(
        self,
        request: LogRequest,
        direction: Direction = "forward",
        limit: int = 200,
        seconds: float = 10.0,
    ) -> SearchResult:
        """Lines that match the request's `grep`, from its cursor on (None: from the start, or from the end).

        Args:
            request: What to search; `tail`, `since` and `follow` are not looked at.
            direction: Which way to search.
            limit: Most hits.
            seconds: About how long to search; `SearchResult.next` tells where to go on.

        Raises:
            InvalidInputError: As with `lines`, or there is no pattern.
            NotFoundError: There is no such run.
        """
        check_limit(limit)
        async with await self._view(request) as log_view:
            return await search(log_view, self.hub.thread, direction, limit, seconds)

    async def _view(self, request: LogRequest) -> LogView:
        sources = await self.hub.thread(self._catalog.sources, request.run_id)
        if self._catch_up_logs is not None:
            await self._catch_up_logs(request.run_id, follow=request.follow)
        return LogView(request, sources, self._find_attempt_reason)

    async def _read_all(self, log_view: LogView) -> AsyncGenerator[LogBatch, None]:
        """All batches of a request, unfiltered."""
        follow = log_view.request.follow
        cursor = await self._find_start_cursor(log_view)
        async with aclosing(self._history(log_view, cursor, flush=not follow)) as batches:
            async for batch in batches:
                cursor = batch.end_position
                yield batch
        if not follow:
            return
        options = FollowOptions(
            collapse=log_view.request.collapse,
            partial=log_view.request.partial and log_view.matcher is None,
        )
        follower = Follower(self.hub, self._feed(log_view), cursor, log_view.is_wanted, options)
        async with aclosing(self._follow_until_end(log_view, follower)) as batches:
            async for batch in batches:
                cursor = batch.end_position
                yield batch
        # The run has ended; what it wrote last may show only now, on a file system with caches a moment later.
        for delay in _FINAL_READ_DELAYS_S:
            await asyncio.sleep(delay)
            with contextlib.suppress(HyperpodError):  # it was removed just now
                # Anew: what was seen of an array with very many children may be older.
                log_view.sources = await self.hub.thread(
                    self._catalog.sources, log_view.request.run_id
                )
            async with aclosing(self._history(log_view, cursor, flush=True)) as batches:
                async for batch in batches:
                    cursor = batch.end_position
                    yield batch

    async def _find_start_cursor(self, log_view: LogView) -> Cursor:
        request = log_view.request
        if (
            log_view.start_cursor is None
            and request.tail is not None
            and log_view.matcher is not None
        ):
            result = await search(
                log_view, self.hub.thread, "backward", max(1, request.tail), float("inf")
            )
            if result.hits and request.tail:
                return Cursor.parse(result.hits[-1].cursor)
            return await self.hub.thread(
                lambda: log_view.check_own_cursor(end_cursor(log_view.sources, log_view.streams()))
            )
        return await self.hub.thread(log_view.start)

    async def _history(
        self, log_view: LogView, cursor: Cursor, *, flush: bool
    ) -> AsyncGenerator[LogBatch, None]:
        streams = await self.hub.thread(log_view.streams)
        batches = read_forward(
            log_view.sources, streams, cursor, flush=flush, collapse=log_view.request.collapse
        )
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                yield batch

    async def _steps(self, batches: Iterator[LogBatch]) -> AsyncGenerator[LogBatch, None]:
        """Take a blocking iterator's items in threads."""
        while (batch := await self.hub.thread(next, batches, None)) is not None:
            yield batch

    def _feed(self, log_view: LogView) -> Feed:
        return self.hub.feed(log_view.sources.key, log_view.sources)

    async def _follow_until_end(
        self, log_view: LogView, follower: Follower
    ) -> AsyncGenerator[LogBatch, None]:
        last_activity = _LastActivity()
        ended = asyncio.create_task(
            self._wait_ended(log_view, last_activity), name="hyperpod-log-end"
        )
        ended.add_done_callback(lambda _: follower.stop())
        try:
            async with follower:
                while not ended.done():
                    batch = await follower.next()
                    if batch is not None:
                        last_activity.at = time.monotonic()
                        yield batch
            ended.result()
        finally:
            ended.cancel()

    async def _wait_ended(self, log_view: LogView, last_activity: _LastActivity) -> None:
        """Return when nothing can be added to what the request asks for.

        Whether the run has ended may cost a call of the scheduler, so it is not asked while lines come.
        """
        attempt = log_view.request.attempt
        while True:
            try:
                is_quiet = time.monotonic() - last_activity.at > _QUIET_S
                if is_quiet and await self._catalog.is_ended(log_view.request.run_id):
                    return
            except UnreachableError as error:
                # Files can be read while the scheduler is away; it will tell the end when it is back.
                _LOG.debug("whether %s has ended is unknown: %s", log_view.request.run_id, error)
            except StorageError as error:
                if error.code != GONE_CODE:
                    raise
                # It goes on where it was when the file system is mounted again.
            if attempt is not None:
                attempts = await self.hub.thread(log_view.sources.attempts)
                if attempts and attempts[-1] > attempt:
                    return
            quiet_remaining = last_activity.at + _QUIET_S - time.monotonic()
            await asyncio.sleep(quiet_remaining if quiet_remaining > 0 else _END_POLL_S)

    async def _raw_stream(self, log_view: LogView) -> Stream:
        while True:
            streams = await self.hub.thread(log_view.streams)
            if streams:
                return streams[-1]
            if not log_view.request.follow or await self._catalog.is_ended(log_view.request.run_id):
                raise no_such_log(log_view.request.run_id, "such log")
            await asyncio.sleep(_END_POLL_S)

    async def _forward_page(self, log_view: LogView, limit: int) -> LogPage:
        start = cursor = log_view.start_cursor or log_view.check_own_cursor(Cursor())
        blocks: list[LineBlock] = []
        count = 0
        async with aclosing(self._history(log_view, cursor, flush=True)) as batches:
            async for batch in batches:
                batch_shown = await log_view.format_batch(batch)
                part = batch_shown.head(limit - count)
                blocks += part.blocks
                count += len(part)
                cursor = batch.end_position if part is batch_shown else part.end_position
                if part is not batch_shown:
                    break
        lines = LogBatch(start, blocks)
        is_complete = count < limit
        return LogPage(
            lines, start.text(), cursor.text(), at_start=not start.positions, at_end=is_complete
        )

    async def _backward_page(self, log_view: LogView, limit: int) -> LogPage:
        streams = await self.hub.thread(log_view.streams)
        end = log_view.start_cursor
        if end is None:
            end = log_view.check_own_cursor(
                await self.hub.thread(end_cursor, log_view.sources, streams)
            )
        if log_view.matcher is not None:
            result = await search(log_view, self.hub.thread, "backward", limit, float("inf"))
            start = Cursor.parse(result.hits[-1].cursor) if result.hits else end
            at_start = len(result.hits) < limit
        else:
            start, count = await self.hub.thread(
                start_of_tail, log_view.sources, streams, end, limit
            )
            at_start = count < limit
        blocks: list[LineBlock] = []
        batches = read_forward(
            log_view.sources,
            streams,
            start,
            flush=True,
            end_limit=end,
            collapse=log_view.request.collapse,
        )
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                blocks += (await log_view.format_batch(batch)).blocks
        return LogPage(
            LogBatch(start, blocks),
            start.text(),
            end.text(),
            at_start=at_start,
            at_end=log_view.start_cursor is None,
        )


def _raw_array_error(run_id: str, streams: Sequence[Stream]) -> InvalidInputError:
    first_child = streams[0].child if streams else None
    child = f"{run_id}.{'<index>' if first_child is None else first_child}"
    return InvalidInputError(
        f"{run_id} is an array; raw bytes are available only for one stream of one child",
        code="is_array",
        hint=f"choose a child: hpj logs {child} --raw",
        detail={"field": "run", "run_id": run_id},
    )
