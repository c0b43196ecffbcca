"""Join AWS' instances with the scheduler's nodes: which are the same machine, and why one side is missing.

On Kubernetes a node is named after its instance (``hyperpod-i-0123...``), so a replacement has another name. On Slurm its name is the first
part of its name in the private network (``ip-10-1-2-3``), which a replacement usually keeps: for a while AWS may list both instances, and
the newer one that is not ending is the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import ConflictError, NotFoundError, nearest_hint
from hyperpod_jlab.core.hyperpod import Instance
from hyperpod_jlab.core.scheduler import Scheduler

_PREFIX = "hyperpod-"
_ROLES_WITHOUT_NODE = frozenset({"Controller", "Login"})
"""Roles of Slurm instance groups that run no jobs."""

STARTING_STATES = frozenset({"starting", "deep-health-check"})
"""Instance states before an instance becomes a node."""

ENDING_STATES = frozenset({"ending", "failed", "not-found"})
"""Instance states after an instance was a node."""


def is_changing(instance: Instance) -> bool:
    """Whether an instance is being added or removed; a failed one does not count, since it may stay so."""
    return instance.state in STARTING_STATES or instance.state == "ending"


@dataclass(frozen=True)
class JoinedNode:
    """One machine as both sides know it; at least one side does.

    Attributes:
        instance: AWS' data.
        node: The scheduler's data.
        remark: Why one side is missing, a sentence; None if that is normal.
    """

    instance: Instance | None
    node: Node | None
    remark: str | None = None


def join_nodes(
    scheduler: Scheduler, instances: Sequence[Instance], nodes: Sequence[Node], roles: Mapping[str, str] | None = None
) -> list[JoinedNode]:
    """Join AWS' list with the scheduler's. The lists are of about the same time; neither has to be complete.

    Args:
        scheduler: The cluster's scheduler.
        instances: AWS' instances.
        nodes: The scheduler's nodes.
        roles: The Slurm roles of instance groups, such as ``Controller``, by group name.

    Returns:
        A row per instance, in AWS' order, then one per node without an instance, in the scheduler's order.
    """

    def key(instance: Instance) -> str | None:
        return instance_key(scheduler, instance)

    waiting: dict[str, list[Node]] = {}
    for node in nodes:
        waiting.setdefault(_node_key(scheduler, node), []).append(node)
    holders = _current_instances(instances, key)
    rows = []
    for instance in instances:
        name = key(instance)
        holder = holders.get(name) if name else None
        if holder is not None and holder is not instance:
            rows.append(JoinedNode(instance, None, f"replaced by {holder.name}"))
            continue
        matches = waiting.get(name) if name else None
        if matches:
            rows.append(JoinedNode(instance, matches.pop(0)))
        else:
            rows.append(JoinedNode(instance, None, _no_node_reason(instance, name, roles or {})))
    unmatched = (node for node in nodes if any(node is match for match in waiting[_node_key(scheduler, node)]))
    return [*rows, *(JoinedNode(None, node, _no_instance_reason(scheduler)) for node in unmatched)]


def node_row(joined: JoinedNode) -> Node:
    """The row of a node: the scheduler's data with AWS' data, or AWS' data alone."""
    instance, node = joined.instance, joined.node
    replaced = instance.replaces if instance else None
    reasons = (instance.reason if instance else None, f"it replaces {replaced}" if replaced else None, joined.remark)
    reason = "; ".join(sentence.rstrip(".") for sentence in reasons if sentence) or None
    if instance is None:
        assert node is not None, "neither side has the node"
        return replace(node, instance_reason=reason)
    if node is None:
        node = Node(instance.name, instance.state, reason, accelerators_free=None, cpus_free=None)
    return replace(
        node,
        instance_group=instance.instance_group,
        instance_type=instance.instance_type,
        instance=instance.name,
        instance_state=instance.state,
        instance_status=instance.status,
        instance_reason=reason,
        launched_at=instance.launched_at,
        host=instance.host,
        image_version=instance.image_version,
        image_status=instance.image_status,
    )


def instance_key(scheduler: Scheduler, instance: Instance) -> str | None:
    """The join key of an instance and its node, in lower case: the instance id, or the first part of the host name; None if AWS does not report it."""
    if not scheduler.names_nodes_by_host:
        return instance.name
    return _first_part(instance.host) if instance.host else None


def _first_part(host: str) -> str:
    return host.partition(".")[0].lower()


def _node_key(scheduler: Scheduler, node: Node) -> str:
    if not scheduler.names_nodes_by_host:
        return node.name.removeprefix(_PREFIX)
    return _first_part(node.name)


