"""What the tests of tables and of waiting do beside their sessions: look until it is so, pods that only hold something, Kueue's objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from hyperpod_jlab.core.cluster import WaitReason
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import KubernetesSession

DEADLINE = 60.0
GROUP = "kueue.x-k8s.io/v1beta1"

Found = TypeVar("Found")


async def until(look: Callable[[], Awaitable[Found]], there: Callable[[Found], bool]) -> Found:
    """Looks again and again until it is as expected."""
    end = time.monotonic() + DEADLINE
    while not there(found := await look()):
        assert time.monotonic() < end, f"never so; last: {found}"
        await asyncio.sleep(0.3)
    return found


async def why(session: KubernetesSession, run_id: str, code: str) -> WaitReason:
    """Why a run waits, once the cluster gives this reason."""

    async def look() -> WaitReason:
        return await session.hyperpod.runs.explain_wait(run_id)

    return await until(look, lambda told: told.reason_code == code)


async def create(session: KubernetesSession, *objects: Mapping[str, Any], namespace: str | None = None) -> None:
    """Creates objects as the administrator, in the session's namespace or another."""
    where = namespace or session.namespace
    await asyncio.to_thread(session.cluster.create, *objects, namespace=where)


async def kubectl(session: KubernetesSession, *words: str) -> str:
    """What the administrator does in the session's namespace."""
    return await asyncio.to_thread(session.cluster.kubectl, *words, namespace=session.namespace)


def pod(name: str, image: str, amounts: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    """A pod that sleeps."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "pytorch", "image": image, "command": ["sleep", "600"], "resources": {"limits": dict(amounts)}}
            ],
            **spec,
        },
    }


def pytorch_job(name: str, template: Mapping[str, Any], **labels: str) -> dict[str, Any]:
    """A PyTorchJob of one such pod."""
    master = {"replicas": 1, "restartPolicy": "Never", "template": {"spec": template["spec"]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {"pytorchReplicaSpecs": {"Master": master}},
    }


def cluster_queue(name: str, flavor: str, gpus: int, namespace: str, **spec: Any) -> dict[str, Any]:
    """Quota of so many GPUs, and CPUs and memory enough, for one namespace."""
    amounts = {"cpu": 100, "memory": "100Gi", "nvidia.com/gpu": gpus}
    resources = [{"name": key, "nominalQuota": value} for key, value in amounts.items()]
    return {
        "apiVersion": GROUP,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceGroups": [
                {"coveredResources": list(amounts), "flavors": [{"name": flavor, "resources": resources}]}
            ],
            **spec,
        },
    }


def local_queue(name: str, queue: str) -> dict[str, Any]:
    """A queue of a namespace."""
    return {"apiVersion": GROUP, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": queue}}


@contextmanager
def queues(cluster: KubernetesTestbed, namespace: str, more: Sequence[Mapping[str, Any]] = ()) -> Iterator[None]:
    """Queues of a namespace: ``team`` with 4 GPUs, ``spare`` with 2, ``stopped``, and ``nowhere`` without quota; and two priorities."""
    flavor = {"apiVersion": GROUP, "kind": "ResourceFlavor", "metadata": {"name": namespace}}
    preempts = {"withinClusterQueue": "LowerPriority"}
    made = [
        flavor,
        cluster_queue(f"{namespace}-team", namespace, 4, namespace, preemption=preempts),
        cluster_queue(f"{namespace}-spare", namespace, 2, namespace),
        cluster_queue(f"{namespace}-stopped", namespace, 4, namespace, stopPolicy="Hold"),
        *(_priority(f"{namespace}-{name}", value) for name, value in (("low", 10), ("high", 1000))),
        *more,
    ]
    names = {"team": "team", "spare": "spare", "stopped": "stopped", "nowhere": "missing"}
    try:
        cluster.create(*made)
        cluster.create(*(local_queue(name, f"{namespace}-{of}") for name, of in names.items()), namespace=namespace)
        yield
    finally:
        cluster.kubectl(*("delete", "pytorchjobs,jobs", "--all", "--wait=false"), namespace=namespace)
        for one in made:
            kind, name = str(one["kind"]), str(one["metadata"]["name"])
            cluster.kubectl("delete", kind, name, "--wait=false", "--ignore-not-found")


def _priority(name: str, value: int) -> dict[str, Any]:
    return {
        "apiVersion": GROUP,
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
        "description": "of a test",
    }
