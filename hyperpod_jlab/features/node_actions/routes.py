"""Requests that act on nodes of a cluster, and previews of their effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.core.node_actions import MAX_NODES, MAX_REASON_LENGTH, NodeAction, NodeActionPlan, NodeResult
from hyperpod_jlab.features.node_actions.service import NodeAbility, NodeActions, NodeRequest, list_abilities
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel


class NodeActionBody(RequestModel):
    """An action and its nodes."""

    action: NodeAction
    """The action: AWS reboots and replaces, the scheduler drains (no new jobs; running jobs continue) and resumes."""
    nodes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=256)]], Field(min_length=1, max_length=MAX_NODES)
    ]
    """Instance ids, the scheduler's names, or names in the private network."""
    reason: Annotated[str | None, Field(min_length=1, max_length=MAX_REASON_LENGTH)] = None
    """With the action `drain`: the reason, in one line, for other users. Optional for a preview."""


@dataclass(frozen=True)
class NodeAbilities:
    """Available actions on nodes of a cluster."""

    actions: list[NodeAbility]


@dataclass(frozen=True)
class NodeResults:
    """One result per node, in order; a node that was named in several ways has one."""

    results: list[NodeResult]
    notes: tuple[str, ...]


async def list_node_actions(call: Call, cluster: str) -> NodeAbilities:
    """List the available actions on nodes of a cluster. Queries AWS at most for the description of a cluster that is not configured."""
    return NodeAbilities(await list_abilities(await call.hyperpod(), cluster))


async def preview_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeActionPlan:
    """Preview an action on nodes of a cluster."""
    actions = NodeActions(await call.hyperpod())
    return await actions.plan(_request(cluster, body), needs_reason=False)


async def act_on_nodes(call: Call, cluster: str, body: NodeActionBody) -> NodeResults:
    """Act on nodes of a cluster. A failure for one node does not stop the others."""
    services = await call.hyperpod()
    actions = NodeActions(services)
    plan = await actions.plan(_request(cluster, body))
    try:
        results = await actions.carry_out(plan)
    finally:
        _forget(services, plan)
    return NodeResults(results, plan.notes)


def _request(cluster: str, body: NodeActionBody) -> NodeRequest:
    return NodeRequest(body.action, body.nodes, cluster, reason=body.reason)


def _forget(services: Hyperpod, plan: NodeActionPlan) -> None:
    """Invalidate the cached tables of the nodes."""
    services.forget(plan.region, plan.cluster)
    services.snapshots.forget()
