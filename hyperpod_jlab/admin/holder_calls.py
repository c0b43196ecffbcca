"""Lists of a domain, a profile or a space at SageMaker: described, waited for, and written."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.admin.entries import Entry
from hyperpod_jlab.admin.patience import PatientAws, is_in_use, passes
from hyperpod_jlab.admin.there import PASSING, SETTLED, Holder, HolderKind
from hyperpod_jlab.model.errors import ConflictError, RefusedError, UnreachableError

LONGEST_WAIT = 600.0
"""Seconds until something that SageMaker updates is given up: AWS' own samples wait as long."""

LOOK = 2.0
"""Seconds between two looks whether SageMaker is done, once it has taken long; the first ones come sooner."""

TRIES = 8
"""Times that a setting is written where others write it at the same time."""

_SOON = 0.1

_DESCRIBED: Mapping[HolderKind, tuple[str, str | None]] = {
    "domain": ("DescribeDomain", None),
    "space defaults": ("DescribeDomain", None),
    "profile": ("DescribeUserProfile", "UserProfileName"),
    "space": ("DescribeSpace", "SpaceName"),
}
"""How each kind is described: the operation, and the member that names one."""

_PLACES: Mapping[HolderKind, tuple[str, str]] = {
    "domain": ("DefaultUserSettings", "CustomFileSystemConfigs"),
    "space defaults": ("DefaultSpaceSettings", "CustomFileSystemConfigs"),
    "profile": ("UserSettings", "CustomFileSystemConfigs"),
    "space": ("SpaceSettings", "CustomFileSystems"),
}
"""Where each kind has its list, in the description and in the update."""


class HolderCalls:
    """Calls on what has lists of file systems.

    Args:
        aws: AWS in the domain's region.
        domain: The domain's id.
        look: Most seconds between two looks whether SageMaker is done.
    """

    def __init__(self, aws: PatientAws, domain: str, look: float) -> None:
        self._aws = aws
        self._domain = domain
        self._look = look

    async def settled(self, holder: Holder) -> dict[str, Any]:
        """Wait until SageMaker is done with it; its description then.

        Raises:
            UnreachableError: SageMaker did not come to an end.
            RefusedError: It failed.
        """
        deadline, pause = time.monotonic() + LONGEST_WAIT, _SOON
        while True:
            told = await self.described(holder)
            status = str(told["Status"])
            if status == SETTLED:
                return told
            if status not in PASSING:
                raise RefusedError(
                    f"SageMaker says of the {holder.words}: {status}",
                    code="not_in_service",
                    hint=str(
                        told.get("FailureReason") or "its page in SageMaker's console says why"
                    ),
                )
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"SageMaker has been at work on the {holder.words} for {LONGEST_WAIT:.0f} s",
                    code="still_updating",
                    hint="run this again later: it goes on where it was",
                )
            await asyncio.sleep(min(pause, self._look))
            pause *= 1.5

    async def described(self, holder: Holder) -> dict[str, Any]:
        """What SageMaker says of it.

        Raises:
            NotFoundError: It is not there any more.
            HyperpodError: See `aws.errors`.
        """
        operation, name = _DESCRIBED[holder.kind]
        given = {name: holder.name} if name else {}
        return await self._aws.call("sagemaker", operation, DomainId=self._domain, **given)

    async def update(
        self, holder: Holder, told: Mapping[str, Any], member: str, value: Any
    ) -> None:
        """Write one member of its settings.

        Args:
            holder: Whose settings they are.
            told: Its description.
            member: The member.
            value: All that the member is to be: SageMaker replaces it.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        settings = _PLACES[holder.kind][0]
        given: dict[str, Any] = {settings: {member: value}}
        if holder.kind == "space defaults":
            # SageMaker takes these only with a role; the users' is what spaces have without one.
            role = (told.get(settings) or {}).get("ExecutionRole") or (
                told.get("DefaultUserSettings") or {}
            ).get("ExecutionRole")
            if role:
                given[settings]["ExecutionRole"] = role
        operation = {"profile": "UpdateUserProfile", "space": "UpdateSpace"}.get(
            holder.kind, "UpdateDomain"
        )
        name = _DESCRIBED[holder.kind][1]
        if name:
            given[name] = holder.name
        await self._aws.call("sagemaker", operation, DomainId=self._domain, **given)

    async def was_in_the_way(self, error: ConflictError | UnreachableError) -> None:
        """Wait a moment after an update that may be tried again: somebody else has begun one, or the answer to ours was lost.

        Raises:
            HyperpodError: It is something else.
        """
        if not (is_in_use(error) or (isinstance(error, UnreachableError) and passes(error))):
            raise error
        await asyncio.sleep(self._look)


def list_of(holder: Holder, told: Mapping[str, Any]) -> list[Entry]:
    """The list of file systems in a description."""
    return list(settings_of(holder, told).get(member_of(holder.kind)) or ())


def settings_of(holder: Holder, told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings in a description."""
    return told.get(_PLACES[holder.kind][0]) or {}


def member_of(kind: HolderKind) -> str:
    """What the list is called in its settings."""
    return _PLACES[kind][1]
