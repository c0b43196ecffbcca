"""Whose a space of Studio is: its metadata often do not say it, SageMaker does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperpod_jlab.aws.idle_settings import idle_settings
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.idle_shutdown import IdleSettings


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
    told = await aws.call("sagemaker", "DescribeSpace", DomainId=domain_id, SpaceName=name)
    mounted = (told.get("SpaceSettings") or {}).get("CustomFileSystems") or ()
    sharing = (told.get("SpaceSharingSettings") or {}).get("SharingType")
    return Space(
        name,
        shared=None if sharing is None else sharing != "Private",
        owner=(told.get("OwnershipSettings") or {}).get("OwnerUserProfileName"),
        file_systems=tuple(
            str(one["FSxLustreFileSystem"]["FileSystemId"])
            for one in mounted
            if one.get("FSxLustreFileSystem")
        ),
        idle=idle_settings(told.get("SpaceSettings")),
    )
