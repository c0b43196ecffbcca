"""FSx: the operations on file systems of FSx for Lustre."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import LustreFileSystem


def describe_file_systems(request: Request) -> dict[str, Any]:
    given, found = request.given, _file_systems(request)
    wanted = given.get("FileSystemIds")
    if wanted is not None:
        by_id = {one.file_system_id: one for one in found}
        for name in wanted:
            if name not in by_id:
                raise ApiError("FileSystemNotFound", f"File system '{name}' does not exist.")
        found = [by_id[name] for name in wanted]
    shown, following = page(found, lambda one: [one.file_system_id], given)
    return {"FileSystems": [_file_system(request, one) for one in shown], **following}


def describe_data_repository_associations(request: Request) -> dict[str, Any]:
    given = request.given
    wanted: set[str] | None = None
    for one in given.get("Filters", []):
        if one.get("Name") != "file-system-id":
            raise ApiError("BadRequest", f"the filter {one.get('Name')} is not known here")
        wanted = set(one.get("Values", []))
    found = [
        {"FileSystemId": one.file_system_id, **association}
        for one in _file_systems(request)
        if wanted is None or one.file_system_id in wanted
        for association in one.associations
    ]
    shown, following = page(found, lambda one: [one["AssociationId"]], given)
    return {"Associations": shown, **following}


def _file_systems(request: Request) -> list[LustreFileSystem]:
    return request.account.file_systems.get(request.region, [])


def _file_system(request: Request, one: LustreFileSystem) -> dict[str, Any]:
    account, region = request.account, request.region
    dns = f"{one.file_system_id}.fsx.{region}.amazonaws.com"
    return {
        "OwnerId": account.account_id,
        "CreationTime": one.created,
        "FileSystemId": one.file_system_id,
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "Lifecycle": one.lifecycle,
        "StorageCapacity": one.capacity,
        "StorageType": "SSD",
        "DNSName": dns,
        "VpcId": one.vpc,
        "SubnetIds": one.subnets,
        "NetworkInterfaceIds": one.interfaces,
        "ResourceARN": _arn(request, one.file_system_id),
        "LustreConfiguration": {
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 125,
            "MountName": one.mount_name,
            "WeeklyMaintenanceStartTime": "1:05:00",
            **one.lustre,
        },
    }


def _arn(request: Request, name: str) -> str:
    account = request.account
    where = f"{account.partition}:fsx:{request.region}:{account.account_id}"
    return f"arn:{where}:file-system/{name}"


def _resource(request: Request) -> Resource:
    """What is described is nothing narrower than all of it for IAM, also where file systems are named."""
    return Resource(None, _arn(request, "*"))


SERVICE = Service(
    "fsx",
    {
        "DescribeFileSystems": describe_file_systems,
        "DescribeDataRepositoryAssociations": describe_data_repository_associations,
    },
    _resource,
)
