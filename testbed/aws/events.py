"""SageMaker: the events of a cluster, of those with continuous provisioning only."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any

from testbed.aws.lookup import cluster_of
from testbed.aws.operations import Request
from testbed.aws.pages import page
from testbed.aws.replies import ApiError
from testbed.aws.state import Cluster, Event

KEPT = 500
"""How many events AWS keeps: the newest."""


def list_cluster_events(request: Request) -> dict[str, Any]:
    cluster, given = _continuous(request), request.given
    found = [
        event
        for event in _kept(cluster)
        if given.get("InstanceGroupName", event.group) == event.group
        and given.get("NodeId", event.instance) == event.instance
        and given.get("ResourceType", event.resource) == event.resource
        and given.get("EventTimeAfter", 0) < event.time.timestamp()
        and event.time.timestamp() < given.get("EventTimeBefore", float("inf"))
    ]
    ordered = {"SortOrder": "Descending", **given}
    shown, following = page(found, lambda one: [one.time.timestamp(), event_id(cluster, one)], ordered)
    return {"Events": [_event(cluster, event) for event in shown], **following}


def describe_cluster_event(request: Request) -> dict[str, Any]:
    cluster = _continuous(request)
    for event in _kept(cluster):
        if event_id(cluster, event) == request.given["EventId"]:
            more = {"EventDetails": {"EventMetadata": event.metadata}} if event.metadata else {}
            return {"EventDetails": {**_event(cluster, event), **more}}
    raise ApiError("ResourceNotFound", f"Event {request.given['EventId']} not found.")


def event_id(cluster: Cluster, event: Event) -> str:
    """The event's id."""
    words = f"{cluster.arn}/{event.time}/{event.description}/{event.instance}"
    return str(uuid.UUID(hashlib.sha256(words.encode()).hexdigest()[:32]))


def _kept(cluster: Cluster) -> list[Event]:
    return sorted(cluster.events, key=lambda event: event.time)[-KEPT:]


def _continuous(request: Request) -> Cluster:
    cluster = cluster_of(request)
    if cluster.provisioning != "Continuous":
        raise ApiError(
            "ValidationException",
            "This operation is only supported when the NodeProvisioningMode is set to Continuous.",
        )
    return cluster


def _event(cluster: Cluster, event: Event) -> dict[str, Any]:
    told = {
        "EventId": event_id(cluster, event),
        "ClusterArn": cluster.arn,
        "ClusterName": cluster.name,
        "InstanceGroupName": event.group,
        "InstanceId": event.instance,
        "ResourceType": event.resource,
        "EventTime": event.time,
        "Description": event.description,
        "EventLevel": event.level,
    }
    return {name: value for name, value in told.items() if value is not None}
