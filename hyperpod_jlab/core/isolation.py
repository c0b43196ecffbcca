"""Who else can read a folder, and what keeps the others out: pure rules on what was seen.

Three things can keep somebody out of a folder of a file system that many machines mount, each weaker than the next one:

- *mount path only*: they mount another folder. The whole file system is reachable elsewhere, and whoever gets there is the same user.
- *POSIX*: modes and access lists, with a user number for each person. Each machine says itself who is who, and its root may be anybody.
- *real identity*: as before, but nobody can say that he is somebody else: the kernel of one machine alone decides, or Kerberos does.
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
"""What a level is called."""

Grantee = Literal["everybody", "group", "user"]


@dataclass(frozen=True)
class Grant:
    """What somebody beside the owner may do with a file or folder.

    Attributes:
        whom: Everybody, a group, or one user.
        name: The group's or user's name, or its number where it has none; None for everybody.
        read: Whether they may read it; for a folder: see what is in it.
        write: Whether they may change it.
        enter: Whether they may go into the folder, to what they know by name.
    """

    whom: Grantee
    name: str | None
    read: bool
    write: bool
    enter: bool = False

    @property
    def words(self) -> str:
        """Such as ``everybody may read``."""
        grantee = self.whom if self.name is None else f"{self.whom} {self.name}"
        if self.read:
            return f"{grantee} may read{' and write' if self.write else ''}"
        if self.write:
            return f"{grantee} may write"
        return f"{grantee} may open files by name"


@dataclass(frozen=True)
class Identity:
    """Whether this user's number on the file system is one person's: a yes or no, and how that is known."""

    own: bool
    evidence: str


@dataclass(frozen=True)
class FolderFacts:
    """What was seen of a folder.

    Attributes:
        network: Whether other machines can mount its file system.
        folder: The folder of the file system that is mounted here, ``/`` for the whole; None where that cannot be seen.
        grants: What others than the owner may do there.
        evidence: The rights in words: modes, owner, what stops others on the way.
        identity: Whether this user's number is one person's.
        kerberos: The kind of Kerberos security of the mount, such as ``krb5p``; None without.
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
        evidence: Why, a sentence each.
        readers: Who else may do what there by its rights, in words. Others may get there too where the level is a weak one.
    """

    level: Level
    evidence: tuple[str, ...]
    readers: tuple[str, ...]

    @property
    @wire_property
    def words(self) -> str:
        """What the level is called."""
        return LEVEL_LABELS[self.level]


def isolation_of(facts: FolderFacts) -> Isolation:
    """The level of isolation that can be answered for: where something is not known, the weaker one."""
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
        evidence.append(
            "each machine that mounts it maps users itself; its root can act as any user"
        )
    if is_subfolder:
        evidence.append(
            f"only {facts.folder} of the file system is mounted here; other machines may mount all of it"
        )
    elif facts.network and facts.folder == "/":
        evidence.append("the whole file system is mounted here")
    return Isolation(level, tuple(evidence), tuple(grant.words for grant in facts.grants))
