"""Requests about the events of HyperPod clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_jlab.clusters.routes import AwsAged, LiveTableQuery, aws_freshness
from hyperpod_jlab.core.events import ClusterEvent, EventFilter, EventRow, merge_duplicates, newest_first
from hyperpod_jlab.features.events.service import cluster_events
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import Page, TablePage, build_page

MAX_CHOICES = 200
"""Maximum number of groups or instances offered as filters."""

_Name = Annotated[str, Field(min_length=1, max_length=256)]


@dataclass(frozen=True, kw_only=True)
class HyperpodEvents(AwsAged, Page):
    """A page of events. `groups` and `instances` are those with events: newest first, limited in number."""

    events: list[EventRow]
    groups: list[str]
    instances: list[str]


class EventsQuery(LiveTableQuery):
    """Which events."""

    level: Literal["info", "warn", "error"] | None = None
    """Only this level or higher."""
    group: _Name | None = None
    """Only this instance group."""
    node: _Name | None = None
    """Only the instance with this id, or ids with this prefix."""


async def list_events(call: Call, cluster: str, query: EventsQuery) -> HyperpodEvents:
    """List the events of a HyperPod cluster, newest first."""
    services = await call.hyperpod()
    resolved = await services.clusters.resolve_hyperpod(cluster)
    cached, notes = await cluster_events(services, resolved.region).events(resolved.aws_name, refresh=query.refresh)
    events = await asyncio.to_thread(newest_first, cached.rows)
    page = await asyncio.to_thread(_page, events, query)
    return HyperpodEvents(
        events=page.rows,
        groups=_names(event.group for event in events),
        instances=_names(event.instance for event in events),
        next=page.next,
        total=page.total,
        **vars(aws_freshness(cached, notes)),
    )


async def show_event(call: Call, cluster: str, event: str) -> ClusterEvent:
    """Get an event of a HyperPod cluster with its details, which alone tell why something failed."""
    services = await call.hyperpod()
    resolved = await services.clusters.resolve_hyperpod(cluster)
    return await cluster_events(services, resolved.region).event(resolved.aws_name, event)


def _page(events: Sequence[ClusterEvent], query: EventsQuery) -> TablePage[EventRow]:
    """The requested rows. May be slow."""
    event_filter = EventFilter(level=query.level, group=query.group, instance=query.node)
    rows: list[EventRow] = list(merge_duplicates(filter(event_filter.matches, events)))
    return build_page(EventRow, rows, query, name="event_id", sort="-time")


def _names(names: Iterable[str | None]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name is not None][:MAX_CHOICES]
