"""Identity of a user and of a shared Studio space. Works without AWS as far as possible, since every command starts with it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.isolation import Identity
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.descent import replace
from hyperpod_jlab.storage.files import to_json
from hyperpod_jlab.storage.owners import Parent, ancestor_folders, current_user
from hyperpod_jlab.storage.partition import Partition

if TYPE_CHECKING:
    from hyperpod_jlab.aws.domains import Profile, Space
    from hyperpod_jlab.aws.file_systems import LustreMount
    from hyperpod_jlab.aws.session import Aws

SPACE_TYPE_VARIABLE = "SAGEMAKER_SPACE_TYPE_LOWERCASE"
"""Variable that Studio's images set to ``private`` or ``shared``."""

_TIMEOUT = 10.0
"""Timeout of a request to AWS, in seconds; then the command continues without the answer."""

_TTL_S, _UNKNOWN_TTL_S = 86_400.0, 300.0
"""TTL of an answer, including an empty one, in seconds: profiles rarely change."""


def shared_space() -> str | None:
    """The name of the shared space of this process; None outside one, or if Studio does not tell."""
    if os.environ.get(SPACE_TYPE_VARIABLE) != "shared":
        return None
    studio = find_studio()
    return None if studio is None else studio.space or "of Studio"


def private_reason(mount: LustreMount) -> str | None:
    """Why a mount is private in this shared space; None if it is not.

    A partition belongs to a user profile if its folder has the name of a profile of the domain. SageMaker is queried once a day; until it answers, the
    partition counts as private.
    """
    studio, name = find_studio(), PurePosixPath(mount.folder).name
    if studio is None or not name:
        return None
    is_private = True if name == studio.user_profile else _is_profile(studio, name)
    if is_private is None:
        return f"it is unknown whether {mount.folder} belongs to a user profile"
    return f"it is the private partition of {name}" if is_private else None


