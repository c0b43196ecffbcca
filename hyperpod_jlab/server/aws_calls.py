"""Requests about this server's calls to AWS."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.aws.session import known_regions
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.events import AwsCalls, count_calls


async def show_aws_calls(call: Call) -> AwsCalls:  # noqa: ARG001 - every endpoint is given its call
    """Count this server's calls to AWS in the last minute. Does not call AWS."""
    return count_calls()


# --------------------------------------------------------------------------------------------------
# Requests about AWS regions.


@dataclass(frozen=True)
class AwsRegions:
    """Regions with SageMaker in one AWS partition, as this boto3 knows them. `default` is the region for requests that name none; null if unknown."""

    default: str | None
    regions: list[str]


async def list_aws_regions(call: Call) -> AwsRegions:  # noqa: ARG001 - every endpoint is given its call
    """List the available regions. Does not call AWS."""
    default, regions = await known_regions()
    return AwsRegions(default, regions)
