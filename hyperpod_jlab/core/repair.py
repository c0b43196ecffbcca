"""A run whose node is being repaired has not failed: what its records say of the attempt is not the last word.

What HyperPod does to a node is told by the scheduler (a reason in Slurm, a label in Kubernetes) and by AWS (the state of its instance).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from hyperpod_jlab.core.hyperpod import Instance
from hyperpod_jlab.core.nodes import COMING, GOING, instance_key
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.core.run import Attempt
from hyperpod_jlab.core.scheduler import Scheduler

NodeRepair = Literal["replace", "reboot", "repair"]
"""What HyperPod does to a node; ``repair`` where it is only known that it does something."""

RECOVERING = "recovering"
"""The reason code of a run that goes on once its nodes are back."""

_WORDS: Mapping[NodeRepair, str] = {
    "replace": "replaces",
    "reboot": "reboots",
    "repair": "repairs",
}
_MOST = 3
_BEGIN = "HyperPod "


def under_repair(running: Attempt, observation: Observation | None) -> Attempt:
    """A running attempt, with the scheduler's word that it recovers; as it is where there is none, or it is being cancelled."""
    if observation is None or running.state != "running" or running.reason_code == "cancelling":
        return running
    if observation.state != "running" or observation.reason_code != RECOVERING:
        return running
    return replace(running, reason=observation.reason, reason_code=RECOVERING)


def may_recover(word: Observation) -> bool:
    """Whether a run of which this is said may be on a node under repair, or wait since it was, and nothing of it is said yet."""
    return (
        word.state in {"running", "waiting"}
        and word.reason_code != "held"
        and not is_of_repair(word.reason, word.reason_code)
    )


def is_of_repair(reason: str | None, code: str | None) -> bool:
    """Whether a reason is one of `recovering`."""
    return code == RECOVERING and (reason or "").startswith(_BEGIN)


def recovering(
    word: Observation, nodes: Iterable[str], repairs: Mapping[str, NodeRepair], scheduler: Scheduler
) -> Observation:
    """The word on a run, with the repair of its nodes as its reason; as it is where none of them is under repair.

    Args:
        word: What the scheduler says of it.
        nodes: The nodes of its newest attempt.
        repairs: What is done to nodes, by their names.
        scheduler: The cluster's scheduler.
    """
    on = sorted(set(nodes) & repairs.keys())
    if not on or not may_recover(word):
        return word
    more = f" and {len(on) - _MOST} more" if len(on) > _MOST else ""
    reason = f"{_BEGIN}{_WORDS[repairs[on[0]]]} {', '.join(on[:_MOST])}{more}, on which it "
    if word.state == "running":
        reason += f"runs; {scheduler.after_repair}"
    else:
        said = f"; {scheduler.says}{word.reason}" if word.reason else ""
        reason += f"ran{said}"
    return word.model_copy(update={"reason": reason, "reason_code": RECOVERING})


def aws_repairs(
    scheduler: Scheduler,
    instances: Sequence[Instance],
    nodes: Iterable[str],
    begun_at: float | None,
) -> dict[str, NodeRepair]:
    """What AWS does to nodes of a run, as the states of instances tell. Those that run, or of which nothing can be said, are left out.

    Args:
        scheduler: The cluster's scheduler.
        instances: All instances of the cluster.
        nodes: The nodes, by the scheduler's names.
        begun_at: When the run's newest attempt began (Unix seconds): an instance that was launched later is another one.
    """
    by_key: dict[str, list[Instance]] = {}
    for one in instances:
        key = instance_key(scheduler, one)
        if key is not None:
            by_key.setdefault(key, []).append(one)
    coming = any(one.state in COMING for one in instances)
    found: dict[str, NodeRepair] = {}
    for node in nodes:
        here = by_key.get(node.removeprefix("hyperpod-").partition(".")[0].lower(), [])
        action = _repair_of(here, begun_at, replaced=coming and not scheduler.names_nodes_by_host)
        if action is not None:
            found[node] = action
    return found


def _repair_of(
    here: Sequence[Instance], begun_at: float | None, *, replaced: bool
) -> NodeRepair | None:
    """What is done to the node of these instances: of several, that of the old one and those that take its place.

    Args:
        here: The instances.
        begun_at: When the attempt began.
        replaced: Whether a node that has no instance any more is one whose successor is on its way.
    """
    if not here:
        return "replace" if replaced else None
    if any(one.state == "running" for one in here):
        return None
    if any(one.state in COMING for one in here):
        newest = max(one.launched_at or 0.0 for one in here)
        later = begun_at is not None and newest > begun_at
        return "replace" if later or len(here) > 1 else "reboot"
    if any(one.state == "ending" for one in here):
        return "replace"
    return "repair" if any(one.state in GOING for one in here) else None
