"""SageMaker: domains of Studio, user profiles and spaces are made and deleted. Each takes the account's `update_time`, in which it is ``Pending`` or ``Deleting``.

A domain brings two security groups for NFS along, which name each other, and which stay when it is deleted (SageMaker's guide, "Delete a domain"). One that
has user profiles or spaces cannot be deleted, nor a profile that has spaces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from testbed.aws.domains import domain_resource
from testbed.aws.network import VPC, Network, SecurityGroup
from testbed.aws.operations import Request, Resource
from testbed.aws.profiles import profile_resource
from testbed.aws.replies import ApiError
from testbed.aws.spaces import space_resource
from testbed.aws.state import Domain, Profile, Space
from testbed.aws.studio_lifecycle import apply_app_settings, check_app_settings


def passed_role(request: Request) -> Iterator[tuple[str, Resource]]:
    """Whoever gives a domain a role needs the right to pass it on."""
    role = request.given["DefaultUserSettings"].get("ExecutionRole")
    if role:
        yield "iam:PassRole", Resource(role.rpartition("/")[2], role)


def create_domain(request: Request) -> dict[str, Any]:
    given, account = request.given, request.account
    users = given["DefaultUserSettings"]
    for name in ("VpcId", "SubnetIds"):
        if not given.get(name):
            raise ApiError("ValidationException", f"{name} is required")
    if not users.get("ExecutionRole"):
        raise ApiError("ValidationException", "ExecutionRole is required in DefaultUserSettings")
    check_app_settings(request, users)
    ident = hashlib.sha256(f"{len(account.domains)}/{account.timeline.now()}".encode()).hexdigest()
    name = f"d-{ident[:12]}"
    domain = account.domains[name] = Domain(
        given["DomainName"],
        status="Pending",
        network=given.get("AppNetworkAccessType", "PublicInternetOnly"),
        vpc=given["VpcId"],
        subnets=given["SubnetIds"],
        groups=users.get("SecurityGroups", []),
        role=users["ExecutionRole"],
        tags=_tags(request),
        created=account.timeline.now(),
    )
    domain.idle = apply_app_settings(users, domain.app_settings, domain.idle)
    _add_groups(request, name, domain.vpc)
    _settle(request, domain, "InService")
    request.given["DomainId"] = name
    arn = domain_resource(request).arn
    return {"DomainArn": arn, "DomainId": name, "Url": f"https://{name}.studio.example.com"}


def delete_domain(request: Request) -> dict[str, Any]:
    account, name = request.account, request.given["DomainId"]
    domain = account.domains.get(name)
    if domain is None:
        raise ApiError("ResourceNotFound", f"Domain {name} does not exist.")
    there = [*account.profiles, *account.spaces]
    if any(one[0] == name for one in there) or domain.status in {"Pending", "Updating"}:
        raise ApiError("ResourceInUse", f"Domain {name} is in use.")
    _delete(request, domain, lambda: account.domains.pop(name, None))
    return {}


def create_user_profile(request: Request) -> dict[str, Any]:
    account, given = request.account, request.given
    key = given["DomainId"], given["UserProfileName"]
    _check_domain(request)
    if key in account.profiles:
        raise ApiError("ResourceInUse", f"User Profile {key[1]} already exists.")
    profile = account.profiles[key] = Profile(status="Pending", tags=_tags(request))
    _settle(request, profile)
    return {"UserProfileArn": profile_resource(request).arn}


def delete_user_profile(request: Request) -> dict[str, Any]:
    account = request.account
    key = request.given["DomainId"], request.given["UserProfileName"]
    profile = account.profiles.get(key)
    if profile is None:
        raise ApiError("ResourceNotFound", f"User Profile with name {key[1]} not found.")
    owned = any(domain == key[0] and one.owner == key[1] for (domain, _), one in account.spaces.items())
    if owned or profile.status in {"Pending", "Updating"}:
        raise ApiError("ResourceInUse", f"User Profile {key[1]} is in use.")
    _delete(request, profile, lambda: account.profiles.pop(key, None))
    return {}


def create_space(request: Request) -> dict[str, Any]:
    account, given = request.account, request.given
    key = given["DomainId"], given["SpaceName"]
    _check_domain(request)
    if key in account.spaces:
        raise ApiError("ResourceInUse", f"Space {key[1]} already exists.")
    owner = given.get("OwnershipSettings", {}).get("OwnerUserProfileName", "")
    if (key[0], owner) not in account.profiles:
        raise ApiError("ValidationException", f"there is no user profile {owner}")
    sharing = given.get("SpaceSharingSettings", {}).get("SharingType", "Private")
    space = account.spaces[key] = Space(owner, sharing, status="Pending", tags=_tags(request))
    _settle(request, space)
    return {"SpaceArn": space_resource(request).arn}


def delete_space(request: Request) -> dict[str, Any]:
    account = request.account
    key = request.given["DomainId"], request.given["SpaceName"]
    space = account.spaces.get(key)
    if space is None:
        raise ApiError("ResourceNotFound", f"Space {key[1]} does not exist.")
    if space.apps or space.status in {"Pending", "Updating"}:
        raise ApiError("ResourceInUse", f"Space {key[1]} is in use.")
    _delete(request, space, lambda: account.spaces.pop(key, None))
    return {}


def _check_domain(request: Request) -> None:
    domain = request.account.domains.get(request.given["DomainId"])
    if domain is None:
        words = f"Domain {request.given['DomainId']} does not exist."
        raise ApiError("ResourceNotFound", words)
    if domain.status in {"Pending", "Deleting"}:
        raise ApiError("ResourceInUse", f"The domain is {domain.status}")


def _tags(request: Request) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in request.given.get("Tags", ())}


def _settle(request: Request, thing: Domain | Profile | Space, ends: str = "InService") -> None:
    def end() -> None:
        if thing.status == "Pending":
            thing.status = ends

    request.account.timeline.after(request.account.update_time, end)


def _delete(request: Request, thing: Domain | Profile | Space, gone: Callable[[], object]) -> None:
    thing.status = "Deleting"

    def end() -> None:
        gone()

    request.account.timeline.after(request.account.update_time, end)


def _add_groups(request: Request, domain: str, vpc: str) -> None:
    network = request.account.networks.setdefault(request.region, Network())
    number = hashlib.sha256(domain.encode()).hexdigest()[:16]
    ways = {way: f"sg-{number}{at}" for at, way in enumerate(("inbound", "outbound"))}
    for way, ident in ways.items():
        (other,) = set(ways.values()) - {ident}
        rule = {"IpProtocol": "tcp", "FromPort": 2049, "ToPort": 2049, "UserIdGroupPairs": [{"GroupId": other}]}
        group = SecurityGroup(ident, f"security-group-for-{way}-nfs-{domain}", vpc=vpc or VPC)
        group.inbound = [rule] if way == "inbound" else []
        group.outbound = [rule] if way == "outbound" else []
        network.add(group)


OPERATIONS = {
    "CreateDomain": create_domain,
    "DeleteDomain": delete_domain,
    "CreateUserProfile": create_user_profile,
    "DeleteUserProfile": delete_user_profile,
    "CreateSpace": create_space,
    "DeleteSpace": delete_space,
}
