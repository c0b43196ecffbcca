"""Jobs of all users as tables show them: one row each, from small facts of the job's object, its pods and what Kueue makes of it."""

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
from hyperpod_jlab.engines.kubernetes.api.pod_log import parse_timestamp
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
from hyperpod_jlab.engines.kubernetes.tables.lists import (
    ListCache,
    ListKind,
    Seen,
    denied,
    hidden_note,
)
from hyperpod_jlab.engines.kubernetes.tables.pods import (
    Amounts,
    PodRow,
    amounts_of,
    requests_of,
    user_of,
)
from hyperpod_jlab.engines.kubernetes.targets import JobId
from hyperpod_jlab.engines.kubernetes.waiting.messages import problem_of, workload_words

# --------------------------------------------------------------------------------------------------
# What the pods of a job are: how many, what each asks for, where they may run; whichever of our kinds it is of.


@dataclass(frozen=True, slots=True)
class PodGroup:
    """Pods of a job that are alike.

    Attributes:
        pods: How many.
        each: What each of them asks for.
        selector: Labels that their nodes must have.
    """

    pods: int
    each: Amounts
    selector: tuple[tuple[str, str], ...] = ()


def parts_of(spec: Mapping[str, Any]) -> list[PodGroup]:
    """The parts of a job, by the object's ``spec``; those that are alike are one."""
    found: dict[PodGroup, int] = {}
    for part in _parts(spec):
        alike = replace(part, pods=1)
        found[alike] = found.get(alike, 0) + part.pods
    return [replace(part, pods=count) for part, count in found.items()]


def together(parts: Iterable[PodGroup]) -> Amounts:
    """What all pods ask for together."""
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.each:
            total[name] = total.get(name, 0) + amount * part.pods
    return tuple(sorted(total.items()))


def _parts(spec: Mapping[str, Any]) -> list[PodGroup]:
    trainer = spec.get("trainer")
    if isinstance(trainer, Mapping) or "runtimeRef" in spec:
        trainer = trainer or {}
        overrides = [one for one in spec.get("podSpecOverrides") or [] if isinstance(one, Mapping)]
        labels: Mapping[str, Any] = next(
            (one["nodeSelector"] for one in overrides if one.get("nodeSelector")), {}
        )
        each = amounts_of(trainer.get("resourcesPerNode") or {})
        return [PodGroup(int(trainer.get("numNodes") or 1), each, _selector(labels))]
    return [_part(one) for one in _replicas(spec)]


def _part(replica: Mapping[str, Any]) -> PodGroup:
    pod = (replica.get("template") or {}).get("spec") or {}
    count = replica.get("replicas")
    labels = pod.get("nodeSelector") or {}
    return PodGroup(1 if count is None else int(count), tuple(requests_of(pod)), _selector(labels))


def _selector(labels: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((str(name), str(value)) for name, value in labels.items()))


def _replicas(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a job: how many pods, and their template."""
    replicas = spec.get("pytorchReplicaSpecs") or spec.get("replicaSpecs") or {}
    listed = list(replicas.values()) if isinstance(replicas, Mapping) else list(replicas)
    if listed or "template" not in spec:
        return listed
    parallel = int(spec.get("parallelism") or 1)
    count = min(parallel, int(spec.get("completions") or parallel))
    return [{"replicas": count, "template": spec["template"]}]


_JOBS_OF_OTHERS = frozenset(kind.name for kind in KINDS) | {
    "JobSet",
    "Workload",
    "MPIJob",
    "RayJob",
    "RayCluster",
    "AppWrapper",
}
"""Kinds whose jobs are made of other jobs, which are no rows of their own then."""

_VERDICTS = {"COMPLETED": "succeeded", "CANCELLED": "cancelled"}


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job's object.

    Attributes:
        kind: As in its ``kind``.
        uid: Its own id.
        part: Whether another job made it.
        state: ``waiting``, ``running`` or ``ended``.
        verdict: How it ended.
        suspended: Whether its spec holds it back.
        done_but_for_pods: When its first pod succeeded while others may still run, whose ends nobody counts any more (PyTorchJob); else None.
        pods: How many pods it has, when it has all.
        requests: What all of them together ask for.
        selector: Labels that their nodes must have.
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
    started: float | None
    ended: float | None
    done_but_for_pods: float | None = None
    selector: tuple[tuple[str, str], ...] = ()

    @property
    def selector_labels(self) -> dict[str, str]:
        """Labels that the nodes of its pods must have."""
        return dict(self.selector)


def job_facts(kind: Kind, job: Mapping[str, Any]) -> JobFacts:
    """The facts of a job's object."""
    meta, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
    labels, seen = meta.get("labels") or {}, kind.observe(job, time.time())
    parts = parts_of(spec)
    policy = spec.get("runPolicy") or {}
    return JobFacts(
        kind=kind.name,
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta["name"]),
        title=(meta.get("annotations") or {}).get(NAME_ANNOTATION),
        uid=str(meta.get("uid") or ""),
        part=any(
            one.get("controller") and one.get("kind") in _JOBS_OF_OTHERS
            for one in meta.get("ownerReferences") or []
        ),
        user=user_of(meta),
        run_id=labels.get(RUN_LABEL),
        queue=labels.get(QUEUE_LABEL),
        priority_class=labels.get(PRIORITY_LABEL),
        state=seen.state,
        verdict=seen.verdict,
        reason=seen.reason,
        reason_code=seen.reason_code,
        reason_detail=seen.detail,
        suspended=is_suspended(kind, job),
        pods=sum(part.pods for part in parts),
        requests=together(parts),
        time_limit=policy.get("activeDeadlineSeconds") or spec.get("activeDeadlineSeconds"),
        created=parse_timestamp(meta.get("creationTimestamp")),
        started=parse_timestamp(status.get("startTime")),
        ended=seen.time if seen.state == "ended" else None,
        done_but_for_pods=_done_but_for_pods(job, seen),
        selector=next((part.selector for part in parts if part.selector), ()),
    )


