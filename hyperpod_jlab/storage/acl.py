"""Letting one further user into what is otherwise private: POSIX ACLs, for jobs that run as another user than the one who submits.

The lists are written as the extended attributes that Linux keeps them in (linux/posix_acl_xattr.h), so that no program has to be there.
With a list, the group bits of a mode are its mask: an upper bound for everybody but the owner.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.storage.files import storage_errors

_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_VERSION = struct.pack("<I", 2)
_ENTRY = struct.Struct("<HHI")
_NOBODY = 0xFFFFFFFF
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_READ, _WRITE, _PASS = 4, 2, 1
_UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Person = tuple[Literal["everybody", "group", "user"], int | None]
"""Somebody beside the owner: everybody, or a group or user by number."""

Entries = dict[tuple[int, int], int]
"""Permissions (as in a mode) by tag and user or group number."""


def let_through(folder: Path, uid: int) -> None:
    """Let a user through a folder, without showing what is in it.

    Raises:
        StorageError: With code ``no_acl`` where the file system keeps no ACLs.
    """
    if folder.stat().st_mode & stat.S_IXOTH:
        return
    _allow(folder, _ACCESS, {uid: _PASS})


def open_tree(folder: Path, uid: int) -> None:
    """Give a user the owner's rights on a folder and all in it, and see to it that either can use what the other makes there later.

    Raises:
        StorageError: With code ``no_acl`` where the file system keeps no ACLs.
    """
    both = {uid: 7, os.getuid(): 7}
    for parent, _, names in os.walk(folder):
        _allow(Path(parent), _ACCESS, {uid: 7})
        _allow(Path(parent), _DEFAULT, both)
        for name in names:
            path = Path(parent, name)
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                _allow(path, _ACCESS, {uid: found.st_mode >> 6 & 7})


def is_opened(folder: Path) -> bool:
    """Whether a folder has an ACL, so that the group bits of its mode are no group's."""
    try:
        return bool(os.getxattr(folder, _ACCESS))
    except OSError:
        return False


def permissions(path: Path) -> dict[Person, int]:
    """What a mode or, where there is one, an access list gives to the owning group, to everybody else, and to users and groups that it names.

    Returns:
        Permission bits as in a mode; those of the owner are left out, and what a list's mask takes away is taken away.

    Raises:
        OSError: It cannot be looked at.
    """
    found, entries = path.stat(), _read(path, _ACCESS)
    mask = entries.get((_MASK, _NOBODY), 7)
    held: dict[Person, int] = {}
    for (tag, number), bits in entries.items():
        if tag == _GROUP_OBJ:
            person: Person = ("group", found.st_gid)
        elif tag == _OTHER:
            held["everybody", None] = bits
            continue
        elif tag in {_USER, _GROUP}:
            person = ("user" if tag == _USER else "group", number)
        else:
            continue
        held[person] = held.get(person, 0) | bits & mask
    return held


def _allow(path: Path, kind: str, users: Mapping[int, int]) -> None:
    """Add rights of users to the list of a file or folder; what others have stays."""
    entries = _read(path, kind)
    for uid, rights in users.items():
        entries[_USER, uid] = entries.get((_USER, uid), 0) | rights
    mask = 0
    for (tag, _), rights in entries.items():
        if tag in {_USER, _GROUP_OBJ, _GROUP}:
            mask |= rights
    entries[_MASK, _NOBODY] = mask
    data = _VERSION + b"".join(
        _ENTRY.pack(tag, rights, number) for (tag, number), rights in sorted(entries.items())
    )
    with storage_errors(path):
        try:
            os.setxattr(path, kind, data)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                raise _no_acl(path) from error
            raise


def _read(path: Path, kind: str) -> Entries:
    """The list of a file or folder; where it has none, what its mode says."""
    try:
        data = os.getxattr(path, kind)
    except OSError:
        if kind == _DEFAULT:  # what is made in a folder is for those who may use the folder
            theirs = _read(path, _ACCESS)
            return {(tag, _NOBODY): theirs[tag, _NOBODY] for tag in (_USER_OBJ, _GROUP_OBJ, _OTHER)}
        mode = path.stat().st_mode
        rights = {_USER_OBJ: mode >> 6 & 7, _GROUP_OBJ: mode >> 3 & 7, _OTHER: mode & 7}
        return {(tag, _NOBODY): value for tag, value in rights.items()}
    entries = _ENTRY.iter_unpack(data[len(_VERSION) :])
    return {(tag, number): rights for tag, rights, number in entries}


def _no_acl(path: Path) -> StorageError:
    return StorageError(
        f"the file system of the storage partition does not support ACLs, so jobs of another user cannot get access to your runs ({path})",
        code="no_acl",
        hint=f"run jobs as the user with the uid of this machine, {os.getuid()}: set login_nodes to name@host",
        detail={"path": str(path)},
    )


# --------------------------------------------------------------------------------------------------
# User numbers as file servers and other machines know them, whatever user namespace this process is in (user_namespaces(7)).
#
# In Studio the user 1000 of every space is 200001, or the user profile's own number, on file systems; and the kernel shows all users that are not in the namespace as one number.

_MAP = Path("/proc/self/uid_map")
_EVERYBODY = ((0, 0, 4_294_967_295),)

UNSEEN = 65_534
"""What the kernel shows as owner when that is not in the namespace (``/proc/sys/kernel/overflowuid``)."""


def own_number() -> int:
    """This process's user."""
    return number_outside(os.getuid())


def number_outside(uid: int) -> int:
    """A user's number outside this process's user namespace; one that is not in it stays as it is."""
    for inside, outside, count in _mapping():
        if inside <= uid < inside + count:
            return outside + uid - inside
    return uid


def is_number(uid: int, number: int) -> bool:
    """Whether an owner that the kernel shows is the user with a number, or, in a user namespace that does not have that user, may be."""
    if number_outside(uid) == number:
        return uid != UNSEEN or not is_unseen(uid)
    return is_unseen(uid) and number != own_number()


def is_unseen(uid: int) -> bool:
    """Whether an owner that the kernel shows stands for any user outside of this process's user namespace."""
    return uid == UNSEEN and _mapping() != _EVERYBODY


@functools.lru_cache(maxsize=1)
def _mapping() -> tuple[tuple[int, int, int], ...]:
    try:
        lines = _MAP.read_text(encoding="ascii").splitlines()
        return tuple((int(a), int(b), int(c)) for a, b, c in map(str.split, lines))
    except (OSError, ValueError):
        return _EVERYBODY
