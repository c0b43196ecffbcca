"""Writing small files so that no reader ever sees half of one.

The partition may lack file locks (Lustre without flock, NFS), so only link and rename decide who wins.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperpod_jlab.model.errors import StorageDeniedError, StorageError

_LARGEST = 64 << 20

_REASONS = {
    errno.ENOSPC: ("storage_full", "the storage partition is full", "free some space: hpj clean"),
    errno.EDQUOT: ("storage_full", "your quota on the storage partition is used up", "hpj clean"),
    errno.EROFS: ("storage_read_only", "the storage partition is read-only", "hpj storage"),
}

DENIED_HINT = "ask its owner for the right, or name a folder of your own as path under [storage] in the configuration"
"""What a user can do who has no right to the partition."""


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors on the partition into ours.

    Raises:
        StorageDeniedError: The user has no right to do it.
        StorageError: For any other `OSError`, with the path and the system's words in the detail.
    """
    try:
        yield
    except PermissionError as error:
        place = str(error.filename or path)
        raise StorageDeniedError(
            f"you have no right to do this on the storage partition: {place}",
            hint=DENIED_HINT,
            detail={"path": place, "os_error": error.strerror},
        ) from error
    except OSError as error:
        place = str(error.filename or path)
        words = f"the storage partition failed at {place}: {error.strerror or error}"
        code, message, hint = _REASONS.get(error.errno or 0, ("storage", words, "hpj storage"))
        raise StorageError(
            message,
            code=code,
            hint=f"try: {hint}" if hint.startswith("hpj") else hint,
            detail={"path": place, "os_error": error.strerror},
        ) from error


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")


def _write_temporary(path: Path, data: bytes, mode: int) -> Path:
    temporary = _temporary_beside(path)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)  # whatever the umask
            file.write(data)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    return temporary


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write `data` to `path`, over whatever is there."""
    temporary = _write_temporary(path, data, mode)
    try:
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


def read(path: Path) -> bytes:
    """The bytes of a small file; a pipe or device in its place is not waited for.

    Raises:
        OSError: There is none, it is no regular file, or it is far too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        if found.st_size > _LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {_LARGEST >> 20} MiB", str(path))
        return file.read()


def create(path: Path, data: bytes, *, mode: int = 0o600) -> bool:
    """Write `data` to `path` only if nothing is there; tells whether this call did it."""
    temporary = _write_temporary(path, data, mode)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
    return True


def to_json(value: Any) -> bytes:
    """JSON as this project writes it: one line, UTF-8, a line break at the end."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"
