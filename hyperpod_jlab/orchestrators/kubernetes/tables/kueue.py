"""Kueue's objects as small rows: local queues, cluster queues with their quota, workloads, priority classes.

Fields of kueue.x-k8s.io/v1beta1 (0.14 was seen) and of v1beta2, which has other names for a few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.tables.quantity import milli

GROUP = "kueue.x-k8s.io"
VISIBILITY = "visibility.kueue.x-k8s.io"

_STOPPED = frozenset({"Hold", "HoldAndDrain"})


@dataclass(frozen=True, slots=True)
class LocalQueueRow:
    """A queue of a namespace.

    Attributes:
        cluster_queue: Whose quota it draws on.
        problem: Why nothing starts from it, as Kueue says (reason and message); None when all is well.
        waiting: Workloads that wait.
        running: Workloads that have quota.
    """

    namespace: str
    name: str
    cluster_queue: str
    problem: tuple[str, str] | None
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """The quota of one resource in one flavor, in thousandths.

    Attributes:
        borrowing: How much more it may borrow at most; None: as much as there is.
        lending: How much of it others may have while it is not used; None: all.
        used: What workloads have, of it or borrowed.
        borrowed: What of it is borrowed.
    """

    flavor: str
    resource: str
    nominal: int
    borrowing: int | None
    lending: int | None
    used: int
    borrowed: int

    @property
    def lendable(self) -> int:
        """What others of the cohort may have of it."""
        return self.nominal if self.lending is None else min(self.lending, self.nominal)


@dataclass(frozen=True, slots=True)
class ClusterQueueRow:
    """Quota that local queues share.

    Attributes:
        cohort: Queues that lend each other what they do not use, by its name; None: it borrows nothing.
        problem: Why nothing is admitted, as Kueue says (reason and message); None when all is well.
        quotas: What it has, by flavor and resource.
        waiting: Workloads that wait.
        running: Workloads that have quota.
    """

    name: str
    cohort: str | None
    problem: tuple[str, str] | None
    quotas: tuple[QuotaRow, ...]
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """What Kueue makes of a job.

    Attributes:
        owner: Kind and name of the job.
        job_uid: The job's own id.
        queue: Its local queue.
        state: ``waiting``, ``admitted``, ``finished``, or ``off`` when somebody set it inactive.
        reason: Kueue's word for why it waits.
        message: Kueue's sentence for why it waits.
        evicted: Kueue's word and sentence for why it lost its quota last, or None.
        requests: What it asks for, all pods together, in thousandths.
        pods: How many pods.
    """

    namespace: str
    name: str
    owner: tuple[str, str] | None
    job_uid: str | None
    queue: str
    priority: int | None
    priority_class: str | None
    state: str
    reason: str | None
    message: str | None
    evicted: tuple[str, str] | None
    requests: tuple[tuple[str, int], ...]
    pods: int
    created: str | None


def local_queue(found: Mapping[str, Any]) -> LocalQueueRow:
    """The row of a LocalQueue."""
    meta, spec, status = found["metadata"], found.get("spec") or {}, found.get("status") or {}
    stopped = spec.get("stopPolicy")
    return LocalQueueRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        cluster_queue=str(spec.get("clusterQueue", "")),
        problem=("Stopped", f"stopPolicy {stopped}") if stopped in _STOPPED else _inactive(status),
        waiting=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("reservingWorkloads") or 0),
    )


def cluster_queue(found: Mapping[str, Any]) -> ClusterQueueRow:
    """The row of a ClusterQueue."""
    meta, spec, status = found["metadata"], found.get("spec") or {}, found.get("status") or {}
    # What is reserved counts, not what is admitted: it is gone for others as soon.
    used = {
        (str(flavor["name"]), str(one["name"])): one
        for flavor in status.get("flavorsReservation") or status.get("flavorsUsage") or []
        for one in flavor.get("resources") or []
    }
    return ClusterQueueRow(
        name=str(meta["name"]),
        cohort=spec.get("cohort") or spec.get("cohortName") or None,
        problem=_inactive(status),
        quotas=tuple(
            _quota(str(flavor["name"]), one, used.get((str(flavor["name"]), str(one["name"])), {}))
            for group in spec.get("resourceGroups") or []
            for flavor in group.get("flavors") or []
            for one in flavor.get("resources") or []
        ),
        waiting=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("reservingWorkloads") or 0),
    )


def _quota(flavor: str, one: Mapping[str, Any], used: Mapping[str, Any]) -> QuotaRow:
    def limit(name: str) -> int | None:
        return None if one.get(name) is None else milli(one[name])

    return QuotaRow(
        flavor=flavor,
        resource=str(one["name"]),
        nominal=milli(one.get("nominalQuota", 0)),
        borrowing=limit("borrowingLimit"),
        lending=limit("lendingLimit"),
        used=milli(used.get("total", 0)),
        borrowed=milli(used.get("borrowed", 0)),
    )


def _inactive(status: Mapping[str, Any]) -> tuple[str, str] | None:
    active = conditions(status).get("Active")
    if active is None or active.get("status") != "False":
        return None
    return str(active.get("reason") or ""), str(active.get("message") or "")


def conditions(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions of a status by their type."""
    return {str(one["type"]): one for one in status.get("conditions") or []}