def _is_profile(studio: Studio, name: str) -> bool | None:
    """Whether the domain has a user profile of this name; None if unknown."""
    file, key = _cache(), f"{studio.domain_id}/{name}"
    cached = _read(file)
    entry = cached.get(key)
    if entry is not None and time.time() - entry[1] < (_TTL_S if entry[0] is not None else _UNKNOWN_TTL_S):
        return entry[0]
    exists = _ask_sagemaker(studio, name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace(file, to_json({**cached, key: [exists, time.time()]}))
    except (OSError, StorageError):
        pass  # retried at the next call
    return exists


def _ask_sagemaker(studio: Studio, name: str) -> bool | None:
    """SageMaker's answer. Runs in its own thread, since the caller may already have an event loop."""
    import asyncio
    import threading

    from hyperpod_jlab.aws.domains import describe_profile
    from hyperpod_jlab.aws.session import Aws

    results: list[bool | None] = []

    async def ask() -> bool | None:
        if studio.domain_id is None:
            return None
        try:
            async with asyncio.timeout(_TIMEOUT):
                await describe_profile(Aws(), studio.domain_id, name)
        except HyperpodError as error:
            return False if error.code == "not_found" else None
        except TimeoutError:
            return None
        return True

    thread = threading.Thread(target=lambda: results.append(asyncio.run(ask())))
    thread.start()
    thread.join()
    return results[0] if results else None


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "hyperpod-jlab" / "profiles.json"


def _read(file: Path) -> dict[str, tuple[bool | None, float]]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        return {str(key): (value, float(read_at)) for key, (value, read_at) in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


# --------------------------------------------------------------------------------------------------
# The user id on file systems, and the space, according to Studio, SageMaker and the machine.

T = TypeVar("T")

_SHARED_ACCOUNTS = frozenset({"root", "ubuntu", "ec2-user", "sagemaker-user"})
"""Default accounts of images: they exist on every machine and identify no user."""

_PER_CALL_CODES = frozenset({"missing_right", "not_found", "aws_invalid_input", "boto3_too_old"})
"""Error codes after which other requests may still succeed."""

_UNAVAILABLE_CODES = frozenset({"aws_failed", "aws_throttled", "aws_unreachable"})
"""Error codes that stop further requests to this service, but not to others."""


@dataclass
class IdentityQueries:
    """Requests to AWS that may each fail and then leave a note; a service that does not answer is not queried again.

    Attributes:
        aws: The AWS client; None: no requests.
        notes: What is missing, one sentence each.
    """

    aws: Aws | None
    notes: list[str] = field(default_factory=list)
    _unavailable: dict[str, HyperpodError] = field(default_factory=dict)

    async def about(self, service: str, topic: str, response: Awaitable[T]) -> T | HyperpodError | None:
        """A service's answer, or the error. None if no request was made."""
        if self.aws is None or service in self._unavailable:
            if hasattr(response, "close"):
                response.close()
            return self._unavailable.get(service)
        try:
            return await response
        except HyperpodError as error:
            if error.code != "not_found":
                self.notes.append(f"{topic}: {error.message}")
            if error.code in _UNAVAILABLE_CODES:
                self._unavailable[service] = error
            elif error.code not in _PER_CALL_CODES:
                self.aws = None
            return error


@dataclass(frozen=True)
class UserIdentity:
    """The user's identity.

    Attributes:
        on_network: Identity on file systems that other machines mount.
        on_disk: Identity on this machine's own file systems.
        space: The Studio space; None outside Studio.
        profile: Name of the user profile that owns it, if known.
    """

    on_network: Identity
    on_disk: Identity
    space: Space | None = None
    profile: str | None = None

    @property
    def in_shared_space(self) -> bool:
        """Whether several people share this identity."""
        return self.space is not None and bool(self.space.shared)


async def find_user_identity(studio: Studio | None, queries: IdentityQueries) -> UserIdentity:
    """The user's identity: from Studio's metadata, else from SageMaker, else from the machine."""
    uid, name = os.geteuid(), current_user()
    own_disk = Identity(True, f"you are {name} (uid {uid}) here")
    if studio is None:
        return UserIdentity(_local_identity(name, uid), own_disk)
    space = await _space(studio, queries)
    if space is not None and space.shared:
        acting = Identity(False, "this space is shared: all its users act as the space")
        return UserIdentity(acting, acting, space, space.owner)
    owner = studio.user_profile or (space.owner if space else None)
    return UserIdentity(await _profile_identity(studio, owner, queries), own_disk, space, owner)


async def find_profile(studio: Studio | None, name: str, queries: IdentityQueries) -> Profile | None:
    """The user profile of this name in the domain; None if it does not exist or is unknown."""
    if studio is None or studio.domain_id is None or queries.aws is None:
        return None
    from hyperpod_jlab.aws.domains import Profile, describe_profile

    profile = await queries.about(
        "sagemaker", f"the user profile {name}", describe_profile(queries.aws, studio.domain_id, name)
    )
    return profile if isinstance(profile, Profile) else None


async def _space(studio: Studio, queries: IdentityQueries) -> Space | None:
    if studio.space is None:
        return None
    from hyperpod_jlab.aws.domains import Space, describe_space

    kind = os.environ.get(SPACE_TYPE_VARIABLE)
    default = Space(studio.space, shared=None if kind is None else kind == "shared")
    if studio.domain_id is None or queries.aws is None:
        return default
    space = await queries.about("sagemaker", "the space", describe_space(queries.aws, studio.domain_id, default.name))
    if not isinstance(space, Space):
        return default
    return Space(space.name, default.shared if space.shared is None else space.shared, space.owner)


async def _profile_identity(studio: Studio, owner: str | None, queries: IdentityQueries) -> Identity:
    """Studio maps the container's user to the profile's own number, or to the one that all others share."""
    from hyperpod_jlab.aws.domains import COMMON_UID, Profile, describe_profile

    reason_text = f"Studio gives every user profile the uid {COMMON_UID} on file systems"
    if owner is None:
        return Identity(False, f"{reason_text}, unless it was created with its own; the owner of this space is unknown")
    if queries.aws is None or studio.domain_id is None:
        return Identity(False, f"{reason_text}; it is unknown whether {owner} was created with its own")
    profile = await queries.about(
        "sagemaker", f"the user profile {owner}", describe_profile(queries.aws, studio.domain_id, owner)
    )
    if not isinstance(profile, Profile):
        return Identity(False, f"{reason_text}; it is unknown whether {owner} was created with its own")
    if profile.uid is None:
        return Identity(False, f"{reason_text}, and {owner} was created without its own")
    return Identity(True, f"the user profile {owner} was created with its own uid, {profile.uid}")


def _local_identity(name: str, uid: int) -> Identity:
    if name in _SHARED_ACCOUNTS:
        return Identity(False, f"you are {name} (uid {uid}), an account that all users share")
    return Identity(True, f"you are {name} (uid {uid}); it is unknown whether others use this account too")


# --------------------------------------------------------------------------------------------------
# Whether the administrator's choice of a private or shared partition really protects this user's
# runs from other users.

OWN_UID_HINT = "all users here have the same uid, so only the path that each profile mounts separates them; give each user profile its own uid (CustomPosixUserConfig) when you create it"
"""Note for partitions on which all users share one user id."""


@dataclass(frozen=True)
class Separation:
    """Whether other users can replace or write this user's files.

    Attributes:
        parents: The partition's root and the folders above it, from ``/`` on.
        holds: Whether only root and this user can replace or write our folder.
        reason: Why it does not hold; None if it does.
        fix: How to fix it.
        old_runs: Number of this user's runs in the old layout, which `holds` does not cover.
    """

    parents: tuple[Parent, ...]
    holds: bool
    reason: str | None = None
    fix: str | None = None
    old_runs: int = 0

    @property
    def sentences(self) -> list[str]:
        """Notes for the user; empty if all is well."""
        sentences_ = []
        if not self.holds:
            sentences_.append(f"other users can reach your runs: {self.reason}. {self.fix}")
        if self.old_runs:
            sentences_.append(
                f"{self.old_runs} of your runs are in the old layout, where other users may replace them: run hpj storage migrate"
            )
        return sentences_


def separation_of(partition: Partition, identity: Identity) -> Separation:
    """Check the separation of a partition for this user. May block.

    Args:
        partition: The partition.
        identity: Whether this user has their own user id there.

    Raises:
        OSError: The partition's root cannot be read.
    """
    parent_folders = tuple(ancestor_folders(partition.root))
    from hyperpod_jlab.storage.migration import runs_in_old_layout

    old_run_count = sum(1 for _ in runs_in_old_layout(partition))
    trusted = {"foreign", "open", "group"} if partition.shared else {"foreign", "open"}
    bad = next((parent for parent in parent_folders if parent.problem in trusted), None)
    if bad is not None:
        return Separation(parent_folders, False, f"{bad.path} {bad.reason}", bad.fix, old_run_count)
    problem = _own_folder_problem(partition.folder)
    if problem is not None:
        fix = "set path under [storage] in the configuration to another folder, or ask an administrator to remove this one"
        return Separation(parent_folders, False, problem, fix, old_run_count)
    if not identity.own:
        return Separation(parent_folders, False, identity.evidence, OWN_UID_HINT, old_run_count)
    return Separation(parent_folders, True, old_runs=old_run_count)


def _own_folder_problem(folder: Path) -> str | None:
    try:
        owner = descent.state(folder).st_uid
    except OSError:  # does not exist yet
        return None
    if owner != os.getuid():
        return f"{folder} belongs to another user (uid {owner})"
    return None if descent.is_folder(folder) else f"{folder} is not a folder"
