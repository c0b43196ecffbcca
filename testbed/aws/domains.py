"""SageMaker's operation on domains of Studio."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource
from testbed.aws.replies import ApiError
from testbed.aws.state import AppSettings


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
            **settings(domain.groups, domain.file_systems),
            **app_settings(domain.app_settings, domain.idle),
        },
        "DefaultSpaceSettings": {
            **({"ExecutionRole": domain.space_role} if domain.space_role else {}),
            **settings(domain.groups, domain.shared_file_systems),
            **app_settings(domain.shared_app_settings, domain.shared_idle),
        },
    }


def failure(status: str) -> dict[str, Any]:
    """Why something failed, where it has."""
    return {"FailureReason": "the testbed lets it fail"} if status.endswith("Failed") else {}


def settings(groups: list[str], file_systems: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings of users that say where their applications reach to."""
    return {"SecurityGroups": groups, "CustomFileSystemConfigs": file_systems}


def app_settings(apps: AppSettings, idle: dict[str, Any]) -> dict[str, Any]:
    """The settings of applications, JupyterLab's with these IdleSettings; none where nothing was set."""
    found = {f"{app}AppSettings": dict(told) for app, told in apps.items() if told}
    if idle:
        lab = found.setdefault("JupyterLabAppSettings", {})
        lab["AppLifecycleManagement"] = {"IdleSettings": idle}
    return found


def domain_resource(request: Request) -> Resource:
    name = request.given["DomainId"]
    return Resource(name, domain_arn(request, name))


def domain_arn(request: Request, name: str) -> str:
    """The ARN of a domain, whether it is there or not."""
    account = request.account
    where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
    return f"arn:{where}:domain/{name}"
