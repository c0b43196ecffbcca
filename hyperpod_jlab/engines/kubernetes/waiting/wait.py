"""Why a run waits: what Kueue and Kubernetes say in words, its place in the line, who holds what it waits for, and what would start now."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hyperpod_jlab.core.cluster import Holder, WaitReason
from hyperpod_jlab.core.errors import DeniedError, HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent, read_sent
from hyperpod_jlab.engines.kubernetes.tables.devices import accelerators, requested_resources
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobFacts
from hyperpod_jlab.engines.kubernetes.tables.kueue import (
    KueueReader,
    KueueSnapshot,
    WorkloadRow,
    why_closed,
)
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeFacts, node_facts
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.kubernetes.waiting.messages import (
    PodReason,
    problem_of,
    told,
    warnings_of,
    workload_words,
)
from hyperpod_jlab.engines.kubernetes.waiting.what_if import (
    Alternatives,
    Never,
    WhatIfRequest,
    free_nodes,
    holders_of,
    never_on_nodes,
    queue_room,
    smaller,
)
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Who waits before whom in a local queue.

Name = tuple[str, str]
"""Namespace and name of a workload."""


def whole_line(told: Sequence[Name], waiting: Sequence[WorkloadRow]) -> list[Name]:
    """The line of a queue as Kueue tells it, with those that it leaves out for the moment.

    While Kueue looks at a workload, some times a second, that one is in no line of its visibility API. It is put back before the first one that comes after it: a
    lower priority, or the same and created later (Kueue's own order, see its concepts' "queueing strategy").

    Args:
        told: The line as Kueue tells it.
        waiting: The workloads that wait in this queue.
    """
    line = list(told)
    rows = {(one.namespace, one.name): one for one in waiting}
    for name, row in sorted(rows.items(), key=lambda item: _order(item[1])):
        if name not in line:
            after = (
                index
                for index, other in enumerate(line)
                if other in rows and _order(rows[other]) > _order(row)
            )
            line.insert(next(after, len(line)), name)
    return line


def _order(row: WorkloadRow) -> tuple[int, str]:
    return -(row.priority or 0), row.created or ""


_NAMED = 20
"""How many of those before it are named."""
_ASKED = 4
"""How many of its pods are asked for their events."""


@dataclass(frozen=True)
class _Seen:
    """All that is known where a run waits; None for what may not be seen."""

    job: JobFacts
    jobs: Mapping[str, JobFacts]
    own: tuple[PodRow, ...]
    pods: Sequence[PodRow] | None
    nodes: Sequence[NodeFacts] | None
    kueue: KueueSnapshot | None
    workload: WorkloadRow | None
    workloads: Sequence[WorkloadRow]
    wanted: WhatIfRequest


async def explain(
    view: KubernetesTables, bundle: BundleReader, word: Observation | None
) -> WaitReason:
    """Why a run waits.

    Args:
        view: The cluster.
        bundle: The run.
        word: What its object says, as far as it was seen.

    Raises:
        UnreachableError: The API server does not answer.
    """
    plain = WaitReason(
        bundle.run_id, word.reason if word else None, word.reason_code if word else None
    )
    try:
        sent = await asyncio.to_thread(read_sent, bundle)
    except HyperpodError:
        return plain
    seen = await _look(view, sent)
    if seen is None:
        return plain
    if seen.workload is not None and seen.workload.state in {"waiting", "off"}:
        return await _in_queue(view, bundle.run_id, seen, seen.workload)
    if seen.job.suspended:
        words = _suspended(seen)
        return replace(plain, reason=words.words, reason_code=words.code)
    return await _on_nodes(view, plain, seen)


async def _look(view: KubernetesTables, sent: Sent) -> _Seen | None:
    """What may be seen; None when not even the run's object is there."""
    try:
        jobs, pods, nodes, kueue, workloads = await asyncio.gather(
            view.job_look.look(),
            view.pods(),
            view.looks.everywhere(NODES, node_facts),
            view.kueue.look(),
            view.kueue.workloads(),
        )
    except DeniedError:  # nothing at all may be seen
        return None
    place = (sent.kind.name, sent.namespace, sent.name)
    job = next((one for one in jobs.jobs if (one.kind, one.namespace, one.name) == place), None)
    if job is None:
        return None
    own = tuple(
        pod
        for pod in pods.rows or ()
        if (pod.namespace, pod.job, pod.kind) == (job.namespace, job.name, job.kind.lower())
    )
    listed = list((workloads.rows or ()) if workloads is not None else ())
    count = max(1, job.pods)
    return _Seen(
        job=job,
        jobs={one.uid: one for one in jobs.jobs},
        own=own,
        pods=pods.rows if pods.hidden is None else None,
        nodes=nodes.rows,
        kueue=kueue,
        workload=next((one for one in listed if one.job_uid == job.uid), None),
        workloads=listed,
        wanted=WhatIfRequest(
            count, {name: amount // count for name, amount in job.requests}, job.selector_labels
        ),
    )


def _suspended(seen: _Seen) -> PodReason:
    if seen.job.queue is None:
        return PodReason("held", "it is suspended: it starts when it is released")
    local = seen.kueue.local(seen.job.namespace, seen.job.queue) if seen.kueue else None
    if seen.kueue is not None and local is None and seen.kueue.locals_:
        return PodReason(
            "unknown_queue",
            f"the queue {seen.job.queue} does not exist in the namespace, so it waits forever: cancel it and use another queue; see: hpj "
            "queues",
        )
    return PodReason("suspended", "it is waiting in its queue, or suspended")


# ---------------------------------------------------------------------------------- in the queue


async def _in_queue(
    view: KubernetesTables, run_id: str, seen: _Seen, workload: WorkloadRow
) -> WaitReason:
    """Why Kueue does not let it start yet."""
    words = _queue_words(seen, workload)
    found = WaitReason(run_id, words.words, words.code)
    if workload.state == "off":
        return found
    kueues = await view.kueue.line(workload.namespace, workload.queue)
    name = (workload.namespace, workload.name)
    here = (workload.namespace, workload.queue, "waiting")
    waiting = [one for one in seen.workloads if (one.namespace, one.queue, one.state) == here]
    line = whole_line(kueues, waiting) if kueues is not None else []
    if name in line:
        place = line.index(name)
        found = replace(
            found,
            position=place + 1,
            counted=f"waiting jobs in the queue {workload.queue}, in the order of Kueue",
            ahead=tuple(_called(seen, one) for one in line[:place][:_NAMED]),
        )
    if words.code not in {"quota", "queued", "preempting", "preempted", "never_fits"}:
        return found
    ways = _ways(seen, workload)
    return replace(
        found,
        holders=_quota_holders(seen, workload),
        would_start_now=ways.sentences,
        tried=ways.tried,
    )


def _queue_words(seen: _Seen, workload: WorkloadRow) -> PodReason:
    """Kueue's reason; for a queue that is closed why, where that may be seen."""
    words = workload_words(workload)
    local = seen.kueue.local(workload.namespace, workload.queue) if seen.kueue else None
    if words.code == "queue_stopped" and seen.kueue is not None and local is not None:
        closed = why_closed(local, seen.kueue.cluster_queue_of(local))
        if closed is not None:
            return PodReason(words.code, f"its queue {workload.queue} starts no jobs now: {closed}")
    return words


def _called(seen: _Seen, name: tuple[str, str]) -> str:
    """The run or job of a workload that waits, as people know it."""
    found = [one for one in seen.workloads if (one.namespace, one.name) == name]
    if not found:
        return "/".join(name)
    job = seen.jobs.get(found[0].job_uid or "")
    if job is not None and job.run_id is not None:
        return job.run_id
    owner = found[0].owner
    called = owner[1] if owner is not None else found[0].name
    return f"{called} ({job.user if job is not None and job.user else found[0].namespace})"


def _quota_holders(seen: _Seen, workload: WorkloadRow) -> tuple[Holder, ...]:
    """Who has quota of the cluster queue that it waits for, or of its cohort."""
    if seen.kueue is None:
        return ()
    local = seen.kueue.local(workload.namespace, workload.queue)
    if local is None:
        return ()
    mine = seen.kueue.cluster_queue_of(local)
    same = {local.cluster_queue}
    if mine is not None and mine.cohort is not None:
        others = (seen.kueue.queues or {}).values()
        same |= {one.name for one in others if one.cohort == mine.cohort}
    rows = []
    for one in seen.workloads:
        theirs = seen.kueue.local(one.namespace, one.queue)
        if one.state == "admitted" and theirs is not None and theirs.cluster_queue in same:
            job = seen.jobs.get(one.job_uid or "")
            rows.append((one, job.user if job is not None and job.user else one.namespace))
    return _summed(rows)


def _summed(rows: Sequence[tuple[WorkloadRow, str]]) -> tuple[Holder, ...]:
    found: dict[str, Holder] = {}
    for one, user in rows:
        known = found.get(user, Holder(user))
        found[user] = Holder(
            user,
            accelerators=known.accelerators + accelerators(requested_resources(one.requests)),
            nodes=known.nodes + one.pods,
            jobs=known.jobs + 1,
        )
    return tuple(sorted(found.values(), key=lambda one: (-one.accelerators, -one.nodes, one.user)))


def _ways(seen: _Seen, workload: WorkloadRow) -> Alternatives:
    """What would start now: less in the same queue, or the same in another queue of the namespace."""
    if seen.kueue is None or seen.kueue.queues is None:
        return Alternatives((), 0)
    free = _free(seen)
    all_queues = seen.kueue.queues.values()
    sentences: list[str] = []
    tried = 0
    for local in seen.kueue.locals_:
        queue = seen.kueue.cluster_queue_of(local)
        if local.namespace != workload.namespace or queue is None or why_closed(local, queue):
            continue
        room = queue_room(queue, all_queues)
        if local.name == workload.queue:
            ways = smaller(seen.wanted, free, room)
            sentences, tried = [*sentences, *ways.sentences], tried + ways.tried
        else:
            tried += 1
            on_nodes = sum(_fits_one(seen, one) for one in free) if free is not None else None
            enough = room.nodes(seen.wanted.each) >= seen.wanted.nodes
            if enough and (on_nodes is None or on_nodes >= seen.wanted.nodes):
                sentences.append(f"in the queue {local.name} (--queue {local.name})")
    return Alternatives(tuple(sentences), tried)


def _fits_one(seen: _Seen, free: Mapping[str, int]) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in seen.wanted.each.items())


