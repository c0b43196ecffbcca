"""Kueue's Workload of a job, which decides whether the job may run; its field ``active`` holds and releases it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.kind import QUEUE_LABEL, find_labels

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
                return Workload(f"{path}/{item['metadata']['name']}", active, "Admitted" in active_types)
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
