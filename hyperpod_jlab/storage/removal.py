"""Remove folder trees by descriptor, never by a path that could change; and measure how much that frees."""

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
"""Maximum number of open folders: deeper ones are moved up first."""

_MAX_PASSES = 3
"""Maximum number of times a folder is emptied again because of new entries."""


@dataclass
class Extent:
    """The size of folders.

    Attributes:
        files: Number of files.
        own: Bytes in files without other links: freed by their removal.
        shared: How often each other inode was seen: its bytes are freed with its last link.
    """

    files: int = 0
    own: int = 0
    shared: Counter[int] = field(default_factory=Counter)

    def add(self, folder: Path) -> None:
        """Count a folder; vanished and unreadable entries count 0, links are not followed."""
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
    """Remove this user's folder tree, including folders without permissions; links are removed, never followed. Does nothing if it does not exist.

    Raises:
        PermissionError: It belongs to another user, or contains something that this user has no permission to remove.
    """
    with descent.opened_folder(path.parent) as parent:
        for _ in range(_MAX_PASSES + 1):
            try:
                status = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
                if status.st_uid != os.getuid():
                    raise PermissionError(errno.EPERM, "it belongs to another user", str(path))
                _empty(parent, path.name)
            except NotADirectoryError:  # a file or a link replaced it
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
    """Empty a folder, level by level; moves very deep folders up first, to limit open descriptors."""
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
                except NotADirectoryError:  # it was just replaced
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
    """Remove a folder; one with new entries stays, and is handled in the next round."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise


def _open_for_removal(parent: int, name: str) -> int:
    """Open a folder to empty it, restoring permissions that a job removed: through its descriptor, so never of a link's target."""
    step_descriptor = os.open(name, descent.STEP_FLAGS, dir_fd=parent)
    try:
        status = os.fstat(step_descriptor)
        if status.st_uid == os.getuid() and status.st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{step_descriptor}", 0o700)  # noqa: PTH101 - fchmod refuses O_PATH
        return os.open(".", descent.LIST_FLAGS, dir_fd=step_descriptor)
    finally:
        os.close(step_descriptor)


def _remove_files(folder: int) -> list[str]:
    """Remove everything except folders; returns the folders' names."""
    children = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                children.append(entry.name)
                continue
            try:
                descent.unlink_in(folder, entry.name)
            except IsADirectoryError:  # it was just replaced
                children.append(entry.name)
    return children
