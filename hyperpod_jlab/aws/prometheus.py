"""Amazon Managed Service for Prometheus: the workspace that has a cluster's metrics, and what it answers over a time.

boto3 has no operation for queries: they are Prometheus' own API below the workspace's address, signed for the service ``aps``
(``QueryMetrics`` in AWS' user guide of the service). HyperPod's observability add-on of EKS is told its workspace in its configuration, as
``ampWorkspace: {prometheusEndpoint, arn}`` (the Terraform modules of aws-samples/awsome-distributed-training).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hyperpod_jlab.aws.errors import Call
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.addresses import without_passwords
from hyperpod_jlab.model.errors import (
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.model.node_metrics import Window

ADDON = "amazon-sagemaker-hyperpod-observability"
"""HyperPod's observability add-on of EKS."""

_URL = re.compile(r"(https?://[0-9A-Za-z.:-]+/workspaces/ws-[0-9A-Za-z-]+)(?:/\S*)?")
_ARN = re.compile(r"arn:(aws[a-z-]*):aps:([a-z0-9-]+):\d{12}:workspace/(ws-[0-9A-Za-z-]+)")
_REGION = re.compile(r"aps-workspaces[a-z-]*\.([a-z0-9-]+)\.")
_AWS_HOSTS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_LOOPBACK = frozenset({"127.0.0.1", "localhost"})


@dataclass(frozen=True)
class Workspace:
    """A workspace.

    Attributes:
        url: Its address, without what follows its id.
        region: The region that requests are signed for.
    """

    url: str
    region: str


@dataclass(frozen=True)
class Series:
    """One series of an answer.

    Attributes:
        labels: What it is of.
        points: Begin of each period (Unix seconds) and the value in it.
    """

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


def workspace_at(url: str, region: str) -> Workspace:
    """The workspace at an address, as AWS' console shows it; what follows its id is left out.

    Args:
        url: The address.
        region: Its region, where the address does not say it.

    Raises:
        InvalidInputError: It is none of a workspace, or not one of AWS: signed requests go nowhere else.
    """
    found = _URL.fullmatch(url.strip())
    address = urlsplit(found[1]) if found else None
    host = (address.hostname or "") if address else ""
    theirs = address is not None and address.scheme == "https" and host.endswith(_AWS_HOSTS)
    if found is None or not (theirs or host in _LOOPBACK):
        raise InvalidInputError(
            f"'{without_passwords(url)[:200]}' is not the address of a workspace of Amazon Managed Service for Prometheus",
            hint="one looks like https://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-0123abcd-...",
            detail={"field": "prometheus"},
        )
    named = _REGION.search(host)
    return Workspace(found[1], named[1] if named else region)


async def workspace_of_addon(aws: Aws, eks: str) -> Workspace | None:
    """The workspace that HyperPod's observability add-on of an EKS cluster writes to; None: there is no such add-on, or it names none.

    Raises:
        UnsupportedError: What it names is no workspace of AWS.
        HyperpodError: See `aws.errors`.
    """
    try:
        told = await aws.call("eks", "DescribeAddon", clusterName=eks, addonName=ADDON)
    except NotFoundError:
        return None
    named = _configuration(told["addon"].get("configurationValues") or "").get("ampWorkspace")
    if not isinstance(named, dict):
        return None
    region = await aws.region()
    if named.get("prometheusEndpoint"):
        try:
            return workspace_at(str(named["prometheusEndpoint"]), region)
        except InvalidInputError as error:
            raise UnsupportedError(f"the add-on {ADDON} of {eks}: {error.message}") from None
    arn = _ARN.fullmatch(str(named.get("arn") or ""))
    if arn is None:
        return None
    suffix = ".cn" if arn[1] == "aws-cn" else ""
    host = f"aps-workspaces.{arn[2]}.amazonaws.com{suffix}"
    return Workspace(f"https://{host}/workspaces/{arn[3]}", arn[2])


async def query_range(
    aws: Aws, workspace: Workspace, expression: str, window: Window
) -> list[Series]:
    """The values of an expression, one for each whole period of a time; values that are no numbers are left out.

    Args:
        aws: AWS.
        workspace: The workspace.
        expression: In PromQL; its value at the end of a period is that of the period.
        window: The time; a period that has only begun is left out.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    call = Call("aps", "QueryMetrics", workspace.region)
    periods = int((window.end - window.begin) // window.period)
    if periods < 1:
        return []
    form = {
        "query": expression,
        "start": str(window.begin + window.period),
        "end": str(window.begin + window.period * periods),
        "step": str(window.period),
    }
    told = await aws.post(call, f"{workspace.url}/api/v1/query_range", form)
    try:
        return [_series(one, window.period) for one in told["data"]["result"]]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreachableError(
            f"the workspace {workspace.url} gave an answer that is none of Prometheus",
            code="aws_failed",
            detail=call.detail,
        ) from None


def _series(told: Mapping[str, Any], period: int) -> Series:
    values = ((float(moment) - period, float(text)) for moment, text in told["values"])
    labels = {str(name): str(value) for name, value in told["metric"].items()}
    return Series(labels, tuple(pair for pair in values if abs(pair[1]) < float("inf")))


def _configuration(text: str) -> dict[str, Any]:
    """An add-on's configuration: EKS takes JSON and YAML; nothing where it is neither."""
    try:
        told = json.loads(text or "{}")
    except ValueError:
        told = _yaml(text)
    return told if isinstance(told, dict) else {}


def _yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
