"""What a job's own script and its slurmstepd wrote: the only word of a job whose launcher never started, and why an execution was ended."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

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
