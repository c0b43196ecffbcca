"""A user's services on the real cluster, for the tests of what is done to runs there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from tests.kubernetes.cluster import KubernetesTestbed
from tests.session import Session

CLUSTER = "k8s"


class Acting(Session):
    """The services of one user, and the namespace of the runs."""

    defaults: ClassVar[Mapping[str, Any]] = {"files": {"project": False}, "stop_grace": 1}

    def __init__(self, hyperpod: Hyperpod, folder: Path, namespace: str) -> None:
        super().__init__(hyperpod, folder)
        self.namespace = namespace

    def logs(self, run_id: str) -> list[Path]:
        """All logs of a run."""
        return sorted((self.records(run_id) / "logs").glob("*/*.log"))


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
    cluster: KubernetesTestbed, namespace: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Acting]:
    """A user's services over the cluster, as its administrator."""
    given = settings(cluster, namespace)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    hyperpod = Hyperpod(parse(Settings, given))
    try:
        yield Acting(hyperpod, folder, namespace)
    finally:
        await hyperpod.close()


@asynccontextmanager
async def only_looking(
    cluster: KubernetesTestbed, user: Acting, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Acting]:
    """The services of somebody who may only look at the user's jobs, their pods and logs."""
    looking = {"verbs": ["get", "list", "watch"]}
    rules = [
        {"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], **looking},
        {"apiGroups": [""], "resources": ["pods", "pods/log"], **looking},
    ]
    kubeconfig = cluster.user("looker", user.namespace, rules=rules)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    looker = Hyperpod(parse(Settings, settings(cluster, user.namespace)))
    try:
        yield Acting(looker, user.folder, user.namespace)
    finally:
        await looker.close()
        kubeconfig.unlink()


@pytest.fixture
async def user(
    kubernetes_cluster: KubernetesTestbed, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Acting]:
    """A user's services."""
    kubernetes_cluster.claim(namespace)
    async with acting(kubernetes_cluster, namespace, tmp_path, monkeypatch) as found:
        yield found
