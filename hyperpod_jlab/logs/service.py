"""The log service: shows, follows, pages and searches a run's logs for all clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeVar

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, StorageError, UnreachableError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.wire import HIDDEN, Time, Wire
from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.cursor import Cursor, run_mark
from hyperpod_jlab.logs.export import as_archive
from hyperpod_jlab.logs.follow import Feed, Follower, FollowOptions, Hub
from hyperpod_jlab.logs.histogram import Histogram, count_bytes
from hyperpod_jlab.logs.history import cursor_at, end_cursor, end_position, read_forward, start_of_tail, start_since
from hyperpod_jlab.logs.lines import LineBlock, LogBatch, LogLine
from hyperpod_jlab.logs.pattern import Matcher, parse_pattern
from hyperpod_jlab.logs.search import Hit, Search, Stretch, Thread
from hyperpod_jlab.logs.source import Activity, Mark, SourceSet
from hyperpod_jlab.logs.stream import LAUNCHER_LINE, Position, Stream
from hyperpod_jlab.storage.big_records import BUDGET_S, Deadline
from hyperpod_jlab.storage.mounts import GONE_CODE

# --------------------------------------------------------------------------------------------------
# The log service's requests and results.

Direction = Literal["forward", "backward"]


class LogCatalog(Protocol):
    """The log service's catalog of logs: those of runs, or of nodes."""

    def sources(self, run_id: str) -> SourceSet:
        """The sources of a log. May block; NotFoundError when the log does not exist."""
        ...

    async def is_ended(self, run_id: str) -> bool:
        """Whether the log is complete: the run is in a terminal state, after which no further attempt can start.

        Each follower calls this about once a second, so it must not make a scheduler call each
        time.
        """
        ...


@dataclass(frozen=True)
class LogRequest:
    """A request for lines of a run.

    Attributes:
        run_id: The run, an array (then all its children), or a child of one; for other logs, their
            id in the `LogCatalog`.
        attempt: Only this attempt; None for all.
        node: Only the node of this rank; None for all.
        ranks: Only these global ranks; None for all.
        node_logs: Whether to include the nodes' own logs (launcher, setup lines); by default,
            unless ranks are given.
        tail: Start with this many last lines (matching ones, with `grep`).
        since: Start with the first lines written at this Unix time (seconds) or later.
        grep: Only lines that match this regular expression.
        ignore_case: Whether `grep` ignores case.
        cursor: Continue from here; `tail` and `since` are then ignored.
        follow: Continue until the run (or the requested attempt) has ended.
        collapse: Show only the last state of progress bars, which use carriage returns.
        partial: With `follow`, show unfinished lines after a while; otherwise only whole lines.
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
        """Validate the numbers.

        Raises:
            InvalidInputError: A number is invalid; the detail names its field.
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
        lines: The lines, in display order.
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
    """Validate the number of lines of a page or of hits.

    Raises:
        InvalidInputError: The number is invalid.
    """
    if limit < 1:
        raise _out_of_range("limit", limit, 1)


def _out_of_range(field: str, number: int, minimum: int) -> InvalidInputError:
    return InvalidInputError(f"{field} must be at least {minimum}, not {number}", detail={"field": field})


# --------------------------------------------------------------------------------------------------
# A resolved request: its streams, its start, and the lines to show.

AttemptReasonLookup = Callable[[str], Awaitable[Mapping[int, str | None]]]
"""Returns why the attempts of a run, or of an array's child, ended, by number; None when unknown."""

_REASON_RETRY_S = 1.0


