"""HyperPod clusters as AWS knows them: the clusters of an account, their instance groups and their instances.

Every `status` is AWS' own word, kept as it came, also one that is newer than this package; `state` is the same in the words of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import ConflictError, NotFoundError, nearest_hint
from hyperpod_jlab.core.reach import Reach
from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM, Scheduler
from hyperpod_jlab.core.wire import Time, Wire, shown

# --------------------------------------------------------------------------------------------------
# The settings of a HyperPod cluster in words: what AWS' description says of it beside its instance groups.

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
class InstanceGroup(Wire):
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
    @shown
    def state(self) -> str | None:
        """The state in our words."""
        return None if self.status is None else GROUP_STATES.get(self.status, self.status)


@dataclass(frozen=True)
class HyperpodCluster(Wire):
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

    @property
    @shown
    def state(self) -> str:
        """The state in our words."""
        return CLUSTER_STATES.get(self.status, self.status)

    @property
    def aws_orchestrator(self) -> str | None:
        """The orchestrator as AWS calls it, in small letters: ``slurm`` or ``eks``; None where AWS does not say it."""
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
    @shown
    def nodes(self) -> int | None:
        """How many nodes it has; None where that is not known."""
        return None if self.groups is None else sum(group.current for group in self.groups)

    @property
    @shown
    def target(self) -> int | None:
        """How many nodes it is to have; None where that is not known."""
        return None if self.groups is None else sum(group.target for group in self.groups)

    @property
    def storage(self) -> tuple[LustreStorage, ...]:
        """The file systems that its instances mount, as far as AWS says it; each once."""
        every = (storage for group in self.groups or () for storage in group.storage)
        return tuple(dict.fromkeys(every))


@dataclass(frozen=True)
class Instance(Wire):
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
    launched_at: Time | None = None
    host: str | None = None
    logical_id: str | None = None
    image_version: str | None = None
    image_status: str | None = None
    replaces: str | None = None

    @property
    @shown
    def state(self) -> str:
        """The state in our words."""
        return INSTANCE_STATES.get(self.status, self.status)


# --------------------------------------------------------------------------------------------------
# AWS' instances joined with the scheduler's nodes: which are the same machine, and what is to be said where one side is missing.
#
# On Kubernetes a node is called after its instance (``hyperpod-i-0123...``), so a replaced one has another name. On Slurm it is
# called by the first part of its name in the private network (``ip-10-1-2-3``), which a replaced one usually keeps: for a while AWS
# may list both instances, and the newer one that is not ending is the node.

_PREFIX = "hyperpod-"
_NO_SLURM_NODE = frozenset({"Controller", "Login"})
"""Roles of instance groups of Slurm that run no jobs."""

COMING = frozenset({"starting", "deep-health-check"})
"""States of instances that are to be nodes."""

GOING = frozenset({"ending", "failed", "not-found"})
"""States of instances that are nodes no more."""


def is_changing(instance: Instance) -> bool:
    """Whether an instance is about to come or to go by itself; a failed one may stay so for ever."""
    return instance.state in COMING or instance.state == "ending"


@dataclass(frozen=True)
class JoinedNode:
    """One machine as both sides know it; at least one of them does.

    Attributes:
        instance: What AWS knows.
        node: What the scheduler knows.
        remark: Why one side is missing, a sentence; None where that is as it is to be.
    """

    instance: Instance | None
    node: Node | None
    remark: str | None = None


def join_nodes(
    scheduler: Scheduler,
    instances: Sequence[Instance],
    nodes: Sequence[Node],
    roles: Mapping[str, str] | None = None,
) -> list[JoinedNode]:
    """Join what AWS lists with what the scheduler lists. Both lists are of about the same time; neither has to be complete.

    Args:
        scheduler: The cluster's scheduler.
        instances: AWS' instances.
        nodes: The scheduler's nodes.
        roles: What instance groups are to Slurm, such as ``Controller``, by their name.

    Returns:
        A row for each instance, in AWS' order, then one for each node that no instance belongs to, in the scheduler's.
    """

    def key(instance: Instance) -> str | None:
        return instance_key(scheduler, instance)

    waiting: dict[str, list[Node]] = {}
    for node in nodes:
        waiting.setdefault(_node_key(scheduler, node), []).append(node)
    holders = _holders(instances, key)
    rows = []
    for instance in instances:
        name = key(instance)
        holder = holders.get(name) if name else None
        if holder is not None and holder is not instance:
            rows.append(JoinedNode(instance, None, f"its place is taken by {holder.name}"))
            continue
        found = waiting.get(name) if name else None
        if found:
            rows.append(JoinedNode(instance, found.pop(0)))
        else:
            rows.append(JoinedNode(instance, None, _without_node(instance, name, roles or {})))
    left = (
        node for node in nodes if any(node is one for one in waiting[_node_key(scheduler, node)])
    )
    return [*rows, *(JoinedNode(None, node, _without_instance(scheduler)) for node in left)]


def instance_key(scheduler: Scheduler, instance: Instance) -> str | None:
    """What an instance and its node have in common, in small letters: the instance id, or the first part of the host's name; None where AWS does not tell it."""
    if not scheduler.names_nodes_by_host:
        return instance.name
    return _first_part(instance.host) if instance.host else None


