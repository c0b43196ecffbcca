"""Data repository tasks of FSx for Lustre: transfers by AWS between a file system and the S3 prefixes that it is linked to. Pure rules.

Limits and values are from botocore's model of ``CreateDataRepositoryTask``. AWS' values are kept unchanged, including values newer than this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Final, Literal

from hyperpod_jlab.core.file_system import Association
from hyperpod_jlab.core.wire import As

TaskVerb = Literal["export", "import", "release"]
"""Kinds of tasks: copy to S3, import new S3 objects (names and metadata; bytes come when they are read), release bytes from the file system."""

KINDS: Final[dict[TaskVerb, str]] = {
    "export": "EXPORT_TO_REPOSITORY",
    "import": "IMPORT_METADATA_FROM_REPOSITORY",
    "release": "RELEASE_DATA_FROM_FILESYSTEM",
}
"""AWS' names of them."""

MAX_PATHS: Final = 100
"""Maximum paths per task."""

_MAX_PATH_LENGTH: Final = 4096
_FORBIDDEN_CHARACTERS: Final = frozenset("\0\x85\u2028\u2029\r\n")


IsoDatetime = Annotated[datetime, As(str, datetime.isoformat)]
"""Serialized as ISO 8601 with its offset."""


@dataclass(frozen=True)
class RepositoryTask:
    """A task. Unknown values are None.

    Attributes:
        task_id: Its id.
        file_system: The file system's id.
        kind: A `TaskVerb`, or AWS' own name for other kinds.
        state: AWS' state: ``PENDING``, ``EXECUTING``, ``SUCCEEDED``, ``FAILED``, ``CANCELING`` or ``CANCELED``.
        paths: Its paths, relative to the file system's root; S3 URLs for an import. Empty: everything.
        created: When it was requested.
        started: When it started.
        ended: When it ended.
        total: Number of files to process.
        succeeded: Number of processed files.
        failed: Number of failed files.
        problem: Why it failed.
        report: S3 URL of its report; None without one.
    """

    task_id: str
    file_system: str | None
    kind: str
    state: str
    paths: tuple[str, ...] = ()
    created: IsoDatetime | None = None
    started: IsoDatetime | None = None
    ended: IsoDatetime | None = None
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    problem: str | None = None
    report: str | None = None


def kind_of(aws_kind: str) -> str:
    """Our name for AWS' kind of task, or AWS' own name."""
    return next((verb for verb, kind in KINDS.items() if kind == aws_kind), aws_kind)


def path_problem(remote_path: str) -> str | None:
    """Why a task cannot process a path on the file system; None if it can."""
    if not _FORBIDDEN_CHARACTERS.isdisjoint(remote_path):
        return "a task does not accept a name with a line break"
    if len(remote_path) > _MAX_PATH_LENGTH:
        return f"a task does not accept a path longer than {_MAX_PATH_LENGTH} characters"
    return None


def task_path(remote_path: str) -> str:
    """A path on the file system in the form of a task: relative to the file system's root, which itself is ``/``."""
    return remote_path.strip("/") or "/"


def linked_places(remote_path: str, links: Sequence[Association]) -> list[str]:
    """The S3 prefixes of a path on the file system.

    Args:
        remote_path: The file or folder, from the file system's root.
        links: The file system's links.

    Returns:
        One for a path in a linked folder; for a folder above linked ones, the prefix of each of those; empty if nothing is linked.
    """
    path = PurePosixPath(remote_path)
    matching = [link for link in links if path.is_relative_to(link.folder)]
    if matching:
        link = max(matching, key=lambda item: len(PurePosixPath(item.folder).parts))
        rest = path.relative_to(link.folder)
        repository = link.repository.rstrip("/")
        return [repository if rest == PurePosixPath() else f"{repository}/{rest}"]
    return [link.repository for link in links if PurePosixPath(link.folder).is_relative_to(path)]
