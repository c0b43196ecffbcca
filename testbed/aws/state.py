"""What there is in the pretended account: plain data, to be changed by tests and demos as they like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from testbed.aws.control_plane import ControlPlane
from testbed.aws.ground import Ground
from testbed.aws.iam import EVERYTHING, Policy
from testbed.aws.network import SUBNET, VPC, Network
from testbed.aws.telemetry import Telemetry
from testbed.aws.timeline import Timeline

if TYPE_CHECKING:
    from testbed.aws.mlflow import MlflowHost

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
    more: dict[str, Any] = field(default_factory=dict)
    """Further members of its description, as in the API."""


@dataclass
class Event:
    """Something that happened to a cluster; `resource` is ``Cluster``, ``InstanceGroup`` or ``Instance``, `metadata` as in the API."""

    time: datetime
    description: str
    level: str = "Info"
    resource: str = "Cluster"
    group: str | None = None
    instance: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class Cluster:
    """A HyperPod cluster of one region. `orchestrator` and `settings`, further members of its description, are as in the API; an orchestrator of None leaves the field out.

    Of another `salt` its instances have other ids.
    """

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
    events: list[Event] = field(default_factory=list)
    network: dict[str, Any] | None = None
    """Its VpcConfig, as in the API."""
    settings: dict[str, Any] = field(default_factory=dict)
    salt: str = ""
    _nodes_made: int = 0

    def add_group(self, name: str, instance_type: str, count: int, **more: Any) -> Group:
        """Add an instance group with all its nodes, which run."""
        group = Group(name, instance_type, count, **more)
        self.groups.append(group)
        for _ in range(count):
            self.add_node(group)
        return group

    def add_node(self, group: Group, **more: Any) -> Node:
        """Add a node to a group, with an instance id that none of the cluster had before."""
        number = self._nodes_made
        self._nodes_made += 1
        name = hashlib.sha256(f"{self.arn}/{group.name}/{number}{self.salt}".encode()).hexdigest()[:17]
        known = {
            "launched": self.created + timedelta(minutes=number),
            "address": f"10.{number // 62500 % 250}.{number // 250 % 250}.{number % 250 + 1}",
            **more,
        }
        node = Node(instance_id=f"i-{name}", group=group.name, **known)
        self.nodes.append(node)
        return node

    def group_of(self, node: Node) -> Group:
        """The instance group of a node."""
        return next(group for group in self.groups if group.name == node.group)


def lustre_at(file_system: str, path: str) -> dict[str, Any]:
    """An entry of the custom file systems of a domain or profile."""
    return {"FSxLustreFileSystemConfig": {"FileSystemId": file_system, "FileSystemPath": path}}


def attached(file_system: str) -> dict[str, Any]:
    """An entry of the custom file systems of a space."""
    return {"FSxLustreFileSystem": {"FileSystemId": file_system}}


@dataclass
class ComputeQuota:
    """What a team has of a cluster; `config` and `target` are as in the API."""

    ident: str
    name: str
    cluster_arn: str
    config: dict[str, Any]
    target: dict[str, Any]
    status: str = "Created"
    failure: str | None = None
    activation: str = "Enabled"
    created: datetime = START


@dataclass
class SchedulerConfig:
    """The policy of a cluster; `rules` are as in the API."""

    ident: str
    name: str
    cluster_arn: str
    rules: dict[str, Any]
    status: str = "Created"
    failure: str | None = None
    created: datetime = START


AppSettings = dict[str, dict[str, Any]]
"""By ``JupyterLab`` and ``CodeEditor``: their settings as the API has them, but for idle shutdown."""


@dataclass
class Space:
    """A space of Studio, ``Private`` or ``Shared``; file systems as the API has them (`attached`), what runs in it, and the IdleSettings of its applications.

    Those of domains and profiles are the same.
    """

    owner: str
    sharing: str = "Private"
    file_systems: list[dict[str, Any]] = field(default_factory=list)
    status: str = "InService"
    tags: dict[str, str] = field(default_factory=dict)
    apps: list[str] = field(default_factory=list)
    idle: dict[str, Any] = field(default_factory=dict)
    app_settings: AppSettings = field(default_factory=dict)
    started_with: list[str] = field(default_factory=list)
    """ARNs of the lifecycle configurations that its applications were started with."""


@dataclass
class Domain:
    """A domain of Studio. File systems as the API has them (`lustre_at`): what its users have, and what its shared spaces have."""

    name: str = "example"
    status: str = "InService"
    network: str = "VpcOnly"
    vpc: str = VPC
    subnets: list[str] = field(default_factory=lambda: [SUBNET])
    groups: list[str] = field(default_factory=list)
    file_systems: list[dict[str, Any]] = field(default_factory=list)
    shared_file_systems: list[dict[str, Any]] = field(default_factory=list)
    role: str = "arn:aws:iam::111122223333:role/StudioRole"
    tags: dict[str, str] = field(default_factory=dict)
    idle: dict[str, Any] = field(default_factory=dict)
    shared_idle: dict[str, Any] = field(default_factory=dict)
    app_settings: AppSettings = field(default_factory=dict)
    shared_app_settings: AppSettings = field(default_factory=dict)
    space_role: str | None = field(default=None, compare=False)
    created: datetime = field(default=START, compare=False)


@dataclass
class Profile:
    """A user profile of Studio, with a user number of its own on file systems where it was made with one."""

    uid: int | None = None
    gid: int = 1001
    groups: list[str] = field(default_factory=list)
    file_systems: list[dict[str, Any]] = field(default_factory=list)
    status: str = "InService"
    tags: dict[str, str] = field(default_factory=dict)
    idle: dict[str, Any] = field(default_factory=dict)
    app_settings: AppSettings = field(default_factory=dict)


@dataclass
class StudioLifecycleConfig:
    """A script that runs when an application of Studio starts: its content (base64), and the application's type as the API calls it."""

    content: str
    app_type: str
    tags: dict[str, str] = field(default_factory=dict)
    created: datetime = START


