"""AWS' data on all resources that a configuration names. Each fact is read once, when a rule first needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.aws.clusters import describe_instance_types
from hyperpod_jlab.aws.network import describe_interfaces, describe_route_tables, parse_security_group
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.instance_types import InstanceType, from_ec2, instance_type
from hyperpod_jlab.core.network import SecurityGroup

P = ParamSpec("P")
T = TypeVar("T")

MAX_CALLS = 8
"""Concurrent calls."""

MAX_FILES = 1000
"""Files of a folder of lifecycle scripts: one page of S3's list."""


def _once(
    read: Callable[Concatenate[Facts, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Facts, P], Awaitable[T]]:
    """All callers of a fact share one answer or error."""

    def cached_read(self: Facts, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        key = (read.__name__, *args)
        if key not in self._tasks:
            self._tasks[key] = asyncio.ensure_future(read(self, *args, **kwargs))
        task: asyncio.Future[T] = self._tasks[key]
        return task

    return cached_read


class Facts:
    """Descriptions from AWS, by id; unknown ids are omitted.

    Every method raises `HyperpodError` (see `aws.errors`) if AWS does not answer, or `NotFoundError`.

    Args:
        aws: AWS in the region of the cluster.
        region: That region.
        documents: The configuration.
    """

    def __init__(self, aws: Aws, region: str, documents: ClusterConfigFiles) -> None:
        self._aws = aws
        self.region = region
        self.documents = documents
        self._limit = asyncio.Semaphore(MAX_CALLS)
        self._tasks: dict[tuple[object, ...], asyncio.Future[Any]] = {}

    async def _call(self, service: str, operation: str, **parameters: Any) -> dict[str, Any]:
        async with self._limit:
            return await self._aws.call(service, operation, **parameters)

    async def _by_filter(self, operation: str, name: str, values: Iterable[str]) -> list[dict[str, Any]]:
        """Descriptions by a filter: in a query by ids, one unknown id fails all."""
        filters = [{"Name": name, "Values": sorted(values)}]
        if not filters[0]["Values"]:
            return []
        response = await self._call("ec2", operation, Filters=filters)
        return list(response.get(operation.removeprefix("Describe")) or ())

    @_once
    async def subnets(self) -> dict[str, dict[str, Any]]:
        """The subnets of all networks."""
        names = {name for network in self.documents.networks for name in network.subnets}
        descriptions = await self._by_filter("DescribeSubnets", "subnet-id", names)
        return {str(subnet["SubnetId"]): subnet for subnet in descriptions}

    async def known_subnets(self, names: Iterable[str]) -> list[dict[str, Any]]:
        """Those of some subnets that exist."""
        subnets = await self.subnets()
        return [subnets[name] for name in dict.fromkeys(names) if name in subnets]

    @_once
    async def gateways(self) -> dict[str, list[str]]:
        """The internet gateways to which each subnet's route table leads (VPC user guide, "Subnet route tables")."""
        subnets = await self.subnets()
        vpcs = sorted({str(subnet["VpcId"]) for subnet in subnets.values()})
        async with self._limit:
            tables = await describe_route_tables(self._aws, vpcs) if vpcs else []
        by_subnet = {}
        for name, subnet in subnets.items():
            own = [table for table in tables if name in table.subnets]
            main = [table for table in tables if table.main and table.vpc == subnet["VpcId"]]
            routes = [route for table in (own or main)[:1] for route in table.routes if route.works]
            targets = {route.target for route in routes if route.target.startswith("igw-")}
            by_subnet[name] = sorted(targets)
        return by_subnet

    @_once
    async def security_groups(self) -> dict[str, SecurityGroup]:
        """The security groups of all networks."""
        networks = self.documents.networks
        return await self._groups({name for group in networks for name in group.security_groups})

    async def _groups(self, names: Iterable[str]) -> dict[str, SecurityGroup]:
        groups = await self._by_filter("DescribeSecurityGroups", "group-id", names)
        return {str(group["GroupId"]): parse_security_group(group) for group in groups}

    @_once
    async def file_system(self, name: str) -> dict[str, Any]:
        """A file system of FSx."""
        response = await self._call("fsx", "DescribeFileSystems", FileSystemIds=[name])
        for description in response.get("FileSystems") or ():
            return dict(description)
        raise NotFoundError(f"file system {name} not found")

    @_once
    async def interfaces(self, name: str) -> tuple[list[SecurityGroup], list[str]]:
        """The security groups and addresses of a file system's network interfaces."""
        names = (await self.file_system(name)).get("NetworkInterfaceIds") or ()
        async with self._limit:
            interfaces = await describe_interfaces(self._aws, names)
        groups = await self._groups({name for one in interfaces for name, _ in one.groups})
        return list(groups.values()), [one.address for one in interfaces if one.address]

    @_once
    async def scripts(self, folder: str) -> frozenset[str]:
        """The names of the files in a folder of S3."""
        url = urlsplit(folder)
        prefix = f"{url.path.strip('/')}/".removeprefix("/")
        parameters = {"Bucket": url.netloc, "Prefix": prefix, "MaxKeys": MAX_FILES}
        response = await self._call("s3", "ListObjectsV2", **parameters)
        return frozenset(str(objects["Key"]).removeprefix(prefix) for objects in response.get("Contents") or ())

    @_once
    async def types(self) -> dict[str, InstanceType]:
        """EC2's descriptions of the instance types, by SageMaker's names."""
        groups = self.documents.groups
        names = {name.removeprefix("ml.") for group in groups for name in group.types}
        if not names:
            return {}
        async with self._limit:
            descriptions = await describe_instance_types(self._aws, sorted(names))
        return {f"ml.{name}": from_ec2(found) for name, found in descriptions.items()}

    async def type_of(self, name: str) -> InstanceType | None:
        """An instance type, from EC2, else from our table."""
        try:
            known = (await self.types()).get(name)
        except HyperpodError:
            known = None
        return known or instance_type(name)