class LogView:
    """One request and its sources. Methods without ``async`` may block. Use it in an ``async with``.

    Raises:
        InvalidInputError: The request's numbers, cursor or pattern are invalid, or do not belong to
            this run.
    """

    def __init__(self, request: LogRequest, sources: SourceSet, reasons: AttemptReasonLookup | None = None) -> None:
        request.check()
        self._attempt_reasons = None if reasons is None else _AttemptReasons(reasons)
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
        """Whether the request includes a stream."""
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
        """The requested streams that exist now."""
        return [stream for stream in self.sources.streams(self.request.attempt) if self.is_wanted(stream)]

    def start(self) -> Cursor:
        """The start; with a pattern and `tail` the caller must search instead."""
        return self.start_cursor if self.start_cursor is not None else self.check_own_cursor(self._find_start())

    def check_own_cursor(self, cursor: Cursor) -> Cursor:
        """The same cursor, after a check that it belongs to this run."""
        return Cursor(cursor.positions, cursor.first_attempt, self._run)

    def _find_start(self) -> Cursor:
        if self.request.tail is not None:
            streams = self.streams()
            return start_of_tail(self.sources, streams, end_cursor(self.sources, streams), self.request.tail)[0]
        if self.request.since is not None:
            return start_since(self.sources, self.streams(), self.request.since)
        return Cursor()

    def _parse(self, text: str) -> Cursor:
        cursor = Cursor.parse(text)
        if cursor.run not in ("", self._run):  # those of older versions do not name the run
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
        own_text = f"only rank {last}" if per_node == 1 else f"the ranks {last - per_node + 1}-{last}"
        raise InvalidInputError(
            f"rank {min(self._ranks)} is not on node {node}"
            if len(self._ranks) == 1
            else f"none of these ranks is on node {node}",
            code="rank_elsewhere",
            hint=f"node {node} has {own_text}",
            detail={"field": "node", "run_id": self.request.run_id},
        )

    async def format_batch(self, batch: LogBatch) -> LogBatch:
        """The batch with only the requested lines shown, and with the reasons for attempts."""
        if any(_opens_attempt(block) for block in batch.blocks):
            batch = LogBatch(batch.start, [await self._with_attempt_reason(block) for block in batch.blocks])
        if self.matcher is None and all(block.origin.rank is not None for block in batch.blocks):
            return batch
        return LogBatch(batch.start, [await self._filter_block(block) for block in batch.blocks])

    async def _with_attempt_reason(self, block: LineBlock) -> LineBlock:
        """The block; if it starts an attempt, its mark has the reason why the previous one ended."""
        if self._attempt_reasons is None or block.mark is None or not _opens_attempt(block):
            return block
        index, attempt = block.origin.stream.child, block.origin.stream.without_child.attempt
        run_id = self.request.run_id if index is None else f"{self.request.run_id}.{index}"
        reason = await self._attempt_reasons.get(run_id, attempt - 1)
        return block if reason is None else block.with_mark(Mark("attempt", f"{block.mark.text}: {reason}"))

    async def _filter_block(self, block: LineBlock) -> LineBlock:
        selected: Sequence[int] | None = None
        if self.matcher is not None and _opens_attempt(block):
            block = block.with_mark(None)  # a request for certain lines excludes marks
        data = block.chunk.data
        if block.origin.rank is None and data.find(LAUNCHER_LINE, block.begin, block.end) >= 0:
            prefix = LAUNCHER_LINE.decode()
            selected = [index for index, text in enumerate(block.texts()) if not text.startswith(prefix)]
        if self.matcher is None or selected == []:
            return block if selected is None else block.select_segments(selected)
        if self.matcher.excludes(data, block.begin, block.end):
            return block.select_segments([])
        texts = block.texts()
        if selected is not None:
            hits = await self.matcher.filter([texts[index] for index in selected])
            return block.select_segments([selected[hit] for hit in hits])
        return block.select_segments(await self.matcher.filter(texts))


class _AttemptReasons:
    """Why the attempts of a request's runs ended. A run with many attempts is asked for once, not for each of them."""

    def __init__(self, find: AttemptReasonLookup) -> None:
        self._find = find
        self._known: dict[str, Mapping[int, str | None]] = {}
        self._next_at: dict[str, float] = {}

    async def get(self, run_id: str, attempt: int) -> str | None:
        """Why an attempt ended; None if unknown."""
        known = self._known.get(run_id, {})
        is_new = attempt > max(known, default=0)
        if is_new and time.monotonic() >= self._next_at.get(run_id, 0.0):
            known = self._known[run_id] = await self._find(run_id)
            if attempt not in known:  # its records cannot be read
                self._next_at[run_id] = time.monotonic() + _REASON_RETRY_S
        return known.get(attempt)


