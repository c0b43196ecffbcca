"""File formats on the partition, and conversion of its errors."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import StorageDeniedError, StorageError

FULL_HINT = "free some space, such as by removing runs that ended over a day ago: hpj clean --older 1d"
"""Hint for a full partition, and for a run that failed because of it."""

_REASONS = {
    errno.ENOSPC: ("storage_full", "the storage partition is full", FULL_HINT),
    errno.EDQUOT: ("storage_full", "your quota on the storage partition is exceeded", FULL_HINT),
    errno.EROFS: ("storage_read_only", "the storage partition is read-only", "hpj storage"),
}

DENIED_HINT = "ask its owner for access, or set path under [storage] in the configuration to your own folder"
"""Hint for a user without permission for the partition."""


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Convert the operating system's errors on the partition to ours.

    Raises:
        StorageDeniedError: Permission denied.
        StorageError: For any other `OSError`, with the path and the system's message in the detail.
    """
    try:
        yield
    except PermissionError as error:
        location = _location(error, path)
        raise StorageDeniedError(
            f"permission denied on the storage partition: {location}",
            hint=DENIED_HINT,
            detail={"path": location, "os_error": error.strerror},
        ) from error
    except OSError as error:
        location = _location(error, path)
        reason = f"the storage partition failed at {location}: {error.strerror or error}"
        code, message, hint = _REASONS.get(error.errno or 0, ("storage", reason, "hpj storage"))
        raise StorageError(
            message,
            code=code,
            hint=f"try: {hint}" if hint.startswith("hpj") else hint,
            detail={"path": location, "os_error": error.strerror},
        ) from error


def _location(error: OSError, path: Path) -> str:
    """The path of the error; files opened by descriptor only have their last part."""
    name = error.filename
    return name if isinstance(name, str) and Path(name).is_absolute() else str(path)


def to_json(value: Any) -> bytes:
    """JSON in this project's format: one line, UTF-8, a line break at the end."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"


# --------------------------------------------------------------------------------------------------
# A lock between processes and threads of one machine, by flock(2) on a folder. Only for folders on
# a local disk.
#
# Not on a file in the folder: deleting that file while the lock is held would admit a second
# holder.

_POLL_S = 0.005


@contextlib.contextmanager
def locked(folder: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock; without it if the file system has no locks.

    Args:
        folder: The folder to lock.
        timeout_s: Seconds to wait for another holder.

    Raises:
        TimeoutError: Another holder did not release it in time.
        OSError: The folder does not exist, or cannot be read.
    """
    deadline = time.monotonic() + timeout_s
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the lock", str(folder))
            time.sleep(_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # NFS only locks files that are open for writing, which a folder never is: EBADF.
        if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF}:
            raise
    return True
