"""``GET storage``: the file systems and partitions of this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from hyperpod_jlab.core.spec import Path as PathText
from hyperpod_jlab.features.storage.files import Result, file_states, move
from hyperpod_jlab.features.storage.service import Side, StorageOverview, link_partition, open_storage
from hyperpod_jlab.run.submit_routes import under_root
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class StorageQuery(RequestModel):
    """Options of the storage overview."""

    aws: bool = True
    """Whether to query AWS about its file systems."""


async def show_storage(call: Call, query: StorageQuery) -> StorageOverview:
    """Get the file systems and partitions of this machine, who else can read them, and their paths on each side."""
    hyperpod = await call.hyperpod()
    service = open_storage(hyperpod, ask_aws=query.aws)
    return await hyperpod.snapshots.get(("storage", query.aws), service.overview)


# --------------------------------------------------------------------------------------------------
# Requests about files of the file browser: a link to the partition, a file's path on each side,
# where its bytes are, and transfers.

_MAX_FILES = 500

FilePath = Annotated[PathText, Field(min_length=1, max_length=4096)]
Files = Annotated[list[FilePath], Field(min_length=1, max_length=_MAX_FILES)]

StorageAction = TypeAliasType("StorageAction", Literal["hydrate", "release"])
"""Transfers, under a name of their own in the schemas."""


class LinkBody(RequestModel):
    """The link to make."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    """Its name, such as `hyperpod-partition`."""


@dataclass(frozen=True)
class StorageLinkMade:
    """A link to the partition in the file browser's root: `path` is its path below the server's root; `made` is false if it already existed."""

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
    """A path on each side: `here` on the server's machine (`studio`: a Studio space), and as each cluster sees it."""

    here: str
    studio: bool
    clusters: tuple[Side, ...]


class FilesBody(RequestModel):
    """Files of the file browser."""

    paths: Files
    """Their paths below the server's root."""


class FilesActionBody(FilesBody):
    """A transfer and its files."""

    action: StorageAction
    """`hydrate` restores released files, `release` frees the bytes of files that are in S3."""


@dataclass(frozen=True)
class StoredFile:
    """The state of a file, or the result of a request for it.

    `path` is the given path. `done` is `seen`, `asked` (continues after the response),
    `nothing` (nothing to do) or `refused`, with the `reason`. `state` is null if it cannot be read; `progress`
    is Lustre's text on the transfer in progress.
    """

    path: str
    done: str
    state: str | None
    progress: str | None
    reason: str | None
    hint: str | None


@dataclass(frozen=True)
class StoredFiles:
    """One entry per file, in order."""

    files: list[StoredFile]


async def link_storage(call: Call, body: LinkBody) -> StorageLinkMade:
    """Create a link to the partition in the server's root, so that the file browser shows it. An existing one stays."""
    hyperpod = await call.hyperpod()
    linked = await link_partition(open_storage(hyperpod), hyperpod.partition, _root(call), body.name)
    return StorageLinkMade(
        path=linked.path.name, link=str(linked.path), partition=str(linked.partition), made=linked.made
    )


async def show_paths(call: Call, query: PathsQuery) -> StoragePaths:
    """Get a file's or folder's path on each side."""
    hyperpod = await call.hyperpod()
    (path,) = _absolute(call, [query.path], "path").values()
    view = await open_storage(hyperpod, ask_aws=False).view_path(path)
    return StoragePaths(str(path), view.studio, view.clusters)


async def show_states(call: Call, body: FilesBody) -> StoredFiles:
    """Get where the bytes of files are, on a file system that is linked to S3. Changes nothing."""
    paths = _absolute(call, body.paths, "paths")
    return _to_stored_files(paths, await file_states(list(paths.values())))


async def move_files(call: Call, body: FilesActionBody) -> StoredFiles:
    """Request transfers of files' bytes. A failure for one file does not stop the others."""
    paths = _absolute(call, body.paths, "paths")
    return _to_stored_files(paths, await move(body.action, list(paths.values())))


def _root(call: Call) -> Path:
    return Path(os.path.abspath(call.root))  # noqa: PTH100 - resolve() would follow links


def _absolute(call: Call, paths: list[Any], field: str) -> dict[str, Path]:
    """Paths on this machine from paths of the file browser. As there, links below the root may lead anywhere.

    Raises:
        InvalidInputError: A path leads out of the root.
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
    )
