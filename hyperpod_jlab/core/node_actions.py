"""Actions on nodes of a cluster, several at once: their effects, and the result for each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Literal

from typing_extensions import TypeAliasType

from hyperpod_jlab.core.cluster import Job, Node
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.hyperpod import Instance
from hyperpod_jlab.core.scheduler import Scheduler
from hyperpod_jlab.core.wire import HIDDEN, As, Wire, wire_property

AS_NAME = As(str, attrgetter("name"))
"""Serialized as its name."""

NodeActionKind = Literal["reboot", "replace", "drain", "resume"]
"""Actions on a node: the first two by AWS, the others by the scheduler."""

NodeAction = TypeAliasType("NodeAction", NodeActionKind)
"""The same, under a name of its own in the schemas."""

RepairKind = Literal["reboot", "replace"]
"""AWS' actions on a node's instance."""

DrainKind = Literal["drain", "resume"]
"""The scheduler's actions: a drained node starts no new jobs, and its running jobs continue; resume reverts that."""

NODE_ACTIONS: tuple[NodeActionKind, ...] = ("reboot", "replace", "drain", "resume")

MAX_NODES = 500
"""Maximum number of nodes per request."""

MAX_REASON_LENGTH = 200
"""Maximum length of a reason, in characters: what fits into tables."""


@dataclass(frozen=True)
class NodePlan:
    """The plan for one node.

    Attributes:
        name: The name that the user gave.
        instance: Its instance, if AWS lists it.
        node: Its data from the scheduler.
        jobs: Its running jobs; None if unknown.
        effects: The effects on it and its jobs, one sentence each.
        refusal: Why the action will not be tried.
    """

    name: str
    instance: Annotated[Instance, AS_NAME] | None = None
    node: Annotated[Node, AS_NAME] | None = None
    jobs: tuple[Job, ...] | None = None
    effects: tuple[str, ...] = ()
    refusal: HyperpodError | None = None

    @property
    def label(self) -> str:
        """Its display name: the given name, with the other side's name."""
        other_names = (self.instance and self.instance.name, self.node and self.node.name)
        extra_names = [name for name in other_names if name and name != self.name]
        return f"{self.name} ({', '.join(extra_names)})" if extra_names else self.name


@dataclass(frozen=True)
class NodeActionPlan(Wire):
    """The plan of an action on nodes of a cluster.

    Attributes:
        action: The action.
        cluster: The HyperPod cluster (name or ARN), or the configured cluster for the scheduler's actions.
        nodes: The nodes, without duplicates, in the given order.
        effects: The effects on all of them, one sentence each.
        notes: What is unknown, one sentence each.
        reason: The user's reason in one line.
        region: The region of the HyperPod cluster; None: see `aws.session.Aws`.
    """

    action: NodeAction
    cluster: str
    nodes: tuple[NodePlan, ...]
    effects: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None
    region: str | None = field(default=None, metadata=HIDDEN)

    @property
    def possible(self) -> tuple[NodePlan, ...]:
        """The nodes for which the action will be tried."""
        return tuple(node for node in self.nodes if node.refusal is None)


@dataclass(frozen=True)
class NodeResult(Wire):
    """The result of an action on one node; no error if AWS or the scheduler accepted it.

    Attributes:
        name: The name that the user gave.
        instance: Its instance id; a replaced node gets another.
        node: The scheduler's name of it.
        error: Why it failed, or why the outcome is unknown.
    """

    name: str
    instance: str | None = None
    node: str | None = None
    error: HyperpodError | None = None

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether AWS or the scheduler accepted it; a reboot or replacement continues after that."""
        return self.error is None


def one_line(reason: str | None) -> str | None:
    """A reason in the form that schedulers store: one line, without control characters.

    Raises:
        InvalidInputError: It is too long, or it is HyperPod's own command to repair a node.
    """
    line = " ".join("".join(character if character.isprintable() else " " for character in reason or "").split())
    if len(line) > MAX_REASON_LENGTH:
        raise InvalidInputError(
            f"the reason has {len(line)} characters, but at most {MAX_REASON_LENGTH} are allowed",
            detail={"field": "reason"},
        )
    if line.lower().startswith("action:"):
        raise InvalidInputError(
            "a reason cannot begin with 'Action:', because HyperPod's agent treats it as a command",
            hint="to repair a node, use hpj node reboot or hpj node replace",
            detail={"field": "reason"},
        )
    return line or None


def check_reason(action: NodeActionKind, reason: str | None) -> None:
    """Only drain takes a reason.

    Raises:
        InvalidInputError: Another action has one.
    """
    if reason is not None and action != "drain":
        raise InvalidInputError(f"a reason can be given only with drain, not with {action}", detail={"field": "reason"})


# --------------------------------------------------------------------------------------------------
# The effects of an action on a node and its jobs, as sentences that the user confirms.
#
# The duration of a repair is from AWS' field guide (awsome-distributed-ai, hyperpod-mental-model),
# the loss of disks from SageMaker's API model.

_EFFECTS: dict[NodeActionKind, tuple[str, ...]] = {
    "reboot": ("all work on the nodes ends; instance ids and disks stay; this usually takes 1 to 3 minutes",),
    "replace": (
        "all work on the nodes ends; each gets new hardware and a new instance id; this usually takes 20 to 30 minutes",
        "data on the nodes' own disks is lost; data on FSx stays",
    ),
    "drain": ("no new jobs start on the nodes; running jobs continue",),
    "resume": ("new jobs can start on the nodes again",),
}

_ROLE_EFFECTS = {
    "Controller": "it is Slurm's controller: until it is back, no jobs can be submitted; running jobs continue",
    "Login": "it is a login node: users who are logged in there are disconnected",
}


def general_effects(action: NodeActionKind) -> tuple[str, ...]:
    """The effects on all nodes."""
    return _EFFECTS[action]


def node_effects(
    action: NodeActionKind,
    *,
    scheduler: Scheduler | None,
    role: str | None = None,
    node: Node | None = None,
    jobs: Sequence[Job] | None = None,
) -> tuple[str, ...]:
    """The effects on one node and its jobs.

    Args:
        action: The action.
        scheduler: The scheduler; None if unknown.
        role: The Slurm role of its instance group, such as ``Controller``.
        node: Its data from the scheduler.
        jobs: Its running jobs; None if unknown.
    """
    if action == "resume":
        is_requested = node is not None and (node.reason or "").startswith("Action:")
        return (
            ("a repair by HyperPod was requested; after this, you may have to request it again",)
            if is_requested
            else ()
        )
    effects = [_ROLE_EFFECTS[role]] if action in {"reboot", "replace"} and role in _ROLE_EFFECTS else []
    if jobs is None:
        return tuple(effects)
    if not jobs:
        return (*effects, "no job runs on it")
    return (*effects, *(_job_effect(action, scheduler, job) for job in jobs))


def _job_effect(action: NodeActionKind, scheduler: Scheduler | None, job: Job) -> str:
    label = f"job {job.scheduler_id} ({job.name}, of {job.user}"
    full_label = f"{label}, run {job.run_id})" if job.run_id else f"{label})"
    if action == "drain":
        return f"{full_label} continues"
    outcome = scheduler.after_node_loss if scheduler is not None else None
    return f"{full_label} ends: {outcome}" if outcome else f"{full_label} ends"
