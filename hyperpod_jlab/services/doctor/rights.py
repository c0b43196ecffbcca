"""The step on what AWS lets this role read: each action is tried with the cheapest call there is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.consoles import log_group
from hyperpod_jlab.aws.permissions import FEATURES
from hyperpod_jlab.model.check import Step, Told, ok, unknown, warn
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.opened import CONFIGURATION
from hyperpod_jlab.services.doctor.studio import ROLE

_PATIENCE = 15.0
"""Seconds that one call may take."""


@dataclass(frozen=True)
class _Try:
    service: str
    operation: str
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def action(self) -> str:
        return f"{self.service}:{self.operation}"


def rights_steps(at_aws: AtAws) -> list[Step]:
    """What may be read of the first cluster that matters here, and of the account."""

    async def look() -> Told | None:
        return await _rights(at_aws) if at_aws.concerned else None

    needs = (CONFIGURATION, ROLE)
    return [Step("rights", "rights at AWS", "role", look, needs=needs, seconds=45)]


async def _rights(at_aws: AtAws) -> Told:
    tries = [
        _Try("fsx", "DescribeFileSystems", {"MaxResults": 1}),
        _Try("cloudwatch", "ListMetrics", {"Namespace": "/aws/sagemaker/Clusters"}),
    ]
    tries += await _of_cluster(at_aws)
    refusals = await asyncio.gather(*(_refusal(at_aws, one) for one in tries))
    missing = [str(one.detail["action"]) for one in refusals if one and one.code == "missing_right"]
    silent = [one for one in refusals if one is not None and one.code == "aws_unreachable"]
    if missing:
        names = [
            feature.name
            for feature in FEATURES
            if any(one.action in missing for one in feature.permissions)
        ]
        words = "; ".join(f"AWS does not let you {action}" for action in missing)
        return warn(words, f"grant what this prints: hpj admin policy {' '.join(names)}", "admin")
    if silent:
        return unknown("; ".join(one.message for one in silent), silent[0].hint, "admin")
    unknown_here = [one.message for one in refusals if one and one.code == "boto3_too_old"]
    tried = ", ".join(
        one.action
        for one, error in zip(tries, refusals, strict=True)
        if error is None or error.code != "boto3_too_old"
    )
    words = f"AWS lets this role read what was tried: {tried}"
    return ok("; ".join([words, *unknown_here]))


async def _of_cluster(at_aws: AtAws) -> list[_Try]:
    """What is tried on a cluster, where one is known."""
    try:
        found = await at_aws.our_clusters() or list(await at_aws.clusters())
    except HyperpodError:  # its own step says it
        return []
    if not found:
        return []
    named = {"ClusterName": found[0].name, "MaxResults": 1}
    group = log_group(found[0].arn, found[0].name)
    return [
        _Try("sagemaker", "ListClusterNodes", named),
        _Try("sagemaker", "ListClusterEvents", named),
        _Try("logs", "DescribeLogStreams", {"logGroupName": group, "limit": 1}),
    ]


async def _refusal(at_aws: AtAws, one: _Try) -> HyperpodError | None:
    """What AWS says against it. Whatever else is wrong with it, such as a log group that is not there, it was allowed."""
    try:
        async with asyncio.timeout(_PATIENCE):
            await at_aws.aws.call(one.service, one.operation, **one.given)
    except TimeoutError:
        return None
    except HyperpodError as error:
        return error
    return None