def _free(seen: _Seen) -> list[dict[str, int]] | None:
    if seen.nodes is None or seen.pods is None:
        return None
    return free_nodes(seen.nodes, seen.pods, seen.wanted.labels)


# ---------------------------------------------------------------------------------- on the nodes


async def _on_nodes(view: KubernetesTables, plain: WaitReason, seen: _Seen) -> WaitReason:
    """Why its pods do not run."""
    words = problem_of(seen.own) or await _from_events(view, seen)
    never = never_on_nodes(seen.wanted, seen.nodes or ())
    if words is not None and words.code == "unschedulable" and never is not None:
        words = _never(never)
    if words is None:
        return replace(plain, reason=plain.reason or _starting(seen))
    found = replace(plain, reason=_gang(seen, words.words), reason_code=words.code)
    if words.code not in {"unschedulable", "never_fits"}:
        return found
    free = _free(seen)
    ways = smaller(seen.wanted, free, None)
    held = holders_of(seen.pods or (), seen.wanted.accelerator)
    return replace(found, holders=held, would_start_now=ways.sentences, tried=ways.tried)


def _never(never: Never) -> PodReason:
    """As `quota` says it before a run is sent."""
    if never.label is not None:
        return PodReason("no_such_node", f"{never.words}: it waits until one is added")
    if never.may_come:
        return PodReason("unschedulable", f"{never.words}: it waits until one is added")
    return PodReason(
        "never_fits", f"{never.words}, so it waits forever: cancel it and request less"
    )