def _opens_attempt(block: LineBlock) -> bool:
    return block.mark is not None and block.mark.kind == "attempt"


# --------------------------------------------------------------------------------------------------
# Search for the log service: limits from cursors, cursors for hits.


async def search(log_view: LogView, thread: Thread, direction: Direction, limit: int, seconds: float) -> SearchResult:
    """Search a view's lines, see `LogService.search`.

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
        next_cursor = None if searching.complete else searching.cursor_after_hits(start_cursor).text()
    finally:
        searching.close()
    return SearchResult(hits_found, next_cursor, searching.scanned)


def _lanes(log_view: LogView, streams: list[Stream], direction: Direction) -> tuple[list[Stretch], Cursor]:
    """The section to search of each stream, and the cursor for it. Blocking."""
    start_cursor = log_view.start_cursor
    if start_cursor is None:
        start_cursor = Cursor() if direction == "forward" else end_cursor(log_view.sources, streams)
    lanes: list[Stretch] = []
    positions: dict[Stream, Position] = {}
    for stream in streams:
        source = log_view.sources.open(stream)
        position = positions[stream] = end_position(start_cursor, source)
        begin, end = (position.offset, source.size()) if direction == "forward" else (0, position.offset)
        if begin < end:
            lanes.append((source, log_view.sources.origin(stream), begin, end))
    return lanes, log_view.check_own_cursor(Cursor(positions))


def _hit(log_view: LogView, streams: list[Stream], hit: Hit) -> SearchHit:
    stream = hit.origin.stream
    cursor = log_view.check_own_cursor(cursor_at(log_view.sources, streams, stream, hit.position, hit.key[1]))
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
# A run's logs: choices, sizes, and silent ranks.

SILENCE_S = 60.0
"""Seconds: a rank is silent if it has not written for this long before another rank's last output in its attempt."""

_TRUSTED = 15.0  # seconds: an older activity record may be a dead launcher's


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
    """The logs of a run by attempt, each ordered by rank. May block."""
    streams_by_node: dict[tuple[int, int | None], list[LogStream]] = {}
    for log_stream in _list_streams(sources):
        streams_by_node.setdefault((log_stream.attempt, log_stream.index), []).append(log_stream)
    attempts: dict[int, list[LogStream]] = {}
    for attempt, index in sorted(streams_by_node, key=lambda key: (key[0], key[1] or 0)):
        # An ended child of an array is not silent because others continue.
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
    """From the node's record if it is reliable, which avoids checking the file."""
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
        log_stream.last_at for log_stream in streams if log_stream.rank is not None and log_stream.last_at is not None
    ]
    newest, first = max(spoken, default=0.0), min(spoken, default=0.0)
    return [
        replace(
            log_stream,
            silent=log_stream.rank is not None
            and newest - (log_stream.last_at if log_stream.last_at is not None else first) > SILENCE_S,
        )
        for log_stream in streams
    ]


# --------------------------------------------------------------------------------------------------
# Whether a run has the requested log.


def check_choice(run: Run, request: LogRequest) -> None:
    """Check that the run has the ranks, the node and the attempt.

    Raises:
        NotFoundError: One of them does not exist.
    """
    count = run.nodes * run.processes_per_node
    if request.ranks and max(request.ranks) >= count:
        valid_text = "only rank 0" if count == 1 else f"the ranks 0-{count - 1}"
        raise no_such_log(run.run_id, f"rank {max(request.ranks)}", valid_text)
    if request.node is not None and request.node >= run.nodes:
        raise no_such_node(run, str(request.node))
    if request.attempt is not None and not run.children:  # an array's children have their own attempts
        last = run.status.attempts[-1].number if run.status.attempts else 0
        # An attempt that has not started yet can be awaited.
        if request.attempt > last and (run.status.ended or not request.follow):
            valid_text = f"{last} attempt" + "s" * (last != 1)
            raise no_such_log(run.run_id, f"attempt {request.attempt}", valid_text)


