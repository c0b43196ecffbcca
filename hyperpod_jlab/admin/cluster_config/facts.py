"""AWS' data on all resources that a configuration names. Each fact is read once, when a rule first needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.aws.clusters import describe_instance_types
from hyperpod_jlab.aws.network import (
    describe_interfaces,
    describe_route_tables,
    parse_security_group,
)
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

    async def _by_filter(
        self, operation: str, name: str, values: Iterable[str]
    ) -> list[dict[str, Any]]:
        """Descriptions by a filter: in a query by ids, one unknown id fails all."""
        filters = [{"Name": name, "Values": sorted(values)}]
        if not filters[0]["Values"]:
            return []
        response = await self._call("ec2", operation, Filters=filters)
        return list(response.get(operation.removeprefix("Describe")) or ())

    # Network

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
        vpcs = sorted({str(description["VpcId"]) for description in subnets.values()})
        async with self._limit:
            tables = await describe_route_tables(self._aws, vpcs) if vpcs else []
        by_subnet = {}
        for name, subnet in subnets.items():
            own_tables = [description for description in tables if name in description.subnets]
            main = [
                description
                for description in tables
                if description.main and description.vpc == subnet["VpcId"]
            ]
            routes = [route for table in (own_tables or main)[:1] for route in table.routes]
            targets = {
                description.target
                for description in routes
                if description.works and description.target.startswith("igw-")
            }
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

    # File systems and scripts

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
            listed_interfaces = await describe_interfaces(self._aws, names)
        groups = await self._groups(
            {group for interface in listed_interfaces for group, _ in interface.groups}
        )
        return list(groups.values()), [
            interface.address for interface in listed_interfaces if interface.address
        ]

    @_once
    async def scripts(self, folder: str) -> frozenset[str]:
        """The names of the files in a folder of S3."""
        url = urlsplit(folder)
        prefix = f"{url.path.strip('/')}/".removeprefix("/")
        parameters = {"Bucket": url.netloc, "Prefix": prefix, "MaxKeys": MAX_FILES}
        response = await self._call("s3", "ListObjectsV2", **parameters)
        return frozenset(
            str(objects["Key"]).removeprefix(prefix) for objects in response.get("Contents") or ()
        )

    # Capacity

    @property
    def _ec2_types(self) -> list[str]:
        """Instance types by EC2's names."""
        groups = self.documents.groups
        return sorted(
            {name.removeprefix("ml.") for instance_type in groups for name in instance_type.types}
        )

    @_once
    async def types(self) -> dict[str, Mapping[str, Any]]:
        """EC2's descriptions of the instance types, by SageMaker's names."""
        if not self._ec2_types:
            return {}
        async with self._limit:
            descriptions = await describe_instance_types(self._aws, self._ec2_types)
        return {f"ml.{name}": description for name, description in descriptions.items()}

    async def type_of(self, name: str) -> InstanceType | None:
        """An instance type, from EC2, else from our table."""
        try:
            description = (await self.types()).get(name)
        except HyperpodError:
            description = None
        return instance_type(name) if description is None else from_ec2(description)

    @_once
    async def zones(self) -> dict[str, set[str]]:
        """The availability zones that offer each instance type, by SageMaker's names."""
        by_type: dict[str, set[str]] = {}
        if not self._ec2_types:
            return by_type
        filters = [{"Name": "instance-type", "Values": self._ec2_types}]
        for offering in await self._all(
            *("ec2", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings"),
            LocationType="availability-zone",
            Filters=filters,
        ):
            by_type.setdefault(f"ml.{offering['InstanceType']}", set()).add(
                str(offering["Location"])
            )
        return by_type

    @_once
    async def quotas(self) -> dict[str, float]:
        """SageMaker's quotas by their names."""
        parameters = {"ServiceCode": "sagemaker"}
        listed_quotas = await self._all(
            "service-quotas", "ListServiceQuotas", "Quotas", **parameters
        )
        return {str(quota["QuotaName"]): float(quota["Value"]) for quota in listed_quotas}

    async def _all(
        self, service: str, operation: str, member: str, **parameters: Any
    ) -> list[dict[str, Any]]:
        async with self._limit:
            pages = self._aws.pages(service, operation, **parameters)
            return [item async for page in pages for item in page.get(member) or ()]

    # The rest

    @_once
    async def trust_policy(self, arn: str) -> Mapping[str, Any]:
        """The trust policy of a role."""
        role = (await self._call("iam", "GetRole", RoleName=arn.rpartition("/")[2]))["Role"]
        # IAM looks up a bare name in this account, regardless of the ARN.
        if role["Arn"] != arn:
            raise NotFoundError(f"role {arn} not found", hint=f"did you mean {role['Arn']}?")
        document = role.get("AssumeRolePolicyDocument")
        return document if isinstance(document, dict) else {}

    @_once
    async def cluster_status(self, name: str) -> str | None:
        """The status of the HyperPod cluster of a name; None if it does not exist."""
        try:
            response = await self._call("sagemaker", "DescribeCluster", ClusterName=name)
        except NotFoundError:
            return None
        return str(response["ClusterStatus"])

    @_once
    async def eks(self, arn: str) -> dict[str, Any]:
        """An EKS cluster."""
        response = await self._call("eks", "DescribeCluster", name=arn.rpartition("/")[2])
        return dict(response["cluster"])