@dataclass
class LustreFileSystem:
    """A file system of FSx for Lustre. `lustre` goes over its LustreConfiguration, `associations` are links to S3, both as in the API; the capacity is in GiB."""

    file_system_id: str
    mount_name: str
    capacity: int = 1200
    lifecycle: str = "AVAILABLE"
    created: datetime = START
    lustre: dict[str, Any] = field(default_factory=dict)
    associations: list[dict[str, Any]] = field(default_factory=list)
    vpc: str = VPC
    subnets: list[str] = field(default_factory=lambda: [SUBNET])
    interfaces: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Caller:
    """Who owns a key, and what they may do; of a session with a policy of its own, no more than that allows."""

    arn: str
    user_id: str
    expired: bool = False
    policies: tuple[Policy, ...] = (Policy(EVERYTHING),)
    secret: str = "of-the-testbed"
    session: Policy | None = None


@dataclass
class Account:
    """An AWS account.

    Attributes:
        account_id: Its twelve digits.
        partition: ``aws``, ``aws-cn`` or ``aws-us-gov``.
        clusters: HyperPod clusters by region.
        callers: Who owns which access key.
        spaces: Spaces of Studio by domain id and name.
        timeline: The account's clock, and what is to happen on it.
        profiles: User profiles of Studio by domain id and name.
        file_systems: File systems of FSx for Lustre by region.
        telemetry: What CloudWatch has.
        domains: Domains of Studio by id.
        networks: Security groups and network interfaces by region.
        update_time: How long SageMaker takes to update a domain, profile or space.
        update_ends: In which status updates end, by the name of what is updated, where it is another than ``InService``.
        quotas: Quotas of teams by region.
        policies: Policies of clusters by region.
        control_planes: EKS clusters that answer, by region and name; others are being made.
        addons: The configuration of EKS' add-ons, as text, by region, EKS cluster and add-on.
        workspaces: The address of the Prometheus behind each workspace, by region and the workspace's id.
        mlflow: MLflow tracking servers and Apps by region.
        lifecycle_configs: Lifecycle configurations of Studio by region and name.
        ground: What clusters are made from: roles, buckets, quotas, instance types.
        session_preferences: The inputs of Session Manager's preferences by region; none: they were never saved.
        role_tags: The tags of roles by their names.
        trail: Records of CloudTrail, as JSON has them.
        products: Products of the Price List, as JSON has them.
        nodes_are_connected: Systems Manager has heard of the nodes of clusters.
    """

    account_id: str = "111122223333"
    partition: str = "aws"
    clusters: dict[str, list[Cluster]] = field(default_factory=dict)
    callers: dict[str, Caller] = field(default_factory=dict)
    spaces: dict[tuple[str, str], Space] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)
    profiles: dict[tuple[str, str], Profile] = field(default_factory=dict)
    file_systems: dict[str, list[LustreFileSystem]] = field(default_factory=dict)
    telemetry: Telemetry = field(default_factory=Telemetry)
    domains: dict[str, Domain] = field(default_factory=dict)
    networks: dict[str, Network] = field(default_factory=dict)
    update_time: timedelta = timedelta(seconds=20)
    update_ends: dict[str, str] = field(default_factory=dict)
    quotas: dict[str, list[ComputeQuota]] = field(default_factory=dict)
    policies: dict[str, list[SchedulerConfig]] = field(default_factory=dict)
    control_planes: dict[tuple[str, str], ControlPlane] = field(default_factory=dict)
    addons: dict[tuple[str, str, str], str] = field(default_factory=dict)
    workspaces: dict[tuple[str, str], str] = field(default_factory=dict)
    mlflow: dict[str, list[MlflowHost]] = field(default_factory=dict)
    lifecycle_configs: dict[tuple[str, str], StudioLifecycleConfig] = field(default_factory=dict)
    ground: Ground = field(default_factory=Ground)
    session_preferences: dict[str, dict[str, Any]] = field(default_factory=dict)
    role_tags: dict[str, dict[str, str]] = field(default_factory=dict)
    trail: list[dict[str, Any]] = field(default_factory=list)
    products: list[dict[str, Any]] = field(default_factory=list)
    nodes_are_connected: bool = True

    def add_caller(
        self, access_key: str, role: str = "StudioRole", *policies: Mapping[str, Any], expired: bool = False
    ) -> Caller:
        """Let a key speak for a session of a role.

        Args:
            access_key: The key.
            role: The role's name.
            policies: The role's policies; default: one that allows everything.
            expired: Whether the session is over.

        Raises:
            PolicyError: A policy is none, or has what is not known here.
        """
        arn = f"arn:{self.partition}:sts::{self.account_id}:assumed-role/{role}/SageMaker"
        granted = tuple(Policy(one) for one in policies or (EVERYTHING,))
        self.callers[access_key] = Caller(arn, "AROAEXAMPLE:SageMaker", expired, granted)
        return self.callers[access_key]

    def role_arn(self, role: str) -> str:
        """A role, as access entries of EKS name it."""
        return f"arn:{self.partition}:iam::{self.account_id}:role/{role}"

    def add_cluster(self, name: str, region: str, **more: Any) -> Cluster:
        """Add a cluster without instance groups."""
        number = sum(map(len, self.clusters.values()))
        ident = hashlib.sha256(f"{region}/{name}".encode()).hexdigest()[:12]
        arn = f"arn:{self.partition}:sagemaker:{region}:{self.account_id}:cluster/{ident}"
        cluster = Cluster(name, arn, **{"created": START + timedelta(minutes=number), **more})
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
