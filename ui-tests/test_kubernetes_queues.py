"""Kueue in the real panel: quota as bars, why a run waits, holding and letting go, another queue. A long test: Kueue takes its time to be built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kubernetes_lab import any_cluster, kubernetes_lab, open_cluster, some_namespace, submit
from lab_page import (
    CLUSTER_PAGE,
    RUN_PAGE,
    expect_state,
    more_action,
    open_lab,
    open_run,
    refresh_until,
    row,
    run_tab,
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer
from playwright.sync_api import Page, expect

from tests.kubernetes.cluster import KubernetesTestbed

SLOW = 60_000
pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]
GPU = "nvidia.com/gpu"
#: Runs until it is requeued.
AGAIN = 'echo "begun as $HYPERPOD_ATTEMPT"; [ "$HYPERPOD_ATTEMPT" = 2 ] || sleep 600'


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesTestbed]:
    """One with Kueue."""
    with any_cluster("kueue") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def namespace(cluster: KubernetesTestbed) -> Iterator[str]:
    """Where the runs are, with a queue called training of four GPUs."""
    with some_namespace(cluster) as name:
        cluster.create(*queue_for(name))
        cluster.create(local_queue(name), namespace=name)
        yield name
        cluster.kubectl("delete", "pytorchjobs", "--all", namespace=name)
        cluster.kubectl("delete", "clusterqueue,resourceflavor", name)


@pytest.fixture(scope="module")
def lab(cluster: KubernetesTestbed, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """Of someone who may do and see all."""
    with kubernetes_lab(tmp_path_factory.mktemp("kueue") / "home", cluster, namespace) as server:
        yield server


def queue_for(name: str) -> list[dict[str, object]]:
    """A flavor and a cluster queue."""
    resources = [{"name": "cpu", "nominalQuota": 8}, {"name": GPU, "nominalQuota": 4}]
    group = {"coveredResources": ["cpu", GPU], "flavors": [{"name": name, "resources": resources}]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    return [
        kueue("ResourceFlavor", name),
        kueue("ClusterQueue", name, namespaceSelector=selector, resourceGroups=[group]),
    ]


def local_queue(cluster_queue: str) -> dict[str, object]:
    """The namespace's."""
    return kueue("LocalQueue", "training", clusterQueue=cluster_queue)


def kueue(kind: str, name: str, **spec: object) -> dict[str, object]:
    """An object of Kueue's."""
    meta = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}}
    return {**meta, **({"spec": spec} if spec else {})}


def send(server: LabServer, name: str, gpus: int, command: str = "echo begun; sleep 600") -> str:
    """Send a run to the queue."""
    size = ("--queue", "training", "--gpus-per-node", str(gpus), "--processes-per-node", "1")
    return submit(server, command, *size, "--name", name)


def test_a_run_waits_for_quota_and_is_held(page: Page, lab: LabServer) -> None:
    first = send(lab, "first", 3)
    second = send(lab, "second", 2, "echo at last")
    open_lab(page, lab)
    shown = open_run(page, first)
    wait_for_line(page, "begun", RUN_PAGE, timeout=SLOW)

    queues = open_cluster(page, "Queues")
    refresh_until(queues, row(queues, "training").get_by_text(f"{GPU}: 3 of 4 in use; 1 free"))
    expect(row(queues, "training").locator('.jp-HyperPod-Bar-part[data-use="used"]')).to_have_count(1)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, CLUSTER_PAGE) == []
    page.keyboard.press("Escape")

    open_lab(page, lab)
    shown = open_run(page, second)
    expect_state(shown, "waiting", timeout=SLOW)
    why = shown.locator(".jp-HyperPod-Why")
    expect(why).to_contain_text("Queue position1", timeout=SLOW)
    expect(shown).to_contain_text(f"1 more {GPU} must become free")
    assert violations(page, RUN_PAGE) == []
    shown.get_by_role("button", name="Hold", exact=True).click()
    release = shown.get_by_role("button", name="Release", exact=True)
    expect(release).to_be_visible(timeout=SLOW)
    lab.hpj("cancel", first)
    release.click()
    wait_for_line(page, "at last", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "succeeded", timeout=SLOW)


def test_a_requeue_goes_on_in_the_same_log(page: Page, lab: LabServer) -> None:
    run_id = send(lab, "again", 1, AGAIN)
    open_lab(page, lab)
    shown = open_run(page, run_id)
    wait_for_line(page, "begun as 1", RUN_PAGE, timeout=SLOW)
    more_action(shown, "Requeue")
    page.locator(".jp-Dialog").get_by_role("button", name="Requeue").click()
    wait_for_line(page, "begun as 2", RUN_PAGE, timeout=2 * SLOW)
    expect_state(shown, "succeeded", timeout=SLOW)
    mark = shown.locator('.jp-HyperPod-LogRow-mark[data-kind="attempt"]')
    expect(mark.filter(has_text="2").first).to_be_visible()
    run_tab(shown, "Overview").get_by_text("2 attempts").click()
    expect(shown.locator(".jp-HyperPod-Children-rows").get_by_role("row")).to_have_count(3)
