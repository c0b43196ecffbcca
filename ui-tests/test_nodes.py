"""Nodes of HyperPod clusters: rebooted, replaced, drained, and entered by a terminal, from the cluster's page."""

from __future__ import annotations

import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hyperpod_lab import REGION, hyperpod_lab
from lab_page import CLUSTER_PAGE, execute, open_lab, row, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.slurm_bed import AttachedSlurm, slurm_bed
from tests.slurm.cluster import install

DIALOG = ".jp-Dialog"
REBOOT = "sagemaker:BatchRebootClusterNodes"
#: A scheduler on a busy machine takes its time.
SLOW = 60_000


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """One account, and a Lab with its credentials and a folder for programs."""
    folder = tmp_path_factory.mktemp("aws")
    (folder / "bin").mkdir()
    with hyperpod_lab(folder / "home", programs=folder / "bin") as both:
        # A terminal is a login shell, which some systems give another PATH.
        (folder / "home" / ".profile").write_text(f"export PATH={folder}/bin:$PATH\n")
        yield both


@pytest.fixture
def aws(account: tuple[LabServer, Endpoint]) -> Iterator[Endpoint]:
    """The account as it was at first."""
    endpoint = account[1]
    endpoint.account = example_account(REGION)
    endpoint.calls.clear()
    yield endpoint
    endpoint.faults.denied.clear()
    endpoint.faults.slow.clear()


@pytest.fixture
def programs(account: tuple[LabServer, Endpoint]) -> Iterator[Path]:
    """Where the user's own programs lie; empty at first."""
    folder = account[0].home.parent / "bin"
    yield folder
    for program in folder.iterdir():
        program.unlink()


def open_nodes(page: Page, server: LabServer, cluster: str = "ml-cluster") -> Locator:
    """The nodes on a cluster's page, as AWS has them now."""
    open_lab(page, server)
    execute(page, "hyperpod:open-cluster", {"cluster": cluster})
    shown = page.locator(CLUSTER_PAGE)
    shown.get_by_role("tab", name="Nodes", exact=True).click()
    shown.get_by_role("button", name="Refresh").click()
    expect(shown.get_by_role("button", name="Reboot…")).to_be_visible()
    return shown


def instances(endpoint: Endpoint, group: str) -> list[str]:
    cluster = endpoint.account.clusters[REGION][0]
    return [node.instance_id for node in cluster.nodes if node.group == group]


def choose(shown: Locator, *names: str) -> None:
    for name in names:
        shown.get_by_label(f"Select {name}", exact=True).check()


def sent(endpoint: Endpoint) -> list[int]:
    """How many nodes AWS was given at a time."""
    return [len(call.given["NodeIds"]) for call in endpoint.calls if "Batch" in call.action]


def sound(page: Page, console: list[str], *parts: str) -> None:
    """Nobody is kept out, in light and dark, and nothing of ours is wrong in the console."""
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        for part in parts:
            assert violations(page, part) == []
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_nodes_are_replaced_by_the_keyboard_once_it_was_said_what_becomes_of_them(
    account: tuple[LabServer, Endpoint], aws: Endpoint, page: Page, console: list[str]
) -> None:
    shown = open_nodes(page, account[0])
    (controller,) = instances(aws, "controller-machine")
    worker = instances(aws, "worker-group-1")[0]
    replace = shown.get_by_role("button", name="Replace…")
    expect(replace).to_have_attribute("aria-disabled", "true")
    for name in (controller, worker):
        shown.get_by_label(f"Select {name}", exact=True).focus()
        page.keyboard.press("Space")
    expect(shown.get_by_text("2 nodes selected")).to_be_visible()
    replace.focus()
    page.keyboard.press("Enter")
    asked = page.locator(DIALOG)
    plan = asked.get_by_role("list", name="Effects on nodes")
    expect(plan).to_contain_text(f"Skipped: '{controller}' is the Slurm controller")
    expect(asked).to_contain_text("data on the nodes' own disks is lost")
    expect(asked).to_contain_text("the jobs on the nodes are unknown")
    sound(page, console, DIALOG)
    # Enter leaves them as they are: what can't be taken back needs a word of its own.
    expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(asked).to_have_count(0)
    assert sent(aws) == []
    replace.click()
    asked.get_by_role("button", name="Replace 1 node", exact=True).click()
    results = shown.get_by_role("list", name="Results")
    expect(results.get_by_role("listitem")).to_have_count(2)
    expect(results).to_contain_text(f"{worker} is being replaced.")
    expect(results).to_contain_text("AWS does not replace (reboot it instead")
    assert sent(aws) == [1]
    expect(shown.get_by_text("1 node selected")).to_be_visible()
    # The table was read again: the old instance ends, and another takes its place.
    expect(row(shown, "terminating")).to_contain_text(worker)
    expect(row(shown, "starting")).to_have_count(1)
    sound(page, console, CLUSTER_PAGE)


