"""The actual state: a Studio domain with its profiles and spaces, a file system with its network interfaces and folders. Plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.wire import HIDDEN, As, Wire, wire_property

# --------------------------------------------------------------------------------------------------
# SageMaker's lists of custom file systems: add, change or remove our entry without changing the
# others.
#
# SageMaker replaces the whole list at each update (UpdateDomain, UpdateUserProfile, UpdateSpace),
# so it is always read, merged and written.

Entry = Mapping[str, Any]
"""One file system of a list, in the API's form; keeps members newer than this package."""

ATTACHED = "attached"
"""Placeholder for the path of a file system in a space, which has no path of its own."""

_SETTING, _ATTACHED = "FSxLustreFileSystemConfig", "FSxLustreFileSystem"

MAX_SETTINGS, MAX_ATTACHED = 10, 5
"""Maximum entries of ``CustomFileSystemConfigs`` of a domain or profile, and of ``CustomFileSystems`` of a space (SageMaker's service model)."""


def mounted_path(entries: Sequence[Entry], file_system: str) -> str | None:
    """The folder of the file system in a domain's or profile's list; None if it is not in the list."""
    for entry in entries:
        setting = entry.get(_SETTING) or {}
        if setting.get("FileSystemId") == file_system:
            return str(setting.get("FileSystemPath") or "/")
    return None


def with_path(entries: Sequence[Entry], file_system: str, path: str) -> tuple[Entry, ...]:
    """The list with this folder of the file system, at its existing position, else at the end."""
    new_entry = {_SETTING: {"FileSystemId": file_system, "FileSystemPath": path}}
    if mounted_path(entries, file_system) is None:
        return (*entries, new_entry)
    return tuple(
        {**entry, _SETTING: {**entry[_SETTING], **new_entry[_SETTING]}}
        if _is_entry_of(entry, _SETTING, file_system)
        else entry
        for entry in entries
    )


def without_path(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """The list without the file system."""
    return tuple(entry for entry in entries if not _is_entry_of(entry, _SETTING, file_system))


def is_attached(entries: Sequence[Entry], file_system: str) -> bool:
    """Whether a space's list has the file system."""
    return any(_is_entry_of(entry, _ATTACHED, file_system) for entry in entries)


def with_attached(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """A space's list with the file system."""
    if is_attached(entries, file_system):
        return tuple(entries)
    return (*entries, {_ATTACHED: {"FileSystemId": file_system}})


def without_attached(entries: Sequence[Entry], file_system: str) -> tuple[Entry, ...]:
    """A space's list without the file system."""
    return tuple(entry for entry in entries if not _is_entry_of(entry, _ATTACHED, file_system))


def _is_entry_of(entry: Entry, kind: str, file_system: str) -> bool:
    return (entry.get(kind) or {}).get("FileSystemId") == file_system


Mode = Literal["shared", "per-user"]
"""One partition for all, or one for each user profile."""

HolderKind = Literal["domain", "space defaults", "profile", "space"]

SETTLED_STATE, TRANSIENT_STATES = "InService", frozenset({"Pending", "Updating"})
"""SageMaker's states in which a resource can be changed, and in which an update is in progress."""

COMMON_UID, COMMON_GID = 200001, 1001
"""The user id that Studio gives to profiles without a CustomPosixUserConfig (SageMaker's documentation)."""


@dataclass(frozen=True)
class MountTarget:
    """A resource of a domain that has a list of custom file systems.

    Attributes:
        kind: Its kind.
        name: Name of the profile or space; for the others the domain's id.
        status: Its state as SageMaker reports it; the domain's for its defaults.
        entries: Its current list.
        mark: The path that an earlier plan has set, from its tag (`MARK`); None: no tag.
        uid: A profile's own uid on file systems; None: the shared default.
        gid: The same for its group.
        owner: The profile that owns a private space; None for shared spaces and other kinds.
        apps: Its running applications, such as ``JupyterLab``: they see new mounts after a restart.
        arn: Its ARN; the domain's for its defaults.
        own_mode: A profile's own mode, which it keeps when the domain's changes; None: the domain's.
        app_settings: The settings of ``JupyterLab`` and ``CodeEditor``, as in the API.
    """

    kind: HolderKind
    name: str
    status: str
    entries: tuple[Entry, ...] = ()
    mark: str | None = None
    uid: int | None = None
    gid: int | None = None
    owner: str | None = None
    apps: tuple[str, ...] = ()
    arn: str = ""
    own_mode: Mode | None = None
    app_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """For example ``profile alice``."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class FileSystemInterface:
    """A network interface of a file system, its security groups, and those of them that an earlier plan has added."""

    name: str
    groups: tuple[str, ...]
    ours: tuple[str, ...] = ()


Grant = tuple[str, int | None, int]
"""An entry of an access list (ACL): ``user``, ``group`` or ``other``; its id, None for the owner and the owning group; permission bits."""


@dataclass(frozen=True)
class Folder:
    """A folder of the file system.

    Attributes:
        uid: Its owner.
        gid: Its group.
        mode: Its mode. With an access list the group bits are the group's own, not the list's mask.
        acl: The other entries of the access list, with the mask applied.
        default: The default access list for new entries of the folder; empty: none.
        other: Whether it is not a folder, but a file or a link.
        takes_acls: Whether the file system supports access lists.
        empty: Whether it is empty, as far as permissions allow to check.
    """

    uid: int
    gid: int
    mode: int
    acl: tuple[Grant, ...] = ()
    default: tuple[Grant, ...] = ()
    other: bool = False
    takes_acls: bool = field(default=True, compare=False)
    empty: bool = field(default=True, compare=False)

    @property
    def words(self) -> str:
        """For example ``owner 200001:1001, mode 0700, ACL user:1000:rwx``; lists in getfacl's format, without what the mode says."""
        parts = f"owner {self.uid}:{self.gid}, mode {self.mode:04o}"
        mode_bits = {"user": self.mode >> 6 & 7, "group": self.mode >> 3 & 7, "other": self.mode & 7}
        for name, entries in (("ACL", self.acl), ("default ACL", self.default)):
            shown_entries = [entry for entry in entries if entry[1] is not None or entry[2] != mode_bits[entry[0]]]
            if shown_entries:
                parts += f", {name} {','.join(map(_format_grant, shown_entries))}"
        return parts


def _format_grant(grant: Grant) -> str:
    tag, number, bits = grant
    letters = "".join(letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1)))
    return f"{tag}:{'' if number is None else number}:{letters}"


