"""SageMaker's updates of domains, user profiles and spaces: what is given takes the place of what was there, lists as a whole.

While one is updated nothing else can be done to it; that takes the account's `update_time`. A space is updated while nothing runs in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.aws.domains import domain_resource
from testbed.aws.operations import Request
from testbed.aws.profiles import profile_resource
from testbed.aws.replies import ApiError
from testbed.aws.spaces import space_resource
from testbed.aws.state import Domain, Profile, Space
from testbed.aws.studio_lifecycle import apply_app_settings, check_app_settings

_SETTLED = "InService"


def update_domain(request: Request) -> dict[str, Any]:
    name, given = request.given["DomainId"], request.given
    domain = request.account.domains.get(name)
    if domain is None:
        raise ApiError("ResourceNotFound", f"Domain {name} does not exist.")
    told = given.get("DefaultSpaceSettings", {"ExecutionRole": ""})
    if "ExecutionRole" not in told:
        words = "ExecutionRole is required in DefaultSpaceSettings"
        raise ApiError("ValidationException", words)
    users, spaces = given.get("DefaultUserSettings", {}), given.get("DefaultSpaceSettings", {})
    for one in (users, spaces):
        check_app_settings(request, one)
    _begin(request, domain, f"Domain {name}")
    domain.idle = apply_app_settings(users, domain.app_settings, domain.idle)
    domain.shared_idle = apply_app_settings(spaces, domain.shared_app_settings, domain.shared_idle)
    domain.file_systems = _list(users, domain.file_systems)
    domain.shared_file_systems = _list(spaces, domain.shared_file_systems)
    domain.space_role = spaces.get("ExecutionRole", domain.space_role)
    return {"DomainArn": domain_resource(request).arn}


def update_user_profile(request: Request) -> dict[str, Any]:
    key = request.given["DomainId"], request.given["UserProfileName"]
    profile = request.account.profiles.get(key)
    if profile is None:
        raise ApiError("ResourceNotFound", f"User Profile with name {key[1]} not found.")
    settings = request.given.get("UserSettings", {})
    if "CustomPosixUserConfig" in settings:
        raise ApiError("ValidationException", "CustomPosixUserConfig cannot be updated")
    check_app_settings(request, settings)
    _begin(request, profile, f"User Profile {key[1]}")
    profile.idle = apply_app_settings(settings, profile.app_settings, profile.idle)
    profile.file_systems = _list(settings, profile.file_systems)
    return {"UserProfileArn": profile_resource(request).arn}


def update_space(request: Request) -> dict[str, Any]:
    key = request.given["DomainId"], request.given["SpaceName"]
    space = request.account.spaces.get(key)
    if space is None:
        raise ApiError("ResourceNotFound", f"Space {key[1]} of domain {key[0]} does not exist.")
    if space.apps:
        words = f"Space {key[1]} has applications that run; stop them first"
        raise ApiError("ResourceInUse", words)
    _begin(request, space, f"Space {key[1]}")
    settings = request.given.get("SpaceSettings", {})
    space.file_systems = settings.get("CustomFileSystems", space.file_systems)
    return {"SpaceArn": space_resource(request).arn}


def _begin(request: Request, thing: Domain | Profile | Space, words: str) -> None:
    """Let it be updated for a while.

    Raises:
        ApiError: It is in no state for that.
    """
    if thing.status != _SETTLED:
        raise ApiError("ResourceInUse", f"{words} is {thing.status}")
    thing.status = "Updating"

    ends = request.account.update_ends.get(words.rpartition(" ")[2], _SETTLED)

    def end() -> None:
        if thing.status == "Updating":
            thing.status = ends

    request.account.timeline.after(request.account.update_time, end)


def _list(settings: Mapping[str, Any], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = settings.get("CustomFileSystemConfigs", before)
    return found
