"""Deleting a folder with all that is in it, beside users who may change what is there meanwhile."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from typing import Any, List, Mapping

from .paths import OPEN_FLAGS, WorkError, open_parent

_MAX_PASSES = 3
"""Times that a folder is emptied again into which somebody has put something meanwhile."""

_CHANGED_ERRORS = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""What is said when a folder is none any more."""

_MAX_DEPTH = 100
"""Folders that are open at a time: what lies deeper is moved up before."""


def delete_folder(root: str, folder_spec: Mapping[str, Any], seconds: float) -> bool:
    """Delete a folder that is still its owner's; of root's only an empty one. Links in it are deleted and never followed, and nothing that is mounted is entered.

    Args:
        root: Where the whole file system is.
        folder_spec: ``path`` of the folder, and ``uid`` of its owner.
        seconds: The time for it.

    Returns:
        Whether nothing is left; else the time was up, and the rest may be deleted by calling this again.
    """
    try:
        with open_parent(root, folder_spec["path"]) as (parent, name):
            if name == ".":
                raise WorkError("no_path")
            return _delete(root, parent, name, folder_spec["uid"], time.monotonic() + seconds)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise WorkError("mounted_below", str(error.filename or folder_spec["path"])) from error
        if error.filename == root or error.errno not in _CHANGED_ERRORS:
            raise
        if error.errno == errno.ENOENT:
            return True
        raise WorkError("no_folder") from error


def _delete(root: str, parent: int, name: str, owner: int, deadline: float) -> bool:
    descriptor = os.open(name, OPEN_FLAGS, dir_fd=parent)
    try:
        status = os.fstat(descriptor).st_uid
        if status != owner:
            raise WorkError("foreign_folder", str(status))
        mount = _mount_of_root(root)
        if _mount_of(descriptor) != mount:
            raise WorkError("mounted_below", name)
        for _ in range(_MAX_PASSES):
            if owner != 0 and not _empty_folder(descriptor, mount, deadline):
                return False
            if _is_removed(name, parent):
                return True
    finally:
        os.close(descriptor)
    raise WorkError("foreign_folder", "0") if owner == 0 else WorkError("in_use")


class _Level:
    """A folder on the way down: opened, with its name and the folders in it that are to be deleted yet."""

    def __init__(self, descriptor: int, name: str) -> None:
        self.descriptor = descriptor
        self.name = name
        self.inner: List[str] = []


def _empty_folder(top: int, mount: str, deadline: float) -> bool:
    """Delete what is in a folder; False: the time is up before the end."""
    levels = [_Level(os.dup(top), "")]
    passes = 0
    try:
        if not _remove_files(levels[-1], deadline):
            return False
        while True:
            current = levels[-1]
            if current.inner:
                if _enter(levels, current.inner.pop(), mount) and not _remove_files(levels[-1], deadline):
                    return False
                continue
            if len(levels) == 1:
                return True
            os.close(levels.pop().descriptor)
            if not _is_removed(current.name, levels[-1].descriptor):
                passes += 1
                levels[-1].inner.append(current.name)
            if passes > _MAX_PASSES:
                raise WorkError("in_use")
    finally:
        for level in levels:
            os.close(level.descriptor)


def _remove_files(level: _Level, deadline: float) -> bool:
    """Delete what is no folder, and note the folders; False: the time is up before the end."""
    with os.scandir(level.descriptor) as entries:
        for entry in entries:
            if time.monotonic() > deadline:
                return False
            if entry.is_dir(follow_symlinks=False):
                level.inner.append(entry.name)
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.name, dir_fd=level.descriptor)
    return True


def _enter(levels: List[_Level], name: str, mount: str) -> bool:
    """Open an inner folder as the next level; False: it is none any more, or was moved up to the first level since it lies too deep."""
    current = levels[-1]
    if len(levels) > _MAX_DEPTH:
        new_name = secrets.token_hex(16)
        with contextlib.suppress(FileNotFoundError):
            os.rename(name, new_name, src_dir_fd=current.descriptor, dst_dir_fd=levels[0].descriptor)
            levels[0].inner.append(new_name)
        return False
    try:
        levels.append(_Level(os.open(name, OPEN_FLAGS, dir_fd=current.descriptor), name))
    except OSError as error:
        if error.errno not in _CHANGED_ERRORS:
            raise
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.unlink(name, dir_fd=current.descriptor)
        return False
    if _mount_of(levels[-1].descriptor) != mount:
        raise WorkError("mounted_below", "/".join(level.name for level in levels[1:]))
    return True


def _mount_of_root(root: str) -> str:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _mount_of(descriptor)
    finally:
        os.close(descriptor)


def _mount_of(descriptor: int) -> str:
    """The number of the mount that something opened is of (proc(5)): that of a bind mount is another one, although its device is not."""
    with open("/proc/self/fdinfo/%d" % descriptor, encoding="ascii") as file:
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
