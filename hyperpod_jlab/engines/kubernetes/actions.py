"""Actions on runs and jobs of a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence

from hyperpod_jlab.core.cluster import ChangeField
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import (
    CORDON_ANNOTATION,
    HELD_ANNOTATION,
    OBSERVER,
    QUEUE_LABEL,
    is_suspended,
    suspend_patch,
)
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunPoller
from hyperpod_jlab.engines.kubernetes.observe.runs import RunTracker
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.engines.kubernetes.targets import Target, find_target, run_target
from hyperpod_jlab.engines.kubernetes.workloads import Workload, find_workload, kueue_version, set_active
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Actions on runs and jobs: cancel, hold, release, requeue, change their queue.
#
# A job managed by Kueue is held through its workload, because Kueue would resume one that is only
# suspended; other jobs are held through their own ``suspend``.

_CONCURRENCY = 8
_PAUSE_S = 0.5
_GRACE = 30.0
"""Kubernetes' default grace period of a pod in seconds."""
_DELETE_MARGIN_S = 30.0
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


async def cancel(client: KubeClient, target: Target) -> None:
    """Delete a job and its pods.

    Args:
        client: The cluster.
        target: The job. A missing one is not an error.

    Raises:
        ConflictError: The job has ended.
        DeniedError: This user lacks the permission.
    """
    if _has_no_active_pods(target):
        raise _wrong_state_error(target, "has ended; only waiting or running jobs can be cancelled")
    options = {"propagationPolicy": "Background", "preconditions": {"uid": target.uid}}
    # A conflict: it is gone, and a new one may have its name.
    with contextlib.suppress(NotFoundError, ConflictError):
        await client.delete(target.object_text, options)


async def hold(client: KubeClient, target: Target) -> None:
    """Keep a waiting job from starting.

    Raises:
        ConflictError: The job runs or has ended.
        DeniedError: This user lacks the permission.
    """
    if _has_no_active_pods(target):
        raise _wrong_state_error(target, "has ended; only waiting jobs can be held")
    if target.kind.observe(target.job, time.time()).state == "running":
        raise _wrong_state_error(target, "is running; only waiting jobs can be held")
    await _suspend(client, target, await find_workload(client, target.job), is_held=True)


async def release(client: KubeClient, target: Target) -> None:
    """Let a held job start.

    Raises:
        ConflictError: The job is not held.
        DeniedError: This user lacks the permission.
    """
    if _has_no_active_pods(target):
        raise _wrong_state_error(target, "has ended; only held jobs can be released")
    workload = await find_workload(client, target.job)
    if workload is not None and workload.active:
        raise _wrong_state_error(target, "is not held; it is waiting in its queue")
    if workload is None and not is_suspended(target.kind, target.job):
        raise _wrong_state_error(target, "is not held")
    await _unsuspend(client, target, workload)


async def requeue(client: KubeClient, target: Target) -> None:
    """End a job's pods and restart the job; the new pods' launchers start the next attempt.

    Deleting the pods is not enough: a pod that fails meanwhile fails the job for good.

    Raises:
        ConflictError: The job does not run.
        DeniedError: This user lacks the permission.
    """
    if _has_no_active_pods(target):
        raise _wrong_state_error(target, "has ended; only running jobs can be requeued")
    workload = await find_workload(client, target.job)
    if is_suspended(target.kind, target.job) or (workload is not None and not workload.admitted):
        raise _wrong_state_error(target, "is waiting; only running jobs can be requeued")
    await _suspend(client, target, workload, is_held=False)
    try:
        await _wait_until_deleted(client, target)
    finally:
        await _unsuspend(client, target, workload)


async def change(client: KubeClient, target: Target, requested_change: Change) -> None:
    """Move a waiting job to another Kueue queue.

    Raises:
        UnsupportedError: The change is a time limit, or the cluster has no queues.
        ConflictError: The job does not wait.
        NotFoundError: The queue does not exist.
        DeniedError: This user lacks the permission.
    """
    if requested_change.time_limit is not None:
        raise UnsupportedError(
            "the time limit of a Kubernetes job cannot be changed after submission",
            hint="submit it again with another time limit: hpj clone RUN --time-limit TIME",
            detail={"field": "time_limit"},
        )
    queue = requested_change.queue or ""
    version = await kueue_version(client)
    if version is None:
        raise UnsupportedError("the cluster has no queues (Kueue is not installed)", detail={"field": "queue"})
    await _check_queue(client, version, target.namespace, queue)
    if _has_no_active_pods(target) or not is_suspended(target.kind, target.job):
        raise _wrong_state_error(
            target, "is running or has ended; the queue can be changed only while a job is waiting"
        )
    await client.patch(target.object_text, {"metadata": {"labels": {QUEUE_LABEL: queue}}})


