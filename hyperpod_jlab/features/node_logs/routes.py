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
    """Logs of a cluster, most recently written first. `more` means that others exist. AWS reports the last write with a delay of up to an hour."""

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
    """Lines in time order, and the cursor for the next request: null if there was no line yet. `more` means that more lines exist now."""

    lines: list[NodeLogLine]
    cursor: str | None
    more: bool


class NodeLogsQuery(RequestModel):
    """Which logs."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 200
    """Maximum number of logs."""
    kind: Literal["lifecycle", "health", "deep-health-check"] | None = None
    """Only this kind; then AWS lists all of them."""


class NodeLinesQuery(RequestModel):
    """Which lines: of a node, or of logs by their names."""

    node: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """The node: its instance id, or its name in Slurm or Kubernetes."""
    log: Literal["lifecycle", "health"] | None = None
    """Only this log of the node."""
    streams: Annotated[list[LogName], CommaSeparated, Field(max_length=20)] | None = None
    """Instead of a node's logs, these; in a query, repeat the parameter or separate values with commas."""
    limit: Annotated[int, Field(ge=1, le=MAX_NODE_LINES)] = 200
    """Maximum number of lines: the last ones, or with `since` or `cursor` the next ones."""
    since: SinceTime | None = None
    """Start at this time: Unix seconds, or ISO 8601."""
    cursor: Annotated[str | None, Field(max_length=16384)] = None
    """Continue from here."""


async def list_node_logs(call: Call, cluster: str, query: NodeLogsQuery) -> HyperpodLogs:
    """List the logs of a HyperPod cluster, by its name or ARN."""
    service, cluster = await service_of(call, cluster)
    logs = await service.logs(cluster, query.limit + 1, query.kind)
    return HyperpodLogs(list(logs[: query.limit]), len(logs) > query.limit)


async def list_logs_of_node(call: Call, cluster: str, node: str) -> HyperpodNodeLogs:
    """List the logs of a node of a HyperPod cluster, including unwritten ones. Use the instance id for a node that AWS no longer lists."""
    service, cluster = await service_of(call, cluster)
    streams = await service.streams_of(cluster, node)
    return HyperpodNodeLogs([HyperpodNodeLog(stream, NodeLog(stream).kind) for stream in streams])


async def show_node_lines(call: Call, cluster: str, query: NodeLinesQuery) -> HyperpodLogLines:
    """Get lines of a node's logs. To follow, repeat the request with the cursor."""
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


async def follow_node_logs(hyperpod: Hyperpod, message: Subscribe) -> AsyncGenerator[LogBatch, None]:
    """Stream the lines of logs of a HyperPod cluster's nodes."""
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
    """Uses this server's cached clusters and instances."""
    resolved = await hyperpod.clusters.resolve_hyperpod(cluster)
    clusters = hyperpod.hyperpod_clusters(resolved.region)
    spools = hyperpod.get_or_make(Spools, resolved.region, Spools)
    # Its calls are counted separately.
    service = NodeLogs(Aws(resolved.region), spools, clusters.describe, clusters.known_instances)
    return service, resolved.aws_name


# --------------------------------------------------------------------------------------------------
# Log viewer requests for logs of HyperPod nodes: pages in both directions, and search.


class _StreamsQuery(RequestModel):
    """Which logs."""

    streams: Annotated[list[LogName], CommaSeparated, Field(min_length=1, max_length=20)]
    """The logs, by AWS' names; in a query, repeat the parameter or separate values with commas."""
    cursor: Annotated[str | None, Field(max_length=16384)] = None
    """Continue from here."""


class NodePageQuery(_StreamsQuery):
    """Which page of which logs."""

    direction: Literal["backward", "forward"] = "backward"
    """Read backward from the cursor (or the end), or forward from the cursor (or the start)."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """Maximum number of lines."""


class NodeSearchQuery(_StreamsQuery):
    """What to search for, in which logs, and where to start."""

    grep: Annotated[str, Field(min_length=1)]
    """The regular expression."""
    ignore_case: bool = False
    """Whether it ignores case."""
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 200
    """Maximum number of hits."""


@dataclass(frozen=True, kw_only=True)
class NodeLogPage(LogPage):
    """A page, as of a run's log: a block's `node_rank` is the index of its log in `streams`. `calls` is the number of requests to CloudWatch."""

    calls: int


@dataclass(frozen=True)
class NodeLogHits:
    """Hits, as in a run's log, the cursor to continue from (null at the end), and the number of requests to CloudWatch."""

    hits: list[SearchHit]
    next: str | None
    calls: int


async def show_node_page(call: Call, cluster: str, query: NodePageQuery) -> NodeLogPage:
    """Get a page of logs of a HyperPod cluster's nodes, in time order; a missing log has no lines. The log socket can follow it from `after` on."""
    service, cluster = await service_of(call, cluster)
    page = await service.page(cluster, query.streams, query.cursor, query.direction, query.limit)
    return NodeLogPage(**vars(await asyncio.to_thread(to_log_page, page)), calls=service.aws.calls)


async def search_node_logs(call: Call, cluster: str, query: NodeSearchQuery) -> NodeLogHits:
    """Search logs of a HyperPod cluster's nodes for a regular expression, forward; after a time limit the response has the hits so far."""
    service, cluster = await service_of(call, cluster)
    request = LogRequest("", grep=query.grep, ignore_case=query.ignore_case, cursor=query.cursor)
    result = await service.search(cluster, query.streams, request, query.limit)
    return NodeLogHits(list(result.hits), result.next, service.aws.calls)
