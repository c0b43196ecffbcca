"""Requests about logs of the nodes of HyperPod clusters."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.features.node_logs.models import NodeLog, NodeLogLine
from hyperpod_jlab.features.node_logs.service import NodeLogs, lines_of
from hyperpod_jlab.features.node_logs.spool import Spools
from hyperpod_jlab.logs.lines import LogBatch
from hyperpod_jlab.logs.service import LogRequest, SearchHit
from hyperpod_jlab.run.log_routes import MAX_LINES, LogPage, to_log_page
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.log_messages import LogName, SinceTime, Subscribe
from hyperpod_jlab.server.requests import CommaSeparated, RequestModel

MAX_NODE_LINES = 2000


@dataclass(frozen=True)
class HyperpodLogs:
    """Logs of a cluster, those that were written last first. There may be `more`. AWS tells when one was written with a delay of up to an hour."""

    logs: list[NodeLog]
    more: bool


@dataclass(frozen=True)
class HyperpodNodeLog:
    """A log of a node."""

    stream: str
    kind: str


@dataclass(frozen=True)
class HyperpodNodeLogs:
    """The logs of a node."""

    logs: list[HyperpodNodeLog]


@dataclass(frozen=True)
class HyperpodLogLines:
    """Lines in the order of time, and the cursor to ask on from: null where there was no line yet. There may be `more` behind it now."""

    lines: list[NodeLogLine]
    cursor: str | None
    more: bool


class NodeLogsQuery(RequestModel):
    """How many logs."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 200
    """At most so many."""
    kind: Literal["lifecycle", "health", "deep-health-check"] | None = None
    """Only those of this kind; then AWS lists all of them."""


class NodeLinesQuery(RequestModel):
    """Which lines: of a node, or of logs by their names."""

    node: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """The node: its instance id, or its name in Slurm or Kubernetes."""
    log: Literal["lifecycle", "health"] | None = None
    """Only this log of the node."""
    streams: Annotated[list[LogName], CommaSeparated, Field(max_length=20)] | None = None
    """Instead of a node's logs these; in a query several times, or once with commas."""
    limit: Annotated[int, Field(ge=1, le=MAX_NODE_LINES)] = 200
    """At most so many lines: the last ones, or with `since` or `cursor` the next ones."""
    since: SinceTime | None = None
    """Begin at this time: Unix seconds, or ISO 8601."""
    cursor: Annotated[str | None, Field(max_length=16384)] = None
    """Go on from here."""


async def list_node_logs(call: Call, cluster: str, query: NodeLogsQuery) -> HyperpodLogs:
    """The logs of a HyperPod cluster, by its name or ARN."""
    service, cluster = await service_of(call, cluster)
    logs = await service.logs(cluster, query.limit + 1, query.kind)
    return HyperpodLogs(list(logs[: query.limit]), len(logs) > query.limit)


async def list_logs_of_node(call: Call, cluster: str, node: str) -> HyperpodNodeLogs:
    """The logs of a node of a HyperPod cluster, whether they are written or not. One that AWS does not list any more is found by its instance id."""
    service, cluster = await service_of(call, cluster)
    streams = await service.streams_of(cluster, node)
    return HyperpodNodeLogs([HyperpodNodeLog(stream, NodeLog(stream).kind) for stream in streams])


async def show_node_lines(call: Call, cluster: str, query: NodeLinesQuery) -> HyperpodLogLines:
    """Lines of a node's logs. To follow it, ask again with the cursor."""
    if (query.node is None) == (query.streams is None):
        raise InvalidInputError("give either a node or streams", detail={"field": "node"})
    service, cluster = await service_of(call, cluster)
    streams = tuple(query.streams or ())
    if query.node is not None:
        streams = await service.streams_of(cluster, query.node, query.log)
    since = query.since
    has_start = since is not None or query.cursor is not None
    request = LogRequest(
        "",
        tail=None if has_start else query.limit,
        since=since if since is None or isinstance(since, float) else since.timestamp(),
        cursor=query.cursor,
    )
    lines: list[NodeLogLine] = []
    async with aclosing(service.lines(cluster, streams, request)) as batches:
        async for batch in batches:
            lines += lines_of(batch.head(query.limit + 1 - len(lines)))
            if len(lines) > query.limit:
                break
    page_lines = lines[: query.limit]
    cursor = page_lines[-1].cursor if page_lines else query.cursor
    return HyperpodLogLines(page_lines, cursor, len(lines) > query.limit)


