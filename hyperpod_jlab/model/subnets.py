"""Network ACLs and routes of subnets, and whether Lustre gets from one subnet to another: what stops it, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from hyperpod_jlab.model.network import LUSTRE_PORTS, Direction, spans


@dataclass(frozen=True)
class Subnet:
    """A subnet with its VPC and its addresses (a range)."""

    name: str
    vpc: str
    addresses: str

    @property
    def network(self) -> IPv4Network:
        """Its addresses."""
        return IPv4Network(self.addresses, strict=False)


@dataclass(frozen=True)
class AclEntry:
    """An entry of a network ACL; the first one by its number that is about something decides.

    Attributes:
        number: Its number.
        direction: Which way.
        allows: Whether it lets through.
        protocol: ``6`` for TCP, ``-1`` for all.
        addresses: The range of addresses that it is about; None: one of IPv6.
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
        """Whether it is about a TCP port."""
        if self.protocol not in {"-1", "6"}:
            return False
        return self.first is None or self.first <= port <= (self.last or self.first)


@dataclass(frozen=True)
class NetworkAcl:
    """A network ACL, the subnets that have it, and its entries."""

    name: str
    subnets: tuple[str, ...]
    entries: tuple[AclEntry, ...]

    def passes(self, direction: Direction, port: int, peer: IPv4Network) -> bool:
        """Whether it lets a TCP port through, to or from all of some addresses."""
        for entry in sorted(self.entries, key=lambda one: one.number):
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
class Route:
    """A route: addresses (a range; None: a managed list, which is not read, or IPv6), where it leads, and whether that is there."""

    addresses: str | None
    target: str
    works: bool = True


@dataclass(frozen=True)
class RouteTable:
    """A route table, the subnets that name it, whether it is its VPC's main one, and its routes."""

    name: str
    vpc: str
    subnets: tuple[str, ...]
    main: bool
    routes: tuple[Route, ...]

    def route_to(self, peer: IPv4Network) -> Route | None:
        """The route to some addresses: the narrowest one; None: there is none."""
        found = [
            (network.prefixlen, route)
            for route in self.routes
            if route.addresses is not None
            and peer.subnet_of(network := IPv4Network(route.addresses, strict=False))
        ]
        return max(found, key=lambda pair: pair[0])[1] if found else None


@dataclass(frozen=True)
class Closed:
    """Ports that a network ACL does not let through in one direction, to or from a subnet of which it is not."""

    acl: NetworkAcl
    subnet: str
    direction: Direction
    ports: tuple[int, ...]
    peer: Subnet

    def words(self) -> str:
        """It as a sentence's part."""
        ports = ", ".join(
            str(first) if first == last else f"{first}-{last}" for first, last in spans(self.ports)
        )
        way = "in from" if self.direction == "inbound" else "out to"
        return f"{self.acl.name} of {self.subnet} does not let TCP {ports} {way} {self.peer.addresses} ({self.peer.name})"

    def commands(self, region: str) -> list[str]:
        """The AWS CLI's commands that add what is missing, before all that is there; none where there is no number left before it."""
        taken = {one.number for one in self.acl.entries if one.direction == self.direction}
        ranges = list(spans(self.ports))
        first = min(taken, default=100) - len(ranges)
        if first < 1:
            return []
        way = "ingress" if self.direction == "inbound" else "egress"
        return [
            f"aws ec2 create-network-acl-entry --region {region} --network-acl-id {self.acl.name} --{way} --rule-number {number} "
            f"--protocol tcp --port-range From={begin},To={end} --cidr-block {self.peer.addresses} --rule-action allow"
            for number, (begin, end) in enumerate(ranges, first)
        ]


def closed_ports(client: Subnet, server: Subnet, acls: Iterable[NetworkAcl]) -> list[Closed]:
    """What network ACLs stop of Lustre between two subnets. They keep no state, so answers need their own entries; within one subnet they are not asked.

    Args:
        client: A subnet of clients.
        server: A subnet of the file system.
        acls: The network ACLs of both; one that is missing stops nothing here.
    """
    if client.name == server.name:
        return []
    known = {name: acl for acl in acls for name in acl.subnets}
    ways: tuple[Direction, Direction] = ("outbound", "inbound")
    found = []
    for own, peer in ((client, server), (server, client)):
        acl = known.get(own.name)
        if acl is None:
            continue
        for direction in ways:
            ports = [port for port in LUSTRE_PORTS if not acl.passes(direction, port, peer.network)]
            if ports:
                found.append(Closed(acl, own.name, direction, tuple(ports), peer))
    return found


@dataclass(frozen=True)
class Astray:
    """A subnet from which nothing gets to another one: its route table, and the route that leads elsewhere (None: there is none)."""

    table: RouteTable
    subnet: str
    route: Route | None
    peer: Subnet

    def words(self) -> str:
        """It as a sentence's part."""
        way = f"{self.peer.addresses} ({self.peer.name})"
        if self.route is None:
            return f"{self.table.name} of {self.subnet} has no route to {way}"
        if not self.route.works:
            return f"the route of {self.table.name} of {self.subnet} to {way} leads to {self.route.target}, which is gone"
        return f"{self.table.name} of {self.subnet} sends what is for {way} to {self.route.target}, out of the network"

    def command(self, region: str) -> str:
        """The AWS CLI's command that adds the route, once the two networks are connected."""
        verb = "create-route"
        if self.route is not None and self.route.addresses == self.peer.addresses:
            verb = "replace-route"
        return (
            f"aws ec2 {verb} --region {region} --route-table-id {self.table.name} --destination-cidr-block {self.peer.addresses} "
            "--vpc-peering-connection-id ID (or --transit-gateway-id ID)"
        )


_OUT = ("igw-", "nat-", "eigw-")
"""Beginnings of what leads to the internet, where no file system is."""


def astray(client: Subnet, server: Subnet, tables: Iterable[RouteTable]) -> list[Astray]:
    """Which of two subnets has no way to the other.

    Args:
        client: A subnet of clients.
        server: A subnet of the file system.
        tables: The route tables of their VPCs; one that is missing is taken to be well, and so is one with a managed list and no other route.
    """
    known = list(tables)
    found = []
    for own, peer in ((client, server), (server, client)):
        table = _table_of(own, known)
        if table is None:
            continue
        route = table.route_to(peer.network)
        if route is None and any(one.addresses is None for one in table.routes):
            continue
        if route is None or not route.works or route.target.startswith(_OUT):
            found.append(Astray(table, own.name, route, peer))
    return found


def _table_of(subnet: Subnet, tables: list[RouteTable]) -> RouteTable | None:
    own = (table for table in tables if subnet.name in table.subnets)
    main = (table for table in tables if table.main and table.vpc == subnet.vpc)
    return next(own, None) or next(main, None)
