"""Removing whole folders, and knowing beforehand how much that frees."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyperpod_jlab.storage.atomic import storage_errors


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
        """Count a folder; what vanishes meanwhile or cannot be read counts nothing."""
        for parent, _, names in os.walk(folder):
            for name in names:
                with contextlib.suppress(OSError):
                    found = os.lstat(os.path.join(parent, name))  # noqa: PTH118 - thousands of files
                    self.files += 1
                    if found.st_nlink == 1:
                        self.own += found.st_size
                    else:
                        self.shared[found.st_ino] += 1


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, read-only folders included.

    Raises:
        StorageError: Something in it cannot be removed.
    """
    with storage_errors(folder), contextlib.suppress(FileNotFoundError):
        if sys.version_info >= (3, 12):
            shutil.rmtree(folder, onexc=_open_and_retry)
        else:
            shutil.rmtree(
                folder,
                onerror=lambda function, path, info: _open_and_retry(function, path, info[1]),
            )


def _open_and_retry(function: Callable[..., Any], path: str, error: BaseException) -> None:
    """Give ourselves the right that a job took from a folder of its own, and try once more."""
    if isinstance(error, FileNotFoundError):
        return
    if not isinstance(error, PermissionError):
        raise error
    for folder in (Path(path).parent, Path(path)):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o700)
    if function in {os.scandir, os.open, os.lstat}:
        shutil.rmtree(path)
    else:
        function(path)
