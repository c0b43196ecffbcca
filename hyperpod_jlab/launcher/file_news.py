"""News of files by inotify(7): wakes the loop as soon as one has grown, where there is inotify. Nothing depends on it: files are looked at now and then anyway."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Optional

_MODIFY = 0x2
_OPEN_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class FileWatch:
    """Watches files on this machine; what another machine writes to a shared file system is no news here."""

    def __init__(self) -> None:
        self._libc: Any = None
        self.descriptor: Optional[int] = None
        """Can be read once one of the files has changed; None where there is no inotify."""
        with contextlib.suppress(ImportError, OSError, AttributeError):
            import ctypes

            self._libc = ctypes.CDLL(None)
            descriptor = self._libc.inotify_init1(_OPEN_FLAGS)
            self.descriptor = descriptor if descriptor >= 0 else None

    def watch(self, path: str) -> None:
        """Take a file in; one that cannot be watched is left to the looks now and then."""
        if self.descriptor is not None:
            self._libc.inotify_add_watch(self.descriptor, os.fsencode(path), _MODIFY)

    def clear(self) -> None:
        """Forget what is new so far."""
        if self.descriptor is not None:
            with contextlib.suppress(BlockingIOError):
                while os.read(self.descriptor, 4096):
                    pass
