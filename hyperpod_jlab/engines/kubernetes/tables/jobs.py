"""The job table of all users: one row each, from the job's object, its pods and its Kueue workload."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cluster import Job
from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.pod_state import parse_timestamp
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    NAME_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RUN_LABEL,
    Kind,
    active_conditions,
    find_status,
    is_suspended,
)
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind as RunKind
from hyperpod_jlab.engines.kubernetes.submit.resources import to_units
from hyperpod_jlab.engines.kubernetes.tables.devices import accelerators, requested_resources
from hyperpod_jlab.engines.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.engines.kubernetes.tables.lists import ListCache, ListKind, ListResult, denied_error, hidden_note
from hyperpod_jlab.engines.kubernetes.tables.pods import Amounts, PodRow, find_user, sum_container_requests
from hyperpod_jlab.engines.kubernetes.targets import JobId
from hyperpod_jlab.engines.kubernetes.waiting.messages import explain_workload, find_problem

# --------------------------------------------------------------------------------------------------
# The pods of a job, whatever its kind: how many, their requests, and where they may run.


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Identical pods of a job.

    Attributes:
        pods: The number of pods.
        per_pod: The requests of each.
        selector: The required node labels.
    """

    pods: int
    per_pod: Amounts
    selector: tuple[tuple[str, str], ...] = ()


def list_pod_groups(kind: RunKind, spec: Mapping[str, Any]) -> list[PodGroup]:
    """The pod groups of a job, from the object's ``spec``; identical ones are merged."""
    count_by_group: dict[PodGroup, int] = {}
    for count, pod in kind.pods(spec):
        labels = pod.get("nodeSelector") or {}
        unit_group = PodGroup(1, sum_container_requests(pod), _selector(labels))
        count_by_group[unit_group] = count_by_group.get(unit_group, 0) + count
    return [replace(part, pods=count) for part, count in count_by_group.items()]


def sum_requests(parts: Iterable[PodGroup]) -> Amounts:
    """The total requests of all pods."""
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.per_pod:
            total[name] = total.get(name, 0) + amount * part.pods
    return tuple(sorted(total.items()))


def _selector(labels: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in labels.items()))


_KNOWN_KINDS = frozenset(kind.name for kind in KINDS) | {
    "JobSet",
    "Workload",
    "MPIJob",
    "RayJob",
    "RayCluster",
    "AppWrapper",
}
"""Kinds that create other jobs; jobs with such an owner have no rows of their own."""

_END_STATES = {"COMPLETED": "succeeded", "CANCELLED": "cancelled"}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job's object.

    Attributes:
        kind: The object's ``kind``.
        uid: The object's uid.
        part: Whether it is part of another job.
        state: ``waiting``, ``running`` or ``ended``.
        verdict: The verdict on its end.
        suspended: Whether its spec suspends it.
        succeeded_at: When its first pod succeeded while others may still run, whose ends are no
            longer counted (PyTorchJob); else None.
        pods: Its number of pods when complete.
        requests: Their total requests.
        selector: The required node labels.
    """

    kind: str
    namespace: str
    name: str
    title: str | None
    uid: str
    part: bool
    user: str | None
    run_id: str | None
    queue: str | None
    priority_class: str | None
    state: str
    verdict: str | None
    reason: str | None
    reason_code: str | None
    reason_detail: str | None
    suspended: bool
    pods: int
    requests: Amounts
    time_limit: int | None
    created: float | None
    started_at: float | None
    ended_at: float | None
    succeeded_at: float | None = None
    selector: tuple[tuple[str, str], ...] = ()

    @property
    def selector_labels(self) -> dict[str, str]:
        """The required node labels of its pods."""
        return dict(self.selector)


def job_facts(kind: Kind, job: Mapping[str, Any]) -> JobFacts:
    """Facts from a job's object."""
    meta, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
    labels, observation = meta.get("labels") or {}, kind.observe(job, time.time())
    parts = list_pod_groups(kind, spec)
    policy = spec.get("runPolicy") or {}
    return JobFacts(
        kind=kind.name,
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta["name"]),
        title=(meta.get("annotations") or {}).get(NAME_ANNOTATION),
        uid=str(meta.get("uid") or ""),
        part=any(
            owner.get("controller") and owner.get("kind") in _KNOWN_KINDS for owner in meta.get("ownerReferences") or []
        ),
        user=find_user(meta),
        run_id=labels.get(RUN_LABEL),
        queue=labels.get(QUEUE_LABEL),
        priority_class=labels.get(PRIORITY_LABEL),
        state=observation.state,
        verdict=observation.verdict,
        reason=observation.reason,
        reason_code=observation.reason_code,
        reason_detail=observation.detail,
        suspended=is_suspended(kind, job),
        pods=sum(part.pods for part in parts),
        requests=sum_requests(parts),
        time_limit=policy.get("activeDeadlineSeconds") or spec.get("activeDeadlineSeconds"),
        created=parse_timestamp(meta.get("creationTimestamp")),
        started_at=parse_timestamp(status.get("startTime")),
        ended_at=observation.time if observation.state == "ended" else None,
        succeeded_at=_succeeded_at(job, observation),
        selector=next((part.selector for part in parts if part.selector), ()),
    )


