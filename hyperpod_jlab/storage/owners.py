"""Who users are: by the number that the kernel knows, with a name for people."""

from __future__ import annotations

import getpass
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from hyperpod_jlab.core.isolation import Grant, Grantee
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.wire import As
from hyperpod_jlab.storage.acl import Person, is_unseen, own_number, permissions
from hyperpod_jlab.storage.files import storage_errors


def current_user() -> str:
    """The user's name on this machine; in a shared space all people act as the space."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"


def user_name(number: int) -> str:
    """The name of a user by number; this process's own user is called as everywhere."""
    if number == own_number():
        return current_user()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid-{number}"


def user_number(name: str) -> int | None:
    """The number of a user of this machine; None where there is no such user."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def is_own(run: Run) -> bool:
    """Whether a run is this user's, by the owner of its folder."""
    return run.uid == own_number()


# --------------------------------------------------------------------------------------------------
# Who beside its owner may read a file or folder, by modes and access lists from the file system's root down to it.

_READ, _WRITE, _ENTER = 4, 2, 1
_EVERYBODY: Person = ("everybody", None)


@dataclass(frozen=True)
class PathRights:
    """The rights on a path.

    Attributes:
        owner: Its owner's name, or number where it has none here.
        uid: Its owner's number.
        mode: Its mode's lower twelve bits.
        grants: What others may do, as far as the folders above let them through.
        evidence: That in words.
    """

    owner: str
    uid: int
    mode: int
    grants: tuple[Grant, ...]
    evidence: tuple[str, ...]


def rights_on(path: Path, top: Path) -> PathRights:
    """The rights on a path.

    Args:
        path: A file or folder that exists.
        top: The folder above it from which others come: the mount point of what other machines mount too, else ``/``.

    Raises:
        StorageError: It cannot be looked at.
    """
    with storage_errors(path):
        real = path.resolve(strict=True)
        found = real.stat()
        above = list(_above(real, top.resolve()))
        held = permissions(real)
        passing = [(folder, permissions(folder)) for folder in above]
    is_folder = stat.S_ISDIR(found.st_mode)
    grants: list[Grant] = []
    stopped: list[dict[Person, int]] = []
    for person, bits in held.items():
        rights = bits if is_folder else bits & ~_ENTER
        if not rights or person == ("user", found.st_uid):
            continue
        if all(_may_enter(person, their) for _, their in passing):
            grants.append(_grant(person, rights))
        elif person == _EVERYBODY:
            stopped = [their for _, their in passing if not _may_enter(person, their)]
            grants += [_grant(one, rights) for one in _let_through(stopped) - held.keys()]
    mode = stat.S_IMODE(found.st_mode)
    owner = _user(found.st_uid)
    evidence = [f"{real} has mode {mode:04o} and belongs to {owner} (uid {found.st_uid})"]
    if len(held) > 2:
        evidence.append(f"{real} has an ACL")
    if stopped:
        bar = next(folder for folder, their in passing if their is stopped[0])
        evidence.append(f"{bar} is not accessible for all users")
    return PathRights(owner, found.st_uid, mode, tuple(grants), tuple(evidence))


def _above(path: Path, top: Path) -> Iterator[Path]:
    """The folders above a path, from the top down, the top included."""
    return (folder for folder in reversed(path.parents) if folder.is_relative_to(top))


def _may_enter(person: Person, rights: dict[Person, int]) -> bool:
    return bool((rights.get(person, 0) | rights.get(_EVERYBODY, 0)) & _ENTER)


def _let_through(bars: list[dict[Person, int]]) -> set[Person]:
    """Grantee every one of these folders, which do not let everybody through, lets through by name."""
    each = ({person for person, bits in bar.items() if bits & _ENTER} for bar in bars)
    return set.intersection(*each)


def _grant(person: Person, bits: int) -> Grant:
    whom: Grantee = person[0]
    number = person[1]
    name = None
    if number is not None:
        name = _user(number) if whom == "user" else _group(number)
    return Grant(whom, name, bool(bits & _READ), bool(bits & _WRITE), bool(bits & _ENTER))


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


# --------------------------------------------------------------------------------------------------
# Who can exchange the folders in which runs lie: the owners and modes of a folder's parents. A job's guard (launcher/guard.py) asks the same on its node.

Problem = Literal["foreign", "open", "group"]
"""Its owner is another user; all users may rename what lies in it; a group may."""


Octal = Annotated[int, As(str, "{:04o}".format)]
"""Permission bits; on the wire four octal digits."""


@dataclass(frozen=True)
class Parent:
    """A folder above our own.

    Attributes:
        path: Its path, with no link in it.
        uid: Its owner.
        mode: Its permission bits.
        problem: Why what lies in it can be exchanged by another user than root and this one; None when it cannot.
    """

    path: Path
    uid: int
    mode: Octal
    problem: Problem | None = None

    @property
    def reason(self) -> str:
        """The problem in words, for a sentence that begins with the path."""
        if self.problem == "foreign":
            return f"belongs to another user (uid {self.uid})"
        who = "all users" if self.problem == "open" else "its group"
        return f"can be changed by {who} and is not sticky (mode {self.mode:04o})"

    @property
    def fix(self) -> str:
        """What its owner or an administrator can do about it."""
        if self.problem == "foreign":
            return f"ask an administrator for chown root {self.path}, or set path under [storage] to your own folder"
        return f"ask its owner or an administrator for chmod +t {self.path}"


def parents(root: Path, uid: int | None = None) -> list[Parent]:
    """The partition's root and the folders above it, from ``/`` on.

    Args:
        root: The partition's root; links to it are followed.
        uid: The user to judge for; this process's.

    Raises:
        OSError: One of them cannot be looked at.
    """
    me = os.getuid() if uid is None else uid
    here = Path(os.path.realpath(root))
    found = [_parent(here, me)]
    while here != here.parent:
        here = here.parent
        found.append(_parent(here, me))
    return found[::-1]


def unsafe_parent(root: Path, *, group: bool) -> Parent | None:
    """The first parent in which another user can exchange what is this user's.

    Args:
        root: The partition's root.
        group: Whether a group that may write counts as other users. On a private partition the group is trusted.

    Raises:
        OSError: One of them cannot be looked at.
    """
    bad = (parent for parent in parents(root) if parent.problem is not None)
    return next((parent for parent in bad if group or parent.problem != "group"), None)


def _parent(path: Path, me: int) -> Parent:
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    return Parent(path, found.st_uid, mode, _problem(found.st_uid, mode, me))


def _problem(uid: int, mode: int, me: int) -> Problem | None:
    if uid not in {0, me} and not is_unseen(uid):  # which is root's, or the nodes' guard refuses it
        return "foreign"
    if mode & stat.S_ISVTX:  # only the owner of an entry, and of the folder, may rename it
        return None
    if mode & stat.S_IWOTH:
        return "open"
    return "group" if mode & stat.S_IWGRP else None
