"""CloudWatch Logs: the operations that read."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError

_PAGE_BYTES = 1_048_576
_PER_EVENT = 26
"""Bytes that AWS counts for a line besides its text."""


def describe_log_streams(request: Request) -> dict[str, Any]:
    given = request.given
    prefix, by_time = given.get("logStreamNamePrefix", ""), given.get("orderBy") == "LastEventTime"
    if prefix and by_time:
        raise ApiError("InvalidParameterException", "Cannot order by LastEventTime with a logStreamNamePrefix.")
    streams = _group(request)
    question = {
        **{name: value for name, value in given.items() if name not in {"nextToken", "limit"}},
        "MaxResults": given.get("limit", 50),
        "SortOrder": "Descending" if given.get("descending") else "Ascending",
        **({"NextToken": given["nextToken"]} if "nextToken" in given else {}),
    }
    shown, following = page(
        [name for name in streams if name.startswith(prefix)],
        lambda name: [streams[name][-1][0] if streams[name] else 0, name] if by_time else [name],
        question,
    )
    token = {"nextToken": following["NextToken"]} if following else {}
    return {"logStreams": [_stream(name, streams[name]) for name in shown], **token}


def get_log_events(request: Request) -> dict[str, Any]:
    given = request.given
    streams = _group(request)
    events = streams.get(given["logStreamName"])
    if events is None:
        raise ApiError("ResourceNotFoundException", "The specified log stream does not exist.")
    token = given.get("nextToken")
    forward = token.startswith("f/") if token else given.get("startFromHead", False)
    at = _position(token, len(events)) if token else 0 if forward else len(events)
    looked = request.account.telemetry.looked_at
    begin, end = (at, at + looked) if forward else (max(at - looked, 0), at)
    low, high = given.get("startTime", 0), given.get("endTime", float("inf"))
    wanted = [n for n in range(len(events))[begin:end] if low <= events[n][0] < high]
    shown = _fitting(wanted, events, given.get("limit", 10_000), forward=forward)
    if len(shown) < len(wanted):  # full: the next page begins behind the last line of this one
        begin, end = (begin, shown[-1] + 1) if forward else (shown[0], end)
    return {
        "events": [
            {"timestamp": events[n][0], "message": events[n][1], "ingestionTime": events[n][0] + 5} for n in shown
        ],
        "nextForwardToken": f"f/{min(end, len(events)):056d}",
        "nextBackwardToken": f"b/{begin:056d}",
    }


def _fitting(wanted: list[int], events: list[tuple[int, str]], limit: int, *, forward: bool) -> list[int]:
    """As many of the lines as a page takes, from its own end on."""
    room, shown = _PAGE_BYTES, list[int]()
    for number in wanted if forward else reversed(wanted):
        room -= len(events[number][1].encode()) + _PER_EVENT
        if len(shown) == limit or room < 0:
            break
        shown.append(number)
    return shown if forward else shown[::-1]


def _position(token: str, most: int) -> int:
    if token[:2] not in {"f/", "b/"} or not token[2:].isdecimal() or int(token[2:]) > most:
        raise ApiError("InvalidParameterException", "The specified nextToken is invalid.")
    return int(token[2:])


def _group(request: Request) -> dict[str, list[tuple[int, str]]]:
    name = request.given.get("logGroupName")
    found = request.account.telemetry.logs.get((request.region, str(name)))
    if found is None:
        raise ApiError("ResourceNotFoundException", "The specified log group does not exist.")
    return found


def _stream(name: str, events: list[tuple[int, str]]) -> dict[str, Any]:
    times = {"firstEventTimestamp": events[0][0], "lastEventTimestamp": events[-1][0]} if events else {}
    return {"logStreamName": name, "storedBytes": 0, **times}


def _resource(request: Request) -> Resource:
    account, group = request.account, request.given.get("logGroupName", "")
    prefix = f"arn:{account.partition}:logs:{request.region}:{account.account_id}:log-group"
    stream = request.given.get("logStreamName", "")
    return Resource(group, f"{prefix}:{group}:log-stream:{stream}")


SERVICE = Service("logs", {"DescribeLogStreams": describe_log_streams, "GetLogEvents": get_log_events}, _resource)
