"""Kueue's Workload of a job, which decides whether the job may run: held and let go by its field ``active``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import DeniedError, NotFoundError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import QUEUE_LABEL

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
            "Kueue has not looked at the job yet",
            code="kueue_late",
            hint="try again in a while; should it stay so, tell the cluster's admin",
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