def _succeeded_at(job: Mapping[str, Any], observation: Observation) -> float | None:
    if observation.state != "running" or "Succeeded" not in active_conditions(job):
        return None
    return parse_timestamp(find_status(job).get("completionTime")) or observation.time


REDUCERS: Mapping[str, Callable[[Mapping[str, Any]], JobFacts]] = {
    kind.name: partial(job_facts, kind) for kind in KINDS
}
"""Row functions by kind name: the same function each time, so that all callers share an informer."""


@dataclass(frozen=True)
class JobContext:
    """The other facts about jobs.

    Attributes:
        namespace: The namespace of this cluster's runs.
        current_user: This user's name.
        pods: All readable pods.
        workloads: All readable Kueue workloads.
    """

    namespace: str
    current_user: str
    pods: Sequence[PodRow]
    workloads: Sequence[WorkloadRow]


@without_collections()
def job_rows(jobs: Iterable[JobFacts], context: JobContext) -> list[Job]:
    """The rows of the job table; workloads of unknown kinds are shown from Kueue's data."""
    pods_by_job: dict[tuple[str, str, str], list[PodRow]] = {}
    for pod in context.pods:
        if pod.job is not None:
            pods_by_job.setdefault((pod.kind, pod.namespace, pod.job), []).append(pod)
    by_uid = {workload.job_uid: workload for workload in context.workloads if workload.job_uid}
    rows, known_uids = [], set()
    for job in jobs:
        known_uids.add(job.uid)
        if not job.part:
            pods = pods_by_job.get((job.kind.lower(), job.namespace, job.name), [])
            rows.append(_row(job, pods, by_uid.get(job.uid), context))
    foreign_workloads = [
        workload for workload in context.workloads if workload.owner and workload.job_uid not in known_uids
    ]
    names = {kind.name for kind in KINDS}
    rows += [
        _workload_row(workload, context)
        for workload in foreign_workloads
        if workload.owner and workload.owner[0] not in names
    ]
    return rows


def _row(job: JobFacts, pods: Sequence[PodRow], workload: WorkloadRow | None, context: JobContext) -> Job:
    state, reason, code = _state(job, pods, workload)
    ended_at = job.succeeded_at if state == "succeeded" and job.ended_at is None else job.ended_at
    is_own_namespace = job.namespace == context.namespace
    is_own = is_own_namespace and job.run_id is not None and job.user in {None, context.current_user}
    devices = requested_resources(job.requests)
    has_started = job.state != "waiting"
    priority = workload.priority if workload is not None else None
    return Job(
        scheduler_id=str(_id(job, is_own_namespace)),
        name=job.title or job.name,
        user=job.user or job.namespace,
        state=state,
        mine=is_own,
        queue=job.queue or (workload.queue if workload is not None else None) or None,
        reason=reason,
        reason_code=code,
        reason_detail=job.reason_detail if reason == job.reason else None,
        nodes=tuple(dict.fromkeys(pod.node for pod in pods if pod.node)),
        node_count=job.pods or None,
        cpus=to_units(dict(job.requests).get("cpu", 0)) or None,
        accelerators=accelerators(devices),
        resources=devices,
        account=job.namespace,
        qos=job.priority_class,
        priority=priority,
        time_limit=job.time_limit,
        run_id=job.run_id if is_own else None,
        submitted_at=job.created,
        started_at=job.started_at if has_started else None,
        ends_at=ended_at,
    )


def _id(job: JobFacts, is_own_namespace: bool) -> JobId:
    if is_own_namespace and job.run_id is not None:
        return JobId(job.name)
    return JobId(job.name, job.kind.lower(), None if is_own_namespace else job.namespace)


