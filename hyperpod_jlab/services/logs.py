"""The log service: what every face asks when it shows, follows, pages or searches a run's logs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.block import LineBlock, LogBatch, LogLine
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.feed import Feed
from hyperpod_jlab.logs.follow import Follower, Manner
from hyperpod_jlab.logs.history import ends_of, read_on, start_of_tail
from hyperpod_jlab.logs.hub import Hub
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.source import SourceSet
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.model.errors import (
    HyperpodError,
    InvalidInputError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.services.log_choice import no_such_log
from hyperpod_jlab.services.log_request import (
    Direction,
    LogRequest,
    Page,
    RunLogs,
    SearchHit,
    SearchResult,
    check_limit,
)
from hyperpod_jlab.services.log_search import search
from hyperpod_jlab.services.log_streams import LogStream, log_streams
from hyperpod_jlab.services.log_view import Reasons, View
from hyperpod_jlab.storage.presence import GONE

__all__ = [
    "LogBatch",
    "LogLine",
    "LogRequest",
    "LogService",
    "Page",
    "RunLogs",
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
        runs: Tells where a run's records lie and whether it has ended.
        hub: Reads what is being followed; one of its own when left out.
        elsewhere: Gives the sources of a run whose log is not in its records folder (an array's lie in those of its
            children), and None for the others. May block.
        reasons: Tells why an attempt ended, for the mark before the next one.
        catch_up: Sees that what a run's nodes have said by now can be read.
    """

    def __init__(
        self,
        runs: RunLogs,
        hub: Hub | None = None,
        elsewhere: Callable[[str], SourceSet | None] | None = None,
        reasons: Reasons | None = None,
        catch_up: CatchUp | None = None,
    ) -> None:
        self._reasons = reasons
        self._catch_up = catch_up
        self._runs = runs
        self._elsewhere = elsewhere
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
                    self.hub, self._feed(view), cursor, stream.__eq__, Manner(exact=True)
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
        return await self.hub.thread(lambda: log_streams(self._sources(run_id)))

    async def page(
        self, request: LogRequest, direction: Direction = "backward", limit: int = 200
    ) -> Page:
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
        sources = await self.hub.thread(self._sources, request.run_id)
        if self._catch_up is not None:
            await self._catch_up(request.run_id, follow=request.follow)
        return View(request, sources, self._reasons)

    def _sources(self, run_id: str) -> SourceSet:
        elsewhere = None if self._elsewhere is None else self._elsewhere(run_id)
        if elsewhere is not None:
            return elsewhere
        return RecordStreams(self._runs.records_dir(run_id), self._runs.processes_per_node(run_id))

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
        manner = Manner(
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
                view.sources = await self.hub.thread(self._sources, view.request.run_id)
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
                if quiet and await self._runs.is_ended(view.request.run_id):
                    return
            except UnreachableError as error:
                # Files can be read while the scheduler is away; it will tell the end when it is back.
                _LOG.debug("whether %s has ended is not known: %s", view.request.run_id, error)
            except StorageError as error:
                if error.code != GONE:
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
            if not view.request.follow or await self._runs.is_ended(view.request.run_id):
                raise no_such_log(view.request.run_id, "such log")
            await asyncio.sleep(_ASK_ENDED)

    async def _forward_page(self, view: View, limit: int) -> Page:
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
        return Page(lines, start.text(), cursor.text(), at_start=not start.places, at_end=whole)

    async def _backward_page(self, view: View, limit: int) -> Page:
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
        return Page(
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
        f"{run_id} is an array, and exact bytes are those of one stream of one child",
        code="is_array",
        hint=f"name a child, as in: hpj logs {child} --raw",
        detail={"field": "run", "run_id": run_id},
    )
