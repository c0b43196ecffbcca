"""Jobs of users' own scripts, which run without our launcher: Slurm tells their state, and their log is the script's own output file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic_core import from_json

from hyperpod_jlab.core.errors import NotFoundError, StorageError
from hyperpod_jlab.core.records import MAX_OBSERVED_NODES, Observation
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_files import JobFiles, PatternValues, choices, output_paths, to_local_path
from hyperpod_jlab.engines.slurm.rows import Fields, expand, long_format, new_delimiter, parse_long
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.files import storage_errors, to_json
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

_FIELDS = Fields(
    fixed=(("job_id", "JobID"), ("user", "UserName"), ("exit_code", "exit_code")),
    free=(("stdout", "STDOUT"), ("stderr", "STDERR"), ("folder", "WorkDir"), ("name", "Name")),
)
_MAX_JOBS_PER_CALL = 200

JOB_FILE = "job.json"
"""In the bundle's ``status``: the job's output paths, saved because Slurm forgets them with the job."""
_MAX_JOB_FILE_BYTES = 64 << 10

_LOGS = ("node-0.rank-0.log", "node-0.log")
"""The names of a job's stdout, and of its stderr if that is separate (docs/bundle-format.md)."""

_EXIT_NO_SUCH_FILE = 53
"""slurmstepd's value in place of a signal when it cannot open the job's output (no signal has this number; observed on 22.05 and 24.11)."""


@dataclass(frozen=True)
class ScriptJob:
    """What the queue does not list of a job: where it writes, and the exit code and the signal of its script."""

    files: JobFiles
    exit: tuple[int, int]


async def query_scripts(client: SlurmClient, jobs: Iterable[str]) -> dict[str, ScriptJob]:
    """The jobs that the controller still knows, by job id.

    Raises:
        UnreachableError: The controller does not answer.
    """
    unique_jobs = list(dict.fromkeys(jobs))
    scripts: dict[str, ScriptJob] = {}
    for start in range(0, len(unique_jobs), _MAX_JOBS_PER_CALL):
        delimiter = new_delimiter()
        job_list = ",".join(unique_jobs[start : start + _MAX_JOBS_PER_CALL])
        argv = ["squeue", "--noheader", "--all", "--states=all", f"--jobs={job_list}"]
        try:
            text = await client.query([*argv, f"--Format={long_format(delimiter, _FIELDS)}"])
        except NotFoundError:  # a single job is gone; among several, missing ones are left out
            continue
        for row in parse_long(text, delimiter, _FIELDS):
            files = JobFiles(row["stdout"], row["stderr"], row["folder"], row["name"], row["user"])
            scripts[row["job_id"]] = ScriptJob(files, parse_exit(row["exit_code"]))
    return scripts


def parse_exit(text: str) -> tuple[int, int]:
    """Exit code and signal from squeue's format: ``7:0``, or in 22.05 the wait(2) status, such as 1792."""
    code, colon, signal = text.partition(":")
    if colon:
        return _parse_count(code), _parse_count(signal)
    status = _parse_count(code) & 0xFFFF
    return status >> 8, status & 0x7F


def _parse_count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def with_start(observation: Observation, started_at: float | None, nodes: str) -> Observation:
    """The observation of a script's job with its start and its nodes (a host list), once it has both."""
    names = expand(nodes)
    if observation.state == "waiting" or started_at is None or not names:
        return observation
    return observation.model_copy(update={"started_at": started_at, "nodes": names[:MAX_OBSERVED_NODES]})


def with_exit(observation: Observation, exit_code: int, signal: int) -> Observation:
    """The observation of a script's failed job with the exit code as its reason."""
    if observation.verdict != "FAILED" or not (exit_code or signal):
        return observation
    reason, code = f"exit code {exit_code}", "exit_code"
    if signal == _EXIT_NO_SUCH_FILE:
        reason = "Slurm could not open the output file of the job: check that its folder exists and is writable"
        code = "no_output"
    elif signal:
        reason, code = f"ended by signal {signal}", "signal"
    return observation.model_copy(
        update={"exit_code": exit_code or 128 + signal, "reason": reason, "reason_code": code}
    )


# --------------------------------------------------------------------------------------------------
# The log of such a run: a link in its bundle to the job's output file.


def write_job_files(bundle: BundleReader, files: JobFiles) -> None:
    """Save the job's output paths. Blocking."""
    _write(bundle, bundle.folder / "status" / JOB_FILE, to_json(asdict(files)))


def read_job_files(bundle: BundleReader) -> JobFiles | None:
    """The job's saved output paths. Blocking."""
    try:
        data = descent.read(bundle.folder / "status" / JOB_FILE, _MAX_JOB_FILE_BYTES)
        return JobFiles(**from_json(data))
    except (OSError, ValueError, TypeError):
        return None


def link_output(bundle: BundleReader, values: PatternValues, paths: PathMap) -> None:
    """Link the run's log to the job's output file. Blocking; skips a partition that is not writable.

    Args:
        bundle: The run, of this user.
        values: The values for the patterns in the output's path.
        paths: The partition's paths on this machine and on the nodes.
    """
    files = read_job_files(bundle)
    if files is None:
        return
    options = [output_paths(files, candidate) for candidate in choices(files, values)]
    outputs = next((one for one in options if _exists(one[0], paths)), options[0])
    with contextlib.suppress(StorageError):
        for output, name in zip(outputs, _LOGS, strict=True):
            if output is not None:
                _link(bundle, bundle.records / "logs" / "attempt-1" / name, output, paths)


def _exists(output: str | None, paths: PathMap) -> bool:
    target = None if output is None else to_local_path(output, paths)
    return target is not None and Path(target).exists()


def _link(bundle: BundleReader, log: Path, output: str, paths: PathMap) -> None:
    target = to_local_path(output, paths)
    if output == "/dev/null" or target is None:
        note = "" if output == "/dev/null" else ", which is not on the storage partition"
        text = f"The job's output is at {output} on its nodes{note}: it cannot be shown.\n"
        _write(bundle, log, text.encode())
        return
    link = os.path.relpath(target, log.parent)  # works wherever the partition is mounted
    with contextlib.suppress(OSError):
        if descent.read_link(log) != link:  # a requeued job writes elsewhere
            descent.unlink(log)
    _make_folder(bundle, log.parent)
    with storage_errors(log), contextlib.suppress(FileExistsError):
        descent.make_link(log, link)


def _write(bundle: BundleReader, path: Path, data: bytes) -> None:
    _make_folder(bundle, path.parent)
    with storage_errors(path):
        descent.create(path, data, mode=bundle.file_mode)


def _make_folder(bundle: BundleReader, folder: Path) -> None:
    """Create a folder below the bundle, never the bundle itself: a deleted one must not come back."""
    bundle.check_writable(folder)
    with storage_errors(folder):
        descent.make_folders(bundle.folder, folder, bundle.folder_mode)