def _first_part(host: str) -> str:
    return host.partition(".")[0].lower()


def _node_key(scheduler: Scheduler, node: Node) -> str:
    if not scheduler.names_nodes_by_host:
        return node.name.removeprefix(_PREFIX)
    return _first_part(node.name)


def _holders(
    instances: Iterable[Instance], key: Callable[[Instance], str | None]
) -> dict[str, Instance]:
    """Who is the node of a name, where several instances have had it."""
    found: dict[str, Instance] = {}
    for instance in instances:
        name = key(instance)
        if name is not None and (name not in found or rank(instance) > rank(found[name])):
            found[name] = instance
    return found


def rank(instance: Instance) -> tuple[bool, float]:
    """Who is rather in a place that several have had: one that stays rather than one that ends, then the newer one."""
    return instance.state not in GOING, instance.launched_at or 0.0


def _without_node(instance: Instance, name: str | None, roles: Mapping[str, str]) -> str | None:
    if roles.get(instance.instance_group) in _NO_SLURM_NODE:
        return None
    if name is None:
        return "AWS does not tell its name, so it cannot be found in the scheduler"
    if instance.state in COMING:
        return "it has not joined the cluster yet"
    if instance.state in GOING:
        return "it has left the cluster"
    return "the scheduler does not have it"


def _without_instance(scheduler: Scheduler) -> str:
    if not scheduler.names_nodes_by_host:
        return (
            "AWS does not list its instance: it was replaced or removed, or is about to be listed"
        )
    return "AWS lists no instance of this name: the node is gone, or its instance is being replaced"


# --------------------------------------------------------------------------------------------------
# The places of a cluster's instances: who comes into one has replaced who was there.

LATELY = 3600.0
"""Seconds since its start for which an instance is told to be a new one."""


class Places:
    """Which instance had each place of a cluster when its instances were last listed.

    A place is what stays the same in a replacement: the logical id where AWS tells it, else the host's name.
    """

    def __init__(self) -> None:
        self._holders: dict[str, Instance] = {}
        self._before: dict[str, str] = {}

    def note(self, instances: Iterable[Instance]) -> None:
        """All instances as they are listed now."""
        listed: dict[str, Instance] = {}
        for one in sorted(instances, key=rank):
            place = one.logical_id or one.host
            if place is None:
                continue
            earlier = listed.get(place) or self._holders.get(place)
            if earlier is not None and earlier.name != one.name:
                self._before[one.name] = earlier.name
            listed[place] = one
        self._holders |= listed
        names = {one.name for one in self._holders.values()}
        self._before = {new: old for new, old in self._before.items() if new in names}

    def told(self, instances: Sequence[Instance], now: float) -> list[Instance]:
        """The same instances, those that have lately come into the place of another with that one's id.

        Args:
            instances: The instances.
            now: The time (Unix seconds).
        """
        return [
            replace(one, replaces=self._before[one.name])
            if one.name in self._before and now - (one.launched_at or 0.0) < LATELY
            else one
            for one in instances
        ]


# --------------------------------------------------------------------------------------------------
# Which node a user means: by its instance id, by the scheduler's name or by its name in the private network.

_NODE_CHOICE_PREFIX = "hyperpod-"


def find_node(rows: Sequence[JoinedNode], name: str) -> JoinedNode:
    """The row of a node.

    Args:
        rows: The nodes of one cluster.
        name: What the user calls it; capitals do not matter.

    Raises:
        NotFoundError: There is none.
        ConflictError: Several have had this name, and it is not clear which has it now.
    """
    wanted = name.strip().lower()
    found = [row for row in rows if wanted in _names(row)]
    if not found:
        known = [one for row in rows for one in _names(row)]
        near = nearest_hint(wanted, known) if len(known) <= 1000 else None
        raise NotFoundError(
            f"the cluster has no node '{name[:100]}'",
            code="no_such_node",
            hint=near if near and near.startswith("did you mean") else "see: hpj nodes",
            detail={"node": name[:100]},
        )
    # Of a replaced node AWS may list both instances; the scheduler's node belongs to the one that is it now.
    current = [row for row in found if row.node is not None] or found
    if len(current) == 1:
        return current[0]
    instances = [row.instance for row in current if row.instance is not None]
    listed = ", ".join(f"{one.name} ({one.state})" for one in instances)
    raise ConflictError(
        f"several nodes are called '{name[:100]}': {listed}",
        code="ambiguous_node",
        hint="name one by its instance id",
        detail={"node": name[:100], "instances": [one.name for one in instances]},
    )


def _names(row: JoinedNode) -> set[str]:
    names: set[str] = set()
    if row.instance is not None:
        names.add(row.instance.name)
        if row.instance.host:
            names |= {row.instance.host, row.instance.host.partition(".")[0]}
    if row.node is not None:
        names |= {row.node.name, row.node.name.removeprefix(_NODE_CHOICE_PREFIX)}
    return {name.lower() for name in names}
