"""Requests about clusters: which there are, their nodes and queues, and everybody's jobs."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from typing_extensions import TypedDict

from hyperpod_jlab.model import cluster as model
from hyperpod_jlab.model.errors import NotFoundError, nearest_hint
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.tables import TableQuery, page_of
from hyperpod_jlab.services.hyperpod import Hyperpod


class Cluster(TypedDict):
    """A cluster of the configuration, and whether it answers."""

    name: str
    orchestrator: str
    default: bool
    state: str
    reason: str | None
    nodes: int | None
    running: int | None
    waiting: int | None
    detail: dict[str, Any]


class ClusterNode(TypedDict):
    """A node. Memory is in bytes."""

    name: str
    state: str
    reason: str | None
    cpus: int | None
    cpus_free: int | None
    memory: int | None
    accelerators: int
    accelerators_free: int
    accelerator_type: str | None
    instance_type: str | None
    instance_group: str | None
    queues: list[str]
    jobs: list[str]


class Queue(TypedDict):
    """A place where jobs wait. The time limit is in seconds."""

    name: str
    state: str
    default: bool
    nodes: int | None
    slots: int | None
    slots_free: int | None
    time_limit: int | None
    running: int
    waiting: int


class Job(TypedDict):
    """One entry of the queue of all users; `run_id` is set when it is a run of ours."""

    scheduler_id: str
    name: str
    user: str
    state: str
    queue: str | None
    reason: str | None
    nodes: list[str]
    run_id: str | None
    submitted_at: str | None
    started_at: str | None


class Clusters(TypedDict):
    """A page of clusters."""

    clusters: list[Cluster]
    next: str | None
    total: int


class Nodes(TypedDict):
    """A page of nodes."""

    nodes: list[ClusterNode]
    next: str | None
    total: int


class Queues(TypedDict):
    """A page of queues."""

    queues: list[Queue]
    next: str | None
    total: int


class Jobs(TypedDict):
    """A page of jobs."""

    jobs: list[Job]
    next: str | None
    total: int


async def list_clusters(call: Call, query: TableQuery) -> Clusters:
    """The configured clusters; one that does not answer says why in its reason."""
    hyperpod = await call.hyperpod()
    rows = await call.process.snapshots.get("clusters", hyperpod.clusters)
    page = await asyncio.to_thread(page_of, model.Cluster, rows, query, name="name", sort="name")
    return {"clusters": cast("list[Cluster]", page.rows), "next": page.next, "total": page.total}


async def list_nodes(call: Call, cluster: str, query: TableQuery) -> Nodes:
    """The nodes of a cluster."""
    hyperpod = await _with_cluster(call, cluster)
    rows = await call.process.snapshots.get(("nodes", cluster), lambda: hyperpod.nodes(cluster))
    page = await asyncio.to_thread(page_of, model.Node, rows, query, name="name", sort="name")
    return {"nodes": cast("list[ClusterNode]", page.rows), "next": page.next, "total": page.total}


async def list_queues(call: Call, cluster: str, query: TableQuery) -> Queues:
    """The queues of a cluster that the user may use."""
    hyperpod = await _with_cluster(call, cluster)
    rows = await call.process.snapshots.get(("queues", cluster), lambda: hyperpod.queues(cluster))
    page = await asyncio.to_thread(page_of, model.Queue, rows, query, name="name", sort="name")
    return {"queues": cast("list[Queue]", page.rows), "next": page.next, "total": page.total}


async def list_jobs(call: Call, cluster: str, query: TableQuery) -> Jobs:
    """What runs and waits on a cluster, of all users; newest first, unless asked otherwise."""
    hyperpod = await _with_cluster(call, cluster)
    rows = await call.process.snapshots.get(("jobs", cluster), lambda: hyperpod.jobs(cluster))
    page = await asyncio.to_thread(
        page_of, model.Job, rows, query, name="scheduler_id", sort="-submitted_at"
    )
    return {"jobs": cast("list[Job]", page.rows), "next": page.next, "total": page.total}


async def _with_cluster(call: Call, cluster: str) -> Hyperpod:
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
