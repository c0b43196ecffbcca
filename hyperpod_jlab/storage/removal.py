"""How much is freed by removing folders."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hyperpod_jlab.storage import descent


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
