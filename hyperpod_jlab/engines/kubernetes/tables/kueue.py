"""Kueue's objects as small rows: local queues, cluster queues with their quota, workloads, priority classes.

Fields of kueue.x-k8s.io/v1beta1 (observed on 0.14) and of v1beta2, which renames a few.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.cluster import Queue, Quota, Resource
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.engines.kubernetes.submit.resources import milli
from hyperpod_jlab.engines.kubernetes.tables.devices import is_device, resources
from hyperpod_jlab.engines.kubernetes.tables.lists import ListCache, ListKind, ListResult, hidden_note

GROUP = "kueue.x-k8s.io"
VISIBILITY = "visibility.kueue.x-k8s.io"

_STOP_POLICIES = frozenset({"Hold", "HoldAndDrain"})


@dataclass(frozen=True, slots=True)
class LocalQueueRow:
    """A queue of a namespace.

    Attributes:
        cluster_queue: The cluster queue that provides its quota.
        problem: Why nothing starts from it, as Kueue's reason and message; None otherwise.
        waiting: Number of waiting workloads.
        running: Number of workloads with quota.
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
        borrowing: How much more it may borrow; None for no limit.
        lending: How much of it others may borrow while unused; None for all.
        used: The amount in use, including borrowed quota.
        borrowed: The borrowed part of it.
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
        """The part that other queues of the cohort may borrow."""
        return self.nominal if self.lending is None else min(self.lending, self.nominal)


