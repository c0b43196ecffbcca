"""One folder: looked at, or made and given to whom it is to belong. Both may be done again, and by two at once."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Any, Dict, Mapping, Optional

from .access_lists import (
    ACCESS_LIST,
    DEFAULT_LIST,
    MASK_TAG,
    UNSUPPORTED_ERRORS,
    from_grants,
    read_list,
    to_grants,
    write_list,
)
from .paths import OPEN_FLAGS, PATH_ONLY_FLAGS, WorkError, open_parent


def look_at(root: str, path: str) -> Optional[Dict[str, Any]]:
    """What a folder is; None: there is none."""
    try:
        with open_parent(root, path) as (parent, name):
            descriptor = os.open(name, PATH_ONLY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return {"other": True}
        raise
    try:
        return _state(descriptor)
    finally:
        os.close(descriptor)


def make_folder(root: str, folder_spec: Mapping[str, Any]) -> Dict[str, Any]:
    """Make a folder, or set owner, mode and lists of one that is there; what lies in it is left as it is. What it is then."""
    try:
        with open_parent(root, folder_spec["path"], folder_spec["uid"]) as (parent, name):
            is_new = True
            try:
                os.mkdir(name, 0o700, dir_fd=parent)
            except FileExistsError:
                is_new = False
            try:
                descriptor = os.open(name, OPEN_FLAGS, dir_fd=parent)
            except FileNotFoundError as error:  # somebody takes it away as it is made
                raise WorkError("no_folder") from error
            try:
                if not is_new:
                    _check_owner(descriptor, folder_spec)
                    if _matches(_state(descriptor), folder_spec):
                        return _state(descriptor)
                try:
                    _set_rights(descriptor, folder_spec)
                except OSError:
                    if is_new:
                        with contextlib.suppress(OSError):
                            os.rmdir(name, dir_fd=parent)
                    raise
                return _state(descriptor)
            finally:
                os.close(descriptor)
    except FileNotFoundError as error:
        raise WorkError("no_parent") from error
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise WorkError("no_folder") from error
        raise


def _check_owner(descriptor: int, folder_spec: Mapping[str, Any]) -> None:
    """Take no folder from anybody: it is the wanted owner's already, or root's, and then what is to be private has nothing in it."""
    status = os.fstat(descriptor)
    if status.st_uid == folder_spec["uid"]:
        return
    if status.st_uid != 0:
        raise WorkError("foreign_folder", str(status.st_uid))
    if not folder_spec["mode"] & 0o077 and not _is_empty(descriptor):
        raise WorkError("foreign_folder", "0")


def _matches(state: Mapping[str, Any], folder_spec: Mapping[str, Any]) -> bool:
    return all(state[name] == folder_spec[name] for name in ("uid", "gid", "mode", "acl", "default"))


def _set_rights(descriptor: int, folder_spec: Mapping[str, Any]) -> None:
    """Set owner, mode and lists."""
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (folder_spec["uid"], folder_spec["gid"]):
        # First the owner: a change of it takes the bits for user and group away.
        os.fchown(descriptor, folder_spec["uid"], folder_spec["gid"])
    base = [["user", None, folder_spec["mode"] >> 6 & 7], ["group", None, folder_spec["mode"] >> 3 & 7]]
    base.append(["other", None, folder_spec["mode"] & 7])
    access = from_grants([*base, *folder_spec["acl"]]) if folder_spec["acl"] else []
    mask = [rights for tag, rights, _ in access if tag == MASK_TAG]
    mode = folder_spec["mode"] & ~0o070 | mask[0] << 3 if mask else folder_spec["mode"]
    try:
        if access:
            # Names, rights and mask change in one step. A chmod before would mask all names for a moment, which another admin's program could see.
            write_list(descriptor, ACCESS_LIST, access)
        else:
            # The list goes first: its mask must not become the group's rights.
            write_list(descriptor, ACCESS_LIST, [])
            os.fchmod(descriptor, folder_spec["mode"])
        write_list(descriptor, DEFAULT_LIST, from_grants(folder_spec["default"]))
    except OSError as error:
        if error.errno in UNSUPPORTED_ERRORS:
            raise WorkError("no_acl") from error
        raise
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)  # a list has no setgid and sticky bits, and setting it may take them away


def _state(descriptor: int) -> Dict[str, Any]:
    """What a folder is; it may be opened for looking only."""
    status = os.fstat(descriptor)
    mode = stat.S_IMODE(status.st_mode)
    access_lists = {name: read_list(descriptor, name) for name in (ACCESS_LIST, DEFAULT_LIST)}
    access = to_grants(access_lists[ACCESS_LIST] or [])
    for tag, number, rights in access:
        if tag == "group" and number is None:
            mode = mode & ~0o070 | rights << 3
    return {
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mode": mode,
        "acl": [entry for entry in access if entry[1] is not None],
        "default": to_grants(access_lists[DEFAULT_LIST] or []),
        "takes_acls": access_lists[ACCESS_LIST] is not None,
        "empty": _is_empty(descriptor),
    }


def _is_empty(descriptor: int) -> bool:
    """Whether nothing is in a folder; one that may not be looked into counts as full."""
    try:
        readable_descriptor = os.open(".", OPEN_FLAGS, dir_fd=descriptor)
    except OSError:
        return False
    try:
        with os.scandir(readable_descriptor) as entries:
            return next(entries, None) is None
    finally:
        os.close(readable_descriptor)
