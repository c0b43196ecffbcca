"""User actions on nodes: AWS reboots and replaces instances, the scheduler drains and resumes nodes. First a plan, then its execution."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.clusters.service import NodeList, ResolvedCluster
from hyperpod_jlab.core.cluster import Job, notes_of
from hyperpod_jlab.core.errors import ConflictError, HyperpodError, InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.core.node_actions import (
    MAX_NODES,
    NODE_ACTIONS,
    NodeAction,
    NodeActionKind,
    NodeActionPlan,
    NodePlan,
    NodeResult,
    check_reason,
    general_effects,
    node_effects,
    one_line,
)
from hyperpod_jlab.core.nodes import JoinedNode, find_node
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator, require, require_tables
from hyperpod_jlab.engines.registry import find_scheduler
from hyperpod_jlab.features.node_actions.aws import check_repair, repair_instances
from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# Available actions on nodes of a cluster, and why others are not: from local knowledge, without
# requests.
#
# A missing permission is not known in advance: SageMaker only reports it when the action is
# requested.


@dataclass(frozen=True)
class NodeAbility:
    """Whether an action on nodes of a cluster is available.

    Attributes:
        action: The action.
        problem: Why it is not available; None if no obstacle is known.
    """

    action: NodeAction
    problem: HyperpodError | None


async def list_abilities(services: Hyperpod, cluster: str) -> list[NodeAbility]:
    """The available actions on nodes of a cluster, without requests to AWS or the scheduler other than for the cluster's description.

    Raises:
        NotFoundError: The cluster does not exist.
    """
    clusters = services.clusters
    resolved = await clusters.resolve(cluster)
    configured = resolved.configured
    if configured is None and resolved.hyperpod is not None:
        description, _ = await clusters.describe_hyperpod(resolved.hyperpod, resolved.region)
        configured = next(iter(description.configured_as), None)

    async def check(action: NodeActionKind) -> None:
        match action:
            case "drain" | "resume":
                if configured is None:
                    raise _unconfigured_error(cluster, action)
                check_drain(services.engines.get(configured), action)
            case "reboot" | "replace":
                if resolved.hyperpod is None:
                    raise resolved.problem or clusters.not_hyperpod_error(resolved.configured or cluster)
                await check_repair(services.hyperpod_clusters(resolved.region).aws, action)

    return [await _ability(action, check) for action in NODE_ACTIONS]


def _unconfigured_error(cluster: str, action: NodeActionKind) -> InvalidInputError:
    return InvalidInputError(
        f"cannot {action}: {cluster} is not in your configuration",
        code="no_configured_cluster",
        hint=f"add it to the configuration: hpj config add {cluster}",
        detail={"field": "cluster"},
    )


def check_drain(engine: Orchestrator, action: NodeActionKind) -> None:
    """Check that an engine can drain and resume nodes.

    Raises:
        UnsupportedError: It cannot.
    """
    require(engine.node_control, engine, f"cannot {action} nodes")


async def _ability(action: NodeActionKind, check: Callable[[NodeActionKind], Awaitable[None]]) -> NodeAbility:
    try:
        await check(action)
    except HyperpodError as error:
        return NodeAbility(action, error)
    return NodeAbility(action, None)


_INSTANCE = re.compile(r"(hyperpod-)?i-[0-9a-f]{8}([0-9a-f]{9})?")

_WAIT_S = 60.0
"""Timeout for the list of nodes, in seconds."""

_JOBS_UNKNOWN_NOTE = "the jobs on the nodes are unknown"


@dataclass(frozen=True)
class NodeRequest:
    """A requested action.

    Attributes:
        action: The action.
        nodes: The nodes: instance ids, the scheduler's names, names in the private network.
        cluster: Their cluster: its name in the configuration, or its name or ARN in AWS; default: the configured default one.
        region: Its region; default: see `aws.session.Aws`.
        reason: The reason for a drain, for other users.
    """

    action: NodeActionKind
    nodes: Sequence[str]
    cluster: str | None = None
    region: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _ClusterFacts:
    """The inputs of a plan.

    Attributes:
        rows: The cluster's nodes.
        notes: What is unknown.
        scheduler: The scheduler, if known.
        roles: The Slurm roles of instance groups.
        jobs: Jobs by the names of their nodes; None if unknown.
    """

    rows: Sequence[JoinedNode]
    notes: tuple[str, ...]
    scheduler: Scheduler | None
    roles: Mapping[str, str]
    jobs: Mapping[str, Sequence[Job]] | None


class NodeActions:
    """Actions on nodes of the clusters of one configuration.

    Args:
        services: The services.
    """

    def __init__(self, services: Hyperpod) -> None:
        self._services = services

    async def plan(self, request: NodeRequest, *, needs_reason: bool = True) -> NodeActionPlan:
        """Plan an action and its effects. Changes nothing.

        Args:
            request: The requested action.
            needs_reason: Whether a required reason must be given already; it may be asked for after the plan was shown.

        Raises:
            NotFoundError: The cluster does not exist.
            InvalidInputError: No nodes or too many, or a reason is missing or not allowed.
            UnsupportedError: The cluster's scheduler does not support it.
            HyperpodError: Listing the nodes failed (see `aws.errors` and the engines).
        """
        names = list(dict.fromkeys(name.strip() for name in request.nodes))
        if not 0 < len(names) <= MAX_NODES:
            raise InvalidInputError(
                f"{len(names)} nodes are given, but 1 to {MAX_NODES} are allowed", detail={"field": "nodes"}
            )
        check_reason(request.action, request.reason)
        reason = one_line(request.reason)
        resolved = await self._services.clusters.resolve(request.cluster, request.region)
        if request.action in {"reboot", "replace"}:
            if resolved.hyperpod is None:
                raise resolved.problem or self._services.clusters.not_hyperpod_error(resolved.configured or "")
            cluster = resolved.hyperpod
            facts = await self._instances(resolved)
        else:
            if needs_reason:
                _check_reason(request.action, reason)
            cluster = await self._configured(resolved, request.action)
            facts = await self._nodes(cluster, request.action, names)
        return NodeActionPlan(
            action=request.action,
            cluster=cluster,
            region=resolved.region,
            nodes=_unique([_node_plan(name, request.action, facts) for name in names]),
            effects=general_effects(request.action),
            notes=facts.notes,
            reason=reason,
        )

    async def carry_out(self, plan: NodeActionPlan) -> list[NodeResult]:
        """Execute a plan: one result per node, in the plan's order. A failure for one node does not stop the others.

        Raises:
            UnreachableError: The scheduler does not answer. A failure of AWS is reported with each node.
        """
        results: dict[str, HyperpodError | None] = {}
        ids: dict[str, str] = {}
        match plan.action:
            case "reboot" | "replace" as action:
                ids = {node_plan.name: node_plan.instance.name for node_plan in plan.possible if node_plan.instance}
                if ids:
                    aws = self._services.hyperpod_clusters(plan.region).aws
                    results = await repair_instances(aws, plan.cluster, action, [*ids.values()])
            case "drain" | "resume" as action:
                ids = {node_plan.name: node_plan.node.name for node_plan in plan.possible if node_plan.node}
                if ids:
                    engine = self._services.engines.get(plan.cluster)
                    node_control = require(engine.node_control, engine, f"cannot {action} nodes")
                    results = await node_control.act_on_nodes(action, [*ids.values()], plan.reason)
        by_name = {name: results[ident] for name, ident in ids.items()}
        return [
            NodeResult(
                node_plan.name,
                instance=node_plan.instance.name if node_plan.instance else None,
                node=node_plan.node.name if node_plan.node else None,
                error=node_plan.refusal or by_name.get(node_plan.name),
            )
            for node_plan in plan.nodes
        ]

    async def _configured(self, resolved: ResolvedCluster, action: NodeActionKind) -> str:
        """The configured cluster of a request.

        Raises:
            InvalidInputError: It is not configured.
        """
        if resolved.configured is not None:
            return resolved.configured
        description, _ = await self._services.clusters.describe_hyperpod(resolved.aws_name, resolved.region)
        if not description.configured_as:
            raise _unconfigured_error(description.name, action)
        return description.configured_as[0]

    async def _instances(self, resolved: ResolvedCluster) -> _ClusterFacts:
        """The nodes of a HyperPod cluster, for AWS' actions.

        Raises:
            HyperpodError: AWS does not list all instances (see `aws.errors`).
        """
        services = self._services
        description, unknown = await services.clusters.describe_hyperpod(resolved.aws_name, resolved.region)
        listing = await self._joined(resolved)
        notes = list(listing.notes)
        if not unknown and description.state != "in-service":
            notes.append(
                f"the cluster is {description.state}; AWS repairs nodes only while their cluster is in-service"
            )
        names = description.configured_as
        jobs, problem = await self._jobs(names[0]) if names else (None, _JOBS_UNKNOWN_NOTE)
        if problem is not None:
            notes.append(problem)
        return _ClusterFacts(
            rows=listing.nodes,
            notes=tuple(notes),
            scheduler=find_scheduler(
                services.settings.clusters[names[0]].orchestrator if names else description.orchestrator
            ),
            roles={group.name: group.slurm_role or "" for group in description.groups or ()},
            jobs=jobs,
        )

    async def _nodes(self, cluster: str, action: NodeActionKind, names: Sequence[str]) -> _ClusterFacts:
        """The nodes of a configured cluster, for its scheduler's actions."""
        engine = self._services.engines.get(cluster)
        check_drain(engine, action)
        by_host = engine.scheduler.names_nodes_by_host
        if by_host and any(_INSTANCE.fullmatch(name.lower()) for name in names):
            joined = await self._joined(await self._services.clusters.resolve(cluster))
            rows, notes = joined.nodes, joined.notes
        else:
            scheduler_nodes = await require_tables(engine).nodes()
            rows, notes = ([JoinedNode(None, node) for node in scheduler_nodes], notes_of(scheduler_nodes))
        jobs, problem = await self._jobs(cluster)
        problem_notes = () if problem is None else (problem,)
        return _ClusterFacts(rows, (*notes, *problem_notes), engine.scheduler, {}, jobs)

    async def _joined(self, resolved: ResolvedCluster) -> NodeList[JoinedNode]:
        """All nodes. Unlike a table, this needs the complete list of instances: a user may name a node by its instance.

        Raises:
            HyperpodError: AWS does not list all instances (see `aws.errors`).
        """
        services = self._services
        if resolved.problem is not None:
            raise resolved.problem
        if resolved.hyperpod is not None:
            await services.hyperpod_clusters(resolved.region).all_instances(resolved.hyperpod)
        name = resolved.configured or resolved.hyperpod
        return await services.clusters.joined_nodes(name, resolved.region, wait=_WAIT_S)

    async def _jobs(self, cluster: str) -> tuple[Mapping[str, Sequence[Job]] | None, str | None]:
        """The running jobs by node; or why they are unknown."""
        try:
            rows = await require_tables(self._services.engines.get(cluster)).jobs()
        except HyperpodError as error:
            return None, f"{_JOBS_UNKNOWN_NOTE}: {error.message}"
        jobs_by_node: dict[str, list[Job]] = defaultdict(list)
        for job in rows:
            if job.state in {"running", "suspended"}:
                for node in job.nodes:
                    jobs_by_node[node].append(job)
        return jobs_by_node, None


