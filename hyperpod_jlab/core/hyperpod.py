"""HyperPod clusters as AWS describes them: the clusters of an account, their instance groups and their instances.

Every `status` is AWS' own value, unchanged, including values newer than this package; `state` is the normalized value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.reach import Reach
from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM
from hyperpod_jlab.core.wire import Time, Wire, wire_property

# --------------------------------------------------------------------------------------------------
# The settings of a HyperPod cluster: AWS' description apart from its instance groups.

SEPARATE_FIELDS = frozenset(
    {
        *("ClusterArn", "ClusterName", "ClusterStatus", "CreationTime", "FailureMessage"),
        *("InstanceGroups", "ResponseMetadata"),
    }
)
"""Fields of a description that are not settings, or are shown elsewhere."""

_MEANINGS = {
    ("node-recovery", "Automatic"): "HyperPod reboots or replaces failed nodes",
    ("node-recovery", "None"): "failed nodes stay as they are until you reboot or replace them",
    (
        "provisioning",
        "Continuous",
    ): "instances are added and removed one by one while the cluster stays in service; AWS records events",
    ("autoscaling", "Enable"): "HyperPod adds and removes instances to match the waiting work",
    ("autoscaling", "Disable"): "the number of instances changes only when you change it",
    ("tiered-storage", "Enable"): "nodes can keep checkpoints in memory and copy them to durable storage",
    ("tiered-storage", "Disable"): "nodes do not keep checkpoints in memory",
}
"""Meanings of setting values; values newer than this package are shown unchanged."""

_GENERAL_MEANINGS = {
    "subnets": "subnets of the instances' network interfaces",
    "security-groups": "security groups of the instances; those of a file system must allow their traffic",
    "cluster-role": "role with which HyperPod adds and removes instances",
    "slurm-configuration": "who configures Slurm's partitions: HyperPod, an administrator, or both",
    "accounting-database": "database of Slurm's accounting, if it is not on the controller",
    "eks-cluster": "EKS cluster whose pods run on the instances",
    "restricted-groups": "instance groups for training models such as Amazon Nova",
    "restricted-environment": "environment of the restricted instance groups",
}


@dataclass(frozen=True)
class Setting:
    """A setting.

    Attributes:
        name: Its name; AWS' own name if this package does not know the setting.
        value: Its value as AWS reports it; JSON if it has several parts.
        meaning: What the value means; None if unknown.
    """

    name: str
    value: str
    meaning: str | None = None


def settings_of(description: Mapping[str, Any]) -> tuple[Setting, ...]:
    """The settings in a response of ``DescribeCluster``, known ones first."""
    settings = [*_known_settings(description)]
    handled = SEPARATE_FIELDS | _HANDLED_FIELDS
    settings += [
        Setting(name, _text(value))
        for name, value in sorted(description.items())
        if name not in handled and value not in (None, "", [], {})
    ]
    return tuple(settings)


_HANDLED_FIELDS = frozenset(
    {
        *("NodeRecovery", "NodeProvisioningMode", "AutoScaling", "TieredStorageConfig", "VpcConfig"),
        *("ClusterRole", "Orchestrator", "RestrictedInstanceGroups"),
        "RestrictedInstanceGroupsConfig",
    }
)


def _known_settings(description: Mapping[str, Any]) -> Iterator[Setting]:
    for name, field in (("node-recovery", "NodeRecovery"), ("provisioning", "NodeProvisioningMode")):
        if description.get(field):
            yield _setting(name, str(description[field]))
    if scaling := description.get("AutoScaling"):
        yield _autoscaling(scaling)
    if tiers := description.get("TieredStorageConfig"):
        share = tiers.get("InstanceMemoryAllocationPercentage")
        part = f"{share} % of the memory" if share else None
        yield _setting("tiered-storage", str(tiers.get("Mode", "")), part)
    network = description.get("VpcConfig") or {}
    for name, field in (("subnets", "Subnets"), ("security-groups", "SecurityGroupIds")):
        if network.get(field):
            yield _setting(name, ", ".join(map(str, network[field])))
    if description.get("ClusterRole"):
        yield _setting("cluster-role", str(description["ClusterRole"]))
    yield from _orchestration(description.get("Orchestrator") or {})
    if groups := description.get("RestrictedInstanceGroups"):
        names = ", ".join(str(group.get("InstanceGroupName", "")) for group in groups)
        yield _setting("restricted-groups", names)
    if shared := description.get("RestrictedInstanceGroupsConfig"):
        yield _setting("restricted-environment", _text(shared.get("SharedEnvironmentConfig", shared)))


def _autoscaling(description: Mapping[str, Any]) -> Setting:
    mode, status = str(description.get("Mode", "")), description.get("Status")
    parts = [mode, *(f"by {kind}" for kind in [description.get("AutoScalerType")] if kind)]
    failure = description.get("FailureMessage")
    detail = f"it is {status}: {failure}" if failure else None
    if status not in (None, "InService") and not failure:
        detail = f"it is {status}"
    setting = _setting("autoscaling", mode, detail)
    return Setting("autoscaling", " ".join(parts), setting.meaning)


def _orchestration(description: Mapping[str, Any]) -> Iterator[Setting]:
    if arn := (description.get("Eks") or {}).get("ClusterArn"):
        yield _setting("eks-cluster", str(arn))
    slurm = description.get("Slurm") or {}
    if strategy := slurm.get("SlurmConfigStrategy"):
        yield _setting("slurm-configuration", str(strategy))
    if database := slurm.get("AccountingDatabase"):
        port = f":{database['Port']}" if database.get("Port") else ""
        yield _setting("accounting-database", f"{database.get('Endpoint', '')}{port}")
    for name, value in sorted(description.items()):
        if name not in {"Eks", "Slurm"}:
            yield Setting(f"Orchestrator.{name}", _text(value))


def _setting(name: str, value: str, detail: str | None = None) -> Setting:
    """A setting with its meaning and details."""
    meaning = _MEANINGS.get((name, value), _GENERAL_MEANINGS.get(name))
    sentences = [sentence for sentence in (meaning, detail) if sentence]
    return Setting(name, value, "; ".join(sentences) or None)


def _text(value: Any) -> str:
    """A value as text: strings unchanged, others as JSON."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


