"""Clusters as the user interfaces show them: nodes, queues, all users' jobs, and why a run waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.core.wire import Time

Row = TypeVar("Row")

ChangeField = Literal["time_limit", "queue"]
"""What can be changed about a run or job."""


class Rows(list[Row]):
    """A table's rows, and notes on the table as a whole: what is hidden from this user, and why.

    Args:
        rows: The rows.
        notes: One sentence each.
        as_of: When the scheduler was asked (Unix seconds); None: just now.
    """

    def __init__(self, rows: Iterable[Row], notes: Iterable[str] = (), as_of: float | None = None) -> None:
        super().__init__(rows)
        self.notes = tuple(notes)
        self.as_of = as_of


def notes_of(rows: object) -> tuple[str, ...]:
    """The notes of a table."""
    return rows.notes if isinstance(rows, Rows) else ()


@dataclass(frozen=True)
class GpuTotals:
    """The GPUs of one type on a cluster.

    Attributes:
        type: The type, such as ``h100``; null if the scheduler does not report it.
        used: GPUs in use by jobs; null if this user may not see it.
        free: GPUs that a new job can get; null if this user may not see it.
        unavailable: GPUs without a job on nodes that accept no jobs.
    """

    type: str | None
    total: int
    used: int | None
    free: int | None
    unavailable: int


@dataclass(frozen=True)
class Cluster:
    """A cluster, with data from its scheduler and AWS.

    Attributes:
        name: Its name in the configuration. A cluster that is not configured has its AWS name, or its ARN if the
            configuration uses that name for another cluster.
        orchestrator: ``slurm``, ``kubernetes``, ``local`` or another engine; ``unknown`` if AWS does not report it.
        default: Whether it is the default cluster for runs.
        state: ``up``, or why it accepts no runs; for a cluster that is not configured the state in AWS.
        reason: Why it is not ``up``.
        nodes: Number of nodes.
        running: Number of running jobs.
        waiting: Number of waiting jobs.
        actions: Supported actions on runs and jobs (``cancel``, ``hold`` ...).
        changes: What can be changed about a run or job.
        notes: What is hidden from this user, one sentence each.
        as_of: When the scheduler gave these numbers (Unix seconds); None without an answer so far.
        gpus: Its GPUs by type, most first.
        detail: Further data from its engine.
        configured: Whether it is in the configuration, so that you can submit to it.
        configure: The command that adds it to the configuration; None if it is configured.
        hyperpod: Its data from AWS; None if it is not a HyperPod cluster, or AWS has not answered yet.
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
    gpus: tuple[GpuTotals, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    configured: bool = True
    configure: str | None = None
    hyperpod: HyperpodCluster | None = None


@dataclass(frozen=True)
class Resource:
    """Devices of one name and type: GPUs of a model, slices of GPUs, or other resources that a cluster counts.

    Attributes:
        name: Its name, such as ``gpu`` or ``shard``.
        type: Its type, such as ``h100`` or the MIG profile ``1g.10gb``.
        total: Number of devices.
        used: Devices in use by jobs.
        free: Devices that a new job can get: 0 on a node that accepts no jobs.
        used_at: Indices of the devices in use, if the cluster reports them.
        shared_at: Indices of the devices that jobs use in part.
        first: Index of the first device, if they are indexed.
        accelerator: Whether it is an accelerator.
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
        """Its display name: the type, else the name."""
        return self.type if self.type is not None and self.accelerator else self.full_name

    @property
    def full_name(self) -> str:
        """Name and type, such as ``shard:h100``."""
        return self.name if self.type is None else f"{self.name}:{self.type}"

    def __str__(self) -> str:
        """Tables sort and filter by this."""
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
"""Node states. A powered-off node starts when a job needs it; a draining node finishes its jobs and accepts no others."""

UNUSABLE = frozenset(NODE_STATES) - {"up", "reserved", "powered-off", "starting"}
"""Node states in which no new job can start."""


@dataclass(frozen=True)
class Node:
    """A node, with data from its scheduler and, on HyperPod, AWS. Memory is in bytes, times are Unix seconds, the load is the 1-minute average.

    `state` is one of `NODE_STATES`; for an instance that is not a node of the scheduler, the instance's state. Unknown free amounts are None; `resources`
    is then empty.

    Attributes:
        name: The scheduler's name; for an instance that is not a node of the scheduler, the instance id.
        reason: Why it is in its state.
        instance: Its instance id; None if AWS lists no instance for it.
        instance_state: The state of the instance, normalized.
        instance_status: The same as AWS reports it.
        instance_reason: AWS' message on the state, and why AWS or the scheduler does not list the node.
        launched_at: When the instance was launched.
        host: Its name in the private network.
        image_version: Version of its software.
        image_status: Whether software updates are pending.
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

    @property
    def accelerators_used(self) -> int:
        """Accelerators in use by jobs."""
        return sum(resource.used for resource in self.resources if resource.accelerator)


def gpu_totals(nodes: Iterable[Node]) -> tuple[GpuTotals, ...]:
    """The GPUs of these nodes by type, most first."""
    totals: dict[str | None, GpuTotals] = {}
    for node in nodes:
        if node.accelerators:
            sums = totals.get(node.accelerator_type, GpuTotals(node.accelerator_type, 0, 0, 0, 0))
            totals[node.accelerator_type] = _with_node(sums, node)
    return tuple(sorted(totals.values(), key=lambda one: (-one.total, one.type or "")))


def _with_node(sums: GpuTotals, node: Node) -> GpuTotals:
    total, unavailable = sums.total + node.accelerators, sums.unavailable
    if node.accelerators_free is None or sums.used is None or sums.free is None:
        return GpuTotals(sums.type, total, None, None, unavailable)
    rest = node.accelerators - node.accelerators_used
    free = 0 if node.state in UNUSABLE else rest
    unavailable += rest - free
    return GpuTotals(sums.type, total, sums.used + node.accelerators_used, sums.free + free, unavailable)


@dataclass(frozen=True)
class Quota:
    """A queue's quota of one resource on nodes of one flavor. Memory is in bytes.

    Attributes:
        flavor: The node flavor.
        resource: The resource, by the cluster's own name.
        nominal: The queue's own quota.
        used: Amount in use by jobs, including borrowed quota.
        borrowed: Amount in use that is borrowed from other queues.
        free: What a new job can get now, including what it could borrow.
        most: The most that one job can ever get.
    """

    flavor: str
    resource: str
    nominal: float
    used: float = 0
    borrowed: float = 0
    free: float = 0
    most: float = 0

    def __str__(self) -> str:
        """Tables sort and filter by this."""
        return f"{self.flavor} {self.resource} {self.free:g}/{self.most:g}"


@dataclass(frozen=True)
class Queue:
    """A queue of jobs. Times are in seconds.

    Attributes:
        reason: Why it starts no jobs.
        cluster_queue: The name of the quota that it shares with other queues.
        quotas: Its quotas, if jobs get quota instead of nodes.
        state: ``up``; ``down`` (jobs wait, none starts), ``draining`` (no new jobs) or ``inactive`` (neither).
        usable: Whether this user may use it; None if unknown.
        groups: Unix groups that may use it; empty: all.
        accounts: Accounts that may use it; empty: all.
        qos: QoS that may use it; empty: all.
        denied: Accounts and QoS that may not use it.
        time_limit: Maximum time limit of a job; None without a limit.
        default_time: Time limit of a job that requests none.
        priority: Jobs of queues with a higher priority start first.
        max_nodes: Maximum number of nodes per job.
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


JOB_STATES = (*("waiting", "held", "running", "suspended", "succeeded", "failed", "cancelled"), "unknown")
"""Job states; the reason tells how a failed job failed. If a job is gone and its end was not seen, the state is unknown."""

JOB_ENDED = frozenset({"succeeded", "failed", "cancelled", "unknown"})


@dataclass(frozen=True)
class Job:
    """A job in the queue of all users. Times are Unix seconds, the time limit is in seconds.

    Attributes:
        state: One of `JOB_STATES`.
        mine: Whether it is this user's.
        run_id: Set if it is a run of this user on this storage partition.
        array: The tasks of an array that this entry stands for, such as ``3-5%2``.
        accelerators: Number of accelerators that it has or requests, on all nodes together.
        resources: The same by type, with other devices.
        reason_detail: The cluster's own message, if `reason` rephrases it.
        ends_at: When it ended; for a running job, when it reaches its time limit.
        expected_start: When the scheduler plans to start it, if known.
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
    """A user whose jobs use what a run waits for: accelerators, nodes, and jobs."""

    user: str
    accelerators: int = 0
    nodes: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class StartNow:
    """A change with which a waiting run would start now; null for what stays.

    Attributes:
        text: The change in words, with the options of `hpj submit`.
        nodes: The number of nodes.
        gpus_per_node: The accelerators on each node.
        queue: The queue.
        time_limit: The time limit in seconds.
    """

    text: str
    nodes: int | None = None
    gpus_per_node: int | None = None
    queue: str | None = None
    time_limit: int | None = None


@dataclass(frozen=True)
class Blocker:
    """A running job that uses what a run waits for.

    Attributes:
        job: The scheduler's id of it.
        name: Its name.
        user: Its user.
        run_id: The run, if it is one of ours.
        nodes: Its nodes.
        accelerators: Its accelerators.
        ends_at: When its time limit ends it; null if unknown.
    """

    job: str
    name: str
    user: str
    run_id: str | None = None
    nodes: int = 1
    accelerators: int = 0
    ends_at: Time | None = None


@dataclass(frozen=True)
class WaitReason:
    """Why a run waits.

    Attributes:
        run_id: The run.
        reason: A sentence.
        reason_code: A stable code.
        position: Its position in the queue, from 1; None if it does not wait for its turn.
        counted: Which jobs the position counts.
        ahead: The first jobs before it.
        expected_start: When the cluster expects to start it (Unix seconds).
        holders: Users who hold what it may wait for, most first.
        blockers: The running jobs among those, as far as they are known one by one, the first to end first; at most 20.
        would_start_now: Alternatives that would start now.
        tried: How many alternatives were tried.
    """

    run_id: str
    reason: str | None
    reason_code: str | None
    position: int | None = None
    counted: str | None = None
    ahead: tuple[str, ...] = ()
    expected_start: Time | None = None
    holders: tuple[Holder, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    would_start_now: tuple[StartNow, ...] = ()
    tried: int = 0
