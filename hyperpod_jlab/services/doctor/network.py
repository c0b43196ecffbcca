"""Steps on the network between this space, the clusters and their file systems: security groups and network interfaces."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.model.check import Step, Told, fail, ok, unknown, warn
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.network import Interface, Passage, Place, lustre_passage
from hyperpod_jlab.services.doctor.at_aws import AtAws, file_system_of
from hyperpod_jlab.services.doctor.opened import CONFIGURATION
from hyperpod_jlab.services.doctor.studio import HYPERPOD, ROLE

_INBOUND = "security-group-for-inbound-nfs-"
"""Beginning of the name of the security group that Studio makes for the servers of a domain's file systems; its end is the domain's id."""


class NetworkLooks:
    """Looks at the network around the file systems that matter here."""

    def __init__(self, at_aws: AtAws) -> None:
        self._at = at_aws

    def steps(self) -> list[Step]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            Step(
                "security-groups", "security groups", "security-groups", self._groups, needs=needs
            ),
            Step("interfaces", "network interfaces", "interfaces", self._interfaces, needs=needs),
        ]

    async def _groups(self) -> Told | None:
        if not self._at.concerned:
            return None
        told = [
            await self._passage(name, client)
            for name in await self._at.file_systems()
            for client in await self.clients(name)
        ]
        return joined(told)

    async def _interfaces(self) -> Told | None:
        if not self._at.concerned:
            return None
        return joined([await self._place(name) for name in await self._at.file_systems()])

    async def clients(self, name: str) -> list[Place]:
        """Who mounts a file system: this domain, and the clusters that matter here and name it."""
        domain = await self._at.known(self._at.place_of_domain())
        clusters = [
            await self._at.place_of_cluster(cluster.name)
            for cluster in await self._at.our_clusters()
            if name in {file_system_of(one.dns_name) for one in cluster.storage}
        ]
        return [*([domain] if domain else []), *clusters]

    async def _passage(self, name: str, client: Place) -> Told:
        interfaces = await self._at.interfaces_of(name)
        servers = tuple({group for one in interfaces for group, _ in one.groups})
        way = f"{client.title} and {name}"
        if not client.groups or not servers:
            which = client.title if servers else name
            return unknown(f"AWS names no security groups of {which}")
        passage = lustre_passage(
            await self._at.groups(client.groups),
            await self._at.groups(servers),
            [one.address for one in interfaces if one.address],
        )
        works = client.title.startswith("the domain") and await self._at.is_mounted(name)
        return _of_passage(way, passage, await self._at.aws.region(), works=works)

    async def _place(self, name: str) -> Told:
        place = await self._at.place_of_file_system(name)
        interfaces = await self._at.interfaces_of(name)
        if not interfaces:
            return unknown(f"AWS names no network interfaces of {name}")
        dead = [one.name for one in interfaces if one.status != "in-use"]
        if dead:
            words = f"{', '.join(dead)} of {name} not in use"
            return fail(words, f"look at {name} in the FSx console", "admin")
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

    async def _other_vpc(self, name: str, place: Place, client: Place) -> Told | None:
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
            f"{name} is in {place.vpc}, {client.title} in {other}: it gets there by peering or a transit gateway only",
            f"use a file system in {other}, or connect the two",
            "admin",
        )

    async def _lacking(
        self, name: str, domain: str, lacking: Sequence[Interface], mounted: bool
    ) -> Told:
        """Interfaces without the group that Studio wants on each."""
        wanted, first = f"{_INBOUND}{domain}", lacking[0]
        names = ", ".join(one.name for one in lacking)
        words = f"{names} of {name} without the security group {wanted}, which Studio wants on each, or applications with it do not start"
        region = await self._at.aws.region()
        kept = " ".join(group for group, _ in first.groups)
        fix = f"aws ec2 modify-network-interface-attribute --region {region} --network-interface-id {first.name} --groups {kept} ID-OF-{wanted}"
        if len(lacking) > 1:
            fix += ", and the same for the others"
        return warn(words, fix, "admin") if mounted else fail(words, fix, "admin")


def joined(told: Sequence[Told]) -> Told | None:
    """Several looks as one: the worst level, all evidence of it, every fix once; None for none."""
    if not told:
        return None
    order = ("ok", "unknown", "warn", "fail")
    worst = max(told, key=lambda one: order.index(one.level))
    same = [one for one in told if one.level == worst.level]
    fixes = dict.fromkeys(one.fix for one in same if one.fix)
    return Told(
        worst.level,
        "; ".join(dict.fromkeys(one.evidence for one in same)),
        "\n".join(fixes) or None,
        worst.who,
    )


def _of_passage(way: str, passage: Passage, region: str, *, works: bool) -> Told:
    fix = "\n".join(gap.command(region) for gap in passage.gaps)
    words = "; ".join(gap.words() for gap in passage.gaps)
    if any(not gap.answers for gap in passage.gaps):
        if works:
            return warn(f"{way}: it is mounted, but {words}", fix, "admin")
        return fail(f"{way}: Lustre does not get through, for {words}", fix, "admin")
    if passage.lists:
        lists = ", ".join(passage.lists)
        return unknown(f"{way}: the prefix lists {lists} decide, which are not read here")
    if passage.gaps:
        return warn(f"{way}: what servers begin does not get through, for {words}", fix, "admin")
    return ok(f"{way}: Lustre gets through (TCP 988, 1018-1023)")


def _apart(name: str, place: Place, client: Place, region: str) -> Told | None:
    """Whether a file system and the domain are in different networks."""
    if client.vpc is not None and client.vpc != place.vpc:
        return fail(
            f"{name} is in {place.vpc}, {client.title} in {client.vpc}",
            f"use a file system in {client.vpc}: Studio mounts those of its domain's own VPC only",
            "admin",
        )
    if client.vpc is not None and not set(client.subnets) & set(place.subnets):
        return fail(
            f"{name} is in {', '.join(place.subnets)}, {client.title} in {', '.join(client.subnets)}: no subnet is the same",
            f"aws sagemaker update-domain --region {region} --domain-id {client.title.rpartition(' ')[2]} "
            f"--subnet-ids {' '.join((*client.subnets, *place.subnets))}",
            "admin",
        )
    return None


def _without_inbound(domain: str, interfaces: Sequence[Interface]) -> list[Interface]:
    wanted = f"{_INBOUND}{domain}"
    return [one for one in interfaces if wanted not in {title for _, title in one.groups}]
