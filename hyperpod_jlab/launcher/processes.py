"""Processes: starting them, and ending all of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from .bundle_files import Place
from .errors import LauncherError
from .system import PARENT, Process, exit_of, has_marks, running_processes, send

MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in a unit of ``ru_maxrss`` (man getrusage)."""


class Child:
    """A process that the launcher itself started."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.started_at = time.time()
        self.ended_at: Optional[float] = None
        self.exit_code = 0
        self.signal: Optional[int] = None

    @property
    def ended(self) -> bool:
        """Whether it was waited for."""
        return self.ended_at is not None


class Children:
    """Starts processes and waits for them, and for the orphans that the kernel hands to the launcher."""

    def __init__(self, output: int) -> None:
        self._output = output
        self._running: Dict[int, Child] = {}
        self.reaped = 0
        """How many were waited for so far, orphans included."""
        self.max_memory: Optional[int] = None
        """The most that one of those had in memory (bytes), or a process that one of them waited for."""
        self.cpu_seconds: Optional[float] = None
        """CPU time of all of those, and of what they waited for."""

    def start(
        self,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        cwd: str,
        pass_fds: Sequence[int] = (),
    ) -> Child:
        """Start a process with the node's log as its output.

        Raises:
            LauncherError: The system does not start it.
        """
        import subprocess

        try:
            popen = subprocess.Popen(
                argv,
                env={**environment, PARENT: str(os.getpid())},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            message = "%s could not be started: %s" % (name, error)
            raise LauncherError("start_failed", message) from error
        popen.returncode = 0  # we wait for it ourselves
        child = Child(name, popen.pid)
        self._running[popen.pid] = child
        return child

    def reap(self) -> None:
        """Wait for whatever has ended."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.reaped += 1
            self.cpu_seconds = (self.cpu_seconds or 0.0) + used.ru_utime + used.ru_stime
            self.max_memory = max(self.max_memory or 0, used.ru_maxrss * MEMORY_UNIT)
            child = self._running.pop(pid, None)
            if child:
                child.exit_code, child.signal = exit_of(status)
                child.ended_at = time.time()

    @property
    def running(self) -> List[int]:
        """Ids of those that run."""
        return list(self._running)


class Belongings:
    """Finds all processes of this node in this attempt: the launcher's descendants, and whoever carries our marks.

    The launcher is their subreaper, so that a process whose parents have ended is still its descendant; the marks
    find the rest where the kernel has no such thing. Other nodes on the same machine have other marks.
    """

    def __init__(self, place: Place, children: Children) -> None:
        self._me = os.getpid()
        self._children = children
        marks = (
            "HYPERPOD_RECORDS=" + place.records,
            "HYPERPOD_ATTEMPT=%d" % place.attempt,
            "NODE_RANK=%d" % place.node_rank,
        )
        self._marks = frozenset(os.fsencode(mark) for mark in marks)
        everybody = running_processes()
        # Whatever was the launcher's child before it began (a script that exec'ed it) is none of its business.
        self._spared = {found[:4:3] for found in self._below(everybody)}
        self._lineage = self._ancestors(everybody)

    def _below(self, everybody: Mapping[int, Process]) -> List[Process]:
        below: Dict[int, List[Process]] = {}
        for process in everybody.values():
            below.setdefault(process.parent, []).append(process)
        found, waiting = [], [self._me]
        while waiting:
            for process in below.get(waiting.pop(), ()):
                found.append(process)
                waiting.append(process.pid)
        return found

    def _ancestors(self, everybody: Mapping[int, Process]) -> Set[int]:
        found = {self._me}
        at = everybody.get(self._me)
        while at is not None and at.parent not in found:
            found.add(at.parent)
            at = everybody.get(at.parent)
        return found

    def find(self, marked: bool) -> Dict[int, Process]:
        """Those that run now; the marked ones are looked for if asked, which costs more."""
        everybody = running_processes()
        if not everybody:  # no /proc: what we started is all we know
            me = self._me
            return {pid: Process(pid, me, "?", 0, "?") for pid in self._children.running}
        found = {process.pid: process for process in self._below(everybody)}
        if marked:
            for pid, process in everybody.items():
                if pid not in found and pid not in self._lineage and has_marks(pid, self._marks):
                    found[pid] = process
        return {pid: process for pid, process in found.items() if process[:4:3] not in self._spared}


class Ending:
    """Ends all processes: SIGTERM, `grace` seconds, SIGKILL, until nothing is left.

    SIGTERM goes to the topmost processes only: a rank decides itself what becomes of its helpers, and when it is gone
    they are topmost. SIGKILL goes to all.
    """

    LIMIT = 0.7
    SLOWEST = 0.5

    def __init__(
        self, find: Callable[[bool], Dict[int, Process]], grace: float, patience: float
    ) -> None:
        now = time.monotonic()
        self._find = find
        self._term_at = now + patience
        self._kill_at = now + max(grace, patience)
        self._told: Set[Tuple[int, int]] = set()
        self._look_at = now
        self._pause = 0.05
        self._reaped = -1
        self.killed: Dict[int, str] = {}
        self.left: Dict[int, str] = {}

    def step(self, reaped: int) -> bool:
        """Do what is due; True when nothing is left, or nothing more can be done.

        Args:
            reaped: How many children were waited for so far; looking at all processes is dear, so in a long grace it
                is done when this has changed, and seldom else.
        """
        now = time.monotonic()
        killing = now >= self._kill_at
        if not killing and now < min(self._look_at, self._kill_at) and reaped == self._reaped:
            return False
        self._reaped = reaped
        self._pause = min(self._pause * 1.5, self.SLOWEST)
        self._look_at = now + self._pause
        found = self._find(killing or not self._told) or self._find(True)
        if not found:
            return True
        if killing:
            self._kill(found, now)
        elif now >= self._term_at:
            self._tell(found)
        else:
            self._look_at = min(self._look_at, self._term_at)
        return bool(self.left)

    def _tell(self, found: Mapping[int, Process]) -> None:
        for process in found.values():
            key = (process.pid, process.started)
            if process.parent not in found and key not in self._told:
                self._told.add(key)
                send(process.pid, signal.SIGTERM)

    def _kill(self, found: Mapping[int, Process], now: float) -> None:
        for process in found.values():
            send(process.pid, signal.SIGKILL)
            self.killed[process.pid] = process.name
        if now > self._kill_at + self.LIMIT:
            self.left = {process.pid: process.name for process in found.values()}
