"""``hpj events``: what happened to a HyperPod cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import format_moment, page_options, print_fields, print_json, show_list
from hyperpod_jlab.cli.parameters import SinceParam, cluster_argument, region_option
from hyperpod_jlab.core.cluster import Rows
from hyperpod_jlab.core.events import EVENT_LEVELS, EVENT_RESOURCES, EventFilter, merge_duplicates, newest_first
from hyperpod_jlab.features.events.service import cluster_events

if TYPE_CHECKING:
    from hyperpod_jlab.core.events import ClusterEvent
    from hyperpod_jlab.run.services import Hyperpod

_HELP = """\
List the events of a HyperPod cluster, newest first, such as failed, replaced and added nodes, and scaling of instance groups.

AWS keeps the newest 500 events of clusters with continuous provisioning. The reason of a failure is often only in the details of an event: --event ID.
"""

_TITLES = ("TIME", "LEVEL", "RESOURCE", "GROUP", "INSTANCE", "EVENT", "DESCRIPTION")


@click.command(
    "events",
    cls=HpjCommand,
    help=_HELP,
    examples=(
        "hpj events ml-cluster --level warn --since 1d",
        "hpj events ml-cluster --node i-0123456789abcdef0",
        "hpj events ml-cluster --event 0f1e2d3c-0123-4567-89ab-0123456789ab",
    ),
)
@cluster_argument
@region_option
@click.option("--level", type=click.Choice(EVENT_LEVELS), help="Show only events of this level or a higher one.")
@click.option(
    "--of", "resource", type=click.Choice(tuple(EVENT_RESOURCES)), help="Show only events of this kind of resource."
)
@click.option("--group", metavar="NAME", help="Show only events of this instance group.")
@click.option(
    "--node", "instance", metavar="ID", help="Show only events of this instance, or of those whose ids begin like this."
)
@click.option(
    "--since",
    type=SinceParam(),
    metavar="TIME",
    help="Show only events newer than this age, such as 1h, or since a time in ISO 8601.",
)
@click.option("--event", metavar="ID", help="Show the details of this event.")
@page_options
def events(
    cluster: str | None, region: str | None, event: str | None, limit: int | None, cursor: str | None, **options: Any
) -> None:
    """List events, or show one."""
    if event is not None:
        _show(with_services(lambda services: _find(services, cluster, region, event), asking=True))
        return
    event_filter = EventFilter(**options)

    async def read(services: Hyperpod) -> Rows[ClusterEvent]:
        resolved = await services.clusters.resolve_hyperpod(cluster, region)
        events = cluster_events(services, resolved.region)
        cached, notes = await events.events(resolved.aws_name, wait=float("inf"))
        if cached.problem is not None:
            raise cached.problem
        return Rows(merge_duplicates(newest_first(filter(event_filter.matches, cached.rows))), notes)

    show_list("events", _TITLES, with_services(read, asking=True), _row, (limit, cursor))


async def _find(services: Hyperpod, cluster: str | None, region: str | None, event: str) -> ClusterEvent:
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    return await cluster_events(services, resolved.region).event(resolved.aws_name, event)


def _row(event: ClusterEvent) -> Sequence[str]:
    times_text = f" ({event.times} times)" if event.times > 1 else ""
    return (
        format_moment(event.time),
        event.level or "-",
        event.resource,
        event.group or "-",
        event.instance or "-",
        event.event_id,
        f"{event.description or ''}{times_text}",
    )


def _show(event: ClusterEvent) -> None:
    if invocation().as_json:
        print_json(event)
        return
    print_fields(
        [
            ("event", event.event_id),
            ("time", format_moment(event.time)),
            ("level", event.level),
            ("resource", event.resource),
            ("group", event.group),
            ("instance", event.instance),
            ("description", event.description),
            ("reason", event.reason),
            ("details", json.dumps(event.metadata, default=str) if event.metadata else None),
        ]
    )
