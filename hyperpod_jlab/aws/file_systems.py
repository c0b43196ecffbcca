"""File systems of FSx for Lustre, from FSx' API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hyperpod_jlab.core.file_system import Association, FileSystem, format_maintenance
from hyperpod_jlab.storage.mounts import all_mounts

if TYPE_CHECKING:
    from hyperpod_jlab.aws.session import Aws
    from hyperpod_jlab.core.hyperpod import LustreStorage


# --------------------------------------------------------------------------------------------------
# The FSx for Lustre file systems that are mounted on this machine, and which folder of each.

_SERVER = re.compile(r"(?P<file_system>fs-[0-9a-f]+)\.fsx\.")
_COMMON_NAME = "fsx"
"""The mount name that many file systems share; any other name is unique to a file system."""

_SOURCE = re.compile(r"(?P<server>[^/]+@\w+):/(?P<mount_name>[^/]+)(?P<folder>(/.*)?)")
_FILE_SYSTEM = re.compile(r"fs-[0-9a-f]{8,40}")


@dataclass(frozen=True)
class LustreMount:
    """A mounted folder of a file system.

    Attributes:
        point: The mount point.
        server: The address of its server, such as ``10.0.1.2@tcp``.
        mount_name: The file system's mount name.
        folder: The folder of the file system that is mounted: the storage partition; ``/`` for all of it.
        file_system: The file system's id if the mount point contains it, as Studio's does.
        read_only: Whether it is mounted read-only.
    """

    point: Path
    server: str
    mount_name: str
    folder: str
    file_system: str | None = None
    read_only: bool = False

    def path_there(self, path: Path) -> str:
        """The path within the file system, from its own root, of a path below the mount point.

        Raises:
            ValueError: The path is not below the mount point.
        """
        return str(PurePosixPath(self.folder) / path.relative_to(self.point))


def lustre_mounts(table: Path | None = None) -> list[LustreMount]:
    """The mounted Lustre file systems; empty if the system does not report mounts.

    Args:
        table: The mount table (see `storage.mounts.all_mounts`).
    """
    try:
        mounts = all_mounts(table)
    except OSError:
        return []
    lustre = []
    for mount in mounts:
        source = _SOURCE.fullmatch(mount.source or "")
        if mount.kind == "lustre" and source is not None:
            match = _FILE_SYSTEM.fullmatch(Path(mount.point).name)
            lustre.append(
                LustreMount(
                    point=Path(mount.point),
                    server=source["server"],
                    mount_name=source["mount_name"],
                    folder=source["folder"].rstrip("/") or "/",
                    file_system=match[0] if match else None,
                    read_only=mount.read_only,
                )
            )
    return lustre


def is_mount_of(mount: LustreMount, storage: LustreStorage) -> bool:
    """Whether a mount is the file system that a cluster mounts, by its id, else by its mount name."""
    if mount.mount_name != storage.mount_name:
        return False
    match = _SERVER.match(storage.dns_name)
    if match is not None and mount.file_system is not None:
        return match["file_system"] == mount.file_system
    return mount.mount_name != _COMMON_NAME


_PAGE_SIZE = 25
"""Associations per page: FSx' maximum."""

_GIB = 1024**3


async def find_file_system(aws: Aws, mount: LustreMount) -> FileSystem | None:
    """The file system of a mount, without its associations.

    A mount without an id is matched by its mount name; None if no file system or several of the region have it.

    Raises:
        NotFoundError: The file system does not exist.
        HyperpodError: See `aws.errors`.
    """
    if mount.file_system is not None:
        response = await aws.call("fsx", "DescribeFileSystems", FileSystemIds=[mount.file_system])
        return next(map(_file_system, response.get("FileSystems") or []), None)
    matches = [
        file_system
        async for page in aws.pages("fsx", "DescribeFileSystems")
        for file_system in map(_file_system, page.get("FileSystems") or [])
        if file_system.mount_name == mount.mount_name
    ]
    return matches[0] if len(matches) == 1 else None


async def list_associations(aws: Aws, file_system: str) -> tuple[Association, ...]:
    """The links of a file system to S3. Scratch and old file systems have theirs in their own description instead.

    Raises:
        NotFoundError: The file system does not exist.
        HyperpodError: See `aws.errors`.
    """
    associations: list[Association] = []
    parameters: dict[str, Any] = {
        "Filters": [{"Name": "file-system-id", "Values": [file_system]}],
        "MaxResults": _PAGE_SIZE,
    }
    while True:  # botocore has no paginator for it
        response = await aws.call("fsx", "DescribeDataRepositoryAssociations", **parameters)
        associations += map(_association, response.get("Associations") or [])
        if not response.get("NextToken"):
            return tuple(associations)
        parameters["NextToken"] = response["NextToken"]


def _file_system(description: Mapping[str, Any]) -> FileSystem:
    lustre = description.get("LustreConfiguration") or {}
    legacy_config = lustre.get("DataRepositoryConfiguration")
    capacity = description.get("StorageCapacity")
    squash = (lustre.get("RootSquashConfiguration") or {}).get("RootSquash")
    return FileSystem(
        name=str(description["FileSystemId"]),
        state=str(description.get("Lifecycle", "")),
        mount_name=lustre.get("MountName"),
        dns_name=description.get("DNSName"),
        deployment=lustre.get("DeploymentType"),
        storage_type=description.get("StorageType"),
        capacity=None if capacity is None else int(capacity) * _GIB,
        throughput=_throughput(lustre),
        version=description.get("FileSystemTypeVersion"),
        maintenance=format_maintenance(lustre.get("WeeklyMaintenanceStartTime")),
        root_squash=None if squash in {None, "0:0"} else squash,
        problem=(description.get("FailureDetails") or {}).get("Message"),
        associations=(_legacy_association(legacy_config),) if legacy_config else None,
    )


def _throughput(lustre: Mapping[str, Any]) -> str | None:
    if lustre.get("ThroughputCapacity") is not None:
        return f"{lustre['ThroughputCapacity']} MB/s"
    if lustre.get("PerUnitStorageThroughput") is not None:
        return f"{lustre['PerUnitStorageThroughput']} MB/s for each TiB"
    return None


def _association(description: Mapping[str, Any]) -> Association:
    s3 = description.get("S3") or {}
    return Association(
        folder=str(description.get("FileSystemPath") or "/"),
        repository=str(description.get("DataRepositoryPath") or ""),
        state=description.get("Lifecycle"),
        imports=tuple((s3.get("AutoImportPolicy") or {}).get("Events") or ()),
        exports=tuple((s3.get("AutoExportPolicy") or {}).get("Events") or ()),
        problem=(description.get("FailureDetails") or {}).get("Message"),
    )


def _legacy_association(description: Mapping[str, Any]) -> Association:
    """The single built-in link of a scratch or first-generation persistent file system."""
    policy = str(description.get("AutoImportPolicy") or "NONE")
    return Association(
        folder="/",
        repository=str(description.get("ImportPath") or description.get("ExportPath") or ""),
        state=description.get("Lifecycle"),
        imports=() if policy == "NONE" else tuple(policy.split("_")),
        problem=(description.get("FailureDetails") or {}).get("Message"),
    )
