"""Requests about HyperPod clusters: what AWS knows of them, whether they are configured or not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.aws.consoles import cluster_console, eks_console, log_group, logs_console
from hyperpod_jlab.clusters.aws import ClusterRow, NodeRow, configured_as, node_row
from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.hyperpod import (
    HyperpodCluster,
    Instance,
    JoinedNode,
    is_changing,
    join_nodes,
    region_of,
)
from hyperpod_jlab.core.run import iso_time
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.registry import scheduler_named
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.pages import TableQuery, page_of
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.clusters.cache import HyperpodWatch
    from hyperpod_jlab.core.cache import Shown
    from hyperpod_jlab.runs.facade import Hyperpod

Item = TypeVar("Item")

_NO_AWS = frozenset({"boto3_missing", "no_aws_credentials", "no_aws_region"})
"""Codes of where there is no AWS account: that is no fault, and many people work so."""

_ALONG = 1.0
"""Seconds that is waited for what stands beside the answer: tags, the scheduler's nodes. Until they come the answer is shown without."""


class AwsAged(TypedDict):
    """Of when this is. `as_of` says when AWS was asked (null: it was not), `problem` why there is nothing newer or not all; while it is `loading`, more is on its way."""

    as_of: str | None
    problem: Error | None
    loading: bool
    notes: list[str]


class HyperpodClusterRow(TypedDict):
    """A HyperPod cluster in a table.

    `status` is AWS' word, `state` ours. `described_at` says when AWS was asked for what the list does not have (orchestrator, nodes); null while that is
    not known. `mounted_here` is where its file systems are mounted on the server's machine; null: AWS does not say which it has.
    `reach` is a word for whether one can submit to it from the server's machine (null: not known yet), `reach_reason` the same as a sentence, `reach_next` what to do.
    """

    name: str
    arn: str
    region: str
    state: str
    status: str
    orchestrator: str | None
    nodes: int | None
    target: int | None
    created_at: str | None
    image_status: str | None
    configured_as: list[str]
    mounted_here: list[str] | None
    described_at: str | None
    reason: str | None
    reach: str | None
    reach_reason: str | None
    reach_next: str | None


class HyperpodClusters(AwsAged):
    """A page of HyperPod clusters."""

    clusters: list[HyperpodClusterRow]
    next: str | None
    total: int


class HyperpodGroup(TypedDict):
    """An instance group. `capacity` is `Spot` or `OnDemand`, `script` where its life cycle script lies, `checks` are the deep health checks at the start of an instance; null or empty where AWS does not say."""

    name: str
    state: str | None
    status: str | None
    instance_type: str | None
    current: int
    target: int
    slurm_role: str | None
    capacity: str | None
    script: str | None
    role_arn: str | None
    checks: list[str]


class HyperpodTag(TypedDict):
    """A tag."""

    key: str
    value: str


class HyperpodLinks(TypedDict):
    """Places in the web console of the cluster's AWS partition; null where they are not known."""

    cluster: str | None
    logs: str | None
    eks: str | None


class HyperpodReach(TypedDict):
    """Whether one can submit to a cluster from the server's machine: a word, a sentence, what to do, and what to add to the configuration file, in TOML."""

    word: str
    sentence: str
    next_step: str | None
    config: str | None


class HyperpodSetting(TypedDict):
    """A setting of a cluster: a word for it (or AWS' name), its value, and what that means where it is known."""

    name: str
    value: str
    meaning: str | None


class HyperpodClusterAnswer(AwsAged):
    """A HyperPod cluster. `tags` is null where they could not be had; `log_group` is that of its life cycle scripts and health checks."""

    name: str
    arn: str
    region: str
    state: str
    status: str
    orchestrator: str | None
    eks_arn: str | None
    nodes: int | None
    target: int | None
    created_at: str | None
    image_status: str | None
    node_recovery: str | None
    provisioning: str | None
    configured_as: list[str]
    mounted_here: list[str] | None
    reason: str | None
    reach: HyperpodReach | None
    settings: list[HyperpodSetting]
    groups: list[HyperpodGroup]
    tags: list[HyperpodTag] | None
    log_group: str
    links: HyperpodLinks


class HyperpodNode(TypedDict):
    """A node of a HyperPod cluster as AWS and, where it is configured, the scheduler know it.

    `name` is the instance id, or the scheduler's name where AWS lists no instance (`state` is `not-listed` then). What is from the scheduler is null where
    it does not know the node, or was not asked.
    """

    name: str
    state: str
    status: str | None
    reason: str | None
    instance_group: str | None
    instance_type: str | None
    launched_at: str | None
    host: str | None
    image_version: str | None
    image_status: str | None
    node: str | None
    scheduler_state: str | None
    scheduler_reason: str | None
    accelerators: int | None
    accelerators_free: int | None
    jobs: list[str]


class HyperpodNodes(AwsAged):
    """A page of nodes of a HyperPod cluster; `changing` while some of them, on whatever page, come or go: then they are looked at every 10 seconds."""

    nodes: list[HyperpodNode]
    changing: bool
    next: str | None
    total: int


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
        none: AwsAged = {"as_of": None, "problem": _error(error), "loading": False, "notes": []}
        return {"clusters": [], "next": None, "total": 0, **none}
    page = await asyncio.to_thread(page_of, ClusterRow, shown.rows, query, name="arn", sort="name")
    return {
        "clusters": cast("list[HyperpodClusterRow]", page.rows),
        "next": page.next,
        "total": page.total,
        **age_of(shown, notes),
    }


async def show_hyperpod_cluster(
    call: Call, cluster: str, query: HyperpodQuery
) -> HyperpodClusterAnswer:
    """A HyperPod cluster, by its name or ARN."""
    watch = (await call.hyperpod()).watch_in(region_of(cluster))
    shown = await watch.cluster(cluster, refresh=query.refresh)
    found = shown.rows[0]
    tags = await _tags(watch, found.arn, refresh=query.refresh)
    age = age_of(shown, tags.notes)
    age["loading"] = age["loading"] or tags.loading
    eks_arn = found.eks_arn
    plain = found.to_dict()
    kept = HyperpodClusterAnswer.__annotations__.keys() & plain.keys()
    return cast(
        "HyperpodClusterAnswer",
        {
            **{name: plain[name] for name in kept},
            "groups": [_group(group) for group in plain["groups"] or ()],
            "tags": tags.tags,
            "log_group": log_group(found.arn, found.name),
            "links": {
                "cluster": cluster_console(found.arn, found.name),
                "logs": logs_console(found.arn, found.name),
                "eks": eks_console(eks_arn) if eks_arn else None,
            },
            **age,
        },
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
    age = age_of(shown, [*description.notes, *scheduler.notes])
    age["loading"] = age["loading"] or scheduler.loading
    return {
        "nodes": cast("list[HyperpodNode]", page.rows),
        "changing": any(map(is_changing, shown.rows)),
        "next": page.next,
        "total": page.total,
        **age,
    }


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
    return _Tags([{"key": key, "value": value} for key, value in told.rows], told.loading)


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


def _group(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: plain[name] for name in HyperpodGroup.__annotations__}


def age_of(shown: Shown[Any], notes: Sequence[str]) -> AwsAged:
    """The part of an answer that tells of when it is."""
    return {
        "as_of": iso_time(shown.as_of),
        "problem": _error(shown.problem) if shown.problem is not None else None,
        "loading": shown.loading,
        "notes": list(notes),
    }


def _error(error: HyperpodError) -> Error:
    return cast("Error", error.to_dict())


def _words(error: HyperpodError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message
