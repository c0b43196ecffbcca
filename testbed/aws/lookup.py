"""The cluster that a request names."""

from __future__ import annotations

from testbed.aws.operations import Request
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster


def cluster_arn(request: Request) -> str:
    """How IAM and error messages name the cluster that is asked for, whether it is there or not."""
    account, region = request.account, request.region
    named = request.given.get("ClusterName") or request.given["ResourceArn"]
    for cluster in account.find(region, named):
        return cluster.arn
    if named.startswith("arn:"):
        return str(named)
    return f"arn:{account.partition}:sagemaker:{region}:{account.account_id}:cluster/{named}"


def cluster_of(request: Request) -> Cluster:
    """The cluster.

    Raises:
        ApiError: There is none of this name or ARN.
    """
    for cluster in request.account.find(request.region, request.given["ClusterName"]):
        return cluster
    raise ApiError("ResourceNotFound", f"Cluster {cluster_arn(request)} not found.")
