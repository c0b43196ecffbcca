"""What a user does to nodes of a cluster, several at once: what will come of it, and what came of it for each."""

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
"""On the wire the thing is its name."""

NodeActionKind = Literal["reboot", "replace", "drain", "resume"]
"""What can be done to a node: the first two by AWS, the others by the scheduler."""

NodeAction = TypeAliasType("NodeAction", NodeActionKind)
"""The same, under a name in the schemas."""

RepairKind = Literal["reboot", "replace"]
"""What AWS does to the instance of a node."""

DrainKind = Literal["drain", "resume"]
"""What the scheduler does: no new jobs start on a drained node, and those that run go on; resume takes that back."""

NODE_ACTIONS: tuple[NodeActionKind, ...] = ("reboot", "replace", "drain", "resume")

MAX_NODES = 500
"""The most nodes that one request may name."""

MAX_REASON_LENGTH = 200
"""Characters of a reason: what tables can show."""


@dataclass(frozen=True)
class NodePlan:
    """What is to be done to one node.

    Attributes:
        name: How the user named it.
        instance: Its instance, where AWS knows it.
        node: What the scheduler knows of it.
        jobs: The jobs that run on it; None where that is not known.
        effects: What will become of it and of them, a sentence each.
        refusal: Why it will not be tried.
    """

    name: str
    instance: Annotated[Instance, AS_NAME] | None = None
    node: Annotated[Node, AS_NAME] | None = None
    jobs: tuple[Job, ...] | None = None
    effects: tuple[str, ...] = ()
    refusal: HyperpodError | None = None

    @property
    def label(self) -> str:
        """How it is called for people: as it was named, with the name that the other side has for it."""
        other_names = (self.instance and self.instance.name, self.node and self.node.name)
        extra_names = [name for name in other_names if name and name != self.name]
        return f"{self.name} ({', '.join(extra_names)})" if extra_names else self.name


@dataclass(frozen=True)
class NodeActionPlan(Wire):
    """What is to be done to which nodes of which cluster, and what there is to know before.

    Attributes:
        action: What is to be done.
        cluster: The HyperPod cluster (name or ARN), or the configured one for what its scheduler does.
        nodes: The nodes, each once, in the order in which they were named.
        effects: What will become of all of them, a sentence each.
        notes: What could not be found out, a sentence each.
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
        """The nodes for which it will be tried."""
        return tuple(node for node in self.nodes if node.refusal is None)


@dataclass(frozen=True)
class NodeResult(Wire):
    """What came of an action on one node: no error when AWS or the scheduler took it.

    Attributes:
        name: How the user named the node.
        instance: Its instance id; a replaced node gets another.
        node: The scheduler's name for it.
        error: Why it was not done, or is not known to be.
    """

    name: str
    instance: str | None = None
    node: str | None = None
    error: HyperpodError | None = None

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether AWS or the scheduler took it; a reboot or replacement goes on after that."""
        return self.error is None


def one_line(reason: str | None) -> str | None:
    """A reason as schedulers keep it: in one line, without characters that a terminal would obey.

    Raises:
        InvalidInputError: It is too long, or it is HyperPod's own order to repair a node.
    """
    line = " ".join(
        "".join(character if character.isprintable() else " " for character in reason or "").split()
    )
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
    """A reason goes with drain only.

    Raises:
        InvalidInputError: It is given with something else.
    """
    if reason is not None and action != "drain":
        raise InvalidInputError(
            f"a reason can be given only with drain, not with {action}", detail={"field": "reason"}
        )


# --------------------------------------------------------------------------------------------------
# What an action on a node does to it and to what runs there, in sentences: what a user is told before it is done.
#
# How long a repair takes is from AWS' field guide (awsome-distributed-ai, hyperpod-mental-model), the loss of disks from SageMaker's API model.

_EFFECTS: dict[NodeActionKind, tuple[str, ...]] = {
    "reboot": (
        "all work on the nodes ends; instance ids and disks stay; this usually takes 1 to 3 minutes",
    ),
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
    """What it does to all nodes."""
    return _EFFECTS[action]


def node_effects(
    action: NodeActionKind,
    *,
    scheduler: Scheduler | None,
    role: str | None = None,
    node: Node | None = None,
    jobs: Sequence[Job] | None = None,
) -> tuple[str, ...]:
    """What it does to one node and its jobs.

    Args:
        action: What is done.
        scheduler: Who schedules there; None where that is not known.
        role: What its instance group is to Slurm, such as ``Controller``.
        node: What the scheduler knows of it.
        jobs: The jobs that run on it; None where that is not known.
    """
    if action == "resume":
        is_requested = node is not None and (node.reason or "").startswith("Action:")
        return (
            ("a repair by HyperPod was requested; after this, you may have to request it again",)
            if is_requested
            else ()
        )
    effects = (
        [_ROLE_EFFECTS[role]] if action in {"reboot", "replace"} and role in _ROLE_EFFECTS else []
    )
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
