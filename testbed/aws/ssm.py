"""Systems Manager: to start a session on a node of a HyperPod cluster. Nobody is at the other end, unless the account has nodes that answer (`node_channel`)."""

from __future__ import annotations

import secrets
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster

_PREFIX = "sagemaker-cluster:"


def start_session(request: Request) -> dict[str, Any]:
    target = request.given["Target"]
    cluster = _cluster(request)
    names = (
        [] if cluster is None else [f"{node.group}-{node.instance_id}" for node in cluster.nodes]
    )
    if target.partition("_")[2] not in names:
        raise ApiError("TargetNotConnected", f"{target} is not connected.")
    session = f"{request.caller.arn.rpartition('/')[2]}-0123456789abcdef0"
    token, address = "of-the-testbed", f"wss://ssmmessages.{request.region}.amazonaws.com"
    if request.account.node_channel is not None:
        token, address = secrets.token_hex(16), request.account.node_channel
        commands = request.given.get("Parameters", {}).get("command", [])
        request.account.sessions[token] = request.given.get("DocumentName"), commands
    address += f"/v1/data-channel/{session}?role=publish_subscribe"
    return {"SessionId": session, "TokenValue": token, "StreamUrl": address}


def _cluster(request: Request) -> Cluster | None:
    ident = request.given["Target"].removeprefix(_PREFIX).partition("_")[0]
    clusters = request.account.clusters.get(request.region, [])
    return next((one for one in clusters if one.arn.rpartition("/")[2] == ident), None)


def _resource(request: Request) -> Resource:
    cluster = _cluster(request) if request.given["Target"].startswith(_PREFIX) else None
    return Resource(cluster.name, cluster.arn) if cluster else Resource(None, "*")


SERVICE = Service("ssm", {"StartSession": start_session}, _resource)
