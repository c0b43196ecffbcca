"""HyperPod clusters of an account, from SageMaker's API. Values newer than this package are kept unchanged."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from hyperpod_jlab.aws.facts import contradicted
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance, InstanceGroup, LustreStorage, settings_of
from hyperpod_jlab.core.instance_types import InstanceType, ec2_name, from_ec2, instance_type
from hyperpod_jlab.core.scheduler import KUBERNETES, SLURM
from hyperpod_jlab.storage.cache_file import read_cache, write_cache

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_NAME = re.compile(
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:cluster/[a-z0-9]{12}|[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
)
"""Names and ARNs of clusters (SageMaker's service model)."""

NO_ORCHESTRATOR = "AWS shows no orchestrator; older Slurm clusters have none, so Slurm is assumed"
"""Note on a cluster whose description names no orchestrator."""


def check_cluster_name(name: str) -> str:
    """Return a cluster's name or ARN if it is valid.

    Raises:
        InvalidInputError: It is invalid.
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
    """All clusters of the account in the region, page by page, with the fields of the list.

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
    """The same cluster with its full description; the name or the ARN is sufficient.

    Raises:
        NotFoundError: It has been deleted.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeCluster", ClusterName=check_cluster_name(cluster.name))
    orchestrator, eks_arn = _orchestrator(response.get("Orchestrator"))
    groups = [*(response.get("InstanceGroups") or []), *(response.get("RestrictedInstanceGroups") or [])]
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
    """The instances of a cluster, page by page; an instance that moves between two pages is returned once.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    yielded: set[str] = set()
    async for page in aws.pages("sagemaker", "ListClusterNodes", ClusterName=check_cluster_name(cluster)):
        summaries = {summary["InstanceId"]: summary for summary in page.get("ClusterNodeSummaries", [])}
        yield [_instance(summary) for name, summary in summaries.items() if name not in yielded]
        yielded.update(summaries)


def node_target(arn: str, node: Instance) -> str:
    """A node's target in Systems Manager: ``sagemaker-cluster:CLUSTERID_GROUP-INSTANCE`` (HyperPod's documentation).

    Args:
        arn: The cluster's ARN.
        node: The node.
    """
    return f"sagemaker-cluster:{arn.rpartition('/')[2]}_{node.instance_group}-{node.name}"


async def list_tags(aws: Aws, arn: str) -> dict[str, str]:
    """The tags of a SageMaker resource, by its ARN.

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
    """A note on the orchestrator."""
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
            LustreStorage(lustre_config["DnsName"], lustre_config["MountName"], lustre_config.get("MountPath"))
            for config in description.get("InstanceStorageConfigs") or []
            if (lustre_config := config.get("FsxLustreConfig"))
        ),
        capacity=_capacity(description.get("CapacityRequirements") or {}),
        script=_script(lifecycle.get("SourceS3Uri"), lifecycle.get("OnCreate")),
        role_arn=description.get("ExecutionRole"),
        checks=tuple(description.get("OnStartDeepHealthChecks") or ()),
    )


def _capacity(description: Mapping[str, Any]) -> str | None:
    """``Spot`` or ``OnDemand``, by which of them is described; a newer value is kept."""
    return next(iter(description), None)


def _script(folder: str | None, name: str | None) -> str | None:
    """The path of a lifecycle script."""
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
    """A time as Unix seconds: a datetime, or a number for fields that boto3 does not know."""
    if moment is None:
        return None
    return float(moment if isinstance(moment, int | float) else moment.timestamp())


# --------------------------------------------------------------------------------------------------
# Login nodes of a HyperPod cluster whose Slurm is configured by AWS' API: there instance groups
# declare their Slurm role.

_LOGIN, _CONTROLLER = "Login", "Controller"
"""The roles in SageMaker's service model (ClusterSlurmNodeType)."""

_RUNNING = "Running"

_LOGIN_NODES_HINT = 'set them in the configuration: login_nodes = ["HOST"]'

_NOT_SLURM_HINT = f'open a terminal on a node: hpj terminal NODE; in the configuration, orchestrator = "{KUBERNETES}"'

NO_LOGIN_NODES = "no_login_nodes"
"""Error code: a cluster has no login nodes."""


@dataclass(frozen=True)
class ClusterLogins:
    """Machines of a cluster that accept logins.

    Attributes:
        cluster: The cluster.
        instances: The running ones, sorted by id so that the order is stable.
        controller: Whether they are controllers, because no group has login nodes.
    """

    cluster: HyperpodCluster
    instances: tuple[Instance, ...]
    controller: bool

    @property
    def note(self) -> str | None:
        """A note for the user."""
        if not self.controller:
            return None
        return f"{self.cluster.name} has no instance group of login nodes, so its controller is used"


async def find_login_nodes(aws: Aws, cluster: str) -> ClusterLogins:
    """The login nodes of a cluster; the controller if it has none.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.

    Raises:
        NotFoundError: The cluster does not exist, or AWS lists no login nodes for it (``no_login_nodes``).
        UnreachableError: None of them is running.
        HyperpodError: See `aws.errors`.
    """
    placeholder = HyperpodCluster(cluster, cluster, await aws.region(), "")
    cluster_description = await describe_cluster(aws, placeholder)
    roles = {group.name: group.slurm_role for group in cluster_description.groups or ()}
    role = next((role_name for role_name in (_LOGIN, _CONTROLLER) if role_name in roles.values()), None)
    if role is None:
        reason = (
            "its instance groups have no Slurm roles" if cluster_description.on_slurm else "it is not a Slurm cluster"
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
    running = [role_name for role_name in logins if role_name.status == _RUNNING and role_name.host is not None]
    if not running:
        states = ", ".join(f"{role_name.name} is {role_name.status}" for role_name in logins) or "there are none"
        raise UnreachableError(
            f"no login node of {cluster_description.name} is running: {states}",
            code=NO_LOGIN_NODES,
            hint=f"try again when a login node is running, or {_LOGIN_NODES_HINT}",
        )
    running.sort(key=lambda role_name: role_name.name)
    return ClusterLogins(cluster_description, tuple(running), controller=role == _CONTROLLER)


# --------------------------------------------------------------------------------------------------
# Facts about instance types from EC2, cached in the user's cache directory so that no submit waits
# for them twice.

_INSTANCE_TYPES_NAME = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")

_FILE = "instance-types.json"

_TTL_S = 30 * 86400.0
"""TTL of an answer, in seconds: types do not change."""

_ERROR_TTL_S = 3600.0
"""Seconds before EC2 is queried again after a failure, if the table has the type."""


async def describe_instance_types(aws: Aws, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    """EC2's descriptions of types, by EC2's names; types that EC2 does not know in this region are omitted.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    filters = [{"Name": "instance-type", "Values": sorted(names)}]
    # By a filter: in a query by names, one unknown name fails all.
    response = await aws.call("ec2", "DescribeInstanceTypes", Filters=filters)
    found = {str(item["InstanceType"]): item for item in response.get("InstanceTypes") or ()}
    unknown = [name for name in filters[0]["Values"] if name not in found and instance_type(name)]
    if unknown:
        contradicted("ec2-knows-types", f"EC2 does not know {', '.join(unknown)}")
    return found


async def find_instance_type(name: str) -> InstanceType | HyperpodError | None:
    """A type according to EC2, else according to the table. The timeout for EC2 is a few seconds.

    Args:
        name: The type, with or without SageMaker's ``ml.`` prefix.

    Returns:
        Its facts. If neither knows it: the error of EC2, or None if EC2 answered.
    """
    name = ec2_name(name)
    table_type = instance_type(name)
    if not _INSTANCE_TYPES_NAME.fullmatch(name):
        return table_type
    cached = await asyncio.to_thread(read_cache, _FILE, _kind()) or {}
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
    answers = {**cached, name: (type_facts, time.time())}
    await asyncio.to_thread(write_cache, _FILE, _kind(), answers)
    return type_facts or table_type or refusal


@cache
def _kind() -> TypeAdapter[dict[str, tuple[InstanceType | None, float]]]:
    """EC2's answers with their times, by type; None for a failure."""
    from pydantic import TypeAdapter

    return TypeAdapter(dict[str, tuple[InstanceType | None, float]])