def _current_instances(instances: Iterable[Instance], key: Callable[[Instance], str | None]) -> dict[str, Instance]:
    """The current instance for each name that several instances have had."""
    current: dict[str, Instance] = {}
    for instance in instances:
        name = key(instance)
        if name is not None and (name not in current or rank(instance) > rank(current[name])):
            current[name] = instance
    return current


def rank(instance: Instance) -> tuple[bool, float]:
    """Sort key among instances of one name: not ending before ending, then newer first."""
    return instance.state not in ENDING_STATES, instance.launched_at or 0.0


def _no_node_reason(instance: Instance, name: str | None, roles: Mapping[str, str]) -> str | None:
    if roles.get(instance.instance_group) in _ROLES_WITHOUT_NODE:
        return None
    if name is None:
        return "AWS does not report its name, so it cannot be matched to a node of the scheduler"
    if instance.state in STARTING_STATES:
        return "it has not joined the cluster yet"
    if instance.state in ENDING_STATES:
        return "it has left the cluster"
    return "the scheduler does not know it"


def _no_instance_reason(scheduler: Scheduler) -> str:
    if not scheduler.names_nodes_by_host:
        return "AWS does not list its instance: it was replaced or removed, or is not listed yet"
    return "AWS lists no instance of this name: the node is gone, or its instance is being replaced"


# --------------------------------------------------------------------------------------------------
# Replacements: an instance that takes over another's slot has replaced it.

RECENT_S = 3600.0
"""Seconds after its launch for which an instance is shown as new."""


class ReplacementTracker:
    """Tracks which instance had each slot when the instances were last listed.

    A slot is what a replacement keeps: the logical id if AWS reports it, else the host name.
    """

    def __init__(self) -> None:
        self._current_instances: dict[str, Instance] = {}
        self._before: dict[str, str] = {}

    def update(self, instances: Iterable[Instance]) -> None:
        """Update from the complete list of instances."""
        by_slot: dict[str, Instance] = {}
        for instance in sorted(instances, key=rank):
            slot = instance.logical_id or instance.host
            if slot is None:
                continue
            earlier = by_slot.get(slot) or self._current_instances.get(slot)
            if earlier is not None and earlier.name != instance.name:
                self._before[instance.name] = earlier.name
            by_slot[slot] = instance
        self._current_instances |= by_slot
        names = {instance.name for instance in self._current_instances.values()}
        self._before = {new_name: old_name for new_name, old_name in self._before.items() if new_name in names}

    def with_replacements(self, instances: Sequence[Instance], now: float) -> list[Instance]:
        """The same instances; recent replacements have the replaced instance's id.

        Args:
            instances: The instances.
            now: The time (Unix seconds).
        """
        return [
            replace(instance, replaces=self._before[instance.name])
            if instance.name in self._before and now - (instance.launched_at or 0.0) < RECENT_S
            else instance
            for instance in instances
        ]


# --------------------------------------------------------------------------------------------------
# Find a node by its instance id, the scheduler's name or its name in the private network.

_NODE_CHOICE_PREFIX = "hyperpod-"


def find_node(rows: Sequence[JoinedNode], name: str) -> JoinedNode:
    """The row of a node.

    Args:
        rows: The nodes of one cluster.
        name: The given name; case does not matter.

    Raises:
        NotFoundError: The node does not exist.
        ConflictError: Several instances have had this name, and the current one is unclear.
    """
    lower_name = name.strip().lower()
    matches = [row for row in rows if lower_name in _names(row)]
    if not matches:
        known_names = [row_name for row in rows for row_name in _names(row)]
        suggestion = nearest_hint(lower_name, known_names) if len(known_names) <= 1000 else None
        raise NotFoundError(
            f"the cluster has no node '{name[:100]}'",
            code="no_such_node",
            hint=suggestion if suggestion and suggestion.startswith("did you mean") else "list nodes with: hpj nodes",
            detail={"node": name[:100]},
        )
    # AWS may list both instances of a replaced node; the scheduler's node belongs to the current
    # one.
    current = [row for row in matches if row.node is not None] or matches
    if len(current) == 1:
        return current[0]
    instances = [row.instance for row in current if row.instance is not None]
    candidates = ", ".join(f"{row_name.name} ({row_name.state})" for row_name in instances)
    raise ConflictError(
        f"several nodes are called '{name[:100]}': {candidates}",
        code="ambiguous_node",
        hint="use the instance id",
        detail={"node": name[:100], "instances": [row_name.name for row_name in instances]},
    )


def _names(row: JoinedNode) -> set[str]:
    names: set[str] = set()
    if row.instance is not None:
        names.add(row.instance.name)
        if row.instance.host:
            names |= {row.instance.host, row.instance.host.partition(".")[0]}
    if row.node is not None:
        names |= {row.node.name, row.node.name.removeprefix(_NODE_CHOICE_PREFIX)}
    return {name.lower() for name in names}
