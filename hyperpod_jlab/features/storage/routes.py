"""``GET storage``: the file systems and partitions of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.spec import Path as PathText
from hyperpod_jlab.features.storage.files import RepositoryTaskService, Result, file_states, move
from hyperpod_jlab.features.storage.models import RepositoryTask
from hyperpod_jlab.features.storage.service import (
    Side,
    StorageOverview,
    link_partition,
    open_storage,
)
from hyperpod_jlab.run.submit_routes import under_root
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class StorageQuery(RequestModel):
    """What of storage is looked at."""

    aws: bool = True
    """Whether AWS is asked what it knows of file systems that come from there."""


async def show_storage(call: Call, query: StorageQuery) -> StorageOverview:
    """The file systems and partitions of this machine, who else can read them, and their paths on each side."""
    hyperpod = await call.hyperpod()
    service = open_storage(hyperpod, ask_aws=query.aws)
    return await hyperpod.snapshots.get(("storage", query.aws), service.overview)


# --------------------------------------------------------------------------------------------------
# Requests on files of the file browser: the partition as a link, a file's path on each side, where its bytes are and moving them.

_MAX_FILES = 500

FilePath = Annotated[PathText, Field(min_length=1, max_length=4096)]
Files = Annotated[list[FilePath], Field(min_length=1, max_length=_MAX_FILES)]

StorageAction = TypeAliasType("StorageAction", Literal["hydrate", "release", "export"])
"""What can be done to bytes of a file, under a name in the schemas."""

StorageWay = TypeAliasType("StorageWay", Literal["lfs", "aws"])
"""By Lustre's program on the server's machine, or by a task of AWS."""


class LinkBody(RequestModel):
    """The link to make."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """What it is called, such as `hyperpod-partition`."""


@dataclass(frozen=True)
class StorageLinkMade:
    """The partition in the folder that the file browser shows: `path` is the link below the server's root; `made` is false when it was there already."""

    path: str
    link: str
    partition: str
    made: bool


class PathsQuery(RequestModel):
    """A file or folder of the file browser."""

    path: FilePath
    """Its path below the server's root."""


@dataclass(frozen=True)
class StoragePaths:
    """A path on each side: `here` on the server's machine (`studio`: that is a space of Studio), and as each cluster sees it."""

    here: str
    studio: bool
    clusters: tuple[Side, ...]


class FilesBody(RequestModel):
    """Files of the file browser."""

    paths: Files
    """Their paths below the server's root."""


class FilesActionBody(FilesBody):
    """What to do to files."""

    action: StorageAction
    """`hydrate` brings released ones back, `release` takes those off that are in S3, `export` copies them there."""
    by: StorageWay | None = None
    """How; default: by Lustre's program, and by AWS what that may not do, or where it is missing."""


@dataclass(frozen=True)
class StoredFile:
    """What is known of one file, or became of a request for it.

    `path` is as it was given. `done` is `seen`, `asked` (it goes on after the answer; by the task of AWS that `task` names, if any), `nothing` (it was so
    already) or `refused`, with the `reason`. `state` is null where it cannot be had; `progress` is how far what is under way is, in Lustre's words.
    """

    path: str
    done: str
    state: str | None
    progress: str | None
    reason: str | None
    hint: str | None
    task: str | None


@dataclass(frozen=True)
class StoredFiles:
    """One entry for each file, in their order."""

    files: list[StoredFile]


@dataclass(frozen=True)
class RepositoryTasks:
    """Tasks, those asked for last first."""

    tasks: list[RepositoryTask]


@dataclass(frozen=True)
class TaskState:
    """A task's state in AWS' word, once it was asked to be cancelled."""

    task: str
    state: str


async def link_storage(call: Call, body: LinkBody) -> StorageLinkMade:
    """Make a link to the partition in the server's root, so that the file browser shows it. One that is there already stays."""
    hyperpod = await call.hyperpod()
    linked = await link_partition(
        open_storage(hyperpod), hyperpod.partition, _root(call), body.name
    )
    return StorageLinkMade(
        path=linked.path.name,
        link=str(linked.path),
        partition=str(linked.partition),
        made=linked.made,
    )


async def show_paths(call: Call, query: PathsQuery) -> StoragePaths:
    """A file's or folder's path on each side."""
    hyperpod = await call.hyperpod()
    (path,) = _absolute(call, [query.path], "path").values()
    view = await open_storage(hyperpod, ask_aws=False).view_path(path)
    return StoragePaths(str(path), view.studio, view.clusters)


async def show_states(call: Call, body: FilesBody) -> StoredFiles:
    """Where the bytes of files are, on a file system that is linked to S3. Nothing is done to them."""
    paths = _absolute(call, body.paths, "paths")
    return _to_stored_files(paths, await file_states(list(paths.values())))


async def move_files(call: Call, body: FilesActionBody) -> StoredFiles:
    """Ask for bytes of files to be moved. One that is refused stops no other."""
    paths = _absolute(call, body.paths, "paths")
    tasks = RepositoryTaskService(Aws())
    result = await move(body.action, list(paths.values()), tasks, body.by)
    return _to_stored_files(paths, result.results)


async def list_tasks(call: Call) -> RepositoryTasks:  # noqa: ARG001 - every endpoint is given its call
    """Tasks of the file systems that are mounted here, or of all in the region where the mounts do not name theirs."""
    return RepositoryTasks(list(await RepositoryTaskService(Aws()).list_known_tasks()))


async def cancel_task(call: Call, task: str) -> TaskState:  # noqa: ARG001 - as above
    """Cancel a task. What it has done stays done."""
    state = await RepositoryTaskService(Aws()).cancel(task)
    return TaskState(task, state)


def _root(call: Call) -> Path:
    return Path(os.path.abspath(call.root))  # noqa: PTH100 - resolve() would follow links


def _absolute(call: Call, paths: list[Any], field: str) -> dict[str, Path]:
    """Paths on this machine by paths of the file browser. As there, links that lie below the root may lead anywhere.

    Raises:
        InvalidInputError: One leads out of the root.
    """
    root = _root(call)
    return {str(path): under_root(root, root / str(path).strip("/"), field) for path in paths}


def _to_stored_files(paths: dict[str, Path], results: list[Result]) -> StoredFiles:
    by_path = {result.path: result for result in results}
    return StoredFiles([_file(name, by_path[str(path)]) for name, path in paths.items()])


def _file(name: str, result: Result) -> StoredFile:
    return StoredFile(
        path=name,
        done=result.done,
        state=result.state,
        progress=result.file.progress if result.file else None,
        reason=result.reason,
        hint=result.hint,
        task=result.task,
    )
