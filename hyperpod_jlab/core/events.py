"""Events of a HyperPod cluster, as AWS keeps them for clusters with continuous provisioning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hyperpod_jlab.core.wire import Time

MAX_EVENTS = 500
"""How many events of a cluster AWS keeps: the newest (AWS' field guide)."""

EVENT_LEVELS = ("info", "warn", "error")
"""Words for how bad an event is, least first; AWS' are the same with a capital."""

EVENT_RESOURCES = {"cluster": "Cluster", "group": "InstanceGroup", "instance": "Instance"}
"""What events are of, by our words; AWS' words."""

_DUPLICATE_WINDOW_S = 2.0
"""Seconds within which AWS says the same twice (AWS' field guide: about one)."""


@dataclass(frozen=True)
class EventRow:
    """Something that happened to a cluster.

    Attributes:
        event_id: Its id.
        time: When (Unix seconds).
        level: ``info``, ``warn``, ``error``, or AWS' own word; null where AWS says none.
        resource: What it is of: ``cluster``, ``group``, ``instance``, or AWS' own word.
        group: The instance group.
        instance: The instance id.
        description: AWS' sentence.
        reason: Why it failed: known once its details were looked at.
        times: How often it was said within a moment.
        journal: Whether it is from this machine's journal, since AWS does not list it (any more).
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
    journal: bool = False


@dataclass(frozen=True)
class ClusterEvent(EventRow):
    """Something that happened to a cluster, with its details.

    Attributes:
        metadata: What the details have besides, as AWS tells it.
    """

    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EventFilter:
    """Which events to show. None: all.

    Attributes:
        level: This level of `EVENT_LEVELS` or a higher one, and events of an unknown level.
        resource: A kind of resource of `EVENT_RESOURCES`.
        group: An instance group.
        instance: An instance id, or the beginning of one.
        since: After this time (Unix seconds).
    """

    level: str | None = None
    resource: str | None = None
    group: str | None = None
    instance: str | None = None
    since: float | None = None

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is shown."""
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
    """Events in the order in which they are shown."""
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
    """Why something failed: AWS tells it in one of several places of an event's details."""
    if isinstance(metadata, dict):
        failure = metadata.get("FailureMessage")
        if isinstance(failure, str) and failure:
            return failure
        return next(
            (message for item in metadata.values() if (message := find_failure_message(item))), None
        )
    return None