def _done_but_for_pods(job: Mapping[str, Any], seen: Observation) -> float | None:
    if seen.state != "running" or "Succeeded" not in active_conditions(job):
        return None
    return parse_timestamp(find_status(job).get("completionTime")) or seen.time


REDUCERS: Mapping[str, Callable[[Mapping[str, Any]], JobFacts]] = {
    kind.name: partial(job_facts, kind) for kind in KINDS
}
"""By a kind's name: the same function each time, so that all who look share a look."""


@dataclass(frozen=True)
class JobContext:
    """What else is known of jobs.

    Attributes:
        namespace: The namespace of this cluster's runs.
        me: This user's name.
        pods: All pods that may be seen.
        workloads: All workloads of Kueue that may be seen.
    """

    namespace: str
    me: str
    pods: Sequence[PodRow]
    workloads: Sequence[WorkloadRow]


@without_collections()
def job_rows(jobs: Iterable[JobFacts], context: JobContext) -> list[Job]:
    """The jobs as tables show them; of workloads of kinds that are not known here, what Kueue says."""
    of_job: dict[tuple[str, str, str], list[PodRow]] = {}
    for pod in context.pods:
        if pod.job is not None:
            of_job.setdefault((pod.kind, pod.namespace, pod.job), []).append(pod)
    by_uid = {one.job_uid: one for one in context.workloads if one.job_uid}
    rows, known = [], set()
    for job in jobs:
        known.add(job.uid)
        if not job.part:
            pods = of_job.get((job.kind.lower(), job.namespace, job.name), [])
            rows.append(_row(job, pods, by_uid.get(job.uid), context))
    others = [one for one in context.workloads if one.owner and one.job_uid not in known]
    names = {kind.name for kind in KINDS}
    rows += [_other_row(one, context) for one in others if one.owner and one.owner[0] not in names]
    return rows


def _row(
    job: JobFacts, pods: Sequence[PodRow], workload: WorkloadRow | None, context: JobContext
) -> Job:
    state, reason, code = _state(job, pods, workload)
    ended = job.done_but_for_pods if state == "succeeded" and job.ended is None else job.ended
    here = job.namespace == context.namespace
    mine = here and job.run_id is not None and job.user in {None, context.me}
    devices = requested_resources(job.requests)
    begun = job.state != "waiting"
    priority = workload.priority if workload is not None else None
    return Job(
        scheduler_id=str(_id(job, here)),
        name=job.title or job.name,
        user=job.user or job.namespace,
        state=state,
        mine=mine,
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
        run_id=job.run_id if mine else None,
        submitted_at=job.created,
        started_at=job.started if begun else None,
        ends_at=ended,
    )


def _id(job: JobFacts, here: bool) -> JobId:
    if here and job.run_id is not None:
        return JobId(job.name)
    return JobId(job.name, job.kind.lower(), None if here else job.namespace)


