"""Requests about what this server costs AWS."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.aws.session import known_regions
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.events import AwsCalls, count_calls


async def show_aws_calls(call: Call) -> AwsCalls:  # noqa: ARG001 - every endpoint is given its call
    """How often this server asked AWS for something in the last minute. AWS is not asked for it."""
    return count_calls()


# --------------------------------------------------------------------------------------------------
# Requests about regions of AWS.


@dataclass(frozen=True)
class AwsRegions:
    """Regions with SageMaker of one AWS partition, as far as this boto3 knows them. `default` is the one that is asked where nobody names one; null where none is known."""

    default: str | None
    regions: list[str]


async def list_aws_regions(call: Call) -> AwsRegions:  # noqa: ARG001 - every endpoint is given its call
    """The regions that can be chosen. AWS is not asked for them."""
    default, regions = await known_regions()
    return AwsRegions(default, regions)
