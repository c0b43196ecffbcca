"""Steps on the network between this space, the clusters and their file systems: security groups and network interfaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, ok, unknown, warn
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.network import (
    ClosedPorts,
    LustreAccess,
    MissingRoute,
    NetworkInterface,
    NetworkLocation,
    Subnet,
    check_lustre_access,
    find_closed_ports,
    find_missing_routes,
)
from hyperpod_jlab.features.doctor.aws import HYPERPOD, ROLE, AtAws, file_system_of
from hyperpod_jlab.features.doctor.models import CONFIGURATION

_INBOUND = "security-group-for-inbound-nfs-"
"""Beginning of the name of the security group that Studio makes for the servers of a domain's file systems; its end is the domain's id."""


class NetworkLooks:
    """Looks at the network around the file systems that matter here."""

    def __init__(self, at_aws: AtAws) -> None:
        self._at = at_aws

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            CheckStep(
                "security-groups", "security groups", "security-groups", self._groups, needs=needs
            ),
            CheckStep(
                "interfaces", "network interfaces", "interfaces", self._interfaces, needs=needs
            ),
        ]

    async def _groups(self) -> CheckResult | None:
        if not self._at.concerned:
            return None
        told = [
            await self._passage(name, client)
            for name in await self._at.file_systems()
            for client in await self.clients(name)
        ]
        return joined(told)

    async def _interfaces(self) -> CheckResult | None:
        if not self._at.concerned:
            return None
        return joined([await self._place(name) for name in await self._at.file_systems()])

    async def clients(self, name: str) -> list[NetworkLocation]:
        """Who mounts a file system: this domain, and the clusters that matter here and name it."""
        domain = await self._at.known(self._at.place_of_domain())
        clusters = [
            await self._at.place_of_cluster(cluster.name)
            for cluster in await self._at.our_clusters()
            if name in {file_system_of(one.dns_name) for one in cluster.storage}
        ]
        return [*([domain] if domain else []), *clusters]

    async def _passage(self, name: str, client: NetworkLocation) -> CheckResult:
        interfaces = await self._at.interfaces_of(name)
        servers = tuple({group for one in interfaces for group, _ in one.groups})
        way = f"{client.title} and {name}"
        if not client.groups or not servers:
            which = client.title if servers else name
            return unknown(f"AWS shows no security groups of {which}")
        passage = check_lustre_access(
            await self._at.groups(client.groups),
            await self._at.groups(servers),
            [one.address for one in interfaces if one.address],
        )
        works = client.title.startswith("the domain") and await self._at.is_mounted(name)
        return _of_passage(way, passage, await self._at.aws.region(), works=works)

    async def _place(self, name: str) -> CheckResult:
        place = await self._at.place_of_file_system(name)
        interfaces = await self._at.interfaces_of(name)
        if not interfaces:
            return unknown(f"AWS shows no network interfaces of {name}")
        dead = [one.name for one in interfaces if one.status != "in-use"]
        if dead:
            words = f"{', '.join(dead)} of {name} are not in use"
            return fail(words, f"check {name} in the FSx console", "admin")
        mounted = await self._at.is_mounted(name)
        region = await self._at.aws.region()
        for client in await self.clients(name):
            apart = _apart(name, place, client, region)
            if apart is not None:
                return warn(apart.evidence, apart.fix, "admin") if mounted else apart
        studio = self._at.studio
        if studio is not None and studio.domain_id:
            lacking = _without_inbound(studio.domain_id, interfaces)
            if lacking:
                return await self._lacking(name, studio.domain_id, lacking, mounted)
        for client in await self.clients(name):
            other = await self._other_vpc(name, place, client)
            if other is not None:
                return other
        zones = ", ".join(sorted({one.zone for one in interfaces if one.zone}))
        return ok(f"{name}: {len(interfaces)} in {place.vpc}, {', '.join(place.subnets)} ({zones})")

    async def _other_vpc(
        self, name: str, place: NetworkLocation, client: NetworkLocation
    ) -> CheckResult | None:
        """Whether a cluster is in another VPC, by its security groups: AWS names none of its own."""
        if client.vpc is not None or not client.groups:
            return None
        try:
            found = {group.vpc for group in await self._at.groups(client.groups)}
        except HyperpodError:  # the step on security groups says it
            return None
        if place.vpc in found:
            return None
        other = ", ".join(sorted(one for one in found if one))
        return warn(
            f"{name} is in {place.vpc}, but {client.title} is in {other}; they can connect only by peering or a transit gateway",
            f"use a file system in {other}, or connect the two",
            "admin",
        )

    async def _lacking(
        self, name: str, domain: str, lacking: Sequence[NetworkInterface], mounted: bool
    ) -> CheckResult:
        """Interfaces without the group that Studio wants on each."""
        wanted, first = f"{_INBOUND}{domain}", lacking[0]
        names = ", ".join(one.name for one in lacking)
        words = f"{names} of {name} do not have the security group {wanted}; Studio requires it on each interface, otherwise applications do not start"
        region = await self._at.aws.region()
        kept = " ".join(group for group, _ in first.groups)
        fix = f"aws ec2 modify-network-interface-attribute --region {region} --network-interface-id {first.name} --groups {kept} ID-OF-{wanted}"
        if len(lacking) > 1:
            fix += ", and the same for the others"
        return warn(words, fix, "admin") if mounted else fail(words, fix, "admin")


def joined(told: Sequence[CheckResult]) -> CheckResult | None:
    """Several looks as one: the worst level, all evidence of it, every fix once; None for none."""
    if not told:
        return None
    order = ("ok", "unknown", "warn", "fail")
    worst = max(told, key=lambda one: order.index(one.level))
    same = [one for one in told if one.level == worst.level]
    fixes = dict.fromkeys(one.fix for one in same if one.fix)
    return CheckResult(
        worst.level,
        "; ".join(dict.fromkeys(one.evidence for one in same)),
        "\n".join(fixes) or None,
        worst.who,
    )


def _of_passage(way: str, passage: LustreAccess, region: str, *, works: bool) -> CheckResult:
    fix = "\n".join(gap.command(region) for gap in passage.missing_rules)
    words = "; ".join(gap.words() for gap in passage.missing_rules)
    if any(not gap.is_reply for gap in passage.missing_rules):
        if works:
            return warn(f"{way}: it is mounted, but {words}", fix, "admin")
        return fail(f"{way}: Lustre traffic is blocked: {words}", fix, "admin")
    if passage.lists:
        lists = ", ".join(passage.lists)
        return unknown(f"{way}: the prefix lists {lists} decide, which are not checked")
    if passage.missing_rules:
        return warn(f"{way}: connections that the servers open are blocked: {words}", fix, "admin")
    return ok(f"{way}: Lustre traffic is allowed (TCP 988, 1018-1023)")


def _apart(
    name: str, place: NetworkLocation, client: NetworkLocation, region: str
) -> CheckResult | None:
    """Whether a file system and the domain are in different networks."""
    if client.vpc is not None and client.vpc != place.vpc:
        return fail(
            f"{name} is in {place.vpc}, but {client.title} is in {client.vpc}",
            f"use a file system in {client.vpc}: Studio mounts only file systems in the VPC of its domain",
            "admin",
        )
    if client.vpc is not None and not set(client.subnets) & set(place.subnets):
        return fail(
            f"{name} is in {', '.join(place.subnets)}, but {client.title} is in {', '.join(client.subnets)}: they share no subnet",
            f"aws sagemaker update-domain --region {region} --domain-id {client.title.rpartition(' ')[2]} "
            f"--subnet-ids {' '.join((*client.subnets, *place.subnets))}",
            "admin",
        )
    return None


def _without_inbound(domain: str, interfaces: Sequence[NetworkInterface]) -> list[NetworkInterface]:
    wanted = f"{_INBOUND}{domain}"
    return [one for one in interfaces if wanted not in {title for _, title in one.groups}]


# --------------------------------------------------------------------------------------------------
# Steps on the way between the subnets of this space, of the clusters and of their file systems: network ACLs and routes.


@dataclass(frozen=True)
class _Way:
    """A file system and one who mounts it, with the subnets of both, in pairs that are not the same.

    Attributes:
        words: The two.
        pairs: A client's subnet and one of the file system's.
        lacking: Subnets that EC2 does not describe.
        works: Whether it is mounted there.
    """

    words: str
    pairs: tuple[tuple[Subnet, Subnet], ...]
    lacking: tuple[str, ...]
    works: bool


class SubnetLooks:
    """Looks at the subnets around the file systems that matter here.

    Args:
        at_aws: What AWS tells.
        network: Knows who mounts them.
    """

    def __init__(self, at_aws: AtAws, network: NetworkLooks) -> None:
        self._at = at_aws
        self._network = network

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            CheckStep("network-acls", "network ACLs", "interfaces", self._acls, needs=needs),
            CheckStep("routes", "routes", "interfaces", self._routes, needs=needs),
        ]

    async def _acls(self) -> CheckResult | None:
        return joined([await self._through(way) async for way in self._ways()])

    async def _routes(self) -> CheckResult | None:
        return joined([await self._there(way) async for way in self._ways()])

    async def _ways(self) -> AsyncIterator[_Way]:
        if not self._at.concerned:
            return
        for name in await self._at.file_systems():
            for client in await self._network.clients(name):
                yield await self._way(name, client)

    async def _way(self, name: str, client: NetworkLocation) -> _Way:
        servers = {one.subnet for one in await self._at.interfaces_of(name) if one.subnet}
        wanted = servers | set(client.subnets)
        found = {one.name: one for one in await self._at.subnets(wanted)} if wanted else {}
        pairs = [
            (found[own], found[other])
            for own in client.subnets
            for other in sorted(servers)
            if own != other and own in found and other in found
        ]
        works = client.title.startswith("the domain") and await self._at.is_mounted(name)
        lacking = tuple(sorted(wanted - found.keys()))
        if not servers or not client.subnets:
            lacking = (f"the subnets of {client.title if servers else name}",)
        return _Way(f"{client.title} and {name}", tuple(pairs), lacking, works)

    async def _through(self, way: _Way) -> CheckResult:
        if not way.pairs:
            return _without(way)
        names = {one.name for pair in way.pairs for one in pair}
        acls = await self._at.network_acls(names)
        closed = [one for pair in way.pairs for one in find_closed_ports(*pair, acls)]
        if not closed:
            return ok(f"{way.words}: network ACLs allow Lustre traffic (TCP 988, 1018-1023)")
        region = await self._at.aws.region()
        commands = [line for one in closed for line in one.commands(region)]
        fix = "\n".join(dict.fromkeys(commands)) or "allow it before the entry that denies it"
        return _stopped(way, closed, fix)

    async def _there(self, way: _Way) -> CheckResult:
        if not way.pairs:
            return _without(way)
        tables = await self._at.route_tables({one.vpc for pair in way.pairs for one in pair})
        lost = [one for pair in way.pairs for one in find_missing_routes(*pair, tables)]
        if not lost:
            return ok(f"{way.words}: routes exist in both directions")
        region = await self._at.aws.region()
        fix = "\n".join(dict.fromkeys(one.command(region) for one in lost))
        return _stopped(way, lost, fix)


def _stopped(way: _Way, found: list[ClosedPorts] | list[MissingRoute], fix: str) -> CheckResult:
    words = "; ".join(dict.fromkeys(one.words() for one in found))
    if way.works:
        return warn(f"{way.words}: it is mounted, but {words}", fix, "admin")
    return fail(f"{way.words}: Lustre traffic is blocked: {words}", fix, "admin")


def _without(way: _Way) -> CheckResult:
    if way.lacking:
        return unknown(f"{way.words}: AWS does not describe {', '.join(way.lacking)}")
    return ok(f"{way.words} are in one subnet")
