"""``GET storage``: the file systems and partitions of this machine."""

from __future__ import annotations

import asyncio
from typing import cast

from typing_extensions import TypedDict

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
