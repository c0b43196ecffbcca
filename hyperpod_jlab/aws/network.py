"""Network locations of file systems and clusters, from the APIs of FSx, SageMaker and EC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.network import (
    AclEntry,
    NetworkAcl,
    NetworkInterface,
    NetworkLocation,
    NetworkRoute,
    RouteTable,
    Rule,
    SecurityGroup,
    Subnet,
)


async def locate_file_system(aws: Aws, name: str) -> NetworkLocation:
    """The network location of an FSx file system, by its id.

    Raises:
        NotFoundError: The file system does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("fsx", "DescribeFileSystems", FileSystemIds=[name])
    description = (response.get("FileSystems") or [{}])[0]
    return NetworkLocation(
        name,
        vpc=description.get("VpcId"),
        subnets=tuple(description.get("SubnetIds") or ()),
        interfaces=tuple(description.get("NetworkInterfaceIds") or ()),
    )


async def locate_cluster(aws: Aws, name: str) -> NetworkLocation:
    """The network location of a HyperPod cluster, by its name; without security groups it is in SageMaker's own network.

    Raises:
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeCluster", ClusterName=name)
    network = response.get("VpcConfig") or {}
    return NetworkLocation(
        f"the cluster {response.get('ClusterName', name)}",
        subnets=tuple(network.get("Subnets") or ()),
        groups=tuple(network.get("SecurityGroupIds") or ()),
    )


async def describe_interfaces(aws: Aws, names: Sequence[str]) -> list[NetworkInterface]:
    """Network interfaces by their ids.

    Raises:
        NotFoundError: One of them does not exist.
        HyperpodError: See `aws.errors`.
    """
    if not names:
        return []
    response = await aws.call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=list(names))
    return [
        NetworkInterface(
            name=str(item["NetworkInterfaceId"]),
            vpc=item.get("VpcId"),
            subnet=item.get("SubnetId"),
            zone=item.get("AvailabilityZone"),
            address=item.get("PrivateIpAddress"),
            status=item.get("Status"),
            groups=tuple(
                (str(group["GroupId"]), str(group.get("GroupName", ""))) for group in item.get("Groups") or ()
            ),
        )
        for item in response.get("NetworkInterfaces") or []
    ]


async def describe_security_groups(aws: Aws, names: Sequence[str]) -> list[SecurityGroup]:
    """Security groups by their ids.

    Raises:
        NotFoundError: One of them does not exist.
        HyperpodError: See `aws.errors`.
    """
    if not names:
        return []
    response = await aws.call("ec2", "DescribeSecurityGroups", GroupIds=list(names))
    return [parse_security_group(item) for item in response.get("SecurityGroups") or []]


async def describe_subnets(aws: Aws, names: Sequence[str]) -> list[Subnet]:
    """Subnets by their ids; omits missing ones and those without IPv4.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("ec2", "DescribeSubnets", Filters=_filter("subnet-id", names))
    return [
        Subnet(str(item["SubnetId"]), str(item.get("VpcId")), str(item["CidrBlock"]))
        for item in response.get("Subnets") or ()
        if item.get("CidrBlock")
    ]


async def describe_network_acls(aws: Aws, subnets: Sequence[str]) -> list[NetworkAcl]:
    """The network ACLs of subnets.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    filters = _filter("association.subnet-id", subnets)
    response = await aws.call("ec2", "DescribeNetworkAcls", Filters=filters)
    return [
        NetworkAcl(
            str(item["NetworkAclId"]),
            tuple(str(association["SubnetId"]) for association in item.get("Associations") or ()),
            tuple(map(_entry, item.get("Entries") or ())),
        )
        for item in response.get("NetworkAcls") or ()
    ]


async def describe_route_tables(aws: Aws, vpcs: Sequence[str]) -> list[RouteTable]:
    """The route tables of VPCs.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("ec2", "DescribeRouteTables", Filters=_filter("vpc-id", vpcs))
    tables = []
    for item in response.get("RouteTables") or ():
        associations = item.get("Associations") or ()
        subnets = tuple(str(association["SubnetId"]) for association in associations if association.get("SubnetId"))
        main = any(association.get("Main") for association in associations)
        routes = tuple(map(_route, item.get("Routes") or ()))
        tables.append(RouteTable(str(item["RouteTableId"]), str(item["VpcId"]), subnets, main, routes))
    return tables


def _filter(name: str, values: Sequence[str]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": sorted(values)}]


def _entry(item: Mapping[str, Any]) -> AclEntry:
    ports = item.get("PortRange") or {}
    return AclEntry(
        number=int(item.get("RuleNumber", 0)),
        direction="outbound" if item.get("Egress") else "inbound",
        allows=item.get("RuleAction") == "allow",
        protocol=str(item.get("Protocol", "")),
        addresses=item.get("CidrBlock"),
        first=ports.get("From"),
        last=ports.get("To"),
    )


_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "VpcPeeringConnectionId",
    "NetworkInterfaceId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "EgressOnlyInternetGatewayId",
    "CoreNetworkArn",
)
"""Members of a route that name its target."""


def _route(item: Mapping[str, Any]) -> NetworkRoute:
    target = next((str(item[name]) for name in _TARGETS if item.get(name)), "nowhere")
    return NetworkRoute(item.get("DestinationCidrBlock"), target, item.get("State") != "blackhole")


def parse_security_group(description: Mapping[str, Any]) -> SecurityGroup:
    """A security group, from EC2's description of it."""
    return SecurityGroup(
        name=str(description["GroupId"]),
        vpc=description.get("VpcId"),
        title=str(description.get("GroupName", "")),
        inbound=tuple(map(_rule, description.get("IpPermissions") or ())),
        outbound=tuple(map(_rule, description.get("IpPermissionsEgress") or ())),
    )


def _rule(permission: Mapping[str, Any]) -> Rule:
    return Rule(
        protocol=str(permission.get("IpProtocol", "")),
        first=permission.get("FromPort"),
        last=permission.get("ToPort"),
        groups=tuple(str(pair["GroupId"]) for pair in permission.get("UserIdGroupPairs") or ()),
        ranges=tuple(str(pair["CidrIp"]) for pair in permission.get("IpRanges") or ()),
        lists=tuple(str(pair["PrefixListId"]) for pair in permission.get("PrefixListIds") or ()),
    )
