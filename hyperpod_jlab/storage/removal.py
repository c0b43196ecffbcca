"""Removing whole folders by descriptor, never by a path that could lead elsewhere meanwhile; and how much that frees."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hyperpod_jlab.storage import descent

_MAX_DEPTH = 100
"""Folders that are open at a time: what lies deeper is moved up before."""

_MAX_PASSES = 3
"""Times that a folder is emptied again into which something was put meanwhile."""


@dataclass
class Extent:
    """What lies in some folders.

    Attributes:
        files: Number of files.
        own: Bytes in files that have no other name: what their removal frees by itself.
        shared: How often each further inode was seen: its bytes are freed with its last name.
    """

    files: int = 0
    own: int = 0
    shared: Counter[int] = field(default_factory=Counter)

    def add(self, folder: Path) -> None:
        """Count a folder; what vanishes meanwhile or cannot be read counts nothing, and links are not followed."""
        with contextlib.suppress(OSError), descent.opened_folder(folder) as descriptor:
            for _, _, names, parent in os.fwalk(".", dir_fd=descriptor):
                for name in names:
                    with contextlib.suppress(OSError):
                        self._count(os.stat(name, dir_fd=parent, follow_symlinks=False))

    def _count(self, status: os.stat_result) -> None:
        self.files += 1
        if status.st_nlink == 1:
            self.own += status.st_size
        else:
            self.shared[status.st_ino] += 1


def remove_tree(path: Path) -> None:
    """Remove a folder of this user's and all in it, folders included whose rights were taken away; links are removed, never followed. Nothing happens when it is not there.

    Raises:
        PermissionError: It belongs to another user, or has something in it that the system does not let this user remove.
    """
    with descent.opened_folder(path.parent) as parent:
        for _ in range(_MAX_PASSES + 1):
            try:
                status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
                if status.st_uid != os.getuid():
                    raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
                _empty(parent, path.name)
            except NotADirectoryError:  # a file or a link took its place
                descent.unlink_in(parent, path.name)
                return
            except FileNotFoundError:
                return
            try:
                os.rmdir(path.name, dir_fd=parent)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                continue
            return
    raise OSError(errno.ENOTEMPTY, "a program keeps writing into it", str(path))


def _empty(parent: int, name: str) -> None:
    """Empty a folder, level by level; what lies very deep is moved up first, so that descriptors suffice."""
    levels = [_open_for_removal(parent, name)]
    stack: list[tuple[str, list[str]]] = [(name, [])]
    try:
        stack[0] = (name, _remove_files(levels[0]))
        while True:
            folder, children = stack[-1]
            if children:
                child = children.pop()
                if len(levels) >= _MAX_DEPTH:
                    new_name = secrets.token_hex(16)
                    os.rename(child, new_name, src_dir_fd=levels[-1], dst_dir_fd=levels[0])
                    stack[0][1].append(new_name)
                    continue
                try:
                    levels.append(_open_for_removal(levels[-1], child))
                except FileNotFoundError:
                    continue
                except NotADirectoryError:  # it was replaced just now
                    descent.unlink_in(levels[-1], child)
                    continue
                stack.append((child, _remove_files(levels[-1])))
                continue
            if len(levels) == 1:
                return
            os.close(levels.pop())
            stack.pop()
            with contextlib.suppress(FileNotFoundError):
                _rmdir_if_empty(levels[-1], folder)
    finally:
        for level in levels:
            os.close(level)


def _rmdir_if_empty(parent: int, name: str) -> None:
    """Remove a folder; one that something has come into stays, and is met again on the next round."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise


def _open_for_removal(parent: int, name: str) -> int:
    """A folder to be emptied, with the right that a job took from it given back: through its descriptor, so never to what a link leads to."""
    step_descriptor = os.open(name, descent.STEP_FLAGS, dir_fd=parent)
    try:
        status = os.fstat(step_descriptor)
        if status.st_uid == os.getuid() and status.st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{step_descriptor}", 0o700)  # noqa: PTH101 - fchmod refuses O_PATH
        return os.open(".", descent.LIST_FLAGS, dir_fd=step_descriptor)
    finally:
        os.close(step_descriptor)


def _remove_files(folder: int) -> list[str]:
    """Remove what is no folder; returns the names of the folders."""
    children = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                children.append(entry.name)
                continue
            try:
                descent.unlink_in(folder, entry.name)
            except IsADirectoryError:  # it was replaced just now
                children.append(entry.name)
    return children
