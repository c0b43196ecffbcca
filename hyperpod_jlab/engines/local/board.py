"""The board: the waiting and running runs of this machine, shared by all of their supervisors.

Every supervisor holds a lock (flock) on its file under ``jobs/`` for its lifetime, so a killed one
is noticed at once and its slot is free. Every read and change of the board happens under one short
mutex. The board is on the machine's own disk, never on the partition.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, StorageError
from hyperpod_jlab.core.records import Action
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

EntryState = Literal["waiting", "held", "running", "array"]


@dataclass(frozen=True)
class BoardEntry:
    """One run on the board. `order` is its submit time (Unix seconds); `gpus` are the indices of its GPUs."""

    run_id: str
    bundle: str
    name: str
    user: str
    order: float
    state: EntryState = "waiting"
    nodes: int = 1
    gpus_wanted: int = 0
    gpus: tuple[int, ...] = ()
    pid: int = 0


def default_folder() -> Path:
    """The board's folder for this user on this machine.

    Raises:
        StorageError: Neither the user's state directory nor a temporary one is usable.
    """
    base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    base_folder = Path(base) / "hyperpod-jlab" / "local"
    fallback = Path(tempfile.gettempdir()) / f"hyperpod-jlab-{os.getuid()}" / "local"
    for folder in (base_folder, fallback):
        with contextlib.suppress(OSError):
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            if _is_private(folder) and (folder == base_folder or _is_private(folder.parent)):
                return folder
    raise StorageError(
        f"no private folder for the local cluster: {base_folder} and {fallback} cannot be written, or others can write to them",
        code="no_state_folder",
        hint="set XDG_STATE_HOME to a folder on this machine's own disk",
        detail={"path": str(base_folder)},
    )


def _is_private(folder: Path) -> bool:
    """Whether a folder is this user's, and no other user can replace its content."""
    status = folder.lstat()
    foreign_write = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not foreign_write
    return is_private and os.access(folder, os.W_OK)


class Board:
    """The board in one folder."""

    def __init__(self, folder: Path, *, slots: int, gpus: int) -> None:
        self.folder = folder
        self._jobs = folder / "jobs"
        self._jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._mutex_path = folder / "mutex"
        self.slots = slots
        self.gpus = gpus

    def entries(self) -> list[BoardEntry]:
        """All live entries, oldest first; files of dead supervisors are removed."""
        with self._mutex():
            return self._read()

    def register(self, entry: BoardEntry) -> Registration | None:
        """Register the run on the board for this process's lifetime; None when another process has done so."""
        path = self._jobs / f"{hashlib.sha256(entry.bundle.encode()).hexdigest()[:20]}.json"
        with self._mutex():
            descriptor = descent.open_file(path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            registration = Registration(self, path, descriptor, entry)
            registration.write()
            return registration

    def try_start(self, registration: Registration) -> tuple[bool, list[BoardEntry]]:
        """Give the run a slot and its GPUs if it is next and both are free.

        Returns whether it did, and all live entries before that, oldest first.
        """
        with self._mutex():
            entries = self._read()
            running = [entry for entry in entries if entry.state == "running"]
            waiting = [entry for entry in entries if entry.state == "waiting"]
            used_gpus = {gpu for entry in running for gpu in entry.gpus}
            free = [gpu for gpu in range(self.gpus) if gpu not in used_gpus]
            is_next = bool(waiting) and waiting[0].bundle == registration.entry.bundle
            start = is_next and len(running) < self.slots and len(free) >= registration.entry.gpus_wanted
            if start:
                gpus = tuple(free[: registration.entry.gpus_wanted])
                registration.entry = replace(registration.entry, state="running", gpus=gpus)
                registration.write()
            return start, entries

    def set_state(self, registration: Registration, state: EntryState) -> None:
        """Mark the run as waiting again, or as held."""
        if registration.entry.state != state:
            with self._mutex():
                registration.entry = replace(registration.entry, state=state, gpus=())
                registration.write()

    def unregister(self, registration: Registration) -> None:
        """Remove the run from the board."""
        with self._mutex():
            registration.path.unlink(missing_ok=True)
            os.close(registration.descriptor)

    def _read(self) -> list[BoardEntry]:
        entries = []
        for path in self._jobs.glob("*.json"):
            entry = self._read_entry(path)
            if entry is not None:
                entries.append(entry)
        return sorted(entries, key=lambda entry: (entry.order, entry.run_id))

    def _read_entry(self, path: Path) -> BoardEntry | None:
        descriptor = descent.open_file(path)
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)  # the lock is free: its supervisor is dead
                return None
            data = json.loads(os.pread(descriptor, 1 << 20, 0))
            return BoardEntry(**{**data, "gpus": tuple(data["gpus"])})
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _mutex(self) -> Iterator[None]:
        descriptor = descent.open_file(self._mutex_path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class Registration:
    """A run's registration; the lock on its file ends with this process."""

    def __init__(self, board: Board, path: Path, descriptor: int, entry: BoardEntry) -> None:
        self.board = board
        self.path = path
        self.descriptor = descriptor
        self.entry = entry

    def write(self) -> None:
        """Write the entry; the caller holds the board's mutex."""
        data = json.dumps(asdict(self.entry)).encode()
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, data, 0)


# --------------------------------------------------------------------------------------------------
# Whether a run's dependencies have succeeded.


@dataclass(frozen=True)
class Decision:
    """Why a run may not start yet; with `never`, why it never will."""

    reason: str
    is_final: bool = False


def check_dependencies(partition: Partition, after: Sequence[str]) -> Decision | None:
    """The first dependency that has not succeeded, or None when all have."""
    for run_id in after:
        try:
            records = BundleReader(partition, run_id).read()
        except HyperpodError as error:
            is_unmounted = isinstance(error, NotFoundError) and not _is_mounted(partition)
            return Decision(f"waiting for {run_id}: {error.message}", is_final=not is_unmounted)
        status = derive(records, StateContext(time.time()))
        if status.state in {"failed", "cancelled"}:
            return Decision(f"waiting for {run_id}, which ended as {status.state}", is_final=True)
        if status.state != "succeeded":
            return Decision(f"waiting for {run_id} to succeed")
    return None


def _is_mounted(partition: Partition) -> bool:
    """Whether the partition is mounted: while it is away no run is visible, and all may come back."""
    return any(descent.is_folder(place.runs) for place in partition.own_folders)


# --------------------------------------------------------------------------------------------------
# The user's requests for a run: the sum of its journal.


@dataclass(frozen=True)
class RequestedState:
    """Whether the run is cancelled or held, and how often it was requeued."""

    cancelled: bool = False
    held: bool = False
    requeues: int = 0


def reduce_actions(actions: Iterable[Action]) -> RequestedState:
    """Reduce a journal to its sum, oldest action first."""
    cancelled = held = False
    requeues = 0
    for action in actions:
        if action.action == "cancel":
            cancelled = True
        elif action.action == "requeue":
            requeues += 1
        elif action.action in {"hold", "release"}:
            held = action.action == "hold"
    return RequestedState(cancelled, held, requeues)
