"""HyperPod clusters of an account, from SageMaker's API. Words that are newer than this package are kept as they came."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
)
from hyperpod_jlab.core.hyperpod import (
    HyperpodCluster,
    Instance,
    InstanceGroup,
    LustreStorage,
    settings_of,
)
from hyperpod_jlab.core.instance_types import InstanceType, ec2_name, from_ec2, instance_type
from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM
from hyperpod_jlab.storage.mounts import own_cache

_NAME = re.compile(
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:cluster/[a-z0-9]{12}|[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
)
"""Names and ARNs of clusters (SageMaker's service model)."""

NO_ORCHESTRATOR = "AWS shows no orchestrator; older Slurm clusters have none, so Slurm is assumed"
"""What is said of a cluster whose description names none."""


def checked(name: str) -> str:
    """A cluster's name or ARN, once it has the form of one.

    Raises:
        InvalidInputError: It has not.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"'{name[:80]}' is not a valid name of a HyperPod cluster",
            code="no_cluster_name",
            hint="use letters, digits and hyphens, such as ml-cluster, or an ARN; see: hpj clusters",
            detail={"field": "cluster"},
        )
    return name


async def list_clusters(aws: Aws) -> AsyncIterator[list[HyperpodCluster]]:
    """All clusters of the account in the region, page by page, each as far as the list tells of it.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    region = await aws.region()
    async for page in aws.pages("sagemaker", "ListClusters"):
        yield [
            HyperpodCluster(
                name=str(one["ClusterName"]),
                arn=str(one["ClusterArn"]),
                region=region,
                status=str(one["ClusterStatus"]),
                created_at=_seconds(one.get("CreationTime")),
                image_status=one.get("ImageVersionStatus"),
            )
            for one in page.get("ClusterSummaries", [])
        ]


async def describe_cluster(aws: Aws, cluster: HyperpodCluster) -> HyperpodCluster:
    """The same cluster, of which the name or the ARN is enough, with all that its description tells.

    Raises:
        NotFoundError: It has been deleted.
        HyperpodError: See `aws.errors`.
    """
    told = await aws.call("sagemaker", "DescribeCluster", ClusterName=checked(cluster.name))
    orchestrator, eks_arn = _orchestrator(told.get("Orchestrator"))
    groups = [
        *(told.get("InstanceGroups") or []),
        *(told.get("RestrictedInstanceGroups") or []),
    ]
    return replace(
        cluster,
        name=str(told.get("ClusterName") or cluster.name),
        arn=str(told["ClusterArn"]),
        status=str(told["ClusterStatus"]),
        created_at=_seconds(told.get("CreationTime")) or cluster.created_at,
        orchestrator=orchestrator,
        eks_arn=eks_arn,
        groups=tuple(_group(group) for group in groups),
        node_recovery=told.get("NodeRecovery"),
        provisioning=told.get("NodeProvisioningMode"),
        reason=told.get("FailureMessage") or _remark(told),
        settings=settings_of(told),
    )


async def list_instances(aws: Aws, cluster: str) -> AsyncIterator[list[Instance]]:
    """The instances of a cluster, page by page; one that moves between two pages is given once.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: There is no such cluster.
        HyperpodError: See `aws.errors`.
    """
    seen: set[str] = set()
    async for page in aws.pages("sagemaker", "ListClusterNodes", ClusterName=checked(cluster)):
        found = {one["InstanceId"]: one for one in page.get("ClusterNodeSummaries", [])}
        yield [_instance(one) for name, one in found.items() if name not in seen]
        seen.update(found)


def node_target(arn: str, node: Instance) -> str:
    """What Systems Manager calls a node: ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE`` (HyperPod's documentation).

    Args:
        arn: The cluster's ARN.
        node: The node.
    """
    return f"sagemaker-cluster:{arn.rpartition('/')[2]}_{node.instance_group}-{node.name}"


async def list_tags(aws: Aws, arn: str) -> dict[str, str]:
    """The tags of something of SageMaker, by its ARN.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    return {
        str(tag["Key"]): str(tag["Value"])
        async for page in aws.pages("sagemaker", "ListTags", ResourceArn=arn)
        for tag in page.get("Tags", [])
    }


def _orchestrator(told: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    if not told:
        return SLURM, None
    if "Eks" in told:
        return KUBERNETES, told["Eks"].get("ClusterArn")
    return (SLURM if "Slurm" in told else None), None


def _remark(told: Mapping[str, Any]) -> str | None:
    """What is to be said of the orchestrator."""
    named = told.get("Orchestrator") or {}
    if not named:
        return NO_ORCHESTRATOR
    if named.keys() & {"Eks", "Slurm"}:
        return None
    return f"its orchestrator {', '.join(named)} is not supported"


def _group(told: Mapping[str, Any]) -> InstanceGroup:
    life = told.get("LifeCycleConfig") or {}
    return InstanceGroup(
        name=str(told.get("InstanceGroupName", "")),
        status=told.get("Status"),
        instance_type=told.get("InstanceType"),
        current=int(told.get("CurrentCount", 0)),
        target=int(told.get("TargetCount", 0)),
        slurm_role=(told.get("SlurmConfig") or {}).get("NodeType"),
        storage=tuple(
            LustreStorage(one["DnsName"], one["MountName"], one.get("MountPath"))
            for config in told.get("InstanceStorageConfigs") or []
            if (one := config.get("FsxLustreConfig"))
        ),
        capacity=_capacity(told.get("CapacityRequirements") or {}),
        script=_script(life.get("SourceS3Uri"), life.get("OnCreate")),
        role_arn=told.get("ExecutionRole"),
        checks=tuple(told.get("OnStartDeepHealthChecks") or ()),
    )


def _capacity(told: Mapping[str, Any]) -> str | None:
    """``Spot`` or ``OnDemand``, by which of them is described; a word that is newer is kept."""
    return next(iter(told), None)


def _script(folder: str | None, name: str | None) -> str | None:
    """Where a life cycle script lies."""
    if folder is None or name is None:
        return folder
    return f"{folder.rstrip('/')}/{name}"


def _instance(told: Mapping[str, Any]) -> Instance:
    status = told.get("InstanceStatus") or {}
    return Instance(
        name=str(told["InstanceId"]),
        instance_group=str(told["InstanceGroupName"]),
        instance_type=str(told["InstanceType"]),
        status=str(status.get("Status", "")),
        reason=status.get("Message"),
        launched_at=_seconds(told.get("LaunchTime")),
        host=told.get("PrivateDnsHostname"),
        logical_id=told.get("NodeLogicalId"),
        image_version=told.get("CurrentImageReleaseVersion"),
        image_status=told.get("ImageVersionStatus"),
    )


def _seconds(moment: Any) -> float | None:
    """A time as Unix seconds: it comes as a datetime, or as a number where boto3 does not know it for a time."""
    if moment is None:
        return None
    return float(moment if isinstance(moment, int | float) else moment.timestamp())


# --------------------------------------------------------------------------------------------------
# Login nodes of a HyperPod cluster, where its Slurm is configured by AWS' API: there instance groups say what their instances are to Slurm.

_LOGIN, _CONTROLLER = "Login", "Controller"
"""What SageMaker's service model calls them (ClusterSlurmNodeType)."""

_RUNNING = "Running"

_NAME_THEM = 'set them in the configuration: login_nodes = ["HOST"]'

_NOT_SLURM = f'open a terminal on a node: hpj terminal NODE; in the configuration, orchestrator = "{KUBERNETES}"'

NO_LOGIN_NODES = "no_login_nodes"
"""Code of the errors where a cluster has none."""


@dataclass(frozen=True)
class LoginNodes:
    """Machines of a cluster that take logins.

    Attributes:
        cluster: The cluster.
        instances: Those that run, by their ids, so that everybody has the same order.
        controller: Whether they are the controller's, because no group is one of login nodes.
    """

    cluster: HyperpodCluster
    instances: tuple[Instance, ...]
    controller: bool

    @property
    def note(self) -> str | None:
        """What a user should know of them."""
        if not self.controller:
            return None
        return (
            f"{self.cluster.name} has no instance group of login nodes, so its controller is used"
        )


async def find_login_nodes(aws: Aws, cluster: str) -> LoginNodes:
    """The login nodes of a cluster; the controller where it has none.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: There is no such cluster, or AWS knows no login nodes of it (``no_login_nodes``).
        UnreachableError: None of them runs.
        HyperpodError: See `aws.errors`.
    """
    bare = HyperpodCluster(cluster, cluster, await aws.region(), "")
    found = await describe_cluster(aws, bare)
    roles = {group.name: group.slurm_role for group in found.groups or ()}
    role = next((one for one in (_LOGIN, _CONTROLLER) if one in roles.values()), None)
    if role is None:
        why = (
            "its instance groups have no Slurm roles"
            if found.on_slurm
            else "it is not a Slurm cluster"
        )
        on_slurm = found.on_slurm or found.orchestrator is None
        raise NotFoundError(
            f"AWS shows no login nodes of {found.name}: {why}",
            code=NO_LOGIN_NODES,
            hint=_NAME_THEM if on_slurm else _NOT_SLURM,
            detail={"field": "login_nodes"},
        )
    ours = [
        one
        async for page in list_instances(aws, cluster)
        for one in page
        if roles.get(one.instance_group) == role
    ]
    running = [one for one in ours if one.status == _RUNNING and one.host is not None]
    if not running:
        states = ", ".join(f"{one.name} is {one.status}" for one in ours) or "there are none"
        raise UnreachableError(
            f"no login node of {found.name} is running: {states}",
            code=NO_LOGIN_NODES,
            hint=f"try again when a login node is running, or {_NAME_THEM}",
        )
    running.sort(key=lambda one: one.name)
    return LoginNodes(found, tuple(running), controller=role == _CONTROLLER)


# --------------------------------------------------------------------------------------------------
# Facts of instance types from EC2. What it says of one is kept in the user's cache directory, so that no submit waits for it twice.

_INSTANCE_TYPES_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")

_KEPT = 30 * 86400.0
"""Seconds for which an answer counts: types do not change."""

_SILENT = 3600.0
"""Seconds for which EC2 is not asked again, where it could not say and the table can."""


async def described_types(aws: Aws, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """EC2's descriptions of types, all by EC2's names; those that it does not know in this region are left out.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    wanted = [{"Name": "instance-type", "Values": sorted(names)}]
    # By a filter, for by names one that is not there hides all others.
    told = await aws.call("ec2", "DescribeInstanceTypes", Filters=wanted)
    return {str(one["InstanceType"]): one for one in told.get("InstanceTypes") or ()}


async def asked_type(name: str) -> InstanceType | HyperpodError | None:
    """What EC2 says of a type, else what the table has of it. EC2 has few seconds to say it.

    Args:
        name: The type, with or without SageMaker's ``ml.`` before it.

    Returns:
        Its facts. Where neither knows it: why EC2 could not be asked, or None when it could.
    """
    name = ec2_name(name)
    known = instance_type(name)
    if not _INSTANCE_TYPES_NAME.fullmatch(name):
        return known
    seen = await asyncio.to_thread(_read)
    facts, when = seen.get(name, (None, 0.0))
    age = time.time() - when
    if 0 <= age < _KEPT and facts is not None:
        return facts
    if 0 <= age < _SILENT and known is not None:
        return known
    refusal = None
    try:
        told = (await described_types(Aws(hasty=True), [name])).get(name)
        facts = from_ec2(told) if told is not None else None
    except HyperpodError as error:
        facts, refusal = None, error
    await asyncio.to_thread(_write, {**seen, name: (facts, time.time())})
    return facts or known or refusal


def _file() -> Path | None:
    folder = own_cache()
    return None if folder is None else folder / "instance-types.json"


def _read() -> dict[str, tuple[InstanceType | None, float]]:
    """What EC2 has said, and when; None where it could not."""
    file = _file()
    try:
        found = json.loads(file.read_text(encoding="utf-8")) if file is not None else {}
        return {
            str(name): (InstanceType(**facts) if facts is not None else None, float(when))
            for name, (facts, when) in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(seen: Mapping[str, tuple[InstanceType | None, float]]) -> None:
    file = _file()
    if file is None:
        return
    rows = {
        name: (asdict(facts) if facts is not None else None, when)
        for name, (facts, when) in seen.items()
    }
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # EC2 is asked again then
        new.write_text(json.dumps(rows), encoding="utf-8")
        new.replace(file)
