"""The operations of EKS that we use. The clusters are those on which the account's HyperPod clusters run; those without a control plane are being made."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError

_ADDON_ID = "e6c1a5b0-1111-4222-8333-444455556666"
"""EKS gives each add-on an id of its own at the end of its ARN."""


def describe_cluster(request: Request) -> dict[str, Any]:
    name = request.given["name"]
    arn = _cluster_arn(request, name)
    if not _is_there(request, arn):
        raise ApiError("ResourceNotFoundException", f"No cluster found for name: {name}.", 404)
    about = {"name": name, "arn": arn}
    plane = request.account.control_planes.get((request.region, name))
    bare = request.account.ground.eks.get(name)
    if plane is None and bare is not None:
        return {"cluster": {**about, "status": "ACTIVE", **bare}}
    if plane is None:
        return {"cluster": {**about, "status": "CREATING"}}
    return {
        "cluster": {
            **about,
            "status": "ACTIVE",
            "endpoint": plane.endpoint,
            "certificateAuthority": {"data": plane.authority},
            "resourcesVpcConfig": {"endpointPublicAccess": not plane.private},
        }
    }


def describe_addon(request: Request) -> dict[str, Any]:
    cluster, addon = request.given["clusterName"], request.given["addonName"]
    if not _is_there(request, _cluster_arn(request, cluster)):
        raise ApiError("ResourceNotFoundException", f"No cluster found for name: {cluster}.", 404)
    values = request.account.addons.get((request.region, cluster, addon))
    if values is None:
        raise ApiError("ResourceNotFoundException", f"No addon: {addon} found in cluster: {cluster}", 404)
    told = {"configurationValues": values} if values else {}
    return {
        "addon": {
            "addonName": addon,
            "clusterName": cluster,
            "status": "ACTIVE",
            "addonVersion": "v1.0.4-eksbuild.1",
            "addonArn": _addon_arn(request),
            **told,
        }
    }


def _is_there(request: Request, arn: str) -> bool:
    clusters = request.account.clusters.get(request.region, [])
    if arn.rpartition("/")[2] in request.account.ground.eks:
        return True
    return any((one.orchestrator or {}).get("Eks", {}).get("ClusterArn") == arn for one in clusters)


def _cluster_arn(request: Request, name: str) -> str:
    account = request.account
    return f"arn:{account.partition}:eks:{request.region}:{account.account_id}:cluster/{name}"


def _resource(request: Request) -> Resource:
    given = request.given
    if "addonName" not in given:
        return Resource(given["name"], _cluster_arn(request, given["name"]))
    return Resource(given["addonName"], _addon_arn(request))


def _addon_arn(request: Request) -> str:
    account, given = request.account, request.given
    where = f"{account.partition}:eks:{request.region}:{account.account_id}"
    return f"arn:{where}:addon/{given['clusterName']}/{given['addonName']}/{_ADDON_ID}"


SERVICE = Service("eks", {"DescribeCluster": describe_cluster, "DescribeAddon": describe_addon}, _resource)
