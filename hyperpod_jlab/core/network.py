"""Security groups and network interfaces, and whether Lustre traffic gets through: the missing rule, and the command that adds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_address, ip_network
from typing import Literal

LUSTRE_PORTS = (988, *range(1018, 1024))
"""TCP ports of Lustre, for servers and clients alike (FSx for Lustre's user guide, "File system access control with Amazon VPC")."""

STUDIO_GROUP_PREFIX = "security-group-for-"
"""Name prefixes of security groups that Studio creates."""

Direction = Literal["inbound", "outbound"]


@dataclass(frozen=True)
class Rule:
    """A rule of a security group, in one direction.

    Attributes:
        protocol: ``tcp``, another one, or ``-1`` for all.
        first: The first port; None: all.
        last: The last port.
        groups: Security groups that it applies to.
        ranges: IPv4 address ranges that it applies to.
        lists: Managed prefix lists that it applies to; their entries are unknown here.
    """

    protocol: str
    first: int | None = None
    last: int | None = None
    groups: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    def covers(self, port: int) -> bool:
        """Whether it covers a TCP port."""
        if self.protocol == "-1":
            return True
        if self.protocol not in {"tcp", "6"}:
            return False
        return self.first is None or self.first <= port <= (self.last or self.first)


@dataclass(frozen=True)
class SecurityGroup:
    """A security group."""

    name: str
    vpc: str | None = None
    title: str = ""
    inbound: tuple[Rule, ...] = ()
    outbound: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class NetworkInterface:
    """A network interface; `groups` are the ids and names of its security groups."""

    name: str
    vpc: str | None = None
    subnet: str | None = None
    zone: str | None = None
    address: str | None = None
    status: str | None = None
    groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NetworkLocation:
    """The network location of a resource.

    Attributes:
        title: Its name, such as ``the domain d-example``.
        vpc: Its VPC, if known.
        subnets: Its subnets.
        groups: The ids of its security groups.
        interfaces: The ids of its network interfaces, if it lists them.
    """

    title: str
    vpc: str | None = None
    subnets: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class MissingRule:
    """A missing rule.

    Attributes:
        direction: Inbound or outbound.
        group: The security group that lacks it.
        peer: The security group that it must name.
        ports: The blocked ports.
        is_reply: Whether it only concerns connections that servers open: clients usually open them, so most things work without.
    """

    direction: Direction
    group: str
    peer: str
    ports: tuple[int, ...]
    is_reply: bool = False

    def words(self) -> str:
        """The rule as part of a sentence."""
        ports = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in port_ranges(self.ports))
        preposition = "from" if self.direction == "inbound" else "to"
        return f"{self.group} has no {self.direction} rule for TCP {ports} {preposition} {self.peer}"

    def command(self, region: str) -> str:
        """The AWS CLI command that adds it."""
        verb = "ingress" if self.direction == "inbound" else "egress"
        rules = " ".join(
            f"'IpProtocol=tcp,FromPort={first},ToPort={last},UserIdGroupPairs=[{{GroupId={self.peer}}}]'"
            for first, last in port_ranges(self.ports)
        )
        return (
            f"aws ec2 authorize-security-group-{verb} --region {region} --group-id {self.group} "
            f"--ip-permissions {rules}"
        )


@dataclass(frozen=True)
class LustreAccess:
    """Whether Lustre traffic passes between clients and servers: the missing rules, and whether managed prefix lists decide."""

    missing_rules: tuple[MissingRule, ...]
    lists: tuple[str, ...] = ()


def check_lustre_access(
    clients: Sequence[SecurityGroup], servers: Sequence[SecurityGroup], addresses: Sequence[str]
) -> LustreAccess:
    """Find what blocks Lustre between two sets of security groups, each on machines that have all of the set.

    A rule for an address range counts if it contains the servers' addresses: those of clients are unknown here, and such a range is
    nearly always the VPC's.

    Args:
        clients: The clients' security groups; at least one.
        servers: Those of the file system; at least one.
        addresses: The addresses of the file system's network interfaces.
    """
    missing_rules, lists = [], set[str]()
    checks: tuple[tuple[Direction, Sequence[SecurityGroup], Sequence[SecurityGroup], bool], ...] = (
        ("inbound", servers, clients, False),
        ("outbound", clients, servers, False),
        ("inbound", clients, servers, True),
        ("outbound", servers, clients, True),
    )
    for direction, owners, peers, is_reply in checks:
        rules = [rule for group in owners for rule in (group.inbound if direction == "inbound" else group.outbound)]
        peer_names = {group.name for group in peers}
        blocked = [port for port in LUSTRE_PORTS if not _allows(port, rules, peer_names, addresses)]
        uncertain = {name for rule in rules for name in rule.lists if any(map(rule.covers, blocked))}
        if uncertain:
            lists |= uncertain
        elif blocked:
            missing_rules.append(
                MissingRule(direction, _editable_group(owners), _editable_group(peers), tuple(blocked), is_reply)
            )
    return LustreAccess(tuple(missing_rules), tuple(sorted(lists)))


