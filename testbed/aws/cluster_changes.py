"""SageMaker: clusters are made. What becomes of them then is `lifecycle`'s; it has not been tried on an account.

A group whose OnCreate script does not lie in S3 does not come up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from testbed.aws.lifecycle import Lifecycle, Timings
from testbed.aws.operations import Request, Resource
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster, Group

_OWN = {
    "InstanceGroupName",
    "InstanceType",
    "InstanceCount",
    "MinInstanceCount",
    "LifeCycleConfig",
    "InstanceStorageConfigs",
    "CapacityRequirements",
    "OnStartDeepHealthChecks",
}
"""Members of a group that stand elsewhere in its description, or not at all."""

_KEPT = ("TieredStorageConfig", "ClusterRole", "AutoScaling")


def passed_roles(request: Request) -> Iterator[tuple[str, Resource]]:
    """Whoever gives instances a role needs the right to pass it on (SageMaker's guide, "IAM users for cluster admin")."""
    roles = {one["ExecutionRole"] for one in request.given.get("InstanceGroups", ())}
    for arn in sorted(roles):
        yield "iam:PassRole", Resource(arn.rpartition("/")[2], arn)


def create_cluster(request: Request) -> dict[str, Any]:
    given, account = request.given, request.account
    name = given["ClusterName"]
    if any(account.find(request.region, name)):
        raise ApiError("ResourceInUse", f"Cluster with name {name} already exists.")
    _check_limits(request)
    _check_network(request)
    made = account.add_cluster(
        name,
        request.region,
        status="Creating",
        created=account.timeline.now(),
        orchestrator=given.get("Orchestrator"),
        node_recovery=given.get("NodeRecovery", "Automatic"),
        provisioning=given.get("NodeProvisioningMode"),
        tags={one["Key"]: one["Value"] for one in given.get("Tags", ())},
        network=given.get("VpcConfig"),
        settings={one: given[one] for one in _KEPT if one in given},
    )
    made.groups = [_group(one) for one in given.get("InstanceGroups", ())]
    _let_live(request, made)
    return {"ClusterArn": made.arn}


def _let_live(request: Request, cluster: Cluster) -> None:
    """Let it go on by itself from here on."""
    account = request.account
    life = Lifecycle(account.timeline, cluster, Timings().times(account.ground.pace))
    for group in cluster.groups:
        if not _has_script(request, group):
            life.fail_starts(group.name, "Lifecycle scripts did not run successfully.")
        message = account.ground.failing.pop(group.name, None)
        if message is not None:
            life.fail_starts(group.name, message)


def _has_script(request: Request, group: Group) -> bool:
    if group.life_cycle is None or "OnCreate" not in group.life_cycle:
        return True
    place = urlsplit(group.life_cycle["SourceS3Uri"])
    key = "/".join(filter(None, (place.path.strip("/"), group.life_cycle["OnCreate"])))
    return key in request.account.ground.buckets.get(place.netloc, ())


def _group(given: dict[str, Any]) -> Group:
    """The group that is asked for."""
    group = Group(given["InstanceGroupName"], "", 0)
    group.status = "Creating"
    group.instance_type = given.get("InstanceType", group.instance_type)
    group.target = given["InstanceCount"]
    group.slurm_node_type = given.get("SlurmConfig", {}).get("NodeType", group.slurm_node_type)
    group.storage = given.get("InstanceStorageConfigs", group.storage)
    group.capacity = given.get("CapacityRequirements", group.capacity)
    group.life_cycle = given.get("LifeCycleConfig", group.life_cycle)
    group.checks = given.get("OnStartDeepHealthChecks", group.checks)
    group.more.update({name: one for name, one in given.items() if name not in _OWN})
    return group


def _check_limits(request: Request) -> None:
    quotas = request.account.ground.quotas
    for one in request.given.get("InstanceGroups", ()):
        title = f"{one.get('InstanceType')} for cluster usage"
        if one["InstanceCount"] > quotas.get(title, one["InstanceCount"]):
            words = f"The account-level service limit '{title}' is {quotas[title]:.0f} Instances."
            raise ApiError("ResourceLimitExceeded", words)


def _check_network(request: Request) -> None:
    network = request.account.networks.get(request.region)
    for name in request.given.get("VpcConfig", {}).get("Subnets", ()):
        if network is None or name not in network.subnets:
            raise ApiError("ValidationException", f"The subnet ID '{name}' does not exist")
