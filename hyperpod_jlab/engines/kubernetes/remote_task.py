"""A remote task: a small program that runs once as root in a pod with the file system's claim, and prints its result. Its Job is deleted afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_state import PodState, pod_state
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import active_conditions
from hyperpod_jlab.engines.kubernetes.submit.native import is_image_name
from hyperpod_jlab.engines.kubernetes.submit.render import literal
from hyperpod_jlab.engines.remote_task import TaskSettings

TIMEOUT = 300.0
"""Seconds before a pending or running Job is deleted."""

ROOT = "/fsx"
"""The pod's mount path of the claim."""

_TTL_S = 600
"""Seconds after its end for which the cluster keeps a Job that we could not delete."""
_CONTAINER = "folders"
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}")
_FATAL_REASONS = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""The kubelet's reasons for a container that will never start."""
_SECURITY_CONTEXT: Mapping[str, Any] = {
    "runAsUser": 0,
    "runAsGroup": 0,
    "runAsNonRoot": False,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"], "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Root with only the capabilities that changing other users' folders needs (man capabilities)."""
_CLAIM_NOT_FOUND = re.compile(r'persistentvolumeclaim "[^"]*" not found')


class KubernetesTaskRunner:
    """Runs programs as Jobs.

    Args:
        connection: The connection to the cluster.
        namespace: The namespace of the claim and the Jobs.
        claim: The persistent volume claim of the whole file system.
        image: The pods' image, which contains python3; named by digest.
        timeout: Seconds before a Job is deleted.

    Raises:
        InvalidInputError: The image name has no digest.
    """

    root = ROOT
    result_dir: str | None = None

    def __init__(
        self, connection: ClusterConnection, namespace: str, claim: str, image: str, *, timeout: float = TIMEOUT
    ) -> None:
        if not is_image_name(image) or not _DIGEST.search(image):
            raise InvalidInputError(
                f"the image '{image[:100]}' must be given by digest, because it runs as root on the files of all users",
                code="image_without_digest",
                hint="use --image registry/name@sha256:...",
                detail={"field": "image"},
            )
        self._connection = connection
        self._namespace = namespace
        self._claim = claim
        self._image = image
        self._timeout = timeout

    async def run(self, program: str, name: str) -> str:
        """Run a program that prints its result (see `engines.remote_task.RemoteTask`).

        Raises:
            DeniedError: This user may not create Jobs there, or not read their pods' logs; the
                error names the permission.
            RefusedError: The pod cannot start, or the program failed.
            UnreachableError: The cluster does not answer, or the pod did not end in time.
        """
        client = await self._connection.client()
        jobs = f"/apis/batch/v1/namespaces/{self._namespace}/jobs"
        manifest = self.manifest(program, name)
        try:
            await client.post(jobs, manifest, fieldValidation="Strict")
            pod = await self._wait_for_pod(client, f"{jobs}/{name}", name)
            return await self._read_log(client, pod)
        finally:
            await self._remove(client, f"{jobs}/{name}")

    def manifest(self, program: str, name: str) -> dict[str, Any]:
        """The Job: one pod, as root with only the capabilities needed for folders, and nothing writable but the claim."""
        container = {
            "name": _CONTAINER,
            "image": self._image,
            "command": ["python3", "-I", "-c", literal(program)],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": _SECURITY_CONTEXT,
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
            "volumeMounts": [{"name": "file-system", "mountPath": ROOT}],
        }
        labels = {"app.kubernetes.io/managed-by": "hyperpod-jlab"}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "backoffLimit": 0,
                "activeDeadlineSeconds": int(self._timeout) + 60,
                "ttlSecondsAfterFinished": _TTL_S,
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": False,
                        "enableServiceLinks": False,
                        "containers": [container],
                        "volumes": [{"name": "file-system", "persistentVolumeClaim": {"claimName": self._claim}}],
                    },
                },
            },
        }

    async def _wait_for_pod(self, client: KubeClient, job: str, name: str) -> str:
        """Wait until the Job's pod has finished; returns the pod's name."""
        deadline, pause_s = time.monotonic() + self._timeout, 0.3
        pod: dict[str, Any] | None = None
        while time.monotonic() < deadline:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 3.0)
            try:
                pod = await self._pod(client, name) or pod
                active_types = active_conditions(await client.get(job))
            except UnreachableError:
                continue  # the API server may be back before the timeout
            if pod is not None:
                _check_schedulable(pod)
            if active_types.keys() & {"Complete", "SuccessCriteriaMet"} and pod is not None:
                return str(pod["metadata"]["name"])
            if active_types.keys() & {"Failed", "FailureTarget"}:
                raise _failed(name, pod)
        raise UnreachableError(
            f"the folder Job {name} did not end within {self._timeout:.0f} s and was deleted: {_waiting_reason(pod)}",
            code="job_did_not_end",
            hint="check that the namespace allows pods to run as root, and that nodes have free resources",
            detail={"job": name},
        )

    async def _pod(self, client: KubeClient, name: str) -> dict[str, Any] | None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        selector = f"batch.kubernetes.io/job-name={name}"
        pods = (await client.get(path, labelSelector=selector)).get("items") or []
        return pods[0] if pods else None

    async def _read_log(self, client: KubeClient, pod: str) -> str:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod}/log"
        async with client.stream(path, container=_CONTAINER) as stream:
            content = b"".join([chunk async for chunk in stream.chunks()])
        return content.decode("utf-8", "replace")

    async def _remove(self, client: KubeClient, job: str) -> None:
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        with contextlib.suppress(HyperpodError):  # the cluster deletes it some time after its end
            await client.delete(job, options)