def _editable_group(groups: Sequence[SecurityGroup]) -> str:
    """The group to add a rule to: not one that Studio creates and manages."""
    return next((group.name for group in groups if not group.title.startswith(STUDIO_GROUP_PREFIX)), groups[0].name)


def _allows(port: int, rules: Iterable[Rule], peers: set[str], addresses: Sequence[str]) -> bool:
    return any(rule.covers(port) and (peers & set(rule.groups) or _in_range(rule.ranges, addresses)) for rule in rules)


def _in_range(ranges: Iterable[str], addresses: Sequence[str]) -> bool:
    networks = [ip_network(value, strict=False) for value in ranges]
    if not addresses:
        return any(network.prefixlen == 0 for network in networks)
    return all(any(ip_address(value) in network for network in networks) for value in addresses)


def port_ranges(ports: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive ports, as first and last."""
    begin = last = ports[0]
    for port in ports[1:]:
        if port != last + 1:
            yield begin, last
            begin = port
        last = port
    yield begin, last


# --------------------------------------------------------------------------------------------------
# Network ACLs and routes, and whether Lustre traffic gets from one subnet to another: what blocks
# it, and the command that fixes it.


@dataclass(frozen=True)
class Subnet:
    """A subnet with its VPC and its address range."""

    name: str
    vpc: str
    addresses: str

    @property
    def network(self) -> IPv4Network:
        """Its address range."""
        return IPv4Network(self.addresses, strict=False)


@dataclass(frozen=True)
class AclEntry:
    """An entry of a network ACL; the lowest-numbered matching entry decides.

    Attributes:
        number: Its number.
        direction: Inbound or outbound.
        allows: Whether it allows traffic.
        protocol: ``6`` for TCP, ``-1`` for all.
        addresses: Its address range; None: IPv6.
        first: The first port; None: all.
        last: The last port.
    """

    number: int
    direction: Direction
    allows: bool
    protocol: str
    addresses: str | None
    first: int | None = None
    last: int | None = None

    def covers(self, port: int) -> bool:
        """Whether it covers a TCP port."""
        if self.protocol not in {"-1", "6"}:
            return False
        return self.first is None or self.first <= port <= (self.last or self.first)


@dataclass(frozen=True)
class NetworkAcl:
    """A network ACL, its subnets, and its entries."""

    name: str
    subnets: tuple[str, ...]
    entries: tuple[AclEntry, ...]

    def allows_port(self, direction: Direction, port: int, peer: IPv4Network) -> bool:
        """Whether it allows a TCP port, to or from an entire address range."""
        for entry in sorted(self.entries, key=lambda item: item.number):
            if entry.direction != direction or entry.addresses is None or not entry.covers(port):
                continue
            addresses = IPv4Network(entry.addresses, strict=False)
            if not addresses.overlaps(peer):
                continue
            if not entry.allows:
                return False
            if peer.subnet_of(addresses):
                return True
        return False


@dataclass(frozen=True)
class NetworkRoute:
    """A route: its destination (a range; None: a managed prefix list, which is not read, or IPv6), its target, and whether the target exists."""

    addresses: str | None
    target: str
    works: bool = True


@dataclass(frozen=True)
class RouteTable:
    """A route table, the subnets that name it, whether it is its VPC's main table, and its routes."""

    name: str
    vpc: str
    subnets: tuple[str, ...]
    main: bool
    routes: tuple[NetworkRoute, ...]

    def route_to(self, peer: IPv4Network) -> NetworkRoute | None:
        """The most specific route to an address range, or None."""
        matches = [
            (network.prefixlen, route)
            for route in self.routes
            if route.addresses is not None and peer.subnet_of(network := IPv4Network(route.addresses, strict=False))
        ]
        return max(matches, key=lambda pair: pair[0])[1] if matches else None


@dataclass(frozen=True)
class ClosedPorts:
    """Ports that a subnet's network ACL blocks in one direction, to or from another subnet."""

    acl: NetworkAcl
    subnet: str
    direction: Direction
    ports: tuple[int, ...]
    peer: Subnet

    def words(self) -> str:
        """It as part of a sentence."""
        ports = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in port_ranges(self.ports))
        preposition = "in from" if self.direction == "inbound" else "out to"
        return f"{self.acl.name} of {self.subnet} does not allow TCP {ports} {preposition} {self.peer.addresses} ({self.peer.name})"

    def commands(self, region: str) -> list[str]:
        """The AWS CLI commands that add the missing entries before the existing ones; empty if no lower number is free."""
        used_numbers = {entry.number for entry in self.acl.entries if entry.direction == self.direction}
        ranges = list(port_ranges(self.ports))
        first = min(used_numbers, default=100) - len(ranges)
        if first < 1:
            return []
        flow = "ingress" if self.direction == "inbound" else "egress"
        return [
            f"aws ec2 create-network-acl-entry --region {region} --network-acl-id {self.acl.name} --{flow} --rule-number {number} "
            f"--protocol tcp --port-range From={begin},To={end} --cidr-block {self.peer.addresses} --rule-action allow"
            for number, (begin, end) in enumerate(ranges, first)
        ]


