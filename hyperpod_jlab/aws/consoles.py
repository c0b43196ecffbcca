"""Links into AWS' web console, in the partition that the ARN names."""

from __future__ import annotations

import json
import re
from urllib.parse import quote, urlencode

from hyperpod_jlab.aws.studio import parse_arn

_CONSOLES = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""Consoles by partition. Those of other partitions are not public, so they have no links."""

COST_TAG = "ClusterName"
"""The tag by which AWS assigns costs to a cluster: AWS' own guides for HyperPod put it on clusters."""


def cluster_console(arn: str, name: str) -> str | None:
    """A HyperPod cluster in SageMaker's console; None if the partition's console is unknown.

    Args:
        arn: The cluster's ARN.
        name: Its name.
    """
    return _page(arn, "sagemaker/home", f"/cluster-management/{quote(name, safe='')}")


def logs_console(arn: str, name: str) -> str | None:
    """The log group of a HyperPod cluster in CloudWatch's console, with logs of lifecycle scripts and health checks.

    Args:
        arn: The cluster's ARN.
        name: Its name.
    """
    group = log_group(arn, name)
    # This console quotes names in its URLs twice, with $ instead of %.
    encoded_twice = quote(quote(group, safe=""), safe="").replace("%", "$")
    return _page(arn, "cloudwatch/home", f"logsV2:log-groups/log-group/{encoded_twice}")


def eks_console(arn: str) -> str | None:
    """An EKS cluster in its console.

    Args:
        arn: Its ARN.
    """
    return _page(arn, "eks/home", f"/clusters/{quote(arn.rpartition('/')[2], safe='')}")


def costs_console(name: str, region: str | None) -> str | None:
    """The costs of this month of everything with a HyperPod cluster's tag, by day, in Cost Explorer. AWS charges nothing for the page.

    Args:
        name: The cluster's name.
        region: Its region. Only the consoles of AWS' commercial regions have this page.
    """
    if region is not None and re.match(r"cn-|us-gov|us-iso|eu-isoe|eusc", region):
        return None
    tag, value = ({"value": text, "displayValue": text} for text in (COST_TAG, name))
    dimension = {"id": "TagKey", "displayValue": "Tag"}
    found = {"dimension": dimension, "operator": "INCLUDES", "values": [value], "growableValue": tag}
    query = {
        "chartStyle": "STACK",
        "costAggregate": "unBlendedCost",
        "filter": json.dumps([found], separators=(",", ":")),
        "granularity": "Daily",
        "groupBy": '["UsageType"]',
        "historicalRelativeRange": "MONTH_TO_DATE",
    }
    fragment = urlencode(query, quote_via=quote, safe=":,")
    return f"https://{_CONSOLES['aws']}/costmanagement/home#/cost-explorer?{fragment}"


def log_group(arn: str, name: str) -> str:
    """The log group that HyperPod creates for a cluster.

    Args:
        arn: The cluster's ARN.
        name: Its name.
    """
    return f"/aws/sagemaker/Clusters/{name}/{arn.rpartition('/')[2]}"


def _page(arn: str, path: str, fragment: str) -> str | None:
    parsed = parse_arn(arn)
    console = _CONSOLES.get(parsed.partition) if parsed else None
    if parsed is None or console is None or not parsed.region:
        return None
    region = quote(parsed.region, safe="")
    return f"https://{region}.{console}/{path}?region={region}#{fragment}"
