"""A domain of Studio with a user profile, a space and a lifecycle configuration that are made to try something, and deleted.

All of them have one name, which begins with `PREFIX`, and from the call that makes them on a tag of the same value, so that what is left of a run that
was killed is found. What is not called so, or does not have the tag, is never touched.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hyperpod_jlab.admin.patience import PatientAws
from hyperpod_jlab.admin.there import PASSING, SETTLED
from hyperpod_jlab.admin.verify.ground import Ground
from hyperpod_jlab.admin.verify.journal import Journal
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError, RefusedError, UnreachableError

T = TypeVar("T")
Tell = Callable[[str], None]
"""Says what is done next, before it is done."""

PREFIX = "hyperpod-jlab-verify-"
"""Begin of the names of all that is made."""

TAG = "hyperpod-jlab-verify"
"""The tag on all that is made; its value is the name."""

LONGEST = 1200.0
"""Seconds until something that is made or deleted is given up: a domain takes some minutes."""

LOOK = 5.0
"""Most seconds between two looks; the first ones come sooner."""

_SCRIPT = base64.b64encode(b"#!/bin/sh\nexit 0\n").decode()


@dataclass(frozen=True)
class Place:
    """Where a throw-away domain is put: a VPC with some of its subnets, and the role that its people would have."""

    vpc: str
    subnets: tuple[str, ...]
    role: str


async def find_place(
    ground: Ground, vpc: str | None, subnets: Sequence[str], role: str | None
) -> Place:
    """The place that was named; what was not is taken from a domain that is there.

    Raises:
        InvalidInputError: There is no such domain, and not all was named.
        HyperpodError: See `aws.errors`.
    """
    if vpc and subnets and role:
        return Place(vpc, tuple(subnets), role)
    domain = await ground.some_domain()
    if domain is None:
        raise InvalidInputError(
            "there is no domain of Studio in this region to take VPC, subnets and role from",
            hint="name all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    told = await ground.aws.call("sagemaker", "DescribeDomain", DomainId=domain)
    theirs = (told.get("DefaultUserSettings") or {}).get("ExecutionRole")
    found = vpc or told.get("VpcId")
    # Subnets of another VPC are of no use.
    near = subnets or (told.get("SubnetIds", ()) if found == told.get("VpcId") else ())
    if vpc is not None and not near:
        raise InvalidInputError(
            f"{vpc} is not the VPC of the domain {domain}, so its subnets are not known",
            hint="name them with --subnet",
            detail={"field": "subnets"},
        )
    if not (found and near and (role or theirs)):
        raise InvalidInputError(
            f"the domain {domain} has no VPC, subnets and role of its own to take",
            hint="name all three: --vpc vpc-... --subnet subnet-... --role arn:aws:iam::...:role/...",
            detail={"field": "vpc"},
        )
    return Place(str(found), tuple(near), str(role or theirs))


class ThrowAway:
    """What is made.

    Args:
        aws: AWS, as the caller.
        place: Where the domain is put.
        journal: Where it is noted.
        tell: Says what is made, before it is.
    """

    def __init__(self, aws: Aws, place: Place, journal: Journal, tell: Tell) -> None:
        self._aws = aws
        self._journal = journal
        self._tell = tell
        self.place = place
        self.name = f"{PREFIX}{secrets.token_hex(4)}"
        self.domain = ""
        self.script = ""
        self._tags = [{"Key": TAG, "Value": self.name}]

    def words(self) -> list[str]:
        """What will be made, a line each."""
        where = f"{self.place.vpc}, {', '.join(self.place.subnets)}"
        return [
            f"the lifecycle configuration {self.name} (it does nothing)",
            f"the domain of Studio {self.name} in {where}, with the role {self.place.role}; SageMaker adds an EFS file system and two security groups",
            f"in it a user profile and a space, both {self.name}; no application is started",
        ]

    async def make(self) -> None:
        """Make all of it but the space.

        Raises:
            StorageError: It cannot be noted, so nothing was made.
            HyperpodError: See `aws.errors`; what was made by then is there.
        """
        self._journal.begin(self.name)
        self._tell(f"make the lifecycle configuration {self.name}")
        told = await self._made(
            "CreateStudioLifecycleConfig",
            StudioLifecycleConfigName=self.name,
            StudioLifecycleConfigContent=_SCRIPT,
            StudioLifecycleConfigAppType="JupyterLab",
            Tags=self._tags,
        )
        self.script = str(told["StudioLifecycleConfigArn"])
        self._tell(f"make the domain {self.name} in {self.place.vpc} (this takes some minutes)")
        told = await self._made(
            "CreateDomain",
            DomainName=self.name,
            AuthMode="IAM",
            VpcId=self.place.vpc,
            SubnetIds=list(self.place.subnets),
            DefaultUserSettings={"ExecutionRole": self.place.role},
            Tags=self._tags,
        )
        self.domain = str(told.get("DomainId") or str(told["DomainArn"]).rpartition("/")[2])
        self._journal.add(self.name, self.domain)
        inside: dict[str, Any] = {"DomainId": self.domain}
        await settled(self._aws, "DescribeDomain", **inside)
        self._tell(f"make the user profile {self.name} in the domain {self.domain}")
        inside["UserProfileName"] = self.name
        await self._made("CreateUserProfile", **inside, Tags=self._tags)
        await settled(self._aws, "DescribeUserProfile", **inside)

    async def make_space(self) -> None:
        """Make a space of the user profile.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        self._tell(f"make the space {self.name} in the domain {self.domain}")
        inside = {"DomainId": self.domain, "SpaceName": self.name}
        await self._made(
            "CreateSpace",
            **inside,
            OwnershipSettings={"OwnerUserProfileName": self.name},
            SpaceSharingSettings={"SharingType": "Private"},
            SpaceSettings={"AppType": "JupyterLab"},
            Tags=self._tags,
        )
        await settled(self._aws, "DescribeSpace", **inside)

    async def _made(self, operation: str, **given: Any) -> dict[str, Any]:
        return await to_its_end(self._aws.call("sagemaker", operation, **given))


async def to_its_end(call: Awaitable[T]) -> T:
    """Wait for a call. Where this is cancelled meanwhile, the call is waited for all the same: what it makes has to be known before it is looked for."""
    task = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await task
        raise


async def settled(aws: Aws, operation: str, **given: Any) -> dict[str, Any]:
    """Wait until SageMaker is done with something; its description then.

    Raises:
        RefusedError: It failed.
        UnreachableError: SageMaker did not come to an end.
        HyperpodError: See `aws.errors`.
    """
    patient = PatientAws(aws)
    async for _ in looks(operation.removeprefix("Describe")):
        told = await patient.call("sagemaker", operation, **given)
        if told["Status"] == SETTLED:
            return told
        if told["Status"] not in PASSING:
            raise RefusedError(
                f"SageMaker says {told['Status']}: {told.get('FailureReason') or 'no reason'}",
                code="not_in_service",
            )
    raise AssertionError  # `looks` ends with an error


async def looks(words: str) -> AsyncIterator[None]:
    """Times to look at something, ever further apart.

    Raises:
        UnreachableError: It takes too long.
    """
    deadline, pause = time.monotonic() + LONGEST, 0.1
    while time.monotonic() < deadline:
        yield
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LOOK)
    raise UnreachableError(
        f"SageMaker has been at work on the {words} for {LONGEST:.0f} s",
        code="still_updating",
        hint="later: hpj admin verify-aws --clean-up",
    )
