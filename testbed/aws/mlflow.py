"""MLflow of SageMaker: lists and links of tracking servers and MLflow Apps, and requests to them.

botocore has no model of those requests. Who signed them and whether they may is checked here, as sagemaker-mlflow signs and as AWS' pages on IAM for MLflow name the actions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from testbed.aws.aps import Query
from testbed.aws.faults import Faults
from testbed.aws.iam import Asked, Verdict, decide, denied
from testbed.aws.operations import Request, Resource
from testbed.aws.pages import page
from testbed.aws.replies import ApiError, Reply
from testbed.aws.sigv4 import check_signature
from testbed.aws.state import START, Account

SERVICE = "sagemaker-mlflow"
"""What requests to tracking servers are signed for; those to Apps are signed for SageMaker."""

PREFIX = "/api/2.0/mlflow/"

ACTIONS = {
    "experiments/create": "CreateExperiment",
    "experiments/get-by-name": "GetExperimentByName",
    "experiments/search": "SearchExperiments",
    "runs/create": "CreateRun",
    "runs/log-batch": "LogBatch",
    "runs/search": "SearchRuns",
    "runs/update": "UpdateRun",
}
"""IAM's names of the requests to a tracking server."""

APP_ACTION = "sagemaker:CallMlflowAppApi"
"""IAM's name of all requests to an App."""

_HEADERS = {"x-mlflow-sm-tracking-server-arn": False, "x-sm-mlflow-app-arn": True}


@dataclass
class MlflowHost:
    """A tracking server or an App. It has no experiments that one asks for by name, and finds a run, `r1`, at each search."""

    name: str
    arn: str
    is_app: bool
    status: str = "Created"
    created: datetime = START


def add_mlflow(account: Account, region: str) -> None:
    """Give the account a tracking server and an App in a region."""
    where = f"arn:{account.partition}:sagemaker:{region}:{account.account_id}"
    account.mlflow[region] = [
        MlflowHost("shared", f"{where}:mlflow-tracking-server/shared", False),
        MlflowHost("team", f"{where}:mlflow-app/app-ABCDEFGHIJKL", True),
    ]


def list_mlflow_apps(request: Request) -> dict[str, Any]:
    shown, following = _page(request, is_app=True)
    rows = [{"Arn": one.arn, "Name": one.name, "Status": one.status, **_common(one)} for one in shown]
    return {"Summaries": rows, **following}


def list_mlflow_tracking_servers(request: Request) -> dict[str, Any]:
    shown, following = _page(request, is_app=False)
    rows = [
        {
            "TrackingServerArn": one.arn,
            "TrackingServerName": one.name,
            "TrackingServerStatus": one.status,
            "IsActive": "Active",
            **_common(one),
        }
        for one in shown
    ]
    return {"TrackingServerSummaries": rows, **following}


def create_presigned_url(request: Request) -> dict[str, Any]:
    name = request.given.get("TrackingServerName")
    for one in request.account.mlflow.get(request.region, []):
        if one.arn == request.given.get("Arn") or (one.name == name and not one.is_app):
            return {"AuthorizedUrl": f"https://{one.name}.mlflow.example/auth?authToken=once"}
    raise ApiError("ResourceNotFound", "MLflow server not found.")


def mlflow_resource(request: Request) -> Resource | None:
    """What IAM names; None where the request is about no MLflow server."""
    if "TrackingServerName" in request.given:
        name = request.given["TrackingServerName"]
        account = request.account
        where = f"{account.partition}:sagemaker:{request.region}:{account.account_id}"
        return Resource(name, f"arn:{where}:mlflow-tracking-server/{name}")
    arn = request.given.get("Arn", "")
    return Resource(arn, arn) if ":mlflow-app/" in arn else None


def opening(request: Request) -> Iterator[tuple[str, Resource]]:
    """The right to see a tracking server's page. AWS looks at it when the link is opened; here when it is made."""
    resource = mlflow_resource(request)
    if resource is not None and "TrackingServerName" in request.given:
        yield "sagemaker-mlflow:AccessUI", resource


OPERATIONS = {
    "ListMlflowApps": list_mlflow_apps,
    "ListMlflowTrackingServers": list_mlflow_tracking_servers,
    "CreatePresignedMlflowAppUrl": create_presigned_url,
    "CreatePresignedMlflowTrackingServerUrl": create_presigned_url,
}


def answer(
    account: Account, faults: Faults, query: Query, counted: Callable[[str], AbstractContextManager[None]]
) -> Reply:
    """Answer a request to a server.

    Args:
        account: What there is.
        faults: What goes wrong.
        query: The request.
        counted: Counts a call of an action while it is under way.

    Raises:
        ApiError: It was not signed as SageMaker wants, the caller may not, or there is no such server.
    """
    named = [(header, query.headers.get(header)) for header in _HEADERS if header in query.headers]
    if len(named) != 1:
        raise ApiError("ValidationException", "the header with the server's ARN is missing")
    ((header, arn),) = named
    is_app = _HEADERS[header]
    if query.scope.service != ("sagemaker" if is_app else SERVICE):
        raise ApiError("InvalidSignatureException", "signed for another service", 403)
    path = urlsplit(query.path).path.removeprefix(PREFIX)
    action = APP_ACTION if is_app else f"{SERVICE}:{ACTIONS.get(path, 'Unknown')}"
    with counted(action):
        check_signature(query.headers, query.scope, query.caller.secret, query.verb, query.path, query.body)
        faults.before(action)
        context = {"aws:RequestedRegion": query.scope.region}
        asked = Asked(action, str(arn), context)
        verdict = decide(query.caller.policies, asked, query.caller.session)
        if faults.denies(action, str(arn)):
            verdict = Verdict(allowed=False)
        if not verdict.allowed:
            raise denied("rest-json", query.caller.arn, asked, explicit=verdict.explicit)
        for one in account.mlflow.get(query.scope.region, []):
            if one.arn == arn and one.is_app == is_app:
                return _answer(query)
    raise ApiError("ResourceNotFoundException", "MLflow server not found", 404)


def fail(error: ApiError) -> Reply:
    """An error as the service gives it."""
    status = 403 if "denied" in error.code.lower() else error.status
    body = json.dumps({"message": error.message}).encode()
    return Reply(status, body, {"Content-Type": "application/json", "x-amzn-ErrorType": error.code})


def _answer(query: Query) -> Reply:
    if query.verb == "GET":
        missing = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no experiment"}
        return Reply(404, json.dumps(missing).encode(), {"Content-Type": "application/json"})
    body = {
        "experiments": [{"experiment_id": "0", "name": "Default"}],
        "runs": [{"info": {"run_id": "r1", "experiment_id": "0", "status": "FINISHED"}}],
    }
    return Reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


def _page(request: Request, *, is_app: bool) -> tuple[list[MlflowHost], dict[str, str]]:
    found = [one for one in request.account.mlflow.get(request.region, []) if one.is_app == is_app]
    return page(found, lambda one: [one.name], request.given)


def _common(host: MlflowHost) -> dict[str, Any]:
    return {"MlflowVersion": "3.10.0", "CreationTime": host.created, "LastModifiedTime": host.created}
