"""What can be done to one task of an array: only a cancel; all else is the whole Job's."""

from __future__ import annotations

import asyncio
import contextlib

from hyperpod_jlab.model.errors import (
    ConflictError,
    DeniedError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.model.records import ActionKind
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.orders import Look
from hyperpod_jlab.orchestrators.kubernetes.watching.look import RunLook, Where

_PAUSE = 0.5
_LAST_WORDS = 15.0
"""Seconds for which a cancel waits for what the pod says last, where it must be fetched."""


def refuse_task(run_id: str, action: ActionKind) -> UnsupportedError:
    """The error for what cannot be done to one task."""
    return UnsupportedError(
        f"a task of an array cannot be told to {action} by itself on Kubernetes: all tasks are one Job",
        hint=f"do it to the array: hpj {action} {run_id.partition('.')[0]}",
        detail={"run_id": run_id},
    )


async def cancel_task(
    client: KubeClient, runs: RunLook, place: Where, look: Look | None = None
) -> None:
    """End one task of an array, by removing its pod: the Job counts the task as failed, and makes no other.

    A task without a pod ends when its turn comes: its launcher finds the cancel in the journal.

    Args:
        client: The cluster.
        runs: Tells which pods it has.
        place: The task.
        look: Called while the pod ends, so that what it says last is not lost; None where its launcher writes that into the bundle.

    Raises:
        ConflictError: It has ended.
        DeniedError: This user may not remove pods.
        UnsupportedError: It has no pod yet, and without shared storage nothing can tell its launcher.
    """
    seen = await runs.anew(place)
    if seen.job is None:
        return  # its array was removed, and all pods with it
    if seen.job.observe(seen.time).state == "ended":
        raise ConflictError(
            f"{place.run_id} has ended; cancel needs one that waits or runs",
            code="wrong_state",
            detail={"run_id": place.run_id},
        )
    pods = [pod for pod in seen.pods if not pod.ended]
    if not pods and look is not None:
        raise UnsupportedError(
            f"{place.run_id} has no pod yet, and without shared storage it cannot be told that it is cancelled",
            hint=f"cancel it once it runs, or the whole array: hpj cancel {place.whole.run_id}",
            detail={"run_id": place.run_id},
        )
    if look is not None:
        await look()
    for pod in pods:
        path = f"/api/v1/namespaces/{place.namespace}/pods/{pod.name}"
        try:
            with contextlib.suppress(NotFoundError):
                await client.delete(path, {"preconditions": {"uid": pod.uid}})
        except DeniedError as error:
            error.hint = f"ask for delete on pods, or cancel the whole array: hpj cancel {place.whole.run_id}"
            raise
    if look is not None:
        await _last_words(runs, place, look)


async def _last_words(runs: RunLook, place: Where, look: Look) -> None:
    for _ in range(int(_LAST_WORDS / _PAUSE)):
        await look()
        seen = await runs.anew(place)
        if all(pod.ended or not pod.main.container_id for pod in seen.pods):
            return
        await asyncio.sleep(_PAUSE)
