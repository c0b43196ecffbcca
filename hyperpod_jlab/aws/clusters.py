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
from hyperpod_jlab.storage.mounts import own_cache_folder

_NAME = re.compile(
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:cluster/[a-z0-9]{12}|[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
)
"""Names and ARNs of clusters (SageMaker's service model)."""

NO_ORCHESTRATOR = "AWS shows no orchestrator; older Slurm clusters have none, so Slurm is assumed"
"""What is said of a cluster whose description names none."""


def check_cluster_name(name: str) -> str:
    """A cluster's name or ARN, once it has the form of one.

    Raises:
        InvalidInputError: It has not.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"'{name[:80]}' is not a valid name of a HyperPod cluster",
            code="no_cluster_name",
            hint="use letters, digits and hyphens, such as ml-cluster, or an ARN; list clusters with: hpj clusters",
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
                name=str(summary["ClusterName"]),
                arn=str(summary["ClusterArn"]),
                region=region,
                status=str(summary["ClusterStatus"]),
                created_at=_seconds(summary.get("CreationTime")),
                image_status=summary.get("ImageVersionStatus"),
            )
            for summary in page.get("ClusterSummaries", [])
        ]


async def describe_cluster(aws: Aws, cluster: HyperpodCluster) -> HyperpodCluster:
    """The same cluster, of which the name or the ARN is enough, with all that its description tells.

    Raises:
        NotFoundError: It has been deleted.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call(
        "sagemaker", "DescribeCluster", ClusterName=check_cluster_name(cluster.name)
    )
    orchestrator, eks_arn = _orchestrator(response.get("Orchestrator"))
    groups = [
        *(response.get("InstanceGroups") or []),
        *(response.get("RestrictedInstanceGroups") or []),
    ]
    return replace(
        cluster,
        name=str(response.get("ClusterName") or cluster.name),
        arn=str(response["ClusterArn"]),
        status=str(response["ClusterStatus"]),
        created_at=_seconds(response.get("CreationTime")) or cluster.created_at,
        orchestrator=orchestrator,
        eks_arn=eks_arn,
        groups=tuple(_group(group) for group in groups),
        node_recovery=response.get("NodeRecovery"),
        provisioning=response.get("NodeProvisioningMode"),
        reason=response.get("FailureMessage") or _orchestrator_note(response),
        settings=settings_of(response),
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
    yielded: set[str] = set()
    async for page in aws.pages(
        "sagemaker", "ListClusterNodes", ClusterName=check_cluster_name(cluster)
    ):
        summaries = {
            summary["InstanceId"]: summary for summary in page.get("ClusterNodeSummaries", [])
        }
        yield [_instance(summary) for name, summary in summaries.items() if name not in yielded]
        yielded.update(summaries)


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


def _orchestrator(description: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    if not description:
        return SLURM, None
    if "Eks" in description:
        return KUBERNETES, description["Eks"].get("ClusterArn")
    return (SLURM if "Slurm" in description else None), None


def _orchestrator_note(description: Mapping[str, Any]) -> str | None:
    """What is to be said of the orchestrator."""
    orchestrator = description.get("Orchestrator") or {}
    if not orchestrator:
        return NO_ORCHESTRATOR
    if orchestrator.keys() & {"Eks", "Slurm"}:
        return None
    return f"its orchestrator {', '.join(orchestrator)} is not supported"


def _group(description: Mapping[str, Any]) -> InstanceGroup:
    lifecycle = description.get("LifeCycleConfig") or {}
    return InstanceGroup(
        name=str(description.get("InstanceGroupName", "")),
        status=description.get("Status"),
        instance_type=description.get("InstanceType"),
        current=int(description.get("CurrentCount", 0)),
        target=int(description.get("TargetCount", 0)),
        slurm_role=(description.get("SlurmConfig") or {}).get("NodeType"),
        storage=tuple(
            LustreStorage(
                lustre_config["DnsName"], lustre_config["MountName"], lustre_config.get("MountPath")
            )
            for config in description.get("InstanceStorageConfigs") or []
            if (lustre_config := config.get("FsxLustreConfig"))
        ),
        capacity=_capacity(description.get("CapacityRequirements") or {}),
        script=_script(lifecycle.get("SourceS3Uri"), lifecycle.get("OnCreate")),
        role_arn=description.get("ExecutionRole"),
        checks=tuple(description.get("OnStartDeepHealthChecks") or ()),
    )


def _capacity(description: Mapping[str, Any]) -> str | None:
    """``Spot`` or ``OnDemand``, by which of them is described; a word that is newer is kept."""
    return next(iter(description), None)


def _script(folder: str | None, name: str | None) -> str | None:
    """Where a life cycle script lies."""
    if folder is None or name is None:
        return folder
    return f"{folder.rstrip('/')}/{name}"


def _instance(description: Mapping[str, Any]) -> Instance:
    status = description.get("InstanceStatus") or {}
    return Instance(
        name=str(description["InstanceId"]),
        instance_group=str(description["InstanceGroupName"]),
        instance_type=str(description["InstanceType"]),
        status=str(status.get("Status", "")),
        reason=status.get("Message"),
        launched_at=_seconds(description.get("LaunchTime")),
        host=description.get("PrivateDnsHostname"),
        logical_id=description.get("NodeLogicalId"),
        image_version=description.get("CurrentImageReleaseVersion"),
        image_status=description.get("ImageVersionStatus"),
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

_LOGIN_NODES_HINT = 'set them in the configuration: login_nodes = ["HOST"]'

_NOT_SLURM_HINT = f'open a terminal on a node: hpj terminal NODE; in the configuration, orchestrator = "{KUBERNETES}"'

NO_LOGIN_NODES = "no_login_nodes"
"""Code of the errors where a cluster has none."""


@dataclass(frozen=True)
class ClusterLogins:
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


async def find_login_nodes(aws: Aws, cluster: str) -> ClusterLogins:
    """The login nodes of a cluster; the controller where it has none.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: There is no such cluster, or AWS knows no login nodes of it (``no_login_nodes``).
        UnreachableError: None of them runs.
        HyperpodError: See `aws.errors`.
    """
    placeholder = HyperpodCluster(cluster, cluster, await aws.region(), "")
    cluster_description = await describe_cluster(aws, placeholder)
    roles = {group.name: group.slurm_role for group in cluster_description.groups or ()}
    role = next(
        (role_name for role_name in (_LOGIN, _CONTROLLER) if role_name in roles.values()), None
    )
    if role is None:
        reason = (
            "its instance groups have no Slurm roles"
            if cluster_description.on_slurm
            else "it is not a Slurm cluster"
        )
        on_slurm = cluster_description.on_slurm or cluster_description.orchestrator is None
        raise NotFoundError(
            f"AWS shows no login nodes of {cluster_description.name}: {reason}",
            code=NO_LOGIN_NODES,
            hint=_LOGIN_NODES_HINT if on_slurm else _NOT_SLURM_HINT,
            detail={"field": "login_nodes"},
        )
    logins = [
        role_name
        async for page in list_instances(aws, cluster)
        for role_name in page
        if roles.get(role_name.instance_group) == role
    ]
    running = [
        role_name
        for role_name in logins
        if role_name.status == _RUNNING and role_name.host is not None
    ]
    if not running:
        states = (
            ", ".join(f"{role_name.name} is {role_name.status}" for role_name in logins)
            or "there are none"
        )
        raise UnreachableError(
            f"no login node of {cluster_description.name} is running: {states}",
            code=NO_LOGIN_NODES,
            hint=f"try again when a login node is running, or {_LOGIN_NODES_HINT}",
        )
    running.sort(key=lambda role_name: role_name.name)
    return ClusterLogins(cluster_description, tuple(running), controller=role == _CONTROLLER)


# --------------------------------------------------------------------------------------------------
# Facts of instance types from EC2. What it says of one is kept in the user's cache directory, so that no submit waits for it twice.

_INSTANCE_TYPES_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")

_TTL_S = 30 * 86400.0
"""Seconds for which an answer counts: types do not change."""

_ERROR_TTL_S = 3600.0
"""Seconds for which EC2 is not asked again, where it could not say and the table can."""


async def describe_instance_types(aws: Aws, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """EC2's descriptions of types, all by EC2's names; those that it does not know in this region are left out.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    filters = [{"Name": "instance-type", "Values": sorted(names)}]
    # By a filter, for by names one that is not there hides all others.
    response = await aws.call("ec2", "DescribeInstanceTypes", Filters=filters)
    return {str(item["InstanceType"]): item for item in response.get("InstanceTypes") or ()}


async def find_instance_type(name: str) -> InstanceType | HyperpodError | None:
    """What EC2 says of a type, else what the table has of it. EC2 has few seconds to say it.

    Args:
        name: The type, with or without SageMaker's ``ml.`` before it.

    Returns:
        Its facts. Where neither knows it: why EC2 could not be asked, or None when it could.
    """
    name = ec2_name(name)
    table_type = instance_type(name)
    if not _INSTANCE_TYPES_NAME.fullmatch(name):
        return table_type
    cached = await asyncio.to_thread(_read)
    type_facts, read_at = cached.get(name, (None, 0.0))
    age = time.time() - read_at
    if 0 <= age < _TTL_S and type_facts is not None:
        return type_facts
    if 0 <= age < _ERROR_TTL_S and table_type is not None:
        return table_type
    refusal = None
    try:
        description = (await describe_instance_types(Aws(fail_fast=True), [name])).get(name)
        type_facts = from_ec2(description) if description is not None else None
    except HyperpodError as error:
        type_facts, refusal = None, error
    await asyncio.to_thread(_write, {**cached, name: (type_facts, time.time())})
    return type_facts or table_type or refusal


def _file() -> Path | None:
    folder = own_cache_folder()
    return None if folder is None else folder / "instance-types.json"


def _read() -> dict[str, tuple[InstanceType | None, float]]:
    """What EC2 has said, and when; None where it could not."""
    file = _file()
    try:
        data = json.loads(file.read_text(encoding="utf-8")) if file is not None else {}
        return {
            str(name): (
                InstanceType(**type_facts) if type_facts is not None else None,
                float(read_at),
            )
            for name, (type_facts, read_at) in data.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(cached: Mapping[str, tuple[InstanceType | None, float]]) -> None:
    file = _file()
    if file is None:
        return
    rows = {
        name: (asdict(type_facts) if type_facts is not None else None, read_at)
        for name, (type_facts, read_at) in cached.items()
    }
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):  # EC2 is asked again then
        temporary.write_text(json.dumps(rows), encoding="utf-8")
        temporary.replace(file)
