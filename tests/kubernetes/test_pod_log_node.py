"""The log of a container while parts of the cluster die and come back: each line exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_log import Item, PodLog, PodLogLine
from tests.kubernetes.cluster import KubernetesTestbed

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

CODE = """
import itertools, time
end = time.monotonic() + 25
for number in itertools.count():
    print(number)
    time.sleep(0.02)
    if time.monotonic() > end:
        break
print("end")
"""


@pytest.fixture
async def client(
    kubernetes: KubernetesTestbed, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KubeClient]:
    monkeypatch.setenv("KUBECONFIG", str(kubernetes.kubeconfig))
    made = KubeClient(load_access(KubernetesCluster(orchestrator="kubernetes")))
    yield made
    await made.close()


@pytest.mark.parametrize(
    ("machine", "part"),
    [("node1", "kubelet"), ("node1", "containerd"), ("control", "kube-apiserver")],
)
async def test_a_part_is_killed_and_comes_back(
    kubernetes: KubernetesTestbed, namespace: str, client: KubeClient, machine: str, part: str
) -> None:
    container = {"name": "c", "image": kubernetes.image, "command": ["python3", "-uc", CODE]}
    spec = {"restartPolicy": "Never", "nodeName": "node1", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    await asyncio.to_thread(kubernetes.create, pod, namespace=namespace)
    log = PodLog(client, namespace, "p", "c")
    items: list[Item] = []

    async def follow() -> None:
        async for portion in log.follow():
            items.extend(portion.items)

    following = asyncio.create_task(follow())
    async with asyncio.timeout(60):
        while len(items) < 100:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.to_thread(kubernetes.component_kill, machine, part)
    await asyncio.sleep(4)
    await asyncio.to_thread(kubernetes.component_start, machine, part)
    async with asyncio.timeout(150):
        await following
    *lines, last = [item.data for item in items if isinstance(item, PodLogLine)]
    assert last == b"end"
    assert [int(line) for line in lines] == list(range(len(lines)))
    assert [type(item).__name__ for item in items if not isinstance(item, PodLogLine)] == [
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]
