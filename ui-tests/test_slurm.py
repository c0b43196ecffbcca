"""Journeys on a real Slurm, in the real panel: from a cell to its log on two nodes, the cluster's page, waiting, requeues, others' jobs, a controller that is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from in_step import Scheduler, find_lies, watch
from lab_page import (
    CLUSTER_PAGE,
    DIALOG,
    PANEL,
    RUN_PAGE,
    execute,
    expect_state,
    log_lines,
    more_action,
    open_lab,
    open_notebook,
    open_run,
    open_tab,
    refresh_until,
    row,
    run_tab,
    tab_to,
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer
from notebooks import STEPS, code_cell, write_notebook
from playwright.sync_api import Locator, Page, expect
from slurm_lab import CLUSTER, look, sbatch, slurm_lab, wait_for_job

from tests.slurm.cluster import SlurmTestbed, running, standard_options

VERSIONS = ["22.05", pytest.param("24.11", marks=pytest.mark.full)]
#: A scheduler on a busy machine takes its time.
SLOW = 60_000


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[SlurmTestbed]:
    """One cluster for all tests here."""
    with running(*standard_options(), version=str(request.param)) as cluster:
        yield cluster


@pytest.fixture
def slurm(cluster: SlurmTestbed) -> Iterator[SlurmTestbed]:
    """The same, made whole again after the test."""
    yield cluster
    cluster.heal()


@pytest.fixture(scope="module")
def root_lab(cluster: SlurmTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """On a machine with Slurm's client; root may do all."""
    with slurm_lab(tmp_path_factory.mktemp("here") / "home", cluster) as server:
        yield server


