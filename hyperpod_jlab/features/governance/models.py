"""Task governance of HyperPod clusters on EKS: the teams' quotas, and how waiting work is prioritized.

`status` is AWS' own value, unchanged; `state` is the normalized value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hyperpod_jlab.core.cluster import Queue, Quota
from hyperpod_jlab.core.wire import Wire, wire_property

STATES = {
    "Creating": "creating",
    "Created": "active",
    "Updating": "updating",
    "Updated": "active",
    "Deleting": "deleting",
    "Deleted": "deleted",
    "CreateFailed": "failed",
    "CreateRollbackFailed": "failed",
    "UpdateFailed": "failed",
    "UpdateRollbackFailed": "failed",
    "DeleteFailed": "failed",
    "DeleteRollbackFailed": "failed",
}
"""States of quotas and policies, by the API's values."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"


@dataclass(frozen=True)
class Allocation:
    """A team's allocation of one instance type; None if AWS does not report it.

    Attributes:
        instance_type: The type.
        count: Whole instances.
        accelerators: Number of GPUs or other accelerators.
        cpus: Virtual CPUs.
        memory_gib: Memory in GiB.
        partition: The type of GPU partitions, such as ``mig-1g.10gb``.
        partitions: Number of GPU partitions.
    """

    instance_type: str
    count: int | None = None
    accelerators: int | None = None
    cpus: float | None = None
    memory_gib: float | None = None
    partition: str | None = None
    partitions: int | None = None


@dataclass(frozen=True)
class TeamQuota(Wire):
    """A team's quota of a cluster.

    Attributes:
        quota_id: Its id.
        name: Its name.
        team: The team.
        status: Its state as AWS reports it.
        enabled: Whether it is in effect.
        weight: The team's weight when idle compute is shared, from 0 to 100.
        allocated: The team's own allocation.
        sharing: ``Lend``, ``DontLend`` or ``LendAndBorrow``, or a newer value of AWS.
        borrow_percent: How much idle compute the team may borrow, in percent of its own.
        borrow_most: Limits of borrowing by instance type, if set.
        preemption: ``LowerPriority`` or ``Never``: whether the team's work preempts its own work of lower priority.
        reason: Why it failed.
        used: Usage according to Kueue; None if not queried.
        running: Number of the team's admitted workloads.
        waiting: Number of the team's waiting workloads.
    """

    quota_id: str
    name: str
    team: str
    status: str
    enabled: bool = True
    weight: int | None = None
    allocated: tuple[Allocation, ...] = ()
    sharing: str | None = None
    borrow_percent: int | None = None
    borrow_most: tuple[Allocation, ...] = ()
    preemption: str | None = None
    reason: str | None = None
    used: tuple[Quota, ...] | None = None
    running: int | None = None
    waiting: int | None = None

    @property
    @wire_property
    def state(self) -> str:
        """The normalized state; ``disabled`` if it is healthy but not in effect."""
        state = STATES.get(self.status, self.status)
        return "disabled" if state == "active" and not self.enabled else state

    @property
    def failed(self) -> bool:
        """Whether AWS can tell why it failed."""
        return self.state == "failed"

    @property
    @wire_property
    def namespace(self) -> str:
        """The team's namespace."""
        return f"hyperpod-ns-{self.team}"

    @property
    @wire_property
    def queue(self) -> str:
        """The team's local queue of Kueue."""
        return f"{self.namespace}-localqueue"

    @property
    def cluster_queue(self) -> str:
        """The team's cluster queue of Kueue."""
        return f"{self.namespace}-clusterqueue"


@dataclass(frozen=True)
class PriorityClass(Wire):
    """A priority class: work with a higher weight starts first."""

    name: str
    weight: int

    @property
    @wire_property
    def label(self) -> str:
        """The value of the label `PRIORITY_LABEL` for work of this class."""
        return f"{self.name}-priority"


@dataclass(frozen=True)
class ClusterPolicy(Wire):
    """How a cluster prioritizes waiting work and shares idle compute.

    Attributes:
        policy_id: Its id.
        name: Its name.
        status: Its state as AWS reports it.
        fair_share: ``Enabled``: idle compute is shared by the teams' weights; ``Disabled``: first come, first served.
        idle_sharing: ``Enabled``: unallocated compute can be borrowed too.
        priorities: The priority classes, highest first.
        reason: Why it failed, or why it could not be described.
    """

    policy_id: str
    name: str
    status: str
    fair_share: str | None = None
    idle_sharing: str | None = None
    priorities: tuple[PriorityClass, ...] = ()
    reason: str | None = None

    @property
    @wire_property
    def state(self) -> str:
        return STATES.get(self.status, self.status)


@dataclass(frozen=True)
class Governance:
    """The task governance of a cluster; the notes say what is missing."""

    cluster: str
    quotas: tuple[TeamQuota, ...] = ()
    policies: tuple[ClusterPolicy, ...] = ()
    notes: tuple[str, ...] = field(default=())


def with_use(quotas: Iterable[TeamQuota], queues: Sequence[Queue]) -> tuple[TeamQuota, ...]:
    """Quotas with the usage of the teams' cluster queues according to Kueue. A team without a visible queue is unchanged.

    Args:
        quotas: The quotas.
        queues: The local queues that this user sees, of all namespaces.
    """
    return tuple(_used(quota, queues) for quota in quotas)


def _used(quota: TeamQuota, queues: Sequence[Queue]) -> TeamQuota:
    own_queues = [queue for queue in queues if queue.cluster_queue == quota.cluster_queue]
    if not own_queues:
        return quota
    # Local queues of one cluster queue share its quota, but each has its own jobs.
    return replace(
        quota,
        used=own_queues[0].quotas,
        running=sum(queue.running for queue in own_queues),
        waiting=sum(queue.waiting for queue in own_queues),
    )


def in_order(priorities: Iterable[PriorityClass]) -> tuple[PriorityClass, ...]:
    """Priority classes, highest first."""
    return tuple(sorted(priorities, key=lambda priority: (-priority.weight, priority.name)))
