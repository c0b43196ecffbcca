"""Requests about clusters: which there are, their nodes and queues, and everybody's jobs."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from hyperpod_jlab.core import cluster as model
from hyperpod_jlab.core.errors import NotFoundError, nearest_hint
from hyperpod_jlab.runs.facade import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import Aged, TableQuery, page_of


class Cluster(TypedDict):
    """A cluster of the configuration, and whether it answers. `actions` are what can be done to runs and jobs there: `adopt` to jobs only; with `ports` those of running runs can be reached.

    `changes` are what the action `change` can change. `notes` say what of the cluster is hidden from the user, and why.

    `as_of` says of when the numbers are, where it does not answer now.
    """

    name: str
    orchestrator: str
    default: bool
    state: str
    reason: str | None
    nodes: int | None
    running: int | None
    waiting: int | None
    actions: list[str]
    changes: list[Literal["time_limit", "queue"]]
    notes: list[str]
    as_of: str | None
    detail: dict[str, Any]


class Device(TypedDict):
    """Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts.

    `free` is how many a new job can get. `used_at` are the numbers of devices that jobs have, `shared_at` of those that jobs have parts of, `first` is
    the number of the first device; where devices are not numbered these are empty and null. `accelerator` says whether it computes.
    """

    name: str
    type: str | None
    total: int
    used: int
    free: int
    used_at: list[int]
    shared_at: list[int]
    first: int | None
    accelerator: bool


class ClusterNode(TypedDict):
    """A node. Memory is in bytes; free is what a new job can get, null where that cannot be known."""

    name: str
    state: str
    reason: str | None
    reason_since: str | None
    reason_by: str | None
    cpus: int | None
    cpus_free: int | None
    cpu_load: float | None
    memory: int | None
    memory_free: int | None
    accelerators: int
    accelerators_free: int | None
    accelerator_type: str | None
    resources: list[Device]
    features: list[str]
    instance_type: str | None
    instance_group: str | None
    comment: str | None
    queues: list[str]
    jobs: list[str]


class Quota(TypedDict):
    """What a queue may give of one resource on nodes of one kind (`flavor`). Memory is in bytes.

    `nominal` is the queue's own, `used` what jobs have now with what is `borrowed` from other queues, `free` what a new job can get now, `most` what one
    job can ever get.
    """

    flavor: str
    resource: str
    nominal: float
    used: float
    borrowed: float
    free: float
    most: float


class Queue(TypedDict):
    """A place where jobs wait. Times are in seconds; empty lists of groups, accounts and QoS allow all."""

    name: str
    state: str
    default: bool
    usable: bool | None
    groups: list[str]
    accounts: list[str]
    qos: list[str]
    denied: list[str]
    nodes: int | None
    nodes_free: int | None
    min_nodes: int | None
    max_nodes: int | None
    slots: int | None
    slots_free: int | None
    cpus: int | None
    cpus_free: int | None
    accelerators: int
    accelerators_free: int
    resources: list[Device]
    time_limit: int | None
    default_time: int | None
    priority: int | None
    running: int
    waiting: int
    reason: str | None
    cluster_queue: str | None
    quotas: list[Quota]


class Job(TypedDict):
    """One entry of the queue of all users; `run_id` is set when it is a run of yours. The time limit is in seconds."""

    scheduler_id: str
    name: str
    user: str
    state: str
    mine: bool
    queue: str | None
    reason: str | None
    reason_code: str | None
    reason_detail: str | None
    nodes: list[str]
    node_count: int | None
    cpus: int | None
    accelerators: int
    resources: list[Device]
    array: str | None
    account: str | None
    qos: str | None
    priority: int | None
    time_limit: int | None
    run_id: str | None
    submitted_at: str | None
    started_at: str | None
    ends_at: str | None
    expected_start: str | None


class JobsQuery(TableQuery):
    """Which rows of the table of jobs."""

    ended: bool | None = None
    """Only jobs that have ended (true), or only those that have not (false)."""


class Clusters(TypedDict):
    """A page of clusters."""

    clusters: list[Cluster]
    next: str | None
    total: int


class Nodes(Aged):
    """A page of nodes; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why."""

    nodes: list[ClusterNode]
    next: str | None
    total: int
    notes: list[str]


class Queues(Aged):
    """A page of queues; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why."""

    queues: list[Queue]
    next: str | None
    total: int
    notes: list[str]


class Jobs(Aged):
    """A page of jobs; of when they were seen last, when the cluster does not answer. `notes` say what of the table is hidden from the user, and why."""

    jobs: list[Job]
    next: str | None
    total: int
    notes: list[str]


class Choices(TypedDict):
    """Names that this user may give in a spec, by its field; a field that is not here has no known list."""

    choices: dict[str, list[str]]


async def list_clusters(call: Call, query: TableQuery) -> Clusters:
    """The configured clusters; one that does not answer says why in its reason."""
    hyperpod = await call.hyperpod()
    rows = await call.process.snapshots.get("clusters", hyperpod.clusters)
    page = await asyncio.to_thread(page_of, model.Cluster, rows, query, name="name", sort="name")
    return {"clusters": cast("list[Cluster]", page.rows), "next": page.next, "total": page.total}


async def list_nodes(call: Call, cluster: str, query: TableQuery) -> Nodes:
    """The nodes of a cluster."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("nodes", cluster), lambda: hyperpod.nodes(cluster))
    page = await asyncio.to_thread(page_of, model.Node, seen.said, query, name="name", sort="name")
    return {
        "nodes": cast("list[ClusterNode]", page.rows),
        "next": page.next,
        "total": page.total,
        "notes": list(model.notes_of(seen.said)),
        **seen.age(),
    }


async def list_queues(call: Call, cluster: str, query: TableQuery) -> Queues:
    """The queues of a cluster that the user may use."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("queues", cluster), lambda: hyperpod.queues(cluster))
    page = await asyncio.to_thread(page_of, model.Queue, seen.said, query, name="name", sort="name")
    return {
        "queues": cast("list[Queue]", page.rows),
        "next": page.next,
        "total": page.total,
        "notes": list(model.notes_of(seen.said)),
        **seen.age(),
    }


async def list_jobs(call: Call, cluster: str, query: JobsQuery) -> Jobs:
    """What runs and waits on a cluster, and what ended a short while ago, of all users; newest first, unless asked otherwise."""
    hyperpod = await with_cluster(call, cluster)
    seen = await call.process.snapshots.last(("jobs", cluster), lambda: hyperpod.jobs(cluster))
    rows = seen.said
    if query.ended is not None:
        rows = [row for row in rows if (row.state in model.JOB_ENDED) == query.ended]
    page = await asyncio.to_thread(
        page_of, model.Job, rows, query, name="scheduler_id", sort="-submitted_at"
    )
    return {
        "jobs": cast("list[Job]", page.rows),
        "next": page.next,
        "total": page.total,
        "notes": list(model.notes_of(seen.said)),
        **seen.age(),
    }


async def list_choices(call: Call, cluster: str) -> Choices:
    """What this user may name as queue, account and QoS of a cluster."""
    hyperpod = await with_cluster(call, cluster)
    known = hyperpod.engines.get(cluster).choices
    if known is None:
        return {"choices": {}}
    return {"choices": await call.process.snapshots.get(("choices", cluster), known.choices)}


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
