"""Studio domains: the network location of their applications, and the file systems that they may mount."""

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
    """The idle shutdown settings, by the application's type in Studio's metadata; types without settings are omitted.

    Args:
        settings: ``DefaultUserSettings``, ``DefaultSpaceSettings``, ``UserSettings`` or ``SpaceSettings``, as in the API.
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
        status: Its state as AWS reports it, such as ``InService``.
        network: ``VpcOnly`` or ``PublicInternetOnly``: how its applications reach the internet and AWS.
        vpc: Its VPC.
        subnets: Its subnets.
        groups: The security groups of users' applications, unless their profiles name others.
        file_systems: The FSx for Lustre file systems that users may mount, with the folder of each.
        shared_file_systems: The same for its shared spaces.
        problem: Why it does not work.
        idle: Idle shutdown of users' applications, by the application's type.
        shared_idle: The same for its shared spaces.
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
        NotFoundError: The domain does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeDomain", DomainId=name)
    users, spaces = (response.get("DefaultUserSettings") or {}, response.get("DefaultSpaceSettings") or {})
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
    """The FSx for Lustre file systems in the settings of a user or space: id and folder."""
    file_systems = (config.get("FSxLustreFileSystemConfig") for config in settings.get("CustomFileSystemConfigs") or ())
    return tuple(
        (str(config["FileSystemId"]), str(config.get("FileSystemPath") or "/")) for config in file_systems if config
    )


# --------------------------------------------------------------------------------------------------
# Studio user profiles: whether one has its own uid on custom file systems.

COMMON_UID = 200001
"""Studio's default uid for profiles without one of their own (CustomPosixUserConfig)."""


@dataclass(frozen=True)
class Profile:
    """A user profile.

    Attributes:
        name: Its name.
        uid: Its own uid on custom file systems; None: the shared default.
        groups: The security groups of its applications; empty: those of the domain.
        file_systems: The FSx for Lustre file systems that it may mount besides the domain's, with the folder of each.
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
        NotFoundError: The profile does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeUserProfile", DomainId=domain_id, UserProfileName=name)
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
# Owners of Studio spaces: a space's metadata often lack the owner, SageMaker knows it.


@dataclass(frozen=True)
class Space:
    """A space.

    Attributes:
        name: Its name.
        shared: Whether several people work in it and act as the space; None if SageMaker does not report it.
        owner: The user profile that owns it; None if SageMaker does not report it.
        file_systems: The ids of the FSx for Lustre file systems that it mounts at startup.
        idle: Its idle shutdown, by the application's type; only has the minutes.
    """

    name: str
    shared: bool | None = None
    owner: str | None = None
    file_systems: tuple[str, ...] = ()
    idle: Mapping[str, IdleSettings] = field(default_factory=dict)


async def describe_space(aws: Aws, domain_id: str, name: str) -> Space:
    """A space of a domain.

    Raises:
        NotFoundError: The space does not exist.
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
