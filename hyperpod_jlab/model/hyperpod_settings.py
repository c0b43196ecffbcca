"""The settings of a HyperPod cluster in words: what AWS' description says of it beside its instance groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SHOWN_ELSEWHERE = frozenset(
    {
        *("ClusterArn", "ClusterName", "ClusterStatus", "CreationTime", "FailureMessage"),
        *("InstanceGroups", "ResponseMetadata"),
    }
)
"""What of a description is no setting, or shown elsewhere."""

_MEANINGS = {
    ("node-recovery", "Automatic"): "nodes that fail are rebooted or replaced by HyperPod",
    ("node-recovery", "None"): "nodes that fail stay as they are; somebody has to act on them",
    (
        "provisioning",
        "Continuous",
    ): "instances come and go one by one, while the cluster stays in service; AWS keeps its events",
    ("autoscaling", "Enable"): "instances are added and removed as the waiting work needs them",
    ("autoscaling", "Disable"): "the number of instances changes only when somebody changes it",
    (
        "tiered-storage",
        "Enable",
    ): "checkpoints can be kept in the memory of the nodes, and are brought to durable storage from there",
    ("tiered-storage", "Disable"): "checkpoints are not kept in the memory of the nodes",
}
"""What a setting's value means; values that are newer than this package are shown as they came."""

_ALWAYS = {
    "subnets": "where its instances have their network interfaces",
    "security-groups": "what lets traffic to its instances and from them; a file system's has to let them in",
    "cluster-role": "the role with which HyperPod adds and removes instances",
    "slurm-configuration": "who writes Slurm's partitions: HyperPod, an administrator, or both",
    "accounting-database": "where Slurm's accounting lies, instead of on the controller",
    "eks-cluster": "the EKS cluster whose pods run on its instances",
    "restricted-groups": "instance groups for training models such as Amazon Nova",
    "restricted-environment": "what the restricted instance groups share",
}


@dataclass(frozen=True)
class Setting:
    """A setting.

    Attributes:
        name: A word for it; AWS' own name where this package does not know the setting.
        value: Its value, in AWS' words; of several parts as JSON.
        meaning: What it means; None where this package does not know it.
    """

    name: str
    value: str
    meaning: str | None = None


def settings_of(told: Mapping[str, Any]) -> tuple[Setting, ...]:
    """The settings in AWS' answer to ``DescribeCluster``, known ones first."""
    found = [*_known(told)]
    taken = SHOWN_ELSEWHERE | _READ
    found += [
        Setting(name, _text(value))
        for name, value in sorted(told.items())
        if name not in taken and value not in (None, "", [], {})
    ]
    return tuple(found)


_READ = frozenset(
    {
        *(
            "NodeRecovery",
            "NodeProvisioningMode",
            "AutoScaling",
            "TieredStorageConfig",
            "VpcConfig",
        ),
        *("ClusterRole", "Orchestrator", "RestrictedInstanceGroups"),
        "RestrictedInstanceGroupsConfig",
    }
)


def _known(told: Mapping[str, Any]) -> Iterator[Setting]:
    for name, field in (
        ("node-recovery", "NodeRecovery"),
        ("provisioning", "NodeProvisioningMode"),
    ):
        if told.get(field):
            yield _setting(name, str(told[field]))
    if scaling := told.get("AutoScaling"):
        yield _autoscaling(scaling)
    if tiers := told.get("TieredStorageConfig"):
        share = tiers.get("InstanceMemoryAllocationPercentage")
        part = f"{share} % of the memory" if share else None
        yield _setting("tiered-storage", str(tiers.get("Mode", "")), part)
    network = told.get("VpcConfig") or {}
    for name, field in (("subnets", "Subnets"), ("security-groups", "SecurityGroupIds")):
        if network.get(field):
            yield _setting(name, ", ".join(map(str, network[field])))
    if told.get("ClusterRole"):
        yield _setting("cluster-role", str(told["ClusterRole"]))
    yield from _orchestration(told.get("Orchestrator") or {})
    if groups := told.get("RestrictedInstanceGroups"):
        names = ", ".join(str(group.get("InstanceGroupName", "")) for group in groups)
        yield _setting("restricted-groups", names)
    if shared := told.get("RestrictedInstanceGroupsConfig"):
        yield _setting(
            "restricted-environment", _text(shared.get("SharedEnvironmentConfig", shared))
        )


def _autoscaling(told: Mapping[str, Any]) -> Setting:
    mode, status = str(told.get("Mode", "")), told.get("Status")
    parts = [mode, *(f"by {kind}" for kind in [told.get("AutoScalerType")] if kind)]
    failed = told.get("FailureMessage")
    more = f"it is {status}: {failed}" if failed else None
    if status not in (None, "InService") and not failed:
        more = f"it is {status}"
    known = _setting("autoscaling", mode, more)
    return Setting("autoscaling", " ".join(parts), known.meaning)


def _orchestration(told: Mapping[str, Any]) -> Iterator[Setting]:
    if arn := (told.get("Eks") or {}).get("ClusterArn"):
        yield _setting("eks-cluster", str(arn))
    slurm = told.get("Slurm") or {}
    if strategy := slurm.get("SlurmConfigStrategy"):
        yield _setting("slurm-configuration", str(strategy))
    if database := slurm.get("AccountingDatabase"):
        port = f":{database['Port']}" if database.get("Port") else ""
        yield _setting("accounting-database", f"{database.get('Endpoint', '')}{port}")
    for name, value in sorted(told.items()):
        if name not in {"Eks", "Slurm"}:
            yield Setting(f"Orchestrator.{name}", _text(value))


def _setting(name: str, value: str, more: str | None = None) -> Setting:
    """A setting with what its value means, and more on that."""
    meaning = _MEANINGS.get((name, value), _ALWAYS.get(name))
    words = [word for word in (meaning, more) if word]
    return Setting(name, value, "; ".join(words) or None)


def _text(value: Any) -> str:
    """A value as it came: plain words as they are, others as JSON."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
