"""Records and logs of jobs that run without our launcher: each process that polls the queue writes what the launcher would have written.

Any number of observers may do so at once. The attempt number follows from Slurm's restart count, so
all of them write the same, and existing files stay. An end is recorded only if the script ended by
itself; for other ends, such as the time limit, the scheduler's state applies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.engines.native_records import NativeRecords, node_record
from hyperpod_jlab.engines.slurm.accounting import Details, Execution, query_details
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_files import (
    JobFiles,
    PatternValues,
    choices,
    output_paths,
    to_local_path,
)
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob
from hyperpod_jlab.engines.slurm.native import Sending, read_sending
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.rows import expand
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

JOB_FILE = "job.json"
"""In the bundle's ``status``: the job's output paths, saved because Slurm forgets them with the job."""
_MAX_JOB_FILE_BYTES = 64 << 10

_MAX_NODES = 256
"""Maximum number of nodes with a record of their own."""

_OWN_EXIT_STATES = frozenset({"COMPLETED", "FAILED"})


_EXIT_NO_SUCH_FILE = 53
"""slurmstepd's value in place of a signal when it cannot open the job's output (no signal has this number; observed on 22.05 and 24.11)."""
_EMPTY_OUTPUT: dict[str, Any] = {
    "code": "no_output",
    "message": "Slurm could not open the output file of the job: check that its folder exists and is writable",
    "hint": None,
    "detail": {},
}


@dataclass(frozen=True)
class NativeExecution:
    """One execution of a job, as far as it is known. Times are Unix seconds.

    Attributes:
        restarts: How many executions of the job preceded it.
        exit_code: The script's exit code; None while it runs, or if it did not end by itself.
    """

    scheduler_id: str
    restarts: int
    nodes: tuple[str, ...]
    started_at: float
    ended_at: float | None
    exit_code: int | None
    signal: int | None

    @classmethod
    def from_job(cls, job: Details) -> NativeExecution | None:
        """The newest execution of a job; None when the job has not started."""
        if job.started_at is None or not job.nodes or job.state in WAITING:
            return None
        has_ended = job.state in _OWN_EXIT_STATES
        return cls(
            job.scheduler_id,
            job.restarts,
            job.nodes,
            job.started_at,
            job.ended_at if has_ended else None,
            job.exit_code if has_ended else None,
            job.signal if has_ended else None,
        )

    @classmethod
    def from_execution(cls, number: int, execution: Execution) -> NativeExecution | None:
        """The accounting's `number`-th execution, counted from 0; None when it never started."""
        nodes = expand(execution.nodes)
        if execution.start is None or not nodes:
            return None
        has_ended = execution.state in _OWN_EXIT_STATES and execution.end is not None
        code = execution.exit_code or (128 + execution.signal if execution.signal else 0)
        return cls(
            execution.scheduler_id,
            number,
            nodes,
            execution.start,
            execution.end if has_ended else None,
            code if has_ended else None,
            (execution.signal or None) if has_ended else None,
        )

    def record(self, rank: int) -> dict[str, Any]:
        """The record of one of its nodes; the first node's has the script's end."""
        first = rank == 0
        return node_record(
            rank,
            self.nodes[rank],
            self.started_at,
            ended_at=self.ended_at,
            exit_code=self.exit_code if first else None,
            signal=self.signal if first else None,
            error=_EMPTY_OUTPUT if first and self.signal == _EXIT_NO_SUCH_FILE else None,
        )


