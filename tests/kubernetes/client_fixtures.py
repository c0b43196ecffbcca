"""A client of the API server, and the way to it with faults in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.proxy import FaultyProxy


@pytest.fixture
def proxy(kubernetes_cluster: KubernetesTestbed) -> Iterator[FaultyProxy]:
    """In front of the API server."""
    with FaultyProxy(kubernetes_cluster.kubeconfig) as made:
        yield made


@pytest.fixture
async def client(proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KubeClient]:
    """One whose requests go through the proxy."""
    monkeypatch.setenv("KUBECONFIG", str(proxy.kubeconfig))
    made = KubeClient(load_access(KubernetesCluster(orchestrator="kubernetes")))
    yield made
    await made.close()
