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
from hyperpod_jlab.features.doctor.aws import HYPERPOD, ROLE, AwsEnvironment, file_system_of
from hyperpod_jlab.features.doctor.models import CONFIGURATION

_INBOUND = "security-group-for-inbound-nfs-"
"""Name prefix of the security group that Studio creates for the servers of a domain's file systems; the domain's id follows."""


class NetworkChecks:
    """Checks of the network around the relevant file systems."""

    def __init__(self, environment: AwsEnvironment) -> None:
        self._environment = environment

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            CheckStep("security-groups", "security groups", "security-groups", self._groups, needs=needs),
            CheckStep("interfaces", "network interfaces", "interfaces", self._interfaces, needs=needs),
        ]

    async def _groups(self) -> CheckResult | None:
        if not self._environment.uses_aws:
            return None
        results = [
            await self._check_groups(name, client)
            for name in await self._environment.file_systems()
            for client in await self.clients(name)
        ]
        return join_results(results)

    async def _interfaces(self) -> CheckResult | None:
        if not self._environment.uses_aws:
            return None
        return join_results([await self._check_interfaces(name) for name in await self._environment.file_systems()])

    async def clients(self, name: str) -> list[NetworkLocation]:
        """The clients of a file system: this domain, and the relevant clusters that name it."""
        domain = await self._environment.or_none(self._environment.locate_domain())
        clusters = [
            await self._environment.locate_cluster(cluster.name)
            for cluster in await self._environment.own_clusters()
            if name in {file_system_of(storage.dns_name) for storage in cluster.storage}
        ]
        return [*([domain] if domain else []), *clusters]

    async def _check_groups(self, name: str, client: NetworkLocation) -> CheckResult:
        interfaces = await self._environment.list_interfaces(name)
        servers = tuple({group for interface in interfaces for group, _ in interface.groups})
        path_text = f"{client.title} and {name}"
        if not client.groups or not servers:
            subject = client.title if servers else name
            return unknown(f"AWS shows no security groups of {subject}")
        access = check_lustre_access(
            await self._environment.groups(client.groups),
            await self._environment.groups(servers),
            [interface.address for interface in interfaces if interface.address],
        )
        works = client.title.startswith("the domain") and await self._environment.is_mounted(name)
        return _access_result(path_text, access, await self._environment.aws.region(), works=works)

    async def _check_interfaces(self, name: str) -> CheckResult:
        location = await self._environment.locate_file_system(name)
        interfaces = await self._environment.list_interfaces(name)
        if not interfaces:
            return unknown(f"AWS shows no network interfaces of {name}")
        unused_interfaces = [interface.name for interface in interfaces if interface.status != "in-use"]
        if unused_interfaces:
            evidence = f"{', '.join(unused_interfaces)} of {name} are not in use"
            return fail(evidence, f"check {name} in the FSx console", "admin")
        mounted = await self._environment.is_mounted(name)
        region = await self._environment.aws.region()
        for client in await self.clients(name):
            network_result = _other_network_result(name, location, client, region)
            if network_result is not None:
                return warn(network_result.evidence, network_result.fix, "admin") if mounted else network_result
        studio = self._environment.studio
        if studio is not None and studio.domain_id:
            without_group = _interfaces_without_group(studio.domain_id, interfaces)
            if without_group:
                return await self._missing_group_result(name, studio.domain_id, without_group, mounted)
        for client in await self.clients(name):
            vpc_result = await self._other_vpc(name, location, client)
            if vpc_result is not None:
                return vpc_result
        zones = ", ".join(sorted({interface.zone for interface in interfaces if interface.zone}))
        return ok(f"{name}: {len(interfaces)} in {location.vpc}, {', '.join(location.subnets)} ({zones})")

    async def _other_vpc(self, name: str, location: NetworkLocation, client: NetworkLocation) -> CheckResult | None:
        """Whether a cluster is in another VPC, by its security groups: AWS reports no VPC for it."""
        if client.vpc is not None or not client.groups:
            return None
        try:
            vpcs = {group.vpc for group in await self._environment.groups(client.groups)}
        except HyperpodError:  # the step on security groups reports it
            return None
        if location.vpc in vpcs:
            return None
        vpc_text = ", ".join(sorted(vpc for vpc in vpcs if vpc))
        return warn(
            f"{name} is in {location.vpc}, but {client.title} is in {vpc_text}; they can connect only by peering or a transit gateway",
            f"use a file system in {vpc_text}, or connect the two",
            "admin",
        )

    async def _missing_group_result(
        self, name: str, domain: str, interfaces: Sequence[NetworkInterface], mounted: bool
    ) -> CheckResult:
        """Interfaces without the security group that Studio requires."""
        required_group, first = f"{_INBOUND}{domain}", interfaces[0]
        names = ", ".join(interface.name for interface in interfaces)
        evidence = f"{names} of {name} do not have the security group {required_group}; Studio requires it on each interface, otherwise applications do not start"
        region = await self._environment.aws.region()
        current_groups = " ".join(group for group, _ in first.groups)
        fix = f"aws ec2 modify-network-interface-attribute --region {region} --network-interface-id {first.name} --groups {current_groups} ID-OF-{required_group}"
        if len(interfaces) > 1:
            fix += ", and the same for the others"
        return warn(evidence, fix, "admin") if mounted else fail(evidence, fix, "admin")


