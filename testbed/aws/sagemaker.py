"""SageMaker: the operations on HyperPod clusters, and all that it has here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from testbed.aws.cluster_changes import create_cluster, passed_roles
from testbed.aws.domains import describe_domain, domain_arn, domain_resource
from testbed.aws.events import describe_cluster_event, list_cluster_events
from testbed.aws.governance import OPERATIONS, governance_resource
from testbed.aws.lookup import cluster_arn, cluster_of
from testbed.aws.mlflow import OPERATIONS as MLFLOW_OPERATIONS
from testbed.aws.mlflow import mlflow_resource, opening
from testbed.aws.node_actions import batch_reboot_cluster_nodes, batch_replace_cluster_nodes
from testbed.aws.operations import Request, Resource, Service
from testbed.aws.pages import page
from testbed.aws.profiles import describe_user_profile, profile_resource
from testbed.aws.replies import ApiError
from testbed.aws.spaces import describe_space, space_resource
from testbed.aws.state import Cluster, Group, Node
from testbed.aws.studio_lifecycle import OPERATIONS as LIFECYCLE_OPERATIONS
from testbed.aws.studio_lifecycle import lifecycle_resource
from testbed.aws.studio_lists import list_apps, list_domains, list_spaces, list_user_profiles
from testbed.aws.studio_making import OPERATIONS as MAKING_OPERATIONS
from testbed.aws.studio_making import passed_role
from testbed.aws.studio_updates import update_domain, update_space, update_user_profile
from testbed.aws.tags import add_tags, delete_tags, list_tags


def list_clusters(request: Request) -> dict[str, Any]:
    given = request.given
    by_name = given.get("SortBy") == "NAME"
    found = [
        cluster
        for cluster in request.account.clusters.get(request.region, [])
        if given.get("NameContains", "") in cluster.name
        and given.get("CreationTimeAfter", 0) < cluster.created.timestamp()
        and cluster.created.timestamp() < given.get("CreationTimeBefore", float("inf"))
    ]
    shown, following = page(found, lambda one: [one.name] if by_name else [one.created.timestamp(), one.name], given)
    return {"ClusterSummaries": [_summary(cluster) for cluster in shown], **following}


def describe_cluster(request: Request) -> dict[str, Any]:
    cluster = cluster_of(request)
    return _given(
        ClusterArn=cluster.arn,
        ClusterName=cluster.name,
        ClusterStatus=cluster.status,
        CreationTime=cluster.created,
        FailureMessage=cluster.failure,
        InstanceGroups=[_group(cluster, group) for group in cluster.groups],
        Orchestrator=cluster.orchestrator,
        NodeRecovery=cluster.node_recovery,
        NodeProvisioningMode=cluster.provisioning,
        **_settings(cluster),
    )


def _settings(cluster: Cluster) -> dict[str, Any]:
    """What was set of a cluster besides; its network is that in which it was put."""
    network = {} if cluster.network is None else {"VpcConfig": cluster.network}
    return {**cluster.settings, **network}


def list_cluster_nodes(request: Request) -> dict[str, Any]:
    given = request.given
    by_name = given.get("SortBy") == "NAME"
    found = [
        node
        for node in cluster_of(request).nodes
        if given.get("InstanceGroupNameContains", "") in node.group
        and given.get("CreationTimeAfter", 0) < node.launched.timestamp()
        and node.launched.timestamp() < given.get("CreationTimeBefore", float("inf"))
    ]
    shown, following = page(
        found, lambda one: [one.instance_id] if by_name else [one.launched.timestamp(), one.instance_id], given
    )
    types = {group.name: group.instance_type for group in cluster_of(request).groups}
    nodes = [_node(node, types, request.region) for node in shown]
    return {"ClusterNodeSummaries": nodes, **following}


def describe_cluster_node(request: Request) -> dict[str, Any]:
    cluster, given = cluster_of(request), request.given
    if ("NodeId" in given) == ("NodeLogicalId" in given):
        raise ApiError("ValidationException", "Give either NodeId or NodeLogicalId")
    types = {group.name: group.instance_type for group in cluster.groups}
    for node in cluster.nodes:
        if node.instance_id == given.get("NodeId"):
            more = _given(PrivatePrimaryIp=node.address, CapacityType=node.capacity)
            return {"NodeDetails": {**_node(node, types, request.region), **more}}
    named = given.get("NodeId", given.get("NodeLogicalId"))
    raise ApiError("ResourceNotFound", f"Instance with id {named} not found.")


def _summary(cluster: Cluster) -> dict[str, Any]:
    return _given(
        ClusterArn=cluster.arn,
        ClusterName=cluster.name,
        CreationTime=cluster.created,
        ClusterStatus=cluster.status,
        ImageVersionStatus=cluster.image_status,
    )


def _group(cluster: Cluster, group: Group) -> dict[str, Any]:
    slurm = {"NodeType": group.slurm_node_type} if group.slurm_node_type else None
    told = _given(
        CurrentCount=sum(node.group == group.name for node in cluster.nodes),
        TargetCount=group.target,
        InstanceGroupName=group.name,
        InstanceType=group.instance_type,
        Status=group.status,
        SlurmConfig=slurm,
        InstanceStorageConfigs=group.storage or None,
        CapacityRequirements=group.capacity,
        LifeCycleConfig=group.life_cycle,
        OnStartDeepHealthChecks=group.checks,
    )
    return {**told, **group.more}


def _node(node: Node, types: dict[str, str], region: str) -> dict[str, Any]:
    return _given(
        InstanceGroupName=node.group,
        InstanceId=node.instance_id,
        InstanceType=types[node.group],
        LaunchTime=node.launched,
        InstanceStatus=_given(Status=node.status, Message=node.message),
        PrivateDnsHostname=f"ip-{node.address.replace('.', '-')}.{region}.compute.internal",
        CurrentImageReleaseVersion=node.image_version,
        ImageVersionStatus=node.image_status,
    )


def _given(**members: Any) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None}


def _resource(request: Request) -> Resource:
    """What is named, as IAM names it: AWS looks at rights before it looks whether it is there."""
    known = (
        _studio_resource(request)
        or lifecycle_resource(request)
        or governance_resource(request)
        or mlflow_resource(request)
    )
    if known is not None:
        return known
    named = request.given.get("ClusterName", request.given.get("ResourceArn"))
    if named is None:
        account = request.account
        every = f"arn:{account.partition}:sagemaker:{request.region}:{account.account_id}:cluster/*"
        return Resource(None, every)
    for cluster in request.account.find(request.region, named):
        return Resource(cluster.name, cluster.arn)
    if named.startswith("arn:"):
        return Resource(named, named)
    return Resource(named, cluster_arn(request))


def _tagging(request: Request) -> Iterator[tuple[str, Resource]]:
    """What is made with tags needs the right to add tags too."""
    if request.given.get("Tags"):
        yield "sagemaker:AddTags", _resource(request)


def _studio_resource(request: Request) -> Resource | None:
    """What is named of Studio, where something of it is."""
    if "SpaceName" in request.given:
        return space_resource(request)
    if "UserProfileName" in request.given:
        return profile_resource(request)
    if "DomainId" in request.given:
        return domain_resource(request)
    if "DomainName" in request.given:  # one that is to be made
        return Resource("d-new", domain_arn(request, "d-new"))
    return Resource(None, "*") if "DomainIdEquals" in request.given else None


SERVICE = Service(
    "sagemaker",
    {
        "ListClusters": list_clusters,
        "CreateCluster": create_cluster,
        "DescribeCluster": describe_cluster,
        "ListClusterNodes": list_cluster_nodes,
        "DescribeClusterNode": describe_cluster_node,
        "BatchRebootClusterNodes": batch_reboot_cluster_nodes,
        "BatchReplaceClusterNodes": batch_replace_cluster_nodes,
        "ListClusterEvents": list_cluster_events,
        "DescribeClusterEvent": describe_cluster_event,
        "DescribeDomain": describe_domain,
        "DescribeSpace": describe_space,
        "DescribeUserProfile": describe_user_profile,
        "ListApps": list_apps,
        "ListDomains": list_domains,
        "ListSpaces": list_spaces,
        "ListUserProfiles": list_user_profiles,
        "UpdateDomain": update_domain,
        "UpdateSpace": update_space,
        "UpdateUserProfile": update_user_profile,
        "AddTags": add_tags,
        "DeleteTags": delete_tags,
        "ListTags": list_tags,
        **LIFECYCLE_OPERATIONS,
        **MAKING_OPERATIONS,
        **MLFLOW_OPERATIONS,
        **OPERATIONS,
    },
    _resource,
    besides={
        "CreateCluster": passed_roles,
        "CreateDomain": lambda request: (*passed_role(request), *_tagging(request)),
        "CreateUserProfile": _tagging,
        "CreatePresignedMlflowTrackingServerUrl": opening,
        "CreateSpace": _tagging,
        "CreateStudioLifecycleConfig": _tagging,
    },
)
