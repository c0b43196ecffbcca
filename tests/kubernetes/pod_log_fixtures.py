"""Pods that print, and what came of their logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_log import Item, PodLog, PodLogLine, Portion
from tests.kubernetes.cluster import KubernetesTestbed

NUMBERED = """
import itertools, os, time
end = time.monotonic() + SECONDS
for number in itertools.count():
    os.write(1 + number % 7 // 6, b"%d\\n" % number)
    if number % 10 == 9:
        time.sleep(0.05)
        if time.monotonic() > end:
            break
os.write(1, b"last %d" % number)
"""


@dataclass
class Pods:
    """Pods that print."""

    cluster: KubernetesTestbed
    namespace: str
    client: KubeClient
    names: list[str] = field(default_factory=list)

    async def print(self, name: str, code: str, **spec: Any) -> PodLog:
        """A pod that runs this Python."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "containers": [
                    {
                        "name": "c",
                        "image": self.cluster.image,
                        "command": ["python3", "-uc", code],
                        "volumeMounts": [{"name": "kept", "mountPath": "/kept"}],
                    }
                ],
                "volumes": [{"name": "kept", "emptyDir": {}}],
                **spec,
            },
        }
        await asyncio.to_thread(self.cluster.create, pod, namespace=self.namespace)
        self.names.append(name)
        return self.log(name)

    def log(self, name: str) -> PodLog:
        return PodLog(self.client, self.namespace, name, "c")

    async def kubectl(self, *words: str) -> str:
        return await asyncio.to_thread(self.cluster.kubectl, *words, namespace=self.namespace)


@pytest.fixture
def pods(kubernetes_cluster: KubernetesTestbed, namespace: str, client: KubeClient) -> Pods:
    return Pods(kubernetes_cluster, namespace, client)


async def all_of(portions: AsyncIterator[Portion], seconds: float = 60) -> list[Item]:
    found: list[Item] = []
    async with asyncio.timeout(seconds):
        async for portion in portions:
            found += portion.items
    return found


def data(items: list[Item]) -> bytes:
    """The container's bytes."""
    entries = [item for item in items if isinstance(item, PodLogLine)]
    return b"".join(entry.data + b"\n" * entry.ends for entry in entries)


def rest(items: list[Item]) -> list[str]:
    """What came besides lines, by its name."""
    return [type(item).__name__ for item in items if not isinstance(item, PodLogLine)]


def numbers(text: bytes) -> list[int]:
    *lines, last = text.split(b"\n")
    found = [int(line) for line in lines]
    assert last == b"last %d" % found[-1]
    return found


async def numbered(pods: Pods, count: int, seconds: float) -> list[bytes]:
    """The logs of so many pods while connections are cut."""
    code = NUMBERED.replace("SECONDS", str(seconds))
    logs = await asyncio.gather(*(pods.print(f"p{one}", code) for one in range(count)))
    found = await asyncio.gather(*(all_of(log.follow(), seconds + 60) for log in logs))
    for items in found:
        # stdout's and stderr's lines may come in another order than they were written.
        assert sorted(numbers_of(items)) == list(range(len(numbers_of(items))))
        assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]
    return [data(items) for items in found]


def numbers_of(items: list[Item]) -> list[int]:
    return [int(line) for line in data(items).split(b"\n")[:-1]]