_ARN = re.compile(r"arn:[a-z0-9-]+:sagemaker:([a-z0-9-]+):\d+:cluster/.+")

CLUSTER_STATES = {
    "Creating": "creating",
    "Deleting": "deleting",
    "Failed": "failed",
    "InService": "in-service",
    "RollingBack": "rolling-back",
    "SystemUpdating": "updating-software",
    "Updating": "updating",
}
"""Cluster states, by the API's values."""

GROUP_STATES = {**CLUSTER_STATES, "Degraded": "degraded"}
"""Instance group states, by the API's values."""

INSTANCE_STATES = {
    "Running": "running",
    "Failure": "failed",
    "Pending": "starting",
    "ShuttingDown": "ending",
    "SystemUpdating": "updating-software",
    "DeepHealthCheckInProgress": "deep-health-check",
    "NotFound": "not-found",
}
"""Instance states, by the API's values."""


def region_of(cluster: str) -> str | None:
    """The region in a HyperPod cluster's ARN; None for a plain name, which is in the default region."""
    match = _ARN.fullmatch(cluster)
    return match.group(1) if match else None


@dataclass(frozen=True)
class LustreStorage:
    """An FSx for Lustre file system that an instance group mounts.

    Attributes:
        dns_name: The DNS name of its server.
        mount_name: Its mount name.
        path: The mount point on the instances; None: AWS' default.
    """

    dns_name: str
    mount_name: str
    path: str | None = None


@dataclass(frozen=True)
class InstanceGroup(Wire):
    """An instance group.

    Attributes:
        name: Its name.
        status: Its state as AWS reports it; None if AWS reports none.
        instance_type: The type of its instances; None if it has several types.
        current: Current number of instances.
        target: Target number of instances.
        slurm_role: The Slurm role of its instances, such as ``Controller``, if AWS reports it.
        storage: The file systems that its instances mount.
        capacity: ``Spot`` or ``OnDemand``; None if AWS does not report it.
        script: The S3 URL of the lifecycle script that runs when an instance is created.
        role_arn: The execution role of its instances.
        checks: The deep health checks that an instance must pass at startup.
    """

    name: str
    status: str | None
    instance_type: str | None
    current: int
    target: int
    slurm_role: str | None = None
    storage: tuple[LustreStorage, ...] = ()
    capacity: str | None = None
    script: str | None = None
    role_arn: str | None = None
    checks: tuple[str, ...] = ()

    @property
    @wire_property
    def state(self) -> str | None:
        return None if self.status is None else GROUP_STATES.get(self.status, self.status)


