"""Whose user number this is on file systems, and whose space: what Studio, SageMaker and the machine say."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

from hyperpod_jlab.aws.profiles import COMMON_UID, Profile, describe_profile
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.spaces import Space, describe_space
from hyperpod_jlab.aws.studio import Studio
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.isolation import Identity
from hyperpod_jlab.services.shared_space import KIND
from hyperpod_jlab.storage.users import current_user

T = TypeVar("T")

_EVERYBODYS = frozenset({"root", "ubuntu", "ec2-user", "sagemaker-user"})
"""Accounts that images come with: on every machine, and nobody's own."""

_ONE_ONLY = frozenset({"missing_right", "not_found", "aws_invalid_input", "boto3_too_old"})
"""Codes of errors after which other questions may still be answered."""

_SILENT = frozenset({"aws_failed", "aws_throttled", "aws_unreachable"})
"""Codes of errors after which this service is not asked again, and others are."""


@dataclass
class Asked:
    """Questions to AWS, of which each may fail and leaves a note then; a service that does not answer is asked no more.

    Attributes:
        aws: Whom to ask; None: nobody.
        notes: What could not be had, a sentence each.
    """

    aws: Aws | None
    notes: list[str] = field(default_factory=list)
    _silent: dict[str, HyperpodError] = field(default_factory=dict)

    async def about(
        self, service: str, what: str, answer: Awaitable[T]
    ) -> T | HyperpodError | None:
        """An answer of a service, or the error that came instead. None when nobody was asked."""
        if self.aws is None or service in self._silent:
            if hasattr(answer, "close"):
                answer.close()
            return self._silent.get(service)
        try:
            return await answer
        except HyperpodError as error:
            if error.code != "not_found":
                self.notes.append(f"{what}: {error.message}")
            if error.code in _SILENT:
                self._silent[service] = error
            elif error.code not in _ONE_ONLY:
                self.aws = None
            return error


@dataclass(frozen=True)
class Whose:
    """Who this is.

    Attributes:
        on_network: Identity on file systems that other machines mount.
        on_disk: Identity on this machine's own.
        space: The space of Studio; None elsewhere.
        profile: Name of the user profile that it belongs to, where that is known.
    """

    on_network: Identity
    on_disk: Identity
    space: Space | None = None
    profile: str | None = None

    @property
    def in_shared_space(self) -> bool:
        """Whether several people act as this one."""
        return self.space is not None and bool(self.space.shared)


async def find_whose(studio: Studio | None, asked: Asked) -> Whose:
    """Who this is, by Studio's metadata, by SageMaker where it answers, else by the machine."""
    uid, name = os.geteuid(), current_user()
    own_disk = Identity(True, f"you are {name} (uid {uid}) here")
    if studio is None:
        return Whose(_of_machine(name, uid), own_disk)
    space = await _space(studio, asked)
    if space is not None and space.shared:
        acting = Identity(False, "this space is shared: everybody in it acts as the space")
        return Whose(acting, acting, space, space.owner)
    owner = studio.user_profile or (space.owner if space else None)
    return Whose(await _of_profile(studio, owner, asked), own_disk, space, owner)


async def find_profile(studio: Studio | None, name: str, asked: Asked) -> Profile | None:
    """The user profile of a name in this domain; None when there is none, or nobody says."""
    if studio is None or studio.domain_id is None or asked.aws is None:
        return None
    found = await asked.about(
        "sagemaker", f"the user profile {name}", describe_profile(asked.aws, studio.domain_id, name)
    )
    return found if isinstance(found, Profile) else None


async def _space(studio: Studio, asked: Asked) -> Space | None:
    if studio.space is None:
        return None
    kind = os.environ.get(KIND)
    bare = Space(studio.space, shared=None if kind is None else kind == "shared")
    if studio.domain_id is None or asked.aws is None:
        return bare
    found = await asked.about(
        "sagemaker", "the space", describe_space(asked.aws, studio.domain_id, bare.name)
    )
    if not isinstance(found, Space):
        return bare
    return Space(found.name, bare.shared if found.shared is None else found.shared, found.owner)


async def _of_profile(studio: Studio, owner: str | None, asked: Asked) -> Identity:
    """Studio maps the container's user to the profile's own number, or to the one that all others share."""
    common = f"Studio gives every user profile the uid {COMMON_UID} on file systems"
    if owner is None:
        return Identity(
            False, f"{common}, unless it was made with its own; whose this is is not known"
        )
    if asked.aws is None or studio.domain_id is None:
        return Identity(False, f"{common}; whether {owner} was made with its own is not known")
    found = await asked.about(
        "sagemaker",
        f"the user profile {owner}",
        describe_profile(asked.aws, studio.domain_id, owner),
    )
    if not isinstance(found, Profile):
        return Identity(False, f"{common}; whether {owner} was made with its own is not known")
    if found.uid is None:
        return Identity(False, f"{common}, and {owner} was made without one of its own")
    return Identity(True, f"the user profile {owner} was made with a uid of its own, {found.uid}")


def _of_machine(name: str, uid: int) -> Identity:
    if name in _EVERYBODYS:
        return Identity(False, f"you are {name} (uid {uid}), an account that everybody shares")
    return Identity(
        True, f"you are {name} (uid {uid}); that nobody else is cannot be seen from here"
    )
