"""Whether the process that wrote a record is still alive."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import time
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.records import ProcessRecord

Liveness = Literal["alive", "dead", "elsewhere"]
"""Alive, dead, or unknown to this machine."""

_PROC = Path("/proc")
_HEARTBEAT_TIMEOUT_S = 30.0
"""Minimum seconds of a reboot; a process with a more recent heartbeat is on another machine."""


@functools.cache
def machine_id() -> str:
    """A short name of this machine, the same for all its processes: a digest of its id and host name."""
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
    """The pid namespace of this process."""
    return str((_PROC / "self/ns/pid").readlink())


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it is gone or a zombie (proc(5), fields 3 and 22)."""
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
        machine=machine_id(),
        boot=boot(),
        pid_namespace=pid_namespace(),
        pid=pid,
        start_time=start_time(pid) or 0,
        host=platform.node(),
        heartbeat=heartbeat,
    )


def liveness(record: ProcessRecord) -> Liveness:
    """Whether the process of a record is alive, as far as this machine can tell."""
    if record.machine != machine_id():
        return "elsewhere"
    if record.boot != boot():
        # Before a reboot of this machine, or on another one with the same image and name (all
        # Studio spaces are called "default").
        last_heard = record.heartbeat or record.time
        return "dead" if time.time() - last_heard > _HEARTBEAT_TIMEOUT_S else "elsewhere"
    if record.pid_namespace != pid_namespace():
        return "elsewhere"
    return "alive" if start_time(record.pid) == record.start_time else "dead"