def _state(
    job: JobFacts, pods: Sequence[PodRow], workload: WorkloadRow | None
) -> tuple[str, str | None, str | None]:
    """The state, why, and a word for that."""
    if job.state == "ended":
        return _VERDICTS.get(job.verdict or "", "failed"), job.reason, job.reason_code
    if job.done_but_for_pods is not None and not pods:  # pods that have ended are no rows
        return "succeeded", None, None
    problem = problem_of(pods)
    if job.state == "running":
        return "running", *((problem.words, problem.code) if problem else (job.reason, None))
    if job.suspended or (workload is not None and workload.state in {"waiting", "off"}):
        if workload is None:
            waits = job.queue is not None
            words = "it is waiting in its queue" if waits else "it is suspended"
            return ("waiting" if waits else "held"), words, "suspended"
        held = workload.state == "off"
        told = workload_words(workload)
        return "held" if held else "waiting", told.words, told.code
    if problem is not None:
        return "waiting", problem.words, problem.code
    return "waiting", job.reason, job.reason_code


def _other_row(one: WorkloadRow, context: JobContext) -> Job:
    """A job of a kind that only Kueue knows."""
    kind, name = one.owner or ("Workload", one.name)
    here = one.namespace == context.namespace
    devices = requested_resources(one.requests)
    told = workload_words(one)
    states = {"admitted": "running", "finished": "succeeded", "off": "held"}
    state = states.get(one.state, "waiting")
    return Job(
        scheduler_id=str(JobId(name, kind.lower(), None if here else one.namespace)),
        name=name,
        user=one.namespace,
        state=state,
        queue=one.queue or None,
        reason=told.words if state in {"waiting", "held"} else None,
        reason_code=told.code if state in {"waiting", "held"} else None,
        node_count=one.pods or None,
        cpus=to_units(dict(one.requests).get("cpu", 0)) or None,
        accelerators=accelerators(devices),
        resources=devices,
        account=one.namespace,
        qos=one.priority_class,
        priority=one.priority,
        submitted_at=parse_timestamp(one.created),
    )


# --------------------------------------------------------------------------------------------------
# Looking at the jobs of all kinds, as far as this user's rights go.

_AWAY_FOR = 120.0
"""Seconds for which a kind that the cluster does not have is not asked for again."""


@dataclass(frozen=True)
class JobSnapshot:
    """The jobs that may be seen, and what is hidden, a sentence each."""

    jobs: tuple[JobFacts, ...]
    notes: tuple[str, ...]


class JobLister:
    """Looks at jobs."""

    def __init__(self, looks: ListCache) -> None:
        self._looks = looks
        self._away: dict[str, float] = {}

    async def look(self) -> JobSnapshot:
        """The jobs of all kinds that the cluster has.

        Raises:
            DeniedError: None of them may be seen.
            UnreachableError: The API server does not answer.
        """
        found = await asyncio.gather(*(self._of(kind) for kind in KINDS))
        seen = [(kind, one) for kind, one in zip(KINDS, found, strict=True) if one is not None]
        jobs = [job for _, one in seen for job in one.rows or ()]
        nothing = [one for _, one in seen if one.rows is None]
        if seen and len(nothing) == len(seen):
            raise denied(_listed(seen[0][0]), self._looks.namespace, "the jobs")
        return JobSnapshot(tuple(jobs), tuple(_notes(seen)))

    async def _of(self, kind: RunKind) -> Seen[JobFacts] | None:
        """The jobs of a kind; None when the cluster does not have it."""
        if time.monotonic() - self._away.get(kind.name, float("-inf")) < _AWAY_FOR:
            return None
        try:
            return await self._looks.everywhere(_listed(kind), REDUCERS[kind.name])
        except NotFoundError:
            self._away[kind.name] = time.monotonic()
            return None


def _listed(kind: RunKind) -> ListKind:
    return ListKind(f"{kind.group}/{kind.version}", kind.plural)


def _notes(seen: list[tuple[RunKind, Seen[JobFacts]]]) -> list[str]:
    """What is hidden: kinds of which nothing is seen, and those of which only the own namespace is, together."""
    notes = [
        hidden_note(f"{kind.name}s", str(one.hidden)) for kind, one in seen if one.rows is None
    ]
    partly = [one.hidden for _, one in seen if one.rows is not None and one.hidden is not None]
    if partly:
        rights = " and to ".join(str(one) for one in partly)
        notes.append(hidden_note("jobs in other namespaces", rights))
    return notes
