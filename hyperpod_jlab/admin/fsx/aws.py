"""Read the actual state from AWS: SageMaker's domain with its profiles and spaces, FSx' file system, EC2's network interfaces."""

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
    SETTLED_STATE,
    TRANSIENT_STATES,
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
# Retries: throttling or half a minute of failures must not abort a plan for hundreds of profiles.

T = TypeVar("T")

MAX_WAIT_S = 120.0
"""Seconds for which a call is retried, beyond botocore's retries."""

FIRST_PAUSE_S, MAX_PAUSE_S = 0.5, 15.0
"""Back-off: the first and the maximum pause; each doubles, minus up to half at random."""

_SERVER_ERRORS = frozenset(
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
"""AWS' codes for transient faults of its own."""


class RetryingAws:
    """AWS with retries on throttling and transient failures. On throttling, all callers of this object wait.

    Only for idempotent calls.

    Args:
        aws: AWS in a region.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._last_success: set[str] = set()
        self._not_before = 0.0

    async def call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call an operation.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.retry(service, lambda: self._aws.call(service, operation, **parameters))

    async def tags(self, arn: str) -> dict[str, str]:
        """The tags of a SageMaker resource.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.retry("sagemaker", lambda: list_tags(self._aws, arn))

    async def list_all(self, service: str, operation: str, member: str, **parameters: Any) -> list[dict[str, Any]]:
        """A complete list; if a page fails, starts again.

        Raises:
            HyperpodError: See `aws.errors`.
        """

        async def ask() -> list[dict[str, Any]]:
            pages = self._aws.pages(service, operation, **parameters)
            return [item async for page in pages for item in page.get(member) or ()]

        return await self.retry(service, ask)

    async def retry(self, service: str, query: Callable[[], Awaitable[T]]) -> T:
        """Retry until there is an answer or a permanent error.

        Args:
            service: The service by boto3's name. A service that has never answered is not retried if it is unreachable.
            query: Makes one attempt, from the beginning.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        deadline, pause = time.monotonic() + MAX_WAIT_S, FIRST_PAUSE_S
        while True:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            try:
                result = await query()
            except UnreachableError as error:
                if not self._is_transient(service, error) or time.monotonic() > deadline:
                    raise
                wait = pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
                pause = min(2 * pause, MAX_PAUSE_S)
                if error.code == "aws_throttled":
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                else:
                    await asyncio.sleep(wait)
            else:
                self._last_success.add(service)
                return result

    def _is_transient(self, service: str, error: UnreachableError) -> bool:
        if error.code == "aws_unreachable":
            return service in self._last_success
        return is_transient(error)


def is_in_use(error: HyperpodError | None) -> bool:
    """Whether another caller is changing or using it."""
    codes = {"ResourceInUse", "ConflictException"}
    return error is not None and (error.detail or {}).get("aws_code") in codes


def is_transient(error: UnreachableError) -> bool:
    """Whether AWS throttles, or has a transient fault of its own."""
    code = str((error.detail or {}).get("aws_code", ""))
    return error.code == "aws_throttled" or code in _SERVER_ERRORS or (code.isdigit() and code >= "500")


MARK = "hyperpod-jlab"
"""Prefix of our tags. A configured resource has the path in ``hyperpod-jlab:FILE-SYSTEM``, so that `destroy` can identify our entries."""

GROUP_NAME = "security-group-for-inbound-nfs-{domain}"
"""The security group with which Studio's applications reach file systems (SageMaker's documentation of custom file systems)."""

_CONCURRENCY = 12
"""Concurrent calls."""

_FIRST_PROFILES = 20
"""Number of profiles in a quick first read."""

_RUNNING = frozenset({"InService", "Pending"})


def mount_tag(kind: HolderKind, file_system: str) -> str:
    """The name of the tag for an entry in a list. A domain has two lists but one set of tags; each file system has its own tag."""
    return f"{MARK}-spaces:{file_system}" if kind == "space defaults" else f"{MARK}:{file_system}"


def mode_tag(file_system: str) -> str:
    """The name of the tag with a profile's own mode."""
    return f"{MARK}-mode:{file_system}"


def claim_tag(file_system: str) -> str:
    """The name of the tag on a domain during an apply."""
    return f"{MARK}-apply:{file_system}"


