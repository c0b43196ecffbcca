"""Users: by the kernel's uid, with a display name."""

from __future__ import annotations

import getpass
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from hyperpod_jlab.core.isolation import Grant, Grantee
from hyperpod_jlab.core.wire import As
from hyperpod_jlab.storage.acl import Principal, is_unmapped, own_uid, permissions
from hyperpod_jlab.storage.files import storage_errors

if TYPE_CHECKING:
    from hyperpod_jlab.core.run import Run


def current_user() -> str:
    """The user's name on this machine; in a shared space all people are one user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"


def user_name(number: int) -> str:
    """The name of a user by uid; this process's own user has the name from `current_user`."""
    if number == own_uid():
        return current_user()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"uid-{number}"


def find_uid(name: str) -> int | None:
    """The uid of a user of this machine; None if there is no such user."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def is_own(run: Run) -> bool:
    """Whether a run is this user's, by its folder's owner."""
    return run.uid == own_uid()


# --------------------------------------------------------------------------------------------------
# Who besides its owner may read a file or folder, by modes and access lists from the file system's
# root down.

_READ, _WRITE, _EXECUTE = 4, 2, 1
_EVERYBODY: Principal = ("everybody", None)


@dataclass(frozen=True)
class PathRights:
    """The permissions on a path.

    Attributes:
        owner: Its owner's name, or uid if it has no name here.
        uid: Its owner's uid.
        mode: The lower twelve bits of its mode.
        grants: Permissions of others, as far as the folders above admit them.
        evidence: The same as text.
    """

    owner: str
    uid: int
    mode: int
    grants: tuple[Grant, ...]
    evidence: tuple[str, ...]


def rights_on(path: Path, top: Path) -> PathRights:
    """The permissions on a path.

    Args:
        path: An existing file or folder.
        top: The folder from which others enter: the mount point of a network file system, else ``/``.

    Raises:
        StorageError: It cannot be read.
    """
    with storage_errors(path):
        resolved = path.resolve(strict=True)
        status = resolved.stat()
        parent_folders = list(_parent_folders(resolved, top.resolve()))
        granted = permissions(resolved)
        folder_rights = [(folder, permissions(folder)) for folder in parent_folders]
    is_folder = stat.S_ISDIR(status.st_mode)
    grants: list[Grant] = []
    blocking: list[dict[Principal, int]] = []
    for principal, granted_bits in granted.items():
        bits = granted_bits if is_folder else granted_bits & ~_EXECUTE
        if not bits or principal == ("user", status.st_uid):
            continue
        if all(_may_enter(principal, rights_there) for _, rights_there in folder_rights):
            grants.append(_grant(principal, bits))
        elif principal == _EVERYBODY:
            blocking = [rights_there for _, rights_there in folder_rights if not _may_enter(principal, rights_there)]
            grants += [_grant(entry, bits) for entry in _allowed_principals(blocking) - granted.keys()]
    mode = stat.S_IMODE(status.st_mode)
    owner = _user(status.st_uid)
    evidence = [f"{resolved} has mode {mode:04o} and belongs to {owner} (uid {status.st_uid})"]
    if len(granted) > 2:
        evidence.append(f"{resolved} has an ACL")
    if blocking:
        barrier = next(folder for folder, rights_there in folder_rights if rights_there is blocking[0])
        evidence.append(f"{barrier} is not accessible for all users")
    return PathRights(owner, status.st_uid, mode, tuple(grants), tuple(evidence))


def _parent_folders(path: Path, top: Path) -> Iterator[Path]:
    """The folders above a path, from the top (included) down."""
    return (folder for folder in reversed(path.parents) if folder.is_relative_to(top))


def _may_enter(principal: Principal, granted: dict[Principal, int]) -> bool:
    return bool((granted.get(principal, 0) | granted.get(_EVERYBODY, 0)) & _EXECUTE)


def _allowed_principals(barriers: list[dict[Principal, int]]) -> set[Principal]:
    """Users and groups that every one of these folders admits by name."""
    allowed = ({principal for principal, bits in barrier.items() if bits & _EXECUTE} for barrier in barriers)
    return set.intersection(*allowed)


def _grant(principal: Principal, bits: int) -> Grant:
    grantee: Grantee = principal[0]
    number = principal[1]
    name = None
    if number is not None:
        name = _user(number) if grantee == "user" else _group(number)
    return Grant(grantee, name, bool(bits & _READ), bool(bits & _WRITE), bool(bits & _EXECUTE))


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
# Who can replace the folders that contain runs, by owners and modes of the parents. A job's guard
# (launcher/guard.py) checks the same on its node.

Problem = Literal["foreign", "open", "group"]
"""Its owner is another user; all users may rename its entries; a group may."""


Octal = Annotated[int, As(str, "{:04o}".format)]
"""Permission bits; serialized as four octal digits."""


@dataclass(frozen=True)
class Parent:
    """A folder above our own.

    Attributes:
        path: Its path, with links resolved.
        uid: Its owner.
        mode: Its permission bits.
        problem: Why a user other than root and this one can replace its entries; None if none can.
    """

    path: Path
    uid: int
    mode: Octal
    problem: Problem | None = None

    @property
    def reason(self) -> str:
        """The problem as text, for a sentence that begins with the path."""
        if self.problem == "foreign":
            return f"belongs to another user (uid {self.uid})"
        subject = "all users" if self.problem == "open" else "its group"
        return f"can be changed by {subject} and is not sticky (mode {self.mode:04o})"

    @property
    def fix(self) -> str:
        """How its owner or an administrator can fix it."""
        if self.problem == "foreign":
            return f"ask an administrator for chown root {self.path}, or set path under [storage] to your own folder"
        return f"ask its owner or an administrator for chmod +t {self.path}"


def ancestor_folders(root: Path, uid: int | None = None) -> list[Parent]:
    """The partition's root and the folders above it, from ``/`` on.

    Args:
        root: The partition's root; links are followed.
        uid: The user to check for; default: this process's.

    Raises:
        OSError: A folder cannot be read.
    """
    own_id = os.getuid() if uid is None else uid
    resolved = Path(os.path.realpath(root))
    folders = [_parent(resolved, own_id)]
    while resolved != resolved.parent:
        resolved = resolved.parent
        folders.append(_parent(resolved, own_id))
    return folders[::-1]


def unsafe_parent(root: Path, *, group: bool) -> Parent | None:
    """The first parent in which another user can replace this user's files.

    Args:
        root: The partition's root.
        group: Whether a group with write permission counts as other users. On a private partition the group is trusted.

    Raises:
        OSError: A folder cannot be read.
    """
    bad = (parent for parent in ancestor_folders(root) if parent.problem is not None)
    return next((parent for parent in bad if group or parent.problem != "group"), None)


def _parent(path: Path, own_id: int) -> Parent:
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    return Parent(path, status.st_uid, mode, _problem(status.st_uid, mode, own_id))


def _problem(uid: int, mode: int, own_id: int) -> Problem | None:
    if uid not in {0, own_id} and not is_unmapped(uid):  # owned by root, or the nodes' guard refuses it
        return "foreign"
    if mode & stat.S_ISVTX:  # only the owner of an entry, and of the folder, may rename it
        return None
    if mode & stat.S_IWOTH:
        return "open"
    return "group" if mode & stat.S_IWGRP else None
