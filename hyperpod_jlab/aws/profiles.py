"""User profiles of Studio: whether one has a user number of its own on custom file systems."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.aws.session import Aws

COMMON_UID = 200001
"""What Studio gives every profile that was made without one of its own (CustomPosixUserConfig)."""


@dataclass(frozen=True)
class Profile:
    """A user profile, and its own user number on custom file systems; None: the one that everybody has."""

    name: str
    uid: int | None = None


async def describe_profile(aws: Aws, domain_id: str, name: str) -> Profile:
    """A user profile of a domain.

    Raises:
        NotFoundError: There is no such profile.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call(
        "sagemaker", "DescribeUserProfile", DomainId=domain_id, UserProfileName=name
    )
    posix = (told.get("UserSettings") or {}).get("CustomPosixUserConfig") or {}
    uid = posix.get("Uid")
    return Profile(name, None if uid in {None, COMMON_UID} else int(uid))
