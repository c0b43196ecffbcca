"""Events of HyperPod clusters, from SageMaker's API. Levels and resource types that this version does not know are kept as AWS writes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hyperpod_jlab.aws.clusters import check_cluster_name
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.events import EVENT_LEVELS, EVENT_RESOURCES, ClusterEvent, find_failure_message

_RESOURCES = {theirs: ours for ours, theirs in EVENT_RESOURCES.items()}


async def list_events(aws: Aws, cluster: str, since: float | None = None) -> AsyncIterator[list[ClusterEvent]]:
    """The events of a cluster, newest first, page by page.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.
        since: Only events after this time (Unix seconds).

    Raises:
        NotFoundError: The cluster does not exist.
        HyperpodError: See `aws.errors`.
    """
    options: dict[str, Any] = {"SortBy": "EventTime", "SortOrder": "Descending"}
    if since is not None:
        options["EventTimeAfter"] = datetime.fromtimestamp(since, UTC)
    async for page in aws.pages("sagemaker", "ListClusterEvents", ClusterName=check_cluster_name(cluster), **options):
        yield [_event(item) for item in page.get("Events") or ()]


async def describe_event(aws: Aws, cluster: str, event_id: str) -> ClusterEvent:
    """One event with its details, which alone tell why something failed.

    Raises:
        NotFoundError: The cluster or the event does not exist.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call("sagemaker", "DescribeClusterEvent", ClusterName=cluster, EventId=event_id)
    return _event(response["EventDetails"])


def _event(item: Mapping[str, Any]) -> ClusterEvent:
    level = item.get("EventLevel")
    resource = str(item["ResourceType"])
    metadata = (item.get("EventDetails") or {}).get("EventMetadata") or {}
    return ClusterEvent(
        event_id=str(item["EventId"]),
        time=item["EventTime"].timestamp(),
        level=level.lower() if level and level.lower() in EVENT_LEVELS else level,
        resource=_RESOURCES.get(resource, resource),
        group=item.get("InstanceGroupName"),
        instance=item.get("InstanceId"),
        description=item.get("Description"),
        reason=find_failure_message(metadata),
        metadata=metadata,
    )
