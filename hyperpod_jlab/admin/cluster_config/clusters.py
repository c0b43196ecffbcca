"""Create a HyperPod cluster, and wait until it is in service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import ConflictError, UnreachableError
from hyperpod_jlab.core.wire import Wire, wire_property

POLL_S = 10.0
"""Seconds between two polls: a cluster takes 10 to 30 minutes."""

MAX_FAILURES = 20
"""Maximum consecutive polls without an answer."""

MAX_CLOCK_SKEW_S = 300.0
"""Maximum clock skew to AWS, in seconds: with more, AWS refuses all calls."""


@dataclass(frozen=True)
class ClusterStatus(Wire):
    """The state of a cluster as AWS reports it, and why it failed."""

    name: str
    arn: str
    status: str
    failure: str | None = None

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether it is in service."""
        return self.status == "InService"

    @property
    @wire_property
    def logs(self) -> str:
        """The log group of its lifecycle scripts."""
        return log_group(self.arn, self.name)


async def create(aws: Aws, parameters: Mapping[str, Any]) -> str:
    """Create a cluster from an input of CreateCluster; returns its ARN.

    Raises:
        ConflictError: A cluster of this name exists.
        UnreachableError: The outcome is unknown.
        HyperpodError: See `aws.errors`.
    """
    begin = time.time()
    try:
        response = await aws.call("sagemaker", "CreateCluster", **parameters)
    except ConflictError as error:
        if not error.detail.get("retries"):
            raise
        # boto3 retries a call whose response was lost; then the existing cluster is ours.
        name = str(parameters["ClusterName"])
        response = await aws.call("sagemaker", "DescribeCluster", ClusterName=name)
        if response["CreationTime"].timestamp() < begin - MAX_CLOCK_SKEW_S:
            raise
    except UnreachableError as error:
        if error.code == "aws_throttled":
            raise
        raise UnreachableError(
            f"the request was sent, but the cluster may not be made: {error.message}",
            code=error.code,
            hint="; ".join(filter(None, (error.hint, "check before you try again: hpj clusters"))),
            detail=error.detail,
        ) from error
    return str(response["ClusterArn"])


async def follow(aws: Aws, name: str, arn: str) -> AsyncIterator[ClusterStatus]:
    """The state of a new cluster at each poll, until it is in service or has failed.

    Raises:
        HyperpodError: See `aws.errors`; some polls may fail.
    """
    failures_in_row = 0
    while True:
        try:
            # By its ARN: a new cluster of the same name is another cluster.
            response = await aws.call("sagemaker", "DescribeCluster", ClusterName=arn)
        except UnreachableError:
            failures_in_row += 1
            if failures_in_row > MAX_FAILURES:
                raise
        else:
            failures_in_row = 0
            status = str(response["ClusterStatus"])
            yield ClusterStatus(name, arn, status, response.get("FailureMessage"))
            if status in {"InService", "Failed"}:
                return
        await asyncio.sleep(POLL_S)
