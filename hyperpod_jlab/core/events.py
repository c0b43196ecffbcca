"""Events of HyperPod clusters with continuous provisioning, as AWS stores them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hyperpod_jlab.core.wire import Time

MAX_EVENTS = 500
"""How many events per cluster AWS keeps, the newest (AWS' field guide)."""

EVENT_LEVELS = ("info", "warn", "error")
"""Event levels, lowest first; AWS' are the same, capitalized."""

EVENT_RESOURCES = {"cluster": "Cluster", "group": "InstanceGroup", "instance": "Instance"}
"""AWS' resource types of events, by our names."""

_DUPLICATE_WINDOW_S = 2.0
"""Seconds within which AWS repeats an event (AWS' field guide: about one)."""


@dataclass(frozen=True)
class EventRow:
    """An event of a cluster.

    Attributes:
        event_id: Its id.
        time: When it happened (Unix seconds).
        level: ``info``, ``warn``, ``error``, or AWS' own level; null if AWS reports none.
        resource: The resource type: ``cluster``, ``group``, ``instance``, or AWS' own type.
        group: The instance group.
        instance: The instance id.
        description: AWS' message.
        reason: Why it failed; known once its details were read.
        times: How often AWS repeated it within a short time.
    """

    event_id: str
    time: Time
    level: str | None
    resource: str
    group: str | None = None
    instance: str | None = None
    description: str | None = None
    reason: str | None = None
    times: int = 1


@dataclass(frozen=True)
class ClusterEvent(EventRow):
    """An event of a cluster, with its details.

    Attributes:
        metadata: The other details, as AWS reports them.
    """

    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EventFilter:
    """Which events to show. None: all.

    Attributes:
        level: This level of `EVENT_LEVELS` or higher, and events of an unknown level.
        resource: A resource type of `EVENT_RESOURCES`.
        group: An instance group.
        instance: An instance id, or a prefix of one.
        since: After this time (Unix seconds).
    """

    level: str | None = None
    resource: str | None = None
    group: str | None = None
    instance: str | None = None
    since: float | None = None

    def matches(self, event: ClusterEvent) -> bool:
        return (
            self._is_severe_enough(event)
            and self.resource in {None, event.resource}
            and self.group in {None, event.group}
            and (self.instance is None or (event.instance or "").startswith(self.instance))
            and (self.since is None or event.time > self.since)
        )

    def _is_severe_enough(self, event: ClusterEvent) -> bool:
        if self.level is None or event.level not in EVENT_LEVELS:
            return True
        return EVENT_LEVELS.index(event.level) >= EVENT_LEVELS.index(self.level)


def newest_first(events: Iterable[ClusterEvent]) -> list[ClusterEvent]:
    """Events in display order."""
    return sorted(events, key=lambda event: (-event.time, event.event_id))


def merge_duplicates(events: Iterable[ClusterEvent]) -> list[ClusterEvent]:
    """Merge events that AWS reports several times within a short time; the merged event has the count."""
    merged: list[ClusterEvent] = []
    for event in events:
        previous = merged[-1] if merged else None
        if (
            previous is not None
            and abs(previous.time - event.time) <= _DUPLICATE_WINDOW_S
            and _is_duplicate(previous, event)
        ):
            reason = previous.reason or event.reason
            merged[-1] = replace(previous, times=previous.times + 1, reason=reason)
        else:
            merged.append(event)
    return merged


def _is_duplicate(event: ClusterEvent, earlier: ClusterEvent) -> bool:
    return (event.level, event.resource, event.group, event.instance, event.description) == (
        *(earlier.level, earlier.resource, earlier.group, earlier.instance, earlier.description),
    )


def find_failure_message(metadata: Any) -> str | None:
    """Why something failed; AWS puts the message in one of several places of an event's details."""
    if isinstance(metadata, dict):
        failure = metadata.get("FailureMessage")
        if isinstance(failure, str) and failure:
            return failure
        return next((message for item in metadata.values() if (message := find_failure_message(item))), None)
    return None
