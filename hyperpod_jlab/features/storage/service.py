"""File systems and partitions on this machine: the partition for runs, disk usage, who else can read them, and their paths on each side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.file_systems import LustreMount, find_file_system, list_associations, lustre_mounts
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import Studio, find_studio
from hyperpod_jlab.clusters.aws import mounted_here
from hyperpod_jlab.clusters.configuration import choose_partition
from hyperpod_jlab.clusters.identity import (
    IdentityQueries,
    Separation,
    UserIdentity,
    find_profile,
    find_user_identity,
    separation_of,
)
from hyperpod_jlab.clusters.mounts import MountInfo, inspect, inspect_mount, mount_points, try_inspect
from hyperpod_jlab.core.config import ClusterConfig, Settings
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, StorageError
from hyperpod_jlab.core.file_system import FileSystem
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.engines.registry import Engines, find_scheduler
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.home_link import NAME, make_link
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.timeouts import run_with_timeout

# --------------------------------------------------------------------------------------------------
# Whether configured clusters mount the file system of the partition, according to AWS' descriptions
# of their HyperPod clusters.


async def other_file_systems(
    clusters: Mapping[str, ClusterConfig], mounts: Sequence[LustreMount], point: str, queries: IdentityQueries
) -> list[str]:
    """A sentence for each cluster whose instances mount other file systems than the partition's.

    Args:
        clusters: The configured clusters by name.
        mounts: The mounted Lustre file systems.
        point: The mount point of the partition's file system.
        queries: The requests to AWS; failures leave notes there.
    """
    sentences: list[str] = []
    for name, config in clusters.items():
        hyperpod = config.hyperpod_cluster
        if hyperpod is None:
            continue
        if queries.aws is None:
            break
        placeholder = HyperpodCluster(hyperpod, "", "", "")
        description = await queries.about(
            "sagemaker", f"the HyperPod cluster {hyperpod}", describe_cluster(queries.aws, placeholder)
        )
        if isinstance(description, HyperpodCluster):
            sentences += _file_system_sentences(name, description, mounted_here(description, mounts), point)
    return sentences


def _file_system_sentences(
    name: str, cluster: HyperpodCluster, mounted_paths: tuple[str, ...] | None, point: str
) -> list[str]:
    if (
        mounted_paths is None or point in mounted_paths
    ):  # lifecycle scripts may mount file systems that AWS does not report
        return []
    systems = ", ".join(f"{storage.dns_name} ({storage.mount_name})" for storage in cluster.storage)
    if mounted_paths:
        return [
            (
                f"runs on {name} may not find files from here: its instances mount {systems}, which is mounted at {mounted_paths[0]} here: set path "
                "under [storage] to a folder there"
            )
        ]
    return [
        f"runs on {name} may not find files from here: its instances mount {systems}, which is not mounted on this machine"
    ]


@dataclass(frozen=True)
class Side:
    """A path as one cluster sees it.

    Attributes:
        cluster: The cluster.
        orchestrator: Its orchestrator.
        side: Where that is: ``here``, ``Slurm node`` or ``pod``.
        here: The path on this machine; None if the cluster cannot see it.
        there: The path on that side; None if there is none.
        reason: Why there is none.
    """

    cluster: str
    orchestrator: str
    side: str
    here: str | None
    there: str | None
    reason: str | None = None


@dataclass(frozen=True)
class StoragePartition(MountInfo):
    """The storage partition for runs.

    Attributes:
        chosen_by: How it was chosen.
        folder: Our folder on it.
        shared: Whether runs on it are for all users of the partition, by the configuration.
        index: The index file of runs; null: in memory only.
    """

    chosen_by: str = ""
    folder: str = ""
    shared: bool = False
    index: str | None = None


@dataclass(frozen=True)
class StorageOverview:
    """Overview of the storage on this machine.

    Attributes:
        partition: The storage partition for runs.
        file_systems: The file system of the partition, and all network file systems.
        clusters: The partition as each cluster sees it.
        studio: Whether this is a Studio space.
        shared_space: Whether this is a shared space.
        separation: Whether other users can replace or write this user's files on the partition; null if it cannot be checked.
        notes: What is missing, and other notes.
    """

    partition: StoragePartition
    file_systems: tuple[MountInfo, ...]
    clusters: tuple[Side, ...]
    studio: bool
    shared_space: bool
    separation: Separation | None
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PathView(MountInfo):
    """One path: the data of its file system, and the path on each side."""

    clusters: tuple[Side, ...]
    studio: bool
    notes: tuple[str, ...]


class Storage:
    """The storage of this machine.

    Args:
        settings: The configuration.
        partition: The storage partition for runs.
        engines: The engines of the configured clusters.
        aws: The AWS client; None: no requests. Queried only for AWS' file systems, and in Studio.
    """

    def __init__(self, settings: Settings, partition: Partition, engines: Engines, aws: Aws | None) -> None:
        self._settings = settings
        self._partition = partition
        self._engines = engines
        self._aws = aws

    async def overview(self) -> StorageOverview:
        """The overview. What cannot be read, locally or from AWS, becomes a note instead of an error."""
        studio, mounts, queries = self._begin()
        user = await find_user_identity(studio, queries)
        root = self._partition.root
        choice = await asyncio.to_thread(choose_partition, self._settings)
        partition = await try_inspect(root, user)
        points = dict.fromkeys([partition.mount, *mount_points()])
        infos = await asyncio.gather(*(inspect_mount(point, user) for point in points))
        file_systems = [replace(info, runs_go_here=info.path == partition.mount) for info in infos]
        file_systems = [await self._with_aws(info, mounts, studio, user, queries) for info in file_systems]
        partition_info = next(info for info in file_systems if info.runs_go_here)
        other_systems = await other_file_systems(self._settings.clusters, mounts, partition_info.mount, queries)
        separation = await self._separation(partition, user)
        partition = replace(
            partition,
            runs_go_here=True,
            private_of=partition_info.private_of,
            offered=partition_info.offered,
            aws=partition_info.aws,
            file_system=partition_info.file_system,
        )
        return StorageOverview(
            partition=StoragePartition(
                **vars(partition),
                chosen_by=choice.chosen_by,
                folder=str(self._partition.folder),
                shared=self._partition.shared,
                index=_text(default_path(self._partition)),
            ),
            file_systems=tuple(file_systems),
            clusters=self._sides(root),
            studio=studio is not None,
            shared_space=user.in_shared_space,
            separation=separation,
            notes=(
                *(studio.problems if studio is not None else ()),
                *choice.notes,
                *self._warnings(partition, user),
                *other_systems,
                *dict.fromkeys(queries.notes),
            ),
        )

    async def _separation(self, info: MountInfo, user: UserIdentity) -> Separation | None:
        identity = user.on_network if info.network else user.on_disk
        partition = self._partition

        def check() -> Separation:
            with storage_errors(partition.root):
                return separation_of(partition, identity)

        try:
            return await run_with_timeout(partition.root, check)
        except StorageError:  # the path's own `problem` reports it
            return None

    async def view_path(self, path: Path) -> PathView:
        """The details of one path.

        Args:
            path: The path, absolute.

        Raises:
            NotFoundError: It does not exist.
            StorageError: It cannot be read.
        """
        studio, mounts, queries = self._begin()
        user = await find_user_identity(studio, queries)
        info = await inspect(path, user)
        if not info.exists:
            raise NotFoundError(f"{path} not found", hint="give an existing file or folder", detail={"path": str(path)})
        info = await self._with_aws(info, mounts, studio, user, queries)
        partition_path = await run_with_timeout(path, lambda: self._on_partition(path))
        runs = partition_path.is_relative_to(self._partition.root)
        notes = tuple(dict.fromkeys(queries.notes))
        info = replace(info, runs_go_here=runs)
        return PathView(**vars(info), clusters=self._sides(partition_path), studio=studio is not None, notes=notes)

    def _on_partition(self, path: Path) -> Path:
        """A path on the partition, with links resolved; any other path unchanged."""
        root = self._partition.root
        resolved, resolved_root = path.resolve(), root.resolve()
        if path.is_relative_to(root) or not resolved.is_relative_to(resolved_root):
            return path
        return root / resolved.relative_to(resolved_root)

    def _begin(self) -> tuple[Studio | None, list[LustreMount], IdentityQueries]:
        studio, mounts = find_studio(), lustre_mounts()
        return studio, mounts, IdentityQueries(self._aws if studio is not None or mounts else None)

    async def _with_aws(
        self,
        info: MountInfo,
        mounts: list[LustreMount],
        studio: Studio | None,
        user: UserIdentity,
        queries: IdentityQueries,
    ) -> MountInfo:
        """The path with AWS' data on its file system, and the owner of a private partition."""
        mount = next((item for item in reversed(mounts) if str(item.point) == info.mount), None)
        if mount is None:
            return info
        owner = await _private_owner(mount, studio, user, queries)
        is_closed = owner is not None and user.in_shared_space
        problem = info.problem
        if is_closed and problem is None:
            problem = f"not offered: it is the private partition of {owner}, but this space is shared"
        file_system = await _find_file_system(mount, queries)
        return replace(
            info,
            private_of=owner,
            offered=not is_closed,
            aws=file_system,
            file_system=info.file_system or (file_system.name if file_system else None),
            problem=problem,
        )

    def _sides(self, path: Path) -> tuple[Side, ...]:
        return tuple(self._side(name, path) for name in self._settings.clusters)

    def _side(self, name: str, path: Path) -> Side:
        kind = self._settings.clusters[name].orchestrator
        scheduler = find_scheduler(kind)
        side = scheduler.side if scheduler is not None else "node"
        try:
            paths = self._engines.get(name).paths
            if not paths.shared:
                reason = "no storage claim is configured for its pods"
                return Side(name, kind, side, str(path), None, reason)
            cluster_path = paths.to_cluster_path(str(path))
        except HyperpodError as error:
            return Side(name, kind, side, str(path), None, error.message)
        return Side(name, kind, side, str(path), str(cluster_path))

    def _warnings(self, partition: MountInfo, user: UserIdentity) -> list[str]:
        """Warnings about the partition for runs."""
        warnings = []
        if not partition.offered:
            warnings.append(
                f"runs are stored in the private partition of {partition.private_of}, which all users of this shared space can use: set "
                "path under [storage] in the configuration to another folder"
            )
        elif user.in_shared_space:
            warnings.append("this space is shared: all its users see and control its runs")
        if partition.read_only:
            warnings.append(f"runs cannot be stored in {partition.path}: it is read-only here")
        for name, config in self._settings.clusters.items():
            if config.run_user not in {None, current_user()}:
                warnings.append(
                    f"runs on {name} run as {config.run_user}: all users whose jobs run as {config.run_user} there can read them"
                )
            if config.volume_claim is not None:
                warnings.append(
                    f"pods of {name} mount the claim {config.volume_claim}: users who can create pods in its namespace can read that "
                    "whole volume as any user"
                )
        return warnings


