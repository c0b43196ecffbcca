"""POSIX ACLs that give one more user access to private files, for jobs that run as another user than the submitter.

The lists are written as Linux' extended attributes (linux/posix_acl_xattr.h), so that no external program is needed.
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
_NO_ID = 0xFFFFFFFF
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_READ, _WRITE, _EXECUTE = 4, 2, 1
_UNSUPPORTED = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

Principal = tuple[Literal["everybody", "group", "user"], int | None]
"""A principal other than the owner: everybody, or a group or user by id."""

Entries = dict[tuple[int, int], int]
"""Permissions (as in a mode) by tag and user or group id."""


def grant_traversal(folder: Path, uid: int) -> None:
    """Let a user traverse a folder without listing it.

    Raises:
        StorageError: With code ``no_acl`` if the file system has no ACLs.
    """
    if folder.stat().st_mode & stat.S_IXOTH:
        return
    _allow(folder, _ACCESS, {uid: _EXECUTE})


def grant_tree(folder: Path, uid: int) -> None:
    """Give a user the owner's permissions on a folder tree, and let either use what the other creates there later.

    Raises:
        StorageError: With code ``no_acl`` if the file system has no ACLs.
    """
    both = {uid: 7, os.getuid(): 7}
    for parent, _, names in os.walk(folder):
        _allow(Path(parent), _ACCESS, {uid: 7})
        _allow(Path(parent), _DEFAULT, both)
        for name in names:
            path = Path(parent, name)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                _allow(path, _ACCESS, {uid: status.st_mode >> 6 & 7})


def has_acl(folder: Path) -> bool:
    """Whether a folder has an ACL, so that the group bits of its mode are the mask."""
    try:
        return bool(os.getxattr(folder, _ACCESS))
    except OSError:
        return False


def permissions(path: Path) -> dict[Principal, int]:
    """The permissions that a mode or access list gives to the owning group, to everybody else, and to named users and groups.

    Returns:
        Permission bits as in a mode, without the owner's; a list's mask is applied.

    Raises:
        OSError: It cannot be read.
    """
    status, entries = path.stat(), _read(path, _ACCESS)
    mask = entries.get((_MASK, _NO_ID), 7)
    granted: dict[Principal, int] = {}
    for (tag, number), bits in entries.items():
        if tag == _GROUP_OBJ:
            principal: Principal = ("group", status.st_gid)
        elif tag == _OTHER:
            granted["everybody", None] = bits
            continue
        elif tag in {_USER, _GROUP}:
            principal = ("user" if tag == _USER else "group", number)
        else:
            continue
        granted[principal] = granted.get(principal, 0) | bits & mask
    return granted


def _allow(path: Path, kind: str, users: Mapping[int, int]) -> None:
    """Add users' permissions to the list of a file or folder; keeps the other entries."""
    entries = _read(path, kind)
    for uid, new_bits in users.items():
        entries[_USER, uid] = entries.get((_USER, uid), 0) | new_bits
    mask = 0
    for (tag, _), new_bits in entries.items():
        if tag in {_USER, _GROUP_OBJ, _GROUP}:
            mask |= new_bits
    entries[_MASK, _NO_ID] = mask
    data = _VERSION + b"".join(
        _ENTRY.pack(tag, new_bits, number) for (tag, number), new_bits in sorted(entries.items())
    )
    with storage_errors(path):
        try:
            os.setxattr(path, kind, data)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                raise _no_acl(path) from error
            raise


def _read(path: Path, kind: str) -> Entries:
    """The list of a file or folder; without one, the entries of its mode."""
    try:
        data = os.getxattr(path, kind)
    except OSError:
        if kind == _DEFAULT:  # new entries of a folder are for those who may use the folder
            access_list = _read(path, _ACCESS)
            return {(tag, _NO_ID): access_list[tag, _NO_ID] for tag in (_USER_OBJ, _GROUP_OBJ, _OTHER)}
        mode = path.stat().st_mode
        mode_bits = {_USER_OBJ: mode >> 6 & 7, _GROUP_OBJ: mode >> 3 & 7, _OTHER: mode & 7}
        return {(tag, _NO_ID): value for tag, value in mode_bits.items()}
    entries = _ENTRY.iter_unpack(data[len(_VERSION) :])
    return {(tag, number): mode_bits for tag, mode_bits, number in entries}


def _no_acl(path: Path) -> StorageError:
    return StorageError(
        f"the file system of the storage partition does not support ACLs, so jobs of another user cannot get access to your runs ({path})",
        code="no_acl",
        hint=f"run jobs as the user with the uid of this machine, {os.getuid()}: set login_nodes to name@host",
        detail={"path": str(path)},
    )


# --------------------------------------------------------------------------------------------------
# User ids as file servers and other machines know them, independent of this process's user
# namespace (user_namespaces(7)).
#
# In Studio the user 1000 of every space is 200001, or the user profile's own id, on file systems;
# the kernel shows all users outside the namespace as one id.

_UID_MAP = Path("/proc/self/uid_map")
_FULL_MAPPING = ((0, 0, 4_294_967_295),)

OVERFLOW_UID = 65_534
"""The owner id that the kernel shows for users outside the namespace (``/proc/sys/kernel/overflowuid``)."""


def own_uid() -> int:
    """This process's user."""
    return host_uid(os.getuid())


def host_uid(uid: int) -> int:
    """A user's id outside this process's user namespace; an id that is not mapped is unchanged."""
    for inside_start, outside_start, count in _mapping():
        if inside_start <= uid < inside_start + count:
            return outside_start + uid - inside_start
    return uid


def is_uid(uid: int, number: int) -> bool:
    """Whether an owner that the kernel shows is the user with this id, or may be, if the user namespace does not map that user."""
    if host_uid(uid) == number:
        return uid != OVERFLOW_UID or not is_unmapped(uid)
    return is_unmapped(uid) and number != own_uid()


def is_unmapped(uid: int) -> bool:
    """Whether an owner that the kernel shows stands for any user outside this process's user namespace."""
    return uid == OVERFLOW_UID and _mapping() != _FULL_MAPPING


@functools.lru_cache(maxsize=1)
def _mapping() -> tuple[tuple[int, int, int], ...]:
    try:
        lines = _UID_MAP.read_text(encoding="ascii").splitlines()
        return tuple((int(a), int(b), int(c)) for a, b, c in map(str.split, lines))
    except (OSError, ValueError):
        return _FULL_MAPPING
