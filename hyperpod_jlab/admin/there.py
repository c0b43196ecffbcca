"""What is there: a Studio domain with its profiles and spaces, a file system with its network interfaces and folders. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_jlab.admin.entries import Entry

Mode = Literal["shared", "per-user"]
"""One partition for all, or one for each user profile."""

HolderKind = Literal["domain", "space defaults", "profile", "space"]

SETTLED, PASSING = "InService", frozenset({"Pending", "Updating"})
"""SageMaker's words for what can be changed, and for what it is at work on."""

COMMON_UID, COMMON_GID = 200001, 1001
"""Whom Studio makes of everybody whose profile was made without a CustomPosixUserConfig (SageMaker's documentation)."""


@dataclass(frozen=True)
class Holder:
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
class Interface:
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
        said = f"owner {self.uid}:{self.gid}, mode {self.mode:04o}"
        own = {"user": self.mode >> 6 & 7, "group": self.mode >> 3 & 7, "other": self.mode & 7}
        for name, entries in (("ACL", self.acl), ("default ACL", self.default)):
            told = [one for one in entries if one[1] is not None or one[2] != own[one[0]]]
            if told:
                said += f", {name} {','.join(map(_grant_words, told))}"
        return said


def _grant_words(grant: Grant) -> str:
    tag, number, bits = grant
    letters = "".join(
        letter if bits & bit else "-" for letter, bit in (("r", 4), ("w", 2), ("x", 1))
    )
    return f"{tag}:{'' if number is None else number}:{letters}"


@dataclass(frozen=True)
class FileSystem:
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
    interfaces: tuple[Interface, ...] = ()
    mount_name: str | None = None
    folders: Mapping[str, Folder | None] | None = None


@dataclass(frozen=True)
class There:
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
    file_system: FileSystem
    holders: tuple[Holder, ...] = field(default=())
    claim: str | None = None
