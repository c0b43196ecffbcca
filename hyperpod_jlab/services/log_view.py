"""A request made concrete: which streams of a run it means, where to begin, and which lines to show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from hyperpod_jlab.logs.block import LineBlock, LogBatch
from hyperpod_jlab.logs.cursor import Cursor, mark_of
from hyperpod_jlab.logs.history import ends_of, start_of_tail, start_since
from hyperpod_jlab.logs.matcher import Matcher
from hyperpod_jlab.logs.pattern import parse_pattern
from hyperpod_jlab.logs.source import Mark, SourceSet
from hyperpod_jlab.logs.stream import LAUNCHER_LINE, Stream
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.services.log_request import LogRequest

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
                f"this cursor belongs to another run, not to {self.request.run_id}",
                code="invalid_cursor",
                hint="take it from a line of this run's own log, or leave it out",
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
