"""Requests about clusters: list them, their nodes and queues, and the jobs of all users."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hyperpod_jlab.aws.consoles import cluster_console, eks_console, log_group, logs_console
from hyperpod_jlab.clusters.connect import Connection, Disconnection, connect, disconnect
from hyperpod_jlab.clusters.overview import ClusterOverview, build_overview
from hyperpod_jlab.core.cluster import JOB_ENDED, Cluster, Job, Node, Queue, notes_of
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.run.history import MAX_ROWS, PAGE_ROWS, EndedJobs, read_ended_jobs
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import AgedPage, Page, TableQuery, build_page
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.aws import HyperpodClusters
    from hyperpod_jlab.core.cache import CachedRows

_AWS_WAIT_S = 1.0
"""Seconds to wait for a cluster's tags; then the response is sent without them."""

_SCHEDULER_WAIT_S = 6.0
"""Seconds to wait for a cluster's scheduler in addition to AWS."""

Region = Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9-]{0,38}[a-z0-9]$")]


@dataclass(frozen=True, kw_only=True)
class AwsAged:
    """Age of data from AWS.

    Attributes:
        as_of: When AWS was queried; null: it was not.
        problem: Why the data is old or incomplete.
        loading: Whether more data is on its way.
        notes: Notes for the user.
    """

    as_of: Time | None
    problem: HyperpodError | None
    loading: bool
    notes: tuple[str, ...]


class LiveTableQuery(TableQuery):
    """Which rows of a table with data from a scheduler or AWS."""

    refresh: bool = False
    """Ask the scheduler and AWS now instead of their caches."""


class LiveQuery(RequestModel):
    """Options for data from a scheduler or AWS."""

    refresh: bool = False
    """Ask the scheduler and AWS now instead of their caches."""


class ClustersQuery(LiveTableQuery):
    """Which rows of the table of clusters."""

    region: Region = None
    """Include the HyperPod clusters of this region; default: the default region for AWS. Use the ARN for a cluster of another region."""
    configured: bool = False
    """Only the configured clusters, without data from AWS; AWS is not queried."""


class JobsQuery(LiveTableQuery):
    """Which rows of the table of jobs."""

    ended: bool | None = None
    """Only jobs that have ended (true), or only those that have not (false)."""


@dataclass(frozen=True, kw_only=True)
class ClusterPage(AwsAged, Page):
    """A page of clusters. `as_of`, `problem` and `loading` describe the data from AWS: clusters that are not configured, and details of the others."""

    clusters: list[Cluster]


@dataclass(frozen=True)
class ClusterTag:
    """A tag."""

    key: str
    value: str


@dataclass(frozen=True)
class ClusterLinks:
    """Links into the web console of the cluster's AWS partition; null if unknown."""

    cluster: str | None
    logs: str | None
    eks: str | None


@dataclass(frozen=True, kw_only=True)
class ClusterDetail(AwsAged):
    """A cluster. The other fields are null if it is not a HyperPod cluster.

    Attributes:
        cluster: The cluster.
        tags: Its tags; null if they could not be read.
        log_group: The log group of its lifecycle scripts and health checks.
        links: Links into the AWS console.
    """

    cluster: Cluster
    tags: list[ClusterTag] | None
    log_group: str | None
    links: ClusterLinks | None


@dataclass(frozen=True, kw_only=True)
class Nodes(AgedPage):
    """A page of nodes.

    Attributes:
        loading: Whether more data is on its way.
        changing: Whether instances, on any page, are being added or removed; then they are polled every 10 seconds.
    """

    nodes: list[Node]
    loading: bool
    changing: bool


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
    """Allowed values of spec fields for this user, by field; a field that is missing has no known list."""

    choices: dict[str, list[str]]


async def list_clusters(call: Call, query: ClustersQuery) -> ClusterPage:
    """List the configured clusters and a region's HyperPod clusters. A cluster that does not answer gives the reason; `problem` says whether AWS failed."""
    hyperpod = await call.hyperpod()
    key = ("clusters", query.region, query.configured)
    if query.refresh:
        hyperpod.refresh()
    listing = await hyperpod.snapshots.get(
        key, lambda: hyperpod.clusters.list_all(query.region, refresh=query.refresh, aws=not query.configured)
    )
    page = await asyncio.to_thread(build_page, Cluster, listing.clusters, query, name="name", sort="name")
    return ClusterPage(
        clusters=page.rows,
        next=page.next,
        total=page.total,
        as_of=listing.as_of,
        problem=listing.problem,
        loading=listing.loading,
        notes=listing.notes,
    )


