"""The newest events of objects: what the cluster's controllers last had to say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient

_QUIET = frozenset(
    {
        "SetPodTemplateRestartPolicy",
        "FailedToUpdateEndpoint",
        "FailedToUpdateEndpointSlices",
        "Unhealthy",
        "CgroupV1",
    }
)
"""Warnings that keep nothing from running."""

_LATER = frozenset({"Failed", "BackOff"})
"""Reasons that say that something failed, after the event that says why."""


@dataclass(frozen=True, slots=True)
class Event:
    """A warning: its reason, message, and when it was last seen (time as Kubernetes writes it)."""

    reason: str
    message: str
    time: str


async def warnings_of(client: KubeClient, namespace: str, uids: Sequence[str]) -> list[Event]:
    """The warnings about objects of a namespace, the newest first; none where events may not be seen.

    Args:
        client: The cluster.
        namespace: Their namespace.
        uids: Their own ids; a question each, so few of them.

    Raises:
        UnreachableError: The API server does not answer.
    """
    found = []
    for uid in uids:
        selector = f"involvedObject.uid={uid},type=Warning"
        try:
            answer = await client.get(
                f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector, limit="50"
            )
        except (DeniedError, NotFoundError):
            return []
        found += [_event(one) for one in answer.get("items") or []]
    kept = [one for one in found if one.reason not in _QUIET]
    return sorted(kept, key=lambda one: (one.time, one.reason not in _LATER), reverse=True)


def _event(one: Mapping[str, Any]) -> Event:
    series = one.get("series") or {}
    moment = (
        series.get("lastObservedTime")
        or one.get("lastTimestamp")
        or one.get("eventTime")
        or (one.get("metadata") or {}).get("creationTimestamp")
    )
    return Event(str(one.get("reason") or ""), str(one.get("message") or ""), str(moment or ""))
