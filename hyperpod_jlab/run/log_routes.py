"""Requests about logs: pages, searches, raw bytes, and the list of logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.logs.export import as_text
from hyperpod_jlab.logs.histogram import Histogram
from hyperpod_jlab.logs.lines import LogBatch
from hyperpod_jlab.logs.service import LogPage as Page
from hyperpod_jlab.logs.service import LogRequest, LogStream, SearchResult, check_request
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call, Download
from hyperpod_jlab.server.log_messages import LogChoice, LogFrame, Number, Subscribe, blocks_of
from hyperpod_jlab.server.requests import RequestModel

MAX_LINES = 2000


class PageQuery(LogChoice):
    """Which page of a log."""

    direction: Literal["backward", "forward"] = "backward"
    """Read backward from the cursor (or the end), or forward from the cursor (or the start)."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """Maximum number of lines."""


class SearchQuery(LogChoice):
    """What to search for, and where to start."""

    direction: Literal["backward", "forward"] = "forward"
    """Search forward from the cursor (or the start), or backward from the cursor (or the end)."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """Maximum number of hits."""


class DownloadQuery(LogChoice):
    """Which lines to download, and in which form."""

    format: Literal["text", "zip"] = "text"
    """One text with the lines of all ranks, sorted by time; or an archive with the exact bytes of each log."""


class HistogramQuery(LogChoice):
    """Which lines, and how many buckets. `grep` names the lines to count."""

    buckets: Annotated[int, Field(ge=1, le=500)] = 120
    """Number of buckets."""


class RawQuery(RequestModel):
    """Which stream; default: rank 0."""

    rank: Number | None = None
    """The log of this rank."""
    node: Number | None = None
    """Without a rank: the node's own log, by the rank of the node."""
    attempt: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The attempt; default: the newest one that has the stream."""


@dataclass(frozen=True)
class LogPage:
    """Some lines, and the cursors before and after them."""

    frames: list[LogFrame]
    before: str
    after: str
    at_start: bool
    at_end: bool


@dataclass(frozen=True)
class AttemptStreams:
    """The logs of an attempt."""

    number: int
    streams: list[LogStream]


@dataclass(frozen=True)
class Streams:
    """The logs of a run."""

    attempts: list[AttemptStreams]


async def show_page(call: Call, run_id: str, query: PageQuery) -> LogPage:
    """Get a page of a run's log."""
    hyperpod = await call.hyperpod()
    request = query.request(run_id)
    await check_request(hyperpod.runs.get, request)
    page = await hyperpod.logs.page(request, query.direction, query.limit)
    return await asyncio.to_thread(to_log_page, page)


async def search_log(call: Call, run_id: str, query: SearchQuery) -> SearchResult:
    """Search a run's log for a regular expression; after a time limit the response has the hits so far."""
    if query.grep is None:
        raise InvalidInputError("grep: is missing", detail={"field": "grep"})
    hyperpod = await call.hyperpod()
    request = query.request(run_id)
    await check_request(hyperpod.runs.get, request)
    return await hyperpod.logs.search(request, query.direction, query.limit)


async def download_log(call: Call, run_id: str, query: RawQuery) -> Download:
    """Download one stream's raw bytes."""
    split_run_id(run_id)
    hyperpod = await call.hyperpod()
    ranks = None if query.rank is None else (query.rank,)
    await check_request(hyperpod.runs.get, LogRequest(run_id, query.attempt, query.node, ranks))
    stream_name = f"node-{query.node}" if query.node is not None and query.rank is None else None
    stream_name = stream_name or f"rank-{query.rank or 0}"
    attempt_suffix = f".attempt-{query.attempt}" if query.attempt is not None else ""
    chunks = hyperpod.logs.raw(run_id, rank=query.rank, node=query.node, attempt=query.attempt)
    return Download(f"{run_id}{attempt_suffix}.{stream_name}.log", chunks)


async def download_lines(call: Call, run_id: str, query: DownloadQuery) -> Download:
    """Download the lines of several ranks as one text, or their logs as an archive."""
    split_run_id(run_id)
    hyperpod = await call.hyperpod()
    request = query.request(run_id)
    await check_request(hyperpod.runs.get, request)
    await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    parts = [run_id]
    if query.attempt is not None:
        parts.append(f"attempt-{query.attempt}")
    if query.ranks is not None and len(query.ranks) == 1:
        parts.append(f"rank-{query.ranks[0]}")
    name = ".".join(parts)
    if query.format == "zip":
        return Download(f"{name}.zip", hyperpod.logs.archive(request))
    has_prefixes = query.ranks is None or len(query.ranks) > 1
    lines = as_text(hyperpod.logs.lines(request), has_prefixes=has_prefixes)
    return Download(f"{name}.log", lines)


async def show_histogram(call: Call, run_id: str, query: HistogramQuery) -> Histogram:
    """Count the bytes of a run's log over time, and the lines that match."""
    hyperpod = await call.hyperpod()
    request = query.request(run_id)
    await check_request(hyperpod.runs.get, request)
    return await hyperpod.logs.histogram(request, query.buckets)


async def list_streams(call: Call, run_id: str) -> Streams:
    """List the logs of a run, and the nodes that have gone silent."""
    hyperpod = await call.hyperpod()
    attempts = await hyperpod.logs.streams(run_id)
    return Streams([AttemptStreams(number, streams) for number, streams in attempts.items()])


async def follow_log(hyperpod: Hyperpod, message: Subscribe) -> AsyncGenerator[LogBatch, None]:
    """Stream the lines of a run's log until the run ends."""
    run_id = message.run_id
    assert run_id is not None
    await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    request = message.request(run_id, follow=True)
    await check_request(hyperpod.runs.get, request)
    return hyperpod.logs.lines(request)


def to_log_page(page: Page) -> LogPage:
    """A page in the shape of the response."""
    blocks = blocks_of(page.lines)
    return LogPage(
        frames=[LogFrame(blocks, page.after)] if blocks else [],
        before=page.before,
        after=page.after,
        at_start=page.at_start,
        at_end=page.at_end,
    )
