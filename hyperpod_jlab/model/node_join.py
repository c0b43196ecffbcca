"""AWS' instances joined with the scheduler's nodes: which are the same machine, and what is to be said where one side is missing.

On Kubernetes a node is called after its instance (``hyperpod-i-0123...``), so a replaced one has another name. On Slurm it is
called by the first part of its name in the private network (``ip-10-1-2-3``), which a replaced one usually keeps: for a while AWS
may list both instances, and the newer one that is not ending is the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.cluster import Node
from hyperpod_jlab.model.hyperpod import Instance

_PREFIX = "hyperpod-"
_NO_SLURM_NODE = frozenset({"Controller", "Login"})
"""Roles of instance groups of Slurm that run no jobs."""

COMING = frozenset({"starting", "deep-health-check"})
"""States of instances that are to be nodes."""

GOING = frozenset({"ending", "failed", "not-found"})
"""States of instances that are nodes no more."""


def is_changing(instance: Instance) -> bool:
    """Whether an instance is about to come or to go by itself; a failed one may stay so for ever."""
    return instance.state in COMING or instance.state == "ending"


@dataclass(frozen=True)
class JoinedNode:
    """One machine as both sides know it; at least one of them does.

    Attributes:
        instance: What AWS knows.
        node: What the scheduler knows.
        remark: Why one side is missing, a sentence; None where that is as it is to be.
    """

    instance: Instance | None
    node: Node | None
    remark: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "instance": self.instance.to_dict() if self.instance else None,
            "node": self.node.to_dict() if self.node else None,
            "remark": self.remark,
        }


def join_nodes(
    orchestrator: str,
    instances: Sequence[Instance],
    nodes: Sequence[Node],
    roles: Mapping[str, str] | None = None,
) -> list[JoinedNode]:
    """Join what AWS lists with what the scheduler lists. Both lists are of about the same time; neither has to be complete.

    Args:
        orchestrator: ``slurm`` or ``kubernetes``.
        instances: AWS' instances.
        nodes: The scheduler's nodes.
        roles: What instance groups are to Slurm, such as ``Controller``, by their name.

    Returns:
        A row for each instance, in AWS' order, then one for each node that no instance belongs to, in the scheduler's.
    """

    def key(instance: Instance) -> str | None:
        return instance_key(orchestrator, instance)

    waiting: dict[str, list[Node]] = {}
    for node in nodes:
        waiting.setdefault(_node_key(orchestrator, node), []).append(node)
    holders = _holders(instances, key)
    rows = []
    for instance in instances:
        name = key(instance)
        holder = holders.get(name) if name else None
        if holder is not None and holder is not instance:
            rows.append(JoinedNode(instance, None, f"its place is taken by {holder.name}"))
            continue
        found = waiting.get(name) if name else None
        if found:
            rows.append(JoinedNode(instance, found.pop(0)))
        else:
            rows.append(JoinedNode(instance, None, _without_node(instance, name, roles or {})))
    left = (
        node for node in nodes if any(node is one for one in waiting[_node_key(orchestrator, node)])
    )
    return [*rows, *(JoinedNode(None, node, _without_instance(orchestrator)) for node in left)]


def instance_key(orchestrator: str, instance: Instance) -> str | None:
    """What an instance and its node have in common, in small letters: the instance id, or the first part of the host's name; None where AWS does not tell it."""
    if orchestrator == "kubernetes":
        return instance.name
    return _first_part(instance.host) if instance.host else None


def _first_part(host: str) -> str:
    return host.partition(".")[0].lower()


def _node_key(orchestrator: str, node: Node) -> str:
    if orchestrator == "kubernetes":
        return node.name.removeprefix(_PREFIX)
    return _first_part(node.name)


def _holders(
    instances: Iterable[Instance], key: Callable[[Instance], str | None]
) -> dict[str, Instance]:
    """Who is the node of a name, where several instances have had it."""
    found: dict[str, Instance] = {}
    for instance in instances:
        name = key(instance)
        if name is not None and (name not in found or rank(instance) > rank(found[name])):
            found[name] = instance
    return found


def rank(instance: Instance) -> tuple[bool, float]:
    """Who is rather in a place that several have had: one that stays rather than one that ends, then the newer one."""
    return instance.state not in GOING, instance.launched_at or 0.0


def _without_node(instance: Instance, name: str | None, roles: Mapping[str, str]) -> str | None:
    if roles.get(instance.instance_group) in _NO_SLURM_NODE:
        return None
    if name is None:
        return "AWS does not tell its name, so it cannot be found in the scheduler"
    if instance.state in COMING:
        return "it has not joined the cluster yet"
    if instance.state in GOING:
        return "it has left the cluster"
    return "the scheduler does not have it"


def _without_instance(orchestrator: str) -> str:
    if orchestrator == "kubernetes":
        return (
            "AWS does not list its instance: it was replaced or removed, or is about to be listed"
        )
    return "AWS lists no instance of this name: the node is gone, or its instance is being replaced"
