"""Requests that do something to nodes of a cluster, and what would become of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.clusters.aws_routes import described
from hyperpod_jlab.clusters.routes import with_cluster
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.core.node_actions import (
    LONGEST_REASON,
    MOST_NODES,
    NodeAction,
    NodeActionPlan,
    NodeResult,
)
from hyperpod_jlab.features.node_actions.service import (
    NodeAbility,
    NodeRequest,
    abilities_on,
    abilities_on_hyperpod,
    node_actions_in,
)
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


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


@dataclass(frozen=True)
class NodeAbilities:
    """What can be done to nodes of a cluster."""

    actions: list[NodeAbility]


@dataclass(frozen=True)
class NodeResults:
    """One result for each node, in their order; a node that was named in several ways has one."""

    results: list[NodeResult]
    notes: tuple[str, ...]


async def list_node_actions(call: Call, cluster: str) -> NodeAbilities:
    """What can be done to nodes of a configured cluster. Neither AWS nor the scheduler is asked."""
    await with_cluster(call, cluster)
    hyperpod = await call.hyperpod()
    aws = hyperpod.hyperpod_clusters().aws
    return NodeAbilities(await abilities_on(hyperpod.engines, aws, cluster))


async def list_hyperpod_node_actions(call: Call, cluster: str) -> NodeAbilities:
    """What can be done to nodes of a HyperPod cluster."""
    hyperpod = await call.hyperpod()
    found = (await described(hyperpod, cluster)).cluster
    aws = hyperpod.hyperpod_clusters(region_of(cluster)).aws
    return NodeAbilities(await abilities_on_hyperpod(hyperpod.engines, aws, found))


async def preview_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeActionPlan:
    """What would become of nodes of a configured cluster."""
    await with_cluster(call, cluster)
    return await _preview(call, _request(body, cluster=cluster))


async def act_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeResults:
    """Do something to nodes of a configured cluster. One that cannot be done stops no other."""
    await with_cluster(call, cluster)
    return await _act(call, _request(body, cluster=cluster))


async def preview_on_hyperpod_nodes(
    call: Call, cluster: str, body: NodeActionBody
) -> NodeActionPlan:
    """What would become of nodes of a HyperPod cluster."""
    return await _preview(call, _request(body, hyperpod=cluster))


async def act_on_hyperpod_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeResults:
    """Do something to nodes of a HyperPod cluster. One that cannot be done stops no other."""
    return await _act(call, _request(body, hyperpod=cluster))


def _request(
    body: NodeActionBody, *, cluster: str | None = None, hyperpod: str | None = None
) -> NodeRequest:
    return NodeRequest(body.action, body.nodes, hyperpod, cluster, body.reason)


async def _preview(call: Call, request: NodeRequest) -> NodeActionPlan:
    actions = node_actions_in(await call.hyperpod(), _region(request))
    return await actions.plan(request, needs_reason=False)


async def _act(call: Call, request: NodeRequest) -> NodeResults:
    actions = node_actions_in(await call.hyperpod(), _region(request))
    plan = await actions.plan(request)
    try:
        results = await actions.carry_out(plan)
    finally:
        await _forget(call, plan)
    return NodeResults(results, plan.notes)


def _region(request: NodeRequest) -> str | None:
    return region_of(request.hyperpod) if request.hyperpod else None


async def _forget(call: Call, plan: NodeActionPlan) -> None:
    """What tables showed of the nodes a moment ago is not how they are now."""
    hyperpod = await call.hyperpod()
    hyperpod.forget(region_of(plan.cluster), plan.cluster)
    for name, config in hyperpod.settings.clusters.items():
        if plan.cluster in {name, getattr(config, "hyperpod", None)}:
            call.process.snapshots.forget(("nodes", name))
