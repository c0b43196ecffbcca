"""What there is in the pretended account: plain data, to be changed by tests and demos as they like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
"""When the first cluster was made; later things are a minute apart, so that orders are sure."""


@dataclass
class Node:
    """An instance of a cluster; fields named as the API names them, in our spelling."""

    instance_id: str
    group: str
    launched: datetime
    address: str
    status: str = "Running"
    message: str | None = None
    image_version: str | None = "1.2.0"
    image_status: str | None = "UpToDate"
    capacity: str | None = "OnDemand"


@dataclass
class Group:
    """An instance group."""

    name: str
    instance_type: str
    target: int
    status: str = "InService"
    slurm_node_type: str | None = None
    storage: list[dict[str, Any]] = field(default_factory=list)
    capacity: dict[str, Any] | None = None
    life_cycle: dict[str, str] | None = None
    checks: list[str] | None = None


@dataclass
class Cluster:
    """A HyperPod cluster of one region. `orchestrator` is as in the API; None leaves the field out."""

    name: str
    arn: str
    created: datetime
    status: str = "InService"
    failure: str | None = None
    orchestrator: dict[str, Any] | None = None
    node_recovery: str | None = "Automatic"
    provisioning: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    image_status: str | None = "UpToDate"
    groups: list[Group] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def add_group(self, name: str, instance_type: str, count: int, **more: Any) -> Group:
        """Add an instance group with all its nodes, which run."""
        group = Group(name, instance_type, count, **more)
        self.groups.append(group)
        for _ in range(count):
            self.add_node(group)
        return group

    def add_node(self, group: Group, **more: Any) -> Node:
        """Add a node to a group."""
        number = len(self.nodes)
        name = hashlib.sha256(f"{self.arn}/{group.name}/{number}".encode()).hexdigest()[:17]
        node = Node(
            instance_id=f"i-{name}",
            group=group.name,
            launched=self.created + timedelta(minutes=number),
            address=f"10.{number // 62500 % 250}.{number // 250 % 250}.{number % 250 + 1}",
            **more,
        )
        self.nodes.append(node)
        return node


@dataclass
class Space:
    """A space of Studio, ``Private`` or ``Shared``."""

    owner: str
    sharing: str = "Private"


@dataclass(frozen=True)
class Caller:
    """Who owns a key."""

    arn: str
    user_id: str
    expired: bool = False


@dataclass
class Account:
    """An AWS account.

    Attributes:
        account_id: Its twelve digits.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        clusters: HyperPod clusters by region.
        callers: Who owns which access key.
        spaces: Spaces of Studio by domain id and name.
    """

    account_id: str = "111122223333"
    partition: str = "aws"
    clusters: dict[str, list[Cluster]] = field(default_factory=dict)
    callers: dict[str, Caller] = field(default_factory=dict)
    spaces: dict[tuple[str, str], Space] = field(default_factory=dict)

    def add_caller(
        self, access_key: str, role: str = "StudioRole", *, expired: bool = False
    ) -> Caller:
        """Let a key speak for a session of a role."""
        arn = f"arn:{self.partition}:sts::{self.account_id}:assumed-role/{role}/SageMaker"
        self.callers[access_key] = Caller(arn, "AROAEXAMPLE:SageMaker", expired)
        return self.callers[access_key]

    def add_cluster(self, name: str, region: str, **more: Any) -> Cluster:
        """Add a cluster without instance groups."""
        number = sum(map(len, self.clusters.values()))
        ident = hashlib.sha256(f"{region}/{name}".encode()).hexdigest()[:12]
        arn = f"arn:{self.partition}:sagemaker:{region}:{self.account_id}:cluster/{ident}"
        cluster = Cluster(name, arn, START + timedelta(minutes=number), **more)
        self.clusters.setdefault(region, []).append(cluster)
        return cluster

    def eks(self, name: str, region: str) -> dict[str, Any]:
        """The orchestrator of a cluster on EKS, as the API has it."""
        arn = f"arn:{self.partition}:eks:{region}:{self.account_id}:cluster/{name}"
        return {"Eks": {"ClusterArn": arn}}

    def find(self, region: str, name_or_arn: str) -> Iterator[Cluster]:
        """The clusters of a region with this name or ARN: one or none."""
        for cluster in self.clusters.get(region, []):
            if name_or_arn in {cluster.name, cluster.arn}:
                yield cluster
