"""Security groups and network interfaces, and whether Lustre gets through: which rule is missing, and the command that adds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Literal

LUSTRE_PORTS = (988, *range(1018, 1024))
"""TCP ports of Lustre, of servers and clients alike (FSx for Lustre's user guide, "File system access control with Amazon VPC")."""

STUDIOS = "security-group-for-"
"""Beginning of the names of security groups that Studio makes."""

Direction = Literal["inbound", "outbound"]


@dataclass(frozen=True)
class Rule:
    """What a security group lets through, in one direction.

    Attributes:
        protocol: ``tcp``, another one, or ``-1`` for all.
        first: The first port; None: all.
        last: The last port.
        groups: Security groups that it is for.
        ranges: Address ranges (IPv4) that it is for.
        lists: Managed lists of ranges that it is for; what stands in them is not known here.
    """

    protocol: str
    first: int | None = None
    last: int | None = None
    groups: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    def covers(self, port: int) -> bool:
        """Whether it is about a TCP port."""
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
class Interface:
    """A network interface; `groups` are the security groups that it has, by their ids, with their names."""

    name: str
    vpc: str | None = None
    subnet: str | None = None
    zone: str | None = None
    address: str | None = None
    status: str | None = None
    groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Place:
    """Where something is in the network.

    Attributes:
        title: What it is, such as ``the domain d-example``.
        vpc: Its VPC, where that is known.
        subnets: Its subnets.
        groups: The ids of its security groups.
        interfaces: The ids of its network interfaces, where it says them.
    """

    title: str
    vpc: str | None = None
    subnets: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gap:
    """A rule that is missing.

    Attributes:
        direction: Which way.
        group: The security group that lacks it.
        peer: The security group that it is to name.
        ports: The ports that do not get through.
        answers: Whether it is only for what servers begin: clients usually begin, so that most works without.
    """

    direction: Direction
    group: str
    peer: str
    ports: tuple[int, ...]
    answers: bool = False

    def words(self) -> str:
        """The rule as a sentence's part."""
        ports = ", ".join(
            str(first) if first == last else f"{first}-{last}" for first, last in spans(self.ports)
        )
        way = "from" if self.direction == "inbound" else "to"
        return f"{self.group} has no {self.direction} rule for TCP {ports} {way} {self.peer}"

    def command(self, region: str) -> str:
        """The AWS CLI's command that adds it."""
        verb = "ingress" if self.direction == "inbound" else "egress"
        rules = " ".join(
            f"'IpProtocol=tcp,FromPort={first},ToPort={last},UserIdGroupPairs=[{{GroupId={self.peer}}}]'"
            for first, last in spans(self.ports)
        )
        return (
            f"aws ec2 authorize-security-group-{verb} --region {region} --group-id {self.group} "
            f"--ip-permissions {rules}"
        )


@dataclass(frozen=True)
class Passage:
    """Whether Lustre gets from clients to servers and back: the rules that are missing, and whether managed lists decide it."""

    gaps: tuple[Gap, ...]
    lists: tuple[str, ...] = ()


def lustre_passage(
    clients: Sequence[SecurityGroup], servers: Sequence[SecurityGroup], addresses: Sequence[str]
) -> Passage:
    """What keeps Lustre from getting through between two sets of security groups, each on machines that have all of it.

    A rule for an address range counts when the servers' own addresses lie in it: those of clients are not known here, and such a range is
    nearly always that of the VPC.

    Args:
        clients: The clients' security groups; at least one.
        servers: Those of the file system; at least one.
        addresses: The addresses of the file system's network interfaces.
    """
    gaps, lists = [], set[str]()
    ways: tuple[tuple[Direction, Sequence[SecurityGroup], Sequence[SecurityGroup], bool], ...] = (
        ("inbound", servers, clients, False),
        ("outbound", clients, servers, False),
        ("inbound", clients, servers, True),
        ("outbound", servers, clients, True),
    )
    for direction, owners, peers, answers in ways:
        rules = [
            rule
            for group in owners
            for rule in (group.inbound if direction == "inbound" else group.outbound)
        ]
        peer_names = {group.name for group in peers}
        closed = [port for port in LUSTRE_PORTS if not _passes(port, rules, peer_names, addresses)]
        undecided = {name for rule in rules for name in rule.lists if any(map(rule.covers, closed))}
        if undecided:
            lists |= undecided
        elif closed:
            gaps.append(Gap(direction, _own(owners), _own(peers), tuple(closed), answers))
    return Passage(tuple(gaps), tuple(sorted(lists)))


def _own(groups: Sequence[SecurityGroup]) -> str:
    """The one that a rule is put into: none of those that Studio makes and looks after."""
    return next((one.name for one in groups if not one.title.startswith(STUDIOS)), groups[0].name)


def _passes(port: int, rules: Iterable[Rule], peers: set[str], addresses: Sequence[str]) -> bool:
    return any(
        rule.covers(port) and (peers & set(rule.groups) or _in_range(rule.ranges, addresses))
        for rule in rules
    )


def _in_range(ranges: Iterable[str], addresses: Sequence[str]) -> bool:
    networks = [ip_network(one, strict=False) for one in ranges]
    if not addresses:
        return any(network.prefixlen == 0 for network in networks)
    return all(any(ip_address(one) in network for network in networks) for one in addresses)


def spans(ports: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ports that follow each other, as first and last."""
    begin = last = ports[0]
    for port in ports[1:]:
        if port != last + 1:
            yield begin, last
            begin = port
        last = port
    yield begin, last
