"""What a user does to nodes: AWS reboots and replaces instances, the scheduler drains and resumes nodes. First a plan, then the deed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.clusters.service import ClusterName, NodeList
from hyperpod_jlab.core.cluster import Job, notes_of
from hyperpod_jlab.core.errors import (
    ConflictError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.core.node_actions import (
    MOST_NODES,
    NODE_ACTIONS,
    NodeAction,
    NodeActionKind,
    NodeActionPlan,
    NodePlan,
    NodeResult,
    check_reason,
    effects_of,
    effects_on,
    one_line,
)
from hyperpod_jlab.core.nodes import JoinedNode, find_node
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.engines.protocol import Orchestrator, required, tables_of
from hyperpod_jlab.engines.registry import scheduler_named
from hyperpod_jlab.features.node_actions.aws import check_repair, repair_instances
from hyperpod_jlab.run.services import Hyperpod

# --------------------------------------------------------------------------------------------------
# Which actions on nodes of a cluster can be had, and why not the others: what is known before anybody is asked.
#
# A right that is missing is not known beforehand: SageMaker tells it only when something is done.


@dataclass(frozen=True)
class NodeAbility:
    """Whether something can be done to nodes of a cluster.

    Attributes:
        action: What.
        problem: Why it cannot; None where nothing is known to be in its way.
    """

    action: NodeAction
    problem: HyperpodError | None


async def abilities_on(services: Hyperpod, cluster: str) -> list[NodeAbility]:
    """What can be done to nodes of a cluster, as far as it is known without asking AWS or the scheduler for more than the cluster's description.

    Raises:
        NotFoundError: There is no such cluster.
    """
    clusters = services.clusters
    meant = await clusters.named(cluster)
    configured = meant.configured
    if configured is None and meant.hyperpod is not None:
        found, _ = await clusters.described(meant.hyperpod, meant.region)
        configured = next(iter(found.configured_as), None)

    async def check(action: NodeActionKind) -> None:
        match action:
            case "drain" | "resume":
                if configured is None:
                    raise _unconfigured(cluster, action)
                check_drain(services.engines.get(configured), action)
            case "reboot" | "replace":
                if meant.hyperpod is None:
                    raise meant.problem or clusters.no_hyperpod(meant.configured or cluster)
                await check_repair(services.hyperpod_clusters(meant.region).aws, action)

    return [await _ability(action, check) for action in NODE_ACTIONS]


def _unconfigured(cluster: str, action: NodeActionKind) -> InvalidInputError:
    return InvalidInputError(
        f"cannot {action}: {cluster} is not in your configuration",
        code="no_configured_cluster",
        hint=f"add it to the configuration: hpj config add {cluster}",
        detail={"field": "cluster"},
    )


def check_drain(engine: Orchestrator, action: NodeActionKind) -> None:
    """Whether an engine drains and resumes nodes.

    Raises:
        UnsupportedError: It does not.
    """
    required(engine.node_orders, engine, f"cannot {action} nodes")


async def _ability(
    action: NodeActionKind, check: Callable[[NodeActionKind], Awaitable[None]]
) -> NodeAbility:
    try:
        await check(action)
    except HyperpodError as error:
        return NodeAbility(action, error)
    return NodeAbility(action, None)


_INSTANCE = re.compile(r"(hyperpod-)?i-[0-9a-f]{8}([0-9a-f]{9})?")

_WAIT = 60.0
"""Seconds to wait for all nodes."""

_NOT_KNOWN = "the jobs on the nodes are unknown"


@dataclass(frozen=True)
class NodeRequest:
    """What a user asks for.

    Attributes:
        action: What is to be done.
        nodes: The nodes: instance ids, the scheduler's names, names in the private network.
        cluster: Their cluster: its name in the configuration, or its name or ARN in AWS; default: the configured default one.
        region: Its region; default: see `aws.session.Aws`.
        reason: Why, with drain: in words for others.
    """

    action: NodeActionKind
    nodes: Sequence[str]
    cluster: str | None = None
    region: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class _Known:
    """What a plan is made of.

    Attributes:
        rows: The cluster's nodes.
        notes: What could not be found out.
        scheduler: Who schedules there, where that is known.
        roles: What instance groups are to Slurm.
        jobs: Jobs by the names of the nodes that they run on; None where that is not known.
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
        """What would be done, and what would come of it. Nothing is changed.

        Args:
            request: What is asked for.
            needs_reason: Whether a reason must be there where the action wants one; it may be asked for once the plan was seen.

        Raises:
            InvalidInputError: There is no such cluster, there are no nodes or too many, or a reason is missing or given where none goes.
            UnsupportedError: The cluster's scheduler cannot do it.
            HyperpodError: The nodes cannot be listed (see `aws.errors` and the engines).
        """
        names = list(dict.fromkeys(name.strip() for name in request.nodes))
        if not 0 < len(names) <= MOST_NODES:
            raise InvalidInputError(
                f"{len(names)} nodes are given, but 1 to {MOST_NODES} are allowed",
                detail={"field": "nodes"},
            )
        check_reason(request.action, request.reason)
        reason = one_line(request.reason)
        meant = await self._services.clusters.named(request.cluster, request.region)
        if request.action in {"reboot", "replace"}:
            if meant.hyperpod is None:
                raise meant.problem or self._services.clusters.no_hyperpod(meant.configured or "")
            cluster = meant.hyperpod
            known = await self._instances(meant)
        else:
            if needs_reason:
                _check_given(request.action, reason)
            cluster = await self._configured(meant, request.action)
            known = await self._nodes(cluster, request.action, names)
        return NodeActionPlan(
            action=request.action,
            cluster=cluster,
            region=meant.region,
            nodes=_each_once([_plan_of(name, request.action, known) for name in names]),
            effects=effects_of(request.action),
            notes=known.notes,
            reason=reason,
        )

    async def carry_out(self, plan: NodeActionPlan) -> list[NodeResult]:
        """Do what was planned: one result for each node, in the plan's order. One that cannot be done stops no other.

        Raises:
            UnreachableError: The scheduler does not answer. That AWS does not is told with each node.
        """
        told: dict[str, HyperpodError | None] = {}
        ids: dict[str, str] = {}
        match plan.action:
            case "reboot" | "replace" as action:
                ids = {one.name: one.instance.name for one in plan.possible if one.instance}
                if ids:
                    aws = self._services.hyperpod_clusters(plan.region).aws
                    told = await repair_instances(aws, plan.cluster, action, [*ids.values()])
            case "drain" | "resume" as action:
                ids = {one.name: one.node.name for one in plan.possible if one.node}
                if ids:
                    engine = self._services.engines.get(plan.cluster)
                    orders = required(engine.node_orders, engine, f"cannot {action} nodes")
                    told = await orders.act_on_nodes(action, [*ids.values()], plan.reason)
        found = {name: told[ident] for name, ident in ids.items()}
        return [
            NodeResult(
                one.name,
                instance=one.instance.name if one.instance else None,
                node=one.node.name if one.node else None,
                error=one.refusal or found.get(one.name),
            )
            for one in plan.nodes
        ]

    async def _configured(self, meant: ClusterName, action: NodeActionKind) -> str:
        """The configured cluster that a request is about.

        Raises:
            InvalidInputError: It is not configured.
        """
        if meant.configured is not None:
            return meant.configured
        found, _ = await self._services.clusters.described(meant.aws_name, meant.region)
        if not found.configured_as:
            raise _unconfigured(found.name, action)
        return found.configured_as[0]

    async def _instances(self, meant: ClusterName) -> _Known:
        """The nodes of a HyperPod cluster for what AWS does to them.

        Raises:
            HyperpodError: AWS does not list all instances (see `aws.errors`).
        """
        services = self._services
        found, unknown = await services.clusters.described(meant.aws_name, meant.region)
        listed = await self._joined(meant)
        notes = list(listed.notes)
        if not unknown and found.state != "in-service":
            notes.append(
                f"the cluster is {found.state}; AWS repairs nodes only while their cluster is in-service"
            )
        names = found.configured_as
        jobs, problem = await self._jobs(names[0]) if names else (None, _NOT_KNOWN)
        if problem is not None:
            notes.append(problem)
        return _Known(
            rows=listed.nodes,
            notes=tuple(notes),
            scheduler=scheduler_named(
                services.settings.clusters[names[0]].orchestrator if names else found.orchestrator
            ),
            roles={group.name: group.slurm_role or "" for group in found.groups or ()},
            jobs=jobs,
        )

    async def _nodes(self, cluster: str, action: NodeActionKind, names: Sequence[str]) -> _Known:
        """The nodes of a configured cluster for what its scheduler does to them."""
        engine = self._services.engines.get(cluster)
        check_drain(engine, action)
        by_host = engine.scheduler.names_nodes_by_host
        if by_host and any(_INSTANCE.fullmatch(name.lower()) for name in names):
            found = await self._joined(await self._services.clusters.named(cluster))
            rows, notes = found.nodes, found.notes
        else:
            listed = await tables_of(engine).nodes()
            rows, notes = [JoinedNode(None, node) for node in listed], notes_of(listed)
        jobs, problem = await self._jobs(cluster)
        told = () if problem is None else (problem,)
        return _Known(rows, (*notes, *told), engine.scheduler, {}, jobs)

    async def _joined(self, meant: ClusterName) -> NodeList[JoinedNode]:
        """All nodes. A table may be without the instances where AWS does not list them; a node that is named by one may not.

        Raises:
            HyperpodError: AWS does not list all instances (see `aws.errors`).
        """
        services = self._services
        if meant.problem is not None:
            raise meant.problem
        if meant.hyperpod is not None:
            await services.hyperpod_clusters(meant.region).every_instance(meant.hyperpod)
        name = meant.configured or meant.hyperpod
        return await services.clusters.joined_nodes(name, meant.region, wait=_WAIT)

    async def _jobs(self, cluster: str) -> tuple[Mapping[str, Sequence[Job]] | None, str | None]:
        """The jobs that run, by their nodes; or why that is not known."""
        try:
            listed = await tables_of(self._services.engines.get(cluster)).jobs()
        except HyperpodError as error:
            return None, f"{_NOT_KNOWN}: {error.message}"
        found: dict[str, list[Job]] = defaultdict(list)
        for job in listed:
            if job.state in {"running", "suspended"}:
                for node in job.nodes:
                    found[node].append(job)
        return found, None


