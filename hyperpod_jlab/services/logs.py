"""The log service: what every face asks when it shows, follows, pages or searches a run's logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from hyperpod_jlab.logs.block import LogBatch, LogLine
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.history import ends_of, read_on, start_of_tail, start_since
from hyperpod_jlab.logs.place import Place
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.stream import Stream
from hyperpod_jlab.model.errors import NotFoundError

__all__ = ["LogBatch", "LogLine", "LogRequest", "LogService", "Page", "RunLogs"]

T = TypeVar("T")

_RAW_BYTES = 1 << 20
_FASTEST, _SLOWEST, _SLOWER = 0.05, 1.0, 1.5


class RunLogs(Protocol):
    """What the log service must know of runs; the runs service tells it."""

    def records_dir(self, run_id: str) -> Path:
        """The run's ``<records>`` folder (docs/bundle-format.md). Raises NotFoundError for a run that is not there."""
        ...

    def processes_per_node(self, run_id: str) -> int:
        """Ranks on each node (1 with the launcher ``none``)."""
        ...

    async def is_ended(self, run_id: str) -> bool:
        """Whether the run is in a terminal state, in which no further attempt can start."""
        ...


@dataclass(frozen=True)
class LogRequest:
    """Which lines of a run somebody wants.

    Attributes:
        run_id: The run, or a child of an array.
        attempt: Only this attempt; None for all.
        node: Only the node of this rank; None for all.
        ranks: Only these global ranks; None for all.
        node_logs: Whether the nodes' own logs (launcher, setup lines) come too; None: when no rank is asked for.
        tail: Begin with the last so many lines.
        since: Begin with the first lines seen at this Unix time (seconds) or later.
        grep: Only lines in which this regular expression is found.
        cursor: Go on from here; `tail` and `since` are then not looked at.
        follow: Go on until the run (or the attempt asked for) has ended.
        collapse: Show of progress bars, which go back with a carriage return, only what they showed last.
    """

    run_id: str
    attempt: int | None = None
    node: int | None = None
    ranks: tuple[int, ...] | None = None
    node_logs: bool | None = None
    tail: int | None = None
    since: float | None = None
    grep: str | None = None
    cursor: str | None = None
    follow: bool = False
    collapse: bool = True


@dataclass(frozen=True)
class Page:
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


class LogService:
    """Reads logs for all faces of one process.

    Args:
        runs: Tells where a run's records lie and whether it has ended.
    """

    def __init__(self, runs: RunLogs) -> None:
        self._runs = runs
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="hyperpod-logs")

    async def lines(self, request: LogRequest) -> AsyncIterator[LogBatch]:
        """The lines asked for, in batches; ends when they are all there, or with `follow` when the run has ended."""
        sources = self._sources(request.run_id)
        cursor = await self._thread(self._start, sources, request)
        pause = _FASTEST
        while True:
            ended = not request.follow or await self._runs.is_ended(request.run_id)
            streams = await self._thread(self._select, sources, request)
            batches = read_on(sources, streams, cursor, flush=ended, collapse=request.collapse)
            moved = False
            while (batch := await self._thread(next, batches, None)) is not None:
                cursor, moved = batch.after, True
                yield batch
            if ended:
                return
            pause = _FASTEST if moved else min(_SLOWEST, pause * _SLOWER)
            await asyncio.sleep(pause)

    async def page(
        self, request: LogRequest, direction: Literal["forward", "backward"] = "backward", limit: int = 200
    ) -> Page:
        """Some lines before or after a cursor (None: from the end, or from the start)."""
        sources = self._sources(request.run_id)
        return await self._thread(self._page, sources, request, direction, limit)

    async def raw(
        self,
        run_id: str,
        *,
        rank: int | None = None,
        node: int | None = None,
        attempt: int | None = None,
        follow: bool = False,
    ) -> AsyncIterator[bytes]:
        """One stream's exact bytes: a rank's, or a node's own log; of the newest attempt unless one is named."""
        sources = self._sources(run_id)
        stream = await self._thread(self._raw_stream, sources, rank, node, attempt)
        source = sources.open(stream)
        place = Place()
        pause = _FASTEST
        try:
            while True:
                ended = not follow or await self._runs.is_ended(run_id)
                moved = False
                while (chunk := await self._thread(source.read, place, _RAW_BYTES)).data:
                    place, moved = chunk.place(len(chunk.data)), True
                    yield chunk.data
                if ended:
                    return
                pause = _FASTEST if moved else min(_SLOWEST, pause * _SLOWER)
                await asyncio.sleep(pause)
        finally:
            source.close()

    async def close(self) -> None:
        """Give back the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _sources(self, run_id: str) -> RecordStreams:
        return RecordStreams(self._runs.records_dir(run_id), self._runs.processes_per_node(run_id))

    async def _thread(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def _select(self, sources: RecordStreams, request: LogRequest) -> list[Stream]:
        return [stream for stream in sources.streams(request.attempt) if _wanted(stream, sources, request)]

    def _start(self, sources: RecordStreams, request: LogRequest) -> Cursor:
        if request.cursor is not None:
            return Cursor.parse(request.cursor)
        streams = self._select(sources, request)
        if request.tail is not None:
            return start_of_tail(sources, streams, ends_of(sources, streams), request.tail)[0]
        if request.since is not None:
            return start_since(sources, streams, request.since)
        return Cursor()

    def _page(self, sources: RecordStreams, request: LogRequest, direction: str, limit: int) -> Page:
        streams = self._select(sources, request)
        given = None if request.cursor is None else Cursor.parse(request.cursor)
        if direction == "backward":
            end = given or ends_of(sources, streams)
            start, found = start_of_tail(sources, streams, end, limit)
            held = list(read_on(sources, streams, start, flush=True, until=end, collapse=request.collapse))
            blocks = [block for batch in held for block in batch.blocks]
            lines = LogBatch(start, blocks)
            return Page(lines, start.text(), end.text(), at_start=found < limit, at_end=given is None)
        raise NotImplementedError(direction)

    def _raw_stream(
        self, sources: RecordStreams, rank: int | None, node: int | None, attempt: int | None
    ) -> Stream:
        attempts = sources.attempts()
        number = attempt or (attempts[-1] if attempts else 1)
        for stream in sources.streams(number):
            if rank is None and stream.local_rank is None and stream.node_rank == (node or 0):
                return stream
            if rank is not None and stream.rank(sources.processes_per_node) == rank:
                return stream
        raise NotFoundError(f"attempt {number} has no log of {f'node {node or 0}' if rank is None else f'rank {rank}'}")


def _wanted(stream: Stream, sources: RecordStreams, request: LogRequest) -> bool:
    if request.node is not None and stream.node_rank != request.node:
        return False
    rank = stream.rank(sources.processes_per_node)
    if rank is None:
        return request.ranks is None if request.node_logs is None else request.node_logs
    return request.ranks is None or rank in request.ranks