class NativeRecorder:
    """Writes the records of runs without a launcher.

    Args:
        client: The cluster's commands.
        paths: The partition's paths on this machine and on the nodes.
    """

    def __init__(self, client: SlurmClient, paths: PathMap) -> None:
        self._client = client
        self._paths = paths
        self._sendings: dict[Path, Sending | None] = {}
        self._recorded: dict[str, tuple[str, float | None]] = {}

    def sending(self, bundle: BundleReader) -> Sending | None:
        """The submit input of a run without a launcher; None for a run with ours. Blocking."""
        if bundle.folder not in self._sendings:
            self._sendings[bundle.folder] = read_sending(bundle)
        return self._sendings[bundle.folder]

    def select_jobs(
        self, bundle: BundleReader, parent: str, snapshot: Snapshot
    ) -> Sequence[SlurmJob]:
        """A run's jobs in the queue: by the id in their comment; adopted jobs, whose comment we may not be able to set, by job id. Blocking."""
        jobs = snapshot.by_run.get(parent)
        sending = None if jobs else self.sending(bundle)
        if sending is None or sending.adopted is None:
            return jobs or ()
        return [job for job in snapshot.jobs if sending.adopted in {job.job_id, job.array_job_id}]

    async def record(self, runs: Sequence[tuple[BundleReader, SlurmJob]]) -> None:
        """Update the records of this user's runs from their jobs in the queue; queries the scheduler only for changed jobs.

        Raises:
            UnreachableError: The controller does not answer.
        """
        changed = {
            job.job_id: bundle
            for bundle, job in runs
            if job.state not in WAITING and self._recorded.get(bundle.run_id) != _key(job)
        }
        if not changed:
            return
        keys = {bundle.run_id: _key(job) for bundle, job in runs}
        details = await query_details(self._client, changed)
        pairs = [(changed[job.job_id], job) for job in details if job.job_id in changed]
        await asyncio.to_thread(self._write_jobs, pairs)
        self._recorded.update((bundle.run_id, keys[bundle.run_id]) for bundle, _ in pairs)

    def _write_jobs(self, pairs: Iterable[tuple[BundleReader, Details]]) -> None:
        for bundle, job in pairs:
            self.write_job(bundle, job)

    def write_job(self, bundle: BundleReader, job: Details) -> None:
        """Record a job's current state. Blocking; skips a partition that is not writable."""
        with contextlib.suppress(StorageError):
            write_job_files(bundle, job.files)
            native = NativeExecution.from_job(job)
            if native is not None:
                self._write(bundle, native, job.files, job.pattern_values)

    def write_executions(self, bundle: BundleReader, executions: Iterable[Execution]) -> None:
        """Record the accounting's data about a job that left the queue. Blocking."""
        files = read_job_files(bundle)
        with contextlib.suppress(StorageError):
            for number, execution in enumerate(executions):
                native = NativeExecution.from_execution(number, execution)
                if native is not None:
                    parent, _, task = execution.scheduler_id.partition("_")
                    index = int(task) if task.isdecimal() else None
                    pattern_values = PatternValues(parent, parent, index, native.nodes[0])
                    self._write(bundle, native, files, pattern_values)

    def link_logs(self, bundle: BundleReader, scheduler_id: str) -> None:
        """Link the log of a job about which nothing else is known. Blocking."""
        files = read_job_files(bundle)
        parent, _, task = scheduler_id.partition("_")
        pattern_values = PatternValues(parent, parent, int(task) if task.isdecimal() else None, "")
        with contextlib.suppress(StorageError):
            if files is not None and not descent.is_folder(bundle.records / "logs" / "attempt-1"):
                self._link(bundle, 1, files, pattern_values)

    def _write(
        self,
        bundle: BundleReader,
        native: NativeExecution,
        files: JobFiles | None,
        pattern_values: PatternValues,
    ) -> None:
        number, records = native.restarts + 1, NativeRecords(bundle)
        records.claim(
            native.scheduler_id,
            number,
            f"{native.restarts}.1",
            node=native.nodes[0],
            time=native.started_at,
        )
        for rank in range(min(len(native.nodes), _MAX_NODES)):
            path, record = records.node(number, rank), native.record(rank)
            if native.ended_at is None:
                records.create(path, record)
            else:
                records.replace(path, record)
        if files is not None:
            self._link(bundle, number, files, pattern_values)

    def _link(
        self, bundle: BundleReader, number: int, files: JobFiles, pattern_values: PatternValues
    ) -> None:
        """Link the log's name in the bundle to the job's output file; a requeue that writes to the same file continues it."""
        logs, records = bundle.records / "logs", NativeRecords(bundle)
        paths = next(
            (paths for paths in self._choices(files, pattern_values) if self._exists(paths[0])),
            output_paths(files, pattern_values),
        )
        for path, name in zip(paths, _LOGS, strict=True):
            if path is None:
                continue
            target = to_local_path(path, self._paths)
            if path == "/dev/null" or target is None:
                note = "" if path == "/dev/null" else ", which is not on the storage partition"
                text = f"The job's output is at {path} on its nodes{note}: it cannot be shown.\n"
                records.write_once(logs / f"attempt-{number}" / name, text.encode())
                continue
            if any(_links_to(logs / f"attempt-{n}" / name, target) for n in range(1, number)):
                continue
            records.link(logs / f"attempt-{number}" / name, Path(target))

    @staticmethod
    def _choices(
        files: JobFiles, pattern_values: PatternValues
    ) -> list[tuple[str | None, str | None]]:
        return [output_paths(files, candidate) for candidate in choices(files, pattern_values)]

    def _exists(self, path: str | None) -> bool:
        target = None if path is None else to_local_path(path, self._paths)
        return target is not None and Path(target).exists()


_LOGS = ("node-0.rank-0.log", "node-0.log")
"""The names of a job's stdout, and of its stderr if that is separate (docs/bundle-format.md)."""


def write_job_files(bundle: BundleReader, files: JobFiles) -> None:
    """Save the job's output paths. Blocking."""
    NativeRecords(bundle).create(bundle.folder / "status" / JOB_FILE, asdict(files))


def read_job_files(bundle: BundleReader) -> JobFiles | None:
    """The job's saved output paths. Blocking."""
    try:
        data = descent.read(bundle.folder / "status" / JOB_FILE, _MAX_JOB_FILE_BYTES)
        return JobFiles(**from_json(data))
    except (OSError, ValueError, TypeError):
        return None


def _key(job: SlurmJob) -> tuple[str, float | None]:
    return ("ended" if job.is_ended else "begun", job.started_at)


def _links_to(path: Path, target: object) -> bool:
    try:
        read = os.path.normpath(path.parent / descent.read_link(path))
        return read == os.path.normpath(str(target))
    except OSError:
        return False
