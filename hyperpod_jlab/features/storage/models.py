"""Data repository tasks of FSx for Lustre: work between a file system and the places in S3 that it is linked to, which AWS does. Pure rules.

Limits and words are from botocore's model of ``CreateDataRepositoryTask``. AWS' words are kept as they came, also ones that are newer than this package.
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
"""What a task does: copy to S3, take over what is new in S3 (names and metadata; bytes come when they are read), take bytes off the file system."""

KINDS: Final[dict[TaskVerb, str]] = {
    "export": "EXPORT_TO_REPOSITORY",
    "import": "IMPORT_METADATA_FROM_REPOSITORY",
    "release": "RELEASE_DATA_FROM_FILESYSTEM",
}
"""AWS' words for them."""

MAX_PATHS: Final = 100
"""Paths that a task takes."""

_MAX_PATH_LENGTH: Final = 4096
_FORBIDDEN_CHARACTERS: Final = frozenset("\0\x85\u2028\u2029\r\n")


IsoDatetime = Annotated[datetime, As(str, datetime.isoformat)]
"""On the wire ISO 8601 with its offset."""


@dataclass(frozen=True)
class RepositoryTask:
    """A task. What AWS does not say is None.

    Attributes:
        task_id: Its id.
        file_system: The file system's id.
        kind: What it does, a `TaskVerb`, or AWS' word where that is another.
        state: AWS' word: ``PENDING``, ``EXECUTING``, ``SUCCEEDED``, ``FAILED``, ``CANCELING`` or ``CANCELED``.
        paths: What it is done to, relative to the file system's root; places in S3 for an import. None at all: to everything.
        created: When it was asked for.
        started: When it began.
        ended: When it ended.
        total: Files that it has to do with.
        succeeded: Those that it has done.
        failed: Those that it could not do.
        problem: Why it failed.
        report: Where in S3 its report lies; None without one.
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
    """Our word for AWS' word of what a task does, or that word itself."""
    return next((verb for verb, kind in KINDS.items() if kind == aws_kind), aws_kind)


def path_problem(remote_path: str) -> str | None:
    """Why a task cannot be given a path on the file system; None when it can."""
    if not _FORBIDDEN_CHARACTERS.isdisjoint(remote_path):
        return "a task does not accept a name with a line break"
    if len(remote_path) > _MAX_PATH_LENGTH:
        return f"a task does not accept a path longer than {_MAX_PATH_LENGTH} characters"
    return None


def task_path(remote_path: str) -> str:
    """A path on the file system as a task wants it: relative to the file system's root, which itself is ``/``."""
    return remote_path.strip("/") or "/"


def linked_places(remote_path: str, links: Sequence[Association]) -> list[str]:
    """The places in S3 that belong to a path on the file system.

    Args:
        remote_path: The file or folder, from the file system's root.
        links: The file system's links.

    Returns:
        One for what lies in a linked folder; for a folder above linked ones the place of each of those; none where nothing is linked.
    """
    path = PurePosixPath(remote_path)
    matching = [link for link in links if path.is_relative_to(link.folder)]
    if matching:
        link = max(matching, key=lambda item: len(PurePosixPath(item.folder).parts))
        rest = path.relative_to(link.folder)
        repository = link.repository.rstrip("/")
        return [repository if rest == PurePosixPath() else f"{repository}/{rest}"]
    return [link.repository for link in links if PurePosixPath(link.folder).is_relative_to(path)]
