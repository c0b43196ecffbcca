"""Logs of HyperPod's nodes in CloudWatch Logs: a group per cluster, a stream per node and kind of log.

Names are from AWS' documentation: the group ``/aws/sagemaker/Clusters/NAME/ID``, in it the streams
``LifecycleConfig/GROUP/INSTANCE``, ``SagemakerHealthMonitoringAgent/GROUP/INSTANCE`` and ``DeepHealthCheckResults/...``.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.features.node_logs.models import NodeLog

MAX_EVENTS_PER_PAGE = 10_000
"""Lines per page: AWS' maximum; a page also has at most one megabyte."""

NODE_STREAM = re.compile(r"[^/]+/[^/]+/i-[0-9a-f]{8,17}")
"""Logs that nodes write (docs/unverified.md, ``node-log-names``)."""

_STREAMS_PAGE = 50

Event = tuple[int, str]
"""Time of an event (Unix time in milliseconds), and its text: one line, or several."""


async def list_logs(aws: Aws, group: str, prefix: str | None = None) -> AsyncIterator[list[NodeLog]]:
    """The logs of a group, page by page, most recently written first.

    Args:
        aws: AWS in the cluster's region.
        group: The log group.
        prefix: Only names with this prefix; then ordered by name, since AWS supports no other order.

    Raises:
        NotFoundError: The group does not exist (``no_log_group``).
        HyperpodError: See `aws.errors`.
    """
    token: dict[str, str] = {}
    parameters: dict[str, Any] = {"orderBy": "LastEventTime", "descending": True}
    if prefix is not None:
        parameters = {"logStreamNamePrefix": prefix}
    while True:
        page = await _read(aws, "DescribeLogStreams", group, limit=_STREAMS_PAGE, **parameters, **token)
        yield [
            NodeLog(str(item["logStreamName"]), _seconds(item.get("lastEventTimestamp")))
            for item in page.get("logStreams", [])
        ]
        if not page.get("nextToken"):
            return
        token = {"nextToken": page["nextToken"]}


async def events(aws: Aws, group: str, stream: str, since: int | None = None) -> AsyncIterator[list[Event]]:
    """The events of a log, page by page: from a time on, oldest first; without a time, newest page first.

    Args:
        aws: AWS in the cluster's region.
        group: The log group.
        stream: The log.
        since: The time, in milliseconds.

    Raises:
        NotFoundError: The group (``no_log_group``) or stream (``no_log``) does not exist.
        HyperpodError: See `aws.errors`.
    """
    parameters: dict[str, Any] = {"startFromHead": since is not None, "limit": MAX_EVENTS_PER_PAGE}
    if since is not None:
        parameters["startTime"] = since
    direction = "nextBackwardToken" if since is None else "nextForwardToken"
    token: dict[str, str] = {}
    while True:
        page = await _read(aws, "GetLogEvents", group, logStreamName=stream, **parameters, **token)
        if page.get("events"):
            yield [(int(item["timestamp"]), str(item["message"])) for item in page["events"]]
        # An empty page is not the end; the end is where AWS returns the same token again.
        if page.get(direction) in {None, token.get("nextToken")}:
            return
        token = {"nextToken": page[direction]}


async def _read(aws: Aws, operation: str, group: str, **parameters: Any) -> dict[str, Any]:
    try:
        return await aws.call("logs", operation, logGroupName=group, **parameters)
    except NotFoundError as error:
        raise _not_found_error(error, group) from error


def _not_found_error(error: HyperpodError, group: str) -> NotFoundError:
    if "log group" not in error.detail.get("aws_message", ""):
        return NotFoundError(error.message, code="no_log", detail=error.detail)
    return NotFoundError(
        f"CloudWatch has no log group {group}",
        code="no_log_group",
        hint="a node creates it at its first write, if the execution role of the instance groups has logs:CreateLogGroup, logs:CreateLogStream and logs:PutLogEvents",
        detail=error.detail,
    )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
