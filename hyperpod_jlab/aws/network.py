"""Where file systems and clusters are in the network, from the APIs of FSx, SageMaker and EC2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.network import (
    AclEntry,
    NetworkAcl,
    NetworkInterface,
    NetworkLocation,
    Route,
    RouteTable,
    Rule,
    SecurityGroup,
    Subnet,
)


async def file_system_place(aws: Aws, name: str) -> NetworkLocation:
    """Where a file system of FSx is, by its id.

    Raises:
        NotFoundError: There is no such file system.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("fsx", "DescribeFileSystems", FileSystemIds=[name])
    one = (told.get("FileSystems") or [{}])[0]
    return NetworkLocation(
        name,
        vpc=one.get("VpcId"),
        subnets=tuple(one.get("SubnetIds") or ()),
        interfaces=tuple(one.get("NetworkInterfaceIds") or ()),
    )


async def cluster_place(aws: Aws, name: str) -> NetworkLocation:
    """Where a HyperPod cluster is, by its name; one without security groups is in SageMaker's own network.

    Raises:
        NotFoundError: There is no such cluster.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("sagemaker", "DescribeCluster", ClusterName=name)
    network = told.get("VpcConfig") or {}
    return NetworkLocation(
        f"the cluster {told.get('ClusterName', name)}",
        subnets=tuple(network.get("Subnets") or ()),
        groups=tuple(network.get("SecurityGroupIds") or ()),
    )


async def describe_interfaces(aws: Aws, names: Sequence[str]) -> list[NetworkInterface]:
    """Network interfaces by their ids.

    Raises:
        NotFoundError: One of them is not there.
        HyperpodError: See `aws.errors`.
    """
    if not names:
        return []
    told = await aws.call("ec2", "DescribeNetworkInterfaces", NetworkInterfaceIds=list(names))
    return [
        NetworkInterface(
            name=str(one["NetworkInterfaceId"]),
            vpc=one.get("VpcId"),
            subnet=one.get("SubnetId"),
            zone=one.get("AvailabilityZone"),
            address=one.get("PrivateIpAddress"),
            status=one.get("Status"),
            groups=tuple(
                (str(group["GroupId"]), str(group.get("GroupName", "")))
                for group in one.get("Groups") or ()
            ),
        )
        for one in told.get("NetworkInterfaces") or []
    ]


async def describe_security_groups(aws: Aws, names: Sequence[str]) -> list[SecurityGroup]:
    """Security groups by their ids.

    Raises:
        NotFoundError: One of them is not there.
        HyperpodError: See `aws.errors`.
    """
    if not names:
        return []
    told = await aws.call("ec2", "DescribeSecurityGroups", GroupIds=list(names))
    return [rules_of(one) for one in told.get("SecurityGroups") or []]


async def describe_subnets(aws: Aws, names: Sequence[str]) -> list[Subnet]:
    """Subnets by their ids; those that are not there, or have no IPv4, are left out.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("ec2", "DescribeSubnets", Filters=_only("subnet-id", names))
    return [
        Subnet(str(one["SubnetId"]), str(one.get("VpcId")), str(one["CidrBlock"]))
        for one in told.get("Subnets") or ()
        if one.get("CidrBlock")
    ]


async def describe_network_acls(aws: Aws, subnets: Sequence[str]) -> list[NetworkAcl]:
    """The network ACLs of subnets.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    given = _only("association.subnet-id", subnets)
    told = await aws.call("ec2", "DescribeNetworkAcls", Filters=given)
    return [
        NetworkAcl(
            str(one["NetworkAclId"]),
            tuple(str(tie["SubnetId"]) for tie in one.get("Associations") or ()),
            tuple(map(_entry, one.get("Entries") or ())),
        )
        for one in told.get("NetworkAcls") or ()
    ]


async def describe_route_tables(aws: Aws, vpcs: Sequence[str]) -> list[RouteTable]:
    """The route tables of VPCs.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("ec2", "DescribeRouteTables", Filters=_only("vpc-id", vpcs))
    found = []
    for one in told.get("RouteTables") or ():
        ties = one.get("Associations") or ()
        subnets = tuple(str(tie["SubnetId"]) for tie in ties if tie.get("SubnetId"))
        main = any(tie.get("Main") for tie in ties)
        routes = tuple(map(_route, one.get("Routes") or ()))
        found.append(RouteTable(str(one["RouteTableId"]), str(one["VpcId"]), subnets, main, routes))
    return found


def _only(name: str, values: Sequence[str]) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": sorted(values)}]


def _entry(told: Mapping[str, Any]) -> AclEntry:
    ports = told.get("PortRange") or {}
    return AclEntry(
        number=int(told.get("RuleNumber", 0)),
        direction="outbound" if told.get("Egress") else "inbound",
        allows=told.get("RuleAction") == "allow",
        protocol=str(told.get("Protocol", "")),
        addresses=told.get("CidrBlock"),
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
"""Members of a route that say where it leads."""


def _route(told: Mapping[str, Any]) -> Route:
    target = next((str(told[name]) for name in _TARGETS if told.get(name)), "nowhere")
    return Route(told.get("DestinationCidrBlock"), target, told.get("State") != "blackhole")


def rules_of(told: Mapping[str, Any]) -> SecurityGroup:
    """A security group, from EC2's description of it."""
    return SecurityGroup(
        name=str(told["GroupId"]),
        vpc=told.get("VpcId"),
        title=str(told.get("GroupName", "")),
        inbound=tuple(map(_rule, told.get("IpPermissions") or ())),
        outbound=tuple(map(_rule, told.get("IpPermissionsEgress") or ())),
    )


def _rule(told: Mapping[str, Any]) -> Rule:
    return Rule(
        protocol=str(told.get("IpProtocol", "")),
        first=told.get("FromPort"),
        last=told.get("ToPort"),
        groups=tuple(str(one["GroupId"]) for one in told.get("UserIdGroupPairs") or ()),
        ranges=tuple(str(one["CidrIp"]) for one in told.get("IpRanges") or ()),
        lists=tuple(str(one["PrefixListId"]) for one in told.get("PrefixListIds") or ()),
    )
