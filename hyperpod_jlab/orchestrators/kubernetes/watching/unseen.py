"""Attempts that nobody saw, by what the cluster still tells of them.

Of pods that were removed before anybody fetched what they said, events tell for a while (an hour, unless the API server was told otherwise) that they ran, where, and
for how long. Kueue's workload keeps that it was evicted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.conditions import unix_time
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.orchestrators.kubernetes.waiting.events import told
from hyperpod_jlab.orchestrators.kubernetes.watching.look import Where
from hyperpod_jlab.orchestrators.kubernetes.watching.verdicts import BY_CLUSTER
from hyperpod_jlab.orchestrators.kubernetes.workloads import Eviction, eviction_of

_MADE = re.compile(r"Created pod: ([a-z0-9][a-z0-9.-]{0,252})")
_RANK = re.compile(
    r"-(?:(?P<master>master-0)|worker-(?P<worker>\d{1,6})|(?:node-0-)?(?P<index>\d{1,6})-[a-z0-9]{5})"
)
_MOST_PODS = 64
"""Pods of one run for which the events are asked for."""
_AT_ONCE = 8


@dataclass(frozen=True)
class GonePod:
    """A pod that is no more, as events tell of it.

    Attributes:
        rank: Its place among the run's nodes.
        uid: Its own id.
        name: Its name.
        node: Where it ran.
        began: When its container began (Unix seconds).
        ended: When it was told to end; None when no event says so.
        why: A verdict, a sentence and a reason code, when its events say who ended it.
    """

    rank: int
    uid: str
    name: str
    node: str
    began: float
    ended: float | None
    why: tuple[str, str, str] | None


@dataclass(frozen=True)
class Unseen:
    """An attempt that nobody saw.

    Attributes:
        key: Tells it from all others, whoever finds it.
        pods: Its pods, by rank; none when only Kueue tells of it.
        began: When it began.
        ended: When it was over, at the latest.
        verdict: Why it ended, as a verdict.
        reason: And as a sentence.
        code: And as a word.
    """

    key: str
    pods: tuple[GonePod, ...]
    began: float
    ended: float
    verdict: str
    reason: str
    code: str


async def find_unseen(
    client: KubeClient, where: Where, job: Mapping[str, Any] | None, present: Mapping[str, float]
) -> list[Unseen]:
    """The attempts of pods that are no more, the oldest first; none where this user may see neither events nor workloads.

    Args:
        client: The cluster.
        where: The run's job.
        job: It, as far as it is there.
        present: When each pod was made that is there, by uid.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    gone = await _gone_pods(client, where, job, present.keys())
    eviction = await eviction_of(client, job) if job is not None else None
    found = attempts_of(gone, present.values(), eviction)
    if not found and eviction is not None:
        earlier = [made for made in present.values() if made < eviction.time]
        found = [] if earlier else [_evicted(eviction)]
    return found


def attempts_of(
    gone: Sequence[GonePod], present: Iterable[float], eviction: Eviction | None
) -> list[Unseen]:
    """Pods that are no more as attempts: one for each pod of node 0.

    Where another pod outlived it, that pod's launcher counts the attempts, and its log has their records.

    Args:
        gone: The pods.
        present: When the pods were made that are there.
        eviction: Kueue's last one.
    """
    first = sorted((pod for pod in gone if pod.rank == 0), key=lambda pod: pod.began)
    oldest = min(present, default=float("inf"))
    found = []
    for place, pod in enumerate(first):
        after = first[place + 1].began if place + 1 < len(first) else float("inf")
        before = first[place - 1].ended or pod.began if place else float("-inf")
        if oldest <= (pod.ended or pod.began):
            continue
        newest = {one.rank: one for one in gone if before <= one.began < after}
        pods = tuple(newest[rank] for rank in sorted(newest))
        ended = max([one.ended for one in pods if one.ended is not None], default=None)
        over = ended if ended is not None else min(after, oldest)
        over = over if over != float("inf") else pod.began
        verdict, reason, code = _why(pods, over, eviction)
        found.append(Unseen(f"pod-{pod.uid}", pods, pod.began, over, verdict, reason, code))
    return found


_LATE = 15.0
"""Seconds after an eviction in which its pods are told to end."""


