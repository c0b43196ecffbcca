"""File systems of FSx for Lustre, from FSx' API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.aws.lustre import LustreMount
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.file_system import Association, FileSystem, maintenance_words

_ASSOCIATIONS = 25
"""Associations on a page: the most that FSx gives."""

_GIB = 1024**3


async def find_file_system(aws: Aws, mount: LustreMount) -> FileSystem | None:
    """The file system that is mounted somewhere, without its associations.

    Where the mount does not say its id it is found by its mount name; None when none or several of the region have that.

    Raises:
        NotFoundError: There is no file system of the id.
        HyperpodError: See `aws.errors`.
    """
    if mount.file_system is not None:
        told = await aws.call("fsx", "DescribeFileSystems", FileSystemIds=[mount.file_system])
        return next(map(_file_system, told.get("FileSystems") or []), None)
    found = [
        one
        async for page in aws.pages("fsx", "DescribeFileSystems")
        for one in map(_file_system, page.get("FileSystems") or [])
        if one.mount_name == mount.mount_name
    ]
    return found[0] if len(found) == 1 else None


async def list_associations(aws: Aws, file_system: str) -> tuple[Association, ...]:
    """The links of a file system to S3. Scratch file systems and old ones have theirs in their own description instead.

    Raises:
        NotFoundError: There is no such file system.
        HyperpodError: See `aws.errors`.
    """
    found: list[Association] = []
    given: dict[str, Any] = {
        "Filters": [{"Name": "file-system-id", "Values": [file_system]}],
        "MaxResults": _ASSOCIATIONS,
    }
    while True:  # botocore has no paginator for it
        told = await aws.call("fsx", "DescribeDataRepositoryAssociations", **given)
        found += map(_association, told.get("Associations") or [])
        if not told.get("NextToken"):
            return tuple(found)
        given["NextToken"] = told["NextToken"]


def _file_system(told: Mapping[str, Any]) -> FileSystem:
    lustre = told.get("LustreConfiguration") or {}
    old = lustre.get("DataRepositoryConfiguration")
    capacity = told.get("StorageCapacity")
    squash = (lustre.get("RootSquashConfiguration") or {}).get("RootSquash")
    return FileSystem(
        name=str(told["FileSystemId"]),
        state=str(told.get("Lifecycle", "")),
        mount_name=lustre.get("MountName"),
        dns_name=told.get("DNSName"),
        deployment=lustre.get("DeploymentType"),
        storage_type=told.get("StorageType"),
        capacity=None if capacity is None else int(capacity) * _GIB,
        throughput=_throughput(lustre),
        version=told.get("FileSystemTypeVersion"),
        maintenance=maintenance_words(lustre.get("WeeklyMaintenanceStartTime")),
        root_squash=None if squash in {None, "0:0"} else squash,
        problem=(told.get("FailureDetails") or {}).get("Message"),
        associations=(_own_link(old),) if old else None,
    )


def _throughput(lustre: Mapping[str, Any]) -> str | None:
    if lustre.get("ThroughputCapacity") is not None:
        return f"{lustre['ThroughputCapacity']} MB/s"
    if lustre.get("PerUnitStorageThroughput") is not None:
        return f"{lustre['PerUnitStorageThroughput']} MB/s for each TiB"
    return None


def _association(told: Mapping[str, Any]) -> Association:
    s3 = told.get("S3") or {}
    return Association(
        folder=str(told.get("FileSystemPath") or "/"),
        repository=str(told.get("DataRepositoryPath") or ""),
        state=told.get("Lifecycle"),
        imports=tuple((s3.get("AutoImportPolicy") or {}).get("Events") or ()),
        exports=tuple((s3.get("AutoExportPolicy") or {}).get("Events") or ()),
        problem=(told.get("FailureDetails") or {}).get("Message"),
    )


def _own_link(told: Mapping[str, Any]) -> Association:
    """The one link that a scratch file system, or one of the first kind of persistent ones, has by itself."""
    policy = str(told.get("AutoImportPolicy") or "NONE")
    return Association(
        folder="/",
        repository=str(told.get("ImportPath") or told.get("ExportPath") or ""),
        state=told.get("Lifecycle"),
        imports=() if policy == "NONE" else tuple(policy.split("_")),
        problem=(told.get("FailureDetails") or {}).get("Message"),
    )
