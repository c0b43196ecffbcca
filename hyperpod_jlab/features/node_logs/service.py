"""Logs of the nodes of HyperPod clusters from CloudWatch Logs: lifecycle scripts, health monitoring, deep health checks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.facts import contradicted
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import find_cluster, find_instance, has_name
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.node_logs.aws import NODE_STREAM, list_logs
from hyperpod_jlab.features.node_logs.models import LOG_KINDS, NODE_KINDS, NodeLog, NodeLogLine
from hyperpod_jlab.features.node_logs.spool import MIN_INTERVAL_S, SpooledLogs, Spools
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.pattern import parse_pattern
from hyperpod_jlab.logs.service import Direction, LogBatch, LogPage, LogRequest, SearchResult

MAX_LINES = 10_000
"""Maximum lines of one read at the end of a log."""

TAIL = 100
"""Default number of last lines."""

SEARCH_TIMEOUT_S = 5.0
"""Time limit of a search, in seconds; then it returns the hits so far."""

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_ANY_AGE = float("inf")


class NodeLogs:
    """Logs of nodes in one region.

    Args:
        aws: AWS in that region.
        spools: The cached logs.
        describe: Returns a cluster by its name or ARN; default: queries AWS each time.
        known_instances: Returns a cluster's cached instances.
    """

    def __init__(
        self,
        aws: Aws,
        spools: Spools,
        describe: Callable[[str], Awaitable[HyperpodCluster]] | None = None,
        known_instances: Callable[[str], Sequence[Instance]] | None = None,
    ) -> None:
        self.aws = aws
        self._spools = spools
        self._describe = describe or partial(find_cluster, aws)
        self._known_instances = known_instances or (lambda _: ())

    async def logs(self, cluster: str, limit: int | None = None, kind: str | None = None) -> list[NodeLog]:
        """The logs of a cluster, most recently written first.

        Args:
            cluster: Name or ARN.
            limit: Maximum number; None: all. AWS returns fifty at a time.
            kind: Only this kind, one of `LOG_KINDS`. Then all of them are read.

        Raises:
            NotFoundError: The cluster does not exist, or it has no log group.
            HyperpodError: See `aws.errors`.
        """
        group = await self.group(cluster)
        matching: list[NodeLog] = []
        prefix = None if kind is None else f"{LOG_KINDS[kind]}/"
        async for page in list_logs(self.aws, group, prefix):
            matching += page
            if kind is None and limit is not None and len(matching) >= limit:
                break
        if kind is None and matching and not any(NODE_STREAM.fullmatch(one.stream) for one in matching):
            contradicted("node-log-names", f"a log stream is called '{matching[0].stream[:80]}'")
        if kind is not None:
            matching.sort(key=lambda log: log.last_at or 0, reverse=True)
        return matching[:limit]

    async def streams_of(self, cluster: str, node: str, kind: str | None = None) -> tuple[str, ...]:
        """The names of a node's logs, including unwritten ones.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`); by instance id if AWS no longer lists it.
            kind: One of `NODE_KINDS`; None: all of them.

        Raises:
            NotFoundError: The cluster or the node does not exist.
            HyperpodError: See `aws.errors`.
        """
        kinds = NODE_KINDS if kind is None else (kind,)
        if not set(kinds) <= set(NODE_KINDS):
            raise InvalidInputError(
                f"nodes have no {kind} log of their own",
                hint="leave out the node to list all logs, then choose one with --stream",
                detail={"field": "kind"},
            )
        instances = (instance for instance in self._known_instances(cluster) if has_name(instance, node))
        try:
            instance = next(instances, None) or await find_instance(self.aws, cluster, node)
        except NotFoundError as error:
            if error.code != "no_such_node" or not _INSTANCE.fullmatch(node):
                raise
            # It may have been replaced, and its logs tell why.
            own_logs = [log for log in await self.logs(cluster) if log.instance == node]
            if not own_logs:
                raise
            return tuple(sorted(log.stream for log in own_logs if log.kind in kinds))
        return tuple(f"{LOG_KINDS[log_kind]}/{instance.instance_group}/{instance.name}" for log_kind in kinds)

    async def group(self, cluster: str) -> str:
        """The log group of a cluster.

        Raises:
            NotFoundError: The cluster does not exist.
            HyperpodError: See `aws.errors`.
        """
        description = await self._describe(cluster)
        return log_group(description.arn, description.name)

    async def lines(self, cluster: str, streams: Sequence[str], request: LogRequest) -> AsyncGenerator[LogBatch, None]:
        """The lines of logs, in time order; with `follow` then each new line once, endlessly.

        A missing log has no lines; with `follow` it may appear later.

        Args:
            cluster: Name or ARN.
            streams: The logs, by AWS' names.
            request: Which lines; its `run_id` is ignored.

        Raises:
            NotFoundError: The cluster does not exist, it has no log group, or (without `follow`) none of the logs exists.
            InvalidInputError: The cursor does not belong to these logs.
            HyperpodError: See `aws.errors`.
        """
        logs = await self._read(cluster, streams, request, MIN_INTERVAL_S if request.follow else 0.0)
        if not request.follow and not any(spool.there for spool in logs.spools):
            raise _no_logs_error(streams)
        async with AsyncExitStack() as followed:
            if request.follow:
                for spool in logs.spools:
                    await followed.enter_async_context(spool.follow(self.aws))
            lines = self._spools.service.lines(replace(request, run_id=logs.key))
            async with aclosing(lines) as batches:
                async for batch in batches:
                    yield batch
            for spool in logs.spools:
                if spool.failure is not None:
                    raise spool.failure

    async def page(
        self, cluster: str, streams: Sequence[str], cursor: str | None, direction: Direction, limit: int
    ) -> LogPage:
        """A page, as from `LogService.page`. Queries CloudWatch, unless older lines are requested.

        Raises:
            HyperpodError: As with `lines`, but a missing log has no lines.
        """
        is_back = direction == "backward" and cursor is not None
        request = LogRequest("", cursor=cursor)
        logs = await self._read(cluster, streams, request, _ANY_AGE if is_back else 0.0)
        request = replace(request, run_id=logs.key)
        return await self._spools.service.page(request, direction, limit)

    async def search(self, cluster: str, streams: Sequence[str], request: LogRequest, limit: int) -> SearchResult:
        """Lines that match, as from `LogService.search`. Queries CloudWatch when a search begins.

        Raises:
            HyperpodError: As with `page`, or the pattern is invalid or takes too long.
        """
        age = 0.0 if request.cursor is None else _ANY_AGE
        logs = await self._read(cluster, streams, request, age)
        request = replace(request, run_id=logs.key)
        return await self._spools.service.search(request, "forward", limit, SEARCH_TIMEOUT_S)

    async def _read(self, cluster: str, streams: Sequence[str], request: LogRequest, age: float) -> SpooledLogs:
        """Logs that are at most `age` seconds old. An invalid request does not query CloudWatch."""
        if request.cursor is not None:
            Cursor.parse(request.cursor)
        if request.grep is not None:
            parse_pattern(request.grep, ignore_case=request.ignore_case)
        logs = self._spools.opened(await self.group(cluster), tuple(dict.fromkeys(streams)))
        await asyncio.gather(*(spool.refresh(self.aws, age) for spool in logs.spools))
        return logs


def lines_of(batch: LogBatch) -> list[NodeLogLine]:
    """A batch's lines, without those that are not from the logs themselves.

    Raises:
        InvalidInputError: A log has changed since the cursor was issued.
    """
    node_lines = []
    for line in batch:
        if line.mark == "truncated":
            raise InvalidInputError(
                f"the log {line.node} has changed before this cursor",
                code="invalid_cursor",
                hint="start at a time instead, with since",
                detail={"field": "cursor"},
            )
        if line.mark is None:
            time = line.time or 0.0
            node_lines.append(NodeLogLine(time, NodeLog(line.node), line.line, line.cursor))
    return node_lines


def _no_logs_error(streams: Sequence[str]) -> NotFoundError:
    return NotFoundError(
        f"these logs do not exist: {', '.join(streams)}",
        code="no_log",
        hint="'hpj node-logs' without a node lists the existing logs; a node writes a health log only if it finds a problem",
        detail={"streams": list(streams)},
    )
