"""Logs of the nodes of HyperPod clusters, as CloudWatch Logs has them: life cycle scripts, health monitoring, deep health checks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.clusters.aws import find_cluster, find_instance, has_name
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance
from hyperpod_jlab.features.node_logs.aws import list_logs
from hyperpod_jlab.features.node_logs.models import LOG_KINDS, NODE_KINDS, NodeLog, NodeLogLine
from hyperpod_jlab.features.node_logs.spool import MIN_INTERVAL_S, SpooledLogs, Spools
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.pattern import parse_pattern
from hyperpod_jlab.logs.service import (
    Direction,
    LogBatch,
    LogPage,
    LogRequest,
    SearchResult,
)

MAX_LINES = 10_000
"""The most lines that one look at the end of a log gives."""

TAIL = 100
"""How many of the last lines are given where nobody says it."""

SEARCH_TIMEOUT_S = 5.0
"""Seconds after which a search gives what it found so far."""

_INSTANCE = re.compile(r"i-[0-9a-f]{8,17}")
_ANY_AGE = float("inf")


class NodeLogs:
    """Logs of nodes in one region.

    Args:
        aws: AWS in that region.
        spools: The logs that are looked at.
        describe: Knows a cluster by its name or ARN; default: AWS is asked each time.
        known_instances: Instances of a cluster that need not be asked for.
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

    async def logs(
        self, cluster: str, limit: int | None = None, kind: str | None = None
    ) -> list[NodeLog]:
        """The logs of a cluster, those that were written last first.

        Args:
            cluster: Name or ARN.
            limit: How many at the most; None: all. AWS gives fifty at a time.
            kind: Only those of this kind: a word of `LOG_KINDS`. Then all of them are read.

        Raises:
            NotFoundError: There is no such cluster, or it has no log group.
            HyperpodError: See `aws.errors`.
        """
        group = await self.group(cluster)
        matching: list[NodeLog] = []
        prefix = None if kind is None else f"{LOG_KINDS[kind]}/"
        async for page in list_logs(self.aws, group, prefix):
            matching += page
            if kind is None and limit is not None and len(matching) >= limit:
                break
        if kind is not None:
            matching.sort(key=lambda log: log.last_at or 0, reverse=True)
        return matching[:limit]

    async def streams_of(self, cluster: str, node: str, kind: str | None = None) -> tuple[str, ...]:
        """The names of a node's logs, whether they have been written or not.

        Args:
            cluster: Name or ARN.
            node: The node (see `find_instance`); one that AWS does not list any more by its instance id.
            kind: One of `NODE_KINDS`; None: all of them.

        Raises:
            NotFoundError: There is no such cluster or node.
            HyperpodError: See `aws.errors`.
        """
        kinds = NODE_KINDS if kind is None else (kind,)
        if not set(kinds) <= set(NODE_KINDS):
            raise InvalidInputError(
                f"nodes have no {kind} log of their own",
                hint="leave out the node to list all logs, then choose one with --stream",
                detail={"field": "kind"},
            )
        instances = (
            instance for instance in self._known_instances(cluster) if has_name(instance, node)
        )
        try:
            instance = next(instances, None) or await find_instance(self.aws, cluster, node)
        except NotFoundError as error:
            if error.code != "no_such_node" or not _INSTANCE.fullmatch(node):
                raise
            # It may have been replaced, and why it went is what its logs tell.
            own_logs = [log for log in await self.logs(cluster) if log.instance == node]
            if not own_logs:
                raise
            return tuple(sorted(log.stream for log in own_logs if log.kind in kinds))
        return tuple(
            f"{LOG_KINDS[log_kind]}/{instance.instance_group}/{instance.name}" for log_kind in kinds
        )

    async def group(self, cluster: str) -> str:
        """The log group of a cluster.

        Raises:
            NotFoundError: There is no such cluster.
            HyperpodError: See `aws.errors`.
        """
        description = await self._describe(cluster)
        return log_group(description.arn, description.name)

    async def lines(
        self, cluster: str, streams: Sequence[str], request: LogRequest
    ) -> AsyncGenerator[LogBatch, None]:
        """The lines of logs, in the order of time, then with `follow` each new one once, without end.

        A log that is not there has no lines; with `follow` it may come to be.

        Args:
            cluster: Name or ARN.
            streams: The logs, by AWS' names.
            request: Which lines; its `run_id` is not looked at.

        Raises:
            NotFoundError: There is no such cluster, it has no log group, or (without `follow`) none of the logs is there.
            InvalidInputError: The cursor is none of these logs.
            HyperpodError: See `aws.errors`.
        """
        logs = await self._read(
            cluster, streams, request, MIN_INTERVAL_S if request.follow else 0.0
        )
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
        self,
        cluster: str,
        streams: Sequence[str],
        cursor: str | None,
        direction: Direction,
        limit: int,
    ) -> LogPage:
        """A page as `LogService.page` gives it. CloudWatch is asked, unless older lines are wanted.

        Raises:
            HyperpodError: As with `lines`, but a log that is not there has no lines.
        """
        is_back = direction == "backward" and cursor is not None
        request = LogRequest("", cursor=cursor)
        logs = await self._read(cluster, streams, request, _ANY_AGE if is_back else 0.0)
        request = replace(request, run_id=logs.key)
        return await self._spools.service.page(request, direction, limit)

    async def search(
        self, cluster: str, streams: Sequence[str], request: LogRequest, limit: int
    ) -> SearchResult:
        """Lines that match, as `LogService.search` finds them. CloudWatch is asked where a search begins.

        Raises:
            HyperpodError: As with `page`, or the pattern is wrong or takes too long.
        """
        age = 0.0 if request.cursor is None else _ANY_AGE
        logs = await self._read(cluster, streams, request, age)
        request = replace(request, run_id=logs.key)
        return await self._spools.service.search(request, "forward", limit, SEARCH_TIMEOUT_S)

    async def _read(
        self, cluster: str, streams: Sequence[str], request: LogRequest, age: float
    ) -> SpooledLogs:
        """Logs, with all that CloudWatch had at most `age` seconds ago. It is not asked for a request that makes no sense."""
        if request.cursor is not None:
            Cursor.parse(request.cursor)
        if request.grep is not None:
            parse_pattern(request.grep, ignore_case=request.ignore_case)
        logs = self._spools.opened(await self.group(cluster), tuple(dict.fromkeys(streams)))
        await asyncio.gather(*(spool.refresh(self.aws, age) for spool in logs.spools))
        return logs


def lines_of(batch: LogBatch) -> list[NodeLogLine]:
    """A batch's lines; what is not from the logs themselves is left out.

    Raises:
        InvalidInputError: A log is not any more what it was when the cursor was given.
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
