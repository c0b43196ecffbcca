"""A lock between processes and threads of one machine, by flock(2) on a file of its own. For files on this machine's own disk only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

_POLL = 0.005


@contextlib.contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock; where the file system has no locks, go on without.

    Args:
        path: The lock's file, made if it is missing.
        patience: Seconds to wait for another holder.

    Raises:
        TimeoutError: Somebody else held it all the time.
        OSError: The file cannot be made.
    """
    deadline = time.monotonic() + patience
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while not _take(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(path))
            time.sleep(_POLL)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}:
            raise
    return True
