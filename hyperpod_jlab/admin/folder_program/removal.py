"""Deleting a folder with all that is in it, beside users who may change what is there meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from typing import Any, List, Mapping, Optional

from .paths import OPEN_FOLDER, WorkError, opened_parent

_REFILLS = 3
"""Times that a folder is emptied again into which somebody has put something meanwhile."""

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What is said when a folder is none any more."""

_DEEPEST = 100
"""Folders that are open at a time: what lies deeper is moved up before."""


def delete_folder(root: str, wanted: Mapping[str, Any], seconds: float) -> bool:
    """Delete a folder that is still its owner's. Links in it are deleted and never followed, and no other file system is entered.

    Args:
        root: Where the whole file system is.
        wanted: ``path`` of the folder, and ``uid`` of its owner.
        seconds: The time for it.

    Returns:
        Whether nothing is left; else the time was up, and the rest may be deleted by calling this again.
    """
    until = time.monotonic() + seconds
    with opened_parent(root, wanted["path"]) as (parent, name):
        if name == ".":
            raise WorkError("no_path")
        try:
            opened = os.open(name, OPEN_FOLDER, dir_fd=parent)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno in _CHANGED:
                raise WorkError("no_folder") from error
            raise
        try:
            owner = os.fstat(opened).st_uid
            if owner != wanted["uid"]:
                raise WorkError("foreign_folder", str(owner))
            for _ in range(_REFILLS):
                if not _emptied(opened, until):
                    return False
                if _is_removed(name, parent):
                    return True
        finally:
            os.close(opened)
    raise WorkError("in_use")


def _emptied(top: int, until: float) -> bool:
    """Delete what is in a folder; False: the time is up before the end."""
    device = os.fstat(top).st_dev
    opened = [os.dup(top)]
    names: List[str] = []
    refills = 0
    try:
        while True:
            inner = _first_folder(opened[-1], until)
            if time.monotonic() > until:
                return False
            if inner is None and not names:
                return True
            if inner is None:
                os.close(opened.pop())
                refills += not _is_removed(names.pop(), opened[-1])
                if refills > _REFILLS:
                    raise WorkError("in_use")
                continue
            if len(names) == _DEEPEST:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(inner, secrets.token_hex(16), src_dir_fd=opened[-1], dst_dir_fd=top)
                continue
            try:
                opened.append(os.open(inner, OPEN_FOLDER, dir_fd=opened[-1]))
            except OSError as error:
                if error.errno in _CHANGED:
                    continue
                raise
            names.append(inner)
            if os.fstat(opened[-1]).st_dev != device:
                raise WorkError("mounted_below", "/".join(names))
    finally:
        for one in opened:
            os.close(one)


def _first_folder(opened: int, until: float) -> Optional[str]:
    """Delete what is no folder, until there is one (its name), nothing is left (None), or the time is up."""
    with os.scandir(opened) as entries:
        for entry in entries:
            if time.monotonic() > until:
                return None
            if entry.is_dir(follow_symlinks=False):
                return entry.name
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=opened)
    return None


def _is_removed(name: str, parent: int) -> bool:
    """Remove an empty folder; False: something has come into it."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno == errno.ENOTEMPTY:
            return False
        raise
    return True