def _why(pods: Sequence[GonePod], ended: float, eviction: Eviction | None) -> tuple[str, str, str]:
    for pod in pods:
        if pod.why is not None:
            return pod.why
    if eviction is not None and -_LATE < ended - eviction.time < _LATE:
        return eviction.verdict, eviction.words, eviction.code
    return "REQUEUED", "its pods were removed", "requeued"


def _evicted(eviction: Eviction) -> Unseen:
    """What Kueue alone tells: that the run had its quota, not whether its pods began."""
    often = f" {eviction.count} times, last" if eviction.count > 1 else ""
    seconds = f" after {eviction.admitted:.0f} s" if eviction.admitted else ""
    reason = f"it was put back into its queue{often}{seconds}: {eviction.words}"
    began = eviction.time - eviction.admitted
    key = f"eviction-{eviction.uid}-{eviction.count}"
    return Unseen(key, (), began, eviction.time, eviction.verdict, reason, eviction.code)


async def _gone_pods(
    client: KubeClient, where: Where, job: Mapping[str, Any] | None, present: Iterable[str]
) -> list[GonePod]:
    owner = (where.kind.name, where.name)
    if where.kind.name == TrainJob.name:  # its runtime's job makes them
        owner = ("Job", f"{where.name}-node-0")
    events = await _events(client, where.namespace, *owner)
    uid = str((job or {}).get("metadata", {}).get("uid", ""))
    if uid and owner[1] == where.name:
        events = [one for one in events if one["involvedObject"].get("uid") == uid]
    said = (_MADE.match(str(one.get("message") or "")) for one in events)
    names = sorted({found[1] for found in said if found is not None})
    if where.task is not None:
        names = [name for name in names if _rank(where.name, name) == where.task]
    names = names[:_MOST_PODS]
    room = asyncio.Semaphore(_AT_ONCE)

    async def ask(name: str) -> list[Mapping[str, Any]]:
        async with room:
            return await _events(client, where.namespace, "Pod", name)

    here = set(present)
    found: list[GonePod] = []
    for name, listed in zip(names, await asyncio.gather(*map(ask, names)), strict=True):
        by_uid: dict[str, list[Mapping[str, Any]]] = {}
        for one in listed:
            by_uid.setdefault(str(one["involvedObject"].get("uid")), []).append(one)
        for uid, of_pod in by_uid.items():
            rank = _rank(where.name, name) if where.task is None else 0
            pod = None if uid in here else _gone_pod(rank, name, uid, of_pod)
            found += [pod] if pod is not None else []
    return found


def _gone_pod(
    rank: int, name: str, uid: str, events: Sequence[Mapping[str, Any]]
) -> GonePod | None:
    """A pod by its events; None for one whose container never began."""
    started = [
        one
        for one in events
        if one.get("reason") == "Started" and "spec.containers{" in _field(one)
    ]
    if not started:
        return None
    ends = [_time(one) for one in events if one.get("reason") == "Killing"]
    why = None
    for one in events:
        if one.get("reason") in BY_CLUSTER or one.get("reason") == "TaintManagerEviction":
            reason = str(one["reason"]).replace("TaintManagerEviction", "DeletionByTaintManager")
            verdict, code = BY_CLUSTER[reason]
            why = (verdict, told(reason, str(one.get("message") or "")).words, code)
    first = min(started, key=_time)
    node = (first.get("source") or {}).get("host") or first.get("reportingInstance") or ""
    began = _time(first)
    return GonePod(rank, uid, name, str(node), began, max(ends) if ends else None, why)


def _rank(job: str, name: str) -> int:
    """A pod's place among the run's nodes by its name, as the operators make them: 0 for one that does not say."""
    found = _RANK.fullmatch(name.removeprefix(job))
    if found is None or found["master"]:
        return 0
    return int(found["index"]) if found["index"] else int(found["worker"]) + 1


def _field(event: Mapping[str, Any]) -> str:
    return str(event["involvedObject"].get("fieldPath") or "")


def _time(event: Mapping[str, Any]) -> float:
    text = event.get("firstTimestamp") or event.get("eventTime") or event.get("lastTimestamp")
    return unix_time(text, 0.0)


async def _events(
    client: KubeClient, namespace: str, kind: str, name: str
) -> list[Mapping[str, Any]]:
    """The events about an object; none where events may not be seen."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        answer = await client.get(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector, limit="500"
        )
    except (DeniedError, NotFoundError):
        return []
    found = answer.get("items") or []
    return [one for one in found if isinstance(one.get("involvedObject"), Mapping)]
