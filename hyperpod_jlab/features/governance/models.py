"""Task governance of HyperPod clusters on EKS: what each team has of a cluster, and how waiting work is ordered.

`status` is AWS' own word, kept as it came; `state` is the same in our words.
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
"""Words for the states of quotas and policies, by the API's."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"


@dataclass(frozen=True)
class Allocation:
    """What a team has of one instance type; None where AWS does not say it.

    Attributes:
        instance_type: The type.
        count: Whole instances.
        accelerators: GPUs or the like.
        cpus: Virtual CPUs.
        memory_gib: Memory in GiB.
        partition: Kind of the parts of GPUs that are counted, such as ``mig-1g.10gb``.
        partitions: How many of them.
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
    """What a team has of a cluster.

    Attributes:
        quota_id: Its id.
        name: Its name.
        team: The team.
        status: AWS' word for its state.
        enabled: Whether it counts.
        weight: The team's weight when idle compute is shared, from 0 to 100.
        allocated: What is the team's own.
        sharing: ``Lend``, ``DontLend`` or ``LendAndBorrow``, or a newer word of AWS.
        borrow_percent: How much idle compute the team may borrow, in percent of its own.
        borrow_most: The most that it may borrow by instance type, where that is said.
        preemption: ``LowerPriority`` or ``Never``: whether work of the team ends less important work of its own.
        reason: Why it failed.
        used: What Kueue says is in use of it; None where nobody was asked.
        running: How many of the team's workloads are admitted.
        waiting: How many wait.
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
        """The state in our words; ``disabled`` where it is well but does not count."""
        state = STATES.get(self.status, self.status)
        return "disabled" if state == "active" and not self.enabled else state

    @property
    def failed(self) -> bool:
        """Whether AWS can say why it failed."""
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
    """How important work is: of a greater weight goes first."""

    name: str
    weight: int

    @property
    @wire_property
    def label(self) -> str:
        """The value of the label `PRIORITY_LABEL` of work that has it."""
        return f"{self.name}-priority"


@dataclass(frozen=True)
class ClusterPolicy(Wire):
    """How waiting work of a cluster is ordered, and idle compute shared.

    Attributes:
        policy_id: Its id.
        name: Its name.
        status: AWS' word for its state.
        fair_share: ``Enabled``: idle compute is shared by the teams' weights; ``Disabled``: who comes first has it.
        idle_sharing: ``Enabled``: what is no team's own can be borrowed too.
        priorities: The priority classes, the most important first.
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
        """The state in our words."""
        return STATES.get(self.status, self.status)


@dataclass(frozen=True)
class Governance:
    """The task governance of a cluster; what could not be had is said in the notes."""

    cluster: str
    quotas: tuple[TeamQuota, ...] = ()
    policies: tuple[ClusterPolicy, ...] = ()
    notes: tuple[str, ...] = field(default=())


def with_use(quotas: Iterable[TeamQuota], queues: Sequence[Queue]) -> tuple[TeamQuota, ...]:
    """Quotas with what Kueue says of the teams' cluster queues. A team whose queue is not seen stays as it is.

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
    """Priority classes, the most important first."""
    return tuple(sorted(priorities, key=lambda priority: (-priority.weight, priority.name)))
