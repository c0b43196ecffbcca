"""Clusters as the faces show them: nodes, queues, other people's jobs, and why a run waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.wire import Time

Row = TypeVar("Row")

ChangeField = Literal["time_limit", "queue"]
"""What of a run or job can be changed."""


class Rows(list[Row]):
    """A table's rows, and what is to be said of the table as a whole: what is hidden from this user, and why.

    Args:
        rows: The rows.
        notes: A sentence each.
    """

    def __init__(self, rows: Iterable[Row], notes: Iterable[str] = ()) -> None:
        super().__init__(rows)
        self.notes = tuple(notes)


def notes_of(rows: object) -> tuple[str, ...]:
    """What is to be said of a table as a whole."""
    return rows.notes if isinstance(rows, Rows) else ()


@dataclass(frozen=True)
class Cluster:
    """A cluster: what its scheduler and AWS know of it.

    Attributes:
        name: Its name in the configuration. A cluster that is not configured has AWS' name; its ARN where the configuration uses that name for another.
        orchestrator: ``slurm``, ``kubernetes``, ``local`` or another engine; ``unknown`` where AWS does not say it.
        default: Whether runs go there when no cluster is named.
        state: ``up``, or why it takes no runs; of a cluster that is not configured the state in AWS.
        reason: Why it is not ``up``.
        nodes: How many nodes it has.
        running: How many jobs run.
        waiting: How many jobs wait.
        actions: What can be done there to runs and jobs (``cancel``, ``hold`` ...).
        changes: What of a run or job can be changed.
        notes: What of it is hidden from this user, a sentence each.
        as_of: When the numbers were seen (Unix seconds), where the scheduler does not answer now.
        detail: What else its engine says.
        configured: Whether it is in the configuration, so that you can submit to it.
        configure: The command that adds it to the configuration; None where it is there.
        hyperpod: What AWS knows of it; None where it is no HyperPod cluster, or AWS has not said it (yet).
    """

    name: str
    orchestrator: str
    default: bool
    state: str
    reason: str | None = None
    nodes: int | None = None
    running: int | None = None
    waiting: int | None = None
    actions: tuple[str, ...] = ()
    changes: tuple[ChangeField, ...] = ()
    notes: tuple[str, ...] = ()
    as_of: Time | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    configured: bool = True
    configure: str | None = None
    hyperpod: HyperpodCluster | None = None


@dataclass(frozen=True)
class Resource:
    """Devices of one name and type: GPUs of a model, parts of GPUs, other things that a cluster counts.

    Attributes:
        name: What it is called, such as ``gpu`` or ``shard``.
        type: Its type, such as ``h100`` or the MIG profile ``1g.10gb``.
        total: How many there are.
        used: How many jobs have.
        free: How many a new job can get: none on a node that takes no jobs.
        used_at: Numbers of the devices that jobs have, where the cluster says them.
        shared_at: Numbers of the devices that jobs have parts of.
        first: Number of the first device, where they are numbered.
        accelerator: Whether it computes.
    """

    name: str
    type: str | None
    total: int
    used: int = 0
    free: int = 0
    used_at: tuple[int, ...] = ()
    shared_at: tuple[int, ...] = ()
    first: int | None = None
    accelerator: bool = False

    @property
    def label(self) -> str:
        """Its type, else its name: what people call it."""
        return self.type if self.type is not None and self.accelerator else self.full_name

    @property
    def full_name(self) -> str:
        """Name and type, such as ``shard:h100``."""
        return self.name if self.type is None else f"{self.name}:{self.type}"

    def __str__(self) -> str:
        """As tables sort and filter by it."""
        return f"{self.full_name} {self.free}/{self.total}"


NODE_STATES = (
    "up",
    "reserved",
    "draining",
    "drained",
    "maintenance",
    "failing",
    "failed",
    "down",
    "rebooting",
    "starting",
    "powering-off",
    "powered-off",
    "not-answering",
    "misconfigured",
    "unknown",
)
"""The words for a node's state. A powered-off one starts when a job needs it; a draining one ends its jobs and takes no others."""

UNUSABLE = frozenset(NODE_STATES) - {"up", "reserved", "powered-off", "starting"}
"""States of nodes that give no new job anything."""


@dataclass(frozen=True)
class Node:
    """A node, as its scheduler and, on HyperPod, AWS know it. Memory is in bytes, times are Unix seconds, the load is that of the last minute.

    `state` is one of `NODE_STATES`; of an instance that is no node of the scheduler (yet) the state of the instance. What is free is None where it cannot
    be known; its `resources` are not told then.

    Attributes:
        name: The scheduler's name; of an instance that is no node of the scheduler the instance id.
        reason: Why it is in its state.
        instance: Its instance id; None where AWS lists no instance of it.
        instance_state: The state of the instance in our words.
        instance_status: The same in AWS' word.
        instance_reason: AWS' sentence on that, and why AWS or the scheduler does not have the node.
        launched_at: When the instance was started.
        host: Its name in the private network.
        image_version: Version of its software.
        image_status: Whether updates of it are due.
    """

    name: str
    state: str
    reason: str | None = None
    reason_since: Time | None = None
    reason_by: str | None = None
    cpus: int | None = None
    cpus_free: int | None = None
    cpu_load: float | None = None
    memory: int | None = None
    memory_free: int | None = None
    accelerators: int = 0
    accelerators_free: int | None = 0
    accelerator_type: str | None = None
    resources: tuple[Resource, ...] = ()
    features: tuple[str, ...] = ()
    instance_type: str | None = None
    instance_group: str | None = None
    comment: str | None = None
    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    instance: str | None = None
    instance_state: str | None = None
    instance_status: str | None = None
    instance_reason: str | None = None
    launched_at: Time | None = None
    host: str | None = None
    image_version: str | None = None
    image_status: str | None = None