@pytest.fixture(scope="module")
def alice_lab(cluster: SlurmTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """Of alice, who reaches the cluster by ssh."""
    with slurm_lab(tmp_path_factory.mktemp("ssh") / "home", cluster, "ssh", "alice") as server:
        yield server


def submit(server: LabServer, command: str, *options: str) -> str:
    """Send a command's run; returns its id."""
    return server.hpj("submit", "--cluster", CLUSTER, *options, "-c", command)


def open_cluster(page: Page, tab: str) -> Locator:
    """A tab of the cluster's page, once its table is there."""
    shown = open_tab(page, CLUSTER, tab)
    expect(shown.get_by_role("table").first).to_be_visible(timeout=SLOW)
    return shown


def job_row(shown: Locator, job: str) -> Locator:
    """The row of a job."""
    box = shown.page.get_by_label(f"Select {job}", exact=True)
    return shown.get_by_role("row").filter(has=box)


def offered(dialog: Locator, path: str) -> Locator:
    """What a field proposes."""
    name = dialog.locator(f'[data-field="{path}"]').get_attribute("list")
    return dialog.locator(f'datalist[id="{name}"] option')


def values(options: Locator) -> list[str]:
    return [option.get_attribute("value") or "" for option in options.all()]


def test_a_cell_runs_on_two_nodes(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    limit = ("account", "name=root", "set", "GrpTRESMins=gres/gpu=6000")
    slurm.exec("ctl", "sacctmgr", "--immediate", "modify", *limit)
    open_notebook(page, root_lab, write_notebook(root_lab.work, "two.ipynb", [code_cell(STEPS)]))
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").click()
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    dialog.locator('[data-field="cluster"]').select_option(CLUSTER)
    script = dialog.get_by_role("button", name="sbatch.sh")
    expect(script).to_be_visible()
    findings = dialog.locator("[data-findings]")
    expect(findings).to_contain_text("No queue is given, and the default queue dev contains all nodes")
    expect(findings).to_contain_text("Choose a queue")
    queue = dialog.locator('[data-field="queue"]')
    expect(queue.locator("option")).to_have_count(2)
    assert values(queue.locator("option")) == ["", "batch"]
    expect(queue.locator("option").first).to_contain_text("dev (default)")
    dialog.locator('[data-field="resources.nodes"]').fill("2")
    dialog.locator('[data-field="resources.processes_per_node"]').fill("2")
    dialog.get_by_role("button", name="Program").click()
    dialog.locator('[data-field="launcher"]').select_option("python")
    queue.select_option("batch")
    script.click()
    shown = dialog.get_by_role("region", name="sbatch.sh")
    expect(shown).to_contain_text("#SBATCH --partition=batch\n")
    expect(shown).to_contain_text("#SBATCH --nodes=2\n")
    expect(findings).not_to_contain_text("Error")
    dialog.get_by_role("button", name="Scheduling").click()
    assert values(offered(dialog, "account")) == ["root"]
    assert values(offered(dialog, "qos")) == ["normal"]
    dialog.locator('[data-field="resources.gpus_per_node"]').fill("5")
    dialog.locator('[data-field="time_limit"]').fill("1h")
    line = dialog.locator(".jp-HyperPod-StatusLine")
    expect(line).to_contain_text("at most 10 GPU-hours · 10% of the GPU-hours of account root")
    assert violations(page, DIALOG) == []
    page.keyboard.press("Control+Enter")
    shown = page.locator(RUN_PAGE)
    for rank in range(4):
        wait_for_line(page, f"rank {rank} step 3", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "succeeded", timeout=SLOW)
    assert len(log_lines(page, RUN_PAGE)) == 16
    run_tab(shown, "Overview").get_by_text("Details", exact=True).click()
    expect(shown).to_contain_text("Nodesnode3, node4")
    used = shown.locator("section.jp-HyperPod-Usage").filter(has_text="Exit code")
    expect(used.locator(".jp-HyperPod-Usage-source")).to_have_text(
        re.compile("from the scheduler.s accounting|measured by the launcher")
    )


def test_the_cluster_page(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    over = submit(root_lab, "true", "--name", "over", "--wait")
    slurm.exec("ctl", "scontrol", "update", "nodename=node4", "state=drain", "reason=GPU 3 is off")
    bobs = sbatch(slurm, "-pbatch", "--gpus-per-node=3", "-t30", "-Jgamma", user="bob")
    alices = sbatch(slurm, "-pbatch", "--gpus-per-node=8", "-N2", "-t30", user="alice")
    wait_for_job(slurm, bobs, "RUNNING")
    open_lab(page, root_lab)

    shown = open_tab(page, CLUSTER, "Overview")
    free = shown.get_by_role("listitem").filter(has_text="H100 free")
    expect(free).to_contain_text("of 32 · 8 out of service", timeout=SLOW)
    nodes = shown.get_by_role("group", name="Map of 4 nodes")
    nodes.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    tip = shown.locator(".jp-HyperPod-NodeMap-tip")
    expect(tip).to_contain_text("node3 · up3 of 8 H100 in use")
    expect(tip).to_contain_text("bob · 3 GPUs")
    expect(shown.get_by_role("region", name="Waiting jobs")).to_contain_text("alice")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, CLUSTER_PAGE) == []
    nodes.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(shown.get_by_role("tab", name="Nodes")).to_have_attribute("aria-selected", "true")

    shown = open_cluster(page, "Queues")
    expect(row(shown, "batch")).to_contain_text("all users")
    expect(row(shown, "dev (default)")).to_contain_text("1 h")
    assert violations(page, CLUSTER_PAGE) == []

    shown = open_cluster(page, "Nodes")
    refresh_until(shown, row(shown, "node3").locator('[data-use="used"]'), 3)
    expect(row(shown, "node3").locator('[data-use="free"]')).to_have_count(5)
    expect(row(shown, "node3").get_by_role("img")).to_have_accessible_name(re.compile("5 of 8 free; in use: 0, 1, 2"))
    expect(row(shown, "node4")).to_contain_text("drained")
    expect(row(shown, "node4")).to_contain_text("GPU 3 is off (root")
    expect(row(shown, "node4").locator('[data-use="off"]')).to_have_count(8)
    assert violations(page, CLUSTER_PAGE) == []

    shown = open_cluster(page, "Jobs")
    refresh_until(shown, job_row(shown, alices))
    expect(job_row(shown, bobs)).to_contain_text("gamma")
    expect(job_row(shown, alices)).to_contain_text("waiting")
    users = shown.locator("tbody tr td:nth-child(4)")
    head = shown.get_by_role("columnheader", name="User")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(users).to_have_text(["alice", "bob"])
    head.get_by_role("button").click()
    expect(users).to_have_text(["bob", "alice"])
    shown.get_by_role("searchbox").fill("gamma")
    expect(users).to_have_text(["bob"])
    assert violations(page, CLUSTER_PAGE) == []

    shown.get_by_role("button", name="My finished runs").click()
    expect(row(shown, over)).to_contain_text("succeeded")
    assert violations(page, CLUSTER_PAGE) == []
    shown.get_by_role("button", name="Finished", exact=True).click()
    refresh_until(shown, row(shown, "over"))
    assert violations(page, CLUSTER_PAGE) == []
    user = shown.get_by_role("searchbox", name="User", exact=True)
    user.fill("bob")
    expect(row(shown, "over")).to_have_count(0, timeout=SLOW)
    user.fill("root")
    expect(row(shown, "over")).to_be_visible(timeout=SLOW)


def test_why_a_run_waits(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    bobs = sbatch(slurm, "-pbatch", "-N1", "--gpus-per-node=8", "-t30", user="bob")
    wait_for_job(slurm, bobs, "RUNNING")
    size = ("--nodes", "2", "--gpus-per-node", "8", "--queue", "batch", "--time-limit", "10m")
    run_id = submit(root_lab, "true", "--name", "big", *size)
    open_lab(page, root_lab)
    shown = open_run(page, run_id)
    expect_state(shown, "waiting", timeout=SLOW)
    why = shown.locator(".jp-HyperPod-Why")
    expect(why).to_contain_text("Queue position1", timeout=SLOW)
    expect(why.get_by_role("row").filter(has_text="bob")).to_contain_text("8")
    expect(why.get_by_role("button", name="Switch to 1 node")).to_be_visible()
    assert violations(page, RUN_PAGE) == []
    slurm.exec("ctl", "scancel", bobs)
    expect_state(shown, "succeeded", timeout=SLOW)


def test_a_requeue_goes_on_in_the_same_log(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    again = 'echo "began as $SLURM_RESTART_COUNT"; [ "$SLURM_RESTART_COUNT" = 1 ] || sleep 300'
    run_id = submit(root_lab, again, "--name", "again", "--nodes", "2", "--queue", "batch")
    open_lab(page, root_lab)
    shown = open_run(page, run_id)
    wait_for_line(page, "began as ", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "running")
    more_action(shown, "Requeue")
    question = page.locator(".jp-Dialog")
    expect(question).to_contain_text("restarts from the beginning")
    question.get_by_role("button", name="Requeue").click()
    wait_for_line(page, "began as 1", RUN_PAGE, timeout=SLOW)
    expect_state(shown, "succeeded", timeout=SLOW)
    mark = shown.locator('.jp-HyperPod-LogRow-mark[data-kind="attempt"]').filter(has_text="2")
    expect(mark.first).to_contain_text("requeued")
    began = sorted(line for line in log_lines(page, RUN_PAGE) if line.startswith("began"))
    assert began == ["began as ", "began as ", "began as 1", "began as 1"]
    run_tab(shown, "Overview").get_by_text("2 attempts").click()
    attempts = shown.locator(".jp-HyperPod-Children-rows").get_by_role("row")
    expect(attempts.nth(1)).to_contain_text("requeued")
    expect(attempts.nth(2)).to_contain_text("succeeded")
    assert violations(page, RUN_PAGE) == []


def test_own_and_others_jobs_in_the_table(page: Page, slurm: SlurmTestbed, alice_lab: LabServer) -> None:
    own = [sbatch(slurm, "-t30", "--begin=now+1hour", user="alice") for _ in range(2)]
    other = sbatch(slurm, "-t30", "--hold", user="bob")
    open_lab(page, alice_lab)
    shown = open_cluster(page, "Jobs")
    refresh_until(shown, job_row(shown, other))
    results = shown.locator(".jp-HyperPod-Results li")

    def act(button: str, *jobs: str) -> None:
        for job in jobs:
            shown.get_by_label(f"Select {job}", exact=True).set_checked(True)
        shown.get_by_role("button", name=button, exact=True).click()

    act("Hold", *own, other)
    expect(results).to_have_count(3, timeout=SLOW)
    expect(results.nth(0)).to_have_text(f"{own[0]} was held.")
    expect(results.nth(1)).to_have_text(f"{own[1]} was held.")
    expect(results.nth(2)).to_contain_text(f"job {other} belongs to bob; only bob or an operator")
    expect(job_row(shown, own[0])).to_contain_text("held")
    assert violations(page, CLUSTER_PAGE) == []
    shown.get_by_label(f"Select {other}", exact=True).uncheck()

    act("Release", *own)
    expect(results.first).to_have_text(f"{own[0]} was released.", timeout=SLOW)
    expect(job_row(shown, own[0])).to_contain_text("waiting")

    act("Cancel", own[0], other)
    question = page.locator(".jp-Dialog")
    expect(question).to_contain_text("Cancel 2 jobs?")
    expect(question).to_contain_text("of bob")
    question.locator("button.jp-mod-warn").click()
    expect(results.first).to_have_text(f"{own[0]} was cancelled.", timeout=SLOW)
    expect(results.last).to_contain_text("belongs to bob")
    expect(job_row(shown, own[0])).to_have_count(0)
    assert look(slurm, own[0], "%T") == "CANCELLED"
    assert look(slurm, own[1], "%T") == "PENDING"
    assert look(slurm, other, "%T") == "PENDING"


def test_the_keyboard_alone_holds_a_job(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    job = sbatch(slurm, "-t30", "--begin=now+1hour", user="bob")
    open_lab(page, root_lab)
    execute(page, "hyperpod:show-panel", keep=False)
    clusters = page.locator(PANEL).get_by_role("list", name="Clusters")
    item = clusters.get_by_role("button", name=CLUSTER)
    item.focus()
    page.keyboard.press("Enter")
    shown = page.locator(CLUSTER_PAGE)
    tab_to(page, shown.get_by_role("tab", name="Overview"))
    page.keyboard.press("ArrowRight")
    expect(shown.get_by_role("tab", name="Jobs")).to_be_focused()
    refresh_until(shown, job_row(shown, job))
    shown.get_by_role("tab", name="Jobs").focus()
    tab_to(page, shown.get_by_label(f"Select {job}", exact=True))
    page.keyboard.press("Space")
    hold = shown.get_by_role("button", name="Hold", exact=True)
    tab_to(page, hold, "Shift+Tab")
    page.keyboard.press("Enter")
    results = shown.locator(".jp-HyperPod-Results")
    expect(results).to_contain_text(f"{job} was held.", timeout=SLOW)
    expect(results).to_have_attribute("aria-live", "polite")
    expect(hold).to_be_focused()


def test_all_places_say_the_same_of_a_run_from_elsewhere(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    gpus = 3
    open_lab(page, root_lab)
    execute(page, "hyperpod:show-panel", keep=False)
    shown = open_tab(page, CLUSTER, "Overview")
    free = shown.get_by_role("listitem").filter(has_text="H100 free")
    expect(free).to_contain_text("free32of 32", timeout=SLOW)
    scheduler = Scheduler(slurm)
    scheduler.start()
    size = ("--gpus-per-node", str(gpus), "--queue", "batch")
    run_id = submit(root_lab, "sleep 45", "--name", "elsewhere", *size)
    watch(page, run_id, gpus)
    page.wait_for_timeout(35_000)
    shown.get_by_role("tab", name="Jobs", exact=True).click()
    page.wait_for_timeout(45_000)
    scheduler.stop()
    answers = [counts for _, _, counts in scheduler.answers]
    assert (1, 0) in answers, "the job ran"
    assert answers[-1] == (0, 0), "the job is over"
    lies = find_lies(page, scheduler)
    assert not lies, "\n".join(lies[:40])


def test_a_controller_that_is_gone(page: Page, slurm: SlurmTestbed, root_lab: LabServer) -> None:
    job = sbatch(slurm, "-t30", "-Jgamma", user="bob")
    wait_for_job(slurm, job, "RUNNING")
    open_lab(page, root_lab)
    execute(page, "hyperpod:show-panel", keep=False)
    shown = open_cluster(page, "Jobs")
    refresh_until(shown, row(shown, "gamma"))
    slurm.controller_stop()
    old = shown.get_by_text(re.compile(r"Updated .*ago\. Newer data is not available\."))
    refresh_until(shown, old)
    expect(row(shown, "gamma")).to_contain_text("running")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, CLUSTER_PAGE) == []
        assert violations(page, PANEL) == []
    slurm.controller_start()
    refresh_until(shown, old, 0)
    expect(row(shown, "gamma")).to_contain_text("running")
