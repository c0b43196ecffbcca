"""Requests about HyperPod clusters: what AWS knows of them, whether they are configured or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from hyperpod_jlab.aws.consoles import cluster_console, eks_console, log_group, logs_console
from hyperpod_jlab.clusters.aws import ClusterRow, NodeRow, configured_as, node_row
from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.hyperpod import (
    HyperpodCluster,
    Instance,
    InstanceGroup,
    JoinedNode,
    is_changing,
    join_nodes,
    region_of,
)
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.engines.registry import scheduler_named
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import Page, TableQuery, page_of
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.cache import HyperpodWatch
    from hyperpod_jlab.core.cache import Shown
    from hyperpod_jlab.run.services import Hyperpod

Item = TypeVar("Item")

_NO_AWS = frozenset({"boto3_missing", "no_aws_credentials", "no_aws_region"})
"""Codes of where there is no AWS account: that is no fault, and many people work so."""

_ALONG = 1.0
"""Seconds that is waited for what stands beside the answer: tags, the scheduler's nodes. Until they come the answer is shown without."""


@dataclass(frozen=True, kw_only=True)
class AwsAged:
    """Of when this is.

    Attributes:
        as_of: When AWS was asked; null: it was not.
        problem: Why there is nothing newer or not all.
        loading: Whether more is on its way.
        notes: What there is to say of it.
    """

    as_of: Time | None
    problem: HyperpodError | None
    loading: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class HyperpodClusters(AwsAged, Page):
    """A page of HyperPod clusters."""

    clusters: list[ClusterRow]


@dataclass(frozen=True)
class HyperpodTag:
    """A tag."""

    key: str
    value: str


@dataclass(frozen=True)
class HyperpodLinks:
    """Places in the web console of the cluster's AWS partition; null where they are not known."""

    cluster: str | None
    logs: str | None
    eks: str | None


@dataclass(frozen=True, kw_only=True)
class HyperpodClusterAnswer(AwsAged, HyperpodCluster):
    """A HyperPod cluster.

    Attributes:
        groups: Its instance groups.
        tags: Its tags; null where they could not be had.
        log_group: The log group of its life cycle scripts and health checks.
    """

    groups: tuple[InstanceGroup, ...]
    tags: list[HyperpodTag] | None
    log_group: str
    links: HyperpodLinks


@dataclass(frozen=True, kw_only=True)
class HyperpodNodes(AwsAged, Page):
    """A page of nodes of a HyperPod cluster; `changing` while some of them, on whatever page, come or go: then they are looked at every 10 seconds."""

    nodes: list[NodeRow]
    changing: bool


class HyperpodTableQuery(TableQuery):
    """Which rows of a table of what AWS knows."""

    refresh: bool = False
    """Ask AWS now."""


class HyperpodListQuery(HyperpodTableQuery):
    """Which rows of the table of clusters."""

    region: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9-]{0,38}[a-z0-9]$")] = None
    """Those of this region; default: the one that AWS is asked in where nobody names one. A cluster of another one is asked for by its ARN."""


class HyperpodQuery(RequestModel):
    """How to look at a HyperPod cluster."""

    refresh: bool = False
    """Ask AWS now."""


async def list_hyperpod_clusters(call: Call, query: HyperpodListQuery) -> HyperpodClusters:
    """The HyperPod clusters of the AWS account in a region. Without an account there are none, and `problem` says why."""
    watch = (await call.hyperpod()).watch_in(query.region)
    try:
        shown, notes = await watch.clusters(refresh=query.refresh)
    except HyperpodError as error:
        if error.code not in _NO_AWS:
            raise
        return HyperpodClusters(
            clusters=[], next=None, total=0, as_of=None, problem=error, loading=False, notes=()
        )
    page = await asyncio.to_thread(page_of, ClusterRow, shown.rows, query, name="arn", sort="name")
    age = age_of(shown, notes)
    return HyperpodClusters(clusters=page.rows, next=page.next, total=page.total, **vars(age))


async def show_hyperpod_cluster(
    call: Call, cluster: str, query: HyperpodQuery
) -> HyperpodClusterAnswer:
    """A HyperPod cluster, by its name or ARN."""
    watch = (await call.hyperpod()).watch_in(region_of(cluster))
    shown = await watch.cluster(cluster, refresh=query.refresh)
    found = shown.rows[0]
    tags = await _tags(watch, found.arn, refresh=query.refresh)
    age = age_of(shown, tags.notes, loading=tags.loading)
    return HyperpodClusterAnswer(
        **{**vars(found), "groups": found.groups or ()},
        **vars(age),
        tags=tags.tags,
        log_group=log_group(found.arn, found.name),
        links=HyperpodLinks(
            cluster=cluster_console(found.arn, found.name),
            logs=logs_console(found.arn, found.name),
            eks=eks_console(found.eks_arn) if found.eks_arn else None,
        ),
    )


