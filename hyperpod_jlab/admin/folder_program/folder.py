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
    NO_LISTS,
    list_entries,
    put_list,
    read_list,
    shown_list,
)
from .paths import LOOK_AT_FOLDER, OPEN_FOLDER, WorkError, opened_parent


def look_at(root: str, path: str) -> Optional[Dict[str, Any]]:
    """What a folder is; None: there is none."""
    try:
        with opened_parent(root, path) as (parent, name):
            opened = os.open(name, LOOK_AT_FOLDER, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return {"other": True}
        raise
    try:
        return _state(opened)
    finally:
        os.close(opened)


def make_folder(root: str, wanted: Mapping[str, Any]) -> Dict[str, Any]:
    """Make a folder, or set owner, mode and lists of one that is there; what lies in it is left as it is. What it is then."""
    try:
        with opened_parent(root, wanted["path"]) as (parent, name):
            made = True
            try:
                os.mkdir(name, 0o700, dir_fd=parent)
            except FileExistsError:
                made = False
            try:
                opened = os.open(name, OPEN_FOLDER, dir_fd=parent)
            except FileNotFoundError as error:  # somebody takes it away as it is made
                raise WorkError("no_folder") from error
            try:
                if not made:
                    _see_whose(opened, wanted)
                    if _is_right(_state(opened), wanted):
                        return _state(opened)
                try:
                    _give(opened, wanted)
                except OSError:
                    if made:
                        with contextlib.suppress(OSError):
                            os.rmdir(name, dir_fd=parent)
                    raise
                return _state(opened)
            finally:
                os.close(opened)
    except FileNotFoundError as error:
        raise WorkError("no_parent") from error
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise WorkError("no_folder") from error
        raise


def _see_whose(opened: int, wanted: Mapping[str, Any]) -> None:
    """Take no folder from anybody: it is the wanted owner's already, or root's, and then what is to be private has nothing in it."""
    found = os.fstat(opened)
    if found.st_uid == wanted["uid"]:
        return
    if found.st_uid != 0:
        raise WorkError("foreign_folder", str(found.st_uid))
    if not wanted["mode"] & 0o077 and not _is_empty(opened):
        raise WorkError("foreign_folder", "0")


def _is_right(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(found[name] == wanted[name] for name in ("uid", "gid", "mode", "acl", "default"))


def _give(opened: int, wanted: Mapping[str, Any]) -> None:
    """Set owner, mode and lists."""
    found = os.fstat(opened)
    if (found.st_uid, found.st_gid) != (wanted["uid"], wanted["gid"]):
        # First the owner: a change of it takes the bits for user and group away.
        os.fchown(opened, wanted["uid"], wanted["gid"])
    base = [["user", None, wanted["mode"] >> 6 & 7], ["group", None, wanted["mode"] >> 3 & 7]]
    base.append(["other", None, wanted["mode"] & 7])
    access = list_entries([*base, *wanted["acl"]]) if wanted["acl"] else []
    mask = [rights for tag, rights, _ in access if tag == MASK_TAG]
    mode = wanted["mode"] & ~0o070 | mask[0] << 3 if mask else wanted["mode"]
    try:
        # Names of a list that is there must not outlive it, nor the mask become the group's rights: so first the list goes, or else is masked by the mode.
        if not access:
            put_list(opened, ACCESS_LIST, [])
        os.fchmod(opened, wanted["mode"])
        if access:
            put_list(opened, ACCESS_LIST, access)
        put_list(opened, DEFAULT_LIST, list_entries(wanted["default"]))
    except OSError as error:
        if error.errno in NO_LISTS:
            raise WorkError("no_acl") from error
        raise
    if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
        os.fchmod(opened, mode)  # setting a list may take the bit of the group away


def _state(opened: int) -> Dict[str, Any]:
    """What a folder is; it may be opened for looking only."""
    found = os.fstat(opened)
    mode = stat.S_IMODE(found.st_mode)
    lists = {name: read_list(opened, name) for name in (ACCESS_LIST, DEFAULT_LIST)}
    access = shown_list(lists[ACCESS_LIST] or [])
    for tag, number, rights in access:
        if tag == "group" and number is None:
            mode = mode & ~0o070 | rights << 3
    return {
        "uid": found.st_uid,
        "gid": found.st_gid,
        "mode": mode,
        "acl": [entry for entry in access if entry[1] is not None],
        "default": shown_list(lists[DEFAULT_LIST] or []),
        "takes_acls": lists[ACCESS_LIST] is not None,
        "empty": _is_empty(opened),
    }


def _is_empty(opened: int) -> bool:
    """Whether nothing is in a folder; one that may not be looked into counts as full."""
    try:
        again = os.open(".", OPEN_FOLDER, dir_fd=opened)
    except OSError:
        return False
    try:
        with os.scandir(again) as entries:
            return next(entries, None) is None
    finally:
        os.close(again)