def _state(job: JobFacts, pods: Sequence[PodRow], workload: WorkloadRow | None) -> tuple[str, str | None, str | None]:
    """The state, its reason, and its code."""
    if job.state == "ended":
        return _END_STATES.get(job.verdict or "", "failed"), job.reason, job.reason_code
    if job.succeeded_at is not None and not pods:  # ended pods have no rows
        return "succeeded", None, None
    problem = find_problem(pods)
    if job.state == "running":
        return "running", *((problem.message, problem.code) if problem else (job.reason, None))
    if job.suspended or (workload is not None and workload.state in {"waiting", "off"}):
        if workload is None:
            is_queued = job.queue is not None
            text = "it is waiting in its queue" if is_queued else "it is suspended"
            return ("waiting" if is_queued else "held"), text, "suspended"
        is_held = workload.state == "off"
        pod_reason = explain_workload(workload)
        return "held" if is_held else "waiting", pod_reason.message, pod_reason.code
    if problem is not None:
        return "waiting", problem.message, problem.code
    return "waiting", job.reason, job.reason_code


def _workload_row(workload: WorkloadRow, context: JobContext) -> Job:
    """A job of a kind that only Kueue knows."""
    kind, name = workload.owner or ("Workload", workload.name)
    is_own_namespace = workload.namespace == context.namespace
    devices = requested_resources(workload.requests)
    pod_reason = explain_workload(workload)
    states = {"admitted": "running", "finished": "succeeded", "off": "held"}
    state = states.get(workload.state, "waiting")
    return Job(
        scheduler_id=str(JobId(name, kind.lower(), None if is_own_namespace else workload.namespace)),
        name=name,
        user=workload.namespace,
        state=state,
        queue=workload.queue or None,
        reason=pod_reason.message if state in {"waiting", "held"} else None,
        reason_code=pod_reason.code if state in {"waiting", "held"} else None,
        node_count=workload.pods or None,
        cpus=to_units(dict(workload.requests).get("cpu", 0)) or None,
        accelerators=accelerators(devices),
        resources=devices,
        account=workload.namespace,
        qos=workload.priority_class,
        priority=workload.priority,
        submitted_at=parse_timestamp(workload.created),
    )


# --------------------------------------------------------------------------------------------------
# Lists the jobs of all kinds, within this user's permissions.

_MISSING_TTL_S = 120.0
"""Seconds before a kind that the cluster does not have is queried again."""


@dataclass(frozen=True)
class JobSnapshot:
    """The readable jobs, and a sentence for each hidden part."""

    jobs: tuple[JobFacts, ...]
    notes: tuple[str, ...]


class JobLister:
    """Lists jobs."""

    def __init__(self, list_cache: ListCache) -> None:
        self._list_cache = list_cache
        self._missing_until: dict[str, float] = {}

    async def load(self) -> JobSnapshot:
        """The jobs of all kinds in the cluster.

        Raises:
            DeniedError: The user may read none of them.
            UnreachableError: The API server does not answer.
        """
        loaded = await asyncio.gather(*(self._load_kind(kind) for kind in KINDS))
        results = [(kind, result) for kind, result in zip(KINDS, loaded, strict=True) if result is not None]
        jobs = [job for _, result in results for job in result.rows or ()]
        hidden_kinds = [result for _, result in results if result.rows is None]
        if results and len(hidden_kinds) == len(results):
            raise denied_error(_list_kind(results[0][0]), self._list_cache.namespace, "the jobs")
        return JobSnapshot(tuple(jobs), tuple(_hidden_notes(results)))

    async def _load_kind(self, kind: RunKind) -> ListResult[JobFacts] | None:
        """The jobs of a kind; None when the cluster does not have it."""
        if time.monotonic() - self._missing_until.get(kind.name, float("-inf")) < _MISSING_TTL_S:
            return None
        try:
            return await self._list_cache.everywhere(_list_kind(kind), REDUCERS[kind.name])
        except NotFoundError:
            self._missing_until[kind.name] = time.monotonic()
            return None


def _list_kind(kind: RunKind) -> ListKind:
    return ListKind(f"{kind.group}/{kind.version}", kind.plural)


def _hidden_notes(results: list[tuple[RunKind, ListResult[JobFacts]]]) -> list[str]:
    """Notes on hidden jobs: completely hidden kinds, and those readable only in the own namespace, grouped."""
    notes = [
        hidden_note(f"{kind.name}s", str(result.missing_permission)) for kind, result in results if result.rows is None
    ]
    missing_permissions = [
        result.missing_permission
        for _, result in results
        if result.rows is not None and result.missing_permission is not None
    ]
    if missing_permissions:
        permissions_text = " and to ".join(str(permission) for permission in missing_permissions)
        notes.append(hidden_note("jobs in other namespaces", permissions_text))
    return notes
