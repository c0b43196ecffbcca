"""A run whose node is under repair has not failed: the attempt's records are not final.

The scheduler (a reason in Slurm, a label in Kubernetes) and AWS (the instance's state) report what HyperPod does to a node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.run import Attempt
from hyperpod_jlab.core.scheduler import Scheduler

if TYPE_CHECKING:
    from hyperpod_jlab.core.hyperpod import Instance

NodeRepair = Literal["replace", "reboot", "repair"]
"""HyperPod's repairs of a node; ``repair`` if only the fact is known."""

RECOVERING = "recovering"
"""The reason code of a run that continues once its nodes are back."""

_LABELS: Mapping[NodeRepair, str] = {"replace": "replaces", "reboot": "reboots", "repair": "repairs"}
_MAX_NAMES = 3
_REASON_PREFIX = "HyperPod "


def mark_under_repair(running: Attempt, observation: Observation | None) -> Attempt:
    """Mark a running attempt as recovering if the scheduler says so and it is not being cancelled."""
    if observation is None or running.state != "running" or running.reason_code == "cancelling":
        return running
    if observation.state != "running" or observation.reason_code != RECOVERING:
        return running
    return replace(running, reason=observation.reason, reason_code=RECOVERING)


def may_recover(observation: Observation) -> bool:
    """Whether a run with this observation may be affected by a repair that the observation does not mention."""
    return (
        observation.state in {"running", "waiting"}
        and observation.reason_code != "held"
        and not is_repair_reason(observation.reason, observation.reason_code)
    )


def is_repair_reason(reason: str | None, code: str | None) -> bool:
    """Whether a reason comes from `with_repair_reason`."""
    return code == RECOVERING and (reason or "").startswith(_REASON_PREFIX)


def with_repair_reason(
    observation: Observation, nodes: Iterable[str], repairs: Mapping[str, NodeRepair], scheduler: Scheduler
) -> Observation:
    """The observation of a run, with the repair of its nodes as the reason; unchanged if none is under repair.

    Args:
        observation: The scheduler's observation.
        nodes: The nodes of its newest attempt.
        repairs: Repairs of nodes, by node name.
        scheduler: The cluster's scheduler.
    """
    nodes_under_repair = sorted(set(nodes) & repairs.keys())
    if not nodes_under_repair or not may_recover(observation):
        return observation
    remainder = f" and {len(nodes_under_repair) - _MAX_NAMES} more" if len(nodes_under_repair) > _MAX_NAMES else ""
    reason = f"{_REASON_PREFIX}{_LABELS[repairs[nodes_under_repair[0]]]} {', '.join(nodes_under_repair[:_MAX_NAMES])}{remainder}, on which it "
    if observation.state == "running":
        reason += f"runs; {scheduler.after_repair}"
    else:
        quoted_reason = f"; {scheduler.reason_prefix}{observation.reason}" if observation.reason else ""
        reason += f"ran{quoted_reason}"
    return observation.model_copy(update={"reason": reason, "reason_code": RECOVERING})


def find_repairs(
    scheduler: Scheduler, instances: Sequence[Instance], nodes: Iterable[str], begun_at: float | None
) -> dict[str, NodeRepair]:
    """AWS' repairs of a run's nodes, from the states of instances; omits running and unknown ones.

    Args:
        scheduler: The cluster's scheduler.
        instances: All instances of the cluster.
        nodes: The nodes, by the scheduler's names.
        begun_at: When the run's newest attempt began (Unix seconds): an instance that was launched later is a replacement.
    """
    from hyperpod_jlab.core.nodes import STARTING_STATES, instance_key

    by_key: dict[str, list[Instance]] = {}
    for instance in instances:
        key = instance_key(scheduler, instance)
        if key is not None:
            by_key.setdefault(key, []).append(instance)
    is_replacing = any(instance.state in STARTING_STATES for instance in instances)
    repairs: dict[str, NodeRepair] = {}
    for node in nodes:
        candidates = by_key.get(node.removeprefix("hyperpod-").partition(".")[0].lower(), [])
        action = _repair_of(candidates, begun_at, replaced=is_replacing and not scheduler.names_nodes_by_host)
        if action is not None:
            repairs[node] = action
    return repairs


def _repair_of(instances: Sequence[Instance], begun_at: float | None, *, replaced: bool) -> NodeRepair | None:
    """The repair of the node of these instances: the old one and its replacements.

    Args:
        instances: The instances.
        begun_at: When the attempt began.
        replaced: Whether a node without an instance is being replaced.
    """
    from hyperpod_jlab.core.nodes import ENDING_STATES, STARTING_STATES

    if not instances:
        return "replace" if replaced else None
    if any(instance.state == "running" for instance in instances):
        return None
    if any(instance.state in STARTING_STATES for instance in instances):
        newest = max(instance.launched_at or 0.0 for instance in instances)
        is_later = begun_at is not None and newest > begun_at
        return "replace" if is_later or len(instances) > 1 else "reboot"
    if any(instance.state == "ending" for instance in instances):
        return "replace"
    return "repair" if any(instance.state in ENDING_STATES for instance in instances) else None
