"""Requests about regions of AWS."""

from __future__ import annotations

from typing_extensions import TypedDict

from hyperpod_jlab.aws.session import known_regions
from hyperpod_jlab.server.call import Call


class AwsRegions(TypedDict):
    """Regions with SageMaker of one AWS partition, as far as this boto3 knows them. `default` is the one that is asked where nobody names one; null where none is known."""

    default: str | None
    regions: list[str]


async def list_aws_regions(call: Call) -> AwsRegions:  # noqa: ARG001 - every endpoint is given its call
    """The regions that can be chosen. AWS is not asked for them."""
    default, regions = await known_regions()
    return {"default": default, "regions": regions}