def test_a_right_that_is_missing_is_named_and_the_action_is_off(
    account: tuple[LabServer, Endpoint], aws: Endpoint, page: Page, console: list[str]
) -> None:
    aws.faults.deny(REBOOT)
    shown = open_nodes(page, account[0])
    choose(shown, instances(aws, "worker-group-1")[0])
    reboot = shown.get_by_role("button", name="Reboot…")
    reboot.click()
    page.locator(DIALOG).get_by_role("button", name="Reboot 1 node", exact=True).click()
    results = shown.get_by_role("list", name="Results")
    expect(results).to_contain_text(f"you do not have the permission {REBOOT}")
    expect(reboot).to_have_attribute("aria-disabled", "true")
    expect(reboot).to_have_accessible_description(re.compile(f"you do not have the permission {REBOOT}"))
    # So is what no scheduler does here, without being tried.
    drain = shown.get_by_role("button", name="Drain…")
    expect(drain).to_have_attribute("aria-disabled", "true")
    note = shown.get_by_role("note").filter(has_text="cannot drain: ml-cluster is not in your configuration")
    expect(note).to_have_count(1)
    sound(page, console, CLUSTER_PAGE)
    shown.get_by_role("button", name="Close").click()
    expect(reboot).to_have_attribute("aria-disabled", "false")


