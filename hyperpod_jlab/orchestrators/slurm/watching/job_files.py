"""Where a job writes: the paths of its stdout and stderr, with the patterns in them filled in, and as this machine sees them."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.storage.translation import PathMap

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
class Place:
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


def output_paths(files: JobFiles, place: Place) -> tuple[str | None, str | None]:
    """Absolute paths on the nodes of stdout and, when it goes elsewhere, stderr; None for none."""
    stdout, stderr = (_path(pattern, files, place) for pattern in (files.stdout, files.stderr))
    return stdout, None if stderr == stdout else stderr


def _path(pattern: str, files: JobFiles, place: Place) -> str | None:
    if pattern in _NOWHERE:
        return None
    if place.task is not None and pattern in {
        f"{files.folder}/slurm-{number}.out" for number in (place.job_id, place.array_job_id)
    }:  # what squeue says of an array's tasks where nothing was chosen
        pattern = f"{files.folder}/slurm-%A_%a.out"
    return posixpath.normpath(posixpath.join(files.folder, fill_in(pattern, files, place)))


def fill_in(pattern: str, files: JobFiles, place: Place) -> str:
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


def choices(files: JobFiles, place: Place) -> tuple[Place, ...]:
    """The same place as different versions understand it: ``%b`` is no pattern in 22.05."""
    several = "%b" in files.stdout or "%b" in files.stderr
    return (place, replace(place, literal="b")) if several else (place,)


def seen_here(path: str, paths: PathMap) -> PurePosixPath | None:
    """A file of the nodes as this machine sees it; None when it does not lie on the storage partition."""
    try:
        return paths.to_here(path)
    except InvalidInputError:
        return None
