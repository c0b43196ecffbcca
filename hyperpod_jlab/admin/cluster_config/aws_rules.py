"""Rules for a cluster's configuration that ask AWS, one item at a time: where AWS does not answer, the check is ``unknown`` at that item's place."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from hyperpod_jlab.admin.cluster_config.document import PROVISIONING, ClusterMount, GroupConfig, Network, file_system_id
from hyperpod_jlab.admin.cluster_config.facts import Facts
from hyperpod_jlab.admin.cluster_config.results import RuleResult, error, unknown, warning
from hyperpod_jlab.core.errors import nearest
from hyperpod_jlab.core.network import SecurityGroup, check_lustre_access

RuleResults = AsyncIterator[RuleResult]

Items = Iterator[tuple[str, RuleResults]]
"""What a check asks: the place of each item in the files, and what a rule finds there."""

_SUBNETS = "VpcConfig.Subnets"


def ask_scripts(facts: Facts) -> Items:
    """Whether lifecycle scripts exist: one group per folder and script in S3."""
    first_by_key: dict[tuple[str, str | None], GroupConfig] = {}
    for group in facts.documents.groups:
        if group.script_folder and group.script_folder.startswith("s3://"):
            first_by_key.setdefault((group.script_folder, group.script), group)
    for group in first_by_key.values():
        yield f"{group.path}.LifeCycleConfig", _scripts_exist(facts, group)


def ask_storage(facts: Facts) -> Items:
    """Whether file systems of FSx fit, and can be reached."""
    for mount in facts.documents.mounts:
        if name := file_system_id(mount.dns_name):
            for rule in (_file_system_fits, _file_system_is_near, _lustre_ports):
                yield mount.path, rule(facts, mount, name)


def ask_network(facts: Facts) -> Items:
    """Subnets and security groups."""
    for network in facts.documents.networks:
        yield _SUBNETS, _subnets_exist(facts, network)
        yield _SUBNETS, _addresses_are_enough(facts, network)
        yield "VpcConfig.SecurityGroupIds", _security_groups(facts, network)
    yield _SUBNETS, _one_vpc(facts)
    yield "InstanceGroups", _types_exist(facts)


async def _scripts_exist(facts: Facts, group: GroupConfig) -> RuleResults:
    folder, script, path = str(group.script_folder), group.script, f"{group.path}.LifeCycleConfig"
    script_names = await facts.scripts(folder)
    second = PROVISIONING in script_names
    if not script_names:
        hint = f"aws s3 cp --recursive SCRIPTS {folder}"
        yield error(f"no files found at {folder}", f"{path}.SourceS3Uri", hint)
    elif script is not None and script not in script_names:
        suggestion = nearest(script, script_names)
        found = f"did you mean {suggestion}?" if suggestion else None
        yield error(f"{script} not found at {folder}", f"{path}.OnCreate", found)
    # AWS' scripts read the second file from the same folder.
    if facts.documents.second is not None and script_names and not second:
        hint = f"aws s3 cp {PROVISIONING} {folder}"
        yield warning(f"{PROVISIONING} not found at {folder}", path, hint)
    if not facts.documents.on_eks and group.slurm_role and second:
        message = f"{PROVISIONING} is at {folder}, but the groups have a SlurmConfig"
        yield error(message, path, "remove it from S3: both give the roles of the groups")


async def _file_system_fits(facts: Facts, mount: ClusterMount, name: str) -> RuleResults:
    description = await facts.file_system(name)
    kind, state, dns_name = (description.get(member) for member in ("FileSystemType", "Lifecycle", "DNSName"))
    mount_name = (description.get("LustreConfiguration") or {}).get("MountName")
    if kind != "LUSTRE":
        yield error(f"{name} is a {kind} file system, not Lustre", mount.path)
    if state != "AVAILABLE":
        yield error(f"{name} is {state}", mount.path, "wait until it is AVAILABLE")
    if dns_name and mount.dns_name != dns_name:
        message = f"the DNS name of {name} is {dns_name}, not {mount.dns_name}"
        yield error(message, mount.path)
    if mount.mount_name and mount_name and mount.mount_name != mount_name:
        message = f"the mount name of {name} is {mount_name}, not {mount.mount_name}"
        yield error(message, mount.path)


async def _file_system_is_near(facts: Facts, mount: ClusterMount, name: str) -> RuleResults:
    description = await facts.file_system(name)
    for subnets in dict.fromkeys(map(facts.documents.subnets_of, mount.groups)):
        known = {subnet["SubnetId"]: subnet for subnet in await facts.known_subnets(subnets)}
        vpcs = sorted({subnet["VpcId"] for subnet in known.values()})
        own = description.get("SubnetIds") or ()
        if vpcs and description.get("VpcId") not in vpcs:
            message = f"{name} is in {description.get('VpcId')}, but the instances will be in {', '.join(vpcs)}"
            yield error(message, mount.path)
        elif known and not known.keys() & set(own):
            message = f"{name} is in {', '.join(own)}, but the instances will be in {', '.join(known)}"
            yield warning(message, mount.path, "traffic between zones costs more and is slower")


async def _lustre_ports(facts: Facts, mount: ClusterMount, name: str) -> RuleResults:
    """Lustre's ports (988, 1018-1023) get through between instances and servers."""
    servers, addresses = await facts.interfaces(name)
    groups = await facts.security_groups()
    if not servers:
        message = f"could not be checked: AWS does not show the security groups of {name}"
        yield unknown(message, mount.path)
        return
    for ids in dict.fromkeys(map(facts.documents.security_groups_of, mount.groups)):
        clients = [groups[group_id] for group_id in ids if group_id in groups]
        if not clients or len(clients) < len(ids):
            continue  # the check of the network reports it
        access = check_lustre_access(clients, servers, addresses)
        for gap in access.missing_rules:
            make_verdict = warning if gap.is_reply else error
            yield make_verdict(gap.words(), mount.path, gap.command(facts.region))
        if access.lists:
            names = ", ".join(access.lists)
            message = f"prefix lists decide whether Lustre traffic is allowed: {names}"
            yield unknown(message, mount.path)