def _starting(seen: _Seen) -> str:
    there = len([pod for pod in seen.own if pod.node is not None])
    if not seen.own:
        return "its pods are being created"
    return f"its pods are starting ({there} of {seen.wanted.nodes} have a node)"


def _gang(seen: _Seen, words: str) -> str:
    """With how many of its pods have their node already, which wait for the others there."""
    placed = [pod for pod in seen.own if pod.node is not None and pod.trouble is None]
    if not placed or len(placed) >= seen.wanted.nodes:
        return words
    verb = "has its node and waits" if len(placed) == 1 else "have their nodes and wait"
    return f"{words} ({len(placed)} of its {seen.wanted.nodes} pods {verb} for the others)"


async def _from_events(view: KubernetesTables, seen: _Seen) -> PodReason | None:
    """What events say of its pods that do not say it themselves (volumes that cannot be mounted), and of the job (pods that cannot be made)."""
    stuck = [pod.uid for pod in seen.own][:_ASKED]
    with contextlib.suppress(DeniedError):
        client = await view.client()
        found = await warnings_of(client, seen.job.namespace, [seen.job.uid, *stuck])
        if found:
            return told(found[0].reason, found[0].message)
    return None


# --------------------------------------------------------------------------------------------------
# What Kueue says of runs that wait: their objects tell a run that waits for quota from one that somebody suspended in no way (research); its workloads do.


async def with_queue_words(
    kueue: KueueReader, words: Mapping[str, Observation]
) -> dict[str, Observation]:
    """The words on runs, with Kueue's reasons for those that are suspended; as they are where Kueue cannot be asked.

    Args:
        kueue: The cluster's Kueue; asked only when a run is suspended.
        words: What the runs' objects say, by run id.
    """
    found = dict(words)
    if not any(_may_be_queued(word) for word in words.values()):
        return found
    try:
        seen = await kueue.workloads()
    except HyperpodError:
        return found
    rows = (seen.rows or ()) if seen is not None else ()
    by_job = {row.owner[1]: row for row in rows if row.owner and row.state in {"waiting", "off"}}
    for run_id, word in words.items():
        row = by_job.get(word.scheduler_id or "")
        if row is not None and _may_be_queued(word):
            found[run_id] = _told(word, row)
    return found


def _may_be_queued(word: Observation) -> bool:
    return word.state == "waiting" and word.reason_code == "suspended"


def _told(word: Observation, row: WorkloadRow) -> Observation:
    said = workload_words(row)
    return word.model_copy(update={"reason": said.words, "reason_code": said.code})