async def _private_owner(
    mount: LustreMount, studio: Studio | None, user: UserIdentity, queries: IdentityQueries
) -> str | None:
    """The user profile whose private partition a mounted folder is: the folder has the profile's name."""
    name = PurePosixPath(mount.folder).name
    if not name or studio is None:
        return None
    if name in {studio.user_profile, user.profile}:
        return name
    if not user.in_shared_space:  # it only matters there
        return None
    profile = await find_profile(studio, name, queries)
    return profile.name if profile else None


async def _find_file_system(mount: LustreMount, queries: IdentityQueries) -> FileSystem | None:
    if queries.aws is None:
        return None
    name = mount.file_system or mount.mount_name
    file_system = await queries.about("fsx", f"the file system {name}", find_file_system(queries.aws, mount))
    if not isinstance(file_system, FileSystem):
        if file_system is None:
            queries.notes.append(f"AWS does not have exactly one file system with the mount name {name}")
        elif file_system.code == "not_found":
            queries.notes.append(f"AWS has no file system {name} in this region")
        return None
    if file_system.associations is not None or queries.aws is None:
        return file_system
    links = await queries.about(
        "fsx", f"links of {file_system.name} to S3", list_associations(queries.aws, file_system.name)
    )
    return replace(file_system, associations=links) if isinstance(links, tuple) else file_system


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