async def check_request(get: Callable[[str], Awaitable[Run]], request: LogRequest) -> None:
    """`check_choice` for clients that have not read the run yet. Requests without a selection, or with a cursor, are not checked.

    Raises:
        NotFoundError: The run does not exist, or lacks the requested log.
    """
    chosen = request.ranks or request.node is not None or request.attempt is not None
    if chosen and request.cursor is None:
        check_choice(await get(request.run_id), request)


def node_names(run: Run) -> tuple[str, ...]:
    """The names of the newest attempt's nodes, ordered by rank."""
    return run.status.attempts[-1].nodes if run.status.attempts else ()


def no_such_node(run: Run, node: str) -> NotFoundError:
    """The error for a node, by rank or name, that the run does not have."""
    valid_text = "only node 0" if run.nodes == 1 else f"the nodes 0-{run.nodes - 1}"
    names = node_names(run)
    return no_such_log(run.run_id, f"node {node[:60]}", valid_text + (f" ({', '.join(names[:8])})" if names else ""))


def no_such_log(run_id: str, subject: str, valid_text: str | None = None) -> NotFoundError:
    """The error for a log that the run does not have.

    Args:
        run_id: The run.
        subject: What is missing, such as "rank 9".
        valid_text: The valid choices.
    """
    hint = f"see: hpj show {run_id}" if valid_text is None else f"it has {valid_text}"
    return NotFoundError(f"{run_id} has no {subject}", code="no_such_log", hint=hint)


__all__ = ["LogBatch", "LogCatalog", "LogLine", "LogPage", "LogRequest", "LogService", "SearchHit", "SearchResult"]

T = TypeVar("T")


class CatchUp(Protocol):
    """Waits until the current output of a run's nodes is readable; followers need not get all of it at once."""

    async def __call__(self, run_id: str, *, follow: bool) -> None: ...


_LOG = logging.getLogger(__name__)
_RAW_BYTES = 1 << 20
_MAX_PAGE_BYTES = 4 << 20
"""Bytes of a page's lines, about: JSON may make six times as much of them. The page's cursors lead on."""
_HISTOGRAM_HITS = 2000
_HISTOGRAM_SECONDS = 1.0
_END_POLL_S = 1.0
_QUIET_S = 0.6
"""Seconds without a line after which a run may have ended."""
_FINAL_READ_DELAYS_S = (0.0, 0.25)
_CURSOR_INTERVAL_S = 1.0


class _LastActivity:
    """The time of the last lines (monotonic clock)."""

    at = float("-inf")