def find_closed_ports(client: Subnet, server: Subnet, acls: Iterable[NetworkAcl]) -> list[ClosedPorts]:
    """Find Lustre ports that network ACLs block between two subnets. ACLs are stateless, so replies need their own entries; they do not apply within a subnet.

    Args:
        client: A subnet of clients.
        server: A subnet of the file system.
        acls: The network ACLs of both; a missing one blocks nothing.
    """
    if client.name == server.name:
        return []
    acl_by_subnet = {name: acl for acl in acls for name in acl.subnets}
    directions: tuple[Direction, Direction] = ("outbound", "inbound")
    blocked_ports = []
    for subnet, peer in ((client, server), (server, client)):
        acl = acl_by_subnet.get(subnet.name)
        if acl is None:
            continue
        for direction in directions:
            ports = [port for port in LUSTRE_PORTS if not acl.allows_port(direction, port, peer.network)]
            if ports:
                blocked_ports.append(ClosedPorts(acl, subnet.name, direction, tuple(ports), peer))
    return blocked_ports


@dataclass(frozen=True)
class MissingRoute:
    """A subnet without a route to another: its route table, and the route that leads elsewhere, or None."""

    table: RouteTable
    subnet: str
    route: NetworkRoute | None
    peer: Subnet

    def words(self) -> str:
        """It as part of a sentence."""
        destination = f"{self.peer.addresses} ({self.peer.name})"
        if self.route is None:
            return f"{self.table.name} of {self.subnet} has no route to {destination}"
        if not self.route.works:
            return f"the route of {self.table.name} of {self.subnet} to {destination} goes to {self.route.target}, which no longer exists"
        return f"{self.table.name} of {self.subnet} routes traffic for {destination} to {self.route.target}, out of the network"

    def command(self, region: str) -> str:
        """The AWS CLI command that adds the route, once the two networks are connected."""
        verb = "create-route"
        if self.route is not None and self.route.addresses == self.peer.addresses:
            verb = "replace-route"
        return (
            f"aws ec2 {verb} --region {region} --route-table-id {self.table.name} --destination-cidr-block {self.peer.addresses} "
            "--vpc-peering-connection-id ID (or --transit-gateway-id ID)"
        )


_GATEWAY_PREFIXES = ("igw-", "nat-", "eigw-")
"""Prefixes of internet gateways' ids, which lead to no file system."""


def find_missing_routes(client: Subnet, server: Subnet, tables: Iterable[RouteTable]) -> list[MissingRoute]:
    """Find which of two subnets lacks a route to the other.

    Args:
        client: A subnet of clients.
        server: A subnet of the file system.
        tables: The route tables of their VPCs; a missing table counts as correct, and so does one with a managed prefix list and no other route.
    """
    known_tables = list(tables)
    missing = []
    for subnet, peer in ((client, server), (server, client)):
        table = _table_of(subnet, known_tables)
        if table is None:
            continue
        route = table.route_to(peer.network)
        if route is None and any(entry.addresses is None for entry in table.routes):
            continue
        if route is None or not route.works or route.target.startswith(_GATEWAY_PREFIXES):
            missing.append(MissingRoute(table, subnet.name, route, peer))
    return missing


def _table_of(subnet: Subnet, tables: list[RouteTable]) -> RouteTable | None:
    own_tables = (table for table in tables if subnet.name in table.subnets)
    main = (table for table in tables if table.main and table.vpc == subnet.vpc)
    return next(own_tables, None) or next(main, None)
