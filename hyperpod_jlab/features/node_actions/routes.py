"""Requests that do something to nodes of a cluster, and what would become of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from hyperpod_jlab.clusters.aws_routes import described
from hyperpod_jlab.clusters.routes import Job, with_cluster
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.core.node_actions import LONGEST_REASON, MOST_NODES, NodeActionPlan
from hyperpod_jlab.features.node_actions.service import NodeAbility as Ability
from hyperpod_jlab.features.node_actions.service import (
    NodeRequest,
    abilities_on,
    abilities_on_hyperpod,
)
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel

NodeAction = TypeAliasType("NodeAction", Literal["reboot", "replace", "drain", "resume"])
"""What can be done to a node, under a name in the schemas."""


class NodeActionBody(RequestModel):
    """What to do to which nodes."""

    action: NodeAction
    """What to do: AWS reboots and replaces, the scheduler drains (no new jobs; those that run go on) and resumes."""
    nodes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]],
        Field(min_length=1, max_length=MOST_NODES),
    ]
    """Instance ids, the scheduler's names, or names in the private network."""
    reason: Annotated[str | None, Field(min_length=1, max_length=LONGEST_REASON)] = None
    """With the action `drain`: why, in one line, for others to read. A preview can be had without."""


class NodeAbility(TypedDict):
    """Something that can be done to nodes, or the `problem` why it cannot. A right that is missing at AWS is not known beforehand."""

    action: NodeAction
    problem: Error | None


class NodeAbilities(TypedDict):
    """What can be done to nodes of a cluster."""

    actions: list[NodeAbility]


class NodeToActOn(TypedDict):
    """What would become of one node. `jobs` are those that run on it, null where that is not known; with a `refusal` it would not be tried."""

    name: str
    instance: str | None
    node: str | None
    jobs: list[Job] | None
    effects: list[str]
    refusal: Error | None


class NodeActionPreview(TypedDict):
    """What would become of the nodes, and what there is to know before: sentences for people. Nothing has been done."""

    action: NodeAction
    cluster: str
    reason: str | None
    nodes: list[NodeToActOn]
    effects: list[str]
    notes: list[str]


class NodeResult(TypedDict):
    """What came of it for one node. `ok` says that AWS or the scheduler took it: a reboot or replacement goes on after that."""

    name: str
    instance: str | None
    node: str | None
    ok: bool
    error: Error | None


class NodeResults(TypedDict):
    """One result for each node, in their order; a node that was named in several ways has one."""

    results: list[NodeResult]
    notes: list[str]


async def list_node_actions(call: Call, cluster: str) -> NodeAbilities:
    """What can be done to nodes of a configured cluster. Neither AWS nor the scheduler is asked."""
    await with_cluster(call, cluster)
    hyperpod = await call.hyperpod()
    aws = hyperpod.hyperpod_clusters().aws
    return _abilities(await abilities_on(hyperpod.engines, aws, cluster))


async def list_hyperpod_node_actions(call: Call, cluster: str) -> NodeAbilities:
    """What can be done to nodes of a HyperPod cluster."""
    hyperpod = await call.hyperpod()
    found = (await described(hyperpod, cluster)).cluster
    aws = hyperpod.hyperpod_clusters(region_of(cluster)).aws
    return _abilities(await abilities_on_hyperpod(hyperpod.engines, aws, found))


async def preview_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeActionPreview:
    """What would become of nodes of a configured cluster."""
    await with_cluster(call, cluster)
    return await _preview(call, _request(body, cluster=cluster))


async def act_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeResults:
    """Do something to nodes of a configured cluster. One that cannot be done stops no other."""
    await with_cluster(call, cluster)
    return await _act(call, _request(body, cluster=cluster))


async def preview_on_hyperpod_nodes(
    call: Call, cluster: str, body: NodeActionBody
) -> NodeActionPreview:
    """What would become of nodes of a HyperPod cluster."""
    return await _preview(call, _request(body, hyperpod=cluster))


async def act_on_hyperpod_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeResults:
    """Do something to nodes of a HyperPod cluster. One that cannot be done stops no other."""
    return await _act(call, _request(body, hyperpod=cluster))


def _request(
    body: NodeActionBody, *, cluster: str | None = None, hyperpod: str | None = None
) -> NodeRequest:
    return NodeRequest(body.action, body.nodes, hyperpod, cluster, body.reason)


def _abilities(found: Sequence[Ability]) -> NodeAbilities:
    return {"actions": [cast("NodeAbility", one.to_dict()) for one in found]}


async def _preview(call: Call, request: NodeRequest) -> NodeActionPreview:
    actions = (await call.hyperpod()).node_actions(_region(request))
    plan = await actions.plan(request, needs_reason=False)
    return cast("NodeActionPreview", plan.to_dict())


async def _act(call: Call, request: NodeRequest) -> NodeResults:
    actions = (await call.hyperpod()).node_actions(_region(request))
    plan = await actions.plan(request)
    try:
        results = await actions.carry_out(plan)
    finally:
        await _forget(call, plan)
    return {
        "results": [cast("NodeResult", result.to_dict()) for result in results],
        "notes": list(plan.notes),
    }


def _region(request: NodeRequest) -> str | None:
    return region_of(request.hyperpod) if request.hyperpod else None


async def _forget(call: Call, plan: NodeActionPlan) -> None:
    """What tables showed of the nodes a moment ago is not how they are now."""
    hyperpod = await call.hyperpod()
    region = region_of(plan.cluster)
    hyperpod.watch_in(region).forget(plan.cluster)
    hyperpod.event_watch_in(region).forget(plan.cluster)
    for name, config in hyperpod.settings.clusters.items():
        if plan.cluster in {name, getattr(config, "hyperpod", None)}:
            call.process.snapshots.forget(("nodes", name))
