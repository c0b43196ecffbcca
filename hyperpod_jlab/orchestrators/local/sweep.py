"""Ending the processes of a run that its launchers left behind, found by the mark in their environment."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

_PROC = Path("/proc")


def processes_of(records: Path) -> list[int]:
    """Processes of this user that carry the run's mark (``HYPERPOD_RECORDS``) or are one of its launchers."""
    mark = b"HYPERPOD_RECORDS=" + os.fsencode(records)
    me = os.getpid()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == me:
            continue
        with contextlib.suppress(OSError):
            if entry.stat().st_uid != os.getuid():
                continue
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def end_processes(records: Path, grace: float) -> int:
    """End all processes of a run: SIGTERM, `grace` seconds, SIGKILL. Returns how many had to be killed."""
    deadline = time.monotonic() + grace
    _signal(processes_of(records), signal.SIGTERM)
    while time.monotonic() < deadline:
        if not processes_of(records):
            return 0
        time.sleep(0.05)
    killed = 0
    for _ in range(20):  # a process may fork while it is being killed
        left = processes_of(records)
        if not left:
            break
        killed += len(left)
        _signal(left, signal.SIGKILL)
        time.sleep(0.05)
    return killed


CANCEL = signal.SIGUSR1
"""Tells a supervisor to cancel its run, where its journal cannot be written."""


def tell_to_cancel(pid: int) -> None:
    """Send a supervisor the signal, if it is far enough in its life to take it (SigCgt in proc(5)); else it would die of it."""
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt" and int(mask, 16) >> (CANCEL - 1) & 1:
                os.kill(pid, CANCEL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