@dataclass(frozen=True)
class Quota:
    """What a queue may give of one resource on nodes of one kind. Memory is in bytes.

    Attributes:
        flavor: The kind of nodes.
        resource: What is counted, by the cluster's own name for it.
        nominal: What is the queue's own.
        used: What jobs have of it now, with what is borrowed.
        borrowed: What of that other queues lend it.
        free: What a new job can get now, with what others would lend.
        most: What one job can ever get.
    """

    flavor: str
    resource: str
    nominal: float
    used: float = 0
    borrowed: float = 0
    free: float = 0
    most: float = 0

    def __str__(self) -> str:
        """As tables sort and filter by it."""
        return f"{self.flavor} {self.resource} {self.free:g}/{self.most:g}"


@dataclass(frozen=True)
class Queue:
    """A place where jobs wait. Times are in seconds.

    Attributes:
        reason: Why nothing starts from it.
        cluster_queue: The quota that it shares with other queues, by its name.
        quotas: What it may give, where jobs get quota and not nodes.
        state: ``up``; ``down`` (jobs wait, none starts), ``draining`` (no new ones) or ``inactive`` (neither).
        usable: Whether this user may use it; None when that is not known.
        groups: Unix groups that may use it; empty: all.
        accounts: Accounts that may; empty: all.
        qos: QoS that may; empty: all.
        denied: Accounts and QoS that may not.
        time_limit: The longest time that a job may ask for; None without a limit.
        default_time: The time of a job that asks for none.
        priority: Jobs of queues with a higher one go first.
        max_nodes: The most nodes that a job may have.
    """

    name: str
    state: str
    default: bool = False
    usable: bool | None = None
    groups: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    nodes: int | None = None
    nodes_free: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    slots: int | None = None
    slots_free: int | None = None
    cpus: int | None = None
    cpus_free: int | None = None
    accelerators: int = 0
    accelerators_free: int = 0
    resources: tuple[Resource, ...] = ()
    time_limit: int | None = None
    default_time: int | None = None
    priority: int | None = None
    running: int = 0
    waiting: int = 0
    reason: str | None = None
    cluster_queue: str | None = None
    quotas: tuple[Quota, ...] = ()


JOB_STATES = ("waiting", "held", "running", "suspended", "succeeded", "failed", "cancelled")
"""The words for a job's state; how a failed one failed is its reason."""

JOB_ENDED = frozenset({"succeeded", "failed", "cancelled"})


@dataclass(frozen=True)
class Job:
    """One entry of the queue of all users. Times are Unix seconds, the time limit is in seconds.

    Attributes:
        state: One of `JOB_STATES`.
        mine: Whether it is this user's.
        run_id: Set when it is a run of this user's that lies on this storage partition.
        array: The tasks of an array that the entry stands for, such as ``3-5%2``.
        accelerators: How many it has, or wants, on all nodes together.
        resources: The same by type, with other devices.
        reason_detail: What the cluster itself said, where the reason puts it into words.
        ends_at: When it ended; of a running one, when it will have reached its time limit.
        expected_start: When the scheduler plans to start it, if it has a plan.
    """

    scheduler_id: str
    name: str
    user: str
    state: str
    mine: bool = False
    queue: str | None = None
    reason: str | None = None
    reason_code: str | None = None
    reason_detail: str | None = None
    nodes: tuple[str, ...] = ()
    node_count: int | None = None
    cpus: int | None = None
    accelerators: int = 0
    resources: tuple[Resource, ...] = ()
    array: str | None = None
    account: str | None = None
    qos: str | None = None
    priority: int | None = None
    time_limit: int | None = None
    run_id: str | None = None
    submitted_at: Time | None = None
    started_at: Time | None = None
    ends_at: Time | None = None
    expected_start: Time | None = None


@dataclass(frozen=True)
class Holder:
    """A user who holds what a run waits for: accelerators, nodes, and the jobs they are in."""

    user: str
    accelerators: int = 0
    nodes: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class WaitReason:
    """Why a run waits.

    Attributes:
        run_id: The run.
        reason: A sentence.
        reason_code: A word for programs.
        position: Its place among those that wait for their turn, from 1; None when it does not wait for that.
        counted: Who is counted for the place.
        ahead: The first of those before it.
        expected_start: When the cluster expects to start it (Unix seconds).
        holders: Who holds what it may wait for, most first.
        would_start_now: What would start now in its place, a sentence each.
        tried: How many other ways were asked for.
    """

    run_id: str
    reason: str | None
    reason_code: str | None
    position: int | None = None
    counted: str | None = None
    ahead: tuple[str, ...] = ()
    expected_start: Time | None = None
    holders: tuple[Holder, ...] = ()
    would_start_now: tuple[str, ...] = ()
    tried: int = 0