@dataclass(frozen=True, slots=True)
class ClusterQueueRow:
    """Quota that local queues share.

    Attributes:
        cohort: The name of the cohort, whose queues lend each other unused quota; None without
            borrowing.
        problem: Why nothing is admitted, as Kueue's reason and message; None otherwise.
        quotas: Its quotas, by flavor and resource.
        waiting: Number of waiting workloads.
        running: Number of workloads with quota.
    """

    name: str
    cohort: str | None
    problem: tuple[str, str] | None
    quotas: tuple[QuotaRow, ...]
    waiting: int
    running: int


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """Kueue's workload of a job.

    Attributes:
        owner: Kind and name of the job.
        job_uid: The job's uid.
        queue: Its local queue.
        state: ``waiting``, ``admitted``, ``finished``, or ``off`` when it was set inactive.
        reason: Kueue's reason why it waits.
        message: Kueue's message why it waits.
        evicted: Kueue's reason and message for its last loss of quota, or None.
        requests: The total requests of its pods, in thousandths.
        pods: The number of pods.
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


def local_queue(document: Mapping[str, Any]) -> LocalQueueRow:
    """The row of a LocalQueue."""
    meta, spec, status = (document["metadata"], document.get("spec") or {}, document.get("status") or {})
    stop_policy = spec.get("stopPolicy")
    return LocalQueueRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        cluster_queue=str(spec.get("clusterQueue", "")),
        problem=("Stopped", f"stopPolicy {stop_policy}") if stop_policy in _STOP_POLICIES else _inactive(status),
        waiting=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("reservingWorkloads") or 0),
    )


def cluster_queue(document: Mapping[str, Any]) -> ClusterQueueRow:
    """The row of a ClusterQueue."""
    meta, spec, status = (document["metadata"], document.get("spec") or {}, document.get("status") or {})
    # Reserved quota counts, not only admitted: it is equally unavailable to others.
    used = {
        (str(flavor["name"]), str(resource["name"])): resource
        for flavor in status.get("flavorsReservation") or status.get("flavorsUsage") or []
        for resource in flavor.get("resources") or []
    }
    return ClusterQueueRow(
        name=str(meta["name"]),
        cohort=spec.get("cohort") or spec.get("cohortName") or None,
        problem=_inactive(status),
        quotas=tuple(
            _quota(str(flavor["name"]), resource, used.get((str(flavor["name"]), str(resource["name"])), {}))
            for group in spec.get("resourceGroups") or []
            for flavor in group.get("flavors") or []
            for resource in flavor.get("resources") or []
        ),
        waiting=int(status.get("pendingWorkloads") or 0),
        running=int(status.get("reservingWorkloads") or 0),
    )


def _quota(flavor: str, item: Mapping[str, Any], used: Mapping[str, Any]) -> QuotaRow:
    def limit(name: str) -> int | None:
        return None if item.get(name) is None else milli(item[name])

    return QuotaRow(
        flavor=flavor,
        resource=str(item["name"]),
        nominal=milli(item.get("nominalQuota", 0)),
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
    """The conditions of a status, by type."""
    return {str(condition["type"]): condition for condition in status.get("conditions") or []}


def workload(document: Mapping[str, Any]) -> WorkloadRow:
    """The row of a Workload."""
    meta, spec, status = (document["metadata"], document.get("spec") or {}, document.get("status") or {})
    conditions_by_type = conditions(status)
    reserved, evicted = (conditions_by_type.get("QuotaReserved") or {}, conditions_by_type.get("Evicted") or {})
    owner = next((owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")), None)
    labels = meta.get("labels") or {}
    return WorkloadRow(
        namespace=str(meta.get("namespace", "")),
        name=str(meta["name"]),
        owner=(str(owner["kind"]), str(owner["name"])) if owner else None,
        job_uid=str(owner["uid"]) if owner else labels.get("kueue.x-k8s.io/job-uid"),
        queue=str(spec.get("queueName") or ""),
        priority=spec.get("priority"),
        priority_class=spec.get("priorityClassName") or (spec.get("priorityClassRef") or {}).get("name") or None,
        state=_state(spec, conditions_by_type),
        reason=reserved.get("reason"),
        message=reserved.get("message"),
        evicted=(str(evicted.get("reason") or ""), str(evicted.get("message") or "")) if evicted else None,
        requests=_requests(status),
        pods=sum(int(pod_set.get("count") or 0) for pod_set in spec.get("podSets") or []),
        created=meta.get("creationTimestamp"),
    )


def _state(spec: Mapping[str, Any], conditions_by_type: Mapping[str, Mapping[str, Any]]) -> str:
    def is_true(name: str) -> bool:
        return (conditions_by_type.get(name) or {}).get("status") == "True"

    if is_true("Finished"):
        return "finished"
    if spec.get("active") is False:
        return "off"
    return "admitted" if is_true("Admitted") else "waiting"


def _requests(status: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """The total requests of all pods: as admitted, else as computed at the last attempt."""
    admitted = (status.get("admission") or {}).get("podSetAssignments") or []
    total: dict[str, int] = {}
    for item in admitted or status.get("resourceRequests") or []:
        for name, text in (item.get("resourceUsage") or item.get("resources") or {}).items():
            total[name] = total.get(name, 0) + milli(text)
    return tuple(sorted(total.items()))


def available(queue: ClusterQueueRow, quota: QuotaRow, queues: Iterable[ClusterQueueRow]) -> tuple[int, int]:
    """The available quota for a new workload now, and the maximum that one can ever get, in thousandths.

    Computed as in Kueue for a cohort without parents (pkg/cache/scheduler, resource_node.go): each
    queue keeps what it does not lend, and the rest is one pool.
    """
    own_free = max(0, quota.nominal - quota.used)
    if queue.cohort is None:
        return own_free, quota.nominal
    cohort_quotas = [
        peer_quota
        for member in queues
        if member.cohort == queue.cohort
        for peer_quota in member.quotas
        if (peer_quota.flavor, peer_quota.resource) == (quota.flavor, quota.resource)
    ]
    shared_pool = sum(quota.lendable for quota in cohort_quotas)
    shared_used = sum(max(0, quota.used - (quota.nominal - quota.lendable)) for quota in cohort_quotas)
    reserved = quota.nominal - quota.lendable
    free = max(0, reserved - quota.used) + max(0, shared_pool - shared_used)
    maximum = reserved + shared_pool
    if quota.borrowing is not None:
        maximum = min(maximum, quota.nominal + quota.borrowing)
        free = min(free, quota.nominal + quota.borrowing - quota.used)
    return max(0, free), maximum


def priority_class(document: Mapping[str, Any]) -> tuple[str, int]:
    """Name and value of a WorkloadPriorityClass."""
    return str(document["metadata"]["name"]), int(document.get("value") or 0)


# --------------------------------------------------------------------------------------------------
# Reads Kueue: its queues, their quota and workloads, within this user's permissions.


@dataclass(frozen=True)
class KueueSnapshot:
    """Kueue as this user sees it.

    Attributes:
        local_queues: The readable local queues.
        queues: The cluster queues by name; None when they are not readable.
        notes: A sentence for each hidden part.
        missing_permission: The missing permission that hides local queues, as text; None when all
            are readable.
        visible_namespace: The one namespace whose local queues are readable anyway.
    """

    local_queues: tuple[LocalQueueRow, ...]
    queues: Mapping[str, ClusterQueueRow] | None
    notes: tuple[str, ...]
    missing_permission: str | None = None
    visible_namespace: str | None = None

    def missing_permission_in(self, namespace: str) -> str | None:
        """The missing permission that hides a namespace's local queues, as text; None when they are readable."""
        return None if namespace == self.visible_namespace else self.missing_permission

    def local(self, namespace: str, name: str) -> LocalQueueRow | None:
        matching = [
            local_queue
            for local_queue in self.local_queues
            if (local_queue.namespace, local_queue.name) == (namespace, name)
        ]
        return matching[0] if matching else None

    def cluster_queue_of(self, local: LocalQueueRow) -> ClusterQueueRow | None:
        """The cluster queue of a local queue, if readable."""
        return (self.queues or {}).get(local.cluster_queue)


