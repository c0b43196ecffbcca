"""Why a run waits: explanations from Kueue and Kubernetes, its queue position, the holders of what it waits for, and what would start now."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.core.cluster import Blocker, Holder, StartNow, WaitReason
from hyperpod_jlab.core.errors import DeniedError, HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent, read_sent
from hyperpod_jlab.engines.kubernetes.tables.devices import accelerators, requested_resources
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobFacts
from hyperpod_jlab.engines.kubernetes.tables.kueue import KueueReader, KueueSnapshot, WorkloadRow, closed_reason
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.messages import (
    PodReason,
    explain_reason,
    explain_workload,
    find_problem,
    list_warnings,
)
from hyperpod_jlab.engines.kubernetes.waiting.what_if import (
    Alternatives,
    Infeasible,
    QuotaRequest,
    compute_headroom,
    describe_blocker,
    find_blockers,
    find_holders,
    find_infeasible,
    free_nodes,
    smaller,
    sort_blockers,
)
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# The order of waiting workloads in a local queue.

Name = tuple[str, str]
"""Namespace and name of a workload."""


def full_queue_order(reported: Sequence[Name], waiting_workloads: Sequence[WorkloadRow]) -> list[Name]:
    """The order of a queue as Kueue reports it, with the workloads that it leaves out at the moment.

    While Kueue evaluates a workload, several times a second, the visibility API omits it. It is
    inserted before the first workload that follows it: one with a lower priority, or with the same
    and created later (Kueue's own order, see its concepts' "queueing strategy").

    Args:
        reported: The order as Kueue reports it.
        waiting_workloads: The waiting workloads of this queue.
    """
    line = list(reported)
    rows = {(workload.namespace, workload.name): workload for workload in waiting_workloads}
    for name, row in sorted(rows.items(), key=lambda item: _priority_key(item[1])):
        if name not in line:
            next_index = (
                index
                for index, name_in_line in enumerate(line)
                if name_in_line in rows and _priority_key(rows[name_in_line]) > _priority_key(row)
            )
            line.insert(next(next_index, len(line)), name)
    return line


def _priority_key(row: WorkloadRow) -> tuple[int, str]:
    return -(row.priority or 0), row.created or ""


_MAX_NAMES = 20
"""Maximum number of jobs ahead that are listed."""
_MAX_EVENT_PODS = 4
"""Maximum number of its pods whose events are queried."""


@dataclass(frozen=True)
class _JobState:
    """The facts about a waiting run; None for what is not readable."""

    job: JobFacts
    jobs: Mapping[str, JobFacts]
    own_pods: tuple[PodRow, ...]
    pods: Sequence[PodRow] | None
    nodes: Sequence[NodeFacts] | None
    kueue: KueueSnapshot | None
    workload: WorkloadRow | None
    workloads: Sequence[WorkloadRow]
    request: QuotaRequest


async def explain(tables: KubernetesTables, bundle: BundleReader, observation: Observation | None) -> WaitReason:
    """Why a run waits.

    Args:
        tables: The cluster.
        bundle: The run.
        observation: Its object's observation, if known.

    Raises:
        UnreachableError: The API server does not answer.
    """
    base_reason = WaitReason(
        bundle.run_id, observation.reason if observation else None, observation.reason_code if observation else None
    )
    try:
        sent = await asyncio.to_thread(read_sent, bundle)
    except HyperpodError:
        return base_reason
    job_state = await _load_state(tables, sent)
    if job_state is None:
        return base_reason
    if job_state.workload is not None and job_state.workload.state in {"waiting", "off"}:
        return await _explain_queued(tables, bundle.run_id, job_state, job_state.workload)
    if job_state.job.suspended:
        pod_reason = _suspended_reason(job_state)
        return replace(base_reason, reason=pod_reason.message, reason_code=pod_reason.code)
    return await _explain_on_nodes(tables, base_reason, job_state)


async def _load_state(tables: KubernetesTables, sent: Sent) -> _JobState | None:
    """The readable facts; None if the run's object does not exist."""
    try:
        jobs, pods, nodes, kueue, workloads = await asyncio.gather(
            tables.job_lister.load(),
            tables.pods(),
            tables.list_cache.everywhere(NODES, node_facts),
            tables.kueue.load(),
            tables.kueue.workloads(),
        )
    except DeniedError:  # nothing is readable
        return None
    job_key = (sent.kind.name, sent.namespace, sent.name)
    job = next((job_row for job_row in jobs.jobs if (job_row.kind, job_row.namespace, job_row.name) == job_key), None)
    if job is None:
        return None
    own_pods = tuple(
        pod
        for pod in pods.rows or ()
        if (pod.namespace, pod.job, pod.kind) == (job.namespace, job.name, job.kind.lower())
    )
    workload_list = list((workloads.rows or ()) if workloads is not None else ())
    count = max(1, job.pods)
    return _JobState(
        job=job,
        jobs={job_row.uid: job_row for job_row in jobs.jobs},
        own_pods=own_pods,
        pods=pods.rows if pods.missing_permission is None else None,
        nodes=nodes.rows,
        kueue=kueue,
        workload=next((workload for workload in workload_list if workload.job_uid == job.uid), None),
        workloads=workload_list,
        request=QuotaRequest(count, {name: quantity // count for name, quantity in job.requests}, job.selector_labels),
    )


def _suspended_reason(job_state: _JobState) -> PodReason:
    if job_state.job.queue is None:
        return PodReason("held", "it is suspended: it starts when it is released")
    local = job_state.kueue.local(job_state.job.namespace, job_state.job.queue) if job_state.kueue else None
    if job_state.kueue is not None and local is None and job_state.kueue.local_queues:
        return PodReason(
            "unknown_queue",
            f"the queue {job_state.job.queue} does not exist in the namespace, so it waits forever: cancel it and use another queue; see: hpj "
            "queues",
        )
    return PodReason("suspended", "it is waiting in its queue, or suspended")


# ---------------------------------------------------------------------------------- in the queue
# in the queue


async def _explain_queued(
    tables: KubernetesTables, run_id: str, job_state: _JobState, workload: WorkloadRow
) -> WaitReason:
    """Why Kueue does not start it yet."""
    pod_reason = _queue_reason(job_state, workload)
    wait_reason = WaitReason(run_id, pod_reason.message, pod_reason.code)
    if workload.state == "off":
        return wait_reason
    kueues = await tables.kueue.line(workload.namespace, workload.queue)
    name = (workload.namespace, workload.name)
    queue_key = (workload.namespace, workload.queue, "waiting")
    waiting_workloads = [
        queue_workload
        for queue_workload in job_state.workloads
        if (queue_workload.namespace, queue_workload.queue, queue_workload.state) == queue_key
    ]
    line = full_queue_order(kueues, waiting_workloads) if kueues is not None else []
    if name in line:
        position = line.index(name)
        wait_reason = replace(
            wait_reason,
            position=position + 1,
            counted=f"waiting jobs in the queue {workload.queue}, in the order of Kueue",
            ahead=tuple(_display_name(job_state, name_ahead) for name_ahead in line[:position][:_MAX_NAMES]),
        )
    if pod_reason.code not in {"quota", "queued", "preempting", "preempted", "never_fits"}:
        return wait_reason
    alternatives = _find_alternatives(job_state, workload)
    admitted = _list_admitted(job_state, workload)
    return replace(
        wait_reason,
        holders=_sum_holders(job_state, admitted),
        blockers=sort_blockers(_quota_blocker(job_state, row) for row in admitted),
        would_start_now=alternatives.changes,
        tried=alternatives.try_count,
    )


def _queue_reason(job_state: _JobState, workload: WorkloadRow) -> PodReason:
    """Kueue's reason; for a closed queue its cause, if readable."""
    pod_reason = explain_workload(workload)
    local = job_state.kueue.local(workload.namespace, workload.queue) if job_state.kueue else None
    if pod_reason.code == "queue_stopped" and job_state.kueue is not None and local is not None:
        closed = closed_reason(local, job_state.kueue.cluster_queue_of(local))
        if closed is not None:
            return PodReason(pod_reason.code, f"its queue {workload.queue} starts no jobs now: {closed}")
    return pod_reason


def _display_name(job_state: _JobState, name: tuple[str, str]) -> str:
    """The display name of a waiting workload's run or job."""
    matching = [
        queue_workload
        for queue_workload in job_state.workloads
        if (queue_workload.namespace, queue_workload.name) == name
    ]
    if not matching:
        return "/".join(name)
    job = job_state.jobs.get(matching[0].job_uid or "")
    if job is not None and job.run_id is not None:
        return job.run_id
    owner = matching[0].owner
    called = owner[1] if owner is not None else matching[0].name
    return f"{called} ({job.user if job is not None and job.user else matching[0].namespace})"


def _list_admitted(job_state: _JobState, workload: WorkloadRow) -> list[WorkloadRow]:
    """The workloads with quota of its cluster queue, or of the cohort."""
    if job_state.kueue is None:
        return []
    local = job_state.kueue.local(workload.namespace, workload.queue)
    if local is None:
        return []
    own_queue = job_state.kueue.cluster_queue_of(local)
    queue_names = {local.cluster_queue}
    if own_queue is not None and own_queue.cohort is not None:
        all_queues = (job_state.kueue.queues or {}).values()
        queue_names |= {queue.name for queue in all_queues if queue.cohort == own_queue.cohort}
    rows = []
    for queue_workload in job_state.workloads:
        other_queue = job_state.kueue.local(queue_workload.namespace, queue_workload.queue)
        if queue_workload.state == "admitted" and other_queue is not None and other_queue.cluster_queue in queue_names:
            rows.append(queue_workload)
    return rows


def _user_of(job_state: _JobState, workload: WorkloadRow) -> str:
    job = job_state.jobs.get(workload.job_uid or "")
    return job.user if job is not None and job.user else workload.namespace


def _quota_blocker(job_state: _JobState, workload: WorkloadRow) -> Blocker:
    name = workload.owner[1] if workload.owner is not None else workload.name
    return describe_blocker(
        job_state.jobs.get(workload.job_uid or ""),
        job=f"{workload.namespace}/{name}",
        name=name,
        user=_user_of(job_state, workload),
        nodes=workload.pods,
        accelerators=accelerators(requested_resources(workload.requests)),
    )


def _sum_holders(job_state: _JobState, rows: Sequence[WorkloadRow]) -> tuple[Holder, ...]:
    holders: dict[str, Holder] = {}
    for workload_row in rows:
        user = _user_of(job_state, workload_row)
        holder = holders.get(user, Holder(user))
        holders[user] = Holder(
            user,
            accelerators=holder.accelerators + accelerators(requested_resources(workload_row.requests)),
            nodes=holder.nodes + workload_row.pods,
            jobs=holder.jobs + 1,
        )
    return tuple(sorted(holders.values(), key=lambda holder: (-holder.accelerators, -holder.nodes, holder.user)))


def _find_alternatives(job_state: _JobState, workload: WorkloadRow) -> Alternatives:
    """What would start now: less in the same queue, or the same in another queue of the namespace."""
    if job_state.kueue is None or job_state.kueue.queues is None:
        return Alternatives((), 0)
    free = _free_resources(job_state)
    all_queues = job_state.kueue.queues.values()
    changes: list[StartNow] = []
    try_count = 0
    for local in job_state.kueue.local_queues:
        queue = job_state.kueue.cluster_queue_of(local)
        if local.namespace != workload.namespace or queue is None or closed_reason(local, queue):
            continue
        headroom = compute_headroom(queue, all_queues)
        if local.name == workload.queue:
            alternatives = smaller(job_state.request, free, headroom)
            changes, try_count = ([*changes, *alternatives.changes], try_count + alternatives.try_count)
        else:
            try_count += 1
            fitting_nodes = sum(_node_fits(job_state, node_free) for node_free in free) if free is not None else None
            has_headroom = headroom.nodes(job_state.request.per_pod) >= job_state.request.nodes
            if has_headroom and (fitting_nodes is None or fitting_nodes >= job_state.request.nodes):
                text = f"in the queue {local.name} (--queue {local.name})"
                changes.append(StartNow(text, queue=local.name))
    return Alternatives(tuple(changes), try_count)


def _node_fits(job_state: _JobState, free: Mapping[str, int]) -> bool:
    return all(free.get(name, 0) >= quantity for name, quantity in job_state.request.per_pod.items())


def _free_resources(job_state: _JobState) -> list[dict[str, int]] | None:
    if job_state.nodes is None or job_state.pods is None:
        return None
    return free_nodes(job_state.nodes, job_state.pods, job_state.request.labels)


# ---------------------------------------------------------------------------------- on the nodes
# on the nodes


async def _explain_on_nodes(tables: KubernetesTables, base_reason: WaitReason, job_state: _JobState) -> WaitReason:
    """Why its pods do not run."""
    pod_reason = find_problem(job_state.own_pods) or await _reason_from_events(tables, job_state)
    infeasible = find_infeasible(job_state.request, job_state.nodes or ())
    if pod_reason is not None and pod_reason.code == "unschedulable" and infeasible is not None:
        pod_reason = _infeasible_reason(infeasible)
    if pod_reason is None:
        return replace(base_reason, reason=base_reason.reason or _starting_text(job_state))
    wait_reason = replace(base_reason, reason=_gang_text(job_state, pod_reason.message), reason_code=pod_reason.code)
    if pod_reason.code not in {"unschedulable", "never_fits"}:
        return wait_reason
    free = _free_resources(job_state)
    alternatives = smaller(job_state.request, free, None)
    pods = [pod for pod in job_state.pods or () if pod not in job_state.own_pods]
    resource = job_state.request.accelerator
    return replace(
        wait_reason,
        holders=find_holders(pods, resource),
        blockers=find_blockers(pods, resource, job_state.jobs.values()),
        would_start_now=alternatives.changes,
        tried=alternatives.try_count,
    )


def _infeasible_reason(infeasible: Infeasible) -> PodReason:
    """The verdict of `quota`, as before a submit."""
    if infeasible.label is not None:
        return PodReason("no_such_node", f"{infeasible.message}: it waits until one is added")
    if infeasible.may_be_added:
        return PodReason("unschedulable", f"{infeasible.message}: it waits until one is added")
    return PodReason("never_fits", f"{infeasible.message}, so it waits forever: cancel it and request less")


def _starting_text(job_state: _JobState) -> str:
    assigned = len([pod for pod in job_state.own_pods if pod.node is not None])
    if not job_state.own_pods:
        return "its pods are being created"
    return f"its pods are starting ({assigned} of {job_state.request.nodes} have a node)"


def _gang_text(job_state: _JobState, text: str) -> str:
    """How many of its pods already have a node and wait for the others."""
    placed = [pod for pod in job_state.own_pods if pod.node is not None and pod.problem is None]
    if not placed or len(placed) >= job_state.request.nodes:
        return text
    verb = "has its node and waits" if len(placed) == 1 else "have their nodes and wait"
    return f"{text} ({len(placed)} of its {job_state.request.nodes} pods {verb} for the others)"


async def _reason_from_events(tables: KubernetesTables, job_state: _JobState) -> PodReason | None:
    """The cause from events, for pods that do not report it themselves (volumes that cannot be mounted), and for the job (pods that cannot be created)."""
    pod_uids = [pod.uid for pod in job_state.own_pods][:_MAX_EVENT_PODS]
    with contextlib.suppress(DeniedError):
        client = await tables.client()
        warnings = await list_warnings(client, job_state.job.namespace, [job_state.job.uid, *pod_uids])
        if warnings:
            return explain_reason(warnings[0].reason, warnings[0].message)
    return None


# --------------------------------------------------------------------------------------------------
# Kueue's reasons for waiting runs. The object of a run does not show whether it waits for quota or
# a user suspended it (research); its workload does.


async def add_queue_reasons(kueue: KueueReader, observations: Mapping[str, Observation]) -> dict[str, Observation]:
    """The observations, with Kueue's reasons for suspended runs; unchanged when Kueue does not answer.

    Args:
        kueue: The cluster's Kueue; queried only when a run is suspended.
        observations: The observations from the runs' objects, by run id.
    """
    result = dict(observations)
    if not any(_may_be_queued(observation) for observation in observations.values()):
        return result
    try:
        workloads = await kueue.workloads()
    except HyperpodError:
        return result
    rows = (workloads.rows or ()) if workloads is not None else ()
    workloads_by_job = {row.owner[1]: row for row in rows if row.owner and row.state in {"waiting", "off"}}
    for run_id, observation in observations.items():
        row = workloads_by_job.get(observation.scheduler_id or "")
        if row is not None and _may_be_queued(observation):
            result[run_id] = _add_reason(observation, row)
    return result


def _may_be_queued(observation: Observation) -> bool:
    return observation.state == "waiting" and observation.reason_code == "suspended"


def _add_reason(observation: Observation, row: WorkloadRow) -> Observation:
    workload_reason = explain_workload(row)
    return observation.model_copy(update={"reason": workload_reason.message, "reason_code": workload_reason.code})