@dataclass(frozen=True)
class FsxFileSystem:
    """A file system.

    Attributes:
        name: Its id.
        kind: Its type as AWS reports it; must be ``LUSTRE``.
        state: Its state as AWS reports it; must be ``AVAILABLE``.
        vpc: Its VPC.
        subnets: Its subnets.
        interfaces: Its network interfaces.
        mount_name: Its mount name; None: AWS does not report it.
        folders: The requested folders by path, None for missing ones; None: they could not be read.
    """

    name: str
    kind: str
    state: str
    vpc: str
    subnets: tuple[str, ...]
    interfaces: tuple[FileSystemInterface, ...] = ()
    mount_name: str | None = None
    folders: Mapping[str, Folder | None] | None = None


@dataclass(frozen=True)
class ActualState:
    """The complete actual state.

    Attributes:
        domain: The domain's id.
        vpc: The domain's VPC.
        subnets: The domain's subnets.
        group: The security group with which Studio's applications reach file systems
            (``security-group-for-inbound-nfs-<domain-id>``); None: it does not exist.
        holders: The domain's own lists, and those of its profiles and spaces.
        file_system: The file system.
        claim: The claim of an apply that has started but not finished (`apply.DomainClaim`); None: no claim.
    """

    domain: str
    vpc: str
    subnets: tuple[str, ...]
    group: str | None
    file_system: FsxFileSystem
    holders: tuple[MountTarget, ...] = field(default=())
    claim: str | None = None


# --------------------------------------------------------------------------------------------------
# The plan: steps, each with its state before and after, and obstacles.

__all__ = ["Mode"]

StepState = Literal["done", "to do", "waits", "blocked"]
"""``waits``: possible after something else has happened; ``blocked``: an admin has to decide."""

NOT_KNOWN = "not known"
"""The state before a step if it could not be read."""

ROOT_UID = 0
"""Placeholder for the uid of the cluster's user: root, which needs no permissions."""

MAX_UID = 0xFFFFFFFE
"""The highest uid; the next one means none."""

NOT_MOUNTED = "not mounted"
"""Text for a list without a folder of the file system."""

Topic = Literal["data", "isolation", "restarts", "new profiles"]


@dataclass(frozen=True)
class Effect:
    """A consequence of a plan for users, a sentence or two.

    Attributes:
        topic: Its topic: where files are, what isolates them, what must be restarted, what new profiles will have.
        text: The sentences.
    """

    topic: Topic
    text: str


