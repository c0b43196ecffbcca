"""Reading what is there from AWS: SageMaker's domain with its profiles and spaces, FSx' file system, EC2's network interfaces."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin import entries as lists
from hyperpod_jlab.admin.there import FileSystem, Folder, Holder, HolderKind, Interface, There
from hyperpod_jlab.aws.clusters import list_tags
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import NotFoundError

MARK = "hyperpod-jlab"
"""Tag on what was wired: its value is the file system and the path, such as ``fs-0123456789abcdef0:/alice``. It is how `destroy` knows what is ours."""

GROUP_NAME = "security-group-for-inbound-nfs-{domain}"
"""The security group with which Studio's applications reach file systems (SageMaker's documentation of custom file systems)."""

_AT_ONCE = 8
"""Calls that are under way at a time."""

_RUNNING = frozenset({"InService", "Pending"})

LookAtFolders = Callable[[Collection[str]], Mapping[str, Folder | None]]
"""Looks at folders of the file system, by their paths there; None: there is none."""


def mark_of(file_system: str, path: str) -> str:
    """What the tag says of a path that was set."""
    return f"{file_system}:{path}"


@dataclass(frozen=True)
class Question:
    """What is to be read.

    Attributes:
        domain: The domain's id.
        file_system: The file system's id.
        profiles: Only these profiles and their private spaces, and nothing of the domain's own; None: all.
        gone: Whether the file system may have been deleted, so that what names it can still be found.
    """

    domain: str
    file_system: str
    profiles: frozenset[str] | None = None
    gone: bool = False


class Reader:
    """Reads, a few calls at a time.

    Args:
        aws: AWS in the domain's region.
        question: What is to be read.
        told: Called with the number of profiles and spaces that were read so far, and how many there are.
    """

    def __init__(
        self, aws: Aws, question: Question, told: Callable[[int, int], None] | None = None
    ) -> None:
        self._aws = aws
        self._question = question
        self._told = told
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._done = self._total = 0

    async def read(self) -> There:
        """What is there; folders are not looked at.

        Raises:
            NotFoundError: There is no such domain or file system.
            HyperpodError: See `aws.errors`.
        """
        domain, file_system, apps = await asyncio.gather(
            self._domain(), self._file_system(), self._apps()
        )
        names = [one async for one in self._names("ListUserProfiles", "UserProfiles")]
        spaces = [one async for one in self._names("ListSpaces", "Spaces")]
        self._total = len(names) + len(spaces)
        profiles, rooms, group = await asyncio.gather(
            self._all(self._profile, names, apps),
            self._all(self._space, spaces, apps),
            self._group(str(domain.get("VpcId") or "")),
        )
        return There(
            domain=self._question.domain,
            vpc=str(domain.get("VpcId") or ""),
            subnets=tuple(domain.get("SubnetIds") or ()),
            group=group,
            file_system=file_system,
            holders=(*await self._defaults(domain), *profiles, *rooms)
            if self._question.profiles is None
            else (*profiles, *rooms),
        )

    # ------------------------------------------------------------------------------ the domain

    async def _domain(self) -> dict[str, Any]:
        return await self._call("sagemaker", "DescribeDomain", DomainId=self._question.domain)

    async def _defaults(self, told: Mapping[str, Any]) -> list[Holder]:
        found: list[Holder] = []
        kinds: tuple[tuple[HolderKind, str], ...] = (
            ("domain", "DefaultUserSettings"),
            ("space defaults", "DefaultSpaceSettings"),
        )
        for kind, member in kinds:
            settings = told.get(member) or {}
            entries = tuple(settings.get("CustomFileSystemConfigs") or ())
            mark = await self._mark(str(told["DomainArn"]), _key(kind), entries)
            found.append(
                Holder(
                    kind,
                    self._question.domain,
                    str(told["Status"]),
                    entries,
                    mark,
                    arn=str(told["DomainArn"]),
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
        async for page in self._aws.pages(
            "sagemaker", "ListApps", DomainIdEquals=self._question.domain
        ):
            for one in page.get("Apps") or ():
                if one.get("Status") not in _RUNNING:
                    continue
                for kind, member in (("space", "SpaceName"), ("profile", "UserProfileName")):
                    if one.get(member):
                        found[f"{kind} {one[member]}"].append(str(one.get("AppType")))
        return {name: tuple(kinds) for name, kinds in found.items()}

    # ------------------------------------------------------------------------------ profiles and spaces

    async def _names(self, operation: str, member: str) -> AsyncIterator[str]:
        name = "UserProfileName" if member == "UserProfiles" else "SpaceName"
        async for page in self._aws.pages(
            "sagemaker", operation, DomainIdEquals=self._question.domain
        ):
            for one in page.get(member) or ():
                if self._is_asked_for(one):
                    yield str(one[name])

    def _is_asked_for(self, listed: Mapping[str, Any]) -> bool:
        """Whether a profile or space of a list is one of the question's."""
        chosen = self._question.profiles
        if chosen is None:
            return True
        if "UserProfileName" in listed:
            return listed["UserProfileName"] in chosen
        private = (listed.get("SpaceSharingSettingsSummary") or {}).get("SharingType") == "Private"
        owner = (listed.get("OwnershipSettingsSummary") or {}).get("OwnerUserProfileName")
        return private and owner in chosen

    async def _all(
        self,
        read: Callable[[str, Mapping[str, tuple[str, ...]]], Any],
        names: list[str],
        apps: Mapping[str, tuple[str, ...]],
    ) -> list[Holder]:
        async def one(name: str) -> Holder | None:
            try:
                found: Holder | None = await read(name, apps)
            except NotFoundError:
                found = None  # deleted since the list was made
            self._done += 1
            if self._told is not None:
                self._told(self._done, self._total)
            return found

        holders = await asyncio.gather(*map(one, names))
        return [holder for holder in holders if holder is not None]

    async def _profile(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> Holder:
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
        return Holder(
            "profile",
            name,
            str(told["Status"]),
            entries,
            await self._mark(arn, MARK, entries),
            uid=posix.get("Uid"),
            gid=posix.get("Gid"),
            apps=apps.get(f"profile {name}", ()),
            arn=arn,
        )

    async def _space(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> Holder:
        told = await self._call(
            "sagemaker", "DescribeSpace", DomainId=self._question.domain, SpaceName=name
        )
        entries = tuple((told.get("SpaceSettings") or {}).get("CustomFileSystems") or ())
        private = (told.get("SpaceSharingSettings") or {}).get("SharingType") == "Private"
        owner = (told.get("OwnershipSettings") or {}).get("OwnerUserProfileName")
        arn = str(told["SpaceArn"])
        return Holder(
            "space",
            name,
            str(told["Status"]),
            entries,
            await self._mark(arn, MARK, entries),
            owner=str(owner) if private and owner else None,
            apps=apps.get(f"space {name}", ()),
            arn=arn,
        )

    async def _mark(self, arn: str, key: str, entries: tuple[lists.Entry, ...]) -> str | None:
        """The path that we have set there. Tags are asked for only where the file system is in the list."""
        name = self._question.file_system
        if lists.path_of(entries, name) is None and not lists.is_attached(entries, name):
            return None
        tags = await self._tags(arn)
        found, _, path = tags.get(key, "").partition(":")
        return path if found == name and path else None

    async def _tags(self, arn: str) -> dict[str, str]:
        async with self._room:
            return await list_tags(self._aws, arn)

    # ------------------------------------------------------------------------------ the file system

    async def _file_system(self) -> FileSystem:
        name = self._question.file_system
        try:
            told = await self._call("fsx", "DescribeFileSystems", FileSystemIds=[name])
        except NotFoundError:
            if not self._question.gone:
                raise
            told = {}
        found = next(iter(told.get("FileSystems") or ()), None)
        if found is None and self._question.gone:
            return FileSystem(name, kind="", state="", vpc="", subnets=())
        if found is None:
            raise NotFoundError(f"there is no file system {name}", code="no_such_file_system")
        return FileSystem(
            name=name,
            kind=str(found.get("FileSystemType") or ""),
            state=str(found.get("Lifecycle") or ""),
            vpc=str(found.get("VpcId") or ""),
            subnets=tuple(found.get("SubnetIds") or ()),
            interfaces=await self._interfaces(tuple(found.get("NetworkInterfaceIds") or ())),
        )

    async def _interfaces(self, names: tuple[str, ...]) -> tuple[Interface, ...]:
        if not names:
            return ()
        told = await self._call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=list(names))
        return tuple(map(_interface, told.get("NetworkInterfaces") or ()))

    async def _call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        async with self._room:
            return await self._aws.call(service, operation, **given)


def _key(kind: HolderKind) -> str:
    """The tag's name: a domain has two lists, and one set of tags."""
    return f"{MARK}-spaces" if kind == "space defaults" else MARK


def tag_of(holder: Holder) -> str:
    """The name of the tag that marks what was set in a holder's list."""
    return _key(holder.kind)


def _interface(told: Mapping[str, Any]) -> Interface:
    tags = {str(tag["Key"]): str(tag["Value"]) for tag in told.get("TagSet") or ()}
    ours = tuple(filter(None, tags.get(MARK, "").split()))
    groups = tuple(str(one["GroupId"]) for one in told.get("Groups") or ())
    return Interface(str(told["NetworkInterfaceId"]), groups, ours)
