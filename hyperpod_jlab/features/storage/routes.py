"""``GET storage``: the file systems and partitions of this machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from hyperpod_jlab.core.spec import Path as PathText
from hyperpod_jlab.features.storage.files import Result, file_states, move
from hyperpod_jlab.features.storage.service import link_partition
from hyperpod_jlab.runs.submit_routes import under_root
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class StorageQuery(RequestModel):
    """What of storage is looked at."""

    aws: bool = True
    """Whether AWS is asked what it knows of file systems that come from there."""


class StorageIsolation(TypedDict):
    """What keeps others out of a folder: `none`, `mount_path_only`, `posix` or `real_identity`, why, and what others may do there by its rights."""

    level: str
    words: str
    evidence: list[str]
    readers: list[str]


class StorageLink(TypedDict):
    """A link between a folder of a file system and a place in S3; `state` is AWS' word."""

    folder: str
    repository: str
    state: str | None
    imports: list[str]
    exports: list[str]
    problem: str | None


class AwsFileSystem(TypedDict):
    """A file system of FSx for Lustre as AWS knows it. The capacity is in bytes; `associations` is null where they could not be had."""

    name: str
    state: str
    mount_name: str | None
    dns_name: str | None
    deployment: str | None
    storage_type: str | None
    capacity: int | None
    throughput: str | None
    version: str | None
    maintenance: str | None
    root_squash: str | None
    problem: str | None
    associations: list[StorageLink] | None


class StoragePlace(TypedDict):
    """A file system that is mounted here, or a folder of one. Sizes are in bytes; what is not known is null.

    `mounted_folder` is the folder of a Lustre file system that is mounted (`/`: the whole), `path_there` the place's own path on it. A private
    partition (`private_of`) is not `offered` in a space that several people act as.
    """

    path: str
    exists: bool
    mount: str
    kind: str | None
    source: str | None
    file_system: str | None
    mount_name: str | None
    mounted_folder: str | None
    path_there: str | None
    network: bool
    read_only: bool
    writable: bool | None
    open_to_others: bool | None
    runs_go_here: bool
    private_of: str | None
    offered: bool
    problem: str | None
    total: int | None
    free: int | None
    files_free: int | None
    isolation: StorageIsolation | None
    aws: AwsFileSystem | None


class StoragePartition(StoragePlace):
    """The partition that runs go to. `shared` says whether they are for all its users, by the configuration; `folder` is ours on it, `index` the file with the index of runs."""

    chosen_by: str
    folder: str
    shared: bool
    index: str | None


class StorageSide(TypedDict):
    """The partition as this machine and one cluster see it: `there` is null when that has none, `reason` says why. `side` is `here`, `Slurm node` or `pod`."""

    cluster: str
    orchestrator: str
    side: str
    here: str | None
    there: str | None
    reason: str | None


class StorageParent(TypedDict):
    """The partition's root, or a folder above it. `problem` is `foreign`, `open` or `group` where another user than root and this one can exchange what lies in it, else null; `mode` is octal."""

    path: str
    uid: int
    mode: str
    problem: str | None


class StorageSeparation(TypedDict):
    """Whether other users are kept from exchanging and writing this user's runs (`holds`), else why not and what to do about it. `old_runs` of this user's lie in the old layout."""

    parents: list[StorageParent]
    holds: bool
    reason: str | None
    fix: str | None
    old_runs: int


class StorageOverview(TypedDict):
    """All storage of this machine. `separation` is null when it cannot be looked at. `notes` say what could not be had, and what is to be known."""

    partition: StoragePartition
    file_systems: list[StoragePlace]
    clusters: list[StorageSide]
    studio: bool
    shared_space: bool
    separation: StorageSeparation | None
    notes: list[str]


async def show_storage(call: Call, query: StorageQuery) -> StorageOverview:
    """The file systems and partitions of this machine, who else can read them, and their paths on each side."""
    hyperpod = await call.hyperpod()
    service = hyperpod.storage(ask_aws=query.aws)
    seen = await call.process.snapshots.get(("storage", query.aws), service.overview)
    return cast("StorageOverview", await asyncio.to_thread(seen.to_dict))


# --------------------------------------------------------------------------------------------------
# Requests on files of the file browser: the partition as a link, a file's path on each side, where its bytes are and moving them.

_MOST = 500

FilePath = Annotated[PathText, Field(min_length=1, max_length=4096)]
Files = Annotated[list[FilePath], Field(min_length=1, max_length=_MOST)]

StorageAction = TypeAliasType("StorageAction", Literal["hydrate", "release", "export"])
"""What can be done to bytes of a file, under a name in the schemas."""

