"""EC2: the operations on subnets, route tables and instance types, asked for by filters.

What it says of instance types is not all EC2's own: `instance_types` says which of it is.
"""

from __future__ import annotations

from typing import Any

from testbed.aws.ground import InstanceType
from testbed.aws.network import Network, Subnet
from testbed.aws.operations import Request
from testbed.aws.replies import ApiError


def describe_subnets(request: Request) -> dict[str, Any]:
    filters = _filters(request, "subnet-id", "vpc-id")
    shown = [
        {
            "SubnetId": one.subnet_id,
            "VpcId": one.vpc,
            "CidrBlock": one.addresses,
            "AvailabilityZone": f"{request.region}{one.zone}",
            "AvailableIpAddressCount": one.free,
            "State": "available",
        }
        for one in _network(request).subnets.values()
        if one.subnet_id in filters.get("subnet-id", [one.subnet_id]) and one.vpc in filters.get("vpc-id", [one.vpc])
    ]
    return {"Subnets": shown}


def describe_route_tables(request: Request) -> dict[str, Any]:
    """Each subnet with a gateway has a table of its own; all others have their VPC's main one."""
    filters = _filters(request, "vpc-id")
    subnets = [one for one in _network(request).subnets.values() if one.vpc in filters.get("vpc-id", [one.vpc])]
    more = _network(request).routes
    own = [_table(one, more) for one in subnets if one.gateway is not None]
    main = [
        {
            "RouteTableId": f"rtb-{vpc.removeprefix('vpc-')}",
            "VpcId": vpc,
            "Associations": [{"Main": True}],
            "Routes": [_LOCAL],
        }
        for vpc in sorted({one.vpc for one in subnets})
    ]
    return {"RouteTables": [*own, *main]}


_LOCAL = {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local", "State": "active"}


def _table(subnet: Subnet, more: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    gateway = str(subnet.gateway)
    member = "GatewayId" if gateway.startswith("igw-") else "NatGatewayId"
    out = {"DestinationCidrBlock": "0.0.0.0/0", member: gateway, "State": "active"}
    return {
        "RouteTableId": f"rtb-{subnet.subnet_id.removeprefix('subnet-')}",
        "VpcId": subnet.vpc,
        "Associations": [{"Main": False, "SubnetId": subnet.subnet_id}],
        "Routes": [_LOCAL, out, *more.get(subnet.subnet_id, ())],
    }


def describe_network_acls(request: Request) -> dict[str, Any]:
    wanted = _filters(request, "association.subnet-id").get("association.subnet-id")
    shown = [
        {
            "NetworkAclId": one.acl_id,
            "VpcId": one.vpc,
            "IsDefault": True,
            "OwnerId": request.account.account_id,
            "Associations": [{"NetworkAclId": one.acl_id, "SubnetId": subnet} for subnet in one.subnets],
            "Entries": one.entries,
        }
        for one in _network(request).acls.values()
        if wanted is None or set(wanted) & set(one.subnets)
    ]
    return {"NetworkAcls": shown}


def describe_instance_types(request: Request) -> dict[str, Any]:
    """The account's types (``Ground.types``). Where those of the example account are from, and so what they can check, says `instance_types`."""
    filters = _filters(request, "instance-type")
    shown = [
        _shown_type(one)
        for one in request.account.ground.types.values()
        if one.name in filters.get("instance-type", [one.name])
    ]
    return {"InstanceTypes": shown}


def _shown_type(one: InstanceType) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "InstanceType": one.name,
        "CurrentGeneration": one.current,
        "VCpuInfo": {"DefaultVCpus": one.vcpus, "ValidThreadsPerCore": list(one.threads)},
        "MemoryInfo": {"SizeInMiB": one.memory},
        "NetworkInfo": {
            "MaximumNetworkCards": one.cards,
            "Ipv4AddressesPerInterface": one.addresses,
            "EfaSupported": one.efa != 0,
            **({"EfaInfo": {"MaximumEfaInterfaces": one.efa}} if one.efa else {}),
        },
    }
    if one.gpus is not None:
        count, name = one.gpus
        shown["GpuInfo"] = {"Gpus": [{"Name": name, "Manufacturer": "NVIDIA", "Count": count}]}
    if one.neurons is not None:
        count, name = one.neurons
        cores = {"Count": one.cores, "Version": 2}
        shown["NeuronInfo"] = {"NeuronDevices": [{"Name": name, "Count": count, "CoreInfo": cores}]}
    return shown


def _filters(request: Request, *known: str) -> dict[str, list[str]]:
    filters = {one["Name"]: one["Values"] for one in request.given.get("Filters", ())}
    if extra := filters.keys() - {*known}:
        raise ApiError("InvalidParameterValue", f"The filter '{min(extra)}' is invalid")
    return filters


def _network(request: Request) -> Network:
    return request.account.networks.get(request.region) or Network()
