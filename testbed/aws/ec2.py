"""EC2: the operations on security groups and network interfaces that are named by their ids."""

from __future__ import annotations

from typing import Any

from testbed.aws.ec2_ground import (
    describe_instance_types,
    describe_network_acls,
    describe_route_tables,
    describe_subnets,
)
from testbed.aws.network import Network, NetworkInterface, SecurityGroup
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError

MOST_GROUPS = 5
"""Security groups that an interface can have (VPC quotas)."""


def describe_security_groups(request: Request) -> dict[str, Any]:
    known = _network(request).groups
    wanted = request.given.get("GroupIds")
    for name in wanted or ():
        if name not in known:
            words = f"The security group '{name}' does not exist"
            raise ApiError("InvalidGroup.NotFound", words)
    found = list(known.values()) if wanted is None else [known[name] for name in wanted]
    filters = {one["Name"]: one["Values"] for one in request.given.get("Filters", ())}
    if extra := filters.keys() - {"group-id", "group-name", "vpc-id"}:
        raise ApiError("InvalidParameterValue", f"The filter '{min(extra)}' is invalid")
    shown = [
        one
        for one in found
        if one.name in filters.get("group-name", [one.name])
        and one.group_id in filters.get("group-id", [one.group_id])
        and one.vpc in filters.get("vpc-id", [one.vpc])
    ]
    return {"SecurityGroups": [_group(request, one) for one in shown]}


def describe_network_interfaces(request: Request) -> dict[str, Any]:
    known = _network(request).interfaces
    wanted = request.given.get("NetworkInterfaceIds")
    for name in wanted or ():
        if name not in known:
            words = f"The networkInterface ID '{name}' does not exist"
            raise ApiError("InvalidNetworkInterfaceID.NotFound", words)
    found = list(known.values()) if wanted is None else [known[name] for name in wanted]
    return {"NetworkInterfaces": [_interface(request, one) for one in found]}


def modify_network_interface_attribute(request: Request) -> dict[str, Any]:
    network, name = _network(request), request.given["NetworkInterfaceId"]
    if name not in network.interfaces:
        words = f"The networkInterface ID '{name}' does not exist"
        raise ApiError("InvalidNetworkInterfaceID.NotFound", words)
    groups = request.given.get("Groups", network.interfaces[name].groups)
    for one in groups:
        if one not in network.groups:
            raise ApiError("InvalidGroup.NotFound", f"The security group '{one}' does not exist")
    if len(groups) > MOST_GROUPS:
        words = "The maximum number of security groups per interface has been reached."
        raise ApiError("SecurityGroupsPerInterfaceLimitExceeded", words)
    network.interfaces[name].groups = list(groups)
    return {}


def delete_security_group(request: Request) -> dict[str, Any]:
    network, name = _network(request), request.given["GroupId"]
    _known_group(request)
    rules = [rule for one in network.groups.values() if one.group_id != name for rule in (*one.inbound, *one.outbound)]
    named = {pair["GroupId"] for rule in rules for pair in rule.get("UserIdGroupPairs", ())}
    if name in named or any(name in one.groups for one in network.interfaces.values()):
        raise ApiError("DependencyViolation", f"resource {name} has a dependent object")
    del network.groups[name]
    return {}


def revoke_security_group_ingress(request: Request) -> dict[str, Any]:
    group, gone = _known_group(request), request.given["IpPermissions"]
    group.inbound = [rule for rule in group.inbound if rule not in gone]
    return {}


def revoke_security_group_egress(request: Request) -> dict[str, Any]:
    group, gone = _known_group(request), request.given["IpPermissions"]
    group.outbound = [rule for rule in group.outbound if rule not in gone]
    return {}


def _known_group(request: Request) -> SecurityGroup:
    name = request.given["GroupId"]
    found = _network(request).groups.get(name)
    if found is None:
        raise ApiError("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
    return found


def create_tags(request: Request) -> dict[str, Any]:
    for one in _tagged(request):
        one.tags.update({tag["Key"]: tag["Value"] for tag in request.given["Tags"]})
    return {}


def delete_tags(request: Request) -> dict[str, Any]:
    for one in _tagged(request):
        for tag in request.given.get("Tags", ()):
            one.tags.pop(tag["Key"], None)
    return {}


def _tagged(request: Request) -> list[NetworkInterface]:
    known = _network(request).interfaces
    for name in request.given["Resources"]:
        if name not in known:
            words = f"The networkInterface ID '{name}' does not exist"
            raise ApiError("InvalidNetworkInterfaceID.NotFound", words)
    return [known[name] for name in request.given["Resources"]]


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
        "TagSet": [{"Key": name, "Value": value} for name, value in sorted(one.tags.items())],
    }


def _resource(request: Request) -> Resource:
    """What is changed, as IAM names it; descriptions are of nothing single."""
    named = request.given.get("NetworkInterfaceId") or next(iter(request.given.get("Resources", ())), None)
    account = request.account
    where = f"{account.partition}:ec2:{request.region}:{account.account_id}"
    group = request.given.get("GroupId")
    if group is not None:
        return Resource(group, f"arn:{where}:security-group/{group}")
    if named is None:
        return Resource(None, "*")
    # Each group that an interface gets is asked for too (service authorization reference of EC2).
    groups = tuple(f"arn:{where}:security-group/{one}" for one in request.given.get("Groups", ()))
    return Resource(named, f"arn:{where}:network-interface/{named}", groups)


SERVICE = Service(
    "ec2",
    {
        "DescribeSecurityGroups": describe_security_groups,
        "DescribeNetworkInterfaces": describe_network_interfaces,
        "DescribeNetworkAcls": describe_network_acls,
        "DescribeSubnets": describe_subnets,
        "DescribeRouteTables": describe_route_tables,
        "DescribeInstanceTypes": describe_instance_types,
        "ModifyNetworkInterfaceAttribute": modify_network_interface_attribute,
        "DeleteSecurityGroup": delete_security_group,
        "RevokeSecurityGroupIngress": revoke_security_group_ingress,
        "RevokeSecurityGroupEgress": revoke_security_group_egress,
        "CreateTags": create_tags,
        "DeleteTags": delete_tags,
    },
    _resource,
)