class KueueReader:
    """Reads Kueue's objects."""

    def __init__(self, list_cache: ListCache) -> None:
        self._list_cache = list_cache

    async def load(self) -> KueueSnapshot | None:
        """The queues; None without Kueue.

        Raises:
            UnreachableError: The API server does not answer.
        """
        version = await self._list_cache.version(GROUP)
        if version is None:
            return None
        local_kind = ListKind(version, "localqueues")
        queue_kind = ListKind(version, "clusterqueues", namespaced=False)
        try:
            local_queues, queues = await asyncio.gather(
                self._list_cache.everywhere(local_kind, local_queue),
                self._list_cache.everywhere(queue_kind, cluster_queue),
            )
        except NotFoundError:
            return None
        notes = []
        if local_queues.rows is None:
            notes.append(hidden_note("the queues", str(local_queues.missing_permission)))
        elif local_queues.missing_permission is not None:
            notes.append(hidden_note("queues of other namespaces", local_queues.missing_permission))
        if queues.rows is None:
            notes.append(hidden_note("the queues' quotas", str(queues.missing_permission)))
        return KueueSnapshot(
            tuple(local_queues.rows or ()),
            {queue_row.name: queue_row for queue_row in queues.rows} if queues.rows is not None else None,
            tuple(notes),
            missing_permission=local_queues.missing_permission,
            visible_namespace=self._list_cache.namespace if local_queues.rows is not None else None,
        )

    async def workloads(self) -> ListResult[WorkloadRow] | None:
        """The workloads; None without Kueue."""
        version = await self._list_cache.version(GROUP)
        if version is None:
            return None
        try:
            return await self._list_cache.everywhere(ListKind(version, "workloads"), workload)
        except NotFoundError:
            return None

    async def priority_classes(self) -> dict[str, int] | None:
        """The workload priority classes with their values; None when not readable, or without Kueue."""
        version = await self._list_cache.version(GROUP)
        if version is None:
            return None
        kind = ListKind(version, "workloadpriorityclasses", namespaced=False)
        try:
            listed_result = await self._list_cache.everywhere(kind, priority_class)
        except NotFoundError:
            return None
        return dict(listed_result.rows) if listed_result.rows is not None else None

    async def line(self, namespace: str, queue: str) -> list[tuple[str, str]] | None:
        """The waiting workloads of a local queue in queue order, as namespace and name; None when Kueue does not report it."""
        version = await self._list_cache.version(VISIBILITY)
        if version is None:
            return None
        kind = ListKind(version, "localqueues")
        try:
            response = await self._list_cache.object(f"{kind.path(namespace)}/{queue}/pendingworkloads")
        except HyperpodError:  # an aggregated API: it may be down while everything else works
            return None
        items = sorted(response.get("items") or [], key=lambda item: int(item.get("positionInLocalQueue") or 0))
        return [(str(item["metadata"].get("namespace", "")), str(item["metadata"]["name"])) for item in items]

    async def choices(self) -> dict[str, list[str]]:
        """The choices for a spec: the namespace's queues, and the priority classes from high to low; what is not readable is left out."""
        snapshot, classes = await asyncio.gather(self.load(), self.priority_classes())
        names: dict[str, list[str]] = {}
        if snapshot is not None and snapshot.local_queues:
            own_namespace = self._list_cache.namespace
            names["queue"] = sorted(
                local_queue.name for local_queue in snapshot.local_queues if local_queue.namespace == own_namespace
            )
        if classes:
            names["priority"] = sorted(classes, key=lambda name: (-classes[name], name))
        return names


# --------------------------------------------------------------------------------------------------
# The queue table of Kueue's local queues: remaining quota, waiting workloads, and why nothing
# starts.

