"""Systems Manager: sessions on nodes of a HyperPod cluster, and the account's preferences for them.

Nobody is at the other end. Opening the data channel is a right of whoever starts a session; here it
is asked for at once. A session is named for IAM as AWS' sample policies have it: by the caller's user id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from testbed.aws.operations import Request, Resource, Service
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster

_PREFIX = "sagemaker-cluster:"

SHELL = "SSM-SessionManagerRunShell"
SSH = "AWS-StartSSHSession"
_NUMBER = "0123456789abcdef0"


def start_session(request: Request) -> dict[str, Any]:
    target, document = request.given["Target"], _document_of(request)
    if not _is_connected(request):
        raise ApiError("TargetNotConnected", f"{target} is not connected.")
    if document not in {SHELL, SSH}:
        raise ApiError("InvalidDocument", f"Document with name {document} does not exist.")
    parameters = request.given.get("Parameters", {})
    wanted = {"portNumber"} if document == SSH else set()
    if set(parameters) != wanted or any(len(values) != 1 for values in parameters.values()):
        raise ApiError("InvalidParameters", f"{document}: {parameters}")
    return _session(request)


def resume_session(request: Request) -> dict[str, Any]:
    return _session(request)


def terminate_session(request: Request) -> dict[str, Any]:
    return {"SessionId": request.given["SessionId"]}


def get_document(request: Request) -> dict[str, Any]:
    name = request.given["Name"]
    preferences = request.account.session_preferences.get(request.region)
    if name != SHELL or preferences is None:
        raise ApiError("InvalidDocument", f"Document with name {name} does not exist.")
    content = {"schemaVersion": "1.0", "sessionType": "Standard_Stream", "inputs": preferences}
    return {
        "Name": name,
        "DocumentVersion": "1",
        "Status": "Active",
        "Content": json.dumps(content),
        "DocumentType": "Session",
        "DocumentFormat": "JSON",
    }


def _session(request: Request) -> dict[str, Any]:
    session = f"{request.caller.arn.rpartition('/')[2]}-{_NUMBER}"
    address = f"wss://ssmmessages.{request.region}.amazonaws.com/v1/data-channel/{session}?role=publish_subscribe"
    return {"SessionId": session, "TokenValue": "of-the-testbed", "StreamUrl": address}


def get_connection_status(request: Request) -> dict[str, Any]:
    status = "connected" if _is_connected(request) else "notconnected"
    return {"Target": request.given["Target"], "Status": status}


def _is_connected(request: Request) -> bool:
    cluster = _cluster(request)
    if cluster is None or not request.account.nodes_are_connected:
        return False
    names = {f"{node.group}-{node.instance_id}" for node in cluster.nodes}
    return request.given["Target"].partition("_")[2] in names


def _cluster(request: Request) -> Cluster | None:
    ident = request.given["Target"].removeprefix(_PREFIX).partition("_")[0]
    clusters = request.account.clusters.get(request.region, [])
    return next((one for one in clusters if one.arn.rpartition("/")[2] == ident), None)


def _document_of(request: Request) -> str:
    return str(request.given.get("DocumentName", SHELL))


def _arn(request: Request, account: str, resource: str) -> str:
    return f"arn:{request.account.partition}:ssm:{request.region}:{account}:{resource}"


def _document_arn(request: Request, name: str) -> str:
    owner = "" if name.startswith("AWS-") else request.account.account_id
    return _arn(request, owner, f"document/{name}")


def _session_resource(request: Request) -> Resource:
    name = f"session/{request.caller.user_id}-{_NUMBER}"
    return Resource(name, _arn(request, request.account.account_id, name))


def _data_channel(request: Request) -> Iterable[tuple[str, Resource]]:
    yield "ssmmessages:OpenDataChannel", _session_resource(request)


def _resource(request: Request) -> Resource:
    if "SessionId" in request.given:
        return _session_resource(request)
    if "Name" in request.given:
        return Resource(request.given["Name"], _document_arn(request, request.given["Name"]))
    cluster = _cluster(request) if request.given["Target"].startswith(_PREFIX) else None
    document = _document_arn(request, _document_of(request))
    if cluster is None:
        return Resource(None, "*")
    return Resource(cluster.name, cluster.arn, (document,))


SERVICE = Service(
    "ssm",
    {
        "StartSession": start_session,
        "ResumeSession": resume_session,
        "TerminateSession": terminate_session,
        "GetConnectionStatus": get_connection_status,
        "GetDocument": get_document,
    },
    _resource,
    besides={"StartSession": _data_channel},
)
