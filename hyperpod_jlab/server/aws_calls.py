"""Requests about what this server costs AWS."""

from __future__ import annotations

from typing import cast

from typing_extensions import TypedDict

from hyperpod_jlab.aws.session import known_regions
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.events import calls_now


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


# --------------------------------------------------------------------------------------------------
# Requests about regions of AWS.


class AwsRegions(TypedDict):
    """Regions with SageMaker of one AWS partition, as far as this boto3 knows them. `default` is the one that is asked where nobody names one; null where none is known."""

    default: str | None
    regions: list[str]


async def list_aws_regions(call: Call) -> AwsRegions:  # noqa: ARG001 - every endpoint is given its call
    """The regions that can be chosen. AWS is not asked for them."""
    default, regions = await known_regions()
    return {"default": default, "regions": regions}
