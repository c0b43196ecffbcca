"""File systems and partitions here: which one runs go to, how much room, who else can read them, and their paths on each side."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from hyperpod_jlab.aws.clusters import describe_cluster
from hyperpod_jlab.aws.file_systems import (
    LustreMount,
    find_file_system,
    list_associations,
    lustre_mounts,
)
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
from hyperpod_jlab.clusters.mounts import (
    MountInfo,
    inspect,
    inspect_mount,
    mount_points,
    try_inspect,
)
from hyperpod_jlab.core.config import ClusterConfig, Settings
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, StorageError
from hyperpod_jlab.core.file_system import FileSystem
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.engines.registry import Engines, scheduler_named
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.home_link import NAME, make_link
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.timeouts import run_with_timeout

# --------------------------------------------------------------------------------------------------
# Whether configured clusters mount the file system that runs go to, by what AWS says of the HyperPod clusters behind them.


async def other_file_systems(
    clusters: Mapping[str, ClusterConfig],
    mounts: Sequence[LustreMount],
    point: str,
    asked: IdentityQueries,
) -> list[str]:
    """A sentence for each cluster whose instances mount other file systems than the one that runs go to.

    Args:
        clusters: The configured clusters by name.
        mounts: What of Lustre is mounted here.
        point: Where the file system that runs go to is mounted.
        asked: Whom to ask. What cannot be had leaves a note there.
    """
    found: list[str] = []
    for name, config in clusters.items():
        hyperpod = config.hyperpod_cluster
        if hyperpod is None:
            continue
        if asked.aws is None:
            break
        bare = HyperpodCluster(hyperpod, "", "", "")
        told = await asked.about(
            "sagemaker",
            f"the HyperPod cluster {hyperpod}",
            describe_cluster(asked.aws, bare),
        )
        if isinstance(told, HyperpodCluster):
            found += _words(name, told, mounted_here(told, mounts), point)
    return found


def _words(
    name: str, cluster: HyperpodCluster, here: tuple[str, ...] | None, point: str
) -> list[str]:
    if here is None or point in here:  # life cycle scripts may mount what AWS knows nothing of
        return []
    which = ", ".join(f"{one.dns_name} ({one.mount_name})" for one in cluster.storage)
    if here:
        return [
            (
                f"runs on {name} may not find files from here: its instances mount {which}, which is mounted at {here[0]} here: set path "
                "under [storage] to a folder there"
            )
        ]
    return [
        f"runs on {name} may not find files from here: its instances mount {which}, which is not mounted on this machine"
    ]


@dataclass(frozen=True)
class Side:
    """A path as one cluster sees it.

    Attributes:
        cluster: The cluster.
        orchestrator: What schedules there.
        side: Where that is: ``here``, ``Slurm node`` or ``pod``.
        here: The path on this machine; None when the cluster cannot be known.
        there: The path on that side; None when there is none.
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
    """The partition that runs go to.

    Attributes:
        chosen_by: Who says so.
        folder: Our folder on it.
        shared: Whether runs there are for all users of the partition, by the configuration.
        index: The file with the index of runs; null: in memory only.
    """

    chosen_by: str = ""
    folder: str = ""
    shared: bool = False
    index: str | None = None


