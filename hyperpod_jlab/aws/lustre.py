"""The file systems of FSx for Lustre that are mounted on this machine, and which part of each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hyperpod_jlab.model.hyperpod import LustreStorage
from hyperpod_jlab.storage.mounts import all_mounts

_SERVER = re.compile(r"(?P<file_system>fs-[0-9a-f]+)\.fsx\.")
_COMMON_NAME = "fsx"
"""The mount name that many file systems have; any other one is of one file system only."""

_SOURCE = re.compile(r"(?P<server>[^/]+@\w+):/(?P<mount_name>[^/]+)(?P<folder>(/.*)?)")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,40}")


@dataclass(frozen=True)
class LustreMount:
    """A mounted part of a file system.

    Attributes:
        point: Where it is mounted.
        server: The address of its server, such as ``10.0.1.2@tcp``.
        mount_name: The file system's mount name.
        folder: The folder of the file system that is mounted: the storage partition; ``/`` for the whole.
        file_system: The file system's id where the mount point names it, as Studio's does.
        read_only: Whether it can only be read.
    """

    point: Path
    server: str
    mount_name: str
    folder: str
    file_system: str | None = None
    read_only: bool = False

    def path_there(self, path: Path) -> str:
        """A path below the mount point as the file system has it, from its own root: also of a mounted folder.

        Raises:
            ValueError: The path does not lie below the mount point.
        """
        return str(PurePosixPath(self.folder) / path.relative_to(self.point))


def lustre_mounts(table: Path | None = None) -> list[LustreMount]:
    """The parts of Lustre file systems that are mounted here; empty where the system does not tell.

    Args:
        table: The table of mounts (see `storage.mounts.all_mounts`).
    """
    try:
        mounts = all_mounts(table)
    except OSError:
        return []
    found = []
    for mount in mounts:
        source = _SOURCE.fullmatch(mount.source or "")
        if mount.kind == "lustre" and source is not None:
            named = _FILE_SYSTEM.fullmatch(Path(mount.point).name)
            found.append(
                LustreMount(
                    point=Path(mount.point),
                    server=source["server"],
                    mount_name=source["mount_name"],
                    folder=source["folder"].rstrip("/") or "/",
                    file_system=named[0] if named else None,
                    read_only=mount.read_only,
                )
            )
    return found


def is_mount_of(mount: LustreMount, storage: LustreStorage) -> bool:
    """Whether what is mounted here is the file system that a cluster mounts, going by its id, else by its mount name."""
    if mount.mount_name != storage.mount_name:
        return False
    named = _SERVER.match(storage.dns_name)
    if named is not None and mount.file_system is not None:
        return named["file_system"] == mount.file_system
    return mount.mount_name != _COMMON_NAME
