"""Job output paths: stdout and stderr with their patterns expanded, as this machine sees them."""

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
_UNSET = {"", "N/A", "n/a", "(null)", "(none)"}


@dataclass(frozen=True)
class JobFiles:
    """A job's files from Slurm (squeue's STDOUT, STDERR, WorkDir and Name), and the job's user."""

    stdout: str
    stderr: str
    folder: str
    name: str
    user: str


@dataclass(frozen=True)
class PatternValues:
    """Values for filename patterns: the job, its array task, and the first node.

    Attributes:
        job_id: The job's own id; each array task has one too.
        array_job_id: The array's id, or the job's own id outside an array.
        task: The task's index, or None.
        host: The first node's name.
        literal: Letters that older Slurm versions do not know as patterns; they stay as they are.
    """

    job_id: str
    array_job_id: str
    task: int | None
    host: str
    literal: str = ""


def output_paths(files: JobFiles, pattern_values: PatternValues) -> tuple[str | None, str | None]:
    """Absolute paths on the nodes of stdout and, if separate, stderr; None when there is none."""
    stdout, stderr = (_path(pattern, files, pattern_values) for pattern in (files.stdout, files.stderr))
    return stdout, None if stderr == stdout else stderr


def _path(pattern: str, files: JobFiles, pattern_values: PatternValues) -> str | None:
    if pattern in _UNSET:
        return None
    if pattern_values.task is not None and pattern in {
        f"{files.folder}/slurm-{number}.out" for number in (pattern_values.job_id, pattern_values.array_job_id)
    }:  # squeue's default for array tasks
        pattern = f"{files.folder}/slurm-%A_%a.out"
    return posixpath.normpath(posixpath.join(files.folder, expand_pattern(pattern, files, pattern_values)))


def expand_pattern(pattern: str, files: JobFiles, pattern_values: PatternValues) -> str:
    """Expand the patterns in a path (man sbatch, filename pattern). A backslash anywhere disables all of them."""
    if "\\" in pattern:
        return pattern.replace("\\", "")
    task = 4294967294 if pattern_values.task is None else pattern_values.task  # Slurm's value for none (NO_VAL)
    substitutions = {
        "%": "%",
        "A": pattern_values.array_job_id,
        "a": str(task),
        "b": str(task % 10),
        "J": pattern_values.job_id,
        "j": pattern_values.job_id,
        "N": pattern_values.host.partition(".")[0],
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": files.user,
        "x": files.name,
    }

    def substitute(match: re.Match[str]) -> str:
        width, letter = match[1], match[2]
        if letter not in substitutions or letter in pattern_values.literal:
            return match[0]
        value = substitutions[letter]
        return value.zfill(min(int(width), 10)) if width and value.isdecimal() else value

    return _PATTERN.sub(substitute, pattern)


def choices(files: JobFiles, pattern_values: PatternValues) -> tuple[PatternValues, ...]:
    """The same path as different versions expand it: 22.05 does not know ``%b``."""
    per_task = "%b" in files.stdout or "%b" in files.stderr
    return (pattern_values, replace(pattern_values, literal="b")) if per_task else (pattern_values,)


def to_local_path(path: str, paths: PathMap) -> PurePosixPath | None:
    """Translate a path on the nodes to this machine; None when it is not on the storage partition."""
    try:
        return paths.to_local_path(path)
    except InvalidInputError:
        return None


# --------------------------------------------------------------------------------------------------
# Output of a job's own script and its slurmstepd: the only information about a job whose launcher
# never started, and the reason why an execution ended.

_MAX_LINE = 300
_TAIL_BYTES = 1 << 20

_SLURM_LINE = re.compile(r"srun: |slurmstepd\S*: error: \*\*\* ")
"""Prefixes of lines that only say that a job or step ended."""

_CAUSE = re.compile(r"^slurmstepd\S*: error: \*\*\* JOB .* DUE TO ([A-Z ]+)", re.MULTILINE)
"""slurmstepd's line in the job's output when it ends a job (src/slurmd/slurmstepd/req.c)."""

_TASK_EXIT = re.compile(r"^srun: error: (\S+): tasks? [0-9,-]+: (.+)$", re.MULTILINE)
"""srun's line about a task that failed (src/srun/libsrun/launch.c); a task is a launcher."""

_CAUSES = {"PREEMPTION": "PREEMPTED", "JOB REQUEUE": "REQUEUED", "NODE FAILURE": "NODE_FAIL", "TIME LIMIT": "TIMEOUT"}


def batch_log_name(scheduler_id: str) -> str:
    """The script's log file in the bundle."""
    return f"slurm-{scheduler_id}.out"


def read_tail(path: Path) -> str:
    """The end of a log as text; empty when it is unreadable. Blocking."""
    try:
        with os.fdopen(descent.open_file(path), "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def last_output(bundle: BundleReader, scheduler_id: str) -> str | None:
    """The last meaningful line, or None. Blocking."""
    lines = read_tail(bundle.folder / "logs" / batch_log_name(scheduler_id)).splitlines()
    output_lines = [line.strip() for line in lines if line.strip() and not _SLURM_LINE.match(line)]
    return output_lines[-1][:_MAX_LINE] if output_lines else None


def launcher_end_reason(bundle: BundleReader, scheduler_id: str) -> str | None:
    """How a launcher ended, from srun's line in the job's output, such as "the launcher on node3 ended with exit code 127"; None without one. Blocking."""
    text = read_tail(bundle.folder / "logs" / batch_log_name(scheduler_id))
    ends = [(match[1], match[2]) for match in _TASK_EXIT.finditer(text)]
    if not ends:
        return None
    node, detail = ends[0]
    exited = re.fullmatch(r"Exited with exit code ([0-9]+)", detail)
    reason = f"ended with exit code {exited[1]}" if exited else f"was ended: {detail.lower()}"
    return f"the launcher on {node} {reason}"


def find_verdict(bundle: BundleReader, scheduler_id: str, attempt: int) -> str | None:
    """Why Slurm ended an attempt, from its line in the job's output; None without one. Blocking.

    Args:
        bundle: The run.
        scheduler_id: The job, or the task of an array.
        attempt: The attempt. The line is between its launchers' banners and those of the next
            attempt.
    """
    text = read_tail(bundle.folder / "logs" / batch_log_name(scheduler_id))
    starts = [match.end() for match in _attempt_banner(attempt).finditer(text)]
    if not starts:
        return None
    following = _attempt_banner(attempt + 1).search(text, starts[-1])
    part = text[starts[-1] : following.start() if following else None]
    causes = [match[1].strip() for match in _CAUSE.finditer(part)]
    return next((_CAUSES[cause] for cause in reversed(causes) if cause in _CAUSES), None)


def _attempt_banner(attempt: int) -> re.Pattern[str]:
    """The launcher's line at the start of an attempt."""
    return re.compile(rf'^##hyperpod \{{.*"attempt": {attempt}[,}}].*$', re.MULTILINE)
