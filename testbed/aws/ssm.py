"""Systems Manager: to start a session on a node of a HyperPod cluster, and whether one could be started. Nobody is at the other end."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster

_PREFIX = "sagemaker-cluster:"


def start_session(request: Request) -> dict[str, Any]:
    target = request.given["Target"]
    if not _is_connected(request):
        raise ApiError("TargetNotConnected", f"{target} is not connected.")
    return {
        "SessionId": f"{request.caller.arn.rpartition('/')[2]}-0123456789abcdef0",
        "TokenValue": "of-the-testbed",
        "StreamUrl": f"wss://ssmmessages.{request.region}.amazonaws.com/v1/data-channel/of-the-testbed",
    }


def get_connection_status(request: Request) -> dict[str, Any]:
    status = "connected" if _is_connected(request) else "notconnected"
    return {"Target": request.given["Target"], "Status": status}


def _is_connected(request: Request) -> bool:
    cluster = _cluster(request)
    if cluster is None or not request.account.otherwise.nodes_are_connected:
        return False
    names = {f"{node.group}-{node.instance_id}" for node in cluster.nodes}
    return request.given["Target"].partition("_")[2] in names


def _cluster(request: Request) -> Cluster | None:
    ident = request.given["Target"].removeprefix(_PREFIX).partition("_")[0]
    clusters = request.account.clusters.get(request.region, [])
    return next((one for one in clusters if one.arn.rpartition("/")[2] == ident), None)


def _resource(request: Request) -> Resource:
    cluster = _cluster(request) if request.given["Target"].startswith(_PREFIX) else None
    return Resource(cluster.name, cluster.arn) if cluster else Resource(None, "*")


SERVICE = Service(
    "ssm",
    {"StartSession": start_session, "GetConnectionStatus": get_connection_status},
    _resource,
)
