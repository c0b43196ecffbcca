"""A private folder for the sockets of ssh's connections: short, since a socket's path may have 104 bytes at most, and cleaned after processes that were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path

_PREFIX = "hpj-ssh-"
_LONGEST = 60


class SocketFolder:
    """A new folder that nobody else may enter. It goes with `close`, at the end of the process, or, after a kill, when the next one is made."""

    def __init__(self, runtime: Path | None = None) -> None:
        place = runtime if runtime is not None else _runtime()
        _sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._end = weakref.finalize(self, _remove, self.path, self._lock)

    def close(self) -> None:
        """Delete it."""
        self._end()


def _runtime() -> Path:
    """The user's runtime folder where there is one, else /tmp: TMPDIR is often too long."""
    named = os.environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/") and len(named.encode()) <= _LONGEST and os.access(named, os.W_OK):
        return Path(named)
    return Path("/tmp")  # noqa: S108 - mkdtemp makes a folder in it that only this user may enter


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _sweep(place: Path) -> None:
    """Delete the folders of processes that are gone: nobody holds their locks any more."""
    for folder in place.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
