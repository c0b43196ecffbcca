"""Steps on the way between the subnets of this space, of the clusters and of their file systems: network ACLs and routes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from hyperpod_jlab.model.check import Step, Told, fail, ok, unknown, warn
from hyperpod_jlab.model.network import Place
from hyperpod_jlab.model.subnets import Astray, Closed, Subnet, astray, closed_ports
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.network import NetworkLooks, joined
from hyperpod_jlab.services.doctor.opened import CONFIGURATION
from hyperpod_jlab.services.doctor.studio import HYPERPOD, ROLE


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

    def steps(self) -> list[Step]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            Step("network-acls", "network ACLs", "interfaces", self._acls, needs=needs),
            Step("routes", "routes", "interfaces", self._routes, needs=needs),
        ]

    async def _acls(self) -> Told | None:
        return joined([await self._through(way) async for way in self._ways()])

    async def _routes(self) -> Told | None:
        return joined([await self._there(way) async for way in self._ways()])

    async def _ways(self) -> AsyncIterator[_Way]:
        if not self._at.concerned:
            return
        for name in await self._at.file_systems():
            for client in await self._network.clients(name):
                yield await self._way(name, client)

    async def _way(self, name: str, client: Place) -> _Way:
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

    async def _through(self, way: _Way) -> Told:
        if not way.pairs:
            return _without(way)
        names = {one.name for pair in way.pairs for one in pair}
        acls = await self._at.network_acls(names)
        closed = [one for pair in way.pairs for one in closed_ports(*pair, acls)]
        if not closed:
            return ok(f"{way.words}: network ACLs let Lustre through (TCP 988, 1018-1023)")
        region = await self._at.aws.region()
        commands = [line for one in closed for line in one.commands(region)]
        fix = "\n".join(dict.fromkeys(commands)) or "allow it before the entry that denies it"
        return _stopped(way, closed, fix)

    async def _there(self, way: _Way) -> Told:
        if not way.pairs:
            return _without(way)
        tables = await self._at.route_tables({one.vpc for pair in way.pairs for one in pair})
        lost = [one for pair in way.pairs for one in astray(*pair, tables)]
        if not lost:
            return ok(f"{way.words}: routes lead there and back")
        region = await self._at.aws.region()
        fix = "\n".join(dict.fromkeys(one.command(region) for one in lost))
        return _stopped(way, lost, fix)


def _stopped(way: _Way, found: list[Closed] | list[Astray], fix: str) -> Told:
    words = "; ".join(dict.fromkeys(one.words() for one in found))
    if way.works:
        return warn(f"{way.words}: it is mounted, but {words}", fix, "admin")
    return fail(f"{way.words}: Lustre does not get through, for {words}", fix, "admin")


def _without(way: _Way) -> Told:
    if way.lacking:
        return unknown(f"{way.words}: AWS does not describe {', '.join(way.lacking)}")
    return ok(f"{way.words} are in one subnet")
