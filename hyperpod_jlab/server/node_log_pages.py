"""Requests of the log viewer about logs of the nodes of HyperPod clusters: pages in both directions, and a search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.logs.pattern import parse_pattern
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.log_messages import LogBlock
from hyperpod_jlab.server.logs import MOST_LINES, LogHit, LogPage
from hyperpod_jlab.server.node_logs import service_of
from hyperpod_jlab.server.requests import RequestModel, Several
from hyperpod_jlab.services.node_log_pages import LineOfLog, NodeLogPages, rows_of

_Name = Annotated[str, Field(min_length=1, max_length=512)]


class _StreamsQuery(RequestModel):
    """Which logs."""

    streams: Annotated[list[_Name], Several, Field(min_length=1, max_length=20)]
    """The logs, by AWS' names; in a query several times, or once with commas."""
    cursor: Annotated[str | None, Field(max_length=16384)] = None
    """Go on from here."""


class NodePageQuery(_StreamsQuery):
    """Which page of which logs."""

    direction: Literal["backward", "forward"] = "backward"
    """Before the cursor (or the end), or from the cursor (or the start) on."""
    limit: Annotated[int, Field(ge=1, le=MOST_LINES)] = 200
    """At most so many lines."""


class NodeSearchQuery(_StreamsQuery):
    """What to search in which logs, and from where on."""

    grep: Annotated[str, Field(min_length=1)]
    """The regular expression."""
    ignore_case: bool = False
    """Whether upper and lower case are the same to it."""
    limit: Annotated[int, Field(ge=1, le=MOST_LINES)] = 200
    """At most so many hits."""


class NodeLogPage(LogPage):
    """Some lines, as of a run's log: a block's `node_rank` is the number of its log in `streams`. `calls` says how often CloudWatch was asked for them."""

    calls: int


class NodeLogHits(TypedDict):
    """Hits, as in a run's log, the cursor to search on from (null when all was searched), and how often CloudWatch was asked for them."""

    hits: list[LogHit]
    next: str | None
    calls: int


async def show_node_page(call: Call, cluster: str, query: NodePageQuery) -> NodeLogPage:
    """A page of logs of a HyperPod cluster's nodes, in the order of time; a log that is not there has no lines. To follow, ask forward from `after`."""
    service = await service_of(call, cluster)
    pages = NodeLogPages(service, cluster, query.streams)
    read = pages.backward if query.direction == "backward" else pages.forward
    page = await read(query.cursor, query.limit)
    blocks = await asyncio.to_thread(_blocks, page.lines, query.streams)
    return {
        "frames": [{"blocks": blocks, "after": page.after}] if blocks else [],
        "before": page.before,
        "after": page.after,
        "at_start": page.at_start,
        "at_end": page.at_end,
        "calls": service.aws.calls,
    }


async def search_node_logs(call: Call, cluster: str, query: NodeSearchQuery) -> NodeLogHits:
    """Search logs of a HyperPod cluster's nodes for a regular expression, forward; after some seconds what was found by then is answered."""
    pattern = parse_pattern(query.grep, ignore_case=query.ignore_case)
    service = await service_of(call, cluster)
    pages = NodeLogPages(service, cluster, query.streams)
    hits, following = await pages.search(pattern, query.cursor, query.limit)
    return {
        "hits": [
            {
                **_origin(hit.line.stream, query.streams),
                "time": hit.line.time,
                "line": hit.line.text,
                "match": hit.match,
                "cursor": hit.cursor,
            }
            for hit in hits
        ],
        "next": following,
        "calls": service.aws.calls,
    }


def _blocks(lines: Sequence[LineOfLog], streams: Sequence[str]) -> list[LogBlock]:
    """Lines by column; those of one log that stand together are a block."""
    blocks: list[LogBlock] = []
    for stream, group in groupby(lines, key=lambda line: line.stream):
        rows = [(line.time, row) for line in group for row in rows_of(line.text)]
        times: list[float | None] = [time for time, _ in rows]
        blocks.append(
            {
                **_origin(stream, streams),
                "mark": None,
                "lines": "\n".join(text for _, text in rows),
                "times": times,
                "flags": None,
            }
        )
    return blocks


class _Origin(TypedDict):
    attempt: int
    node: str
    node_rank: int
    rank: int | None
    index: int | None


def _origin(stream: str, streams: Sequence[str]) -> _Origin:
    number = streams.index(stream)
    return {"attempt": 1, "node": stream, "node_rank": number, "rank": None, "index": None}