@dataclass(frozen=True)
class HyperpodCluster(Wire):
    """A HyperPod cluster of an account. Fields that only its description has are empty or None if that could not be read.

    Attributes:
        name: Its name.
        arn: Its ARN.
        region: Its region.
        status: Its state as AWS reports it.
        created_at: When it was created (Unix seconds).
        orchestrator: ``slurm`` or ``kubernetes``; None if AWS does not report it.
        eks_arn: ARN of the EKS cluster that orchestrates it.
        groups: Its instance groups; None if they could not be read.
        node_recovery: ``Automatic`` or ``None``: whether HyperPod repairs nodes automatically.
        provisioning: ``Continuous`` if instances are added and removed one by one.
        image_status: Whether software updates are pending, such as ``UpdateAvailable``.
        configured_as: Its names in this machine's configuration.
        mounted_here: Mount points of its instances' file systems on this machine; empty: none; None: unknown, since AWS does not report
            which file systems it mounts (lifecycle scripts may mount others).
        reason: Why it failed, or why its description could not be read.
        reach: Whether you can submit to it from this machine; None if not requested.
        settings: The other settings in AWS' description.
        described_at: When its description was requested (Unix seconds); None: not yet, or the request failed.
    """

    name: str
    arn: str
    region: str
    status: str
    created_at: Time | None = None
    orchestrator: str | None = None
    eks_arn: str | None = None
    groups: tuple[InstanceGroup, ...] | None = None
    node_recovery: str | None = None
    provisioning: str | None = None
    image_status: str | None = None
    configured_as: tuple[str, ...] = ()
    mounted_here: tuple[str, ...] | None = None
    reason: str | None = None
    reach: Reach | None = None
    settings: tuple[Setting, ...] = ()
    described_at: Time | None = None

    def __str__(self) -> str:
        """Tables filter by this."""
        return f"{self.name} {self.state} {self.status} {self.region}"

    @property
    @wire_property
    def state(self) -> str:
        return CLUSTER_STATES.get(self.status, self.status)

    @property
    def aws_orchestrator(self) -> str | None:
        """The orchestrator as AWS names it, in lower case: ``slurm`` or ``eks``; None if AWS does not report it."""
        return {SLURM: SLURM, KUBERNETES: "eks"}.get(self.orchestrator or "")

    @property
    def on_slurm(self) -> bool:
        """Whether Slurm orchestrates it."""
        return self.orchestrator == SLURM

    @property
    def on_eks(self) -> bool:
        """Whether EKS orchestrates it."""
        return self.orchestrator == KUBERNETES

    @property
    @wire_property
    def nodes(self) -> int | None:
        """Current number of nodes; None if unknown."""
        return None if self.groups is None else sum(group.current for group in self.groups)

    @property
    @wire_property
    def target(self) -> int | None:
        """Target number of nodes; None if unknown."""
        return None if self.groups is None else sum(group.target for group in self.groups)

    @property
    def storage(self) -> tuple[LustreStorage, ...]:
        """The file systems that its instances mount, as far as AWS reports them, without duplicates."""
        mounts = (storage for group in self.groups or () for storage in group.storage)
        return tuple(dict.fromkeys(mounts))


@dataclass(frozen=True)
class Instance(Wire):
    """An instance of a HyperPod cluster: AWS' data on a node.

    Attributes:
        name: Its instance id; a replaced node has a new one.
        instance_group: Name of its group.
        instance_type: Its type.
        status: Its state as AWS reports it.
        reason: AWS' message on the state; AWS keeps the last failure, which may be over.
        launched_at: When it was launched (Unix seconds).
        host: Its name in the private network, from which Slurm's node names derive.
        logical_id: An id that a replacement keeps, on clusters that have it.
        image_version: Version of its software.
        image_status: Whether software updates are pending.
        replaces: The instance that it has recently replaced.
    """

    name: str
    instance_group: str
    instance_type: str
    status: str
    reason: str | None = None
    launched_at: Time | None = None
    host: str | None = None
    logical_id: str | None = None
    image_version: str | None = None
    image_status: str | None = None
    replaces: str | None = None

    @property
    @wire_property
    def state(self) -> str:
        return INSTANCE_STATES.get(self.status, self.status)