# --------------------------------------------------------------------------------------------------
# A link to the partition in a file browser's folder, created only if it gives nobody access to
# another user's files.


@dataclass(frozen=True)
class PartitionLink:
    """The partition in a file browser's folder: as a link, or as a folder of its own.

    Attributes:
        path: The path to open.
        partition: The partition's root.
        made: Whether the link is new.
    """

    path: Path
    partition: Path
    made: bool


async def link_partition(storage: Storage, partition: Partition, folder: Path, name: str = NAME) -> PartitionLink:
    """Create a link to the partition.

    Args:
        storage: Whether the partition is offered here.
        partition: The partition.
        folder: The file browser's folder.
        name: The link's name.

    Raises:
        DeniedError: It is the private partition of a user profile, and this space is shared.
        InvalidInputError: The name is invalid, or the folder is the partition itself.
        ConflictError: Something else has the name.
        StorageError: The partition does not exist, or the folder is not writable.
    """
    partition_info = (await storage.overview()).partition
    if not partition_info.offered:
        raise DeniedError(
            f"{partition_info.path} is the private partition of {partition_info.private_of}; the link would give all users of this shared space access to it",
            code="private_partition",
            hint="set path under [storage] in the configuration to another folder",
            detail={"path": partition_info.path},
        )

    def work() -> PartitionLink:
        partition.prepare()
        return PartitionLink(folder / name, partition.root, make_link(folder, partition.root, name))

    return await asyncio.to_thread(work)


def open_storage(services: Hyperpod, *, ask_aws: bool = True) -> Storage:
    """The file systems and partitions of this machine.

    Args:
        services: The services.
        ask_aws: Whether to query AWS about its file systems.
    """
    aws = Aws() if ask_aws else None
    return Storage(services.settings, services.partition, services.engines, aws)