async def show_cluster(call: Call, cluster: str, query: LiveQuery) -> ClusterDetail:
    """Get a cluster by its name in the configuration, or its name or ARN in AWS."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve(cluster)
    if query.refresh and resolved.configured is not None:
        hyperpod.refresh(resolved.configured)
    line = partial(hyperpod.clusters.cluster, cluster, seconds=_SCHEDULER_WAIT_S)

    async def without_aws(problem: HyperpodError | None) -> ClusterDetail:
        age = {**vars(_WITHOUT_AWS), "problem": problem}
        return ClusterDetail(cluster=await line(), tags=None, log_group=None, links=None, **age)

    if resolved.hyperpod is None:
        return await without_aws(resolved.problem)
    aws = hyperpod.hyperpod_clusters(resolved.region)
    try:
        cached = await aws.cluster(resolved.hyperpod, refresh=query.refresh)
    except HyperpodError as error:
        if resolved.configured is None:
            raise
        return await without_aws(error)
    hyperpod_cluster = cached.rows[0]
    row, tags = await asyncio.gather(line(), _tags(aws, hyperpod_cluster, refresh=query.refresh))
    return ClusterDetail(
        cluster=row,
        tags=tags.tags,
        log_group=log_group(hyperpod_cluster.arn, hyperpod_cluster.name),
        links=ClusterLinks(
            cluster=cluster_console(hyperpod_cluster.arn, hyperpod_cluster.name),
            logs=logs_console(hyperpod_cluster.arn, hyperpod_cluster.name),
            eks=eks_console(hyperpod_cluster.eks_arn) if hyperpod_cluster.eks_arn else None,
        ),
        **vars(aws_freshness(cached, tags.notes, loading=tags.loading)),
    )


async def list_nodes(call: Call, cluster: str, query: LiveTableQuery) -> Nodes:
    """List the nodes of a cluster: the scheduler's nodes, joined with AWS' instances on HyperPod."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve(cluster)
    if query.refresh and resolved.configured is not None:
        hyperpod.refresh(resolved.configured)
    listing = await hyperpod.clusters.nodes(cluster, refresh=query.refresh)
    page = await asyncio.to_thread(build_page, Node, listing.nodes, query, name="name", sort="name")
    return Nodes(
        nodes=page.rows,
        next=page.next,
        total=page.total,
        as_of=listing.as_of,
        problem=listing.problem,
        notes=listing.notes,
        loading=listing.loading,
        changing=listing.changing,
    )


async def list_queues(call: Call, cluster: str, query: LiveTableQuery) -> Queues:
    """List the queues of a cluster that the user may use."""
    hyperpod = await require_cluster(call, cluster, query)
    snapshot = await hyperpod.snapshots.last(("queues", cluster), lambda: hyperpod.queues(cluster))
    page = await asyncio.to_thread(build_page, Queue, snapshot.value, query, name="name", sort="name")
    return Queues(
        queues=page.rows,
        next=page.next,
        total=page.total,
        as_of=snapshot.as_of,
        problem=snapshot.problem,
        notes=notes_of(snapshot.value),
    )


async def list_jobs(call: Call, cluster: str, query: JobsQuery) -> Jobs:
    """List running, waiting and recently ended jobs of all users of a cluster; newest first by default."""
    hyperpod = await require_cluster(call, cluster, query)
    snapshot = await hyperpod.snapshots.last(("jobs", cluster), lambda: hyperpod.jobs(cluster))
    rows = snapshot.value
    if query.ended is not None:
        rows = [row for row in rows if (row.state in JOB_ENDED) == query.ended]
    page = await asyncio.to_thread(build_page, Job, rows, query, name="scheduler_id", sort="-submitted_at")
    return Jobs(
        jobs=page.rows,
        next=page.next,
        total=page.total,
        as_of=snapshot.as_of,
        problem=snapshot.problem,
        notes=notes_of(snapshot.value),
    )


class EndedJobsQuery(RequestModel):
    """Which page of the ended jobs."""

    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = PAGE_ROWS
    """The number of rows."""
    cursor: str | None = None
    """The value of `next` of the page before."""
    user: Annotated[str | None, Field(max_length=256)] = None
    """Only this user's jobs; default: those of all users."""


