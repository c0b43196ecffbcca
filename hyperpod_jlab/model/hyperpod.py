"""HyperPod clusters as AWS knows them: the clusters of an account, their instance groups and their instances.

Every `status` is AWS' own word, kept as it came, also one that is newer than this package; `state` is the same in the words of ours.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from hyperpod_jlab.model.hyperpod_settings import Setting
from hyperpod_jlab.model.reach import Reach
from hyperpod_jlab.model.run import iso_time

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
"""Words for the states of clusters, by the API's."""

GROUP_STATES = {**CLUSTER_STATES, "Degraded": "degraded"}
"""Words for the states of instance groups, by the API's."""

INSTANCE_STATES = {
    "Running": "running",
    "Failure": "failed",
    "Pending": "starting",
    "ShuttingDown": "ending",
    "SystemUpdating": "updating-software",
    "DeepHealthCheckInProgress": "deep-health-check",
    "NotFound": "not-found",
}
"""Words for the states of instances, by the API's."""


def region_of(cluster: str) -> str | None:
    """The region that the ARN of a HyperPod cluster names; None for a plain name, which is in the region that was found."""
    found = _ARN.fullmatch(cluster)
    return found.group(1) if found else None


@dataclass(frozen=True)
class LustreStorage:
    """A file system of FSx for Lustre that an instance group mounts.

    Attributes:
        dns_name: Name of its server.
        mount_name: What is mounted from there.
        path: Where the instances mount it; None: at AWS' own choice.
    """

    dns_name: str
    mount_name: str
    path: str | None = None


@dataclass(frozen=True)
class InstanceGroup:
    """An instance group.

    Attributes:
        name: Its name.
        status: AWS' word for its state; None where AWS says none.
        instance_type: Type of its instances; None where it is of several.
        current: How many instances it has.
        target: How many it is to have.
        slurm_role: What its instances are to Slurm, such as ``Controller``, where AWS says it.
        storage: The file systems that its instances mount.
        capacity: ``Spot`` or ``OnDemand``; None where AWS does not say it.
        script: The life cycle script that an instance runs when it is made, as an address in S3.
        role_arn: The role that its instances act with.
        checks: The deep health checks that an instance has to pass when it starts.
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
    def state(self) -> str | None:
        """The state in our words."""
        return None if self.status is None else GROUP_STATES.get(self.status, self.status)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "state": self.state}


@dataclass(frozen=True)
class HyperpodCluster:
    """A HyperPod cluster of an account. What only its description tells is empty or None where that could not be had.

    Attributes:
        name: Its name.
        arn: Its ARN.
        region: Its region.
        status: AWS' word for its state.
        created_at: When it was made (Unix seconds).
        orchestrator: ``slurm`` or ``kubernetes``; None where AWS does not say it.
        eks_arn: ARN of the EKS cluster that orchestrates it.
        groups: Its instance groups; None where they could not be had.
        node_recovery: ``Automatic`` or ``None``: whether HyperPod repairs nodes by itself.
        provisioning: ``Continuous`` where instances come and go one by one.
        image_status: Whether updates of its software are due, such as ``UpdateAvailable``.
        configured_as: The names under which this machine's configuration has it.
        mounted_here: Where this machine has the file systems that its instances mount; empty: nowhere; None: not known, for AWS
            does not say which it mounts (life cycle scripts may mount others).
        reason: What is to be said of it: why it failed, or why its description could not be had.
        reach: Whether one can submit to it from this machine; None where that is not asked.
        settings: What else AWS' description says of it.
    """

    name: str
    arn: str
    region: str
    status: str
    created_at: float | None = None
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

    @property
    def state(self) -> str:
        """The state in our words."""
        return CLUSTER_STATES.get(self.status, self.status)

    @property
    def nodes(self) -> int | None:
        """How many nodes it has; None where that is not known."""
        return None if self.groups is None else sum(group.current for group in self.groups)

    @property
    def target(self) -> int | None:
        """How many nodes it is to have; None where that is not known."""
        return None if self.groups is None else sum(group.target for group in self.groups)

    @property
    def storage(self) -> tuple[LustreStorage, ...]:
        """The file systems that its instances mount, as far as AWS says it; each once."""
        every = (storage for group in self.groups or () for storage in group.storage)
        return tuple(dict.fromkeys(every))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601."""
        groups = None if self.groups is None else [group.to_dict() for group in self.groups]
        return {
            **asdict(self),
            "created_at": iso_time(self.created_at),
            "groups": groups,
            "state": self.state,
            "nodes": self.nodes,
            "target": self.target,
        }


@dataclass(frozen=True)
class Instance:
    """An instance of a HyperPod cluster: what AWS knows of a node.

    Attributes:
        name: Its instance id; a replaced node has a new one.
        instance_group: Name of its group.
        instance_type: Its type.
        status: AWS' word for its state.
        reason: AWS' sentence on the state; AWS keeps the last failure, which may be over.
        launched_at: When it was started (Unix seconds).
        host: Its name in the private network, by which Slurm's nodes are called.
        logical_id: What stays the same when it is replaced, on clusters that have it.
        image_version: Version of its software.
        image_status: Whether updates of it are due.
        replaces: Who was in its place before, where it is new there.
    """

    name: str
    instance_group: str
    instance_type: str
    status: str
    reason: str | None = None
    launched_at: float | None = None
    host: str | None = None
    logical_id: str | None = None
    image_version: str | None = None
    image_status: str | None = None
    replaces: str | None = None

    @property
    def state(self) -> str:
        """The state in our words."""
        return INSTANCE_STATES.get(self.status, self.status)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601."""
        return {**asdict(self), "launched_at": iso_time(self.launched_at), "state": self.state}
