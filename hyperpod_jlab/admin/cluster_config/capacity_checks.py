"""Instance types, quotas, roles, the name and the EKS cluster, as far as AWS is asked: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Group
from hyperpod_jlab.admin.cluster_config.seen import InstanceTypeSeen, Seen
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, of_error, wrong
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError

SERVICE = "sagemaker.amazonaws.com"
"""Who has to be trusted by a role of instances (SageMaker's guide, "IAM role for SageMaker HyperPod")."""

MOST_IN_CLUSTER = "Maximum number of instances allowed per SageMaker HyperPod cluster"
MOST_IN_ALL = "Total number of instances allowed across SageMaker HyperPod clusters"
_RAISE = "ask for more in the Service Quotas console, under Amazon SageMaker"


def capacity_checks(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    """All of them.

    Args:
        config: The configuration.
        seen: What AWS tells.
    """
    yield from _types(config, seen)
    yield from _quotas(config, seen)
    yield from _roles(config, seen)
    yield from _name(config, seen)
    yield from _eks(seen)


def _types(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    for needed in (seen.types, seen.zones, seen.subnets):
        if isinstance(needed, HyperpodError):
            yield of_error("capacity", needed)
    if isinstance(seen.types, HyperpodError):
        return
    for group in config.groups:
        for name in group.types:
            found = seen.types.get(name)
            at = f"{group.path}.InstanceType"
            if found is None:
                if name.startswith("ml."):
                    yield doubtful(
                        "capacity",
                        f"EC2 does not know {name.removeprefix('ml.')} in this region",
                        at,
                    )
                continue
            yield from _type(config, group, name, found, seen)


def _type(
    config: ClusterConfig, group: Group, name: str, found: InstanceTypeSeen, seen: Seen
) -> Iterator[Verdict]:
    if group.threads is not None and found.threads and group.threads not in found.threads:
        allowed = " or ".join(map(str, found.threads))
        yield wrong(
            "capacity",
            f"{name} takes {allowed} threads for each core, not {group.threads}",
            f"{group.path}.ThreadsPerCore",
        )
    if not found.current:
        yield doubtful(
            "capacity",
            f"{name} is of an old generation, of which AWS has ever less",
            f"{group.path}.InstanceType",
        )
    if isinstance(seen.subnets, HyperpodError) or isinstance(seen.zones, HyperpodError):
        return  # said above
    there = seen.zones.get(name, frozenset())
    zones = {seen.subnets[one].zone for one in config.subnets_of(group) if one in seen.subnets}
    # A training plan has its own zone.
    if zones and there and not zones & there and group.plan is None:
        yield wrong(
            "capacity",
            f"there is no {name} in {', '.join(sorted(zones))}",
            f"{group.path}.InstanceType",
            f"it is in {', '.join(sorted(there))}: take a subnet there",
        )


def _quotas(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    if isinstance(seen.quotas, HyperpodError):
        yield of_error("capacity", seen.quotas)
        return
    wanted = Counter[str]()
    for group in config.groups:
        # A group of several types may come in any of them; a training plan has its own quota.
        if len(group.types) == 1 and group.plan is None:
            wanted[group.types[0]] += group.count or 0
    for name, count in sorted((+wanted).items()):
        yield from _quota(f"{name} for cluster usage", count, seen.quotas)
    every = sum(group.count or 0 for group in config.groups)
    for title in (MOST_IN_CLUSTER, MOST_IN_ALL):
        if title in seen.quotas:
            yield from _quota(title, every, seen.quotas)


def _quota(title: str, count: int, quotas: Mapping[str, float]) -> Iterator[Verdict]:
    allowed = quotas.get(title)
    if allowed is None:
        yield Verdict(
            "capacity", "unknown", f"there is no quota '{title}' to compare {count} instances with"
        )
    elif count > allowed:
        yield wrong(
            "capacity",
            f"{count} instances are wanted, and the quota '{title}' is {allowed:.0f}",
            "InstanceGroups",
            _RAISE,
        )


def _roles(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    said = set[str]()
    for group in config.groups:
        if group.role is None or group.role in said or group.role not in seen.roles:
            continue
        said.add(group.role)
        found, at = seen.roles[group.role], f"{group.path}.ExecutionRole"
        if isinstance(found, NotFoundError):
            yield wrong("role", f"there is no role {group.role}", at, found.hint)
        elif isinstance(found, HyperpodError):
            yield of_error("role", found, at)
        elif not trusts(found):
            yield wrong(
                "role",
                f"{group.role.rpartition('/')[2]} does not trust {SERVICE}, so instances cannot take it",
                at,
                f"let its trust policy allow sts:AssumeRole to the service {SERVICE}",
            )


def trusts(document: Mapping[str, Any], service: str = SERVICE) -> bool:
    """Whether a trust policy lets a service take the role; conditions are not looked at."""
    verdicts = [
        one.get("Effect")
        for one in _listed(document.get("Statement"))
        if isinstance(one, dict) and _is_about(one, service)
    ]
    return "Allow" in verdicts and "Deny" not in verdicts


def _is_about(statement: Mapping[str, Any], service: str) -> bool:
    principal = statement.get("Principal")
    services = (
        _listed(principal.get("Service")) if isinstance(principal, dict) else _listed(principal)
    )
    actions = _listed(statement.get("Action"))
    return bool({service, "*"} & set(services)) and bool(
        {"sts:AssumeRole", "sts:*", "*"} & set(actions)
    )


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [] if value is None else [value]


def _name(config: ClusterConfig, seen: Seen) -> Iterator[Verdict]:
    if isinstance(seen.existing, HyperpodError):
        yield of_error("cluster", seen.existing, "ClusterName")
    elif seen.existing is not None:
        failed = seen.existing == "Failed"
        instead = f"delete-cluster {config.name}" if failed else "update-cluster"
        yield wrong(
            "cluster",
            f"there is a cluster {config.name} already ({seen.existing})",
            "ClusterName",
            f"take another name, or: hpj admin {instead}",
        )


def _eks(seen: Seen) -> Iterator[Verdict]:
    at = "Orchestrator.Eks.ClusterArn"
    found = seen.eks
    if found is None:
        return
    if isinstance(found, HyperpodError):
        yield of_error("eks", found, at)
        return
    if found.status != "ACTIVE":
        yield wrong("eks", f"the EKS cluster is {found.status}", at, "wait until it is ACTIVE")
    if found.authentication == "CONFIG_MAP":
        yield wrong(
            "eks",
            "the EKS cluster knows people by a ConfigMap only; HyperPod needs access entries",
            at,
            "aws eks update-cluster-config --access-config authenticationMode=API_AND_CONFIG_MAP",
        )
    if isinstance(seen.subnets, HyperpodError):
        yield of_error("eks", seen.subnets, "VpcConfig.Subnets")
        return
    if found.vpc is None:
        yield Verdict("eks", "unknown", "could not be checked: AWS does not tell its VPC", None, at)
        return
    vpcs = {one.vpc for one in seen.subnets.values()}
    if vpcs and found.vpc not in vpcs:
        yield wrong(
            "eks",
            f"the EKS cluster is in {found.vpc}, and the subnets are of {', '.join(sorted(vpcs))}",
            "VpcConfig.Subnets",
        )