@dataclass(frozen=True)
class StorageOverview:
    """All storage here.

    Attributes:
        partition: The partition that runs go to.
        file_systems: The file system of the partition, and all that other machines can mount too.
        clusters: The partition as each cluster sees it.
        studio: Whether this is a space of Studio.
        shared_space: Whether several people act as this space.
        separation: Whether other users can exchange or write what is this user's on the partition; null when it cannot be looked at.
        notes: What could not be had, and what is to be known.
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
    """One path: what the overview says of a file system, and the path on each side."""

    clusters: tuple[Side, ...]
    studio: bool
    notes: tuple[str, ...]


class Storage:
    """Looks at the storage of this machine.

    Args:
        settings: The configuration.
        partition: The partition that runs go to.
        engines: The engines of the configured clusters.
        aws: Whom to ask what AWS knows; None: nobody. It is asked where something is mounted from there, and in Studio.
    """

    def __init__(
        self, settings: Settings, partition: Partition, engines: Engines, aws: Aws | None
    ) -> None:
        self._settings = settings
        self._partition = partition
        self._engines = engines
        self._aws = aws

    async def overview(self) -> StorageOverview:
        """All storage here. What cannot be looked at, or AWS does not tell, is said and no error."""
        studio, mounts, asked = self._begin()
        whose = await find_user_identity(studio, asked)
        root = self._partition.root
        choice = await asyncio.to_thread(choose_partition, self._settings)
        partition = await try_inspect(root, whose)
        points = dict.fromkeys([partition.mount, *mount_points()])
        seen = await asyncio.gather(*(inspect_mount(point, whose) for point in points))
        places = [replace(one, runs_go_here=one.path == partition.mount) for one in seen]
        places = [await self._with_aws(one, mounts, studio, whose, asked) for one in places]
        its = next(one for one in places if one.runs_go_here)
        others = await other_file_systems(self._settings.clusters, mounts, its.mount, asked)
        separation = await self._separation(partition, whose)
        partition = replace(
            partition,
            runs_go_here=True,
            private_of=its.private_of,
            offered=its.offered,
            aws=its.aws,
            file_system=its.file_system,
        )
        return StorageOverview(
            partition=StoragePartition(
                **vars(partition),
                chosen_by=choice.chosen_by,
                folder=str(self._partition.folder),
                shared=self._partition.shared,
                index=_text(default_path(self._partition)),
            ),
            file_systems=tuple(places),
            clusters=self._sides(root),
            studio=studio is not None,
            shared_space=whose.in_shared_space,
            separation=separation,
            notes=(
                *(studio.problems if studio is not None else ()),
                *choice.notes,
                *self._warnings(partition, whose),
                *others,
                *dict.fromkeys(asked.notes),
            ),
        )

    async def _separation(self, place: MountInfo, whose: UserIdentity) -> Separation | None:
        identity = whose.on_network if place.network else whose.on_disk
        partition = self._partition

        def judge() -> Separation:
            with storage_errors(partition.root):
                return separation_of(partition, identity)

        try:
            return await run_with_timeout(partition.root, judge)
        except StorageError:  # the place's own problem says it
            return None

    async def of_path(self, path: Path) -> PathView:
        """The same of one path.

        Args:
            path: The path, absolute.

        Raises:
            NotFoundError: It is not there.
            StorageError: It cannot be looked at.
        """
        studio, mounts, asked = self._begin()
        whose = await find_user_identity(studio, asked)
        place = await inspect(path, whose)
        if not place.exists:
            raise NotFoundError(
                f"{path} not found",
                hint="give an existing file or folder",
                detail={"path": str(path)},
            )
        place = await self._with_aws(place, mounts, studio, whose, asked)
        inner = await run_with_timeout(path, lambda: self._on_partition(path))
        runs = inner.is_relative_to(self._partition.root)
        notes = tuple(dict.fromkeys(asked.notes))
        place = replace(place, runs_go_here=runs)
        return PathView(
            **vars(place), clusters=self._sides(inner), studio=studio is not None, notes=notes
        )

    def _on_partition(self, path: Path) -> Path:
        """A path as it lies on the partition, also where it leads there by a link; any other one as it is."""
        root = self._partition.root
        real, real_root = path.resolve(), root.resolve()
        if path.is_relative_to(root) or not real.is_relative_to(real_root):
            return path
        return root / real.relative_to(real_root)

    def _begin(self) -> tuple[Studio | None, list[LustreMount], IdentityQueries]:
        studio, mounts = find_studio(), lustre_mounts()
        return studio, mounts, IdentityQueries(self._aws if studio is not None or mounts else None)

    async def _with_aws(
        self,
        place: MountInfo,
        mounts: list[LustreMount],
        studio: Studio | None,
        whose: UserIdentity,
        asked: IdentityQueries,
    ) -> MountInfo:
        """The place with what AWS knows of its file system, and whose private partition it is."""
        mount = next((one for one in reversed(mounts) if str(one.point) == place.mount), None)
        if mount is None:
            return place
        owner = await _private_of(mount, studio, whose, asked)
        closed = owner is not None and whose.in_shared_space
        problem = place.problem
        if closed and problem is None:
            problem = (
                f"not offered: it is the private partition of {owner}, but this space is shared"
            )
        found = await _described(mount, asked)
        return replace(
            place,
            private_of=owner,
            offered=not closed,
            aws=found,
            file_system=place.file_system or (found.name if found else None),
            problem=problem,
        )

    def _sides(self, path: Path) -> tuple[Side, ...]:
        return tuple(self._side(name, path) for name in self._settings.clusters)

    def _side(self, name: str, path: Path) -> Side:
        kind = self._settings.clusters[name].orchestrator
        scheduler = scheduler_named(kind)
        side = scheduler.side if scheduler is not None else "node"
        try:
            paths = self._engines.get(name).paths
            if not paths.shared:
                reason = "no storage of its pods is configured: code is packed into the job"
                return Side(name, kind, side, str(path), None, reason)
            there = paths.to_cluster_path(str(path))
        except HyperpodError as error:
            return Side(name, kind, side, str(path), None, error.message)
        return Side(name, kind, side, str(path), str(there))

    def _warnings(self, partition: MountInfo, whose: UserIdentity) -> list[str]:
        """What is to be known of where runs go."""
        found = []
        if not partition.offered:
            found.append(
                f"runs are stored in the private partition of {partition.private_of}, which all users of this shared space can use: set "
                "path under [storage] in the configuration to another folder"
            )
        elif whose.in_shared_space:
            found.append("this space is shared: all its users see and control its runs")
        if partition.read_only:
            found.append(f"runs cannot be stored in {partition.path}: it is read-only here")
        for name, config in self._settings.clusters.items():
            if config.run_user not in {None, current_user()}:
                found.append(
                    f"runs on {name} run as {config.run_user}: all users whose jobs run as {config.run_user} there can read them"
                )
            if config.volume_claim is not None:
                found.append(
                    f"pods of {name} mount the claim {config.volume_claim}: users who can create pods in its namespace can read that "
                    "whole volume as any user"
                )
        return found


async def _private_of(
    mount: LustreMount, studio: Studio | None, whose: UserIdentity, asked: IdentityQueries
) -> str | None:
    """The user profile that a mounted folder is the private partition of: those are called like their profiles."""
    name = PurePosixPath(mount.folder).name
    if not name or studio is None:
        return None
    if name in {studio.user_profile, whose.profile}:
        return name
    if not whose.in_shared_space:  # only there it makes a difference
        return None
    profile = await find_profile(studio, name, asked)
    return profile.name if profile else None


async def _described(mount: LustreMount, asked: IdentityQueries) -> FileSystem | None:
    if asked.aws is None:
        return None
    named = mount.file_system or mount.mount_name
    found = await asked.about("fsx", f"the file system {named}", find_file_system(asked.aws, mount))
    if not isinstance(found, FileSystem):
        if found is None:
            asked.notes.append(
                f"AWS does not have exactly one file system with the mount name {named}"
            )
        elif found.code == "not_found":
            asked.notes.append(f"AWS has no file system {named} in this region")
        return None
    if found.associations is not None or asked.aws is None:
        return found
    links = await asked.about(
        "fsx", f"links of {found.name} to S3", list_associations(asked.aws, found.name)
    )
    return replace(found, associations=links) if isinstance(links, tuple) else found


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


# --------------------------------------------------------------------------------------------------
# A link to the partition where a file browser shows it, made only where nobody gets at what is somebody else's by it.


@dataclass(frozen=True)
class Linked:
    """The partition in a file browser's folder: by a link, or as a folder that lies there itself.

    Attributes:
        path: What to open.
        partition: The partition's root.
        made: Whether the link was not there before.
    """

    path: Path
    partition: Path
    made: bool


async def link_partition(
    storage: Storage, partition: Partition, folder: Path, name: str = NAME
) -> Linked:
    """Make a link to the partition.

    Args:
        storage: Tells whether it is offered here.
        partition: The partition.
        folder: The folder that the file browser shows.
        name: The link's name.

    Raises:
        DeniedError: It is the private partition of a user profile, and this space is shared.
        InvalidInputError: The name is none for a link, or the folder is the partition itself.
        ConflictError: Something else has the name.
        StorageError: The partition is not there, or the folder cannot be written.
    """
    place = (await storage.overview()).partition
    if not place.offered:
        raise DeniedError(
            f"{place.path} is the private partition of {place.private_of}; the link would give all users of this shared space access to it",
            code="private_partition",
            hint="set path under [storage] in the configuration to another folder",
            detail={"path": place.path},
        )

    def work() -> Linked:
        partition.prepare()
        return Linked(folder / name, partition.root, make_link(folder, partition.root, name))

    return await asyncio.to_thread(work)


def storage_of(services: Hyperpod, *, ask_aws: bool = True) -> Storage:
    """The file systems and partitions of this machine.

    Args:
        services: The services.
        ask_aws: Whether AWS is asked what it knows of them, where they come from there.
    """
    aws = Aws() if ask_aws else None
    return Storage(services.settings, services.partition, services.engines, aws)
