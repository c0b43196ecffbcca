"""The way to a folder of a file system: each step of a path is opened by itself and never through a symbolic link, for what users can write lies beside."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator, Tuple

OPEN_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATH_ONLY_FLAGS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkError(Exception):
    """Why something was not done to a folder: a code, and words of the system."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(detail)
        self.code = code
        self.words = detail


@contextlib.contextmanager
def open_parent(root: str, path: str) -> Iterator[Tuple[int, str]]:
    """The folder above, opened, and the last name; ``.`` for the root itself."""
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
        yield descriptor, name
    finally:
        os.close(descriptor)
