"""EKS' one operation that we use. The clusters are those on which the account's HyperPod clusters run; those without a control plane are being made."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError


def describe_cluster(request: Request) -> dict[str, Any]:
    arn = _resource(request).arn
    for cluster in request.account.clusters.get(request.region, []):
        if (cluster.orchestrator or {}).get("Eks", {}).get("ClusterArn") == arn:
            name = request.given["name"]
            about = {"name": name, "arn": arn}
            plane = request.account.control_planes.get((request.region, name))
            if plane is None:
                return {"cluster": {**about, "status": "CREATING"}}
            authority = {"data": plane.authority}
            return {
                "cluster": {
                    **about,
                    "status": "ACTIVE",
                    "endpoint": plane.endpoint,
                    "certificateAuthority": authority,
                }
            }
    raise ApiError(
        "ResourceNotFoundException", f"No cluster found for name: {request.given['name']}.", 404
    )


def _resource(request: Request) -> Resource:
    account, name = request.account, request.given["name"]
    where = f"{account.partition}:eks:{request.region}:{account.account_id}"
    return Resource(name, f"arn:{where}:cluster/{name}")


SERVICE = Service("eks", {"DescribeCluster": describe_cluster}, _resource)