async def list_ended_jobs(call: Call, cluster: str, query: EndedJobsQuery) -> EndedJobs:
    """List the jobs of all users, or of one, that have ended on a cluster, the latest first, up to 400 days back."""
    hyperpod = await call.hyperpod()
    return await read_ended_jobs(hyperpod, cluster, query.limit, query.cursor, query.user)


async def show_overview(call: Call, cluster: str, query: LiveQuery) -> ClusterOverview:
    """Get an overview of a cluster: GPUs by node and job, queues, running jobs, and the first waiting jobs."""
    hyperpod = await require_cluster(call, cluster, query)
    snapshots = hyperpod.snapshots
    nodes, queues, jobs = await asyncio.gather(
        hyperpod.clusters.nodes(cluster, refresh=query.refresh),
        snapshots.last(("queues", cluster), lambda: hyperpod.queues(cluster)),
        snapshots.last(("jobs", cluster), lambda: hyperpod.jobs(cluster)),
    )
    return await asyncio.to_thread(build_overview, nodes, queues, jobs)


class ConnectBody(RequestModel):
    """How to configure a HyperPod cluster."""

    name: Annotated[str | None, Field(max_length=100)] = None
    """Its name in the configuration; default: a free one like its name in AWS."""
    login_node: Annotated[str | None, Field(max_length=300)] = None
    """Of a Slurm cluster: its login node, `[user@]host[:port]`; default: Slurm's commands are on the server's machine."""
    namespace: Annotated[str | None, Field(max_length=63)] = None
    """On EKS: the namespace of the runs."""
    dry_run: bool = False
    """Write nothing."""
    test: bool = False
    """Ask the cluster's scheduler first; if it does not answer, write nothing."""


async def connect_cluster(call: Call, cluster: str, body: ConnectBody) -> Connection:
    """Add a HyperPod cluster to the user's configuration file. The server then uses the new configuration; followed logs reconnect."""
    hyperpod = await call.hyperpod()
    resolved = await hyperpod.clusters.resolve(cluster)
    options = body.model_dump()
    connection = await connect(hyperpod, resolved.hyperpod or cluster, region=resolved.region, **options)
    if connection.written:
        await call.process.reload()
    return connection


async def disconnect_cluster(call: Call, cluster: str) -> Disconnection:
    """Remove a cluster from the user's configuration file. Its jobs go on, and its runs stay in the list of runs."""
    disconnection = await disconnect(await call.hyperpod(), cluster)
    await call.process.reload()
    return disconnection


async def list_choices(call: Call, cluster: str) -> Choices:
    """List the queues, accounts and QoS of a cluster that this user may name."""
    hyperpod = await require_cluster(call, cluster)
    choices = hyperpod.engines.get(cluster).choices
    if choices is None:
        return Choices({})
    return Choices(await hyperpod.snapshots.get(("choices", cluster), choices.choices))


async def require_cluster(call: Call, cluster: str, query: LiveQuery | LiveTableQuery | None = None) -> Hyperpod:
    """The services, after checking that the cluster is configured, and refreshing it if the query asks for that.

    Raises:
        NotFoundError: The cluster is not configured.
    """
    hyperpod = await call.hyperpod()
    if cluster not in hyperpod.settings.clusters:
        raise hyperpod.settings.unknown_cluster(cluster)
    if query is not None and query.refresh:
        hyperpod.refresh(cluster)
    return hyperpod


@dataclass(frozen=True)
class _Tags:
    """The tags of a cluster, or why they are missing."""

    tags: list[ClusterTag] | None = None
    loading: bool = False
    notes: Sequence[str] = ()


async def _tags(aws: HyperpodClusters, cluster: HyperpodCluster, *, refresh: bool) -> _Tags:
    try:
        cached = await asyncio.wait_for(aws.tags(cluster.arn, refresh=refresh), _AWS_WAIT_S)
    except TimeoutError:
        return _Tags(loading=True)
    except HyperpodError as error:
        hint = f" ({error.hint})" if error.hint else ""
        return _Tags(notes=[f"AWS does not list its tags: {error.message}{hint}"])
    return _Tags([ClusterTag(key, value) for key, value in cached.rows], cached.loading)


_WITHOUT_AWS = AwsAged(as_of=None, problem=None, loading=False, notes=())


def aws_freshness(cached: CachedRows[Any], notes: Sequence[str], *, loading: bool = False) -> AwsAged:
    """Age of data from AWS; `loading`: other parts of the response are on their way."""
    return AwsAged(as_of=cached.as_of, problem=cached.problem, loading=cached.loading or loading, notes=tuple(notes))
