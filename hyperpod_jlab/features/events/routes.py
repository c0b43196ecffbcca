"""Requests about the events of HyperPod clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hyperpod_jlab.clusters.routes import AwsAged, AwsTableQuery, aws_freshness
from hyperpod_jlab.core.events import ClusterEvent, EventRow, merge_duplicates, newest_first
from hyperpod_jlab.features.events.service import events_in
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import Page, TablePage, page_of

MOST_CHOICES = 200
"""Groups or instances that are proposed to choose from."""

_Name = Annotated[str, Field(min_length=1, max_length=256)]


@dataclass(frozen=True, kw_only=True)
class HyperpodEvents(AwsAged, Page):
    """A page of events. `groups` and `instances` are those of which there are events: the newest first, and no more than some."""

    events: list[EventRow]
    groups: list[str]
    instances: list[str]


class EventsQuery(AwsTableQuery):
    """Which events."""

    level: Literal["info", "warn", "error"] | None = None
    """Only those that are so bad, or worse."""
    group: _Name | None = None
    """Only those of this instance group."""
    node: _Name | None = None
    """Only those of the instance of this id, or of those whose ids begin so."""


async def list_events(call: Call, cluster: str, query: EventsQuery) -> HyperpodEvents:
    """The events of a HyperPod cluster, newest first; those that AWS has dropped are from the journal."""
    services = await call.hyperpod()
    meant = await services.clusters.resolve_hyperpod(cluster)
    shown, notes = await events_in(services, meant.region).events(
        meant.aws_name, refresh=query.refresh
    )
    events = await asyncio.to_thread(newest_first, shown.rows)
    page = await asyncio.to_thread(_page, events, query)
    return HyperpodEvents(
        events=page.rows,
        groups=_names(event.group for event in events),
        instances=_names(event.instance for event in events),
        next=page.next,
        total=page.total,
        **vars(aws_freshness(shown, notes)),
    )


async def show_event(call: Call, cluster: str, event: str) -> ClusterEvent:
    """An event of a HyperPod cluster with its details, which alone tell why something failed."""
    services = await call.hyperpod()
    meant = await services.clusters.resolve_hyperpod(cluster)
    return await events_in(services, meant.region).event(meant.aws_name, event)


def _page(events: Sequence[ClusterEvent], query: EventsQuery) -> TablePage[EventRow]:
    """The rows that are asked for. May take a while."""
    wanted = (event for event in events if _is_wanted(event, query))
    rows: list[EventRow] = list(merge_duplicates(wanted))
    return page_of(EventRow, rows, query, name="event_id", sort="-time")


def _is_wanted(event: ClusterEvent, query: EventsQuery) -> bool:
    return (
        event.has_level(query.level)
        and query.group in {None, event.group}
        and (query.node is None or (event.instance or "").startswith(query.node))
    )


def _names(names: Iterable[str | None]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name is not None][:MOST_CHOICES]
