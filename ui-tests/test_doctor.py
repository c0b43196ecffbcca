"""The doctor's page: the way of a run, examined step by step, on this machine alone and with an account of AWS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import PANEL, execute, open_lab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect

from testbed.aws.endpoint import Endpoint

DOCTOR = ".jp-HyperPod-Doctor"
AGAIN = "Run again"
LIST = "sagemaker:ListClusters"
#: A machine with much to do.
TIMEOUT_MS = 60_000


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """A Lab whose configuration names a HyperPod cluster of the testbed's account."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as (server, aws):
        with (server.home / "config.toml").open("a") as config:
            config.write('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
        yield server, aws


def check(shown: Locator, name: str) -> Locator:
    """A check, by its name."""
    found = shown.page.locator("strong").get_by_text(name, exact=True)
    return shown.get_by_role("listitem").filter(has=found)


def unfold(shown: Locator) -> None:
    """Open the checks that are ok."""
    shown.locator("summary").filter(has_text="OK").click()


def examined(page: Page, server: LabServer) -> Locator:
    """The page, once its first examination is over."""
    open_lab(page, server)
    execute(page, "hyperpod:open-doctor")
    shown = page.locator(DOCTOR)
    expect(shown.get_by_role("button", name=AGAIN)).to_be_visible(timeout=TIMEOUT_MS)
    return shown


def sound(page: Page, console: list[str]) -> None:
    """Nobody is kept out, in light and dark, and nothing of ours is wrong in the console."""
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        use_theme(page, theme)
        page.wait_for_timeout(300)
        assert violations(page, DOCTOR) == []
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_examined_on_this_machine_alone_with_a_tiny_job(
    own_lab: LabServer, page: Page, console: list[str], tmp_path: Path
) -> None:
    shown = examined(page, own_lab)
    path = shown.get_by_role("list", name="Path of a run")
    expect(path.get_by_role("button")).to_have_count(6)
    expect(check(shown, "writing")).to_be_hidden()
    path.get_by_role("button", name="File system").click()
    expect(check(shown, "writing")).to_contain_text("files can be created, linked and renamed")
    expect(check(shown, "writing").locator("[data-state]")).to_have_text("ok")
    expect(shown.get_by_role("status")).to_contain_text("Checks finished.")
    sound(page, console)
    page.screenshot(path=tmp_path / "doctor-local-dark.png")

    nodes = path.get_by_role("button", name="Nodes")
    expect(nodes).to_contain_text("1 check")
    nodes.click()
    shown.get_by_label("Cluster").select_option("local")
    shown.get_by_role("button", name="Run a test job").focus()
    page.keyboard.press("Enter")
    expect(nodes).to_contain_text("2 checks", timeout=TIMEOUT_MS)
    job = check(shown, "test job on local")
    expect(job).to_contain_text("it ran on", timeout=TIMEOUT_MS)
    expect(shown.get_by_text("Only local", exact=True)).to_be_visible()
    with page.expect_download() as downloaded:
        shown.get_by_role("button", name="Download report").click()
    report = downloaded.value.path().read_text()
    assert downloaded.value.suggested_filename.endswith(".md")
    assert "### Test job" in report
    assert own_lab.hpj("runs", "--json").startswith('{"runs": []')
    sound(page, console)


def test_all_pages_share_one_examination_which_can_be_stopped(account: tuple[LabServer, Endpoint], page: Page) -> None:
    server, aws = account
    aws.faults.slow["sts:GetCallerIdentity"] = 20.0
    open_lab(page, server)
    execute(page, "hyperpod:open-doctor", {"examine": False})
    shown = page.locator(DOCTOR)
    shown.get_by_role("button", name="Run checks", exact=True).click()
    unfold(shown)
    expect(check(shown, "versions")).to_be_visible()
    other = page.context.new_page()
    open_lab(other, server)
    execute(other, "hyperpod:open-doctor")
    expect(other.locator(DOCTOR).get_by_role("button", name="Stop")).to_be_visible()
    unfold(other.locator(DOCTOR))
    expect(check(other.locator(DOCTOR), "versions")).to_be_visible()
    other.locator(DOCTOR).get_by_role("button", name="Stop").click()
    expect(shown.get_by_role("status")).to_contain_text("Checks stopped.")
    expect(check(shown, "versions")).to_be_visible()
    expect(shown.get_by_role("button", name=AGAIN)).to_be_visible()
    other.close()
    aws.faults.slow.clear()


def test_what_is_wrong_says_who_mends_it_and_how(
    account: tuple[LabServer, Endpoint], page: Page, console: list[str], tmp_path: Path
) -> None:
    server, aws = account
    aws.faults.deny(LIST)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    # From what is wrong in the panel to the doctor.
    page.locator(PANEL).get_by_role("button", name="Run HyperPod Doctor").first.click()
    shown = page.locator(DOCTOR)
    button = shown.get_by_role("button", name=AGAIN)
    expect(button).to_be_visible(timeout=TIMEOUT_MS)
    button.click()
    expect(shown.get_by_role("status")).to_contain_text("Checks finished.", timeout=TIMEOUT_MS)
    expect(button).to_be_visible(timeout=TIMEOUT_MS)
    # Not those that only wait for what was denied.
    denied = shown.get_by_role("listitem").filter(has_text=LIST).filter(has_text="Ask your administrator:")
    denied = denied.first
    expect(denied.locator("[data-state='unknown']")).to_have_text("could not be checked")
    failed = shown.locator("ul li[data-level='fail']")
    expect(failed.first).to_be_visible()
    shown.get_by_label("Problems only").check()
    expect(shown.locator("ul li[data-level='ok']")).to_have_count(0)
    denied.get_by_role("button", name="Copy the fix for").focus()
    page.keyboard.press("Enter")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == denied.locator("pre").inner_text()
    shown.get_by_role("button", name="Copy report").click()
    expect(page.get_by_text("Report copied")).to_be_visible()
    report = page.evaluate("navigator.clipboard.readText()")
    assert "## For the admin" in report
    assert "of-the-testbed" not in report, "the secret key stands in no report"
    page.screenshot(path=tmp_path / "doctor-aws.png")
    sound(page, console)
    aws.faults.denied.clear()
