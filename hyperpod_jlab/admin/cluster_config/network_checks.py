"""Subnets, routes and security groups of a cluster to be: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Group
from hyperpod_jlab.admin.cluster_config.seen import RouteTable, Seen, Subnet
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, of_error, wrong
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.network import Rule, SecurityGroup

_PRIVATE = "instances have no public address: take a private subnet, whose way out is a NAT gateway or VPC endpoints"


def network_checks(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    """All of them.

    Args:
        config: The configuration.
        seen: What AWS tells.
    """
    if isinstance(seen.subnets, HyperpodError):
        yield of_error("network", seen.subnets, "VpcConfig.Subnets")
    else:
        yield from _subnets(config, seen, seen.subnets)
        yield from _routes(config, seen.subnets, seen.routes)
    if isinstance(seen.groups, HyperpodError):
        yield of_error("network", seen.groups, "VpcConfig.SecurityGroupIds")
    else:
        yield from _security_groups(config, seen, seen.groups)


def places(
    config: ClusterConfig,
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], tuple[Group, ...]]]:
    """Each network that the configuration names: its path, its subnets, its security groups, and the instance groups in it."""
    common = tuple(group for group in config.groups if not group.subnets)
    if config.subnets or config.security_groups:
        yield "VpcConfig", config.subnets, config.security_groups, common
    for group in config.groups:
        if group.subnets:
            yield (
                f"{group.path}.OverrideVpcConfig",
                group.subnets,
                config.security_groups_of(group),
                (group,),
            )


def _subnets(config: ClusterConfig, seen: Seen, known: Mapping[str, Subnet]) -> Iterator[Verdict]:
    vpcs = set[str]()
    for path, subnets, _, groups in places(config):
        found = [known[name] for name in subnets if name in known]
        for name in dict.fromkeys(subnets):
            if name not in known:
                yield wrong(
                    "network", f"there is no subnet {name} in this region", f"{path}.Subnets"
                )
        vpcs |= {one.vpc for one in found}
        if len(found) == len(subnets) and found:
            free = sum(one.free for one in found)
            yield from _addresses(config, seen, f"{path}.Subnets", groups, free)
    if len(vpcs) > 1:
        yield wrong(
            "network",
            f"the subnets are of several VPCs: {', '.join(sorted(vpcs))}",
            "VpcConfig.Subnets",
        )


def _addresses(
    config: ClusterConfig, seen: Seen, path: str, groups: Sequence[Group], free: int
) -> Iterator[Verdict]:
    """Whether subnets have an address for all that takes one; a group of several types may come in the one that takes most."""
    eks = config.orchestrator == "eks"
    instances = least = needed = 0
    for group in groups:
        facts = {name: seen.facts_of(name) for name in group.types}
        if unknown := [name for name, one in facts.items() if one is None]:
            words = f"it is not known how many addresses an instance of {unknown[0][:40]} takes: one is counted"
            yield Verdict("network", "unknown", words, None, path)
        known = [one for one in facts.values() if one is not None]
        count, efa_only = group.count or 0, group.efa_only
        instances += count
        each = [one.addresses_taken(eks=False, efa_only=efa_only) for one in known]
        least += count * max(each, default=1)
        each = [one.addresses_taken(eks=eks, efa_only=efa_only) for one in known]
        needed += count * max(each, default=1)
    if needed <= free:
        return
    words = f"{instances} instances take {needed} addresses, and the subnets have {free} free ones"
    hint = "take larger subnets, or more of them, before the cluster is made"
    if least > free:
        yield wrong("network", words, path, hint)
    else:
        # On EKS most of them are for pods: Amazon's VPC CNI takes them as pods come, or fewer, as it is set up.
        yield doubtful("network", f"{words}: pods may be left without one", path, hint)


def _routes(
    config: ClusterConfig,
    known: Mapping[str, Subnet],
    routes: tuple[RouteTable, ...] | HyperpodError,
) -> Iterator[Verdict]:
    if isinstance(routes, HyperpodError):
        yield of_error("network", routes, "VpcConfig.Subnets")
        return
    for path, subnets, _, _ in places(config):
        for name in dict.fromkeys(subnets):
            table = _table(known[name], routes) if name in known else None
            if table is not None and table.gateways:
                yield wrong(
                    "network",
                    f"{name} is a public subnet: its routes lead to {', '.join(table.gateways)}",
                    f"{path}.Subnets",
                    _PRIVATE,
                )


def _table(subnet: Subnet, routes: Sequence[RouteTable]) -> RouteTable | None:
    """The subnet's own route table, else the main one of its VPC (VPC user guide, "Subnet route tables")."""
    own = next((one for one in routes if subnet.name in one.subnets), None)
    return own or next((one for one in routes if one.main and one.vpc == subnet.vpc), None)


def _security_groups(
    config: ClusterConfig, seen: Seen, known: Mapping[str, SecurityGroup]
) -> Iterator[Verdict]:
    for path, subnets, names, groups in places(config):
        found = [known[name] for name in names if name in known]
        for name in names:
            if name not in known:
                yield wrong(
                    "network",
                    f"there is no security group {name} in this region",
                    f"{path}.SecurityGroupIds",
                )
        if not isinstance(seen.subnets, HyperpodError):
            vpcs = {seen.subnets[name].vpc for name in subnets if name in seen.subnets}
            for one in found:
                if vpcs and one.vpc not in vpcs:
                    yield wrong(
                        "network",
                        f"{one.name} is of {one.vpc}, and the subnets are of {', '.join(sorted(vpcs))}",
                        f"{path}.SecurityGroupIds",
                    )
        if found and len(found) == len(names):
            yield from _efa(path, found, groups, seen)


def _efa(
    path: str, found: Sequence[SecurityGroup], groups: Sequence[Group], seen: Seen
) -> Iterator[Verdict]:
    """An EFA passes only between members of one security group that lets all of itself in and out (EC2 user guide, "Get started with EFA")."""
    for direction in ("inbound", "outbound"):
        closed = not any(_lets_itself(one, direction) for one in found)
        if not closed:
            continue
        verb = "ingress" if direction == "inbound" else "egress"
        name = found[0].name
        hint = (
            f"aws ec2 authorize-security-group-{verb} --group-id {name} --ip-permissions "
            f"'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={name}}}]'"
        )
        words = f"no security group lets all traffic of its own members {'in' if direction == 'inbound' else 'out'}"
        place = f"{path}.SecurityGroupIds"
        types = sorted(
            {
                name
                for group in groups
                for name in group.types
                if (one := seen.facts_of(name)) and one.efa != 0
            }
        )
        if types:
            yield wrong(
                "network", f"{words}, which the EFA of {', '.join(types)} needs", place, hint
            )
        elif sum(group.count or 0 for group in groups) > 1 and not any(
            _opens(one, direction) for one in found
        ):
            yield doubtful("network", f"{words}: instances would not reach each other", place, hint)


def _lets_itself(group: SecurityGroup, direction: str) -> bool:
    return any(
        rule.protocol == "-1" and group.name in rule.groups for rule in _rules(group, direction)
    )


def _opens(group: SecurityGroup, direction: str) -> bool:
    """Whether it lets all through to or from some addresses: the VPC's, say."""
    return any(rule.protocol == "-1" and rule.ranges for rule in _rules(group, direction))


def _rules(group: SecurityGroup, direction: str) -> tuple[Rule, ...]:
    return group.inbound if direction == "inbound" else group.outbound
