"""The services, and the command line, of users of a real Kubernetes cluster.

All tests here have them. ``session`` is what most want, ``sessions`` makes others: ``sessions(server=proxy.address)``,
``sessions(kubeconfig=cluster.user("alice", namespace))``.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from tests.kubernetes.cluster import KubernetesTestbed
from tests.session import Answer, Session, run_hpj, write_config

CLUSTER = "k8s"
CLAIM = "fsx"
#: Where pods have the partition, which is not where this machine has it.
MOUNT = "/data"


class KubernetesSession(Session):
    """The services of one user of a cluster.

    Args:
        cluster: The cluster, with an administrator's rights: to look from outside.
        namespace: Where the user's runs are.
        settings: The user's configuration.
        kubeconfig: The user's.
        folder: Where sources are looked for.
    """

    deadline = 120.0

    def __init__(
        self, cluster: KubernetesTestbed, namespace: str, settings: Settings, kubeconfig: Path, folder: Path
    ) -> None:
        super().__init__(Hyperpod(settings), folder)
        self.cluster = cluster
        self.namespace = namespace
        self.kubeconfig = kubeconfig
        self.config = folder.parent / f"{folder.name}.toml"
        write_config(settings, self.config)

    @property
    def partition(self) -> Path:
        """The storage partition as this machine has it."""
        return self.hyperpod.partition.root

    @property
    def environment(self) -> dict[str, str]:
        """What a process that submits as this user has in its environment."""
        return {**self.cluster.environment, "KUBECONFIG": str(self.kubeconfig), "HYPERPOD_CONFIG": str(self.config)}

    async def hpj(self, *words: str | Path) -> Answer:
        """Run our command line as this user."""
        return await run_hpj(*words, config=self.config, folder=self.folder, environment=self.environment)

    def job_of(self, run: Run | str) -> dict[str, Any]:
        """The PyTorchJob of a run, as the cluster has it; fails when there is none."""
        run_id = run if isinstance(run, str) else run.run_id
        return self.cluster.get("pytorchjob", f"run-{run_id}", self.namespace)

    def pods_of(self, run: Run | str) -> list[dict[str, Any]]:
        """The pods of a run, by name."""
        run_id = run if isinstance(run, str) else run.run_id
        found = self.cluster.get("pods", namespace=self.namespace)["items"]
        named = {pod["metadata"]["name"]: pod for pod in found}
        return [named[name] for name in sorted(named) if name.startswith(f"run-{run_id}-")]


def settings_for(
    cluster: KubernetesTestbed, namespace: str, partition: Path, *, sub_path: str | None, **more: Any
) -> Settings:
    """The configuration of a user of the cluster.

    Args:
        cluster: The cluster.
        namespace: Of the user's runs.
        partition: The user's partition, as this machine has it.
        sub_path: The same in the claim's volume; None: the pods have no claim.
        more: Further fields of the cluster's configuration.
    """
    storage = {"claim": CLAIM, "mount": MOUNT, "sub_path": sub_path}
    given = {
        "orchestrator": "kubernetes",
        "namespace": namespace,
        "image": cluster.image,
        **({"storage": storage} if sub_path is not None else {}),
        **more,
    }
    data = {"default_cluster": CLUSTER, "storage": {"path": str(partition)}, "clusters": {CLUSTER: given}}
    return parse(Settings, data)


def own_kubeconfig(source: Path, target: Path, context: str, server: str | None = None) -> None:
    """Copy a kubeconfig of one context, which gets another name and, if given, another address of its API server.

    A server that is not the cluster's own is not checked: it cannot have the cluster's certificate.
    """
    import yaml

    data = yaml.safe_load(source.read_text())
    by_name = {each["name"]: each["context"] for each in data["contexts"]}
    chosen = by_name[data["current-context"]]
    clusters = {each["name"]: each["cluster"] for each in data["clusters"]}
    users = {each["name"]: each["user"] for each in data["users"]}
    reached = clusters[chosen["cluster"]]
    if server is not None:
        reached = {"server": server}
        if server.startswith("https"):
            reached["insecure-skip-tls-verify"] = True
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": reached}],
        "users": [{"name": context, "user": users[chosen["user"]]}],
        "contexts": [{"name": context, "context": {**chosen, "cluster": context, "user": context}}],
    }
    target.touch(mode=0o600)
    target.write_text(yaml.safe_dump(made))


class Sessions:
    """Makes sessions on one cluster; each has a kubeconfig and a context of its own.

    Args:
        cluster: The cluster.
        namespace: Where runs are unless told otherwise.
        folder: For the sessions' files.
        monkeypatch: Sets ``KUBECONFIG`` to the kubeconfigs of all sessions.
    """

    def __init__(
        self, cluster: KubernetesTestbed, namespace: str, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._claimed: set[str] = set()
        self._kubeconfigs: list[Path] = []
        self._partitions: list[Path] = []
        self.made: list[KubernetesSession] = []

    def __call__(
        self,
        *,
        claim: bool = True,
        kubeconfig: Path | None = None,
        server: str | None = None,
        namespace: str | None = None,
        cluster: KubernetesTestbed | None = None,
        **more: Any,
    ) -> KubernetesSession:
        """Another session.

        Args:
            claim: Whether the pods have the partition; else only own manifests run.
            kubeconfig: The user's; default: the administrator's.
            server: Address in place of the API server's, as a proxy's.
            namespace: Of the runs.
            cluster: Another cluster.
            more: Further fields of the cluster's configuration.
        """
        cluster = cluster or self._cluster
        namespace = namespace or self._namespace
        number = len(self.made)
        mine = self._folder / f"kubeconfig-{number}"
        own_kubeconfig(kubeconfig or cluster.kubeconfig, mine, f"session-{number}", server)
        self._kubeconfigs.append(mine)
        self._monkeypatch.setenv("KUBECONFIG", ":".join(map(str, self._kubeconfigs)))
        partition = self._partition(cluster, namespace) if claim else self._folder / "partition"
        partition.mkdir(exist_ok=True)
        settings = settings_for(
            cluster, namespace, partition, sub_path=namespace if claim else None, context=f"session-{number}", **more
        )
        folder = self._folder / f"project-{number}"
        folder.mkdir()
        self.made.append(KubernetesSession(cluster, namespace, settings, mine, folder))
        return self.made[-1]

    def _partition(self, cluster: KubernetesTestbed, namespace: str) -> Path:
        """A folder of the namespace's own in the claim's volume."""
        if cluster.partition is None:
            raise RuntimeError("the cluster has no partition")
        if (key := f"{cluster.kubeconfig} {namespace}") not in self._claimed:
            cluster.claim(namespace, CLAIM)
            self._claimed.add(key)
        partition = cluster.partition / namespace
        self._partitions.append(partition)
        return partition

    async def close(self) -> None:
        """Close all, and remove what is in the volume."""
        for session in self.made:
            await session.hyperpod.close()
        for partition in self._partitions:
            shutil.rmtree(partition, ignore_errors=True)


@pytest.fixture
async def sessions(
    kubernetes_cluster: KubernetesTestbed, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sessions]:
    """Makes sessions on the shared cluster, in a namespace of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Sessions(kubernetes_cluster, namespace, tmp_path, monkeypatch)
    yield made
    await made.close()


@pytest.fixture
def session(sessions: Callable[..., KubernetesSession]) -> KubernetesSession:
    """A session of an administrator, whose pods mount the partition."""
    return sessions()
