"""Kueue's Workload of a job, which decides whether the job may run: held and let go by its field ``active``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import QUEUE_LABEL, labels_of, unix_time, whole

_GROUP = "kueue.x-k8s.io"
_UID_LABEL = f"{_GROUP}/job-uid"
_TRIES = 10
_PAUSE = 0.3


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        place: Where it is.
        active: Whether Kueue may let it run.
        admitted: Whether it has its quota.
    """

    place: str
    active: bool
    admitted: bool


@dataclass(frozen=True)
class Eviction:
    """Kueue's last eviction of a job, after which it waited, or waits, again.

    Attributes:
        uid: Its workload's.
        time: When that was (Unix seconds).
        count: How often it was evicted so far, as far as this version of Kueue counts; at least 1.
        admitted: Seconds for which it had its quota before, as far as known.
        verdict: Why, as a verdict.
        words: Why, as a sentence.
        code: Why, as a word.
    """

    uid: str
    time: float
    count: int
    admitted: float
    verdict: str
    words: str
    code: str


async def eviction_of(client: KubeClient, job: Mapping[str, Any]) -> Eviction | None:
    """The last eviction of a job; None where there was none, or where this user may not see workloads.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    meta = job["metadata"]
    if not labels_of(job).get(QUEUE_LABEL):
        return None
    try:
        version = await kueue_version(client)
        if version is None:
            return None
        path = f"/apis/{version}/namespaces/{meta['namespace']}/workloads"
        listed = await client.get(path, labelSelector=f"{_UID_LABEL}={meta['uid']}")
    except (DeniedError, NotFoundError):
        return None
    found = (_eviction(one) for one in listed.get("items") or [])
    return next((one for one in found if one is not None), None)


def _eviction(workload: Mapping[str, Any]) -> Eviction | None:
    """By the condition ``Evicted``, or, once the workload has its quota again, by ``Requeued`` and its count (seen on Kueue 0.14)."""
    status = workload.get("status") or {}
    by_type = {str(one.get("type")): one for one in status.get("conditions") or []}
    counts = (status.get("schedulingStats") or {}).get("evictions") or []
    evicted, requeued = by_type.get("Evicted") or {}, by_type.get("Requeued") or {}
    told = evicted if evicted.get("status") == "True" else requeued
    if not evicted or not told or (told is requeued and not counts):
        return None
    reason = str(told.get("reason") or "")
    otherwise = ("REQUEUED", f"Kueue evicted it ({reason})", "evicted")
    verdict, words, code = _EVICTIONS.get(reason, otherwise)
    return Eviction(
        str(workload["metadata"].get("uid", "")),
        unix_time(told.get("lastTransitionTime"), 0.0),
        max(1, sum(whole(one.get("count")) for one in counts)),
        float(whole(status.get("accumulatedPastExexcutionTimeSeconds"))),  # spelled so
        verdict,
        words,
        code,
    )


_EVICTIONS = {
    "Preempted": (
        "PREEMPTED",
        "it was preempted: its quota was given to a run with a higher priority",
        "preempted",
    ),
    "PodsReadyTimeout": (
        "REQUEUED",
        "not all of its pods were ready within the timeout of Kueue",
        "not_ready",
    ),
    "ClusterQueueStopped": ("REQUEUED", "its cluster queue was stopped", "queue_stopped"),
    "LocalQueueStopped": ("REQUEUED", "its queue was stopped", "queue_stopped"),
    "Deactivated": ("REQUEUED", "it was held or requeued", "requeued"),
    "InactiveWorkload": ("REQUEUED", "it was held or requeued", "requeued"),
    "AdmissionCheck": (
        "REQUEUED",
        "an admission check revoked its admission",
        "admission_check",
    ),
    "NodeFailures": ("NODE_FAIL", "one of its nodes failed", "node_fail"),
}
"""Reasons of the condition ``Evicted`` (kueue/apis/kueue/v1beta1/workload_types.go): a verdict, a sentence, a word."""


async def workload_of(client: KubeClient, job: Mapping[str, Any]) -> Workload | None:
    """The workload of a job; None where Kueue does not look after it.

    Raises:
        DeniedError: It is in a queue, and this user may not see workloads.
        UnreachableError: Kueue is to look after it and has not yet.
    """
    version = await kueue_version(client)
    if version is None:
        return None
    meta = job["metadata"]
    path = f"/apis/{version}/namespaces/{meta['namespace']}/workloads"
    queued = bool(labels_of(job).get(QUEUE_LABEL))
    for _ in range(_TRIES if queued else 1):
        try:
            listed = await client.get(path, labelSelector=f"{_UID_LABEL}={meta['uid']}")
        except DeniedError:
            if queued:
                raise
            return None  # it asks for no queue, so that Kueue most likely leaves it alone
        for one in listed.get("items") or []:
            true = {
                str(each.get("type"))
                for each in (one.get("status") or {}).get("conditions") or []
                if each.get("status") == "True"
            }
            if "Finished" not in true:
                active = (one.get("spec") or {}).get("active", True) is not False
                return Workload(f"{path}/{one['metadata']['name']}", active, "Admitted" in true)
        await asyncio.sleep(_PAUSE if queued else 0)
    if queued:
        raise UnreachableError(
            "Kueue has not processed the job yet",
            code="kueue_late",
            hint="try again later; if this persists, tell your cluster administrator",
            detail={"job": meta["name"]},
        )
    return None


async def kueue_version(client: KubeClient) -> str | None:
    """Group and version that Kueue serves, such as ``kueue.x-k8s.io/v1beta1``; None without Kueue."""
    try:
        found = await client.get(f"/apis/{_GROUP}")
    except NotFoundError:
        return None
    return str((found.get("preferredVersion") or {}).get("groupVersion") or "") or None


async def set_active(client: KubeClient, workload: Workload, active: bool) -> None:
    """Let Kueue run it, or keep it from that: one that runs is ended and waits.

    Raises:
        DeniedError: This user may not.
    """
    await client.patch(workload.place, {"spec": {"active": active}})
