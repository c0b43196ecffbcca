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

_DEEPEST = 100
"""Folders that are open at a time: what lies deeper is moved up before."""

_REFILLS = 3
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
        with contextlib.suppress(OSError), descent.opened_folder(folder) as opened:
            for _, _, names, parent in os.fwalk(".", dir_fd=opened):
                for name in names:
                    with contextlib.suppress(OSError):
                        self._count(os.stat(name, dir_fd=parent, follow_symlinks=False))

    def _count(self, found: os.stat_result) -> None:
        self.files += 1
        if found.st_nlink == 1:
            self.own += found.st_size
        else:
            self.shared[found.st_ino] += 1


def remove_tree(path: Path) -> None:
    """Remove a folder of this user's and all in it, folders included whose rights were taken away; links are removed, never followed. Nothing happens when it is not there.

    Raises:
        PermissionError: It belongs to another user, or has something in it that the system does not let this user remove.
    """
    with descent.opened_folder(path.parent) as parent:
        for _ in range(_REFILLS + 1):
            try:
                found = os.stat(path.name, dir_fd=parent, follow_symlinks=False)
                if found.st_uid != os.getuid():
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
    levels = [_opened_for_removal(parent, name)]
    entered: list[tuple[str, list[str]]] = [(name, [])]
    try:
        entered[0] = (name, _swept(levels[0]))
        while True:
            here, inner = entered[-1]
            if inner:
                below = inner.pop()
                if len(levels) >= _DEEPEST:
                    moved = secrets.token_hex(16)
                    os.rename(below, moved, src_dir_fd=levels[-1], dst_dir_fd=levels[0])
                    entered[0][1].append(moved)
                    continue
                try:
                    levels.append(_opened_for_removal(levels[-1], below))
                except FileNotFoundError:
                    continue
                except NotADirectoryError:  # it was replaced just now
                    descent.unlink_in(levels[-1], below)
                    continue
                entered.append((below, _swept(levels[-1])))
                continue
            if len(levels) == 1:
                return
            os.close(levels.pop())
            entered.pop()
            with contextlib.suppress(FileNotFoundError):
                _rmdir_if_empty(levels[-1], here)
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


def _opened_for_removal(parent: int, name: str) -> int:
    """A folder to be emptied, with the right that a job took from it given back: through its descriptor, so never to what a link leads to."""
    step = os.open(name, descent.STEP, dir_fd=parent)
    try:
        found = os.fstat(step)
        if found.st_uid == os.getuid() and found.st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{step}", 0o700)  # noqa: PTH101 - fchmod refuses O_PATH
        return os.open(".", descent.LIST, dir_fd=step)
    finally:
        os.close(step)


def _swept(folder: int) -> list[str]:
    """Remove what is no folder; returns the names of the folders."""
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.name)
                continue
            try:
                descent.unlink_in(folder, entry.name)
            except IsADirectoryError:  # it was replaced just now
                inner.append(entry.name)
    return inner
