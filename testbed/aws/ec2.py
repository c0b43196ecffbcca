"""EC2: the operations on security groups and network interfaces that are named by their ids."""

from __future__ import annotations

from typing import Any

from testbed.aws.network import Network, NetworkInterface, SecurityGroup
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError


def describe_security_groups(request: Request) -> dict[str, Any]:
    known = _network(request).groups
    wanted = request.given.get("GroupIds")
    for name in wanted or ():
        if name not in known:
            words = f"The security group '{name}' does not exist"
            raise ApiError("InvalidGroup.NotFound", words)
    found = list(known.values()) if wanted is None else [known[name] for name in wanted]
    return {"SecurityGroups": [_group(request, one) for one in found]}


def describe_network_interfaces(request: Request) -> dict[str, Any]:
    known = _network(request).interfaces
    wanted = request.given.get("NetworkInterfaceIds")
    for name in wanted or ():
        if name not in known:
            words = f"The networkInterface ID '{name}' does not exist"
            raise ApiError("InvalidNetworkInterfaceID.NotFound", words)
    found = list(known.values()) if wanted is None else [known[name] for name in wanted]
    return {"NetworkInterfaces": [_interface(request, one) for one in found]}


def _network(request: Request) -> Network:
    return request.account.networks.get(request.region) or Network()


def _group(request: Request, one: SecurityGroup) -> dict[str, Any]:
    return {
        "GroupId": one.group_id,
        "GroupName": one.name,
        "Description": one.name,
        "OwnerId": request.account.account_id,
        "VpcId": one.vpc,
        "IpPermissions": one.inbound,
        "IpPermissionsEgress": one.outbound,
    }


def _interface(request: Request, one: NetworkInterface) -> dict[str, Any]:
    groups = _network(request).groups
    return {
        "NetworkInterfaceId": one.interface_id,
        "InterfaceType": "interface",
        "OwnerId": request.account.account_id,
        "RequesterManaged": True,
        "Status": one.status,
        "PrivateIpAddress": one.address,
        "SubnetId": one.subnet,
        "VpcId": one.vpc,
        "AvailabilityZone": f"{request.region}{one.zone}",
        "Groups": [{"GroupId": name, "GroupName": groups[name].name} for name in one.groups],
    }


SERVICE = Service(
    "ec2",
    {
        "DescribeSecurityGroups": describe_security_groups,
        "DescribeNetworkInterfaces": describe_network_interfaces,
    },
    lambda _: Resource(None, "*"),
)
