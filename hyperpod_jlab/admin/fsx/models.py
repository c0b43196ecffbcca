"""What is there: a Studio domain with its profiles and spaces, a file system with its network interfaces and folders. Plain data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.wire import HIDDEN, As, Wire, wire_property

# --------------------------------------------------------------------------------------------------
# Lists of custom file systems as SageMaker has them: one of ours is put in, changed or taken out, and the others stay as they are.
#
# SageMaker replaces the whole list at each update (UpdateDomain, UpdateUserProfile, UpdateSpace), so it is always read, merged and written.

Entry = Mapping[str, Any]
"""One file system of a list, in the API's own words; members that are newer than this package stay in it."""

ATTACHED = "attached"
"""What stands in the place of a path where a space has a file system: it has none of its own."""

_SETTING, _ATTACHED = "FSxLustreFileSystemConfig", "FSxLustreFileSystem"

MAX_SETTINGS, MAX_ATTACHED = 10, 5
"""Entries that `CustomFileSystemConfigs` of a domain or profile, and `CustomFileSystems` of a space, take (SageMaker's service model)."""


def mounted_path(entries: Sequence[Entry], file_system: str) -> str | None:
    """The folder of the file system that a domain's or profile's list mounts; None: it does not have it."""
    for entry in entries:
        setting = entry.get(_SETTING) or {}
        if setting.get("FileSystemId") == file_system:
            return str(setting.get("FileSystemPath") or "/")
    return None


def with_path(entries: Sequence[Entry], file_system: str, path: str) -> tuple[Entry, ...]:
    """The list with that folder of the file system, at its place where it was there, else at the end."""
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
"""SageMaker's words for what can be changed, and for what it is at work on."""

COMMON_UID, COMMON_GID = 200001, 1001
"""Whom Studio makes of everybody whose profile was made without a CustomPosixUserConfig (SageMaker's documentation)."""


@dataclass(frozen=True)
class MountTarget:
    """Something of a domain that has a list of custom file systems.

    Attributes:
        kind: What it is.
        name: Name of the profile or space; of the others the domain's id.
        status: SageMaker's word for its state; a domain's own for its defaults.
        entries: The list as it is there.
        mark: The path that an earlier plan has set there, by the tag that it left (`MARK`); None: none has.
        uid: A profile's own user number on file systems; None: the one that all have.
        gid: The same for its group.
        owner: The profile that a private space belongs to; None for shared ones and all else.
        apps: Applications that run in it, such as ``JupyterLab``: what is mounted changes when they start anew.
        arn: Its ARN; a domain's own for its defaults.
        own_mode: The mode that a profile was given alone, which it keeps when the domain's changes; None: the domain's.
        app_settings: The settings of ``JupyterLab`` and ``CodeEditor``, as the API has them.
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
        """Such as ``profile alice``."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True)
class FileSystemInterface:
    """A network interface of a file system, its security groups, and those of them that an earlier plan has put there."""

    name: str
    groups: tuple[str, ...]
    ours: tuple[str, ...] = ()


Grant = tuple[str, int | None, int]
"""An entry of an access list (ACL): ``user``, ``group`` or ``other``; whose number, None for the owner and the owning group; permission bits."""


