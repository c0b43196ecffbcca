"""The operating system."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from collections import deque
from typing import Deque, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from .contract import HANDLED_SIGNALS, STOP_SIGNALS
from .errors import StopRequested

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

PARENT = "HYPERPOD_PARENT"
"""Variable by which an entry of ours learns who started it, in case that one is gone by then."""


def prctl(option: int, value: int) -> bool:
    """Linux's prctl; False where there is none. Nothing depends on it: it closes gaps that only SIGKILL opens."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def die_with_parent(parent: Optional[int]) -> None:
    """Have the kernel send SIGKILL to this process when the one that started it is gone, or go now if it is."""
    saved = prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if saved and parent is not None and parent != os.getppid() and has_exited(parent):
        os.kill(os.getpid(), signal.SIGKILL)


def hold_standard_descriptors() -> None:
    """Make sure that 0, 1 and 2 are open, so that no file of ours takes the place of a closed stdout."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def close_others() -> None:
    """Close all descriptors but 0, 1 and 2."""
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # no /proc; the limit on open files may be too high to try them all
        descriptors = list(range(256))
    for descriptor in descriptors:
        if descriptor > 2:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def parse_wait_status(status: int) -> Tuple[int, Optional[int]]:
    """Exit code in the shell's manner (128+N for signal N), and the signal, of a wait status."""
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status), os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def signal_name(number: int) -> str:
    """A signal's name, such as SIGTERM."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "SIG%d" % number


def describe_end(exit_code: int, ended_by: Optional[int]) -> str:
    """How a process ended, in words."""
    return "was ended by " + signal_name(ended_by) if ended_by else "ended with %d" % exit_code


def available_cpus() -> int:
    """CPUs that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


class Process(NamedTuple):
    """A process as /proc shows it; `started` tells it from a later one with the same id."""

    pid: int
    parent: int
    state: str
    started: int
    name: str


def read_process(pid: int) -> Optional[Process]:
    """Look one process up; None when it is gone, or where there is no /proc."""
    try:
        with open("/proc/%d/stat" % pid, "rb") as file:
            head, _, tail = file.read().rpartition(b")")
        fields = tail.split()
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        return Process(pid, int(fields[1]), fields[0].decode(), int(fields[19]), name)
    except (OSError, ValueError, IndexError):
        return None


def has_exited(pid: int) -> bool:
    """Whether a process has ended, be it waited for or not."""
    process = read_process(pid)
    return process.state in "ZX" if process else not send(pid, 0)


def running_processes() -> Dict[int, Process]:
    """All processes that still run, by id; empty where there is no /proc."""
    processes = {}
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            process = read_process(int(name)) if name.isdigit() else None
            if process and process.state not in "ZX":
                processes[process.pid] = process
    return processes


def has_markers(pid: int, markers: FrozenSet[bytes]) -> bool:
    """Whether a process of ours was started with all these ``NAME=value`` in its environment."""
    try:
        if os.stat("/proc/%d" % pid).st_uid != os.geteuid():
            return False
        with open("/proc/%d/environ" % pid, "rb") as file:
            return markers.issubset(file.read().split(b"\0"))
    except OSError:
        return False


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal (SigCgt in /proc)."""
    try:
        with open("/proc/%d/status" % pid, "rb") as file:
            match = re.search(rb"^SigCgt:\s*([0-9a-f]+)", file.read(), re.MULTILINE)
    except OSError:
        return False
    return bool(match and int(match.group(1), 16) >> (number - 1) & 1)


def topmost_catchers(pid: int, number: int) -> List[int]:
    """The processes that catch a signal, from `pid` down; below one that does, nobody is looked at.

    A shell that waits for the real program doesn't catch it, the program does; its forked helpers, which inherit the
    handler, must not get it a second time.
    """
    if catches(pid, number):
        return [pid]  # the usual case: the other processes need not be listed
    children: Dict[int, List[int]] = {}
    for process in running_processes().values():
        children.setdefault(process.parent, []).append(process.pid)
    catchers, waiting = [], list(children.get(pid, ()))
    while waiting:
        candidate = waiting.pop()
        if catches(candidate, number):
            catchers.append(candidate)
        else:
            waiting.extend(children.get(candidate, ()))
    return catchers


def send(pid: int, number: int) -> bool:
    """Send a signal; False when the process is gone or not ours to signal."""
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True


class Signals:
    """Collects signals and wakes the loop; the handlers do nothing else."""

    def __init__(self) -> None:
        self._pending: Deque[int] = deque()
        self._wake, self._bell = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._bell, False)

    def install(self) -> None:
        """Take over the signals that mean something to the launcher."""
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        for number in (*HANDLED_SIGNALS, signal.SIGCHLD):
            # nohup: the user wants it to go on
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])

    def ignore(self) -> None:
        """Let none of them change the exit code any more; while it shuts down, Python has no handlers."""
        signal.set_wakeup_fd(-1)
        for number in HANDLED_SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _on_signal(self, number: int, _frame: object) -> None:
        self._pending.append(number)

    def wait(self, seconds: float) -> None:
        """Sleep until a signal comes, at most so long."""
        descriptors = [self._wake]
        ready_descriptors, _, _ = select.select(descriptors, [], [], max(0.0, seconds))
        if self._wake in ready_descriptors:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._wake, 512):
                    pass

    def pop_signals(self) -> List[int]:
        """The signals since the last call, children's ends left out."""
        signals_taken = []
        while self._pending:
            number = self._pending.popleft()
            if number != signal.SIGCHLD:
                signals_taken.append(number)
        return signals_taken

    @property
    def has_some(self) -> bool:
        """Whether there are signals that nobody has taken."""
        return any(number != signal.SIGCHLD for number in self._pending)

    def pause(self, seconds: float) -> None:
        """Sleep, before anything is there that would have to be ended.

        Raises:
            StopRequested: A stop signal came.
        """
        self.wait(seconds)
        for number in self.pop_signals():
            if number in STOP_SIGNALS:
                raise StopRequested(signal_name(number))
