"""SageMaker's operations on spaces of Studio."""

from __future__ import annotations

from typing import Any

from testbed.aws.domains import app_settings, failure
from testbed.aws.operations import Request, Resource
from testbed.aws.replies import ApiError


def describe_space(request: Request) -> dict[str, Any]:
    domain, name = request.given["DomainId"], request.given["SpaceName"]
    space = request.account.spaces.get((domain, name))
    if space is None:
        raise ApiError("ResourceNotFound", f"Space {name} of domain {domain} does not exist.")
    return {
        "DomainId": domain,
        "SpaceName": name,
        "SpaceArn": space_resource(request).arn,
        "Status": space.status,
        **failure(space.status),
        "OwnershipSettings": {"OwnerUserProfileName": space.owner},
        "SpaceSharingSettings": {"SharingType": space.sharing},
        "SpaceSettings": {**app_settings(space.app_settings, space.idle), "CustomFileSystems": space.file_systems},
    }


def space_resource(request: Request) -> Resource:
    account, name = request.account, request.given["SpaceName"]
    path = f"{request.given['DomainId']}/{name}"
    where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
    return Resource(name, f"arn:{where}:space/{path}")