def workload(found: Mapping[str, Any]) -> WorkloadRow:
    """The row of a Workload."""
    meta, spec, status = found["metadata"], found.get("spec") or {}, found.get("status") or {}
    said = conditions(status)
    reserved, evicted = said.get("QuotaReserved") or {}, said.get("Evicted") or {}
    owner = next((one for one in meta.get("ownerReferences") or [] if one.get("controller")), None)
    labels = meta.get("labels") or {}
    return WorkloadRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        owner=(str(owner["kind"]), str(owner["name"])) if owner else None,
        job_uid=str(owner["uid"]) if owner else labels.get("kueue.x-k8s.io/job-uid"),
        queue=str(spec.get("queueName") or ""),
        priority=spec.get("priority"),
        priority_class=spec.get("priorityClassName")
        or (spec.get("priorityClassRef") or {}).get("name")
        or None,
        state=_state(spec, said),
        reason=reserved.get("reason"),
        message=reserved.get("message"),
        evicted=(str(evicted.get("reason") or ""), str(evicted.get("message") or ""))
        if evicted
        else None,
        requests=_requests(status),
        pods=sum(int(one.get("count") or 0) for one in spec.get("podSets") or []),
        created=meta.get("creationTimestamp"),
    )


def _state(spec: Mapping[str, Any], said: Mapping[str, Mapping[str, Any]]) -> str:
    def true(name: str) -> bool:
        return (said.get(name) or {}).get("status") == "True"

    if true("Finished"):
        return "finished"
    if spec.get("active") is False:
        return "off"
    return "admitted" if true("Admitted") else "waiting"


def _requests(status: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """What all pods ask for together: as admitted, else as it was counted when it was tried."""
    admitted = (status.get("admission") or {}).get("podSetAssignments") or []
    total: dict[str, int] = {}
    for one in admitted or status.get("resourceRequests") or []:
        for name, text in (one.get("resourceUsage") or one.get("resources") or {}).items():
            total[name] = total.get(name, 0) + milli(text)
    return tuple(sorted(total.items()))


def available(
    queue: ClusterQueueRow, quota: QuotaRow, queues: Iterable[ClusterQueueRow]
) -> tuple[int, int]:
    """What a new workload can get of a quota now, and the most that one ever can, in thousandths.

    As Kueue counts in a cohort without parents (pkg/cache/scheduler, resource_node.go): each queue keeps what it does not lend, and the rest is one pool.
    """
    own_left = max(0, quota.nominal - quota.used)
    if queue.cohort is None:
        return own_left, quota.nominal
    same = [
        other
        for member in queues
        if member.cohort == queue.cohort
        for other in member.quotas
        if (other.flavor, other.resource) == (quota.flavor, quota.resource)
    ]
    pool = sum(one.lendable for one in same)
    taken = sum(max(0, one.used - (one.nominal - one.lendable)) for one in same)
    kept = quota.nominal - quota.lendable
    left = max(0, kept - quota.used) + max(0, pool - taken)
    most = kept + pool
    if quota.borrowing is not None:
        most = min(most, quota.nominal + quota.borrowing)
        left = min(left, quota.nominal + quota.borrowing - quota.used)
    return max(0, left), most


def priority_class(found: Mapping[str, Any]) -> tuple[str, int]:
    """Name and value of a WorkloadPriorityClass."""
    return str(found["metadata"]["name"]), int(found.get("value") or 0)
