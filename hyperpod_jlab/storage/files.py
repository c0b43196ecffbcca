"""What goes into files on the partition, and what its errors become."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from hyperpod_jlab.core.errors import StorageDeniedError, StorageError
from hyperpod_jlab.core.records import ProcessRecord

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
        place = _place(error, path)
        raise StorageDeniedError(
            f"you have no right to do this on the storage partition: {place}",
            hint=DENIED_HINT,
            detail={"path": place, "os_error": error.strerror},
        ) from error
    except OSError as error:
        place = _place(error, path)
        words = f"the storage partition failed at {place}: {error.strerror or error}"
        code, message, hint = _REASONS.get(error.errno or 0, ("storage", words, "hpj storage"))
        raise StorageError(
            message,
            code=code,
            hint=f"try: {hint}" if hint.startswith("hpj") else hint,
            detail={"path": place, "os_error": error.strerror},
        ) from error


def _place(error: OSError, path: Path) -> str:
    """Where it happened; what is opened by descriptor is named by its last part alone."""
    name = error.filename
    return name if isinstance(name, str) and Path(name).is_absolute() else str(path)


def to_json(value: Any) -> bytes:
    """JSON as this project writes it: one line, UTF-8, a line break at the end."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode() + b"\n"


# --------------------------------------------------------------------------------------------------
# A lock between processes and threads of one machine, by flock(2) on a folder. For folders on this machine's own disk only.
#
# Not on a file in it: whoever tidies the folder up while somebody holds the lock would let the next one in beside them.

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


# --------------------------------------------------------------------------------------------------
# Telling whether a process that wrote a record still lives.
#
# A process number alone says nothing after a restart, in another container or on another machine, so a record also names the machine, its boot,
# the pid namespace and the process's start time.

Life = Literal["alive", "dead", "elsewhere"]
"""What this process can say of another: it lives, it is gone, or it is not for this machine to say."""

_PROC = Path("/proc")
_RESTART = 30.0
"""Seconds that a machine needs to come back after a restart; whoever was heard more lately lives on another one."""


@functools.cache
def machine() -> str:
    """A short name of this machine, the same in all its processes: a digest of its id and host name."""
    parts = [platform.node()]
    for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
        try:
            parts.append(path.read_text().strip())
            break
        except OSError:
            continue
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@functools.cache
def boot() -> str:
    """The id of this boot of the kernel."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


@functools.cache
def pid_namespace() -> str:
    """The pid namespace that this process lives in."""
    return str((_PROC / "self/ns/pid").readlink())


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when it is gone or a zombie (proc(5), fields 3 and 22)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def this_process(heartbeat: float | None = None) -> ProcessRecord:
    """The record of the calling process."""
    pid = os.getpid()
    return ProcessRecord(
        time=time.time(),
        machine=machine(),
        boot=boot(),
        pid_namespace=pid_namespace(),
        pid=pid,
        start_time=start_time(pid) or 0,
        host=platform.node(),
        heartbeat=heartbeat,
    )


def life(record: ProcessRecord) -> Life:
    """Whether the process of a record lives, as far as this machine can say."""
    if record.machine != machine():
        return "elsewhere"
    if record.boot != boot():
        # Before a restart of this machine, or on another one of the same image and name (all Studio spaces are called "default").
        heard = record.heartbeat or record.time
        return "dead" if time.time() - heard > _RESTART else "elsewhere"
    if record.pid_namespace != pid_namespace():
        return "elsewhere"
    return "alive" if start_time(record.pid) == record.start_time else "dead"