_PROBLEMS = {
    "ClusterQueueDoesNotExist": "its cluster queue {queue} does not exist; ask your cluster administrator",
    "ClusterQueueIsInactive": "its cluster queue {queue} admits nothing now",
    "Stopped": "an administrator stopped it",
    "Terminating": "it is being removed",
    "FlavorNotFound": "a flavor of its quota does not exist: {said}",
    "CheckNotFoundOrInactive": "one of its admission checks does not exist or does not work: {said}",
}
"""Kueue's reasons for an inactive queue (pkg/constants, apis/kueue/v1beta1), and our messages."""

_KUEUE_PREFIX = re.compile(r"^Can't (?:admit|submit) new workloads(?: to clusterQueue)?:? ?")


def problem_message(problem: tuple[str, str], cluster_queue: str) -> str:
    """Why nothing starts from a queue, as a message."""
    reason, message = problem
    detail = _KUEUE_PREFIX.sub("", message).strip().rstrip(".")
    known_message = _PROBLEMS.get(reason)
    if known_message is not None:
        return known_message.format(queue=cluster_queue, said=detail)
    return f"Kueue reports: {reason}: {detail}" if detail else f"Kueue reports: {reason}"


def closed_reason(local: LocalQueueRow, queue: ClusterQueueRow | None) -> str | None:
    """Why nothing starts from a local queue, or None."""
    if local.problem is not None and local.problem[0] == "Stopped":
        return "an administrator stopped it: jobs wait and none starts"
    if queue is not None and queue.problem is not None:
        message = problem_message(queue.problem, queue.name)
        return f"its cluster queue {queue.name}: {message}"
    if local.problem is not None:
        return problem_message(local.problem, local.cluster_queue)
    return None


def queue_rows(
    local_queues: Iterable[LocalQueueRow],
    queues: Mapping[str, ClusterQueueRow] | None,
    namespace: str,
    usable_namespaces: Collection[str] | None = None,
) -> list[Queue]:
    """The rows of the queue table.

    Args:
        local_queues: The local queues.
        queues: The cluster queues by name; None when they are not readable, so that no quota is
            known.
        namespace: The namespace of this cluster's runs, whose queues are shown without a namespace.
        usable_namespaces: Namespaces to which this user may submit; None when unknown beyond the
            own one.
    """
    return [_row(local_queue, queues, namespace, usable_namespaces) for local_queue in local_queues]


def _row(
    local: LocalQueueRow,
    queues: Mapping[str, ClusterQueueRow] | None,
    namespace: str,
    usable_namespaces: Collection[str] | None,
) -> Queue:
    queue = (queues or {}).get(local.cluster_queue)
    own_namespace = local.namespace == namespace
    closed = closed_reason(local, queue)
    quotas = _quotas(queue, list((queues or {}).values())) if queue is not None else ()
    devices = _devices(quotas)
    accelerators = [device for device in devices if device.accelerator]
    cpus = [quota for quota in quotas if quota.resource == "cpu"]
    return Queue(
        name=local.name if own_namespace else f"{local.namespace}/{local.name}",
        state="down" if closed is not None else "up",
        reason=closed,
        usable=True
        if own_namespace
        else (local.namespace in usable_namespaces if usable_namespaces is not None else None),
        cluster_queue=local.cluster_queue,
        cpus=int(sum(item.most for item in cpus)) if cpus else None,
        cpus_free=int(sum(item.free for item in cpus)) if cpus else None,
        accelerators=sum(device.total for device in accelerators),
        accelerators_free=sum(device.free for device in accelerators),
        resources=devices,
        quotas=quotas,
        running=local.running,
        waiting=local.waiting,
    )


def _quotas(queue: ClusterQueueRow, queues: Sequence[ClusterQueueRow]) -> tuple[Quota, ...]:
    document = []
    for quota in queue.quotas:
        free, maximum = available(queue, quota, queues)
        document.append(
            Quota(
                flavor=quota.flavor,
                resource=quota.resource,
                nominal=quota.nominal / 1000,
                used=quota.used / 1000,
                borrowed=quota.borrowed / 1000,
                free=free / 1000,
                most=maximum / 1000,
            )
        )
    return tuple(document)


def _devices(quotas: Sequence[Quota]) -> tuple[Resource, ...]:
    """The queue's device quota, and its currently free part, over all flavors."""
    totals: dict[str, int] = {}
    shared_used: dict[str, int] = {}
    for quota in quotas:
        if is_device(quota.resource):
            totals[quota.resource] = totals.get(quota.resource, 0) + int(quota.most) * 1000
            used_amount = int(quota.most - quota.free) * 1000
            shared_used[quota.resource] = shared_used.get(quota.resource, 0) + used_amount
    return resources(totals, shared_used)
