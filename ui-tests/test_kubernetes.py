"""Journeys on a real Kubernetes, in the real panel: from a cell to its log on two pods, another cluster by a click, ports, the cluster's page, few rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes_lab import CLUSTER, any_cluster, grant, kubernetes_lab, open_cluster, some_namespace, submit
from lab_page import (
    CLUSTER_PAGE,
    DIALOG,
    RUN_PAGE,
    expect_state,
    log_lines,
    open_lab,
    open_notebook,
    open_run,
    refresh_until,
    row,
    run_tab,
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer
from notebooks import STEPS, code_cell, write_notebook
from playwright.sync_api import Locator, Page, expect

from tests.kubernetes.cluster import KubernetesTestbed

#: Pods on a busy machine take their time.
SLOW = 60_000
#: Seconds in which what is missing of the cluster can be built.
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def cluster() -> Iterator[KubernetesTestbed]:
    """One cluster for all tests here."""
    with any_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def namespace(cluster: KubernetesTestbed) -> Iterator[str]:
    """Where the runs are."""
    with some_namespace(cluster) as name:
        yield name


@pytest.fixture(scope="module")
def admin_lab(
    cluster: KubernetesTestbed, namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LabServer]:
    """Of someone who may do and see all."""
    with kubernetes_lab(tmp_path_factory.mktemp("admin") / "home", cluster, namespace) as server:
        yield server


@pytest.fixture
def user_lab(cluster: KubernetesTestbed, namespace: str, tmp_path: Path) -> Iterator[LabServer]:
    """Of someone with the smallest role."""
    kubeconfig = grant(cluster, namespace)
    with kubernetes_lab(tmp_path / "home", cluster, namespace, kubeconfig=kubeconfig) as server:
        yield server


def field(dialog: Locator, path: str) -> Locator:
    """A field of the dialog."""
    return dialog.locator(f'[data-field="{path}"]')


def test_a_cell_runs_on_two_pods(page: Page, admin_lab: LabServer, namespace: str) -> None:
    open_notebook(page, admin_lab, write_notebook(admin_lab.work, "two.ipynb", [code_cell(STEPS)]))
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").click()
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    field(dialog, "name").fill("two-pods")
    field(dialog, "resources.nodes").fill("2")
    field(dialog, "resources.processes_per_node").fill("2")
    dialog.get_by_role("button", name="Program").click()
    field(dialog, "launcher").select_option("python")
    manifest = dialog.get_by_role("button", name="manifest.yaml")
    for cluster in (CLUSTER, "local", CLUSTER):
        field(dialog, "cluster").select_option(cluster)
        expect(manifest).to_have_count(1 if cluster == CLUSTER else 0)
        # Nothing else of the form is lost by the click.
        expect(field(dialog, "name")).to_have_value("two-pods")
        expect(field(dialog, "resources.nodes")).to_have_value("2")
        expect(field(dialog, "launcher")).to_have_value("python")
    findings = dialog.locator("[data-findings]")
    expect(findings).to_contain_text("It runs as a PyTorchJob")
    expect(findings).to_contain_text("The API server accepts the PyTorchJob unchanged (dry run)")
    expect(findings).not_to_contain_text("Error")
    manifest.click()
    shown = dialog.get_by_role("region", name="manifest.yaml")
    expect(shown).to_contain_text("kind: PyTorchJob")
    expect(shown).to_contain_text(f"namespace: {namespace}")
    assert violations(page, DIALOG) == []
    page.keyboard.press("Control+Enter")
    run = page.locator(RUN_PAGE)
    for rank in range(4):
        wait_for_line(page, f"rank {rank} step 3", RUN_PAGE, timeout=SLOW)
    expect_state(run, "succeeded", timeout=SLOW)
    assert sum(line.startswith("rank ") for line in log_lines(page, RUN_PAGE)) == 16
    run.get_by_role("button", name="All ranks").click()
    page.get_by_role("combobox", name="Ranks").fill("2")
    page.keyboard.press("Enter")
    expect(run.locator(".jp-HyperPod-LogRow").filter(has_text="rank 0 step")).to_have_count(0)
    assert violations(page, RUN_PAGE) == []


def test_shells_and_the_end_of_a_run(page: Page, admin_lab: LabServer) -> None:
    run_id = submit(admin_lab, "echo begun; sleep 600", "--name", "serve", "--nodes", "2")
    open_lab(page, admin_lab)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown = open_run(page, run_id)
    wait_for_line(page, "begun", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "running", timeout=SLOW)
    run_tab(shown, "Overview")
    expect(shown.locator(".jp-HyperPod-Details")).to_contain_text("PyTorchJob")
    shown.locator("summary", has_text="Shells").focus()
    page.keyboard.press("Enter")
    expect(shown.get_by_role("list", name="Shell commands")).to_be_visible()
    shown.get_by_role("button", name=re.compile("Copy the command for a shell on 0")).click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("kubectl ")
    assert f"run-{run_id}-master-0" in copied
    assert violations(page, RUN_PAGE) == []
    shown.get_by_role("button", name="Cancel", exact=True).click()
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel run").click()
    expect_state(shown, "cancelled", timeout=SLOW)
    assert "begun" in log_lines(page, RUN_PAGE)
    expect(shown.locator("summary", has_text="Shells")).to_have_count(0)


def test_the_cluster_page(page: Page, admin_lab: LabServer, cluster: KubernetesTestbed) -> None:
    over = submit(admin_lab, "true", "--name", "over", "--wait")
    size = ("--gpus-per-node", "3", "--name", "holder")
    run_id = submit(admin_lab, "echo begun; sleep 600", *size)
    open_lab(page, admin_lab)
    try:
        shown = open_cluster(page, "Jobs")
        refresh_until(shown, row(shown, "holder").filter(has_text="running"))
        expect(row(shown, "holder")).to_contain_text("(you)")
        expect(row(shown, "holder")).to_contain_text(re.compile(r"3 . GPU"))
        assert violations(page, CLUSTER_PAGE) == []
        row(shown, "holder").get_by_role("checkbox").check()
        shown.get_by_role("button", name="Change…").click()
        dialog = page.locator(".jp-Dialog")
        expect(dialog.get_by_label("Queue")).to_be_visible()
        expect(dialog.get_by_label("Time limit")).to_have_count(0)  # no limit can be changed here
        dialog.get_by_role("button", name="Cancel").click()
        shown = open_cluster(page, "Nodes")
        for node in cluster.nodes:
            expect(row(shown, node)).to_contain_text("up")
        if cluster.folder is not None:  # nobody else is there
            refresh_until(shown, shown.get_by_role("img", name="GPU: 5 of 8 free; 3 in use"))
        assert violations(page, CLUSTER_PAGE) == []
        shown = open_cluster(page, "Jobs")
        shown.get_by_role("button", name="My finished runs").click()
        expect(row(shown, over)).to_contain_text("succeeded")
        shown = open_cluster(page, "Queues")
        expect(shown.get_by_role("heading", name="Queues")).to_be_visible()
        assert violations(page, CLUSTER_PAGE) == []
    finally:
        admin_lab.hpj("cancel", run_id)


def test_few_rights(page: Page, user_lab: LabServer, namespace: str) -> None:
    run_id = submit(user_lab, "echo hello from $NODE_RANK", "--nodes", "2", "--name", "few")
    open_lab(page, user_lab)
    shown = open_run(page, run_id)
    for rank in (0, 1):
        wait_for_line(page, f"hello from {rank}", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "succeeded", timeout=SLOW)
    shown = open_cluster(page, "Nodes")
    expect(shown.get_by_role("note").first).to_contain_text("you do not have the permission to list nodes")
    expect(shown.get_by_role("alert")).to_have_count(0)
    assert violations(page, CLUSTER_PAGE) == []
    shown = open_cluster(page, "Jobs")
    # The page's head says it too, once it has read the overview.
    jobs = shown.get_by_role("tabpanel", name="Jobs")
    hidden = jobs.get_by_role("note").filter(has_text="in all namespaces")
    expect(hidden).to_contain_text("you do not have the permission to list pytorchjobs.kubeflow.org")


@pytest.mark.full
def test_an_image_that_is_none_is_told_in_words(page: Page, admin_lab: LabServer) -> None:
    run_id = submit(admin_lab, "true", "--image", "localhost/none/such:1", "--name", "no-image")
    open_lab(page, admin_lab)
    shown = open_run(page, run_id)
    expect(shown).to_contain_text("localhost/none/such:1", timeout=SLOW)
    expect(shown.locator(".jp-HyperPod-Why h2")).to_be_visible(timeout=SLOW)
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, RUN_PAGE) == []
    admin_lab.hpj("cancel", run_id)


@pytest.mark.full
@pytest.mark.own_cluster
def test_an_api_server_that_is_gone(page: Page, admin_lab: LabServer, cluster: KubernetesTestbed) -> None:
    run_id = submit(admin_lab, "echo begun; sleep 20; echo over", "--name", "survivor")
    open_lab(page, admin_lab)
    shown = open_cluster(page, "Jobs")
    refresh_until(shown, row(shown, "survivor").filter(has_text="running"))
    cluster.component_kill("control", "kube-apiserver")
    try:
        old = shown.get_by_text(re.compile(r"Updated .*ago\. Newer data is not available\."))
        refresh_until(shown, old)
        expect(row(shown, "survivor")).to_contain_text("running")
        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            use_theme(page, theme)
            assert violations(page, CLUSTER_PAGE) == []
    finally:
        cluster.component_start("control", "kube-apiserver")
    refresh_until(shown, old, 0)
    run = open_run(page, run_id)
    wait_for_line(page, "over", RUN_PAGE, timeout=SLOW)
    expect_state(run, "succeeded", timeout=SLOW)
