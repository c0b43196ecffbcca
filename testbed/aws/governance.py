"""SageMaker: task governance of HyperPod clusters on EKS: compute quotas and cluster policies."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import ComputeQuota, SchedulerConfig


def list_compute_quotas(request: Request) -> dict[str, Any]:
    shown, following = _page(request, request.account.quotas.get(request.region, []))
    return {"ComputeQuotaSummaries": [_quota(request, one) for one in shown], **following}


def describe_compute_quota(request: Request) -> dict[str, Any]:
    for one in request.account.quotas.get(request.region, []):
        if one.ident == request.given["ComputeQuotaId"]:
            return {**_quota(request, one), **({"FailureReason": one.failure} if one.failure is not None else {})}
    raise _none("Compute quota", request.given["ComputeQuotaId"])


def list_cluster_scheduler_configs(request: Request) -> dict[str, Any]:
    shown, following = _page(request, request.account.policies.get(request.region, []))
    return {"ClusterSchedulerConfigSummaries": [_policy(request, one) for one in shown], **following}


def describe_cluster_scheduler_config(request: Request) -> dict[str, Any]:
    for one in request.account.policies.get(request.region, []):
        if one.ident == request.given["ClusterSchedulerConfigId"]:
            failure = {"FailureReason": one.failure} if one.failure is not None else {}
            return {**_policy(request, one), "SchedulerConfig": one.rules, **failure}
    raise _none("Cluster scheduler config", request.given["ClusterSchedulerConfigId"])


def governance_resource(request: Request) -> Resource | None:
    """What IAM names: a quota or a policy by its id; None where the request is about neither."""
    for member, kind in (("ComputeQuotaId", "compute-quota"), ("ClusterSchedulerConfigId", "cluster-scheduler-config")):
        if member in request.given:
            ident = request.given[member]
            return Resource(ident, _arn(request, kind, ident))
    return None


def _page(request: Request, found: list[Any]) -> tuple[list[Any], dict[str, str]]:
    given = request.given
    chosen = [
        one
        for one in found
        if given.get("ClusterArn") in (None, one.cluster_arn)
        and given.get("NameContains", "") in one.name
        and given.get("Status") in (None, one.status)
    ]
    return page(chosen, lambda one: [one.name, one.ident], given)


def _quota(request: Request, one: ComputeQuota) -> dict[str, Any]:
    return {
        "ComputeQuotaArn": _arn(request, "compute-quota", one.ident),
        "ComputeQuotaId": one.ident,
        "Name": one.name,
        "ComputeQuotaVersion": 1,
        "Status": one.status,
        "ClusterArn": one.cluster_arn,
        "ComputeQuotaConfig": one.config,
        "ComputeQuotaTarget": one.target,
        "ActivationState": one.activation,
        "CreationTime": one.created,
    }


def _policy(request: Request, one: SchedulerConfig) -> dict[str, Any]:
    return {
        "ClusterSchedulerConfigArn": _arn(request, "cluster-scheduler-config", one.ident),
        "ClusterSchedulerConfigId": one.ident,
        "ClusterSchedulerConfigVersion": 1,
        "Name": one.name,
        "Status": one.status,
        "ClusterArn": one.cluster_arn,
        "CreationTime": one.created,
    }


def _arn(request: Request, kind: str, ident: str) -> str:
    account = request.account
    where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
    return f"arn:{where}:{kind}/{ident}"


def _none(what: str, ident: str) -> ApiError:
    return ApiError("ResourceNotFound", f"{what} {ident} not found.")


OPERATIONS = {
    "ListComputeQuotas": list_compute_quotas,
    "DescribeComputeQuota": describe_compute_quota,
    "ListClusterSchedulerConfigs": list_cluster_scheduler_configs,
    "DescribeClusterSchedulerConfig": describe_cluster_scheduler_config,
}