async def _subnets_exist(facts: Facts, network: Network) -> RuleResults:
    path, subnets, gateways = f"{network.path}.Subnets", await facts.subnets(), None
    for name in dict.fromkeys(network.subnets):
        if name not in subnets:
            yield error(f"subnet {name} not found in this region", path)
            continue
        gateways = gateways or await facts.gateways()
        if gateways[name]:
            message = f"{name} is a public subnet: its routes go to {', '.join(gateways[name])}"
            hint = "instances have no public address: use a private subnet with a NAT gateway or VPC endpoints"
            yield error(message, path, hint)


async def _addresses_are_enough(facts: Facts, network: Network) -> RuleResults:
    """A group of several types may come in the one that takes most."""
    path, subnets = f"{network.path}.Subnets", await facts.known_subnets(network.subnets)
    instances = least = needed = 0
    for group in network.groups:
        per_instance = per_pod_host = 1
        for name in group.types:
            kind = await facts.type_of(name)
            if kind is None:
                message = f"the number of addresses that an instance of {name[:40]} needs is unknown; 1 is assumed"
                yield unknown(message, path)
                continue
            on_eks, efa_only = facts.documents.on_eks, group.efa_only
            per_instance = max(per_instance, kind.address_count(eks=False, efa_only=efa_only))
            per_pod_host = max(per_pod_host, kind.address_count(eks=on_eks, efa_only=efa_only))
        count = group.count or 0
        instances, least = instances + count, least + count * per_instance
        needed += count * per_pod_host
    free = sum(int(subnet["AvailableIpAddressCount"]) for subnet in subnets)
    if not subnets or len(subnets) < len(network.subnets) or needed <= free:
        return
    message = f"{instances} instances need {needed} addresses, but the subnets have {free} free"
    hint = "use larger or more subnets before you create the cluster"
    if least > free:
        yield error(message, path, hint)
    else:
        # On EKS most addresses are for pods: Amazon's VPC CNI allocates them with the pods, or
        # fewer, depending on its configuration.
        yield warning(f"{message}: pods may get no address", path, hint)


async def _one_vpc(facts: Facts) -> RuleResults:
    vpcs = sorted({str(subnet["VpcId"]) for subnet in (await facts.subnets()).values()})
    if len(vpcs) > 1:
        yield error(f"the subnets are in several VPCs: {', '.join(vpcs)}", _SUBNETS)


async def _types_exist(facts: Facts) -> RuleResults:
    """Without EC2's descriptions, addresses and EFA come from the package's table."""
    types = await facts.types()
    for group in facts.documents.groups:
        for name in group.types:
            if name.startswith("ml.") and name not in types:
                message = f"EC2 has no instance type {name.removeprefix('ml.')} in this region"
                yield warning(message, f"{group.path}.InstanceType")


async def _security_groups(facts: Facts, network: Network) -> RuleResults:
    path, groups = f"{network.path}.SecurityGroupIds", await facts.security_groups()
    for name in network.security_groups:
        if name not in groups:
            yield error(f"security group {name} not found in this region", path)
    known_groups = [groups[name] for name in network.security_groups if name in groups]
    if known_groups and len(known_groups) == len(network.security_groups):
        types = {name: await facts.type_of(name) for group in network.groups for name in group.types}
        efa = sorted(name for name, kind in types.items() if kind is not None and kind.efa != 0)
        for direction in ("inbound", "outbound"):
            for rule_result in _members_reach_each_other(network, known_groups, direction, efa):
                yield rule_result
    vpcs = sorted({subnet["VpcId"] for subnet in await facts.known_subnets(network.subnets)})
    for group in known_groups if vpcs else ():
        if group.vpc not in vpcs:
            message = f"{group.name} is in {group.vpc}, but the subnets are in {', '.join(vpcs)}"
            yield error(message, path)


def _members_reach_each_other(
    network: Network, groups: Sequence[SecurityGroup], direction: str, efa: Sequence[str]
) -> Iterator[RuleResult]:
    """EFA only works between members of one security group that allows all its own traffic in and out (EC2 user guide, "Get started with EFA")."""
    flow, verb = ("in", "ingress") if direction == "inbound" else ("out", "egress")
    rules = [
        (group, rule)
        for group in groups
        for rule in (group.inbound if direction == "inbound" else group.outbound)
        if rule.protocol == "-1"
    ]
    if any(group.name in rule.groups for group, rule in rules):
        return
    path, name = f"{network.path}.SecurityGroupIds", groups[0].name
    hint = (
        f"aws ec2 authorize-security-group-{verb} --group-id {name} --ip-permissions "
        f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={name}}}]'"
    )
    message = f"no security group allows all traffic of its own members {flow}"
    is_open = any(rule.ranges for _, rule in rules)
    if efa:
        yield error(f"{message}, which EFA on {', '.join(efa)} needs", path, hint)
    elif sum(group.count or 0 for group in network.groups) > 1 and not is_open:
        yield warning(f"{message}: instances could not reach each other", path, hint)