async def apply_to_jobs(
    client: KubeClient, action: ActionKind, jobs: Sequence[str], requested_change: Change | None, namespace: str
) -> list[JobResult]:
    """Apply an action to jobs of the table, whoever submitted them; returns one result for each, in order.

    Args:
        client: The cluster.
        action: The action.
        jobs: Their ids.
        requested_change: The changes, for the action ``change``.
        namespace: The namespace of ids that name none.
    """
    semaphore = asyncio.Semaphore(_CONCURRENCY)

    async def apply(job: str) -> JobResult:
        async with semaphore:
            try:
                await apply_action(client, action, await find_target(client, job, namespace), requested_change)
            except HyperpodError as error:
                error.detail.setdefault("job", job)
                return JobResult(job, error)
        return JobResult(job)

    return list(await asyncio.gather(*map(apply, jobs)))


async def apply_action(
    client: KubeClient, action: ActionKind, target: Target, requested_change: Change | None = None
) -> None:
    """Apply one action to one job (see the functions of these names)."""
    match action:
        case "cancel":
            await cancel(client, target)
        case "hold":
            await hold(client, target)
        case "release":
            await release(client, target)
        case "requeue":
            await requeue(client, target)
        case "change":
            await change(client, target, requested_change or Change())


async def _suspend(client: KubeClient, target: Target, workload: Workload | None, *, is_held: bool) -> None:
    """Suspend the job permanently; with `is_held` its state says that a user holds it."""
    annotations = {"metadata": {"annotations": {HELD_ANNOTATION: "true"}}} if is_held else {}
    if workload is not None:
        await set_active(client, workload, False)
        if annotations:
            await client.patch(target.object_text, annotations)
    else:
        await client.patch(target.object_text, {**annotations, **suspend_patch(target.kind, True)})


async def _unsuspend(client: KubeClient, target: Target, workload: Workload | None) -> None:
    annotations = {"metadata": {"annotations": {HELD_ANNOTATION: None}}}
    if workload is not None:
        await client.patch(target.object_text, annotations)
        await set_active(client, workload, True)
    else:
        await client.patch(target.object_text, {**annotations, **suspend_patch(target.kind, False)})


async def _wait_until_deleted(client: KubeClient, target: Target) -> None:
    """Wait until the pods are deleted, because new pods cannot reuse their names before."""
    path = f"/api/v1/namespaces/{target.namespace}/pods"
    selector = target.kind.pods_selector(target.name)
    end: float | None = None
    while True:
        pods = (await client.get(path, labelSelector=selector)).get("items") or []
        if not pods:
            return
        if end is None:
            graces = [(pod.get("spec") or {}).get("terminationGracePeriodSeconds") for pod in pods]
            timeout = max(map(float, filter(None, graces)), default=_GRACE) + _DELETE_MARGIN_S
            end = time.monotonic() + timeout
        if time.monotonic() > end:
            return  # pods on a lost node stay; the operator makes the new ones when it can
        await asyncio.sleep(_PAUSE_S)


async def _check_queue(client: KubeClient, version: str, namespace: str, queue: str) -> None:
    if not _NAME.fullmatch(queue):
        raise InvalidInputError(
            f"'{queue[:60]}' is not a valid queue name",
            code="unknown_queue",
            hint="list queues with: hpj queues",
            detail={"field": "queue"},
        )
    try:
        await client.get(f"/apis/{version}/namespaces/{namespace}/localqueues/{queue}")
    except NotFoundError as error:
        raise NotFoundError(
            f"queue {queue} not found in the namespace {namespace}",
            code="unknown_queue",
            hint="list queues with: hpj queues",
            detail={"field": "queue", "queue": queue},
        ) from error
    except DeniedError:  # a user may use a queue without permission to read it
        return


def _has_no_active_pods(target: Target) -> bool:
    """Whether the job has ended and no pod is active; a failed job's other pods may be."""
    if target.kind.observe(target.job, time.time()).state != "ended":
        return False
    counts = (target.job.get("status") or {}).get("replicaStatuses") or {}
    return not any((count or {}).get("active") for count in counts.values())


def _wrong_state_error(target: Target, text: str) -> ConflictError:
    return ConflictError(f"{target} {text}", code="wrong_state", detail={"job": str(target)})


def cancelled(name: str) -> Observation:
    """The observation that a run was cancelled; its job can no longer report it."""
    return Observation(time=time.time(), observer=OBSERVER, scheduler_id=name, state="ended", verdict="CANCELLED")


# --------------------------------------------------------------------------------------------------
# Actions on one task of an array: only cancel; everything else applies to the whole Job.