StorageWay = TypeAliasType("StorageWay", Literal["lfs", "aws"])
"""By Lustre's program on the server's machine, or by a task of AWS."""


class LinkBody(RequestModel):
    """The link to make."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """What it is called, such as `hyperpod-partition`."""


class StorageLinkMade(TypedDict):
    """The partition in the folder that the file browser shows: `path` is the link below the server's root; `made` is false when it was there already."""

    path: str
    link: str
    partition: str
    made: bool


class PathsQuery(RequestModel):
    """A file or folder of the file browser."""

    path: FilePath
    """Its path below the server's root."""


class StoragePaths(TypedDict):
    """A path on each side: `here` on the server's machine (`studio`: that is a space of Studio), and as each cluster sees it."""

    here: str
    studio: bool
    clusters: list[StorageSide]


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


class StoredFile(TypedDict):
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


class StoredFiles(TypedDict):
    """One entry for each file, in their order."""

    files: list[StoredFile]


class RepositoryTask(TypedDict):
    """A task by which AWS exports, imports or releases files; `state` is AWS' word. Counts are null before it begins, times ISO 8601."""

    task_id: str
    file_system: str | None
    kind: str
    state: str
    paths: list[str]
    created: str | None
    started: str | None
    ended: str | None
    total: int | None
    succeeded: int | None
    failed: int | None
    problem: str | None
    report: str | None


class RepositoryTasks(TypedDict):
    """Tasks, those asked for last first."""

    tasks: list[RepositoryTask]


class TaskState(TypedDict):
    """A task's state in AWS' word, once it was asked to be cancelled."""

    task: str
    state: str


async def link_storage(call: Call, body: LinkBody) -> StorageLinkMade:
    """Make a link to the partition in the server's root, so that the file browser shows it. One that is there already stays."""
    hyperpod = await call.hyperpod()
    linked = await link_partition(hyperpod.storage(), hyperpod.partition, _root(call), body.name)
    return {
        "path": linked.path.name,
        "link": str(linked.path),
        "partition": str(linked.partition),
        "made": linked.made,
    }


async def show_paths(call: Call, query: PathsQuery) -> StoragePaths:
    """A file's or folder's path on each side."""
    hyperpod = await call.hyperpod()
    (path,) = _absolute(call, [query.path], "path").values()
    view = await hyperpod.storage(ask_aws=False).of_path(path)
    told = view.to_dict()
    return {"here": str(path), "studio": view.in_studio, "clusters": told["clusters"]}


async def show_states(call: Call, body: FilesBody) -> StoredFiles:
    """Where the bytes of files are, on a file system that is linked to S3. Nothing is done to them."""
    paths = _absolute(call, body.paths, "paths")
    return _told(paths, await file_states(list(paths.values())))


async def move_files(call: Call, body: FilesActionBody) -> StoredFiles:
    """Ask for bytes of files to be moved. One that is refused stops no other."""
    hyperpod = await call.hyperpod()
    paths = _absolute(call, body.paths, "paths")
    tasks = hyperpod.repository_tasks()
    moved = await move(body.action, list(paths.values()), tasks, body.by)
    return _told(paths, moved.results)


async def list_tasks(call: Call) -> RepositoryTasks:
    """Tasks of the file systems that are mounted here, or of all in the region where the mounts do not name theirs."""
    found = await (await call.hyperpod()).repository_tasks().known()
    plain = await asyncio.to_thread(lambda: [task.to_dict() for task in found])
    return {"tasks": [cast("RepositoryTask", task) for task in plain]}


async def cancel_task(call: Call, task: str) -> TaskState:
    """Cancel a task. What it has done stays done."""
    state = await (await call.hyperpod()).repository_tasks().cancel(task)
    return {"task": task, "state": state}


def _root(call: Call) -> Path:
    return Path(os.path.abspath(call.root))  # noqa: PTH100 - resolve() would follow links


def _absolute(call: Call, paths: list[Any], field: str) -> dict[str, Path]:
    """Paths on this machine by paths of the file browser. As there, links that lie below the root may lead anywhere.

    Raises:
        InvalidInputError: One leads out of the root.
    """
    root = _root(call)
    return {str(path): under_root(root, root / str(path).strip("/"), field) for path in paths}


def _told(paths: dict[str, Path], results: list[Result]) -> StoredFiles:
    by_path = {result.path: result for result in results}
    return {"files": [_file(name, by_path[str(path)]) for name, path in paths.items()]}


def _file(name: str, result: Result) -> StoredFile:
    return {
        "path": name,
        "done": result.done,
        "state": result.file.state if result.file else None,
        "progress": result.file.progress if result.file else None,
        "reason": result.reason,
        "hint": result.hint,
        "task": result.task,
    }
