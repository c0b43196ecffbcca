"""Where a job writes: the paths of its stdout and stderr, with the patterns in them filled in, and as this machine sees them."""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

_PATTERN = re.compile(r"%([0-9]*)(.)", re.DOTALL)
_NOWHERE = {"", "N/A", "n/a", "(null)", "(none)"}


@dataclass(frozen=True)
class JobFiles:
    """What Slurm says of a job's files (squeue's STDOUT, STDERR, WorkDir and Name), and whose job it is."""

    stdout: str
    stderr: str
    folder: str
    name: str
    user: str


@dataclass(frozen=True)
class PatternValues:
    """What patterns stand for: the job, in an array its task, and the first node.

    Attributes:
        job_id: The job's own number, which each task of an array has too.
        array_job_id: The array's number; the job's own where there is none.
        task: The task's index, or None.
        host: The first node's name.
        literal: Letters that stand for themselves after %: older versions do not know all patterns.
    """

    job_id: str
    array_job_id: str
    task: int | None
    host: str
    literal: str = ""


def output_paths(files: JobFiles, place: PatternValues) -> tuple[str | None, str | None]:
    """Absolute paths on the nodes of stdout and, when it goes elsewhere, stderr; None for none."""
    stdout, stderr = (_path(pattern, files, place) for pattern in (files.stdout, files.stderr))
    return stdout, None if stderr == stdout else stderr


def _path(pattern: str, files: JobFiles, place: PatternValues) -> str | None:
    if pattern in _NOWHERE:
        return None
    if place.task is not None and pattern in {
        f"{files.folder}/slurm-{number}.out" for number in (place.job_id, place.array_job_id)
    }:  # what squeue says of an array's tasks where nothing was chosen
        pattern = f"{files.folder}/slurm-%A_%a.out"
    return posixpath.normpath(posixpath.join(files.folder, fill_in(pattern, files, place)))


def fill_in(pattern: str, files: JobFiles, place: PatternValues) -> str:
    r"""A path with its patterns filled in (man sbatch, filename pattern). A backslash anywhere turns them all off."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    task = 4294967294 if place.task is None else place.task  # what Slurm has for none (NO_VAL)
    known = {
        "%": "%",
        "A": place.array_job_id,
        "a": str(task),
        "b": str(task % 10),
        "J": place.job_id,
        "j": place.job_id,
        "N": place.host.partition(".")[0],
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": files.user,
        "x": files.name,
    }

    def one(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        if letter not in known or letter in place.literal:
            return found[0]
        value = known[letter]
        return value.zfill(min(int(width), 10)) if width and value.isdecimal() else value

    return _PATTERN.sub(one, pattern)


def choices(files: JobFiles, place: PatternValues) -> tuple[PatternValues, ...]:
    """The same place as different versions understand it: ``%b`` is no pattern in 22.05."""
    several = "%b" in files.stdout or "%b" in files.stderr
    return (place, replace(place, literal="b")) if several else (place,)


def seen_here(path: str, paths: PathMap) -> PurePosixPath | None:
    """A file of the nodes as this machine sees it; None when it does not lie on the storage partition."""
    try:
        return paths.to_local_path(path)
    except InvalidInputError:
        return None


# --------------------------------------------------------------------------------------------------
# What a job's own script and its slurmstepd wrote: the only word of a job whose launcher never started, and why an execution was ended.

_LONGEST = 300
_LARGEST = 1 << 20

_OF_SLURM = re.compile(r"srun: |slurmstepd\S*: error: \*\*\* ")
"""Beginnings of lines that only say that a job or step was ended."""

_ENDED_BY = re.compile(r"^slurmstepd\S*: error: \*\*\* JOB .* DUE TO ([A-Z ]+)", re.MULTILINE)
"""What slurmstepd writes into the job's output when it ends a job (src/slurmd/slurmstepd/req.c)."""

_TASK_END = re.compile(r"^srun: error: (\S+): tasks? [0-9,-]+: (.+)$", re.MULTILINE)
"""What srun says of a task that did not end well (src/srun/libsrun/launch.c); a task is a launcher."""

_CAUSES = {
    "PREEMPTION": "PREEMPTED",
    "JOB REQUEUE": "REQUEUED",
    "NODE FAILURE": "NODE_FAIL",
    "TIME LIMIT": "TIMEOUT",
}


def batch_log_name(scheduler_id: str) -> str:
    """The file of a job's script in the bundle's logs."""
    return f"slurm-{scheduler_id}.out"


def read_end(path: Path) -> str:
    """The end of a log as text; empty when it cannot be read. Blocking."""
    try:
        with os.fdopen(descent.open_file(path), "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _LARGEST))
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def last_words(bundle: BundleReader, scheduler_id: str) -> str | None:
    """The last line that says something, or None. Blocking."""
    lines = read_end(bundle.folder / "logs" / batch_log_name(scheduler_id)).splitlines()
    said = [line.strip() for line in lines if line.strip() and not _OF_SLURM.match(line)]
    return said[-1][:_LONGEST] if said else None


def launcher_end(bundle: BundleReader, scheduler_id: str) -> str | None:
    """How a launcher ended, as srun told it in the job's output, such as "the launcher on node3 ended with exit code 127"; None when it did not. Blocking."""
    text = read_end(bundle.folder / "logs" / batch_log_name(scheduler_id))
    ends = [(found[1], found[2]) for found in _TASK_END.finditer(text)]
    if not ends:
        return None
    node, how = ends[0]
    exited = re.fullmatch(r"Exited with exit code ([0-9]+)", how)
    words = f"ended with exit code {exited[1]}" if exited else f"was ended: {how.lower()}"
    return f"the launcher on {node} {words}"


def verdict_in_log(bundle: BundleReader, scheduler_id: str, attempt: int) -> str | None:
    """Why Slurm ended an attempt, as its own line in the job's output says; None when there is none. Blocking.

    Args:
        bundle: The run.
        scheduler_id: The job, or the task of an array.
        attempt: The attempt. The line stands behind those with which its launchers began, and before those of the next one.
    """
    text = read_end(bundle.folder / "logs" / batch_log_name(scheduler_id))
    begun = [found.end() for found in _begins(attempt).finditer(text)]
    if not begun:
        return None
    following = _begins(attempt + 1).search(text, begun[-1])
    part = text[begun[-1] : following.start() if following else None]
    said = [found[1].strip() for found in _ENDED_BY.finditer(part)]
    return next((_CAUSES[words] for words in reversed(said) if words in _CAUSES), None)


def _begins(attempt: int) -> re.Pattern[str]:
    """The launcher's line at the begin of an attempt."""
    return re.compile(rf'^##hyperpod \{{.*"attempt": {attempt}[,}}].*$', re.MULTILINE)