def task_unsupported(run_id: str, action: ActionKind) -> UnsupportedError:
    """The error for an action that single tasks do not support."""
    return UnsupportedError(
        f"{action} is not possible for single tasks of an array on Kubernetes: all tasks are one Job",
        hint=f"use the whole array: hpj {action} {run_id.partition('.')[0]}",
        detail={"run_id": run_id},
    )


async def cancel_task(client: KubeClient, runs: RunPoller, location: RunLocation) -> None:
    """Cancel one array task by deleting its pod: the Job counts the task as failed and creates no other pod.

    A task without a pod ends when its pod starts: its launcher finds the cancel in the journal.

    Args:
        client: The cluster.
        runs: Provides its pods.
        location: The task.

    Raises:
        ConflictError: The task has ended.
        DeniedError: This user may not delete pods.
    """
    snapshot = await runs.refresh(location)
    if snapshot.job is None:
        return  # its array was deleted, and all pods with it
    if snapshot.job.observe(snapshot.time).state == "ended":
        raise ConflictError(
            f"{location.run_id} has ended; only waiting or running jobs can be cancelled",
            code="wrong_state",
            detail={"run_id": location.run_id},
        )
    for pod in snapshot.pods:
        if pod.is_ended:
            continue
        path = f"/api/v1/namespaces/{location.namespace}/pods/{pod.name}"
        try:
            with contextlib.suppress(NotFoundError):
                await client.delete(path, {"preconditions": {"uid": pod.uid}})
        except DeniedError as error:
            error.hint = f"ask your administrator for the verb delete on pods, or cancel the whole array: hpj cancel {location.parent.run_id}"
            raise


class KubernetesActions:
    """Actions on jobs, whether they are runs or not; implements `Actions` and `JobActions`.

    Args:
        connection: The cluster.
        run_tracker: The cluster's runs.
    """

    supported: tuple[ActionKind, ...] = ("cancel", "hold", "release", "requeue", "change")
    changes: tuple[ChangeField, ...] = ("queue",)
    covers_runs = False

    def __init__(self, connection: ClusterConnection, run_tracker: RunTracker) -> None:
        self._connection = connection
        self._run_tracker = run_tracker

    async def act(self, action: ActionKind, bundle: BundleReader, change: Change | None = None) -> None:
        """Apply the action to the run's job. A cancel deletes the job and its companion objects; the run's output stays in the bundle."""
        if action == "cancel":
            await self._cancel(bundle)
        else:
            await self._act(action, bundle, change)

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Apply the action to jobs of the table, whoever submitted them."""
        client = await self._connection.client()
        try:
            return await apply_to_jobs(client, action, jobs, change, self._connection.namespace)
        finally:
            self._run_tracker.forget()

    async def _cancel(self, bundle: BundleReader) -> None:
        try:
            await self._act("cancel", bundle)
        except NotFoundError:
            if (await asyncio.to_thread(bundle.read)).submission is None:
                raise  # the delete may not have reached the server
        except ConflictError as error:
            if error.code != "wrong_state":
                raise
            return  # it has just ended
        sent = await asyncio.to_thread(read_sent, bundle)
        await asyncio.to_thread(bundle.add_observation, cancelled(sent.name))

    async def _act(self, action: ActionKind, bundle: BundleReader, change: Change | None = None) -> None:
        client = await self._connection.client()
        try:
            if bundle.index is not None:
                if action != "cancel":
                    raise task_unsupported(bundle.run_id, action)
                await asyncio.to_thread(bundle.check_own, action)
                location = await self._run_tracker.poller.locate(bundle)
                await cancel_task(client, self._run_tracker.poller, location)
                return
            target = await run_target(client, bundle)
            await apply_action(client, action, target, change)
        finally:
            self._run_tracker.forget()


# --------------------------------------------------------------------------------------------------
# Node commands: cordon (no new pods) and uncordon.

_NODE_CONCURRENCY = 8


class KubernetesNodeControl:
    """Cordons and uncordons nodes.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Cordon or uncordon nodes. Running pods stay; the reason is stored on the node."""
        client = await self._connection.client()
        semaphore = asyncio.Semaphore(_NODE_CONCURRENCY)
        drains = action == "drain"
        change = {
            "metadata": {"annotations": {CORDON_ANNOTATION: reason if drains else None}},
            "spec": {"unschedulable": True if drains else None},
        }

        async def apply(name: str) -> HyperpodError | None:
            async with semaphore:
                try:
                    await client.patch(f"/api/v1/nodes/{name}", change)
                except HyperpodError as error:
                    return error
            return None

        return dict(zip(nodes, await asyncio.gather(*map(apply, nodes)), strict=True))
