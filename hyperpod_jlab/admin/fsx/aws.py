"""Reading what is there from AWS: SageMaker's domain with its profiles and spaces, FSx' file system, EC2's network interfaces."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from hyperpod_jlab.admin.fsx import models as lists
from hyperpod_jlab.admin.fsx.models import (
    PASSING,
    SETTLED,
    ActualState,
    Entry,
    FileSystemInterface,
    FsxFileSystem,
    HolderKind,
    Mode,
    MountTarget,
)
from hyperpod_jlab.aws.clusters import list_tags
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)

# --------------------------------------------------------------------------------------------------
# Asking AWS with patience: a wiring of hundreds of profiles is no reason to give up because AWS has too many calls or fails for half a minute.

T = TypeVar("T")

LONGEST = 120.0
"""Seconds for which one call is tried again, beyond the tries of botocore."""

FIRST, MOST = 0.5, 15.0
"""The first pause before a call is tried again, and the longest; each is twice the one before, less up to a half at random."""

_FAILING = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
"""AWS' words for a fault of its own that passes."""


class PatientAws:
    """AWS, asked again where it has too many calls or fails for a while. When it has too many, all that ask through this wait.

    Only calls that may be made twice go through it.

    Args:
        aws: AWS in a region.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._answered: set[str] = set()
        self._not_before = 0.0

    async def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        """Call an operation.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.again(service, lambda: self._aws.call(service, operation, **given))

    async def tags(self, arn: str) -> dict[str, str]:
        """The tags of something of SageMaker.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.again("sagemaker", lambda: list_tags(self._aws, arn))

    async def listed(
        self, service: str, operation: str, member: str, **given: Any
    ) -> list[dict[str, Any]]:
        """All of a list; where a page fails it is begun anew.

        Raises:
            HyperpodError: See `aws.errors`.
        """

        async def ask() -> list[dict[str, Any]]:
            pages = self._aws.pages(service, operation, **given)
            return [one async for page in pages for one in page.get(member) or ()]

        return await self.again(service, ask)

    async def again(self, service: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer, or one that will not change.

        Args:
            service: The service by boto3's name. One that has never answered is not waited for where it cannot be reached at all.
            ask: Asks once, from the beginning.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        deadline, pause = time.monotonic() + LONGEST, FIRST
        while True:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            try:
                found = await ask()
            except UnreachableError as error:
                if not self._passes(service, error) or time.monotonic() > deadline:
                    raise
                wait = pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
                pause = min(2 * pause, MOST)
                if error.code == "aws_throttled":
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                else:
                    await asyncio.sleep(wait)
            else:
                self._answered.add(service)
                return found

    def _passes(self, service: str, error: UnreachableError) -> bool:
        if error.code == "aws_unreachable":
            return service in self._answered
        return passes(error)


def is_in_use(error: HyperpodError | None) -> bool:
    """Whether somebody else is at work on it, or uses it."""
    codes = {"ResourceInUse", "ConflictException"}
    return error is not None and (error.detail or {}).get("aws_code") in codes


def passes(error: UnreachableError) -> bool:
    """Whether AWS has too many calls, or a fault of its own."""
    code = str((error.detail or {}).get("aws_code", ""))
    return error.code == "aws_throttled" or code in _FAILING or (code.isdigit() and code >= "500")


MARK = "hyperpod-jlab"
"""Begin of the names of our tags. On what was wired ``hyperpod-jlab:FILE-SYSTEM`` has the path, so that `destroy` knows what is ours."""

GROUP_NAME = "security-group-for-inbound-nfs-{domain}"
"""The security group with which Studio's applications reach file systems (SageMaker's documentation of custom file systems)."""

_AT_ONCE = 12
"""Calls that are under way at a time."""

_FIRST = 20
"""Profiles that are looked at where only a first look is wanted."""

_RUNNING = frozenset({"InService", "Pending"})


def tag_of(kind: HolderKind, file_system: str) -> str:
    """The name of the tag that marks what was set in a list. A domain has two lists and one set of tags; each file system has its own."""
    return f"{MARK}-spaces:{file_system}" if kind == "space defaults" else f"{MARK}:{file_system}"


def mode_tag(file_system: str) -> str:
    """The name of the tag with the mode that a profile was given alone."""
    return f"{MARK}-mode:{file_system}"


def claim_tag(file_system: str) -> str:
    """The name of the tag on a domain while an apply is under way."""
    return f"{MARK}-apply:{file_system}"


@dataclass(frozen=True)
class ProfileSubset:
    """A part of a domain: what was just made.

    Attributes:
        profiles: Profiles, with their private spaces.
        spaces: Spaces, with the owners of those that are private.
    """

    profiles: frozenset[str] = frozenset()
    spaces: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Question:
    """What is to be read.

    Attributes:
        domain: The domain's id.
        file_system: The file system's id.
        all_tags: Whether tags are asked for also where the file system is in no list: marks that were left by an apply that was broken off. They are
            too where the domain says that there was one.
        among: Only these, and nothing of the domain's own; None: all.
        gone: Whether the file system may have been deleted, so that what names it can still be found.
    """

    domain: str
    file_system: str
    all_tags: bool = False
    among: ProfileSubset | None = None
    gone: bool = False


class StateReader:
    """Reads, a few calls at a time.

    Args:
        aws: AWS in the domain's region.
        question: What is to be read.
        told: Called with the number of profiles and spaces that were read so far, and how many there are.
    """

    def __init__(
        self, aws: Aws, question: Question, told: Callable[[int, int], None] | None = None
    ) -> None:
        self._aws = PatientAws(aws)
        self._question = question
        self._all_tags = question.all_tags
        self._told = told
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._done = self._total = 0

    async def read(self) -> ActualState:
        """What is there; folders are not looked at.

        Raises:
            NotFoundError: There is no such domain or file system.
            HyperpodError: See `aws.errors`.
        """
        domain, file_system, apps = await asyncio.gather(
            self._domain(), self._file_system(), self._apps()
        )
        tags = await self._tags(str(domain["DomainArn"]))
        claim = tags.get(claim_tag(self._question.file_system))
        self._all_tags = self._all_tags or claim is not None
        names, spaces = await self._names()
        self._total = len(names) + len(spaces)
        profiles, rooms, group = await asyncio.gather(
            self._all(self._profile, names, apps),
            self._all(self._space, spaces, apps),
            self._group(str(domain.get("VpcId") or "")),
        )
        return ActualState(
            domain=self._question.domain,
            vpc=str(domain.get("VpcId") or ""),
            subnets=tuple(domain.get("SubnetIds") or ()),
            group=group,
            file_system=file_system,
            holders=(*self._defaults(domain, tags), *profiles, *rooms)
            if self._question.among is None
            else (*profiles, *rooms),
            claim=claim,
        )

    async def first(self) -> tuple[MountTarget, ...]:
        """The domain's own lists and those of its first profiles: a quick look, however many there are.

        Raises:
            NotFoundError: There is no such domain.
            HyperpodError: See `aws.errors`.
        """
        name = self._question.domain
        domain, listed = await asyncio.gather(
            self._domain(),
            self._call("sagemaker", "ListUserProfiles", DomainIdEquals=name, MaxResults=_FIRST),
        )
        names = [str(one["UserProfileName"]) for one in listed.get("UserProfiles") or ()]
        tags, profiles = await asyncio.gather(
            self._tags(str(domain["DomainArn"])), self._all(self._profile, names, {})
        )
        return (*self._defaults(domain, tags), *profiles)

    # ------------------------------------------------------------------------------ the domain

    async def _domain(self) -> dict[str, Any]:
        return await self._call("sagemaker", "DescribeDomain", DomainId=self._question.domain)

    def _defaults(self, told: Mapping[str, Any], tags: Mapping[str, str]) -> list[MountTarget]:
        found: list[MountTarget] = []
        kinds: tuple[tuple[HolderKind, str], ...] = (
            ("domain", "DefaultUserSettings"),
            ("space defaults", "DefaultSpaceSettings"),
        )
        for kind, member in kinds:
            settings = told.get(member) or {}
            entries = tuple(settings.get("CustomFileSystemConfigs") or ())
            mark = tags.get(tag_of(kind, self._question.file_system))
            found.append(
                MountTarget(
                    kind,
                    self._question.domain,
                    str(told["Status"]),
                    entries,
                    mark,
                    arn=str(told["DomainArn"]),
                    app_settings=_app_settings(settings),
                )
            )
        return found

    async def _group(self, vpc: str) -> str | None:
        name = GROUP_NAME.format(domain=self._question.domain)
        filters = [
            {"Name": "group-name", "Values": [name]},
            {"Name": "vpc-id", "Values": [vpc]},
        ]
        told = await self._call("ec2", "DescribeSecurityGroups", Filters=filters)
        return next((str(one["GroupId"]) for one in told.get("SecurityGroups") or ()), None)

    async def _apps(self) -> Mapping[str, tuple[str, ...]]:
        """Kinds of the applications that run, by ``space NAME`` and ``profile NAME``."""
        found: dict[str, list[str]] = defaultdict(list)
        for one in await self._list("ListApps", "Apps"):
            if one.get("Status") not in _RUNNING:
                continue
            for kind, member in (("space", "SpaceName"), ("profile", "UserProfileName")):
                if one.get(member):
                    found[f"{kind} {one[member]}"].append(str(one.get("AppType")))
        return {name: tuple(kinds) for name, kinds in found.items()}

    # ------------------------------------------------------------------------------ profiles and spaces

    async def _names(self) -> tuple[list[str], list[str]]:
        """The names of the profiles and of the spaces that are asked for."""
        profiles, spaces = await asyncio.gather(
            self._list("ListUserProfiles", "UserProfiles"), self._list("ListSpaces", "Spaces")
        )
        names = [str(one["UserProfileName"]) for one in profiles]
        owners = {str(one["SpaceName"]): _listed_owner(one) for one in spaces}
        among = self._question.among
        if among is None:
            return names, list(owners)
        people = among.profiles | {owners.get(name) for name in among.spaces} - {None}
        return (
            [name for name in names if name in people],
            [name for name, owner in owners.items() if name in among.spaces or owner in people],
        )

    async def _list(self, operation: str, member: str) -> list[dict[str, Any]]:
        """All of a list of the domain's."""
        domain = self._question.domain
        return await self._aws.listed("sagemaker", operation, member, DomainIdEquals=domain)

    async def _all(
        self,
        read: Callable[[str, Mapping[str, tuple[str, ...]]], Any],
        names: list[str],
        apps: Mapping[str, tuple[str, ...]],
    ) -> list[MountTarget]:
        async def one(name: str) -> MountTarget | None:
            found: MountTarget | None = None
            with contextlib.suppress(NotFoundError):  # deleted since the list was made
                try:
                    found = await read(name, apps)
                except InvalidInputError:
                    # Tags of what was deleted meanwhile: asked again it is not found.
                    found = await read(name, apps)
            self._done += 1
            if self._told is not None:
                self._told(self._done, self._total)
            return found

        holders = await asyncio.gather(*map(one, names))
        return [holder for holder in holders if holder is not None]

    async def _profile(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> MountTarget:
        told = await self._call(
            "sagemaker",
            "DescribeUserProfile",
            DomainId=self._question.domain,
            UserProfileName=name,
        )
        settings = told.get("UserSettings") or {}
        posix = settings.get("CustomPosixUserConfig") or {}
        entries = tuple(settings.get("CustomFileSystemConfigs") or ())
        arn = str(told["UserProfileArn"])
        tags = await self._marks(arn, entries)
        own = tags.get(mode_tag(self._question.file_system))
        return MountTarget(
            "profile",
            name,
            str(told["Status"]),
            entries,
            tags.get(tag_of("profile", self._question.file_system)),
            uid=posix.get("Uid"),
            gid=posix.get("Gid"),
            apps=apps.get(f"profile {name}", ()),
            arn=arn,
            own_mode=_MODES.get(own or ""),
            app_settings=_app_settings(settings),
        )

    async def _space(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> MountTarget:
        told = await self._call(
            "sagemaker", "DescribeSpace", DomainId=self._question.domain, SpaceName=name
        )
        entries = tuple((told.get("SpaceSettings") or {}).get("CustomFileSystems") or ())
        private = (told.get("SpaceSharingSettings") or {}).get("SharingType") == "Private"
        owner = (told.get("OwnershipSettings") or {}).get("OwnerUserProfileName")
        arn = str(told["SpaceArn"])
        tags = await self._marks(arn, entries)
        return MountTarget(
            "space",
            name,
            str(told["Status"]),
            entries,
            tags.get(tag_of("space", self._question.file_system)),
            owner=str(owner) if private and owner else None,
            apps=apps.get(f"space {name}", ()),
            arn=arn,
            app_settings=_app_settings(told.get("SpaceSettings") or {}),
        )

    async def _marks(self, arn: str, entries: tuple[lists.Entry, ...]) -> Mapping[str, str]:
        """The tags of a profile or space: asked for only where the file system is in the list, or something may have been left."""
        name = self._question.file_system
        here = lists.path_of(entries, name) is not None or lists.is_attached(entries, name)
        return await self._tags(arn) if here or self._all_tags else {}

    async def _tags(self, arn: str) -> dict[str, str]:
        async with self._room:
            return await self._aws.tags(arn)

    # ------------------------------------------------------------------------------ the file system

    async def _file_system(self) -> FsxFileSystem:
        name = self._question.file_system
        try:
            told = await self._call("fsx", "DescribeFileSystems", FileSystemIds=[name])
        except NotFoundError:
            if not self._question.gone:
                raise
            told = {}
        found = next(iter(told.get("FileSystems") or ()), None)
        if found is None and self._question.gone:
            return FsxFileSystem(name, kind="", state="", vpc="", subnets=())
        if found is None:
            raise NotFoundError(f"file system {name} not found", code="no_such_file_system")
        return FsxFileSystem(
            name=name,
            kind=str(found.get("FileSystemType") or ""),
            state=str(found.get("Lifecycle") or ""),
            vpc=str(found.get("VpcId") or ""),
            subnets=tuple(found.get("SubnetIds") or ()),
            interfaces=await self._interfaces(tuple(found.get("NetworkInterfaceIds") or ())),
            mount_name=(found.get("LustreConfiguration") or {}).get("MountName"),
        )

    async def _interfaces(self, names: tuple[str, ...]) -> tuple[FileSystemInterface, ...]:
        if not names:
            return ()
        told = await self._call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=list(names))
        return tuple(map(_interface, told.get("NetworkInterfaces") or ()))

    async def _call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        async with self._room:
            return await self._aws.call(service, operation, **given)


_MODES: Mapping[str, Mode] = {"shared": "shared", "per-user": "per-user"}


def _listed_owner(space: Mapping[str, Any]) -> str | None:
    """Whose a space of a list is; None: it is shared."""
    private = (space.get("SpaceSharingSettingsSummary") or {}).get("SharingType") == "Private"
    owner = (space.get("OwnershipSettingsSummary") or {}).get("OwnerUserProfileName")
    return str(owner) if private and owner else None


def _app_settings(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of applications, by the application's type."""
    found = {app: settings.get(f"{app}AppSettings") for app in ("JupyterLab", "CodeEditor")}
    return {app: told for app, told in found.items() if told}


def _interface(told: Mapping[str, Any]) -> FileSystemInterface:
    tags = {str(tag["Key"]): str(tag["Value"]) for tag in told.get("TagSet") or ()}
    ours = tuple(filter(None, tags.get(MARK, "").split()))
    groups = tuple(str(one["GroupId"]) for one in told.get("Groups") or ())
    return FileSystemInterface(str(told["NetworkInterfaceId"]), groups, ours)


# --------------------------------------------------------------------------------------------------
# Lists of a domain, a profile or a space at SageMaker: described, waited for, and written.

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

    async def settled(self, holder: MountTarget) -> dict[str, Any]:
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
                    f"SageMaker reports for the {holder.words}: {status}",
                    code="not_in_service",
                    hint=str(
                        told.get("FailureReason")
                        or "its page in the SageMaker console shows the reason"
                    ),
                )
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"SageMaker did not finish the change of the {holder.words} within {LONGEST_WAIT:.0f} s",
                    code="still_updating",
                    hint="run this again later; it continues where it stopped",
                )
            await asyncio.sleep(min(pause, self._look))
            pause *= 1.5

    async def described(self, holder: MountTarget) -> dict[str, Any]:
        """What SageMaker says of it.

        Raises:
            NotFoundError: It is not there any more.
            HyperpodError: See `aws.errors`.
        """
        operation, name = _DESCRIBED[holder.kind]
        given = {name: holder.name} if name else {}
        return await self._aws.call("sagemaker", operation, DomainId=self._domain, **given)

    async def update(
        self, holder: MountTarget, told: Mapping[str, Any], member: str, value: Any
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


def list_of(holder: MountTarget, told: Mapping[str, Any]) -> list[Entry]:
    """The list of file systems in a description."""
    return list(settings_of(holder, told).get(member_of(holder.kind)) or ())


def settings_of(holder: MountTarget, told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings in a description."""
    return told.get(_PLACES[holder.kind][0]) or {}


def member_of(kind: HolderKind) -> str:
    """What the list is called in its settings."""
    return _PLACES[kind][1]