@dataclass(frozen=True)
class Folder:
    """A folder of the file system.

    Attributes:
        uid: Its owner.
        gid: Its group.
        mode: Its mode. With an access list the bits for the group are the group's own, not the list's mask.
        acl: Whom the access list names besides, less what its mask takes away.
        default: The default access list, which what is made in the folder gets; empty: none.
        other: Whether it is no folder at all, but a file or a link.
        takes_acls: Whether the file system keeps access lists.
        empty: Whether nothing is in it, as far as one may look.
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
        """Such as ``owner 200001:1001, mode 0700, ACL user:1000:rwx``; lists as getfacl writes them, less what the mode says already."""
        parts = f"owner {self.uid}:{self.gid}, mode {self.mode:04o}"
        mode_bits = {
            "user": self.mode >> 6 & 7,
            "group": self.mode >> 3 & 7,
            "other": self.mode & 7,
        }
        for name, entries in (("ACL", self.acl), ("default ACL", self.default)):
            shown_entries = [
                entry
                for entry in entries
                if entry[1] is not None or entry[2] != mode_bits[entry[0]]
            ]
            if shown_entries:
                parts += f", {name} {','.join(map(_format_grant, shown_entries))}"
        return parts


def _format_grant(grant: Grant) -> str:
    tag, number, bits = grant
    letters = "".join(
        letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1))
    )
    return f"{tag}:{'' if number is None else number}:{letters}"


@dataclass(frozen=True)
class FsxFileSystem:
    """A file system.

    Attributes:
        name: Its id.
        kind: AWS' word for its kind: ``LUSTRE`` is wanted.
        state: AWS' word for its state: ``AVAILABLE`` is wanted.
        vpc: Its network.
        subnets: Its subnets.
        interfaces: Its network interfaces.
        mount_name: What it is mounted by; None: AWS does not say.
        folders: Folders that were looked for, by path, None where there is none; None: nobody could look.
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
    """All of it.

    Attributes:
        domain: The domain's id.
        vpc: The domain's network.
        subnets: The domain's subnets.
        group: The security group with which Studio's applications reach file systems
            (``security-group-for-inbound-nfs-<domain-id>``); None: there is none.
        holders: The domain's own lists, and those of its profiles and spaces.
        file_system: The file system.
        claim: What an apply says that has begun and has not come to its end (`converging`); None: there is none.
    """

    domain: str
    vpc: str
    subnets: tuple[str, ...]
    group: str | None
    file_system: FsxFileSystem
    holders: tuple[MountTarget, ...] = field(default=())
    claim: str | None = None


# --------------------------------------------------------------------------------------------------
# What is to be done: steps, each with what was there before and what is there after it, and what stands in its way.

__all__ = ["Mode"]

StepState = Literal["done", "to do", "waits", "blocked"]
"""``waits``: it can be done once something has passed by itself or by somebody else; ``blocked``: somebody has to decide."""

NOT_KNOWN = "not known"
"""What is said to be before a step where nobody could look."""

ROOT_UID = 0
"""In place of the number of the cluster's user. Root, whose number it is, needs no leave."""

MAX_UID = 0xFFFFFFFE
"""The greatest number of a user; the next one means none."""

NOT_MOUNTED = "not mounted"
"""What is said where a list has no folder of the file system."""

Topic = Literal["data", "isolation", "restarts", "new profiles"]


@dataclass(frozen=True)
class Effect:
    """What a plan means for people, a sentence or two.

    Attributes:
        topic: What it is about: where files are, what keeps others out of them, what has to be started anew, what profiles to come will have.
        text: The sentences.
    """

    topic: Topic
    text: str


@dataclass(frozen=True)
class DesiredState:
    """What the admin wants.

    Attributes:
        mode: One partition for all, or one for each user profile; None: nothing of ours (`destroy`).
        shared_path: The folder that all have in mode ``shared``.
        profiles: Only these profiles, and nothing of the domain's own; they keep the mode when the domain's changes. None: all that have no mode
            of their own, and those to come.
        take_over: Also change what somebody else has set.
        cluster_user: The user number of the cluster's jobs, which is let into the folders; `ROOT_UID`: nobody but their owners is; None: whoever is
            let in already.
        folders_are_there: Whether all folders are there already, so that nobody has to look. Studio starts no application whose folder is missing.
        without_data: Of mode None: whether the folders that were given are deleted, with all that is in them. Until then their marks stay.
    """

    mode: Mode | None
    shared_path: str = "/shared"
    profiles: frozenset[str] | None = None
    take_over: bool = False
    cluster_user: int | None = None
    folders_are_there: bool = False
    without_data: bool = False

    def includes(self, profile: str) -> bool:
        """Whether it is about a profile."""
        return self.profiles is None or profile in self.profiles


