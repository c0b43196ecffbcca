"""One attempt of a run on the embedded cluster: N launchers as N process groups, from the start to the end of the last process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.records import Observation, Submission
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED, GuardPolicy, guard_command, untrusted_reason
from hyperpod_jlab.engines.local.machine import clean_environment
from hyperpod_jlab.launcher.contract import HANDLED_SIGNALS
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# A supervisor's observations of its run. A partition that is full or away for a while delays them
# and never ends the run. A run that fills the partition itself must still be seen to end: each
# attempt reserves some space, which is freed for the observation of its end.

_HEARTBEAT = 5.0
_RETRY = 1.0
_TIMEOUT = 3600.0
RESERVED_BYTES = 1 << 16


class ObservationLog:
    """The observations of one run, in order, and its heartbeat if the run belongs to this process."""

    def __init__(self, bundle: BundleReader, *, heartbeat: bool = True) -> None:
        self._bundle = bundle
        self._heartbeat = heartbeat
        self._pending = deque[Callable[[], None]]()
        self._last_state: tuple[str, str | None] | None = None
        self._beat_at: float | None = None
        self._tried_at = 0.0
        self._warned = False
        self._full: str | None = None
        self._has_verdict = False
        self._reserve = bundle.records / "status" / ".reserve"

    def record(self, observation: Observation) -> None:
        """Record an observation if it is new; if it cannot be written now, it is kept."""
        new = (observation.state, observation.reason)
        if new == self._last_state and observation.verdict is None:
            return
        self._last_state = new
        self._has_verdict = observation.verdict is not None
        self._pending.append(partial(self._write, observation))
        self._flush()

    def record_submission(self, submission: Submission) -> None:
        """Record that the run was accepted."""
        self._pending.append(partial(self._bundle.write_submission, submission))
        self._flush()

    def reserve(self) -> None:
        """Reserve space for the observation of the attempt's end.

        Raises:
            OSError: The partition is full or away.
        """
        if not descent.is_file(self._reserve):
            # Random, because a file system that compresses stores zeros in no space.
            descent.replace(self._reserve, os.urandom(RESERVED_BYTES))

    def refresh(self) -> None:
        """Write the heartbeat when it is due, and pending observations."""
        now = time.monotonic()
        if self._pending and now - self._tried_at > _RETRY:
            self._flush()
        if self._heartbeat and (self._beat_at is None or now - self._beat_at > _HEARTBEAT):
            self.write_heartbeat()

    def write_heartbeat(self) -> bool:
        """Write the heartbeat; returns whether the partition accepted it."""
        self._beat_at = time.monotonic()
        return self._try_write(lambda: self._bundle.write_owner(this_process(heartbeat=time.time())))

    def pending(self) -> bool:
        """Whether observations are pending. A deleted run has none; while the whole partition is away, that is unknown."""
        if not self._pending:
            return False
        with contextlib.suppress(OSError, StorageError):
            folder = self._bundle.folder
            return _exists(folder) or not _exists(folder.parents[1])
        return True

    def finish(self) -> None:
        """Write everything, however long the partition is away (at most an hour)."""
        finish([self], lambda: time.sleep(_RETRY))

    def _flush(self) -> None:
        self._tried_at = time.monotonic()
        while self._pending and self._try_write(self._pending[0]):
            self._pending.popleft()

    def _write(self, observation: Observation) -> None:
        self._bundle.add_observation(self._explained(observation))
        if observation.state == "ended":
            self._free_reserve()

    def _explained(self, observation: Observation) -> Observation:
        """The observation; of a failure on a full partition, where the launcher cannot record the reason, with this reason."""
        if self._full is None or observation.verdict != "FAILED" or observation.reason is not None:
            return observation
        return observation.model_copy(update={"reason": self._full, "reason_code": "storage_full"})

    def _free_reserve(self) -> bool:
        """Delete the reserve file. True if it was there: then there is space to write again."""
        with contextlib.suppress(OSError):
            is_reserved = descent.is_file(self._reserve)
            descent.unlink(self._reserve)
            return is_reserved
        return False

    def _try_write(self, write: Callable[[], None]) -> bool:
        try:
            write()
        except StorageError as error:
            if error.code == "storage_full":
                self._full = error.message
                if self._has_verdict and self._free_reserve():
                    return self._try_write(write)
            if not self._warned:
                self._warned = True
                with contextlib.suppress(OSError):  # supervisor.log is on the same partition
                    sys.stderr.write(f"{error.message}; trying again\n")
            return False
        return True


def _exists(folder: Path) -> bool:
    """Whether a folder exists.

    Raises:
        OSError: The partition does not answer.
    """
    try:
        descent.state(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def finish(logs: Sequence[ObservationLog], pause: Callable[[], object]) -> None:
    """Write everything of all logs, however long the partition is away (at most an hour in total).

    Args:
        logs: The logs.
        pause: Waits briefly.
    """
    deadline = time.monotonic() + _TIMEOUT
    while any(log.pending() for log in logs) and time.monotonic() < deadline:
        pause()
        for log in logs:
            log.refresh()


# --------------------------------------------------------------------------------------------------
# Ends processes left behind by a run's launchers, found by a marker in their environment.

_PROC = Path("/proc")


def find_processes(records: Path) -> list[int]:
    """Processes of this user that have the run's marker (``HYPERPOD_RECORDS``) or are one of its launchers."""
    marker = b"HYPERPOD_RECORDS=" + os.fsencode(records)
    own_pid = os.getpid()
    pids = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == own_pid:
            continue
        with contextlib.suppress(OSError):
            if entry.stat().st_uid != os.getuid():
                continue
            if marker in (entry / "environ").read_bytes().split(b"\0"):
                pids.append(int(entry.name))
    return pids