async def follow_node_logs(
    hyperpod: Hyperpod, message: Subscribe
) -> AsyncGenerator[LogBatch, None]:
    """The lines of logs of a HyperPod cluster's nodes, as they come."""
    assert message.cluster is not None
    if not message.streams:
        raise InvalidInputError("streams: is missing", detail={"field": "streams"})
    request = message.request("", follow=True)
    service, cluster = await _service(hyperpod, message.cluster)
    return service.lines(cluster, message.streams, request)


async def service_of(call: Call, cluster: str) -> tuple[NodeLogs, str]:
    """The logs of nodes of a HyperPod cluster, and its name or ARN in AWS."""
    return await _service(await call.hyperpod(), cluster)


async def _service(hyperpod: Hyperpod, cluster: str) -> tuple[NodeLogs, str]:
    """Clusters and instances are those that this server knows already."""
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    clusters = hyperpod.hyperpod_clusters(resolved.region)
    spools = hyperpod.get_or_make(Spools, resolved.region, Spools)
    # Its calls are counted by themselves.
    service = NodeLogs(Aws(resolved.region), spools, clusters.describe, clusters.known_instances)
    return service, resolved.aws_name


# --------------------------------------------------------------------------------------------------
# Requests of the log viewer about logs of the nodes of HyperPod clusters: pages in both directions, and a search.


class _StreamsQuery(RequestModel):
    """Which logs."""

    streams: Annotated[list[LogName], CommaSeparated, Field(min_length=1, max_length=20)]
    """The logs, by AWS' names; in a query several times, or once with commas."""
    cursor: Annotated[str | None, Field(max_length=16384)] = None
    """Go on from here."""


class NodePageQuery(_StreamsQuery):
    """Which page of which logs."""

    direction: Literal["backward", "forward"] = "backward"
    """Before the cursor (or the end), or from the cursor (or the start) on."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """At most so many lines."""


class NodeSearchQuery(_StreamsQuery):
    """What to search in which logs, and from where on."""

    grep: Annotated[str, Field(min_length=1)]
    """The regular expression."""
    ignore_case: bool = False
    """Whether upper and lower case are the same to it."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """At most so many hits."""


@dataclass(frozen=True, kw_only=True)
class NodeLogPage(LogPage):
    """A page, as of a run's log: a block's `node_rank` is the number of its log in `streams`. `calls` says how often CloudWatch was asked for them."""

    calls: int


@dataclass(frozen=True)
class NodeLogHits:
    """Hits, as in a run's log, the cursor to search on from (null when all was searched), and how often CloudWatch was asked for them."""

    hits: list[SearchHit]
    next: str | None
    calls: int


async def show_node_page(call: Call, cluster: str, query: NodePageQuery) -> NodeLogPage:
    """A page of logs of a HyperPod cluster's nodes, in the order of time; a log that is not there has no lines. The log socket follows it from `after` on."""
    service, cluster = await service_of(call, cluster)
    page = await service.page(cluster, query.streams, query.cursor, query.direction, query.limit)
    return NodeLogPage(**vars(await asyncio.to_thread(to_log_page, page)), calls=service.aws.calls)


async def search_node_logs(call: Call, cluster: str, query: NodeSearchQuery) -> NodeLogHits:
    """Search logs of a HyperPod cluster's nodes for a regular expression, forward; after some seconds what was found by then is answered."""
    service, cluster = await service_of(call, cluster)
    request = LogRequest("", grep=query.grep, ignore_case=query.ignore_case, cursor=query.cursor)
    result = await service.search(cluster, query.streams, request, query.limit)
    return NodeLogHits(list(result.hits), result.next, service.aws.calls)
