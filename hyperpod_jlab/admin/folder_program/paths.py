"""The way to a folder of a file system: each step of a path is opened by itself and never through a symbolic link, for what users can write lies beside."""

from __future__ import annotations

import contextlib
import os
from typing import Iterator, Tuple

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LOOK_AT_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class WorkError(Exception):
    """Why something was not done to a folder: a code, and words of the system."""

    def __init__(self, code: str, words: str = "") -> None:
        super().__init__(words)
        self.code = code
        self.words = words


@contextlib.contextmanager
def opened_parent(root: str, path: str) -> Iterator[Tuple[int, str]]:
    """The folder above, opened, and the last name; ``.`` for the root itself."""
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or {".", ".."} & set(names) or "\0" in path:
        raise WorkError("no_path")
    above, name = names[:-1], names[-1] if names else "."
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for one in above:
            following = os.open(one, OPEN_FOLDER, dir_fd=at)
            os.close(at)
            at = following
        yield at, name
    finally:
        os.close(at)
