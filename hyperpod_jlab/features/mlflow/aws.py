"""MLflow of SageMaker: tracking servers, MLflow Apps, and links that open them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.features.mlflow.models import MlflowServer, MlflowServers

_EXPIRES_S = 300
"""AWS takes no more."""


async def list_servers(aws: Aws) -> MlflowServers:
    """All tracking servers and MLflow Apps, by name.

    Raises:
        HyperpodError: Neither can be listed (see `aws.errors`).
    """
    found: list[MlflowServer] = []
    errors: list[HyperpodError] = []
    for read in (_apps, _tracking_servers):
        try:
            found += await read(aws)
        except HyperpodError as error:
            errors.append(error)
    if len(errors) == 2:
        raise errors[0]
    found.sort(key=lambda one: (one.name, one.kind))
    return MlflowServers(found, [error.message for error in errors])


async def presigned_link(arn: str) -> str:
    """A link that opens a server in the browser: once, within five minutes.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    _, _, _, region, _, resource = arn.split(":", 5)
    aws = Aws(region)
    if resource.startswith("mlflow-app/"):
        response = await aws.call("sagemaker", "CreatePresignedMlflowAppUrl", Arn=arn, ExpiresInSeconds=_EXPIRES_S)
    else:
        response = await aws.call(
            "sagemaker",
            "CreatePresignedMlflowTrackingServerUrl",
            TrackingServerName=resource.partition("/")[2],
            ExpiresInSeconds=_EXPIRES_S,
        )
    return str(response["AuthorizedUrl"])


async def _apps(aws: Aws) -> list[MlflowServer]:
    return [
        _server(item, "app", "Name", "Arn", "Status")
        async for page in aws.pages("sagemaker", "ListMlflowApps")
        for item in page.get("Summaries", [])
    ]


async def _tracking_servers(aws: Aws) -> list[MlflowServer]:
    names = ("TrackingServerName", "TrackingServerArn", "TrackingServerStatus")
    return [
        _server(item, "tracking-server", *names)
        async for page in aws.pages("sagemaker", "ListMlflowTrackingServers")
        for item in page.get("TrackingServerSummaries", [])
    ]


def _server(
    item: Mapping[str, Any], kind: Literal["app", "tracking-server"], name: str, arn: str, status: str
) -> MlflowServer:
    created = item.get("CreationTime")
    return MlflowServer(
        name=str(item.get(name, "")),
        kind=kind,
        arn=str(item.get(arn, "")),
        status=str(item.get(status, "")),
        version=item.get("MlflowVersion"),
        created_at=created.timestamp() if created is not None else None,
    )
