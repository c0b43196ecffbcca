"""The way to a folder of a file system: each step of a path is opened by itself and never through a symbolic link, for what users can write lies beside."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Iterator, Optional, Tuple

OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATH_ONLY_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkError(Exception):
    """Why something was not done to a folder: a code, and words of the system."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.words = detail


@contextlib.contextmanager
def open_parent(root: str, path: str, owner: Optional[int] = None) -> Iterator[Tuple[int, str]]:
    """The folder above, opened, and the last name; ``.`` for the root itself. With an owner, only root and the owner may have the permission to rename what is below."""
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or {".", ".."} & set(names) or "\0" in path:
        raise WorkError("no_path")
    parents, name = names[:-1], names[-1] if names else "."
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for parent_name in parents:
            following = os.open(parent_name, OPEN_FLAGS, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
            if owner is not None:
                _check_renamers(descriptor, parent_name, owner)
        yield descriptor, name
    finally:
        os.close(descriptor)


def _check_renamers(descriptor: int, name: str, owner: int) -> None:
    """Who owns a folder above, or may write to it, can put a folder of their own in place of the one that is to be made."""
    status = os.fstat(descriptor)
    if status.st_uid not in (0, owner):
        raise WorkError("foreign_parent", "%s belongs to uid %d" % (name, status.st_uid))
    if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
        raise WorkError("foreign_parent", "all users can rename what is in %s" % name)
