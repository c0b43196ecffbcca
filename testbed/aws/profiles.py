"""SageMaker's operation on user profiles of Studio."""

from __future__ import annotations

from typing import Any

from testbed.aws.domains import failure
from testbed.aws.domains import settings as common_settings
from testbed.aws.operations import Request, Resource
from testbed.aws.replies import ApiError


def describe_user_profile(request: Request) -> dict[str, Any]:
    domain, name = request.given["DomainId"], request.given["UserProfileName"]
    profile = request.account.profiles.get((domain, name))
    if profile is None:
        words = f"User Profile with name {name} not found."
        raise ApiError("ResourceNotFound", words)
    settings = common_settings(profile.groups, profile.file_systems, profile.idle)
    if profile.uid is not None:
        settings |= {"CustomPosixUserConfig": {"Uid": profile.uid, "Gid": profile.gid}}
    return {
        "DomainId": domain,
        "UserProfileName": name,
        "UserProfileArn": profile_resource(request).arn,
        "Status": profile.status,
        **failure(profile.status),
        "UserSettings": settings,
    }


def profile_resource(request: Request) -> Resource:
    account, name = request.account, request.given["UserProfileName"]
    where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
    return Resource(name, f"arn:{where}:user-profile/{request.given['DomainId']}/{name}")
