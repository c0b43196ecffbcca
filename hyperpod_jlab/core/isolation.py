"""Who else can read a folder, and what keeps others out: pure rules on collected facts.

Three levels of isolation protect a folder on a file system that many machines mount, weakest first:

- *mount path only*: others mount another folder. The whole file system is reachable elsewhere, and everyone there has the same user id.
- *POSIX*: modes and access lists, with a user id per person. Each machine decides who is who, and its root can be any user.
- *real identity*: as before, but users cannot impersonate others: one machine's kernel alone decides, or Kerberos does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.wire import Wire, wire_property

Level = Literal["none", "mount_path_only", "posix", "real_identity"]

LEVEL_LABELS: dict[Level, str] = {
    "none": "none",
    "mount_path_only": "mount path only",
    "posix": "POSIX",
    "real_identity": "real identity",
}
"""Display names of the levels."""

Grantee = Literal["everybody", "group", "user"]


@dataclass(frozen=True)
class Grant:
    """Permissions of users other than the owner on a file or folder.

    Attributes:
        whom: Everybody, a group, or one user.
        name: The group's or user's name, or its id if it has no name; None for everybody.
        read: Whether they may read it; for a folder: list it.
        write: Whether they may change it.
        enter: Whether they may enter the folder, to reach entries that they know by name.
    """

    whom: Grantee
    name: str | None
    read: bool
    write: bool
    enter: bool = False

    @property
    def words(self) -> str:
        """For example ``everybody may read``."""
        grantee = self.whom if self.name is None else f"{self.whom} {self.name}"
        if self.read:
            return f"{grantee} may read{' and write' if self.write else ''}"
        if self.write:
            return f"{grantee} may write"
        return f"{grantee} may open files by name"


@dataclass(frozen=True)
class Identity:
    """Whether this user's id on the file system belongs to one person: the answer, and the evidence."""

    own: bool
    evidence: str


@dataclass(frozen=True)
class FolderFacts:
    """Facts about a folder.

    Attributes:
        network: Whether other machines can mount its file system.
        folder: The folder of the file system that is mounted here, ``/`` for all of it; None if unknown.
        grants: Permissions of users other than the owner.
        evidence: The permissions as text: modes, owner, what blocks others on the path.
        identity: Whether this user's id belongs to one person.
        kerberos: The Kerberos security of the mount, such as ``krb5p``; None without.
    """

    network: bool
    folder: str | None
    grants: tuple[Grant, ...]
    evidence: tuple[str, ...]
    identity: Identity
    kerberos: str | None = None


@dataclass(frozen=True)
class Isolation(Wire):
    """What keeps others out of a folder.

    Attributes:
        level: How strong it is.
        evidence: Why, one sentence each.
        readers: Who else has permissions on it, as text. With a weak level others may get access too.
    """

    level: Level
    evidence: tuple[str, ...]
    readers: tuple[str, ...]

    @property
    @wire_property
    def words(self) -> str:
        return LEVEL_LABELS[self.level]


def isolation_of(facts: FolderFacts) -> Isolation:
    """The isolation level that the facts prove; unknown facts give the weaker level."""
    is_open = any(grant.whom == "everybody" for grant in facts.grants)
    is_subfolder = facts.folder not in {None, "/"}
    level: Level
    evidence = list(facts.evidence)
    evidence.append(facts.identity.evidence)
    if is_open or not facts.identity.own:
        level = "mount_path_only" if is_subfolder else "none"
    elif not facts.network:
        level = "real_identity"
        evidence.append(
            "the file system is local: only this machine's kernel maps users, and only its root can bypass that"
        )
    elif facts.kerberos is not None:
        level = "real_identity"
        evidence.append(f"Kerberos authenticates users (sec={facts.kerberos})")
    else:
        level = "posix"
        evidence.append("each machine that mounts it maps users itself; its root can act as any user")
    if is_subfolder:
        evidence.append(f"only {facts.folder} of the file system is mounted here; other machines may mount all of it")
    elif facts.network and facts.folder == "/":
        evidence.append("the whole file system is mounted here")
    return Isolation(level, tuple(evidence), tuple(grant.words for grant in facts.grants))
