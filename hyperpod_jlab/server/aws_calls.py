"""Requests about what this server costs AWS."""

from __future__ import annotations

from typing import cast

from typing_extensions import TypedDict

from hyperpod_jlab.server.aws_call_events import calls_now
from hyperpod_jlab.server.call import Call


class AwsOperationCalls(TypedDict):
    """Requests of one operation."""

    service: str
    operation: str
    calls: int


class AwsCalls(TypedDict):
    """What this server asked AWS for in the last minute, tries and pages included, the most frequent operation first; `total` counts from the server's start."""

    calls: int
    total: int
    operations: list[AwsOperationCalls]


async def show_aws_calls(call: Call) -> AwsCalls:  # noqa: ARG001 - every endpoint is given its call
    """How often this server asked AWS for something in the last minute. AWS is not asked for it."""
    return cast("AwsCalls", calls_now())
