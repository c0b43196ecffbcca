"""A lock between processes and threads of one machine, by flock(2) on a folder. For folders on this machine's own disk only.

Not on a file in it: whoever tidies the folder up while somebody holds the lock would let the next one in beside them.
"""

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
def locked(folder: Path, patience: float) -> Iterator[None]:
    """Hold the lock; where the file system has no locks, go on without.

    Args:
        folder: What to lock.
        patience: Seconds to wait for another holder.

    Raises:
        TimeoutError: Somebody else held it all the time.
        OSError: The folder is not there, or cannot be read.
    """
    deadline = time.monotonic() + patience
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _take(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(folder))
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
        # NFS locks only what is open for writing, which a folder never is: EBADF.
        if error.errno not in {
            errno.ENOLCK,
            errno.ENOTSUP,
            errno.ENOSYS,
            errno.EINVAL,
            errno.EBADF,
        }:
            raise
    return True