def end_processes(records: Path, grace: float) -> int:
    """End all processes of a run: SIGTERM, `grace` seconds, SIGKILL. Returns how many had to be killed."""
    deadline = time.monotonic() + grace
    _signal(find_processes(records), signal.SIGTERM)
    while time.monotonic() < deadline:
        if not find_processes(records):
            return 0
        time.sleep(0.05)
    killed = 0
    for _ in range(20):  # a process may fork while it is being killed
        remaining = find_processes(records)
        if not remaining:
            break
        killed += len(remaining)
        _signal(remaining, signal.SIGKILL)
        time.sleep(0.05)
    return killed


CANCEL = signal.SIGUSR1
"""Tells a supervisor to cancel its run when its journal cannot be written."""


def signal_cancel(pid: int) -> None:
    """Signal a supervisor if it already has a handler (SigCgt in proc(5)); otherwise the signal would kill it."""
    with contextlib.suppress(OSError, ValueError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt" and int(mask, 16) >> (CANCEL - 1) & 1:
                os.kill(pid, CANCEL)


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


_PR_SET_PDEATHSIG = 1
_PORTS = (20000, 32000)  # below Linux's ephemeral range, so no outgoing connection takes the port first
_LAUNCHER_SLACK = 1.2

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT

FENCED = 85
"""Exit code of a launcher that found another job's claim."""


def free_port() -> int:
    """A TCP port on loopback without a listener."""
    for _ in range(200):
        port = random.randrange(*_PORTS)  # noqa: S311 - no secret
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port on loopback")


def _prepare_launcher() -> None:
    """Make the kernel end this process when the supervisor dies (prctl(2)), so that no run continues unsupervised.

    Signals are blocked until their handlers exist.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True)
class AttemptEnd:
    """How an attempt ended: the verdict, and the cause if it adds something."""

    verdict: str
    reason: str | None = None


@dataclass
class RunningAttempt:
    """The launchers of one attempt.

    Attributes:
        partition: The partition.
        launcher: The SHA-256 of the allowed launcher.
        bundle: The bundle's folder.
        records: The records' folder (the bundle's, or a child's).
        plan: ``launch.json``.
        scheduler_id: The run's id in this engine.
        gpus: Indices of the run's GPUs, distributed evenly over its nodes.
        task: Index of the child in its array, or None.
    """

    partition: Partition
    launcher: str
    bundle: Path
    records: Path
    plan: dict[str, Any]
    scheduler_id: str
    gpus: tuple[int, ...] = ()
    task: int | None = None
    incarnation: str = field(default_factory=lambda: uuid.uuid4().hex)
    started_at: float = field(default_factory=time.monotonic)
    launchers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start a launcher for each node."""
        nodes = int(self.plan["nodes"])
        port = free_port()
        path = self.records / "logs" / "supervisor.log"
        with os.fdopen(descent.open_file(path, _APPEND, 0o644), "ab") as log:
            for node in range(nodes):
                self.launchers.append(
                    subprocess.Popen(
                        self._arguments(node, nodes, port),
                        cwd="/",
                        env=self._environment(node, nodes),
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=log,
                        start_new_session=True,
                        preexec_fn=_prepare_launcher,  # noqa: PLW1509 - the supervisor has one thread
                    )
                )

    def running(self) -> bool:
        """Whether any launcher still runs."""
        return any(launcher.poll() is None for launcher in self.launchers)

    def detect_loss(self) -> AttemptEnd | None:
        """What happened to killed launchers, if any: they could not report it, and their peers may wait for them for hours."""
        codes = [launcher.poll() for launcher in self.launchers]
        killed = {node: -code for node, code in enumerate(codes) if code is not None and code < 0}
        if not killed:
            return None
        nodes = ", ".join(map(str, killed))
        names = ", ".join(sorted({_signal_name(number) for number in killed.values()}))
        reason = f"the launcher of node {nodes} was killed ({names})"
        return AttemptEnd("LOST" if len(killed) == len(codes) else "NODE_FAIL", reason)

    def outcome(self) -> AttemptEnd:
        """How the attempt ended by itself. Only valid after its end."""
        codes = [launcher.wait() for launcher in self.launchers]
        if FENCED in codes:
            return AttemptEnd("FENCED")
        if EXIT_UNTRUSTED in codes:
            return AttemptEnd("REFUSED", untrusted_reason(self.bundle.name))
        return self.detect_loss() or AttemptEnd("FAILED" if any(codes) else "COMPLETED")

    def send_warning(self) -> None:
        """Warn the ranks of the time limit (SIGUSR2; NCCL may use SIGUSR1 itself)."""
        self._signal(signal.SIGUSR2)

    def end(self) -> None:
        """End all processes of the attempt: the launchers do it within their grace period, else they are killed."""
        grace = float(self.plan["stop_grace"])
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace + _LAUNCHER_SLACK
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.02)
        for launcher in self.launchers:
            if launcher.poll() is None:
                launcher.kill()
        self.end_leftovers()

    def end_leftovers(self) -> None:
        """Kill what the launchers left behind."""
        end_processes(self.records, 0)

    def _signal(self, number: signal.Signals) -> None:
        for launcher in self.launchers:
            launcher.send_signal(number)

    def _arguments(self, node: int, nodes: int, port: int) -> list[str]:
        guard_policy = GuardPolicy(os.getuid(), self.launcher, self.partition.shared)
        root = self.partition.root
        arguments = [
            str(self.plan["python"]),
            *guard_command(guard_policy.guard_args(root, self.bundle.relative_to(root))),
            "node",
            f"--node-rank={node}",
            f"--nodes={nodes}",
            "--master-addr=127.0.0.1",
            f"--master-port={port}",
            f"--scheduler-id={self.scheduler_id}",
            f"--incarnation={self.incarnation}",
            f"--node-name=local-{node}",
            "--quiet",
        ]
        if self.task is not None:
            arguments.append(f"--task={self.task}")
        return arguments

    def _environment(self, node: int, nodes: int) -> dict[str, str]:
        gpus_per_node = len(self.gpus) // nodes
        gpus = self.gpus[node * gpus_per_node : (node + 1) * gpus_per_node]
        environment = clean_environment(str(self.plan["python"]), gpus)
        environment["HYPERPOD_RECORDS"] = os.fspath(self.records)
        return environment