class LogService:
    """Reads logs for all clients of one process; belongs to one event loop.

    Args:
        catalog: Returns a log's sources and whether it is complete.
        hub: Reads followed logs; a new one by default.
        reasons: Returns why an attempt ended, for the mark before the next one.
        catch_up: Makes the current output of a run's nodes readable.
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
        """End all follows and release the threads."""
        await self.hub.close()

    async def lines(self, request: LogRequest) -> AsyncGenerator[LogBatch, None]:
        """The requested lines in batches; ends when all are returned or, with `follow`, when the run has ended.

        A batch may be empty and still advance the cursor (`LogBatch.end_position`). Close the
        iterator to
        stop early.

        Raises:
            InvalidInputError: The request's numbers, cursor or pattern are invalid, or the pattern
                times out.
            NotFoundError: The run does not exist.
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
        """One stream's raw bytes: a rank's or, with only a node given, that node's own log; rank 0's by default.

        Without an attempt, the newest one with the stream is used; with `follow`, this waits for it
        to appear.

        Raises:
            NotFoundError: The stream or the run does not exist.
            InvalidInputError: The run is an array: raw bytes exist only for its children.
        """
        if rank is None and node is None:
            rank = 0
        request = LogRequest(
            run_id, attempt, node, () if rank is None else (rank,), node_logs=rank is None, follow=follow
        )
        async with await self._view(request) as log_view:
            if isinstance(log_view.sources, ArrayStreams):
                raise _raw_array_error(run_id, await self.hub.thread(log_view.sources.streams))
            stream = await self._raw_stream(log_view)
            cursor = Cursor()
            if follow:
                follower = Follower(self.hub, self._feed(log_view), cursor, stream.__eq__, FollowOptions(exact=True))
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

    async def archive(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """The exact bytes of the requested streams, as a ZIP archive.

        Raises:
            NotFoundError: The run does not exist.
        """
        async with await self._view(request) as log_view:
            streams = await self.hub.thread(log_view.streams)
            async with aclosing(as_archive(log_view.sources, streams, self.hub.thread)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def histogram(self, request: LogRequest, buckets: int) -> Histogram:
        """How much the requested streams have grown over time, and when lines match the request's `grep`.

        The search ends at a limit of lines and time; `Histogram.matches_until` says how far it got.

        Raises:
            InvalidInputError: As with `lines`.
            NotFoundError: The run does not exist.
        """
        async with await self._view(request) as log_view:
            streams = await self.hub.thread(log_view.streams)
            histogram = await self.hub.thread(count_bytes, log_view.sources, streams, buckets)
            if log_view.matcher is None or histogram.begin is None:
                return histogram
            found = await search(log_view, self.hub.thread, "forward", _HISTOGRAM_HITS, _HISTOGRAM_SECONDS)
        matches = [0] * buckets
        times = [hit.time for hit in found.hits if hit.time is not None]
        for time_found in times:
            matches[histogram.bucket(time_found)] += 1
        until = None if found.next is None else max(times, default=histogram.begin)
        return replace(histogram, matches=matches, matches_until=until)

    async def streams(self, run_id: str) -> dict[int, list[LogStream]]:
        """The logs of a run by attempt, each ordered by rank.

        Raises:
            NotFoundError: The run does not exist.
        """
        if self._catch_up_logs is not None:
            await self._catch_up_logs(run_id, follow=True)
        return await self.hub.thread(lambda: log_streams(self._catalog.sources(run_id)))

    async def page(self, request: LogRequest, direction: Direction = "backward", limit: int = 200) -> LogPage:
        """Some lines before or after the request's cursor (None: from the end, or from the start).

        After 10 s of reading and searching there may be fewer, or none; the page's cursors then lead on.

        Raises:
            InvalidInputError: As with `lines`.
            NotFoundError: The run does not exist.
        """
        check_limit(limit)
        async with await self._view(request) as log_view:
            if direction == "forward":
                return await self._forward_page(log_view, limit)
            return await self._backward_page(log_view, limit)

    async def search(
        self, request: LogRequest, direction: Direction = "forward", limit: int = 200, seconds: float = 10.0
    ) -> SearchResult:
        """Lines that match the request's `grep`, from its cursor on (None: from the start, or from the end).

        Args:
            request: The request; `tail`, `since` and `follow` are ignored.
            direction: The direction.
            limit: Maximum number of hits.
            seconds: Approximate time limit in seconds; continue at `SearchResult.next`.

        Raises:
            InvalidInputError: As with `lines`, or there is no pattern.
            NotFoundError: The run does not exist.
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
            collapse=log_view.request.collapse, partial=log_view.request.partial and log_view.matcher is None
        )
        follower = Follower(self.hub, self._feed(log_view), cursor, log_view.is_wanted, options)
        async with aclosing(self._follow_until_end(log_view, follower)) as batches:
            async for batch in batches:
                cursor = batch.end_position
                yield batch
        # The run has ended; on a file system with caches its last output may become visible only
        # now, a moment later.
        for delay in _FINAL_READ_DELAYS_S:
            await asyncio.sleep(delay)
            with contextlib.suppress(HyperpodError):  # it was just deleted
                # Reload: the state of an array with very many children may be outdated.
                log_view.sources = await self.hub.thread(self._catalog.sources, log_view.request.run_id)
            async with aclosing(self._history(log_view, cursor, flush=True)) as batches:
                async for batch in batches:
                    cursor = batch.end_position
                    yield batch

    async def _find_start_cursor(self, log_view: LogView) -> Cursor:
        request = log_view.request
        if log_view.start_cursor is None and request.tail is not None and log_view.matcher is not None:
            result = await search(log_view, self.hub.thread, "backward", max(1, request.tail), float("inf"))
            if result.hits and request.tail:
                return Cursor.parse(result.hits[-1].cursor)
            return await self.hub.thread(
                lambda: log_view.check_own_cursor(end_cursor(log_view.sources, log_view.streams()))
            )
        return await self.hub.thread(log_view.start)

    async def _history(self, log_view: LogView, cursor: Cursor, *, flush: bool) -> AsyncGenerator[LogBatch, None]:
        streams = await self.hub.thread(log_view.streams)
        batches = read_forward(log_view.sources, streams, cursor, flush=flush, collapse=log_view.request.collapse)
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                yield batch

    async def _steps(self, batches: Iterator[LogBatch]) -> AsyncGenerator[LogBatch, None]:
        """Iterate over a blocking iterator in threads."""
        while (batch := await self.hub.thread(next, batches, None)) is not None:
            yield batch

    def _feed(self, log_view: LogView) -> Feed:
        return self.hub.feed(log_view.sources.key, log_view.sources)

    async def _follow_until_end(self, log_view: LogView, follower: Follower) -> AsyncGenerator[LogBatch, None]:
        last_activity = _LastActivity()
        ended = asyncio.create_task(self._wait_ended(log_view, last_activity), name="hyperpod-log-end")
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
        """Return when the request's logs are complete.

        The check for the run's end may cost a scheduler call, so it is skipped while lines arrive.
        """
        attempt = log_view.request.attempt
        while True:
            try:
                is_quiet = time.monotonic() - last_activity.at > _QUIET_S
                if is_quiet and await self._catalog.is_ended(log_view.request.run_id):
                    return
            except UnreachableError as error:
                # Files are readable while the scheduler is away; it reports the end when it is
                # back.
                _LOG.debug("whether %s has ended is unknown: %s", log_view.request.run_id, error)
            except StorageError as error:
                if error.code != GONE_CODE:
                    raise
                # It continues where it was when the file system is mounted again.
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
        if log_view.start_cursor is None and log_view.request.since is not None:
            start = await self.hub.thread(log_view.start)
        else:
            start = log_view.start_cursor or log_view.check_own_cursor(Cursor())
        cursor = start
        blocks: list[LineBlock] = []
        count = size = 0
        deadline = Deadline()
        is_complete = True
        async with aclosing(self._history(log_view, cursor, flush=True)) as batches:
            async for batch in batches:
                batch_shown = await log_view.format_batch(batch)
                part = batch_shown.head(limit - count)
                blocks += part.blocks
                count += len(part)
                size += sum(block.end - block.begin for block in part.blocks)
                cursor = batch.end_position if part is batch_shown else part.end_position
                is_full = part is not batch_shown or size >= _MAX_PAGE_BYTES
                if is_full or deadline.is_over():
                    is_complete = False
                    break
        lines = LogBatch(start, blocks)
        is_complete = is_complete and count < limit
        return LogPage(lines, start.text(), cursor.text(), at_start=not start.positions, at_end=is_complete)

    async def _backward_page(self, log_view: LogView, limit: int) -> LogPage:
        streams = await self.hub.thread(log_view.streams)
        end = log_view.start_cursor
        if end is None:
            end = log_view.check_own_cursor(await self.hub.thread(end_cursor, log_view.sources, streams))
        if log_view.matcher is not None:
            result = await search(log_view, self.hub.thread, "backward", limit, BUDGET_S)
            start = Cursor.parse(result.hits[-1].cursor) if result.hits else end
            at_start = len(result.hits) < limit and result.next is None
            before = start.text() if at_start or result.next is None else result.next
        else:
            start, count = await self.hub.thread(start_of_tail, log_view.sources, streams, end, limit, _MAX_PAGE_BYTES)
            at_start = count < limit
            before = start.text()
        blocks: list[LineBlock] = []
        batches = read_forward(
            log_view.sources, streams, start, flush=True, end_limit=end, collapse=log_view.request.collapse
        )
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                blocks += (await log_view.format_batch(batch)).blocks
        return LogPage(
            LogBatch(start, blocks), before, end.text(), at_start=at_start, at_end=log_view.start_cursor is None
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
