"""SageMaker's operations on tags: of clusters, domains, user profiles, spaces and lifecycle configurations, by their ARNs."""

from __future__ import annotations

from typing import Any

from testbed.aws.operations import Request
from testbed.aws.pages import page
from testbed.aws.replies import ApiError

MOST = 50
"""Tags that a thing can have (SageMaker's documentation)."""


def list_tags(request: Request) -> dict[str, Any]:
    shown, following = page(sorted(_tags(request).items()), lambda one: [one[0]], request.given)
    return {"Tags": [{"Key": name, "Value": value} for name, value in shown], **following}


def add_tags(request: Request) -> dict[str, Any]:
    tags = _tags(request)
    made = {one["Key"]: one["Value"] for one in request.given["Tags"]}
    if len({**tags, **made}) > MOST:
        raise ApiError("ResourceLimitExceeded", f"A resource has at most {MOST} tags")
    tags.update(made)
    return {"Tags": request.given["Tags"]}


def delete_tags(request: Request) -> dict[str, Any]:
    tags = _tags(request)
    for name in request.given["TagKeys"]:
        tags.pop(name, None)
    return {}


def _tags(request: Request) -> dict[str, str]:
    account, arn = request.account, request.given["ResourceArn"]
    for cluster in account.find(request.region, arn):
        return cluster.tags
    kind, _, name = arn.partition(":sagemaker:")[2].split(":", 2)[-1].partition("/")
    domain, _, single = name.partition("/")
    found = {
        "domain": account.domains.get(domain),
        "user-profile": account.profiles.get((domain, single)),
        "space": account.spaces.get((domain, single)),
        "studio-lifecycle-config": account.lifecycle_configs.get((request.region, name)),
    }.get(kind)
    if found is None:
        raise ApiError("ValidationException", f"Resource {arn} not found.")
    return found.tags