@dataclass(frozen=True)
class DesiredState:
    """The desired state.

    Attributes:
        mode: One partition for all, or one per user profile; None: nothing of ours (`destroy`).
        shared_path: The common folder in mode ``shared``.
        profiles: Only these profiles, without the domain's own lists; they keep the mode when the domain's changes. None: all profiles without a mode
            of their own, and new ones.
        take_over: Also change entries that others have set.
        cluster_user: The uid of the cluster's jobs, which gets access to the folders; `ROOT_UID`: only their owners have access; None: users with access
            keep it.
        folders_are_there: Whether all folders exist, so that they need not be read. Studio starts no application whose folder is missing.
        without_data: For mode None: whether to delete the assigned folders with their contents. Until then their tags stay.
    """

    mode: Mode | None
    shared_path: str = "/shared"
    profiles: frozenset[str] | None = None
    take_over: bool = False
    cluster_user: int | None = None
    folders_are_there: bool = False
    without_data: bool = False

    def includes(self, profile: str) -> bool:
        """Whether it applies to a profile."""
        return self.profiles is None or profile in self.profiles


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan.

    Attributes:
        target: What it changes, such as ``profile alice``.
        state: Whether it is already done, and whether it can be done.
        before: The actual state, as text.
        after: The desired state, as text.
        reason: Why it waits or is blocked.
        restarts: Applications that see the change only after a restart.
    """

    target: str
    state: StepState
    before: str
    after: str
    reason: str | None = None
    restarts: tuple[str, ...] = ()

    @property
    def can_be_done(self) -> bool:
        """Whether an apply would do it."""
        return self.state == "to do"

    @property
    def is_drift(self) -> bool:
        """Whether the actual state differs from the desired one; False if it could not be read."""
        return self.state != "done" and self.before != NOT_KNOWN


@dataclass(frozen=True, kw_only=True)
class GroupStep(PlanStep):
    """Add a security group to a network interface of the file system, or remove it.

    Attributes:
        interface: The interface.
        group: The group.
        groups: All its groups afterwards.
    """

    interface: str
    group: str
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FolderStep(PlanStep):
    """Provision a folder of the file system.

    Attributes:
        path: The folder.
        folder: Its desired owner, mode and access lists.
    """

    path: str
    folder: Folder

    @property
    def private(self) -> bool:
        """Whether only its owner, and users named in a list, have access."""
        return not self.folder.mode & 0o077


@dataclass(frozen=True, kw_only=True)
class DeletionStep(PlanStep):
    """Delete a folder of the file system with its contents, once nobody mounts it.

    Attributes:
        path: The folder.
        owner: The uid of its owner.
    """

    path: str
    owner: int


@dataclass(frozen=True, kw_only=True)
class EntryStep(PlanStep):
    """Write a list of custom file systems.

    Attributes:
        holder: The resource with the list.
        entries: The complete desired list.
        mark: The tag to write; None: none.
        own_mode: The mode that a profile keeps when the domain's changes; None: none.
        at_work: Whether it only waits for SageMaker, which an apply waits for.
    """

    holder: MountTarget
    entries: tuple[Entry, ...]
    mark: str | None
    own_mode: Mode | None = None
    at_work: bool = False

    @property
    def removes_mount(self) -> bool:
        """Whether the list mounts a folder before it, and none afterwards."""
        return self.after == NOT_MOUNTED != self.before

    @property
    def can_be_done(self) -> bool:
        """Whether an apply would do it."""
        return super().can_be_done or (self.state == "waits" and self.at_work)


@dataclass(frozen=True, kw_only=True)
class ClaimStep(PlanStep):
    """Complete an interrupted apply: search everywhere for its leftovers, and remove its tag from the domain."""


@dataclass(frozen=True)
class StoragePlan(Wire):
    """All steps in order, findings on the whole plan, and its consequences. A finding of level ``error`` refuses the plan.

    Folder deletions are not steps: they follow after all steps, and are checked again before (`planning.recheck`).
    """

    wanted: DesiredState = field(metadata=HIDDEN)
    steps: tuple[PlanStep, ...]
    findings: tuple[Finding, ...] = ()
    statements: tuple[Effect, ...] = ()
    deletions: tuple[Annotated[DeletionStep, As(PlanStep, lambda step: step)], ...] = ()

    @property
    @wire_property
    def mode(self) -> Mode | None:
        """The desired mode."""
        return self.wanted.mode

    @property
    def drift(self) -> Sequence[PlanStep]:
        """The differences from the desired state; without what could not be read."""
        return [step for step in self.steps if step.is_drift]


# --------------------------------------------------------------------------------------------------
# The desired mode of each profile, and the resulting folder: pure.

FOLDER, MAX_PATH_LENGTH = r"^(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)+\Z", 200
"""The pattern of the common folder, and the maximum length of its path."""


def is_folder(path: str) -> bool:
    """Whether this is a valid common folder: tags and lists of SageMaker contain it verbatim, so there is only one way to write it."""
    return len(path) <= MAX_PATH_LENGTH and re.fullmatch(FOLDER, path) is not None


def mode_of(profile: MountTarget, desired: DesiredState) -> Mode | None:
    """The desired mode of a profile: its own mode takes precedence."""
    if desired.mode is None:
        return None
    own_mode = profile.own_mode if desired.profiles is None else None
    return own_mode or desired.mode


def private_path(profile: str) -> str:
    """The folder of a user profile. A profile's name is always a valid folder name (SageMaker's pattern)."""
    return f"/{profile}"


def is_shared_folder(profile: MountTarget, desired: DesiredState) -> bool:
    """Whether the folder of a profile's name is the common one, so that it cannot be private."""
    return private_path(profile.name) == desired.shared_path


