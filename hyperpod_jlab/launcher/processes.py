"""Processes: starting them, and ending all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import warnings
from typing import Callable, Dict, List, Mapping, NoReturn, Optional, Sequence, Set, Tuple

from .bundle_files import AttemptPaths
from .contract import HANDLED_SIGNALS
from .errors import LauncherError
from .system import (
    PARENT,
    Process,
    close_others,
    die_with_parent,
    has_markers,
    parse_wait_status,
    running_processes,
    send,
)

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
        self.is_counted = True
        """Whether what it used counts as the node's."""

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
        output: Optional[int] = None,
        is_counted: bool = True,
    ) -> Child:
        """Start a process with the node's log as its output, unless there is another one.

        Raises:
            LauncherError: The system does not start it.
        """
        import subprocess

        output = self._output if output is None else output
        try:
            popen = subprocess.Popen(
                argv,
                env={**environment, PARENT: str(os.getpid())},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            message = "%s could not be started: %s" % (name, error)
            raise LauncherError("start_failed", message) from error
        popen.returncode = 0  # we wait for it ourselves
        child = self._running[popen.pid] = Child(name, popen.pid)
        child.is_counted = is_counted
        return child

    def fork(self, name: str, run: Callable[[], int]) -> Child:
        """Run a function in a copy of this process, which costs a fraction of a new Python; what it uses does not count as the node's.

        Args:
            name: Name of the process.
            run: Returns its exit code. Only 0, 1 and 2 are open, with the node's log as output. `HANDLED_SIGNALS` are blocked and have
                their default actions: it unblocks those that it wants. It must not use what threads of the launcher use.

        Raises:
            LauncherError: The system does not start it.
        """
        own_pid = os.getpid()
        previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*HANDLED_SIGNALS, signal.SIGCHLD))
        try:
            with warnings.catch_warnings():
                # Of forks beside threads, from 3.12 on.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if pid == 0:
                self._be_copy(name, own_pid, run)
        except OSError as error:
            message = "%s could not be started: %s" % (name, error)
            raise LauncherError("start_failed", message) from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        child = self._running[pid] = Child(name, pid)
        child.is_counted = False
        return child

    def _be_copy(self, name: str, parent: int, run: Callable[[], int]) -> NoReturn:
        exit_code = 1
        try:
            die_with_parent(parent)
            with contextlib.suppress(OSError), open("/proc/self/comm", "w") as file:
                file.write(name)  # what ps and top show
            signal.set_wakeup_fd(-1)
            for number in (*HANDLED_SIGNALS, signal.SIGCHLD):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            os.setsid()
            os.chdir("/")
            null = os.open(os.devnull, os.O_RDONLY)
            for descriptor, source in enumerate((null, self._output, self._output)):
                os.dup2(source, descriptor)
            close_others()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
            exit_code = run()
        except Exception:  # noqa: BLE001 - it must not become a second launcher
            import traceback

            os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
        finally:
            os._exit(exit_code)

    def reap(self) -> None:
        """Wait for whatever has ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.reaped += 1
            child = self._running.pop(pid, None)
            if child is None or child.is_counted:
                self.cpu_seconds = (self.cpu_seconds or 0.0) + usage.ru_utime + usage.ru_stime
                self.max_memory = max(self.max_memory or 0, usage.ru_maxrss * MEMORY_UNIT)
            if child:
                child.exit_code, child.signal = parse_wait_status(status)
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

    def __init__(self, attempt_paths: AttemptPaths, children: Children) -> None:
        self._own_pid = os.getpid()
        self._children = children
        markers = (
            "HYPERPOD_RECORDS=" + attempt_paths.records,
            "HYPERPOD_ATTEMPT=%d" % attempt_paths.attempt,
            "NODE_RANK=%d" % attempt_paths.node_rank,
        )
        self._markers = frozenset(os.fsencode(marker) for marker in markers)
        processes = running_processes()
        # Whatever was the launcher's child before it began (a script that exec'ed it) is none of its business.
        self._excluded = {process[:4:3] for process in self._descendants(processes)}
        self._lineage = self._ancestors(processes)

    def _descendants(self, processes: Mapping[int, Process]) -> List[Process]:
        children_by_parent: Dict[int, List[Process]] = {}
        for process in processes.values():
            children_by_parent.setdefault(process.parent, []).append(process)
        descendants, pending = [], [self._own_pid]
        while pending:
            for process in children_by_parent.get(pending.pop(), ()):
                descendants.append(process)
                pending.append(process.pid)
        return descendants

    def _ancestors(self, processes: Mapping[int, Process]) -> Set[int]:
        ancestors = {self._own_pid}
        process = processes.get(self._own_pid)
        while process is not None and process.parent not in ancestors:
            ancestors.add(process.parent)
            process = processes.get(process.parent)
        return ancestors

    def find(self, only_marked: bool) -> Dict[int, Process]:
        """Those that run now; the marked ones are looked for if asked, which costs more."""
        processes = running_processes()
        if not processes:  # no /proc: what we started is all we know
            own_pid = self._own_pid
            return {pid: Process(pid, own_pid, "?", 0, "?") for pid in self._children.running}
        by_pid = {process.pid: process for process in self._descendants(processes)}
        if only_marked:
            for pid, process in processes.items():
                if pid not in by_pid and pid not in self._lineage and has_markers(pid, self._markers):
                    by_pid[pid] = process
        return {pid: process for pid, process in by_pid.items() if process[:4:3] not in self._excluded}


class ProcessTermination:
    """Ends all processes: SIGTERM, `grace` seconds, SIGKILL, until nothing is left.

    SIGTERM goes to the topmost processes only: a rank decides itself what becomes of its helpers, and when it is gone
    they are topmost. SIGKILL goes to all.
    """

    LIMIT = 0.7
    SLOWEST = 0.5

    def __init__(self, find: Callable[[bool], Dict[int, Process]], grace: float, delay: float) -> None:
        now = time.monotonic()
        self._find = find
        self._term_at = now + delay
        self._kill_at = now + max(grace, delay)
        self._signalled: Set[Tuple[int, int]] = set()
        self._next_check_at = now
        self._check_pause = 0.05
        self._reaped = -1
        self.killed: Dict[int, str] = {}
        self.unkillable: Dict[int, str] = {}

    def step(self, reaped: int) -> bool:
        """Do what is due; True when nothing is left, or nothing more can be done.

        Args:
            reaped: How many children were waited for so far; looking at all processes is dear, so in a long grace it
                is done when this has changed, and seldom else.
        """
        now = time.monotonic()
        killing = now >= self._kill_at
        if not killing and now < min(self._next_check_at, self._kill_at) and reaped == self._reaped:
            return False
        self._reaped = reaped
        self._check_pause = min(self._check_pause * 1.5, self.SLOWEST)
        self._next_check_at = now + self._check_pause
        processes_found = self._find(killing or not self._signalled) or self._find(True)
        if not processes_found:
            return True
        if killing:
            self._kill_all(processes_found, now)
        elif now >= self._term_at:
            self._terminate(processes_found)
        else:
            self._next_check_at = min(self._next_check_at, self._term_at)
        return bool(self.unkillable)

    def _terminate(self, descendants: Mapping[int, Process]) -> None:
        for process in descendants.values():
            key = (process.pid, process.started)
            if process.parent not in descendants and key not in self._signalled:
                self._signalled.add(key)
                send(process.pid, signal.SIGTERM)

    def _kill_all(self, descendants: Mapping[int, Process], now: float) -> None:
        for process in descendants.values():
            send(process.pid, signal.SIGKILL)
            self.killed[process.pid] = process.name
        if now > self._kill_at + self.LIMIT:
            self.unkillable = {process.pid: process.name for process in descendants.values()}
