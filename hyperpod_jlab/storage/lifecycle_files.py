"""The files that a lifecycle configuration's script writes on this machine: its status, and its log.

Neither is trusted: only regular files of this user or root are read, up to a limit, never through a link or a path from the status.
"""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hyperpod_jlab.core.errors import NotFoundError, StorageError
from hyperpod_jlab.core.studio import LifecycleStatus

_STATUS, _LOG = "lifecycle.json", "lifecycle.log"
_MAX_STATUS_BYTES, _MAX_LOG_BYTES = 256 * 1024, 256 * 1024


@dataclass(frozen=True)
class LogEnd:
    """The end of the log: its path, its text, and whether the file has more before it."""

    path: Path
    text: str
    cut: bool


def lifecycle_folders() -> tuple[Path, ...]:
    """Candidate folders of the files, most recently written first: the user's state folder, or one below the temporary folder if that is not writable."""
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    temporary = Path(tempfile.gettempdir()) / f"hyperpod-jlab-{os.getuid()}"
    return tuple(sorted((Path(base) / "hyperpod-jlab", temporary), key=_written_at, reverse=True))


def _written_at(folder: Path) -> float:
    """When this user or root wrote a folder's status; 0: there is none."""
    try:
        about = (folder / _STATUS).lstat()
    except OSError:
        return 0.0
    return about.st_mtime if about.st_uid in {os.getuid(), 0} else 0.0


def read_status() -> LifecycleStatus | None:
    """The status; None: our lifecycle configuration has not run here.

    Raises:
        StorageError: The file is invalid, or cannot be read.
    """
    for folder in lifecycle_folders():
        path = folder / _STATUS
        log_end = _read_end(path, _MAX_STATUS_BYTES + 1)
        if log_end is None:
            continue
        if len(log_end[0]) > _MAX_STATUS_BYTES:
            raise _no_status(path, f"it is longer than {_MAX_STATUS_BYTES} bytes")
        try:
            return LifecycleStatus.model_validate_json(log_end[0])
        except ValidationError as error:
            first = error.errors()[0]
            location = ".".join(map(str, first["loc"])) or "its content"
            raise _no_status(path, f"{location}: {first['msg']}") from error
    return None


def read_log() -> LogEnd:
    """The end of the log.

    Raises:
        NotFoundError: It does not exist.
        StorageError: It cannot be read.
    """
    for folder in lifecycle_folders():
        path = folder / _LOG
        log_end = _read_end(path, _MAX_LOG_BYTES)
        if log_end is not None:
            data, is_cut = log_end
            if is_cut:
                data = data.partition(b"\n")[2]
            return LogEnd(path, data.decode(errors="replace"), is_cut)
    raise NotFoundError("no log of a lifecycle configuration found here", code="no_lifecycle_log")


def _read_end(path: Path, max_bytes: int) -> tuple[bytes, bool] | None:
    """The last bytes of a file, and whether there are more; None: it does not exist."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    try:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            raise _unreadable(path, "it is not a regular file")
        if about.st_uid not in {os.getuid(), 0}:
            raise _unreadable(path, f"it belongs to uid {about.st_uid}")
        # One read returns a whole file of this size; a file that is being written may be shorter.
        return os.pread(number, max_bytes, max(0, about.st_size - max_bytes)), about.st_size > max_bytes
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    finally:
        os.close(number)


def _unreadable(path: Path, reason: str | None) -> StorageError:
    return StorageError(f"{path} cannot be read: {reason}", code="invalid_lifecycle_file", detail={"path": str(path)})


def _no_status(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"{path} is not a valid status of a lifecycle configuration: {reason}",
        code="invalid_lifecycle_file",
        hint="the next start of the space writes it again; see the log in the same folder",
        detail={"path": str(path)},
    )