def shared_path_of(profile: MountTarget, desired: DesiredState) -> str:
    """The shared folder of a profile; a folder of its own takes precedence."""
    keeps_own = desired.profiles is None and profile.own_mode == "shared"
    return (profile.mark if keeps_own else None) or desired.shared_path


# --------------------------------------------------------------------------------------------------
# The current mode of a domain, from the tags of earlier plans: pure.

AppliedMode = Literal["shared", "per-user", "both"]
"""``both``: a mixture, as after an interrupted `apply`, or one for a single profile."""


def applied_mode(holders: Iterable[MountTarget]) -> AppliedMode | None:
    """The mode that was applied last; None: no tags of ours.

    Args:
        holders: The resources with lists. Only tags count, so entries that others have set are no mode.
    """
    private = shared = False
    for holder in holders:
        if holder.kind == "profile" and holder.mark is not None:
            is_private = holder.mark == f"/{holder.name}"
            private, shared = private or is_private, shared or not is_private
        elif holder.kind in {"domain", "space defaults"} and holder.mark is not None:
            shared = True
    if private and shared:
        return "both"
    if private:
        return "per-user"
    return "shared" if shared else None


def applied_shared_path(holders: Iterable[MountTarget]) -> str | None:
    """The common folder that was applied; None: none."""
    return next((holder.mark for holder in holders if holder.kind == "domain" and holder.mark), None)


# --------------------------------------------------------------------------------------------------
# The folder that each profile and space of a domain finally mounts, by its own list or the
# domain's: pure.
#
# A profile with a list of its own ignores the domain's. A private space that names the file system
# mounts its owner's folder, a shared space the domain's
# folder for spaces.


def mounts_by_holder(holders: Iterable[MountTarget], file_system: str) -> Mapping[str, str]:
    """Folders by the display name of the resource that mounts them (`MountTarget.words`); resources without a mount are omitted.

    Args:
        holders: The lists of a domain.
        file_system: The file system's id.
    """
    known_holders = list(holders)
    defaults = {holder.kind: mounted_path(holder.entries, file_system) for holder in known_holders}
    path_by_profile = {
        holder.name: mounted_path(holder.entries, file_system) if holder.entries else defaults.get("domain")
        for holder in known_holders
        if holder.kind == "profile"
    }
    path_by_holder = {f"profile {name}": path for name, path in path_by_profile.items()}
    for holder in known_holders:
        if holder.kind == "space" and is_attached(holder.entries, file_system):
            shared = holder.owner is None
            path_by_holder[holder.words] = (
                defaults.get("space defaults") if shared else path_by_profile.get(str(holder.owner))
            )
    return {holder_name: path for holder_name, path in path_by_holder.items() if path is not None}


def apply_to_holders(holders: Iterable[MountTarget], steps: Iterable[PlanStep]) -> list[MountTarget]:
    """The lists after all steps that are not blocked; waiting steps count as done."""
    then = {
        step.holder.words: step.entries for step in steps if isinstance(step, EntryStep) and step.state != "blocked"
    }
    return [replace(holder, entries=then.get(holder.words, holder.entries)) for holder in holders]


# --------------------------------------------------------------------------------------------------
# The steps of a plan as rows of a table: one value per column, for sorting and search.

RowState = Literal["to-do", "waits", "blocked", "as-wanted", "done", "failed", "not-begun"]
"""States of a step: the first four from the plan, the others after an apply."""


@dataclass(frozen=True)
class StepRow:
    """A step with its result.

    Attributes:
        key: Its number in the plan, from 1.
        target: What it changes, such as ``profile alice``.
        state: Its state.
        before: The state before.
        after: The desired state.
        reason: Why it waits, is blocked or failed.
        hint: How to fix a failure.
        restarts: Applications that see the change only after a restart.
    """

    key: str
    target: str
    state: RowState
    before: str
    after: str
    reason: str | None = None
    hint: str | None = None
    restarts: tuple[str, ...] = ()