def _check_given(action: NodeActionKind, reason: str | None) -> None:
    if action == "drain" and reason is None:
        raise InvalidInputError(
            "draining nodes needs a reason",
            code="no_reason",
            hint="add one, which other users can read: --reason 'GPU 3 falls off the bus'",
            detail={"field": "reason"},
        )


def _plan_of(name: str, action: NodeActionKind, known: _Known) -> NodePlan:
    try:
        row = find_node(known.rows, name)
    except HyperpodError as error:
        return NodePlan(name, refusal=error)
    node = row.node
    jobs = None if known.jobs is None or node is None else tuple(known.jobs.get(node.name, ()))
    role = known.roles.get(row.instance.instance_group) if row.instance else None
    refusal = _refusal(name, action, row, role)
    effects = effects_on(action, scheduler=known.scheduler, role=role, node=node, jobs=jobs)
    return NodePlan(name, row.instance, node, jobs, () if refusal else effects, refusal)


def _refusal(
    name: str, action: NodeActionKind, row: JoinedNode, role: str | None
) -> HyperpodError | None:
    if action in {"drain", "resume"}:
        if row.node is not None:
            return _takes_jobs(name, row.node.state) if action == "resume" else None
        words = f"the scheduler has no node '{name}'"
        return NotFoundError(
            f"{words}: {row.remark}" if row.remark else words,
            code="no_such_node",
            hint="see: hpj nodes",
        )
    if row.instance is None:
        return NotFoundError(
            f"AWS lists no instance '{name}'",
            code="no_such_node",
            hint="see: hpj nodes CLUSTER",
        )
    if action == "replace" and role == "Controller":
        return UnsupportedError(
            f"'{name}' is the Slurm controller, which AWS does not replace",
            code="controller_node",
            hint="reboot it instead: hpj node reboot",
        )
    return None


def _takes_jobs(name: str, state: str) -> HyperpodError | None:
    if state not in {"up", "reserved"}:
        return None
    return ConflictError(
        f"'{name}' is {state}: it already accepts jobs", code="wrong_state", detail={"state": state}
    )


def _each_once(plans: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
    """The plans, of each machine the first: one may have been named in two ways."""
    found: dict[tuple[str, str | None], NodePlan] = {}
    for plan in plans:
        machine = plan.instance.name if plan.instance else plan.node.name if plan.node else None
        found.setdefault(("machine", machine) if machine else ("name", plan.name), plan)
    return tuple(found.values())
