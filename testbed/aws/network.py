"""What there is in a region's network: security groups and network interfaces; plain data, to be changed by tests as they like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VPC = "vpc-0123456789abcdef0"
SUBNET, OTHER_SUBNET = "subnet-0123456789abcdef0", "subnet-0fedcba9876543210"


def open_to(*groups: str) -> list[dict[str, Any]]:
    """The rules that Lustre needs, as EC2 has them: its ports from or to these security groups."""
    pairs = [{"GroupId": group} for group in groups]
    return [
        {"IpProtocol": "tcp", "FromPort": first, "ToPort": last, "UserIdGroupPairs": pairs}
        for first, last in ((988, 988), (1018, 1023))
    ]


EVERYWHERE: list[dict[str, Any]] = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
"""What a new security group lets out."""


@dataclass
class SecurityGroup:
    """A security group; rules as EC2 has them."""

    group_id: str
    name: str
    inbound: list[dict[str, Any]] = field(default_factory=list)
    outbound: list[dict[str, Any]] = field(default_factory=lambda: list(EVERYWHERE))
    vpc: str = VPC


@dataclass
class NetworkInterface:
    """A network interface."""

    interface_id: str
    groups: list[str]
    address: str
    subnet: str = SUBNET
    vpc: str = VPC
    zone: str = "a"
    status: str = "in-use"
    tags: dict[str, str] = field(default_factory=dict)


@dataclass
class Subnet:
    """A subnet; `gateway` is where its own route table leads to besides its VPC, None where it has the VPC's main one, which leads nowhere."""

    subnet_id: str
    vpc: str = VPC
    zone: str = "a"
    free: int = 250
    gateway: str | None = "nat-0123456789abcdef0"
    addresses: str = "10.0.1.0/24"


def acl_entry(number: int, action: str, *, egress: bool, **more: Any) -> dict[str, Any]:
    """An entry of a network ACL, as EC2 has it: for all addresses and protocols, unless more is said."""
    return {
        "RuleNumber": number,
        "RuleAction": action,
        "Egress": egress,
        "Protocol": "-1",
        "CidrBlock": "0.0.0.0/0",
        **more,
    }


def _all_pass() -> list[dict[str, Any]]:
    return [
        acl_entry(number, action, egress=egress)
        for egress in (False, True)
        for number, action in ((100, "allow"), (32767, "deny"))
    ]


@dataclass
class NetworkAcl:
    """A network ACL; entries as EC2 has them."""

    acl_id: str
    vpc: str = VPC
    subnets: list[str] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=_all_pass)


@dataclass
class Network:
    """Security groups, network interfaces, subnets and network ACLs by their ids; routes that subnets have besides, as EC2 has them."""

    groups: dict[str, SecurityGroup] = field(default_factory=dict)
    interfaces: dict[str, NetworkInterface] = field(default_factory=dict)
    subnets: dict[str, Subnet] = field(default_factory=dict)
    acls: dict[str, NetworkAcl] = field(default_factory=dict)
    routes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, *things: SecurityGroup | NetworkInterface | Subnet | NetworkAcl) -> None:
        """Add some."""
        for one in things:
            if isinstance(one, SecurityGroup):
                self.groups[one.group_id] = one
            elif isinstance(one, NetworkAcl):
                self.acls[one.acl_id] = one
            elif isinstance(one, Subnet):
                self.subnets[one.subnet_id] = one
            else:
                self.interfaces[one.interface_id] = one
