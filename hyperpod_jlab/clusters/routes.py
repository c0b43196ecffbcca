"""Requests about clusters: which there are, their nodes and queues, and everybody's jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hyperpod_jlab.core.cluster import JOB_ENDED, Cluster, Job, Node, Queue, notes_of
from hyperpod_jlab.core.errors import NotFoundError, nearest_hint
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import AgedPage, Page, TableQuery, page_of


class JobsQuery(TableQuery):
    """Which rows of the table of jobs."""

    ended: bool | None = None
    """Only jobs that have ended (true), or only those that have not (false)."""


@dataclass(frozen=True, kw_only=True)
class Clusters(Page):
    """A page of clusters."""

    clusters: list[Cluster]


@dataclass(frozen=True, kw_only=True)
class Nodes(AgedPage):
    """A page of nodes."""

    nodes: list[Node]


@dataclass(frozen=True, kw_only=True)
class Queues(AgedPage):
    """A page of queues."""

    queues: list[Queue]


@dataclass(frozen=True, kw_only=True)
class Jobs(AgedPage):
    """A page of jobs."""

    jobs: list[Job]


@dataclass(frozen=True)
class Choices:
    """Names that this user may give in a spec, by its field; a field that is not here has no known list."""

    choices: dict[str, list[str]]


async def list_clusters(call: Call, query: TableQuery) -> Clusters:
    """The configured clusters; one that does not answer says why in its reason."""
    hyperpod = await call.hyperpod()
    rows = await call.process.snapshots.get("clusters", hyperpod.clusters)
    page = await asyncio.to_thread(page_of, Cluster, rows, query, name="name", sort="name")
    return Clusters(clusters=page.rows, next=page.next, total=page.total)


async def list_nodes(call: Call, cluster: str, query: TableQuery) -> Nodes:
    """The nodes of a cluster."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("nodes", cluster), lambda: hyperpod.nodes(cluster))
    page = await asyncio.to_thread(page_of, Node, seen.said, query, name="name", sort="name")
    return Nodes(
        nodes=page.rows,
        next=page.next,
        total=page.total,
        as_of=seen.as_of,
        problem=seen.problem,
        notes=notes_of(seen.said),
    )


async def list_queues(call: Call, cluster: str, query: TableQuery) -> Queues:
    """The queues of a cluster that the user may use."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("queues", cluster), lambda: hyperpod.queues(cluster))
    page = await asyncio.to_thread(page_of, Queue, seen.said, query, name="name", sort="name")
    return Queues(
        queues=page.rows,
        next=page.next,
        total=page.total,
        as_of=seen.as_of,
        problem=seen.problem,
        notes=notes_of(seen.said),
    )


async def list_jobs(call: Call, cluster: str, query: JobsQuery) -> Jobs:
    """What runs and waits on a cluster, and what ended a short while ago, of all users; newest first, unless asked otherwise."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("jobs", cluster), lambda: hyperpod.jobs(cluster))
    rows = seen.said
    if query.ended is not None:
        rows = [row for row in rows if (row.state in JOB_ENDED) == query.ended]
    page = await asyncio.to_thread(
        page_of, Job, rows, query, name="scheduler_id", sort="-submitted_at"
    )
    return Jobs(
        jobs=page.rows,
        next=page.next,
        total=page.total,
        as_of=seen.as_of,
        problem=seen.problem,
        notes=notes_of(seen.said),
    )


async def list_choices(call: Call, cluster: str) -> Choices:
    """What this user may name as queue, account and QoS of a cluster."""
    hyperpod = await with_cluster(call, cluster)
    known = hyperpod.engines.get(cluster).choices
    if known is None:
        return Choices({})
    return Choices(await call.process.snapshots.get(("choices", cluster), known.choices))


async def with_cluster(call: Call, cluster: str) -> Hyperpod:
    """The services, once it is sure that they know the cluster.

    Raises:
        NotFoundError: They do not.
    """
    hyperpod = await call.hyperpod()
    if cluster not in hyperpod.settings.clusters:
        raise NotFoundError(
            f"there is no cluster '{cluster[:60]}'",
            code="unknown_cluster",
            hint=nearest_hint(cluster[:60], hyperpod.settings.clusters),
            detail={"field": "cluster"},
        )
    return hyperpod
