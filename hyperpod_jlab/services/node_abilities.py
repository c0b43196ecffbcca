"""Which actions on nodes of a cluster can be had, and why not the others: what is known before anybody is asked.

A right that is missing is not known beforehand: SageMaker tells it only when something is done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.aws.node_actions import check_repair
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, UnsupportedError
from hyperpod_jlab.model.hyperpod import HyperpodCluster
from hyperpod_jlab.model.node_actions import NODE_ACTIONS, NodeActionKind
from hyperpod_jlab.orchestrators.protocol import Orchestrator
from hyperpod_jlab.services.engines import Engines
from hyperpod_jlab.services.hyperpod_clusters import configured_as


@dataclass(frozen=True)
class NodeAbility:
    """Whether something can be done to nodes of a cluster.

    Attributes:
        action: What.
        problem: Why it cannot; None where nothing is known to be in its way.
    """

    action: NodeActionKind
    problem: HyperpodError | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "action": self.action,
            "problem": self.problem.to_dict() if self.problem is not None else None,
        }


async def abilities_on_hyperpod(
    engines: Engines, aws: Aws, cluster: HyperpodCluster
) -> list[NodeAbility]:
    """What can be done to nodes of a HyperPod cluster, as far as it is known of it."""

    async def check(action: NodeActionKind) -> None:
        match action:
            case "drain" | "resume":
                name = scheduler_of(engines.settings, cluster, action)
                check_drain(engines.get(name), action)
            case "reboot" | "replace":
                await check_repair(aws, action)

    return [await _ability(action, check) for action in NODE_ACTIONS]


async def abilities_on(engines: Engines, aws: Aws, name: str) -> list[NodeAbility]:
    """What can be done to nodes of a configured cluster."""

    async def check(action: NodeActionKind) -> None:
        match action:
            case "drain" | "resume":
                check_drain(engines.get(name), action)
            case "reboot" | "replace":
                hyperpod_behind(engines.settings, name, action)
                await check_repair(aws, action)

    return [await _ability(action, check) for action in NODE_ACTIONS]


def hyperpod_behind(settings: Settings, name: str, action: NodeActionKind) -> str:
    """The HyperPod cluster that a configured one is, for what AWS does.

    Raises:
        InvalidInputError: The configuration names none.
    """
    found: str | None = getattr(settings.clusters[name], "hyperpod", None)
    if found is None:
        raise InvalidInputError(
            f"{action} is done by AWS, and the configuration does not say which HyperPod cluster {name} is",
            code="no_hyperpod_cluster",
            hint=f'name it with --hyperpod NAME, or write hyperpod = "NAME" under [clusters.{name}]',
            detail={"field": "hyperpod"},
        )
    return found


def scheduler_of(settings: Settings, cluster: HyperpodCluster, action: NodeActionKind) -> str:
    """The configured cluster that is a HyperPod cluster, for what the scheduler does.

    Raises:
        InvalidInputError: There is none.
    """
    names = configured_as(settings, cluster)
    if not names:
        raise InvalidInputError(
            f"{action} is done by the scheduler, and no cluster of the configuration has hyperpod = '{cluster.name}'",
            code="no_configured_cluster",
            hint="write it into the configuration: docs/reference.md, The configuration file",
            detail={"field": "hyperpod"},
        )
    return names[0]


def check_drain(engine: Orchestrator, action: NodeActionKind) -> None:
    """Whether an engine drains and resumes nodes.

    Raises:
        UnsupportedError: It does not.
    """
    if not engine.capabilities.drain:
        raise UnsupportedError(f"{engine.kind} clusters cannot {action} nodes")


async def _ability(
    action: NodeActionKind, check: Callable[[NodeActionKind], Awaitable[None]]
) -> NodeAbility:
    try:
        await check(action)
    except HyperpodError as error:
        return NodeAbility(action, error)
    return NodeAbility(action, None)
