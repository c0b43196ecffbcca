"""Deleting a folder with all that is in it, beside users who may change what is there meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from typing import Any, List, Mapping

from .paths import OPEN_FOLDER, WorkError, opened_parent

_REFILLS = 3
"""Times that a folder is emptied again into which somebody has put something meanwhile."""

_CHANGED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What is said when a folder is none any more."""

_DEEPEST = 100
"""Folders that are open at a time: what lies deeper is moved up before."""


def delete_folder(root: str, wanted: Mapping[str, Any], seconds: float) -> bool:
    """Delete a folder that is still its owner's; of root's only an empty one. Links in it are deleted and never followed, and nothing that is mounted is entered.

    Args:
        root: Where the whole file system is.
        wanted: ``path`` of the folder, and ``uid`` of its owner.
        seconds: The time for it.

    Returns:
        Whether nothing is left; else the time was up, and the rest may be deleted by calling this again.
    """
    try:
        with opened_parent(root, wanted["path"]) as (parent, name):
            if name == ".":
                raise WorkError("no_path")
            return _deleted(root, parent, name, wanted["uid"], time.monotonic() + seconds)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise WorkError("mounted_below", str(error.filename or wanted["path"])) from error
        if error.filename == root or error.errno not in _CHANGED:
            raise
        if error.errno == errno.ENOENT:
            return True
        raise WorkError("no_folder") from error


def _deleted(root: str, parent: int, name: str, owner: int, until: float) -> bool:
    opened = os.open(name, OPEN_FOLDER, dir_fd=parent)
    try:
        found = os.fstat(opened).st_uid
        if found != owner:
            raise WorkError("foreign_folder", str(found))
        mount = _mount_of_root(root)
        if _mount_of(opened) != mount:
            raise WorkError("mounted_below", name)
        for _ in range(_REFILLS):
            if owner != 0 and not _emptied(opened, mount, until):
                return False
            if _is_removed(name, parent):
                return True
    finally:
        os.close(opened)
    raise WorkError("foreign_folder", "0") if owner == 0 else WorkError("in_use")


class _Level:
    """A folder on the way down: opened, with its name and the folders in it that are to be deleted yet."""

    def __init__(self, opened: int, name: str) -> None:
        self.opened = opened
        self.name = name
        self.inner: List[str] = []


def _emptied(top: int, mount: str, until: float) -> bool:
    """Delete what is in a folder; False: the time is up before the end."""
    levels = [_Level(os.dup(top), "")]
    refills = 0
    try:
        if not _swept(levels[-1], until):
            return False
        while True:
            here = levels[-1]
            if here.inner:
                if _went_down(levels, here.inner.pop(), mount) and not _swept(levels[-1], until):
                    return False
                continue
            if len(levels) == 1:
                return True
            os.close(levels.pop().opened)
            if not _is_removed(here.name, levels[-1].opened):
                refills += 1
                levels[-1].inner.append(here.name)
            if refills > _REFILLS:
                raise WorkError("in_use")
    finally:
        for level in levels:
            os.close(level.opened)


def _swept(level: _Level, until: float) -> bool:
    """Delete what is no folder, and note the folders; False: the time is up before the end."""
    with os.scandir(level.opened) as entries:
        for entry in entries:
            if time.monotonic() > until:
                return False
            if entry.is_dir(follow_symlinks=False):
                level.inner.append(entry.name)
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=level.opened)
    return True


def _went_down(levels: List[_Level], name: str, mount: str) -> bool:
    """Open an inner folder as the next level; False: it is none any more, or was moved up to the first level since it lies too deep."""
    here = levels[-1]
    if len(levels) > _DEEPEST:
        higher = secrets.token_hex(16)
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, higher, src_dir_fd=here.opened, dst_dir_fd=levels[0].opened)
            levels[0].inner.append(higher)
        return False
    try:
        levels.append(_Level(os.open(name, OPEN_FOLDER, dir_fd=here.opened), name))
    except OSError as error:
        if error.errno not in _CHANGED:
            raise
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(name, dir_fd=here.opened)
        return False
    if _mount_of(levels[-1].opened) != mount:
        raise WorkError("mounted_below", "/".join(level.name for level in levels[1:]))
    return True


def _mount_of_root(root: str) -> str:
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _mount_of(opened)
    finally:
        os.close(opened)


def _mount_of(opened: int) -> str:
    """The number of the mount that something opened is of (proc(5)): that of a bind mount is another one, although its device is not."""
    with open("/proc/self/fdinfo/%d" % opened, encoding="ascii") as file:
        return next(line for line in file if line.startswith("mnt_id:"))


def _is_removed(name: str, parent: int) -> bool:
    """Remove an empty folder; False: something has come into it, or it is none any more."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            return False
        raise
    return True
