"""JupyterLab of a user of a real Kubernetes cluster: the testbed's, or the one that the tests' variables name."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import yaml
from lab_page import open_tab
from lab_server import LabServer, lab_server
from playwright.sync_api import Locator, Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.kubernetes.cluster import KubernetesTestbed, of_the_user, running

CLUSTER = "k8s"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "kubernetes"


@contextmanager
def any_cluster(*parts: str) -> Iterator[KubernetesTestbed]:
    """The cluster that the variables name, else one of our own with the training operator and these parts."""
    if theirs := of_the_user():
        yield theirs
        return
    with running("--gpus", "8", parts=("training-operator", *parts)) as cluster:
        yield cluster


@contextmanager
def some_namespace(cluster: KubernetesTestbed, name: str = "") -> Iterator[str]:
    """A namespace of the tests' own, with a claim called fsx that is the partition."""
    name = name or f"ui-{uuid4().hex[:8]}"
    cluster.make_namespace(name)
    try:
        cluster.claim(name)
        yield name
    finally:
        cluster.delete_namespace(name)
        shutil.rmtree(folder_of(cluster, name), ignore_errors=True)


def config_for(cluster: KubernetesTestbed, namespace: str, name: str = CLUSTER) -> str:
    """The configuration of a user whose runs are in a namespace; each has a folder of the partition as their own.

    Args:
        cluster: The cluster.
        namespace: Of the runs.
        name: The cluster's name there.
    """
    keys = {"orchestrator": "kubernetes", "namespace": namespace, "image": cluster.image}
    # A text in JSON is one in TOML too.
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    lines.append(f'storage = {{ claim = "fsx", mount = "/data", sub_path = {json.dumps(namespace)} }}')
    top = f"[storage]\npath = {json.dumps(str(folder_of(cluster, namespace)))}\n"
    return f"{top}[clusters.{name}]\n" + "\n".join(lines) + "\n"


def folder_of(cluster: KubernetesTestbed, namespace: str) -> Path:
    """The part of the partition that the user of a namespace sees."""
    assert cluster.partition is not None, "the tests need a partition"
    folder = cluster.partition / namespace
    folder.mkdir(exist_ok=True)
    return folder


def grant(cluster: KubernetesTestbed, namespace: str, *roles: str) -> Path:
    """The kubeconfig of somebody who has the smallest role of the examples, and these beside it."""
    rules = []
    for file in ("role.yaml", "role-options.yaml"):
        for one in yaml.safe_load_all((EXAMPLES / file).read_text()):
            if one["metadata"]["name"] in {"hyperpod-jlab-user", *roles}:
                rules += one.get("rules", [])
    return cluster.user(f"user-{uuid4().hex[:6]}", namespace, rules=rules)


@contextmanager
def kubernetes_lab(
    home: Path,
    cluster: KubernetesTestbed,
    namespace: str,
    *,
    kubeconfig: Path | None = None,
    name: str = CLUSTER,
) -> Iterator[LabServer]:
    """A server that knows this cluster and, as all do, the embedded one.

    Args:
        home: See `LabServer`.
        cluster: The cluster.
        namespace: Of the runs.
        kubeconfig: Whose rights one has; default: the administrator's.
        name: The cluster's name in the configuration.
    """
    config = config_for(cluster, namespace, name)
    environment = {"KUBECONFIG": str(kubeconfig or cluster.kubeconfig)}
    with lab_server(home, config=config, environment=environment) as server:
        yield server


def submit(server: LabServer, command: str, *options: str) -> str:
    """Send a command's run; returns its id."""
    return server.hpj("submit", "--cluster", CLUSTER, *options, "-c", command)


def open_cluster(page: Page, tab: str) -> Locator:
    """A tab of the cluster's page."""
    return open_tab(page, CLUSTER, tab)
