"""Kueue's Workload of a job, which decides whether the job may run; its field ``active`` holds and releases it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import QUEUE_LABEL, as_int, find_labels, parse_time

_GROUP = "kueue.x-k8s.io"
_UID_LABEL = f"{_GROUP}/job-uid"
_MAX_TRIES = 10
_PAUSE_S = 0.3


@dataclass(frozen=True)
class Workload:
    """A workload.

    Attributes:
        path: Its path.
        active: Whether Kueue may start it.
        admitted: Whether it has quota.
    """

    path: str
    active: bool
    admitted: bool


@dataclass(frozen=True)
class Eviction:
    """Kueue's last eviction of a job, after which it waited or still waits.

    Attributes:
        uid: The workload's uid.
        time: The time of the eviction (Unix seconds).
        count: The number of evictions so far, if this version of Kueue counts them; at least 1.
        admitted: Seconds for which it had quota before, if known.
        verdict: The cause as a verdict.
        message: The cause as a sentence.
        code: The cause as a code.
    """

    uid: str
    time: float
    count: int
    admitted: float
    verdict: str
    message: str
    code: str


async def find_eviction(client: KubeClient, job: Mapping[str, Any]) -> Eviction | None:
    """The last eviction of a job; None without one, or if this user may not read workloads.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    meta = job["metadata"]
    if not find_labels(job).get(QUEUE_LABEL):
        return None
    try:
        version = await kueue_version(client)
        if version is None:
            return None
        path = f"/apis/{version}/namespaces/{meta['namespace']}/workloads"
        response = await client.get(path, labelSelector=f"{_UID_LABEL}={meta['uid']}")
    except (DeniedError, NotFoundError):
        return None
    candidates = (_eviction(item) for item in response.get("items") or [])
    return next((item for item in candidates if item is not None), None)


def _eviction(workload: Mapping[str, Any]) -> Eviction | None:
    """From the condition ``Evicted`` or, once the workload has quota again, from ``Requeued`` and its count (observed on Kueue 0.14)."""
    status = workload.get("status") or {}
    by_type = {
        str(condition.get("type")): condition for condition in status.get("conditions") or []
    }
    counts = (status.get("schedulingStats") or {}).get("evictions") or []
    evicted, requeued = by_type.get("Evicted") or {}, by_type.get("Requeued") or {}
    condition = evicted if evicted.get("status") == "True" else requeued
    if not evicted or not condition or (condition is requeued and not counts):
        return None
    reason = str(condition.get("reason") or "")
    default = ("REQUEUED", f"Kueue evicted it ({reason})", "evicted")
    verdict, message, code = _EVICTIONS.get(reason, default)
    return Eviction(
        str(workload["metadata"].get("uid", "")),
        parse_time(condition.get("lastTransitionTime"), 0.0),
        max(1, sum(as_int(item.get("count")) for item in counts)),
        float(
            as_int(status.get("accumulatedPastExexcutionTimeSeconds"))
        ),  # spelled like this in the API
        verdict,
        message,
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
"""Reasons of the condition ``Evicted`` (kueue/apis/kueue/v1beta1/workload_types.go): a verdict, a sentence, a code."""


async def find_workload(client: KubeClient, job: Mapping[str, Any]) -> Workload | None:
    """The workload of a job; None if Kueue does not manage it.

    Raises:
        DeniedError: It is in a queue, and this user may not read workloads.
        UnreachableError: Kueue should manage it but has not created the workload yet.
    """
    version = await kueue_version(client)
    if version is None:
        return None
    meta = job["metadata"]
    path = f"/apis/{version}/namespaces/{meta['namespace']}/workloads"
    queued = bool(find_labels(job).get(QUEUE_LABEL))
    for _ in range(_MAX_TRIES if queued else 1):
        try:
            response = await client.get(path, labelSelector=f"{_UID_LABEL}={meta['uid']}")
        except DeniedError:
            if queued:
                raise
            return None  # it names no queue, so Kueue most likely ignores it
        for item in response.get("items") or []:
            active_types = {
                str(condition.get("type"))
                for condition in (item.get("status") or {}).get("conditions") or []
                if condition.get("status") == "True"
            }
            if "Finished" not in active_types:
                active = (item.get("spec") or {}).get("active", True) is not False
                return Workload(
                    f"{path}/{item['metadata']['name']}", active, "Admitted" in active_types
                )
        await asyncio.sleep(_PAUSE_S if queued else 0)
    if queued:
        raise UnreachableError(
            "Kueue has not processed the job yet",
            code="kueue_late",
            hint="try again later; if this persists, tell your cluster administrator",
            detail={"job": meta["name"]},
        )
    return None


async def kueue_version(client: KubeClient) -> str | None:
    """The group and version that Kueue serves, such as ``kueue.x-k8s.io/v1beta1``; None without Kueue."""
    try:
        response = await client.get(f"/apis/{_GROUP}")
    except NotFoundError:
        return None
    return str((response.get("preferredVersion") or {}).get("groupVersion") or "") or None


async def set_active(client: KubeClient, workload: Workload, active: bool) -> None:
    """Allow Kueue to run the job, or stop it: a running one is ended and waits.

    Raises:
        DeniedError: This user lacks the permission.
    """
    await client.patch(workload.path, {"spec": {"active": active}})