def _check_reason(action: NodeActionKind, reason: str | None) -> None:
    if action == "drain" and reason is None:
        raise InvalidInputError(
            "draining nodes needs a reason",
            code="no_reason",
            hint="add one, which other users can read: --reason 'GPU 3 falls off the bus'",
            detail={"field": "reason"},
        )


def _node_plan(name: str, action: NodeActionKind, facts: _ClusterFacts) -> NodePlan:
    try:
        row = find_node(facts.rows, name)
    except HyperpodError as error:
        return NodePlan(name, refusal=error)
    node = row.node
    jobs = None if facts.jobs is None or node is None else tuple(facts.jobs.get(node.name, ()))
    role = facts.roles.get(row.instance.instance_group) if row.instance else None
    refusal = _refusal(name, action, row, role)
    effects = node_effects(action, scheduler=facts.scheduler, role=role, node=node, jobs=jobs)
    return NodePlan(name, row.instance, node, jobs, () if refusal else effects, refusal)


def _refusal(name: str, action: NodeActionKind, row: JoinedNode, role: str | None) -> HyperpodError | None:
    if action in {"drain", "resume"}:
        if row.node is not None:
            return _already_resumed(name, row.node.state) if action == "resume" else None
        message = f"the scheduler has no node '{name}'"
        return NotFoundError(
            f"{message}: {row.remark}" if row.remark else message,
            code="no_such_node",
            hint="list nodes with: hpj nodes",
        )
    if row.instance is None:
        return NotFoundError(
            f"AWS lists no instance '{name}'", code="no_such_node", hint="list nodes with: hpj nodes CLUSTER"
        )
    if action == "replace" and role == "Controller":
        return UnsupportedError(
            f"'{name}' is the Slurm controller, which AWS does not replace",
            code="controller_node",
            hint="reboot it instead: hpj node reboot",
        )
    return None


def _already_resumed(name: str, state: str) -> HyperpodError | None:
    if state not in {"up", "reserved"}:
        return None
    return ConflictError(f"'{name}' is {state}: it already accepts jobs", code="wrong_state", detail={"state": state})


def _unique(plans: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
    """The plans without duplicates: a user may name a machine in two ways."""
    plans_by_machine: dict[tuple[str, str | None], NodePlan] = {}
    for plan in plans:
        machine = plan.instance.name if plan.instance else plan.node.name if plan.node else None
        plans_by_machine.setdefault(("machine", machine) if machine else ("name", plan.name), plan)
    return tuple(plans_by_machine.values())