async def list_hyperpod_nodes(call: Call, cluster: str, query: HyperpodTableQuery) -> HyperpodNodes:
    """The nodes of a HyperPod cluster: its instances, joined with the scheduler's nodes where the cluster is configured."""
    hyperpod = await call.hyperpod()
    shown, description = await asyncio.gather(
        hyperpod.watch_in(region_of(cluster)).instances(cluster, refresh=query.refresh),
        described(hyperpod, cluster),
    )
    scheduler = await _scheduler_nodes(call, hyperpod, description.cluster, known=description.known)
    rows = await asyncio.to_thread(_rows, shown, description.cluster, scheduler)
    page = await asyncio.to_thread(page_of, NodeRow, rows, query, name="name", sort="name")
    notes = [*description.notes, *scheduler.notes]
    age = age_of(shown, notes, loading=scheduler.loading)
    return HyperpodNodes(
        nodes=page.rows,
        changing=any(map(is_changing, shown.rows)),
        next=page.next,
        total=page.total,
        **vars(age),
    )


@dataclass(frozen=True)
class _Tags:
    """The tags of a cluster, or why there are none (yet)."""

    tags: list[HyperpodTag] | None = None
    loading: bool = False
    notes: Sequence[str] = ()


async def _tags(watch: HyperpodWatch, arn: str, *, refresh: bool) -> _Tags:
    try:
        told = await asyncio.wait_for(watch.tags(arn, refresh=refresh), _ALONG)
    except TimeoutError:
        return _Tags(loading=True)
    except HyperpodError as error:
        return _Tags(notes=[f"its tags could not be had: {_words(error)}"])
    return _Tags([HyperpodTag(key, value) for key, value in told.rows], told.loading)


@dataclass(frozen=True)
class Description:
    """A cluster as far as it is known, and why it is not known better."""

    cluster: HyperpodCluster
    known: bool
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Scheduler:
    """What the scheduler tells of a cluster's nodes; `nodes` is None where it tells nothing (yet)."""

    scheduler: Scheduler | None = None
    nodes: Sequence[Node] | None = None
    loading: bool = False
    notes: Sequence[str] = ()


async def described(hyperpod: Hyperpod, cluster: str) -> Description:
    """A HyperPod cluster, by its name or ARN, as far as it is known: bare where it could not be described.

    Raises:
        NotFoundError: There is none.
    """
    try:
        shown = await hyperpod.watch_in(region_of(cluster)).cluster(cluster)
    except NotFoundError:
        raise
    except HyperpodError as error:
        bare = HyperpodCluster(cluster, cluster, region_of(cluster) or "", "")
        return Description(bare, False, [f"{cluster} could not be described: {_words(error)}"])
    return Description(shown.rows[0], True)


async def _scheduler_nodes(
    call: Call, hyperpod: Hyperpod, cluster: HyperpodCluster, *, known: bool
) -> _Scheduler:
    names = configured_as(hyperpod.settings, cluster)
    if not names:
        return _Scheduler(notes=[_unconfigured(cluster.name)] if known else [])
    name = names[0]
    scheduler = scheduler_named(hyperpod.settings.clusters[name].orchestrator)
    look = call.process.snapshots.last(("nodes", name), lambda: hyperpod.nodes(name))
    try:
        seen = await asyncio.wait_for(look, _ALONG)
    except TimeoutError:
        return _Scheduler(loading=True, notes=[f"the scheduler of {name} has not answered yet"])
    except HyperpodError as error:
        return _Scheduler(notes=[f"the scheduler of {name} does not answer: {_words(error)}"])
    notes = []
    if seen.problem is not None:
        notes = [
            f"the scheduler of {name} does not answer now, its last answer is shown: {_words(seen.problem)}"
        ]
    return _Scheduler(scheduler, seen.said, notes=notes)


def _rows(shown: Shown[Instance], cluster: HyperpodCluster, scheduler: _Scheduler) -> list[NodeRow]:
    """The rows of the table. May take a while."""
    if scheduler.nodes is None or scheduler.scheduler is None:
        return [node_row(JoinedNode(instance, None)) for instance in shown.rows]
    roles = {group.name: group.slurm_role or "" for group in cluster.groups or ()}
    joined = join_nodes(scheduler.scheduler, shown.rows, scheduler.nodes, roles)
    # Before all instances are listed nobody knows which of the nodes have none.
    whole = not shown.loading and shown.problem is None
    return [node_row(row) for row in joined if whole or row.instance is not None]


def _unconfigured(name: str) -> str:
    return f"no cluster of the configuration has hyperpod = '{name}', so no scheduler was asked"


def age_of(shown: Shown[Any], notes: Sequence[str], *, loading: bool = False) -> AwsAged:
    """The part of an answer that tells of when it is; `loading`: what stands beside it is on its way."""
    return AwsAged(
        as_of=shown.as_of,
        problem=shown.problem,
        loading=shown.loading or loading,
        notes=tuple(notes),
    )


def _words(error: HyperpodError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