def join_results(results: Sequence[CheckResult]) -> CheckResult | None:
    """Merge several results: the worst level, all its evidence, every fix once; None if empty."""
    if not results:
        return None
    levels = ("ok", "unknown", "warn", "fail")
    worst = max(results, key=lambda result: levels.index(result.level))
    worst_results = [result for result in results if result.level == worst.level]
    fix_texts = dict.fromkeys(result.fix for result in worst_results if result.fix)
    return CheckResult(
        worst.level,
        "; ".join(dict.fromkeys(result.evidence for result in worst_results)),
        "\n".join(fix_texts) or None,
        worst.who,
    )


def _access_result(path_text: str, access: LustreAccess, region: str, *, works: bool) -> CheckResult:
    fix = "\n".join(gap.command(region) for gap in access.missing_rules)
    evidence = "; ".join(gap.words() for gap in access.missing_rules)
    if any(not gap.is_reply for gap in access.missing_rules):
        if works:
            return warn(f"{path_text}: it is mounted, but {evidence}", fix, "admin")
        return fail(f"{path_text}: Lustre traffic is blocked: {evidence}", fix, "admin")
    if access.lists:
        prefix_lists = ", ".join(access.lists)
        return unknown(f"{path_text}: the prefix lists {prefix_lists} decide, which are not checked")
    if access.missing_rules:
        return warn(f"{path_text}: connections that the servers open are blocked: {evidence}", fix, "admin")
    return ok(f"{path_text}: Lustre traffic is allowed (TCP 988, 1018-1023)")


def _other_network_result(
    name: str, location: NetworkLocation, client: NetworkLocation, region: str
) -> CheckResult | None:
    """Whether a file system and the domain are in different networks."""
    if client.vpc is not None and client.vpc != location.vpc:
        return fail(
            f"{name} is in {location.vpc}, but {client.title} is in {client.vpc}",
            f"use a file system in {client.vpc}: Studio mounts only file systems in the VPC of its domain",
            "admin",
        )
    if client.vpc is not None and not set(client.subnets) & set(location.subnets):
        return fail(
            f"{name} is in {', '.join(location.subnets)}, but {client.title} is in {', '.join(client.subnets)}: they share no subnet",
            f"aws sagemaker update-domain --region {region} --domain-id {client.title.rpartition(' ')[2]} "
            f"--subnet-ids {' '.join((*client.subnets, *location.subnets))}",
            "admin",
        )
    return None


def _interfaces_without_group(domain: str, interfaces: Sequence[NetworkInterface]) -> list[NetworkInterface]:
    required_group = f"{_INBOUND}{domain}"
    return [interface for interface in interfaces if required_group not in {title for _, title in interface.groups}]


# --------------------------------------------------------------------------------------------------
# Steps on the connections between the subnets of this space, the clusters and their file systems:
# network ACLs and routes.


@dataclass(frozen=True)
class _SubnetPath:
    """A file system and a client, with their pairs of different subnets.

    Attributes:
        words: Their names.
        pairs: A client's subnet and one of the file system's.
        unknown_subnets: Subnets that EC2 does not describe.
        works: Whether the client has it mounted.
    """

    words: str
    pairs: tuple[tuple[Subnet, Subnet], ...]
    unknown_subnets: tuple[str, ...]
    works: bool


