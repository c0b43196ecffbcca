"""Access lists (ACLs) of folders, as Linux keeps them (linux/posix_acl_xattr.h)."""

from __future__ import annotations

import errno
import os
import struct
from typing import Any, List, Optional, Sequence, Tuple

ACCESS_LIST, DEFAULT_LIST = "system.posix_acl_access", "system.posix_acl_default"
UNSUPPORTED_ERRORS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
MASK_TAG = 0x10

_HEAD, _ENTRY = struct.pack("<I", 2), struct.Struct("<HHI")
_NO_ID = 0xFFFFFFFF
_USER_OBJ, _USER, _GROUP_OBJ, _GROUP, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x20
_TAGS = {_USER_OBJ: "user", _USER: "user", _GROUP_OBJ: "group", _GROUP: "group", _OTHER: "other"}
_MASKED = (_USER, _GROUP_OBJ, _GROUP)

Acl = List[Tuple[int, int, int]]
"""Entries: tag, permissions, number."""


def from_grants(grants: Sequence[Sequence[Any]]) -> Acl:
    """A list as Linux keeps it; with names in it, it needs a mask, which lets them all through."""
    entries = []
    for tag, number, rights in grants:
        if tag == "other":
            entries.append((_OTHER, rights, _NO_ID))
        elif number is None:
            entries.append((_USER_OBJ if tag == "user" else _GROUP_OBJ, rights, _NO_ID))
        else:
            entries.append((_USER if tag == "user" else _GROUP, rights, number))
    if any(tag in (_USER, _GROUP) for tag, _, _ in entries):
        mask = 0
        for tag, rights, _ in entries:
            if tag in _MASKED:
                mask |= rights
        entries.append((MASK_TAG, mask, _NO_ID))
    return sorted(entries, key=lambda entry: (entry[0], entry[2]))


def to_grants(entries: Acl) -> List[List[Any]]:
    """A list for people: what its mask takes away is taken away."""
    masks = [rights for tag, rights, _ in entries if tag == MASK_TAG]
    mask = masks[0] if masks else 7
    return [
        [_TAGS[tag], None if number == _NO_ID else number, rights & mask if tag in _MASKED else rights]
        for tag, rights, number in entries
        if tag in _TAGS
    ]  # fmt: skip


def read_list(descriptor: int, name: str) -> Optional[Acl]:
    """A list; None: the file system keeps none."""
    try:
        data = os.getxattr("/proc/self/fd/%d" % descriptor, name)
    except OSError as error:
        if error.errno in UNSUPPORTED_ERRORS:
            return None
        if error.errno == errno.ENODATA:
            return []
        raise
    return [(tag, rights, number) for tag, rights, number in _ENTRY.iter_unpack(data[4:])]


def write_list(descriptor: int, name: str, entries: Acl) -> None:
    """Set a list; without entries there is none then."""
    if entries:
        data = _HEAD + b"".join(_ENTRY.pack(*entry) for entry in entries)
        os.setxattr(descriptor, name, data)
        return
    try:
        os.removexattr(descriptor, name)
    except OSError as error:
        if error.errno != errno.ENODATA and error.errno not in UNSUPPORTED_ERRORS:
            raise
