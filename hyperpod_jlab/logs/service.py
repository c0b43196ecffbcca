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
from hyperpod_jlab.logs.cursor import Cursor, mark_of
from hyperpod_jlab.logs.follow import Feed, Follower, FollowOptions, Hub
from hyperpod_jlab.logs.history import (
    cursor_at,
    end_in,
    ends_of,
    read_on,
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


class KnownLogs(Protocol):
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
        for name, (number, least) in numbers.items():
            if number is not None and number < least:
                raise _out_of_range(name, number, least)
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


def _out_of_range(field: str, number: int, least: int) -> InvalidInputError:
    return InvalidInputError(
        f"{field} must be at least {least}, not {number}", detail={"field": field}
    )


# --------------------------------------------------------------------------------------------------
# A request made concrete: which streams of a run it means, where to begin, and which lines to show.

Reasons = Callable[[str, int], Awaitable[str | None]]
"""Tells why an attempt of a run, or of an array's child, ended; None when that is not known."""


class View:
    """One request and the sources behind it. Methods without ``async`` may block. Use it in an ``async with``.

    Raises:
        InvalidInputError: The request's numbers, cursor or pattern make no sense, or not for this run.
    """

    def __init__(
        self, request: LogRequest, sources: SourceSet, reasons: Reasons | None = None
    ) -> None:
        request.check()
        self._reasons = reasons
        self.request = request
        self.sources = sources
        self._ranks = None if request.ranks is None else frozenset(request.ranks)
        self._check_node()
        self._run = mark_of(request.run_id)
        self.given = None if request.cursor is None else self._parse(request.cursor)
        self.matcher: Matcher | None = None
        if request.grep is not None:
            self.matcher = Matcher(parse_pattern(request.grep, ignore_case=request.ignore_case))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.matcher is not None:
            await self.matcher.close()

    def wanted(self, stream: Stream) -> bool:
        """Whether the request means a stream."""
        request, own = self.request, stream.own
        if request.attempt is not None and own.attempt != request.attempt:
            return False
        if request.node is not None and own.node_rank != request.node:
            return False
        rank = stream.rank(self.sources.processes_per_node)
        if rank is None:
            return self._ranks is None if request.node_logs is None else request.node_logs
        return self._ranks is None or rank in self._ranks

    def streams(self) -> list[Stream]:
        """The streams meant that exist now."""
        return [
            stream for stream in self.sources.streams(self.request.attempt) if self.wanted(stream)
        ]

    def start(self) -> Cursor:
        """Where to begin; with a pattern and `tail` the caller must search instead."""
        return self.given if self.given is not None else self.ours(self._found_start())

    def ours(self, cursor: Cursor) -> Cursor:
        """The same cursor, saying that it belongs to this run."""
        return Cursor(cursor.places, cursor.first_attempt, self._run)

    def _found_start(self) -> Cursor:
        if self.request.tail is not None:
            streams = self.streams()
            return start_of_tail(
                self.sources, streams, ends_of(self.sources, streams), self.request.tail
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
        return self.ours(cursor)

    def _check_node(self) -> None:
        node, per_node = self.request.node, self.sources.processes_per_node
        if node is None or not self._ranks or any(rank // per_node == node for rank in self._ranks):
            return
        last = (node + 1) * per_node - 1
        own = f"only rank {last}" if per_node == 1 else f"the ranks {last - per_node + 1}-{last}"
        raise InvalidInputError(
            f"rank {min(self._ranks)} is not on node {node}"
            if len(self._ranks) == 1
            else f"none of these ranks is on node {node}",
            code="rank_elsewhere",
            hint=f"node {node} has {own}",
            detail={"field": "node", "run_id": self.request.run_id},
        )

    async def shown(self, batch: LogBatch) -> LogBatch:
        """The batch with only those lines shown that the request asks for, and with why attempts began."""
        if any(_opens_attempt(block) for block in batch.blocks):
            batch = LogBatch(batch.start, [await self._told(block) for block in batch.blocks])
        if self.matcher is None and all(block.origin.rank is not None for block in batch.blocks):
            return batch
        return LogBatch(batch.start, [await self._shown(block) for block in batch.blocks])

    async def _told(self, block: LineBlock) -> LineBlock:
        """The block; when it opens an attempt, its mark says why the one before ended."""
        if self._reasons is None or block.mark is None or not _opens_attempt(block):
            return block
        index, attempt = block.origin.stream.child, block.origin.stream.own.attempt
        run_id = self.request.run_id if index is None else f"{self.request.run_id}.{index}"
        why = await self._reasons(run_id, attempt - 1)
        return block if why is None else block.marked(Mark("attempt", f"{block.mark.text}: {why}"))

    async def _shown(self, block: LineBlock) -> LineBlock:
        only: Sequence[int] | None = None
        if self.matcher is not None and _opens_attempt(block):
            block = block.marked(None)  # who asks for certain lines wants no others
        data = block.chunk.data
        if block.origin.rank is None and data.find(LAUNCHER_LINE, block.begin, block.end) >= 0:
            prefix = LAUNCHER_LINE.decode()
            only = [
                index for index, text in enumerate(block.texts()) if not text.startswith(prefix)
            ]
        if self.matcher is None or only == []:
            return block if only is None else block.keep(only)
        if self.matcher.excludes(data, block.begin, block.end):
            return block.keep([])
        texts = block.texts()
        if only is not None:
            hits = await self.matcher.filter([texts[index] for index in only])
            return block.keep([only[hit] for hit in hits])
        return block.keep(await self.matcher.filter(texts))


def _opens_attempt(block: LineBlock) -> bool:
    return block.mark is not None and block.mark.kind == "attempt"


# --------------------------------------------------------------------------------------------------
# Search on behalf of the log service: bounds from cursors, cursors for hits.


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
    places: dict[Stream, Position] = {}
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


# --------------------------------------------------------------------------------------------------
# Which logs a run has: what can be chosen, how long each is, and who has fallen silent.

SILENCE = 60.0
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
    together: dict[tuple[int, int | None], list[LogStream]] = {}
    for found in _look(sources):
        together.setdefault((found.attempt, found.index), []).append(found)
    attempts: dict[int, list[LogStream]] = {}
    for attempt, index in sorted(together, key=lambda key: (key[0], key[1] or 0)):
        # A child of an array that has ended is not silent because others go on.
        attempts.setdefault(attempt, []).extend(_with_silence(together[attempt, index]))
    return attempts


def _look(sources: SourceSet) -> Iterator[LogStream]:
    records: dict[tuple[int, int], Activity | None] = {}
    for stream in sources.streams():
        key = (stream.attempt, stream.node_rank)
        if key not in records:
            records[key] = sources.activity(*key)
        origin = sources.origin(stream)
        own = stream.own
        size, last_at = _size(sources, stream, records[key])
        yield LogStream(
            attempt=own.attempt,
            node_rank=own.node_rank,
            node=origin.node or f"node-{own.node_rank}",
            rank=origin.rank,
            local_rank=own.local_rank,
            index=stream.child,
            size=size,
            last_at=last_at,
        )


def _size(sources: SourceSet, stream: Stream, record: Activity | None) -> tuple[int, float | None]:
    """From the node's record where one can rely on it: no file has to be looked at then."""
    if record is not None and (record.ended or time.time() - record.time < _TRUSTED):
        told = record.streams.get(stream)
        if told is not None:
            return told.size, told.changed
    source = sources.open(stream)
    try:
        return source.size(), source.changed()
    finally:
        source.close()


def _with_silence(streams: list[LogStream]) -> list[LogStream]:
    spoken = [
        found.last_at for found in streams if found.rank is not None and found.last_at is not None
    ]
    newest, first = max(spoken, default=0.0), min(spoken, default=0.0)
    return [
        replace(
            found,
            silent=found.rank is not None
            and newest - (found.last_at if found.last_at is not None else first) > SILENCE,
        )
        for found in streams
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
        known = "only rank 0" if count == 1 else f"the ranks 0-{count - 1}"
        raise no_such_log(run.run_id, f"rank {max(request.ranks)}", known)
    if request.node is not None and request.node >= run.nodes:
        raise no_such_node(run, str(request.node))
    if request.attempt is not None and not run.children:  # those of an array have their own
        last = run.status.attempts[-1].number if run.status.attempts else 0
        # One that has not begun yet can be waited for.
        if request.attempt > last and (run.status.ended or not request.follow):
            known = f"{last} attempt" + "s" * (last != 1)
            raise no_such_log(run.run_id, f"attempt {request.attempt}", known)


async def check_asked(get: Callable[[str], Awaitable[Run]], request: LogRequest) -> None:
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
    known = "only node 0" if run.nodes == 1 else f"the nodes 0-{run.nodes - 1}"
    names = node_names(run)
    return no_such_log(
        run.run_id, f"node {node[:60]}", known + (f" ({', '.join(names[:8])})" if names else "")
    )


def no_such_log(run_id: str, what: str, known: str | None = None) -> NotFoundError:
    """The error for something of which the run has no log.

    Args:
        run_id: The run.
        what: What it has not, as in "rank 9".
        known: What it has instead.
    """
    hint = f"see: hpj show {run_id}" if known is None else f"it has {known}"
    return NotFoundError(f"{run_id} has no {what}", code="no_such_log", hint=hint)


__all__ = [
    "KnownLogs",
    "LogBatch",
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
_ASK_ENDED = 1.0
_QUIET = 0.6
"""Seconds without a line after which a run may have ended."""
_LAST_LOOKS = (0.0, 0.25)
_SAY_CURSOR = 1.0


class _Heard:
    """When lines came last, by the monotonic clock."""

    at = float("-inf")


class LogService:
    """Reads logs for all faces of one process; belongs to one event loop.

    Args:
        known: Tells where a log lies and whether it has ended.
        hub: Reads what is being followed; one of its own when left out.
        reasons: Tells why an attempt ended, for the mark before the next one.
        catch_up: Sees that what a run's nodes have said by now can be read.
    """

    def __init__(
        self,
        known: KnownLogs,
        hub: Hub | None = None,
        reasons: Reasons | None = None,
        catch_up: CatchUp | None = None,
    ) -> None:
        self._reasons = reasons
        self._catch_up = catch_up
        self._known = known
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
        async with await self._view(request) as view:
            said = 0.0
            async with aclosing(self._all(view)) as batches:
                async for batch in batches:
                    shown = await view.shown(batch)
                    now = time.monotonic()
                    if not shown.empty or now - said > _SAY_CURSOR:
                        said = now
                        yield shown

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
        async with await self._view(request) as view:
            if isinstance(view.sources, ArrayStreams):
                raise _no_raw_of_array(run_id, await self.hub.thread(view.sources.streams))
            stream = await self._raw_stream(view)
            cursor = Cursor()
            if follow:
                follower = Follower(
                    self.hub, self._feed(view), cursor, stream.__eq__, FollowOptions(exact=True)
                )
                async with aclosing(self._until_end(view, follower)) as batches:
                    async for batch in batches:
                        cursor = batch.after
                        for block in batch.blocks:
                            yield block.chunk.data[block.begin : block.end]
            source = view.sources.open(stream)
            place = cursor.place(stream)
            for wait in _LAST_LOOKS if follow else (0.0,):
                await asyncio.sleep(wait)
                while (chunk := await self.hub.thread(source.read, place, _RAW_BYTES)).data:
                    place = chunk.place(len(chunk.data))
                    yield chunk.data

    async def streams(self, run_id: str) -> dict[int, list[LogStream]]:
        """The logs of a run by attempt, each in the order of ranks.

        Raises:
            NotFoundError: There is no such run.
        """
        if self._catch_up is not None:
            await self._catch_up(run_id, follow=True)
        return await self.hub.thread(lambda: log_streams(self._known.sources(run_id)))

    async def page(
        self, request: LogRequest, direction: Direction = "backward", limit: int = 200
    ) -> LogPage:
        """Some lines before or after the request's cursor (None: from the end, or from the start).

        Raises:
            InvalidInputError: As with `lines`.
            NotFoundError: There is no such run.
        """
        check_limit(limit)
        async with await self._view(request) as view:
            if direction == "forward":
                return await self._forward_page(view, limit)
            return await self._backward_page(view, limit)

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
        async with await self._view(request) as view:
            return await search(view, self.hub.thread, direction, limit, seconds)

    async def _view(self, request: LogRequest) -> View:
        sources = await self.hub.thread(self._known.sources, request.run_id)
        if self._catch_up is not None:
            await self._catch_up(request.run_id, follow=request.follow)
        return View(request, sources, self._reasons)

    async def _all(self, view: View) -> AsyncGenerator[LogBatch, None]:
        """All batches of a request, unfiltered."""
        follow = view.request.follow
        cursor = await self._start(view)
        async with aclosing(self._history(view, cursor, flush=not follow)) as batches:
            async for batch in batches:
                cursor = batch.after
                yield batch
        if not follow:
            return
        manner = FollowOptions(
            collapse=view.request.collapse, partial=view.request.partial and view.matcher is None
        )
        follower = Follower(self.hub, self._feed(view), cursor, view.wanted, manner)
        async with aclosing(self._until_end(view, follower)) as batches:
            async for batch in batches:
                cursor = batch.after
                yield batch
        # The run has ended; what it wrote last may show only now, on a file system with caches a moment later.
        for wait in _LAST_LOOKS:
            await asyncio.sleep(wait)
            with contextlib.suppress(HyperpodError):  # it was removed just now
                # Anew: what was seen of an array with very many children may be older.
                view.sources = await self.hub.thread(self._known.sources, view.request.run_id)
            async with aclosing(self._history(view, cursor, flush=True)) as batches:
                async for batch in batches:
                    cursor = batch.after
                    yield batch

    async def _start(self, view: View) -> Cursor:
        request = view.request
        if view.given is None and request.tail is not None and view.matcher is not None:
            found = await search(
                view, self.hub.thread, "backward", max(1, request.tail), float("inf")
            )
            if found.hits and request.tail:
                return Cursor.parse(found.hits[-1].cursor)
            return await self.hub.thread(lambda: view.ours(ends_of(view.sources, view.streams())))
        return await self.hub.thread(view.start)

    async def _history(
        self, view: View, cursor: Cursor, *, flush: bool
    ) -> AsyncGenerator[LogBatch, None]:
        streams = await self.hub.thread(view.streams)
        batches = read_on(
            view.sources, streams, cursor, flush=flush, collapse=view.request.collapse
        )
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                yield batch

    async def _steps(self, batches: Iterator[LogBatch]) -> AsyncGenerator[LogBatch, None]:
        """Take a blocking iterator's items in threads."""
        while (batch := await self.hub.thread(next, batches, None)) is not None:
            yield batch

    def _feed(self, view: View) -> Feed:
        return self.hub.feed(view.sources.key, view.sources)

    async def _until_end(self, view: View, follower: Follower) -> AsyncGenerator[LogBatch, None]:
        heard = _Heard()
        ended = asyncio.create_task(self._wait_ended(view, heard), name="hyperpod-log-end")
        ended.add_done_callback(lambda _: follower.stop())
        try:
            async with follower:
                while not ended.done():
                    batch = await follower.next()
                    if batch is not None:
                        heard.at = time.monotonic()
                        yield batch
            ended.result()
        finally:
            ended.cancel()

    async def _wait_ended(self, view: View, heard: _Heard) -> None:
        """Return when nothing can be added to what the request asks for.

        Whether the run has ended may cost a call of the scheduler, so it is not asked while lines come.
        """
        attempt = view.request.attempt
        while True:
            try:
                quiet = time.monotonic() - heard.at > _QUIET
                if quiet and await self._known.is_ended(view.request.run_id):
                    return
            except UnreachableError as error:
                # Files can be read while the scheduler is away; it will tell the end when it is back.
                _LOG.debug("whether %s has ended is unknown: %s", view.request.run_id, error)
            except StorageError as error:
                if error.code != GONE_CODE:
                    raise
                # It goes on where it was when the file system is mounted again.
            if attempt is not None:
                attempts = await self.hub.thread(view.sources.attempts)
                if attempts and attempts[-1] > attempt:
                    return
            lines_came = heard.at + _QUIET - time.monotonic()
            await asyncio.sleep(lines_came if lines_came > 0 else _ASK_ENDED)

    async def _raw_stream(self, view: View) -> Stream:
        while True:
            streams = await self.hub.thread(view.streams)
            if streams:
                return streams[-1]
            if not view.request.follow or await self._known.is_ended(view.request.run_id):
                raise no_such_log(view.request.run_id, "such log")
            await asyncio.sleep(_ASK_ENDED)

    async def _forward_page(self, view: View, limit: int) -> LogPage:
        start = cursor = view.given or view.ours(Cursor())
        blocks: list[LineBlock] = []
        count = 0
        async with aclosing(self._history(view, cursor, flush=True)) as batches:
            async for batch in batches:
                shown = await view.shown(batch)
                part = shown.head(limit - count)
                blocks += part.blocks
                count += len(part)
                cursor = batch.after if part is shown else part.after
                if part is not shown:
                    break
        lines = LogBatch(start, blocks)
        whole = count < limit
        return LogPage(lines, start.text(), cursor.text(), at_start=not start.places, at_end=whole)

    async def _backward_page(self, view: View, limit: int) -> LogPage:
        streams = await self.hub.thread(view.streams)
        end = view.given
        if end is None:
            end = view.ours(await self.hub.thread(ends_of, view.sources, streams))
        if view.matcher is not None:
            found = await search(view, self.hub.thread, "backward", limit, float("inf"))
            start = Cursor.parse(found.hits[-1].cursor) if found.hits else end
            at_start = len(found.hits) < limit
        else:
            start, count = await self.hub.thread(start_of_tail, view.sources, streams, end, limit)
            at_start = count < limit
        blocks: list[LineBlock] = []
        batches = read_on(
            view.sources, streams, start, flush=True, until=end, collapse=view.request.collapse
        )
        async with aclosing(self._steps(batches)) as steps:
            async for batch in steps:
                blocks += (await view.shown(batch)).blocks
        return LogPage(
            LogBatch(start, blocks),
            start.text(),
            end.text(),
            at_start=at_start,
            at_end=view.given is None,
        )


def _no_raw_of_array(run_id: str, streams: Sequence[Stream]) -> InvalidInputError:
    begun = streams[0].child if streams else None
    child = f"{run_id}.{'<index>' if begun is None else begun}"
    return InvalidInputError(
        f"{run_id} is an array; raw bytes are available only for one stream of one child",
        code="is_array",
        hint=f"choose a child: hpj logs {child} --raw",
        detail={"field": "run", "run_id": run_id},
    )
