"""Inspect paths and file systems on this machine: type, disk usage, permissions, isolation."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from hyperpod_jlab.aws.file_systems import LustreMount, lustre_mounts
from hyperpod_jlab.clusters.identity import UserIdentity
from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.file_system import FileSystem
from hyperpod_jlab.core.isolation import FolderFacts, Isolation, isolation_of
from hyperpod_jlab.core.wire import HIDDEN, Wire, wire_property
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.mounts import DiskSpace, Mount, all_mounts, disk_space, mount_of
from hyperpod_jlab.storage.owners import rights_on
from hyperpod_jlab.storage.timeouts import run_with_timeout

_KERBEROS = re.compile(r"sec=(krb5\w*)")


@dataclass(frozen=True)
class MountInfo(Wire):
    """A mounted file system, or a path on one. Unknown values are None.

    Attributes:
        path: The path.
        exists: Whether it exists.
        mount: The mount point of its file system.
        kind: Type of the file system, such as ``lustre``.
        source: The source in the mount table.
        file_system: Id of the file system at AWS.
        mount_name: Its mount name at AWS.
        mounted_folder: The folder of the file system that is mounted: the storage partition; ``/`` for all of it.
        path_there: The path within the file system.
        network: Whether other machines can mount the file system.
        read_only: Whether the file system is mounted read-only.
        writable: Whether this user may write to the path.
        room: Disk usage.
        open_to_others: Whether other users have permissions on it.
        isolation: What keeps other users out.
        runs_go_here: Whether it holds the storage partition for runs.
        private_of: The user profile whose private partition it is.
        offered: Whether the UI offers it; a private partition is not offered in a shared space.
        aws: The file system as AWS describes it.
        problem: Why it cannot be inspected, or is not offered.
    """

    path: str
    exists: bool
    mount: str
    kind: str | None = None
    source: str | None = None
    file_system: str | None = None
    mount_name: str | None = None
    mounted_folder: str | None = None
    path_there: str | None = None
    network: bool = False
    read_only: bool = False
    writable: bool | None = None
    room: DiskSpace | None = field(default=None, metadata=HIDDEN)
    open_to_others: bool | None = None
    isolation: Isolation | None = None
    runs_go_here: bool = False
    private_of: str | None = None
    offered: bool = True
    aws: FileSystem | None = None
    problem: str | None = None

    @property
    @wire_property
    def total(self) -> int | None:
        """The file system's size in bytes."""
        return self.room.total if self.room else None

    @property
    @wire_property
    def free(self) -> int | None:
        return self.room.free if self.room else None

    @property
    @wire_property
    def files_free(self) -> int | None:
        """Number of files that can still be created; null if the file system does not count them."""
        return self.room.files_free if self.room else None


def mount_points() -> list[str]:
    """The mount points of network file systems on this machine; a mount point that a later mount covers counts once."""
    try:
        mounts = all_mounts()
    except OSError:  # not Linux
        return []
    last = {mount.point: mount for mount in mounts}
    return [point for point, mount in last.items() if mount.network]


async def try_inspect(path: Path, user: UserIdentity) -> MountInfo:
    """Inspect a path as far as possible; `problem` says what failed.

    Args:
        path: The path; it need not exist.
        user: The user's identity.
    """
    try:
        return await inspect(path, user)
    except StorageError as error:
        return replace(_from_mount_table(path), problem=error.message)


async def inspect(path: Path, user: UserIdentity) -> MountInfo:
    """Inspect a path.

    Raises:
        StorageError: Permission denied, or the file system does not answer.
    """

    def look() -> MountInfo:
        with storage_errors(path):
            return _inspect(path, user)

    return await run_with_timeout(path, look)


async def inspect_mount(point: str, user: UserIdentity) -> MountInfo:
    """Inspect a whole file system, by its mount point."""
    info = await try_inspect(Path(point), user)
    if info.problem is None and not info.exists:
        problem = "the folder where it is mounted does not exist"
        return replace(_from_mount_table(Path(point)), problem=problem)
    if not info.network:
        # On a local disk permissions depend on each folder, not on the root.
        return replace(info, isolation=None, open_to_others=None, writable=None)
    return info


def _from_mount_table(path: Path) -> MountInfo:
    """A path according to the mount table alone, without touching its file system."""
    best_mount = Mount("/")
    for mount in all_mounts():
        if path.is_relative_to(mount.point) and len(mount.point) >= len(best_mount.point):
            best_mount = mount
    return _build_info(path, False, best_mount, _find_lustre_mount(best_mount.point))


def _inspect(path: Path, user: UserIdentity) -> MountInfo:
    mount = mount_of(path)
    lustre = _find_lustre_mount(mount.point)
    exists = os.path.lexists(path)
    info = _build_info(path.resolve(), exists, mount, lustre)
    info = replace(info, path=str(path), room=disk_space(path))
    if not exists:
        return info
    top = Path(mount.point) if mount.network else Path("/")
    rights = rights_on(path, top)
    kerberos = next(filter(None, map(_KERBEROS.fullmatch, mount.options)), None)
    folder_facts = FolderFacts(
        network=mount.network,
        folder=info.mounted_folder,
        grants=rights.grants,
        evidence=rights.evidence,
        identity=user.on_network if mount.network else user.on_disk,
        kerberos=kerberos[1] if kerberos else None,
    )
    return replace(
        info,
        writable=not mount.read_only and os.access(path, os.W_OK),
        open_to_others=bool(rights.grants),
        isolation=isolation_of(folder_facts),
    )


def _build_info(path: Path, exists: bool, mount: Mount, lustre: LustreMount | None) -> MountInfo:
    path_there = None
    if lustre is not None and path.is_relative_to(lustre.point):
        path_there = lustre.path_there(path)
    return MountInfo(
        path=str(path),
        exists=exists,
        mount=mount.point,
        kind=mount.kind,
        source=mount.source,
        file_system=lustre.file_system if lustre else None,
        mount_name=lustre.mount_name if lustre else None,
        mounted_folder=lustre.folder if lustre else None,
        path_there=path_there,
        network=mount.network,
        read_only=mount.read_only,
    )


def _find_lustre_mount(point: str) -> LustreMount | None:
    matches = [mount for mount in lustre_mounts() if str(mount.point) == point]
    return matches[-1] if matches else None
