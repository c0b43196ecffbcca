"""Task governance of HyperPod clusters, from SageMaker's API: compute quotas of teams, and cluster policies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.features.governance.models import Allocation, ClusterPolicy, PriorityClass, TeamQuota, in_order


async def list_quotas(aws: Aws, arn: str) -> list[TeamQuota]:
    """The quotas of a cluster, by its ARN.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    return [
        _quota(item)
        async for page in aws.pages("sagemaker", "ListComputeQuotas", ClusterArn=arn)
        for item in page.get("ComputeQuotaSummaries", [])
    ]


async def quota_failure(aws: Aws, quota_id: str) -> str | None:
    """Why a quota failed; the list does not include it.

    Raises:
        NotFoundError: It has been deleted.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeComputeQuota", ComputeQuotaId=quota_id)
    return response.get("FailureReason")


async def list_policies(aws: Aws, arn: str) -> list[ClusterPolicy]:
    """The policies of a cluster, by its ARN. A policy that cannot be described gives the reason; today AWS has one per cluster.

    Raises:
        HyperpodError: Listing them failed (see `aws.errors`).
    """
    policies = []
    async for page in aws.pages("sagemaker", "ListClusterSchedulerConfigs", ClusterArn=arn):
        for item in page.get("ClusterSchedulerConfigSummaries", []):
            policy = ClusterPolicy(str(item["ClusterSchedulerConfigId"]), str(item["Name"]), str(item["Status"]))
            try:
                policies.append(await _describe(aws, policy))
            except NotFoundError:  # deleted after it was listed
                continue
            except HyperpodError as error:
                policies.append(replace(policy, reason=error.message))
    return policies


async def _describe(aws: Aws, policy: ClusterPolicy) -> ClusterPolicy:
    response = await aws.call("sagemaker", "DescribeClusterSchedulerConfig", ClusterSchedulerConfigId=policy.policy_id)
    rules = response.get("SchedulerConfig") or {}
    return replace(
        policy,
        status=str(response["Status"]),
        fair_share=rules.get("FairShare"),
        idle_sharing=rules.get("IdleResourceSharing"),
        priorities=in_order(
            PriorityClass(str(item["Name"]), int(item["Weight"])) for item in rules.get("PriorityClasses") or ()
        ),
        reason=response.get("FailureReason"),
    )


def _quota(description: Mapping[str, Any]) -> TeamQuota:
    rules = description.get("ComputeQuotaConfig") or {}
    sharing = rules.get("ResourceSharingConfig") or {}
    target = description.get("ComputeQuotaTarget") or {}
    return TeamQuota(
        quota_id=str(description["ComputeQuotaId"]),
        name=str(description["Name"]),
        team=str(target.get("TeamName", "")),
        status=str(description["Status"]),
        enabled=description.get("ActivationState") != "Disabled",
        weight=target.get("FairShareWeight"),
        allocated=_allocations(rules.get("ComputeQuotaResources") or ()),
        sharing=sharing.get("Strategy"),
        borrow_percent=sharing.get("BorrowLimit"),
        borrow_most=_allocations(sharing.get("AbsoluteBorrowLimits") or ()),
        preemption=rules.get("PreemptTeamTasks"),
    )


def _allocations(items: Iterable[Mapping[str, Any]]) -> tuple[Allocation, ...]:
    allocations = []
    for item in items:
        part = item.get("AcceleratorPartition") or {}
        allocations.append(
            Allocation(
                instance_type=str(item["InstanceType"]),
                count=item.get("Count"),
                accelerators=item.get("Accelerators"),
                cpus=item.get("VCpu"),
                memory_gib=item.get("MemoryInGiB"),
                partition=part.get("Type"),
                partitions=part.get("Count"),
            )
        )
    return tuple(allocations)