def _check_schedulable(pod: Mapping[str, Any]) -> None:
    """Raise for a pod that will never start."""
    container = pod_state(pod).container(_CONTAINER)
    if container.waiting in _FATAL_REASONS:
        raise RefusedError(
            f"the pod of the folder Job cannot start: {container.waiting}: {container.message or ''}",
            code="pod_cannot_start",
            hint="use --image with an image that has python3 and that the nodes can pull",
        )
    reason = _unscheduled(pod)
    if _CLAIM_NOT_FOUND.search(reason):
        raise NotFoundError(
            f"the pod of the folder Job cannot mount the file system: {reason}",
            code="no_claim",
            hint="give the claim of the whole file system and its namespace: --claim, --namespace",
        )


def _failed(name: str, pod: Mapping[str, Any] | None) -> HyperpodError:
    state: PodState | None = None if pod is None else pod_state(pod)
    end = None if state is None else state.container(_CONTAINER).exit
    reason_messages = "its pod was removed" if end is None else f"{end.reason or 'Error'}, exit code {end.code}"
    detail = f": {end.message}" if end is not None and end.message else ""
    return RefusedError(
        f"the folder Job {name} failed: {reason_messages}{detail}",
        code="job_failed",
        hint="run this again; finished steps are not repeated, and the image needs python3 3.8 or later",
        detail={"job": name},
    )


def _waiting_reason(pod: Mapping[str, Any] | None) -> str:
    if pod is None:
        return "no pod was created for it"
    container = pod_state(pod).container(_CONTAINER)
    waiting = f"{container.waiting or ''} {container.message or ''}".strip()
    return _unscheduled(pod) or waiting or f"its pod is {pod_state(pod).phase}"


def _unscheduled(pod: Mapping[str, Any]) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


class KubernetesTasks:
    """Administrators' tasks as Jobs of one cluster.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    def task(self, settings: TaskSettings) -> KubernetesTaskRunner:
        """A task runner whose pods mount the claim of the whole file system.

        Raises:
            InvalidInputError: No claim or image is configured, or the image has no digest.
        """
        config = self._connection.config
        claim = settings.claim or (config.storage.claim if config.storage else None)
        image = settings.image or config.image
        if not claim:
            raise InvalidInputError(
                "the claim of the whole file system is not given",
                hint="give the persistent volume claim with --claim, or as storage of the cluster in the configuration",
                detail={"field": "claim"},
            )
        if not image:
            raise InvalidInputError(
                "the image of the pod is not given",
                hint="give an image with python3 by digest, registry/name@sha256:..., with --image or in the configuration of the cluster",
                detail={"field": "image"},
            )
        namespace = settings.namespace or self._connection.namespace
        return KubernetesTaskRunner(self._connection, namespace, claim, image)

    async def find_uid(self, name: str) -> int | None:
        """Pods do not know users by name.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError(f"the user id of '{name}' is unknown on this machine")
