"""Asking AWS for all that a configuration names. A piece that cannot be had costs no other one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Provisioning
from hyperpod_jlab.admin.cluster_config.network_checks import places
from hyperpod_jlab.admin.cluster_config.seen import (
    EksSeen,
    FileSystemSeen,
    InstanceTypeSeen,
    InterfacesSeen,
    RouteTable,
    Seen,
    Subnet,
)
from hyperpod_jlab.admin.cluster_config.storage_checks import file_system_of, mounts
from hyperpod_jlab.aws.clusters import described_types
from hyperpod_jlab.aws.network import describe_interfaces, rules_of
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.instance_types import of_ec2
from hyperpod_jlab.core.network import SecurityGroup

T = TypeVar("T")

_AT_ONCE = 8
"""Calls that are under way at a time."""

_MOST_FILES = 1000
"""Files of a folder of life cycle scripts that are looked at: what S3 lists at once."""


class Reader:
    """Reads, a few pieces at a time.

    Args:
        aws: AWS in the region in which the cluster is to be.
        config: The configuration.
        second: The second file; None: there is none.
    """

    def __init__(self, aws: Aws, config: ClusterConfig, second: Provisioning | None) -> None:
        self._aws = aws
        self._config = config
        self._second = second
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self) -> Seen:
        """What AWS tells; nothing is raised, each piece has its error instead."""
        config = self._config
        roles = {one.role for one in config.groups if one.role and one.role.startswith("arn:")}
        scripts = {
            group.script_folder
            for group in config.groups
            if group.script_folder and group.script_folder.startswith("s3://")
        }
        network, storage, found_roles, found_scripts = await asyncio.gather(
            self._network(),
            self._storage(),
            self._each(roles, self._role),
            self._each(scripts, self._script_names),
        )
        quotas, types, zones, existing, eks = await asyncio.gather(
            _kept(self._quotas()),
            _kept(self._types()),
            _kept(self._zones()),
            _kept(self._existing()),
            _kept(self._eks()),
        )
        subnets, routes, groups = network
        return Seen(
            subnets=subnets,
            routes=routes,
            groups=groups,
            file_systems=storage[0],
            interfaces=storage[1],
            roles=found_roles,
            scripts=found_scripts,
            quotas=quotas,
            types=types,
            zones=zones,
            existing=existing,
            eks=eks,
        )

    async def _each(
        self, names: Iterable[str], read: Callable[[str], Awaitable[T]]
    ) -> dict[str, T | HyperpodError]:
        wanted = sorted(names)
        found = await asyncio.gather(*(_kept(read(name)) for name in wanted))
        return dict(zip(wanted, found, strict=True))

    # ------------------------------------------------------------------------------ network

    async def _network(self) -> tuple[Any, Any, Any]:
        subnets, groups = await asyncio.gather(_kept(self._subnets()), _kept(self._groups()))
        if isinstance(subnets, HyperpodError):
            return subnets, (), groups
        vpcs = sorted({one.vpc for one in subnets.values()})
        return subnets, await _kept(self._routes(vpcs)), groups

    async def _subnets(self) -> dict[str, Subnet]:
        names = sorted({name for _, subnets, _, _ in places(self._config) for name in subnets})
        if not names:
            return {}
        # By a filter, for with ids one that is not there hides all others.
        told = await self._call("ec2", "DescribeSubnets", Filters=_filter("subnet-id", names))
        return {
            str(one["SubnetId"]): Subnet(
                str(one["SubnetId"]),
                str(one["VpcId"]),
                str(one["AvailabilityZone"]),
                int(one["AvailableIpAddressCount"]),
            )
            for one in told.get("Subnets") or ()
        }

    async def _routes(self, vpcs: list[str]) -> tuple[RouteTable, ...]:
        if not vpcs:
            return ()
        told = await self._call("ec2", "DescribeRouteTables", Filters=_filter("vpc-id", vpcs))
        return tuple(map(_route_table, told.get("RouteTables") or ()))

    async def _groups(self) -> dict[str, SecurityGroup]:
        names = {name for _, _, groups, _ in places(self._config) for name in groups}
        return await self._security_groups(names)

    async def _security_groups(self, names: Iterable[str]) -> dict[str, SecurityGroup]:
        wanted = sorted(names)
        if not wanted:
            return {}
        told = await self._call(
            "ec2", "DescribeSecurityGroups", Filters=_filter("group-id", wanted)
        )
        return {one["GroupId"]: rules_of(one) for one in told.get("SecurityGroups") or ()}

    # ------------------------------------------------------------------------------ file systems and scripts

    async def _storage(self) -> tuple[dict[str, Any], dict[str, Any]]:
        wanted = {file_system_of(one.dns_name) for one, _ in mounts(self._config, self._second)}
        names = {name for name in wanted if name is not None}
        found = await self._each(names, self._file_system)
        there = {name: one for name, one in found.items() if isinstance(one, FileSystemSeen)}

        async def interfaces(name: str) -> InterfacesSeen:
            return await self._interfaces(there[name])

        return found, await self._each(there, interfaces)

    async def _file_system(self, name: str) -> FileSystemSeen:
        told = await self._call("fsx", "DescribeFileSystems", FileSystemIds=[name])
        one = next(iter(told.get("FileSystems") or ()), None)
        if one is None:
            raise NotFoundError(f"there is no file system {name}")
        return FileSystemSeen(
            name,
            kind=str(one.get("FileSystemType") or ""),
            state=str(one.get("Lifecycle") or ""),
            dns_name=one.get("DNSName"),
            mount_name=(one.get("LustreConfiguration") or {}).get("MountName"),
            vpc=str(one.get("VpcId") or ""),
            subnets=tuple(one.get("SubnetIds") or ()),
            interfaces=tuple(one.get("NetworkInterfaceIds") or ()),
        )

    async def _interfaces(self, found: FileSystemSeen) -> InterfacesSeen:
        async with self._room:
            interfaces = await describe_interfaces(self._aws, found.interfaces)
        names = {name for one in interfaces for name, _ in one.groups}
        groups = await self._security_groups(names)
        addresses = tuple(one.address for one in interfaces if one.address)
        return InterfacesSeen(tuple(groups.values()), addresses)

    async def _script_names(self, folder: str) -> frozenset[str]:
        place = urlsplit(folder)
        prefix = place.path.strip("/")
        prefix = f"{prefix}/" if prefix else ""
        told = await self._call(
            "s3", "ListObjectsV2", Bucket=place.netloc, Prefix=prefix, MaxKeys=_MOST_FILES
        )
        return frozenset(str(one["Key"]).removeprefix(prefix) for one in told.get("Contents") or ())

    # ------------------------------------------------------------------------------ the rest

    async def _role(self, arn: str) -> Mapping[str, Any]:
        told = await self._call("iam", "GetRole", RoleName=arn.rpartition("/")[2])
        # It is asked by its bare name, in this account whatever the ARN says.
        found = str(told["Role"]["Arn"])
        if found != arn:
            raise NotFoundError(f"there is no role {arn}", hint=f"did you mean {found}?")
        document = told["Role"].get("AssumeRolePolicyDocument")
        return document if isinstance(document, dict) else {}

    async def _quotas(self) -> dict[str, float]:
        found = {}
        async with self._room:
            async for page in self._aws.pages(
                "service-quotas", "ListServiceQuotas", ServiceCode="sagemaker"
            ):
                for one in page.get("Quotas") or ():
                    found[str(one["QuotaName"])] = float(one["Value"])
        return found

    @property
    def _type_names(self) -> list[str]:
        """The instance types by EC2's names."""
        named = {name.removeprefix("ml.") for group in self._config.groups for name in group.types}
        return sorted(named)

    async def _types(self) -> dict[str, InstanceTypeSeen]:
        if not self._type_names:
            return {}
        async with self._room:
            told = await described_types(self._aws, self._type_names)
        return {f"ml.{name}": _instance_type(one) for name, one in told.items()}

    async def _zones(self) -> dict[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        if not self._type_names:
            return {}
        wanted = _filter("instance-type", self._type_names)
        given = {"LocationType": "availability-zone", "Filters": wanted}
        async with self._room:
            async for page in self._aws.pages("ec2", "DescribeInstanceTypeOfferings", **given):
                for one in page.get("InstanceTypeOfferings") or ():
                    found.setdefault(f"ml.{one['InstanceType']}", set()).add(str(one["Location"]))
        return {name: frozenset(zones) for name, zones in found.items()}

    async def _existing(self) -> str | None:
        if self._config.name is None:
            return None
        try:
            told = await self._call("sagemaker", "DescribeCluster", ClusterName=self._config.name)
        except NotFoundError:
            return None
        return str(told["ClusterStatus"])

    async def _eks(self) -> EksSeen | None:
        arn = self._config.eks_arn
        if self._config.orchestrator != "eks" or arn is None:
            return None
        told = await self._call("eks", "DescribeCluster", name=arn.rpartition("/")[2])
        one = told["cluster"]
        return EksSeen(
            str(one.get("status") or ""),
            (one.get("resourcesVpcConfig") or {}).get("vpcId"),
            (one.get("accessConfig") or {}).get("authenticationMode"),
        )

    async def _call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        async with self._room:
            return await self._aws.call(service, operation, **given)


async def _kept(work: Awaitable[T]) -> T | HyperpodError:
    """What it found, or its error."""
    try:
        return await work
    except HyperpodError as error:
        return error


def _filter(name: str, values: list[str]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": values}]


def _route_table(told: Mapping[str, Any]) -> RouteTable:
    associations = told.get("Associations") or ()
    gateways = {
        str(one["GatewayId"])
        for one in told.get("Routes") or ()
        if str(one.get("GatewayId", "")).startswith("igw-") and one.get("State") != "blackhole"
    }
    return RouteTable(
        str(told["VpcId"]),
        tuple(str(one["SubnetId"]) for one in associations if one.get("SubnetId")),
        any(one.get("Main") for one in associations),
        tuple(sorted(gateways)),
    )


def _instance_type(told: Mapping[str, Any]) -> InstanceTypeSeen:
    return InstanceTypeSeen(
        facts=of_ec2(told),
        threads=tuple((told.get("VCpuInfo") or {}).get("ValidThreadsPerCore") or ()),
        current=bool(told.get("CurrentGeneration", True)),
    )
