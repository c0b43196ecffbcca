"""Events of HyperPod clusters, from SageMaker's API. Words that are newer than this package are kept as they came."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hyperpod_jlab.aws.clusters import check_cluster_name
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.events import (
    EVENT_LEVELS,
    EVENT_RESOURCES,
    ClusterEvent,
    find_failure_message,
)

_RESOURCES = {theirs: ours for ours, theirs in EVENT_RESOURCES.items()}


@dataclass(frozen=True)
class EventFilter:
    """Which events AWS is asked for; None: whatever they are.

    Attributes:
        resource: What they are of, in words of `EVENT_RESOURCES`.
        group: Name of their instance group.
        instance: Their instance id.
        since: The oldest (Unix seconds).
        until: The newest (Unix seconds).
    """

    resource: str | None = None
    group: str | None = None
    instance: str | None = None
    since: float | None = None
    until: float | None = None

    def to_parameters(self) -> dict[str, Any]:
        """As the API's input."""
        values = {
            "ResourceType": EVENT_RESOURCES[self.resource] if self.resource else None,
            "InstanceGroupName": self.group,
            "NodeId": self.instance,
            "EventTimeAfter": _time(self.since),
            "EventTimeBefore": _time(self.until),
        }
        return {name: value for name, value in values.items() if value is not None}

    def matches(self, event: ClusterEvent) -> bool:
        """Whether AWS would tell this event."""
        return (
            self.resource in {None, event.resource}
            and self.group in {None, event.group}
            and self.instance in {None, event.instance}
            and (self.since is None or event.time > self.since)
            and (self.until is None or event.time < self.until)
        )


async def list_events(
    aws: Aws, cluster: str, event_filter: EventFilter
) -> AsyncIterator[list[ClusterEvent]]:
    """The events of a cluster, newest first, page by page.

    Args:
        aws: AWS in the cluster's region.
        cluster: Its name or ARN.
        event_filter: Which of them.

    Raises:
        NotFoundError: There is no such cluster.
        HyperpodError: See `aws.errors`.
    """
    parameters = {"SortBy": "EventTime", "SortOrder": "Descending", **event_filter.to_parameters()}
    async for page in aws.pages(
        "sagemaker", "ListClusterEvents", ClusterName=check_cluster_name(cluster), **parameters
    ):
        yield [_event(item) for item in page.get("Events") or ()]


async def describe_event(aws: Aws, cluster: str, event_id: str) -> ClusterEvent:
    """One event with its details, which alone tell why something failed.

    Raises:
        NotFoundError: There is no such cluster or event.
        HyperpodError: See `aws.errors`.
    """
    response = await aws.call(
        "sagemaker", "DescribeClusterEvent", ClusterName=cluster, EventId=event_id
    )
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


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