@dataclass(frozen=True)
class ProfileSubset:
    """A part of a domain: new profiles and spaces.

    Attributes:
        profiles: Profiles, with their private spaces.
        spaces: Spaces, with the owners of private ones.
    """

    profiles: frozenset[str] = frozenset()
    spaces: frozenset[str] = frozenset()


@dataclass(frozen=True)
class StateQuery:
    """What to read.

    Attributes:
        domain: The domain's id.
        file_system: The file system's id.
        all_tags: Read tags even if the file system is in no list: tags that an interrupted apply left. Also done if the domain has a claim.
        subset: Only these, without the domain's own lists; None: all.
        may_be_missing: Whether the file system may have been deleted, so that references to it can still be found.
    """

    domain: str
    file_system: str
    all_tags: bool = False
    subset: ProfileSubset | None = None
    may_be_missing: bool = False


class StateReader:
    """Reads the actual state, with limited concurrency.

    Args:
        aws: AWS in the domain's region.
        query: What to read.
        on_progress: Called with the number of profiles and spaces read so far, and the total.
    """

    def __init__(self, aws: Aws, query: StateQuery, on_progress: Callable[[int, int], None] | None = None) -> None:
        self._aws = RetryingAws(aws)
        self._query = query
        self._all_tags = query.all_tags
        self._on_progress = on_progress
        self._semaphore = asyncio.Semaphore(_CONCURRENCY)
        self._done = self._total = 0

    async def read(self) -> ActualState:
        """The actual state, without folders.

        Raises:
            NotFoundError: The domain or the file system does not exist.
            HyperpodError: See `aws.errors`.
        """
        domain, file_system, apps = await asyncio.gather(self._domain(), self._file_system(), self._apps())
        tags = await self._tags(str(domain["DomainArn"]))
        claim = tags.get(claim_tag(self._query.file_system))
        self._all_tags = self._all_tags or claim is not None
        names, spaces = await self._names()
        self._total = len(names) + len(spaces)
        profiles, rooms, group = await asyncio.gather(
            self._all(self._profile, names, apps),
            self._all(self._space, spaces, apps),
            self._group(str(domain.get("VpcId") or "")),
        )
        return ActualState(
            domain=self._query.domain,
            vpc=str(domain.get("VpcId") or ""),
            subnets=tuple(domain.get("SubnetIds") or ()),
            group=group,
            file_system=file_system,
            holders=(*self._defaults(domain, tags), *profiles, *rooms)
            if self._query.subset is None
            else (*profiles, *rooms),
            claim=claim,
        )

    async def read_first(self) -> tuple[MountTarget, ...]:
        """The domain's own lists and those of its first profiles: fast, regardless of the total.

        Raises:
            NotFoundError: The domain does not exist.
            HyperpodError: See `aws.errors`.
        """
        name = self._query.domain
        domain, listing = await asyncio.gather(
            self._domain(), self._call("sagemaker", "ListUserProfiles", DomainIdEquals=name, MaxResults=_FIRST_PROFILES)
        )
        names = [str(profile["UserProfileName"]) for profile in listing.get("UserProfiles") or ()]
        tags, profiles = await asyncio.gather(self._tags(str(domain["DomainArn"])), self._all(self._profile, names, {}))
        return (*self._defaults(domain, tags), *profiles)

    # ------------------------------------------------------------------------------ the domain

    async def _domain(self) -> dict[str, Any]:
        return await self._call("sagemaker", "DescribeDomain", DomainId=self._query.domain)

    def _defaults(self, description: Mapping[str, Any], tags: Mapping[str, str]) -> list[MountTarget]:
        targets: list[MountTarget] = []
        kinds: tuple[tuple[HolderKind, str], ...] = (
            ("domain", "DefaultUserSettings"),
            ("space defaults", "DefaultSpaceSettings"),
        )
        for kind, member in kinds:
            settings = description.get(member) or {}
            entries = tuple(settings.get("CustomFileSystemConfigs") or ())
            mark = tags.get(mount_tag(kind, self._query.file_system))
            targets.append(
                MountTarget(
                    kind,
                    self._query.domain,
                    str(description["Status"]),
                    entries,
                    mark,
                    arn=str(description["DomainArn"]),
                    app_settings=_app_settings(settings),
                )
            )
        return targets

    async def _group(self, vpc: str) -> str | None:
        name = GROUP_NAME.format(domain=self._query.domain)
        filters = [{"Name": "group-name", "Values": [name]}, {"Name": "vpc-id", "Values": [vpc]}]
        response = await self._call("ec2", "DescribeSecurityGroups", Filters=filters)
        return next((str(group["GroupId"]) for group in response.get("SecurityGroups") or ()), None)

    async def _apps(self) -> Mapping[str, tuple[str, ...]]:
        """Types of the running applications, by ``space NAME`` and ``profile NAME``."""
        apps_by_owner: dict[str, list[str]] = defaultdict(list)
        for app in await self._list("ListApps", "Apps"):
            if app.get("Status") not in _RUNNING:
                continue
            for kind, member in (("space", "SpaceName"), ("profile", "UserProfileName")):
                if app.get(member):
                    apps_by_owner[f"{kind} {app[member]}"].append(str(app.get("AppType")))
        return {name: tuple(kinds) for name, kinds in apps_by_owner.items()}

    # ------------------------------------------------------------------------------ profiles and spaces

    async def _names(self) -> tuple[list[str], list[str]]:
        """The names of the requested profiles and spaces."""
        profiles, spaces = await asyncio.gather(
            self._list("ListUserProfiles", "UserProfiles"), self._list("ListSpaces", "Spaces")
        )
        names = [str(profile["UserProfileName"]) for profile in profiles]
        owners = {str(profile["SpaceName"]): _space_owner(profile) for profile in spaces}
        subset = self._query.subset
        if subset is None:
            return names, list(owners)
        profile_names = subset.profiles | {owners.get(name) for name in subset.spaces} - {None}
        return (
            [name for name in names if name in profile_names],
            [name for name, owner in owners.items() if name in subset.spaces or owner in profile_names],
        )

    async def _list(self, operation: str, member: str) -> list[dict[str, Any]]:
        """All of a list of the domain's."""
        domain = self._query.domain
        return await self._aws.list_all("sagemaker", operation, member, DomainIdEquals=domain)

    async def _all(
        self,
        read: Callable[[str, Mapping[str, tuple[str, ...]]], Any],
        names: list[str],
        apps: Mapping[str, tuple[str, ...]],
    ) -> list[MountTarget]:
        async def read_one(name: str) -> MountTarget | None:
            target: MountTarget | None = None
            with contextlib.suppress(NotFoundError):  # deleted after it was listed
                try:
                    target = await read(name, apps)
                except InvalidInputError:
                    # Tags of a resource that was just deleted: reading it again raises not found.
                    target = await read(name, apps)
            self._done += 1
            if self._on_progress is not None:
                self._on_progress(self._done, self._total)
            return target

        holders = await asyncio.gather(*map(read_one, names))
        return [holder for holder in holders if holder is not None]

    async def _profile(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> MountTarget:
        response = await self._call(
            "sagemaker", "DescribeUserProfile", DomainId=self._query.domain, UserProfileName=name
        )
        settings = response.get("UserSettings") or {}
        posix = settings.get("CustomPosixUserConfig") or {}
        entries = tuple(settings.get("CustomFileSystemConfigs") or ())
        arn = str(response["UserProfileArn"])
        tags = await self._read_tags_if_needed(arn, entries)
        own_mode = tags.get(mode_tag(self._query.file_system))
        return MountTarget(
            "profile",
            name,
            str(response["Status"]),
            entries,
            tags.get(mount_tag("profile", self._query.file_system)),
            uid=posix.get("Uid"),
            gid=posix.get("Gid"),
            apps=apps.get(f"profile {name}", ()),
            arn=arn,
            own_mode=_MODES.get(own_mode or ""),
            app_settings=_app_settings(settings),
        )

    async def _space(self, name: str, apps: Mapping[str, tuple[str, ...]]) -> MountTarget:
        response = await self._call("sagemaker", "DescribeSpace", DomainId=self._query.domain, SpaceName=name)
        entries = tuple((response.get("SpaceSettings") or {}).get("CustomFileSystems") or ())
        private = (response.get("SpaceSharingSettings") or {}).get("SharingType") == "Private"
        owner = (response.get("OwnershipSettings") or {}).get("OwnerUserProfileName")
        arn = str(response["SpaceArn"])
        tags = await self._read_tags_if_needed(arn, entries)
        return MountTarget(
            "space",
            name,
            str(response["Status"]),
            entries,
            tags.get(mount_tag("space", self._query.file_system)),
            owner=str(owner) if private and owner else None,
            apps=apps.get(f"space {name}", ()),
            arn=arn,
            app_settings=_app_settings(response.get("SpaceSettings") or {}),
        )

    async def _read_tags_if_needed(self, arn: str, entries: tuple[lists.Entry, ...]) -> Mapping[str, str]:
        """The tags of a profile or space: only read if the file system is in its list, or leftovers are possible."""
        name = self._query.file_system
        may_have_tags = lists.mounted_path(entries, name) is not None or lists.is_attached(entries, name)
        return await self._tags(arn) if may_have_tags or self._all_tags else {}

    async def _tags(self, arn: str) -> dict[str, str]:
        async with self._semaphore:
            return await self._aws.tags(arn)

    # ------------------------------------------------------------------------------ the file system

    async def _file_system(self) -> FsxFileSystem:
        name = self._query.file_system
        try:
            response = await self._call("fsx", "DescribeFileSystems", FileSystemIds=[name])
        except NotFoundError:
            if not self._query.may_be_missing:
                raise
            response = {}
        file_system = next(iter(response.get("FileSystems") or ()), None)
        if file_system is None and self._query.may_be_missing:
            return FsxFileSystem(name, kind="", state="", vpc="", subnets=())
        if file_system is None:
            raise NotFoundError(f"file system {name} not found", code="no_such_file_system")
        return FsxFileSystem(
            name=name,
            kind=str(file_system.get("FileSystemType") or ""),
            state=str(file_system.get("Lifecycle") or ""),
            vpc=str(file_system.get("VpcId") or ""),
            subnets=tuple(file_system.get("SubnetIds") or ()),
            interfaces=await self._interfaces(tuple(file_system.get("NetworkInterfaceIds") or ())),
            mount_name=(file_system.get("LustreConfiguration") or {}).get("MountName"),
        )

    async def _interfaces(self, names: tuple[str, ...]) -> tuple[FileSystemInterface, ...]:
        if not names:
            return ()
        response = await self._call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=list(names))
        return tuple(map(_interface, response.get("NetworkInterfaces") or ()))

    async def _call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        async with self._semaphore:
            return await self._aws.call(service, operation, **parameters)


