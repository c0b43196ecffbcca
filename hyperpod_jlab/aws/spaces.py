"""Whose a space of Studio is: its metadata often do not say it, SageMaker does."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.aws.session import Aws


@dataclass(frozen=True)
class Space:
    """A space.

    Attributes:
        name: Its name.
        shared: Whether several people work in it and act as the space; None where SageMaker does not say it.
        owner: The user profile that it belongs to; None where SageMaker does not say it.
        file_systems: The file systems of FSx for Lustre that it mounts when it starts, by their ids.
    """

    name: str
    shared: bool | None = None
    owner: str | None = None
    file_systems: tuple[str, ...] = ()


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
    )