@dataclass(frozen=True)
class PlanStep:
    """One thing that is to be there.

    Attributes:
        target: What it is done to, such as ``profile alice``.
        state: Whether it is done already, and whether it can be.
        before: What is there, in words.
        after: What is to be there, in words.
        reason: Why it waits or is blocked.
        restarts: Applications that see it only once they are started anew.
    """

    target: str
    state: StepState
    before: str
    after: str
    reason: str | None = None
    restarts: tuple[str, ...] = ()

    @property
    def can_be_done(self) -> bool:
        """Whether an apply does it."""
        return self.state == "to do"

    @property
    def is_drift(self) -> bool:
        """Whether it is not as it is to be; not what nobody could look at."""
        return self.state != "done" and self.before != NOT_KNOWN


@dataclass(frozen=True, kw_only=True)
class GroupStep(PlanStep):
    """Put a security group on a network interface of the file system, or take it off.

    Attributes:
        interface: The interface.
        group: The group.
        groups: All groups that it is to have then.
    """

    interface: str
    group: str
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FolderStep(PlanStep):
    """Make a folder of the file system.

    Attributes:
        path: The folder.
        folder: Owner, mode and access lists that it is to have.
    """

    path: str
    folder: Folder

    @property
    def private(self) -> bool:
        """Whether it is for its owner alone, and whom a list names."""
        return not self.folder.mode & 0o077


@dataclass(frozen=True, kw_only=True)
class DeletionStep(PlanStep):
    """Delete a folder of the file system with all that is in it, once nobody mounts it.

    Attributes:
        path: The folder.
        owner: The user number that it belongs to.
    """

    path: str
    owner: int


@dataclass(frozen=True, kw_only=True)
class EntryStep(PlanStep):
    """Write a list of custom file systems.

    Attributes:
        holder: Whose list it is.
        entries: The whole list as it is to be.
        mark: The mark that is to be left there; None: none.
        own_mode: The mode that a profile is to keep when the domain's changes; None: none.
        at_work: Whether it waits for SageMaker alone, which an apply waits for.
    """

    holder: MountTarget
    entries: tuple[Entry, ...]
    mark: str | None
    own_mode: Mode | None = None
    at_work: bool = False

    @property
    def removes_mount(self) -> bool:
        """Whether a folder is mounted by the list before it, and none after it."""
        return self.after == NOT_MOUNTED != self.before

    @property
    def can_be_done(self) -> bool:
        """Whether an apply does it."""
        return super().can_be_done or (self.state == "waits" and self.at_work)


@dataclass(frozen=True, kw_only=True)
class ClaimStep(PlanStep):
    """Bring an apply to its end that was broken off: what it left is looked for everywhere, and its mark on the domain is taken away."""


@dataclass(frozen=True)
class StoragePlan(Wire):
    """All steps in their order, what is to be said of the whole, and what it means. A finding of level ``error`` refuses all of it.

    Folders to be deleted are no steps: that is done once all steps are, and looked at again before (`admin.deletion`).
    """

    wanted: DesiredState = field(metadata=HIDDEN)
    steps: tuple[PlanStep, ...]
    findings: tuple[Finding, ...] = ()
    statements: tuple[Effect, ...] = ()
    deletions: tuple[Annotated[DeletionStep, As(PlanStep, lambda step: step)], ...] = ()

    @property
    @wire_property
    def mode(self) -> Mode | None:
        """The mode that is wanted."""
        return self.wanted.mode

    @property
    def drift(self) -> Sequence[PlanStep]:
        """What is not as it is to be; not what nobody could look at."""
        return [step for step in self.steps if step.is_drift]


# --------------------------------------------------------------------------------------------------
# The mode that each profile is to have, and the folder that follows from it: pure.

FOLDER, MAX_PATH_LENGTH = r"^(/(?!\.{1,2}(/|$))[A-Za-z0-9._-]+)+\Z", 200
"""What the folder that all share looks like, and how long its path may be."""


