"""HyperPod clusters of an account, from SageMaker's API. Words that are newer than this package are kept as they came."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance, InstanceGroup, LustreStorage
from hyperpod_jlab.model.hyperpod_settings import settings_of

_NAME = re.compile(
    r"arn:aws[a-z\-]*:sagemaker:[a-z0-9\-]*:[0-9]{12}:cluster/[a-z0-9]{12}|[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}"
)
"""Names and ARNs of clusters (SageMaker's service model)."""

NO_ORCHESTRATOR = (
    "AWS names no orchestrator: older clusters with Slurm are so, and it is taken for one"
)
"""What is said of a cluster whose description names none."""


def checked(name: str) -> str:
    """A cluster's name or ARN, once it has the form of one.

    Raises:
        InvalidInputError: It has not.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"'{name[:80]}' is no name of a HyperPod cluster",
            code="no_cluster_name",
            hint="letters, digits and hyphens, such as ml-cluster, or its ARN; see: hpj clusters --hyperpod",
            detail={"field": "hyperpod"},
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
        return "slurm", None
    if "Eks" in told:
        return "kubernetes", told["Eks"].get("ClusterArn")
    return ("slurm" if "Slurm" in told else None), None


def _remark(told: Mapping[str, Any]) -> str | None:
    """What is to be said of the orchestrator."""
    named = told.get("Orchestrator") or {}
    if not named:
        return NO_ORCHESTRATOR
    if named.keys() & {"Eks", "Slurm"}:
        return None
    return f"its orchestrator is {', '.join(named)}, which is not known here"


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