_MODES: Mapping[str, Mode] = {"shared": "shared", "per-user": "per-user"}


def _space_owner(space: Mapping[str, Any]) -> str | None:
    """The owner of a space in a list; None: it is shared."""
    private = (space.get("SpaceSharingSettingsSummary") or {}).get("SharingType") == "Private"
    owner = (space.get("OwnershipSettingsSummary") or {}).get("OwnerUserProfileName")
    return str(owner) if private and owner else None


def _app_settings(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The settings of applications, by the application's type."""
    by_app = {app: settings.get(f"{app}AppSettings") for app in ("JupyterLab", "CodeEditor")}
    return {app: app_settings for app, app_settings in by_app.items() if app_settings}


def _interface(description: Mapping[str, Any]) -> FileSystemInterface:
    tags = {str(tag["Key"]): str(tag["Value"]) for tag in description.get("TagSet") or ()}
    own_groups = tuple(filter(None, tags.get(MARK, "").split()))
    groups = tuple(str(group["GroupId"]) for group in description.get("Groups") or ())
    return FileSystemInterface(str(description["NetworkInterfaceId"]), groups, own_groups)


# --------------------------------------------------------------------------------------------------
# Lists of file systems of a domain, profile or space at SageMaker: describe, wait, update.

SETTLE_TIMEOUT_S = 600.0
"""Timeout of an update at SageMaker, in seconds, as in AWS' own samples."""

POLL_S = 2.0
"""Maximum poll interval for SageMaker; the first polls are more frequent."""

MAX_TRIES = 8
"""Maximum number of writes of a setting with concurrent writers."""

_RETRY_S = 0.1

_DESCRIBE_CALLS: Mapping[HolderKind, tuple[str, str | None]] = {
    "domain": ("DescribeDomain", None),
    "space defaults": ("DescribeDomain", None),
    "profile": ("DescribeUserProfile", "UserProfileName"),
    "space": ("DescribeSpace", "SpaceName"),
}
"""The describe operation of each kind, and the member with its name."""

_SETTINGS_PATHS: Mapping[HolderKind, tuple[str, str]] = {
    "domain": ("DefaultUserSettings", "CustomFileSystemConfigs"),
    "space defaults": ("DefaultSpaceSettings", "CustomFileSystemConfigs"),
    "profile": ("UserSettings", "CustomFileSystemConfigs"),
    "space": ("SpaceSettings", "CustomFileSystems"),
}
"""The path of each kind's list, in the description and in the update."""


class MountTargetCalls:
    """Calls on resources that have lists of file systems.

    Args:
        aws: AWS in the domain's region.
        domain: The domain's id.
        interval_s: Maximum poll interval for SageMaker.
    """

    def __init__(self, aws: RetryingAws, domain: str, interval_s: float) -> None:
        self._aws = aws
        self._domain = domain
        self._look = interval_s

    async def wait_until_settled(self, holder: MountTarget) -> dict[str, Any]:
        """Wait until SageMaker has finished updating it; returns its description.

        Raises:
            UnreachableError: SageMaker did not finish in time.
            RefusedError: The update failed.
        """
        deadline, pause = time.monotonic() + SETTLE_TIMEOUT_S, _RETRY_S
        while True:
            response = await self.describe(holder)
            status = str(response["Status"])
            if status == SETTLED_STATE:
                return response
            if status not in TRANSIENT_STATES:
                raise RefusedError(
                    f"SageMaker reports for the {holder.words}: {status}",
                    code="not_in_service",
                    hint=str(response.get("FailureReason") or "its page in the SageMaker console shows the reason"),
                )
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"SageMaker did not finish the change of the {holder.words} within {SETTLE_TIMEOUT_S:.0f} s",
                    code="still_updating",
                    hint="run this again later; it continues where it stopped",
                )
            await asyncio.sleep(min(pause, self._look))
            pause *= 1.5

    async def describe(self, holder: MountTarget) -> dict[str, Any]:
        """Its description at SageMaker.

        Raises:
            NotFoundError: It does not exist.
            HyperpodError: See `aws.errors`.
        """
        operation, name = _DESCRIBE_CALLS[holder.kind]
        parameters = {name: holder.name} if name else {}
        return await self._aws.call("sagemaker", operation, DomainId=self._domain, **parameters)

    async def update(self, holder: MountTarget, description: Mapping[str, Any], member: str, value: Any) -> None:
        """Write one member of its settings.

        Args:
            holder: The resource.
            description: Its description.
            member: The member.
            value: The complete value of the member: SageMaker replaces it.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        settings = _SETTINGS_PATHS[holder.kind][0]
        parameters: dict[str, Any] = {settings: {member: value}}
        if holder.kind == "space defaults":
            # SageMaker requires a role with these; spaces without one use the users' role.
            role = (description.get(settings) or {}).get("ExecutionRole") or (
                description.get("DefaultUserSettings") or {}
            ).get("ExecutionRole")
            if role:
                parameters[settings]["ExecutionRole"] = role
        operation = {"profile": "UpdateUserProfile", "space": "UpdateSpace"}.get(holder.kind, "UpdateDomain")
        name = _DESCRIBE_CALLS[holder.kind][1]
        if name:
            parameters[name] = holder.name
        await self._aws.call("sagemaker", operation, DomainId=self._domain, **parameters)

    async def pause_after_conflict(self, error: ConflictError | UnreachableError) -> None:
        """Pause after a conflicting update or a lost response, before the next attempt.

        Raises:
            HyperpodError: It is another error.
        """
        if not (is_in_use(error) or (isinstance(error, UnreachableError) and is_transient(error))):
            raise error
        await asyncio.sleep(self._look)


def mount_entries(holder: MountTarget, description: Mapping[str, Any]) -> list[Entry]:
    """The list of file systems in a description."""
    return list(target_settings(holder, description).get(list_member(holder.kind)) or ())


def target_settings(holder: MountTarget, description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings in a description."""
    return description.get(_SETTINGS_PATHS[holder.kind][0]) or {}


def list_member(kind: HolderKind) -> str:
    """The name of the list in its settings."""
    return _SETTINGS_PATHS[kind][1]
