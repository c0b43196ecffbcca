"""A user's services on the real cluster, for the tests of what is done to runs there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hyperpod_jlab.model.config import Settings
from hyperpod_jlab.model.run import Run
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.validation import parse
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.submission import Request
from tests.kubernetes.cluster import KubernetesTestbed

CLUSTER = "k8s"


class Acting:
    """The services of one user, and the namespace of the runs."""

    defaults: ClassVar[Mapping[str, Any]] = {"files": {"project": False}, "stop_grace": 1}

    def __init__(self, hyperpod: Hyperpod, folder: Path, namespace: str) -> None:
        self.hyperpod = hyperpod
        self.folder = folder
        self.namespace = namespace

    async def submit(self, command: str = "true", *, run_id: str | None = None, **spec: Any) -> str:
        """Submit a shell command, or the ``source`` that is given; returns the run id."""
        source = {"kind": "command", "command": command}
        data = {"source": source, **self.defaults, **spec}
        request = Request(parse(JobSpec, data), run_id=run_id, base=self.folder)
        return await self.hyperpod.submitter.submit(request)

    async def until(self, run_id: str, there: Callable[[Run], bool], seconds: float = 60) -> Run:
        """Wait until a run looks as wanted."""
        end = time.monotonic() + seconds
        while not there(run := await self.hyperpod.runs.get(run_id)):
            assert time.monotonic() < end, f"never so; last: {run.status}"
            await asyncio.sleep(0.1)
        return run

    async def ended(self, run_id: str) -> Run:
        """Wait for a run's end."""
        return await self.until(run_id, lambda run: run.status.ended)

    async def running(self, run_id: str, attempt: int = 1) -> Run:
        """Wait until all nodes of an attempt have started."""
        return await self.until(
            run_id,
            lambda run: (
                len(run.status.attempts) >= attempt
                and len(run.status.attempts[-1].nodes) >= run.nodes
                and run.state == "running"
            ),
        )

    def log(self, run_id: str, node: int = 0, attempt: int = 1) -> str:
        """What the first rank of a node wrote."""
        records = self.hyperpod.runs.records_folder(run_id)
        path = records / f"logs/attempt-{attempt}/node-{node}.rank-0.log"
        return path.read_text() if path.exists() else ""

    def logs(self, run_id: str) -> list[Path]:
        """All logs of a run."""
        return sorted((self.hyperpod.runs.records_folder(run_id) / "logs").glob("*/*.log"))


def settings(cluster: KubernetesTestbed, namespace: str) -> dict[str, Any]:
    """A configuration with the cluster, the claim in the namespace, and a partition of the cluster's."""
    return {
        "default_cluster": CLUSTER,
        "storage": {"path": str(cluster.partition)},
        "clusters": {
            CLUSTER: {
                "orchestrator": "kubernetes",
                "namespace": namespace,
                "image": cluster.image,
                "storage": {"claim": "fsx", "mount": "/data"},
            }
        },
    }


@asynccontextmanager
async def acting(
    cluster: KubernetesTestbed,
    namespace: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    shared: bool = True,
) -> AsyncIterator[Acting]:
    """A user's services over the cluster, as its administrator; `shared`: whether pods mount the partition."""
    given = settings(cluster, namespace)
    if shared:
        cluster.claim(namespace)
    else:
        del given["clusters"][CLUSTER]["storage"]
        given["storage"] = {"path": str(folder / "partition")}
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    hyperpod = Hyperpod(parse(Settings, given))
    try:
        yield Acting(hyperpod, folder, namespace)
    finally:
        await hyperpod.close()


@pytest.fixture
async def user(
    kubernetes_cluster: KubernetesTestbed,
    namespace: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Acting]:
    """A user's services."""
    async with acting(kubernetes_cluster, namespace, tmp_path, monkeypatch) as found:
        yield found
