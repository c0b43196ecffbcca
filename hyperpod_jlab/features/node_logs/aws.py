"""Logs that HyperPod's nodes write to CloudWatch Logs: a group for each cluster, a stream for each node and kind of log.

Names are as AWS' documentation has them: the group ``/aws/sagemaker/Clusters/NAME/ID``, in it the streams
``LifecycleConfig/GROUP/INSTANCE``, ``SagemakerHealthMonitoringAgent/GROUP/INSTANCE`` and ``DeepHealthCheckResults/...``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from itertools import groupby
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.features.node_logs.models import BEGIN, NodeLog, NodeLogPosition, PlacedLine

PAGE = 10_000
"""Lines on a page: the most that AWS gives; a page has a megabyte at the most."""

_STREAMS_PAGE = 50


async def list_logs(
    aws: Aws, group: str, prefix: str | None = None
) -> AsyncIterator[list[NodeLog]]:
    """The logs of a group, page by page, those that were written last first.

    Args:
        aws: AWS in the cluster's region.
        group: The log group.
        prefix: Only those whose names begin so, and then by name, since AWS knows no other order of them.

    Raises:
        NotFoundError: There is no such group (``no_log_group``).
        HyperpodError: See `aws.errors`.
    """
    token: dict[str, str] = {}
    which: dict[str, Any] = {"orderBy": "LastEventTime", "descending": True}
    if prefix is not None:
        which = {"logStreamNamePrefix": prefix}
    while True:
        page = await _read(aws, "DescribeLogStreams", group, limit=_STREAMS_PAGE, **which, **token)
        yield [
            NodeLog(str(one["logStreamName"]), _seconds(one.get("lastEventTimestamp")))
            for one in page.get("logStreams", [])
        ]
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


async def lines_after(
    aws: Aws, group: str, stream: str, place: NodeLogPosition, count: int | None = None
) -> AsyncIterator[list[PlacedLine]]:
    """The lines of a log behind a place, page by page, as far as it is written now.

    Args:
        aws: AWS in the cluster's region.
        group: The log group.
        stream: The log.
        place: The place.
        count: How many lines are wanted, so that pages are no larger; None: many.

    Raises:
        NotFoundError: There is no such group (``no_log_group``) or stream.
        HyperpodError: See `aws.errors`.
    """
    time, seen = place.milliseconds, 0
    given = {"startFromHead": True, "startTime": place.milliseconds}
    if count is not None:
        given["limit"] = min(PAGE, count + place.seen)
    async for page in _pages(aws, group, stream, "nextForwardToken", **given):
        found: list[PlacedLine] = []
        for milliseconds, text in page:
            seen = seen + 1 if milliseconds == time else 1
            time = milliseconds
            if milliseconds > place.milliseconds or seen > place.seen:
                found.append(PlacedLine(stream, text, NodeLogPosition(time, seen)))
        if found:
            yield found


async def last_lines(
    aws: Aws,
    group: str,
    stream: str,
    count: int,
    since: float | None = None,
    before: NodeLogPosition | None = None,
) -> list[PlacedLine]:
    """The last lines of a log, or those before a place, oldest first.

    Args:
        aws: AWS in the cluster's region.
        group: The log group.
        stream: The log.
        count: How many lines at the most; one at least.
        since: Only lines from this time on (Unix seconds).
        before: Only lines before this place.

    Raises:
        NotFoundError: There is no such group (``no_log_group``) or stream.
        HyperpodError: See `aws.errors`.
    """
    found: list[tuple[int, str]] = []
    bounds = {} if since is None else {"startTime": max(0, int(since * 1000))}
    if before is not None:
        bounds["endTime"] = before.milliseconds + 1
    limit = min(count + 1, PAGE)
    async for page in _pages(
        aws, group, stream, "nextBackwardToken", startFromHead=False, limit=limit, **bounds
    ):
        found[:0] = page
        # A line's place counts the lines of its millisecond, so the first of those must be known.
        known = [line for line in found if line[0] > found[0][0]]
        if len(_placed(stream, known, before)) >= count:
            break
    return _placed(stream, found, before)[-count:]


def _placed(
    stream: str, lines: Iterable[tuple[int, str]], before: NodeLogPosition | None
) -> list[PlacedLine]:
    """Lines with their places, of which the first is the first of its millisecond; only those that lie before a place."""
    placed = (
        PlacedLine(stream, text, NodeLogPosition(milliseconds, number))
        for milliseconds, same in groupby(lines, key=lambda line: line[0])
        for number, (_, text) in enumerate(same, 1)
    )
    return [line for line in placed if before is None or line.place <= before]


async def end_of_log(aws: Aws, group: str, stream: str) -> NodeLogPosition:
    """The place behind the last line of a log.

    Raises:
        NotFoundError: There is no such group (``no_log_group``) or stream.
        HyperpodError: See `aws.errors`.
    """
    last = await last_lines(aws, group, stream, 1)
    return last[0].place if last else BEGIN


async def _pages(
    aws: Aws, group: str, stream: str, direction: str, **given: Any
) -> AsyncIterator[list[tuple[int, str]]]:
    """Pages in one direction. One without a line is not the end: that is where AWS gives the same token again."""
    token: str | None = None
    given = {"limit": PAGE, **given}
    while True:
        more = {} if token is None else {"nextToken": token}
        page = await _read(aws, "GetLogEvents", group, logStreamName=stream, **given, **more)
        if page.get("events"):
            yield [(int(one["timestamp"]), str(one["message"])) for one in page["events"]]
        if page.get(direction) in {None, token}:
            return
        token = page[direction]


async def _read(aws: Aws, operation: str, group: str, **given: Any) -> dict[str, Any]:
    try:
        return await aws.call("logs", operation, logGroupName=group, **given)
    except NotFoundError as error:
        raise _absent(error, group) from error


def _absent(error: HyperpodError, group: str) -> NotFoundError:
    if "log group" not in error.detail.get("aws_message", ""):
        return NotFoundError(error.message, code="no_log", detail=error.detail)
    return NotFoundError(
        f"CloudWatch has no log group {group}",
        code="no_log_group",
        hint="it is made when a node first writes to it, for which the instance groups' execution role needs logs:CreateLogGroup, "
        "logs:CreateLogStream and logs:PutLogEvents",
        detail=error.detail,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
