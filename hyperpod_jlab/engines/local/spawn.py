"""Starts a supervisor that outlives the process that starts it.

A Jupyter kernel ends all its descendants when it shuts down, so the supervisor must not be one: an
intermediate process starts its own session, forks and ends, and its child (now a child of init)
becomes the supervisor. It inherits none of our file descriptors.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError, InternalError
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import Observation, ObservedState
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED
from hyperpod_jlab.engines.local.attempt import ObservationLog, finish
from hyperpod_jlab.engines.local.board import Board, reduce_actions
from hyperpod_jlab.engines.local.machine import launcher_digest, scheduler_id
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import BundleReader

# The child's identity is recorded before it may continue, so that from then on the starter can tell
# whether it lives: its pid and start time stay the same through exec. If it cannot be recorded, the
# child ends. An existing owner is left alone: this child then finds the registration taken.
_DETACH = """
import os, sys
os.setsid()
folder, record, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
os.set_inheritable(folder, False)
word, go = os.pipe()
child = os.fork()
if child == 0:
    os.close(go)
    if os.read(word, 1) != b"1":
        os._exit(1)
    os.close(word)
    os.chdir("/")
    os.execv(command[0], command)
with open("/proc/%d/stat" % child, errors="replace") as stat:
    start = stat.read().rpartition(")")[2].split()[19]
mine = "owner.json." + str(child) + ".tmp"
try:
    file = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with open(file, "w") as file:
        file.write(record % (child, int(start)))
    os.link(mine, "owner.json", src_dir_fd=folder, dst_dir_fd=folder)
except FileExistsError:
    pass
finally:
    os.unlink(mine, dir_fd=folder)
os.write(go, b"1")
os._exit(0)
"""


def spawn_supervisor(bundle: BundleReader, *, folder: Path, slots: int) -> None:
    """Start the supervisor of a run; it exits by itself if there is already one.

    Raises:
        DeniedError: The run is another user's.
        StorageError: The bundle is not this user's or not writable; nothing was started.
        InternalError: The process could not be started.
    """
    bundle.check_own("submit")
    python = sys.executable
    command = [python, "-P", "-m", "hyperpod_jlab.engines.local.supervisor"]
    partition = bundle.partition
    command += [str(partition.root), bundle.run_id, f"--folder={folder}", f"--slots={slots}"]
    command.append(f"--launcher={launcher_digest(partition, bundle.folder)}")
    command += ["--shared"] if partition.shared else []
    log = bundle.folder / "logs" / "supervisor.log"
    status = bundle.records / "status"
    with storage_errors(log):
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        errors = os.fdopen(descent.open_file(log, flags, bundle.file_mode), "ab")
    try:
        with errors, descent.opened_folder(status) as descriptor:
            subprocess.run(
                [python, "-I", "-S", "-c", _DETACH, str(descriptor), _owner_template(), *command],
                pass_fds=(descriptor,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(),
                check=True,
                timeout=60,
            )
    except (OSError, subprocess.SubprocessError) as error:
        _check_writable(status)
        raise InternalError(
            "the supervisor of the run could not be started",
            code="no_supervisor",
            hint=f"see {log}",
            detail={"error": str(error)},
        ) from error


def _check_writable(folder: Path) -> None:
    """Distinguish a full or read-only partition from other causes.

    Raises:
        StorageError: The partition is not writable.
    """
    probe = folder / f".probe-{os.getpid()}"
    with storage_errors(folder):
        descent.replace(probe, b"x")
        descent.unlink(probe)


def _owner_template() -> str:
    """The owner's record as JSON, with placeholders for pid and start time."""
    record = this_process(heartbeat=time.time()).model_dump()
    del record["pid"], record["start_time"]
    text = json.dumps(record).replace("%", "%%")
    return text[:-1] + ', "pid": %d, "start_time": %d}'


def _environment() -> dict[str, str]:
    """The variables that the supervisor needs; runs inherit none of them."""
    inherited = ("HOME", "PATH", "LANG", "TMPDIR", "PYTHONPATH", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in inherited if name in os.environ}


# --------------------------------------------------------------------------------------------------
# An array's children on the embedded cluster: each is a run with its own supervisor, a limited
# number at a time.

_MAX_PENDING_CHILDREN = 2  # children that may wait while all slots are in use


class ArrayRunner:
    """Starts an array's children in order and waits for them."""

    def __init__(self, bundle: BundleReader, board: Board, spec: JobSpec, log: ObservationLog, launcher: str) -> None:
        self._bundle = bundle
        self._launcher = launcher
        self._board = board
        array = parse_array(spec.array or "0")
        self._remaining = list(array.indices)
        self._limit = min(array.throttle or len(array.indices), board.slots + _MAX_PENDING_CHILDREN)
        self._children: list[tuple[int, subprocess.Popen[bytes]]] = []
        self._log = log
        self._child_logs: list[ObservationLog] = []  # of children that cannot report themselves

    def run(self, tick: Callable[[], bool]) -> bool:
        """Run all children to their end; `tick` pauses and returns whether to continue.

        Returns whether all have ended: when stopped, it leaves running children alone.
        """
        held = None
        while self._remaining or self._children:
            requested = reduce_actions(self._bundle.actions())
            if held != (requested.held and not self._children):
                held = requested.held and not self._children
                self._log.record(self._observation(self._bundle, "waiting" if held else "running", held=held))
            if requested.cancelled:
                self._cancel_remaining()
            self._children = [child for child in self._children if self._is_running(*child)]
            while self._remaining and not requested.held and len(self._children) < self._limit:
                index = self._remaining.pop(0)
                self._children.append((index, self._start(index)))
            for log in self._child_logs:
                log.refresh()
            if not tick():
                return not self._remaining and not self._children
        finish(self._child_logs, tick)
        self._log.record(self._observation(self._bundle, "ended", "COMPLETED"))
        return True

    def _is_running(self, index: int, process: subprocess.Popen[bytes]) -> bool:
        code = process.poll()
        # The child could not report its end itself; nothing is written to a bundle that is no
        # longer ours.
        if code not in {None, 0, EXIT_UNTRUSTED}:
            self._record_child_end(index, "LOST")
        return code is None

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        partition = self._bundle.partition
        command = [sys.executable, "-P", "-m", "hyperpod_jlab.engines.local.supervisor"]
        command += [str(partition.root), f"{self._bundle.run_id}.{index}"]
        command += [f"--folder={self._board.folder}", f"--slots={self._board.slots}"]
        command.append(f"--launcher={self._launcher}")
        command += ["--shared"] if partition.shared else []
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def _cancel_remaining(self) -> None:
        """Report the cancel for the children that never started."""
        for index in self._remaining:
            self._record_child_end(index, "CANCELLED")
        self._remaining.clear()

    def _record_child_end(self, index: int, verdict: str) -> None:
        child = BundleReader(self._bundle.partition, f"{self._bundle.run_id}.{index}")
        with contextlib.suppress(HyperpodError):  # otherwise the partition is away, or the array was deleted
            if any(observation.state == "ended" for observation in child.read().observations):
                return
        log = ObservationLog(child, heartbeat=False)
        self._child_logs.append(log)
        log.record(self._observation(child, "ended", verdict))

    @staticmethod
    def _observation(
        bundle: BundleReader, state: ObservedState, verdict: str | None = None, *, held: bool = False
    ) -> Observation:
        return Observation(
            time=time.time(),
            observer="local",
            scheduler_id=scheduler_id(bundle.run_id),
            state=state,
            reason="held by its user" if held else None,
            reason_code="held" if held else None,
            verdict=verdict,
        )
