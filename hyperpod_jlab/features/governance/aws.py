"""Task governance of HyperPod clusters, from SageMaker's API: compute quotas of teams, and cluster policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.features.governance.models import (
    Allocation,
    ClusterPolicy,
    PriorityClass,
    TeamQuota,
    in_order,
)


async def list_quotas(aws: Aws, arn: str) -> list[TeamQuota]:
    """The quotas of a cluster, by its ARN.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    return [
        _quota(one)
        async for page in aws.pages("sagemaker", "ListComputeQuotas", ClusterArn=arn)
        for one in page.get("ComputeQuotaSummaries", [])
    ]


async def quota_failure(aws: Aws, quota_id: str) -> str | None:
    """Why a quota failed: the list does not say it.

    Raises:
        NotFoundError: It has been deleted.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("sagemaker", "DescribeComputeQuota", ComputeQuotaId=quota_id)
    return told.get("FailureReason")


async def list_policies(aws: Aws, arn: str) -> list[ClusterPolicy]:
    """The policies of a cluster, by its ARN. One that cannot be described says in its reason why; AWS has one of a cluster today.

    Raises:
        HyperpodError: Not even the list could be had (see `aws.errors`).
    """
    found = []
    async for page in aws.pages("sagemaker", "ListClusterSchedulerConfigs", ClusterArn=arn):
        for one in page.get("ClusterSchedulerConfigSummaries", []):
            listed = ClusterPolicy(
                str(one["ClusterSchedulerConfigId"]), str(one["Name"]), str(one["Status"])
            )
            try:
                found.append(await _described(aws, listed))
            except NotFoundError:  # deleted since it was listed
                continue
            except HyperpodError as error:
                found.append(replace(listed, reason=error.message))
    return found


async def _described(aws: Aws, policy: ClusterPolicy) -> ClusterPolicy:
    told = await aws.call(
        "sagemaker",
        "DescribeClusterSchedulerConfig",
        ClusterSchedulerConfigId=policy.policy_id,
    )
    rules = told.get("SchedulerConfig") or {}
    return replace(
        policy,
        status=str(told["Status"]),
        fair_share=rules.get("FairShare"),
        idle_sharing=rules.get("IdleResourceSharing"),
        priorities=in_order(
            PriorityClass(str(one["Name"]), int(one["Weight"]))
            for one in rules.get("PriorityClasses") or ()
        ),
        reason=told.get("FailureReason"),
    )


def _quota(told: Mapping[str, Any]) -> TeamQuota:
    rules = told.get("ComputeQuotaConfig") or {}
    sharing = rules.get("ResourceSharingConfig") or {}
    target = told.get("ComputeQuotaTarget") or {}
    return TeamQuota(
        quota_id=str(told["ComputeQuotaId"]),
        name=str(told["Name"]),
        team=str(target.get("TeamName", "")),
        status=str(told["Status"]),
        enabled=told.get("ActivationState") != "Disabled",
        weight=target.get("FairShareWeight"),
        allocated=_allocations(rules.get("ComputeQuotaResources") or ()),
        sharing=sharing.get("Strategy"),
        borrow_percent=sharing.get("BorrowLimit"),
        borrow_most=_allocations(sharing.get("AbsoluteBorrowLimits") or ()),
        preemption=rules.get("PreemptTeamTasks"),
    )


def _allocations(told: Iterable[Mapping[str, Any]]) -> tuple[Allocation, ...]:
    found = []
    for one in told:
        part = one.get("AcceleratorPartition") or {}
        found.append(
            Allocation(
                instance_type=str(one["InstanceType"]),
                count=one.get("Count"),
                accelerators=one.get("Accelerators"),
                cpus=one.get("VCpu"),
                memory_gib=one.get("MemoryInGiB"),
                partition=part.get("Type"),
                partitions=part.get("Count"),
            )
        )
    return tuple(found)
