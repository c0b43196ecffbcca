"""User profiles of Studio: whether one has a user number of its own on custom file systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperpod_jlab.aws.domains import custom_file_systems
from hyperpod_jlab.aws.idle_settings import idle_settings
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.idle_shutdown import IdleSettings

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
    told = await aws.call(
        "sagemaker", "DescribeUserProfile", DomainId=domain_id, UserProfileName=name
    )
    settings = told.get("UserSettings") or {}
    posix = settings.get("CustomPosixUserConfig") or {}
    uid = posix.get("Uid")
    return Profile(
        name,
        None if uid in {None, COMMON_UID} else int(uid),
        groups=tuple(settings.get("SecurityGroups") or ()),
        file_systems=custom_file_systems(settings),
        idle=idle_settings(settings),
    )