def is_folder(path: str) -> bool:
    """Whether this can be the folder that all share: it stands in tags and lists of SageMaker just as it is given, so there is one way to write it."""
    return len(path) <= MAX_PATH_LENGTH and re.fullmatch(FOLDER, path) is not None


def mode_of(profile: MountTarget, desired: DesiredState) -> Mode | None:
    """The mode that a profile is to have: one that it was given alone stays its own."""
    if desired.mode is None:
        return None
    own_mode = profile.own_mode if desired.profiles is None else None
    return own_mode or desired.mode


def private_path(profile: str) -> str:
    """The folder of a user profile. A profile's name is always a good name for a folder (SageMaker's pattern for it)."""
    return f"/{profile}"


def is_shared_folder(profile: MountTarget, desired: DesiredState) -> bool:
    """Whether the folder of a profile's name is the one that all share, so that it can't be private."""
    return private_path(profile.name) == desired.shared_path


def shared_path_of(profile: MountTarget, desired: DesiredState) -> str:
    """The shared folder of a profile: one that it was given alone stays."""
    keeps_own = desired.profiles is None and profile.own_mode == "shared"
    return (profile.mark if keeps_own else None) or desired.shared_path


# --------------------------------------------------------------------------------------------------
# Which mode a domain is in by now, from the marks that earlier plans have left: pure.

AppliedMode = Literal["shared", "per-user", "both"]
"""``both``: some of it is of the one and some of the other, as after an `apply` that did not come to its end, or of one profile alone."""


def applied_mode(holders: Iterable[MountTarget]) -> AppliedMode | None:
    """The mode that was applied last; None: nothing of ours is there.

    Args:
        holders: What has lists. Only marks count, so what somebody else has set is no mode.
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
    """The folder that all were given; None: none was."""
    return next(
        (holder.mark for holder in holders if holder.kind == "domain" and holder.mark), None
    )


# --------------------------------------------------------------------------------------------------
# Which folder of a file system each profile and space of a domain mounts in the end, by its own list or the domain's: pure.
#
# A profile that has a list of its own does not see the domain's. A private space that names the file system mounts what its owner does, a shared one
# what the domain has for spaces.


def mounts_by_holder(holders: Iterable[MountTarget], file_system: str) -> Mapping[str, str]:
    """Folders by the words for who mounts them (`MountTarget.words`); who mounts none is not in it.

    Args:
        holders: The lists of a domain.
        file_system: The file system's id.
    """
    known_holders = list(holders)
    defaults = {holder.kind: mounted_path(holder.entries, file_system) for holder in known_holders}
    path_by_profile = {
        holder.name: mounted_path(holder.entries, file_system)
        if holder.entries
        else defaults.get("domain")
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


def apply_to_holders(
    holders: Iterable[MountTarget], steps: Iterable[PlanStep]
) -> list[MountTarget]:
    """The lists once all is done that is not blocked; what waits is counted as done."""
    then = {
        step.holder.words: step.entries
        for step in steps
        if isinstance(step, EntryStep) and step.state != "blocked"
    }
    return [replace(holder, entries=then.get(holder.words, holder.entries)) for holder in holders]


# --------------------------------------------------------------------------------------------------
# The steps of a plan for a Studio domain as rows of a table: one value a column, so that they can be sorted and searched.

RowState = Literal["to-do", "waits", "blocked", "as-wanted", "done", "failed", "not-begun"]
"""How a step is: the first four as the plan has it, the others once it was applied."""


@dataclass(frozen=True)
class StepRow:
    """A step, and what became of it.

    Attributes:
        key: Its number in the plan, from 1.
        target: What it is done to, such as ``profile alice``.
        state: How it is.
        before: What was there.
        after: What is to be there.
        reason: Why it waits, is blocked or failed.
        hint: What to do about a failure.
        restarts: Applications that see it only once they are started anew.
    """

    key: str
    target: str
    state: RowState
    before: str
    after: str
    reason: str | None = None
    hint: str | None = None
    restarts: tuple[str, ...] = ()
