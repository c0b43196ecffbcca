"""Domains of Studio: where their applications are in the network, and which file systems they may mount."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.studio import APPS, IdleSettings

# --------------------------------------------------------------------------------------------------
# Idle shutdown in the settings of domains, user profiles and spaces of Studio.

_MANAGED = {"ENABLED": True, "DISABLED": False}


def idle_settings(settings: Mapping[str, Any] | None) -> dict[str, IdleSettings]:
    """What settings say of idle shutdown, by the application's type in Studio's metadata; those of which they say nothing are left out.

    Args:
        settings: `DefaultUserSettings`, `DefaultSpaceSettings`, `UserSettings` or `SpaceSettings`, as the API has them.
    """
    by_app = {}
    for app in APPS:
        of_app = (settings or {}).get(f"{app}AppSettings") or {}
        idle = (of_app.get("AppLifecycleManagement") or {}).get("IdleSettings")
        if idle:
            managed = _MANAGED.get(str(idle.get("LifecycleManagement")))
            by_app[app] = IdleSettings(managed, idle.get("IdleTimeoutInMinutes"))
    return by_app


@dataclass(frozen=True)
class Domain:
    """A domain.

    Attributes:
        name: Its id.
        status: AWS' word for its state, such as ``InService``.
        network: ``VpcOnly`` or ``PublicInternetOnly``: how its applications reach the internet and AWS.
        vpc: Its VPC.
        subnets: Its subnets.
        groups: The security groups that users' applications have, unless their profiles name others.
        file_systems: The file systems of FSx for Lustre that users may mount, and the folder of each.
        shared_file_systems: The same of its shared spaces.
        problem: Why it does not work.
        idle: Its idle shutdown of users' applications, by the application's type.
        shared_idle: The same of its shared spaces.
    """

    name: str
    status: str
    network: str | None = None
    vpc: str | None = None
    subnets: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    file_systems: tuple[tuple[str, str], ...] = ()
    shared_file_systems: tuple[tuple[str, str], ...] = ()
    problem: str | None = None
    idle: Mapping[str, IdleSettings] = field(default_factory=dict)
    shared_idle: Mapping[str, IdleSettings] = field(default_factory=dict)


async def describe_domain(aws: Aws, name: str) -> Domain:
    """A domain by its id.

    Raises:
        NotFoundError: There is no such domain.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeDomain", DomainId=name)
    users, spaces = (
        response.get("DefaultUserSettings") or {},
        response.get("DefaultSpaceSettings") or {},
    )
    return Domain(
        name,
        status=str(response.get("Status", "")),
        network=response.get("AppNetworkAccessType"),
        vpc=response.get("VpcId"),
        subnets=tuple(response.get("SubnetIds") or ()),
        groups=tuple(users.get("SecurityGroups") or ()),
        file_systems=custom_file_systems(users),
        shared_file_systems=custom_file_systems(spaces),
        problem=response.get("FailureReason"),
        idle=idle_settings(users),
        shared_idle=idle_settings(spaces),
    )


def custom_file_systems(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The file systems of FSx for Lustre in the settings of a user or space: id and folder."""
    file_systems = (
        config.get("FSxLustreFileSystemConfig")
        for config in settings.get("CustomFileSystemConfigs") or ()
    )
    return tuple(
        (str(config["FileSystemId"]), str(config.get("FileSystemPath") or "/"))
        for config in file_systems
        if config
    )


# --------------------------------------------------------------------------------------------------
# User profiles of Studio: whether one has a user number of its own on custom file systems.

COMMON_UID = 200001
"""What Studio gives every profile that was made without one of its own (CustomPosixUserConfig)."""


@dataclass(frozen=True)
class Profile:
    """A user profile.

    Attributes:
        name: Its name.
        uid: Its own user number on custom file systems; None: the one that everybody has.
        groups: The security groups that its applications have; empty: those of the domain.
        file_systems: The file systems of FSx for Lustre that it may mount besides the domain's, and the folder of each.
        idle: Its idle shutdown, by the application's type.
    """

    name: str
    uid: int | None = None
    groups: tuple[str, ...] = ()
    file_systems: tuple[tuple[str, str], ...] = ()
    idle: Mapping[str, IdleSettings] = field(default_factory=dict)


async def describe_profile(aws: Aws, domain_id: str, name: str) -> Profile:
    """A user profile of a domain.

    Raises:
        NotFoundError: There is no such profile.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call(
        "sagemaker", "DescribeUserProfile", DomainId=domain_id, UserProfileName=name
    )
    settings = response.get("UserSettings") or {}
    posix = settings.get("CustomPosixUserConfig") or {}
    uid = posix.get("Uid")
    return Profile(
        name,
        None if uid in {None, COMMON_UID} else int(uid),
        groups=tuple(settings.get("SecurityGroups") or ()),
        file_systems=custom_file_systems(settings),
        idle=idle_settings(settings),
    )


# --------------------------------------------------------------------------------------------------
# Whose a space of Studio is: its metadata often do not say it, SageMaker does.


@dataclass(frozen=True)
class Space:
    """A space.

    Attributes:
        name: Its name.
        shared: Whether several people work in it and act as the space; None where SageMaker does not say it.
        owner: The user profile that it belongs to; None where SageMaker does not say it.
        file_systems: The file systems of FSx for Lustre that it mounts when it starts, by their ids.
        idle: Its idle shutdown, by the application's type; it says no more than the minutes.
    """

    name: str
    shared: bool | None = None
    owner: str | None = None
    file_systems: tuple[str, ...] = ()
    idle: Mapping[str, IdleSettings] = field(default_factory=dict)


async def describe_space(aws: Aws, domain_id: str, name: str) -> Space:
    """A space of a domain.

    Raises:
        NotFoundError: There is no such space.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeSpace", DomainId=domain_id, SpaceName=name)
    mounted = (response.get("SpaceSettings") or {}).get("CustomFileSystems") or ()
    sharing = (response.get("SpaceSharingSettings") or {}).get("SharingType")
    return Space(
        name,
        shared=None if sharing is None else sharing != "Private",
        owner=(response.get("OwnershipSettings") or {}).get("OwnerUserProfileName"),
        file_systems=tuple(
            str(config["FSxLustreFileSystem"]["FileSystemId"])
            for config in mounted
            if config.get("FSxLustreFileSystem")
        ),
        idle=idle_settings(response.get("SpaceSettings")),
    )
