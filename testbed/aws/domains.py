"""SageMaker's operation on domains of Studio."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource
from testbed.aws.replies import ApiError


def describe_domain(request: Request) -> dict[str, Any]:
    name = request.given["DomainId"]
    domain = request.account.domains.get(name)
    if domain is None:
        raise ApiError("ResourceNotFound", f"Domain {name} does not exist.")
    return {
        "DomainId": name,
        "DomainArn": domain_resource(request).arn,
        "DomainName": domain.name,
        "Status": domain.status,
        **failure(domain.status),
        "AuthMode": "IAM",
        "AppNetworkAccessType": domain.network,
        "VpcId": domain.vpc,
        "SubnetIds": domain.subnets,
        "DefaultUserSettings": {
            "ExecutionRole": domain.role,
            **settings(domain.groups, domain.file_systems, domain.idle),
        },
        "DefaultSpaceSettings": settings(
            domain.groups, domain.shared_file_systems, domain.shared_idle
        ),
    }


def failure(status: str) -> dict[str, Any]:
    """Why something failed, where it has."""
    return {"FailureReason": "the testbed lets it fail"} if status.endswith("Failed") else {}


def settings(
    groups: list[str], file_systems: list[dict[str, Any]], idle: dict[str, Any]
) -> dict[str, Any]:
    """The settings of users that say where their applications reach to, and when they are stopped."""
    return {
        **idle_settings(idle),
        "SecurityGroups": groups,
        "CustomFileSystemConfigs": file_systems,
    }


def idle_settings(idle: dict[str, Any]) -> dict[str, Any]:
    """The settings of JupyterLab that have these IdleSettings; none where nothing was set."""
    return (
        {"JupyterLabAppSettings": {"AppLifecycleManagement": {"IdleSettings": idle}}}
        if idle
        else {}
    )


def domain_resource(request: Request) -> Resource:
    account, name = request.account, request.given["DomainId"]
    where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
    return Resource(name, f"arn:{where}:domain/{name}")
