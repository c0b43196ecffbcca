"""Requests about the events of HyperPod clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.clusters.aws import EventRow, event_row
from hyperpod_jlab.clusters.aws_routes import AwsAged, HyperpodTableQuery, age_of
from hyperpod_jlab.core.events import ClusterEvent, newest_first, said_once
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import TablePage, page_of

MOST_CHOICES = 200
"""Groups or instances that are proposed to choose from."""

_Name = Annotated[str, Field(min_length=1, max_length=256)]


class HyperpodEvent(TypedDict):
    """An event of a HyperPod cluster.

    `level` is `info`, `warn` or `error`, `resource` is `cluster`, `group` or `instance`; a word of AWS' that is newer is there as it came. `times`
    says how often AWS told it within a moment. `reason` is known once its details were looked at. With `journal` AWS does not list it (any more), and
    it is from the server's own journal.
    """

    event_id: str
    time: str
    level: str | None
    resource: str
    group: str | None
    instance: str | None
    description: str | None
    reason: str | None
    times: int
    journal: bool


class HyperpodEvents(AwsAged):
    """A page of events. `groups` and `instances` are those of which there are events: the newest first, and no more than some."""

    events: list[HyperpodEvent]
    next: str | None
    total: int
    groups: list[str]
    instances: list[str]


class HyperpodEventDetail(HyperpodEvent):
    """An event with what its details have besides, as AWS tells it."""

    metadata: dict[str, object]


class EventsQuery(HyperpodTableQuery):
    """Which events."""

    level: Literal["info", "warn", "error"] | None = None
    """Only those that are so bad, or worse."""
    group: _Name | None = None
    """Only those of this instance group."""
    node: _Name | None = None
    """Only those of the instance of this id, or of those whose ids begin so."""


async def list_hyperpod_events(call: Call, cluster: str, query: EventsQuery) -> HyperpodEvents:
    """The events of a HyperPod cluster, by its name or ARN, newest first; those that AWS has dropped are from the journal."""
    watch = (await call.hyperpod()).event_watch_in(region_of(cluster))
    shown, notes = await watch.events(cluster, refresh=query.refresh)
    events = await asyncio.to_thread(newest_first, shown.rows)
    page = await asyncio.to_thread(_page, events, query)
    return {
        "events": cast("list[HyperpodEvent]", page.rows),
        "next": page.next,
        "total": page.total,
        "groups": _names(event.group for event in events),
        "instances": _names(event.instance for event in events),
        **age_of(shown, notes),
    }


async def show_hyperpod_event(call: Call, cluster: str, event: str) -> HyperpodEventDetail:
    """An event of a HyperPod cluster with its details, which alone tell why something failed."""
    watch = (await call.hyperpod()).event_watch_in(region_of(cluster))
    found = await watch.event(cluster, event)
    return cast("HyperpodEventDetail", found.to_dict())


def _page(events: Sequence[ClusterEvent], query: EventsQuery) -> TablePage:
    """The rows that are asked for. May take a while."""
    wanted = (event for event in events if _is_wanted(event, query))
    rows = [event_row(event) for event in said_once(wanted)]
    return page_of(EventRow, rows, query, name="event_id", sort="-time")


def _is_wanted(event: ClusterEvent, query: EventsQuery) -> bool:
    return (
        event.is_as_bad(query.level)
        and query.group in {None, event.group}
        and (query.node is None or (event.instance or "").startswith(query.node))
    )


def _names(names: Iterable[str | None]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name is not None][:MOST_CHOICES]