class SubnetChecks:
    """Checks of the subnets around the relevant file systems.

    Args:
        environment: AWS' data.
        network: Returns the clients.
    """

    def __init__(self, environment: AwsEnvironment, network: NetworkChecks) -> None:
        self._environment = environment
        self._network = network

    def steps(self) -> list[CheckStep]:
        """The steps in order."""
        needs = (CONFIGURATION, ROLE, HYPERPOD)
        return [
            CheckStep("network-acls", "network ACLs", "interfaces", self._acls, needs=needs),
            CheckStep("routes", "routes", "interfaces", self._routes, needs=needs),
        ]

    async def _acls(self) -> CheckResult | None:
        return join_results([await self._check_acls(route_pair) async for route_pair in self._paths()])

    async def _routes(self) -> CheckResult | None:
        return join_results([await self._check_routes(route_pair) async for route_pair in self._paths()])

    async def _paths(self) -> AsyncIterator[_SubnetPath]:
        if not self._environment.uses_aws:
            return
        for name in await self._environment.file_systems():
            for client in await self._network.clients(name):
                yield await self._path(name, client)

    async def _path(self, name: str, client: NetworkLocation) -> _SubnetPath:
        servers = {interface.subnet for interface in await self._environment.list_interfaces(name) if interface.subnet}
        subnet_ids = servers | set(client.subnets)
        by_name = (
            {interface.name: interface for interface in await self._environment.subnets(subnet_ids)}
            if subnet_ids
            else {}
        )
        pairs = [
            (by_name[client_subnet], by_name[server_subnet])
            for client_subnet in client.subnets
            for server_subnet in sorted(servers)
            if client_subnet != server_subnet and client_subnet in by_name and server_subnet in by_name
        ]
        works = client.title.startswith("the domain") and await self._environment.is_mounted(name)
        unknown_subnets = tuple(sorted(subnet_ids - by_name.keys()))
        if not servers or not client.subnets:
            unknown_subnets = (f"the subnets of {client.title if servers else name}",)
        return _SubnetPath(f"{client.title} and {name}", tuple(pairs), unknown_subnets, works)

    async def _check_acls(self, path: _SubnetPath) -> CheckResult:
        if not path.pairs:
            return _unknown_subnets_result(path)
        names = {subnet.name for pair in path.pairs for subnet in pair}
        acls = await self._environment.network_acls(names)
        blocked = [subnet for pair in path.pairs for subnet in find_closed_ports(*pair, acls)]
        if not blocked:
            return ok(f"{path.words}: network ACLs allow Lustre traffic (TCP 988, 1018-1023)")
        region = await self._environment.aws.region()
        commands = [line for subnet in blocked for line in subnet.commands(region)]
        fix = "\n".join(dict.fromkeys(commands)) or "allow it before the entry that denies it"
        return _blocked_result(path, blocked, fix)

    async def _check_routes(self, path: _SubnetPath) -> CheckResult:
        if not path.pairs:
            return _unknown_subnets_result(path)
        tables = await self._environment.route_tables({subnet.vpc for pair in path.pairs for subnet in pair})
        missing = [subnet for pair in path.pairs for subnet in find_missing_routes(*pair, tables)]
        if not missing:
            return ok(f"{path.words}: routes exist in both directions")
        region = await self._environment.aws.region()
        fix = "\n".join(dict.fromkeys(subnet.command(region) for subnet in missing))
        return _blocked_result(path, missing, fix)


def _blocked_result(path: _SubnetPath, problems: list[ClosedPorts] | list[MissingRoute], fix: str) -> CheckResult:
    evidence = "; ".join(dict.fromkeys(problem.words() for problem in problems))
    if path.works:
        return warn(f"{path.words}: it is mounted, but {evidence}", fix, "admin")
    return fail(f"{path.words}: Lustre traffic is blocked: {evidence}", fix, "admin")


def _unknown_subnets_result(path: _SubnetPath) -> CheckResult:
    if path.unknown_subnets:
        return unknown(f"{path.words}: AWS does not describe {', '.join(path.unknown_subnets)}")
    return ok(f"{path.words} are in one subnet")