def test_many_nodes_go_in_batches_and_can_be_stopped_between(
    account: tuple[LabServer, Endpoint], aws: Endpoint, page: Page
) -> None:
    cluster = aws.account.add_cluster("large", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.g5.xlarge", 80)
    aws.faults.slow[REBOOT] = 1.5
    shown = open_nodes(page, account[0], "large")
    for _ in range(2):
        shown.get_by_label("Select all rows on this page").check()
        if (following := shown.get_by_role("button", name="Next page")).is_enabled():
            following.click()
            expect(shown.get_by_text("Page 2", exact=True)).to_be_visible()
            expect(shown.get_by_role("row")).to_have_count(31)
    expect(shown.get_by_text("80 nodes selected")).to_be_visible()
    shown.get_by_role("button", name="Reboot…").click()
    page.locator(DIALOG).get_by_role("button", name="Reboot 80 nodes").click()
    expect(shown.get_by_text("25 of 80 submitted")).to_be_visible()
    shown.get_by_role("button", name="Stop").click()
    lines = shown.get_by_role("list", name="Results").get_by_role("listitem")
    expect(lines).to_have_count(80)
    assert sent(aws) == [25, 25]
    expect(lines.filter(has_text="is being rebooted.")).to_have_count(50)
    expect(lines.filter(has_text="Not submitted: you stopped the action.")).to_have_count(30)
    expect(shown.get_by_text("30 nodes selected")).to_be_visible()


def test_a_terminal_on_a_node(account: tuple[LabServer, Endpoint], aws: Endpoint, programs: Path, page: Page) -> None:
    worker = instances(aws, "worker-group-1")[0]
    heard = programs.parent / "heard"
    script = f'#!/bin/sh\nprintf "<%s>" "$@" >{heard}.new\nmv {heard}.new {heard}\n'
    for name, text in (("aws", script), ("session-manager-plugin", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(stat.S_IRWXU)
    shown = open_nodes(page, account[0])
    shown.get_by_role("button", name=f"Open a terminal on {worker}").click()
    expect(page.locator(".jp-Terminal")).to_be_visible()
    for _ in range(100):
        if heard.exists():
            break
        page.wait_for_timeout(100)
    cluster = aws.account.clusters[REGION][0]
    target = f"sagemaker-cluster:{cluster.arn[-12:]}_worker-group-1-{worker}"
    words = ("ssm", "start-session", "--target", target, "--region", REGION)
    assert heard.read_text() == "".join(f"<{word}>" for word in words)
    assert page.locator(DIALOG).count() == 0


def test_the_command_for_a_terminal_where_programs_are_missing(
    account: tuple[LabServer, Endpoint], aws: Endpoint, programs: Path, page: Page, console: list[str]
) -> None:
    worker = instances(aws, "worker-group-1")[0]
    shown = open_nodes(page, account[0])
    shown.get_by_role("button", name=f"Open a terminal on {worker}").focus()
    page.keyboard.press("Enter")
    asked = page.locator(DIALOG)
    expect(asked).to_contain_text("session-manager-plugin: its Session Manager plugin")
    expect(asked.locator("pre")).to_contain_text("aws ssm start-session --target sagemaker-cluster:")
    expect(asked.locator("pre")).to_contain_text(f"_worker-group-1-{worker} --region {REGION}")
    sound(page, console, DIALOG)
    asked.get_by_role("button", name="Close").click()
    expect(page.locator(".jp-Terminal")).to_have_count(0)


def test_a_terminal_that_cannot_be_had_says_why(account: tuple[LabServer, Endpoint], aws: Endpoint, page: Page) -> None:
    shown = open_nodes(page, account[0])
    aws.faults.deny("sagemaker:ListClusterNodes")
    shown.get_by_role("button", name="Open a terminal on").first.click()
    asked = page.locator(DIALOG)
    expect(asked).to_contain_text("you do not have the permission sagemaker:ListClusterNodes")
    asked.get_by_role("button").click()


def test_commands_answer_in_json(account: tuple[LabServer, Endpoint], aws: Endpoint, page: Page) -> None:
    open_lab(page, account[0])
    worker = instances(aws, "worker-group-1")[0]
    order = {"cluster": "ml-cluster", "action": "reboot", "nodes": [worker]}
    plan = execute(page, "hyperpod:preview-on-nodes", order)
    assert plan["nodes"][0]["instance"] == worker
    assert sent(aws) == []
    page.evaluate(
        "order => { window.done = window.jupyterapp.commands.execute('hyperpod:act-on-nodes', order); }", order
    )
    page.locator(DIALOG).get_by_role("button", name="Reboot 1 node").click()
    done = page.evaluate("() => window.done")
    assert [(one["instance"], one["ok"]) for one in done["results"]] == [(worker, True)]
    assert sent(aws) == [1]


@pytest.fixture(scope="module")
def attached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, AttachedSlurm]]:
    """A cluster of the account with a real Slurm behind it, which the configuration knows."""
    install("22.05")
    with tempfile.TemporaryDirectory(prefix="hpj-bed-") as folder:
        Path(folder).chmod(0o755)  # munge's socket is everybody's
        with slurm_bed(Path(folder) / "slurm", "--nodes", "2") as bed:
            home = tmp_path_factory.mktemp("slurm") / "home"
            config = (
                f'[storage]\npath = "{home / "fsx"}"\n'
                '[clusters.train]\norchestrator = "slurm"\nhyperpod = "on-slurm"\n'
                f'slurm_conf = "{bed}/etc/slurm.conf"\n'
            )
            with (
                hyperpod_lab(home, config=config) as (server, endpoint),
                AttachedSlurm(endpoint, bed, REGION, "on-slurm") as made,
            ):
                yield server, made
            assert made.problems == []


def test_a_node_is_drained_with_a_reason_and_resumed(
    attached: tuple[LabServer, AttachedSlurm], page: Page, console: list[str]
) -> None:
    server, slurm = attached
    node = next(one for one in slurm.cluster.nodes if one.address == "10.0.0.1")
    shown = open_nodes(page, server, "on-slurm")
    expect(row(shown, node.instance_id)).to_contain_text("ip-10-0-0-1", timeout=SLOW)
    choose(shown, "ip-10-0-0-1")
    shown.get_by_role("button", name="Drain…").click()
    asked = page.locator(DIALOG)
    expect(asked).to_contain_text("no job runs on it", timeout=SLOW)
    confirm = asked.get_by_role("button", name="Drain 1 node")
    why = asked.get_by_role("textbox")
    expect(why).to_be_focused()
    expect(confirm).to_be_disabled()
    page.keyboard.press("Enter")
    expect(asked).to_be_visible()
    why.fill("   ")
    expect(confirm).to_be_disabled()
    why.fill("GPU 3 falls off the bus")
    sound(page, console, DIALOG)
    page.keyboard.press("Enter")
    results = shown.get_by_role("list", name="Results")
    expect(results).to_contain_text("accepts no new jobs.", timeout=SLOW)
    expect(row(shown, "drained")).to_contain_text(node.instance_id, timeout=SLOW)
    # On the page of the configured cluster too, with the reason; it takes the node back.
    execute(page, "hyperpod:open-cluster", {"cluster": "train"})
    own = page.locator(CLUSTER_PAGE).locator("visible=true")
    own.get_by_role("tab", name="Nodes", exact=True).click()
    expect(row(own, "ip-10-0-0-1")).to_contain_text("GPU 3 falls off the bus", timeout=SLOW)
    choose(own, "ip-10-0-0-1")
    own.get_by_role("button", name="Resume").click()
    results = own.get_by_role("list", name="Results")
    expect(results).to_contain_text("ip-10-0-0-1 accepts jobs again.", timeout=SLOW)
    expect(row(own, "drained")).to_have_count(0, timeout=SLOW)
    sound(page, console, CLUSTER_PAGE)
