"""The log viewer with several ranks: lines that all of them say are folded; nodes' own logs can be left out; search finds what is folded."""

from __future__ import annotations

import re
import zipfile

from lab_page import RUN_PAGE, execute, open_lab, run_tab, violations
from lab_server import LabServer
from playwright.sync_api import Locator, Page, expect


def test_ranks_that_say_the_same_are_folded(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", "echo same", "--name", "folded", "--wait", "--nodes", "4")
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = run_tab(page.locator(RUN_PAGE), "Log")
    rows = view.locator(".jp-HyperPod-LogRow-text")
    expect(rows).to_have_text(["same"])
    fold = view.locator(".jp-HyperPod-LogRow-fold")
    expect(fold).to_have_text("0-3")
    fold.focus()
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["same"] * 4)
    expect(fold).to_be_focused()
    assert violations(page, RUN_PAGE) == []
    page.keyboard.press("Enter")
    expect(rows).to_have_text(["same"])
    page.keyboard.press("Control+f")
    expect(view.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("same")
    expect(view.get_by_text("1 of 4")).to_be_visible()
    expect(view.locator(".jp-HyperPod-LogRow.jp-mod-current")).to_contain_text("0-3same")
    page.keyboard.press("Enter")
    expect(view.get_by_text("2 of 4")).to_be_visible()
    expect(view.locator(".jp-HyperPod-LogRow.jp-mod-current")).to_contain_text("same")
    choose(page, view, "Fold Identical Lines of Ranks")
    expect(rows).to_have_text(["same"] * 4)


def choose(page: Page, view: Locator, item: str) -> None:
    """Choose an item of the log's menu."""
    view.get_by_role("button", name="More log options").click()
    page.locator(".lm-Menu-item", has_text=re.compile(f"^{item}")).click()


#: Each rank says where it is, one warns, one fails; the launchers say then that they stop.
NOISY = (
    "echo rank $RANK; echo ready; sleep 1; "
    "[ $RANK = 0 ] && echo 'WARNING: slow'; [ $RANK = 2 ] && sleep 1 && echo 'ERROR: lost' && exit 3; sleep 9"
)


def test_lines_are_chosen_by_rank_level_and_text(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", NOISY, "--name", "noisy", "--nodes", "4")
    lab.hpj("logs", "-f", run_id)
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = run_tab(page.locator(RUN_PAGE), "Log")
    rows = view.locator(".jp-HyperPod-LogRow-text")
    expect(view.get_by_text("The run has ended.")).to_be_visible()
    view.get_by_role("button", name="All ranks").click()
    page.get_by_role("combobox", name="Ranks").press_sequentially("2")
    page.get_by_role("option", name="local-2").click()
    page.keyboard.press("Escape")
    expect(rows).to_have_text(["rank 2", "ready", "ERROR: lost"])
    chip = view.get_by_role("button", name="Rank 2", exact=True)
    expect(chip).to_be_visible()
    assert violations(page, RUN_PAGE) == []
    chip.click()
    field = page.get_by_role("combobox", name="Ranks")
    field.fill("9")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Rank 9 not found. The ranks are 0-3.")
    assert violations(page, ".jp-HyperPod-RanksPopup") == []
    field.fill("0, 2")
    field.press("Enter")
    expect(view.get_by_role("button", name="Ranks 0, 2", exact=True)).to_be_focused()
    view.get_by_role("button", name="Warnings").click()
    expect(rows).to_have_text(["WARNING: slow"])
    view.get_by_role("button", name="Errors").click()
    expect(rows).to_have_text(["WARNING: slow", "ERROR: lost"])
    view.get_by_role("button", name="Errors").click()
    view.get_by_role("button", name="Warnings").click()
    view.get_by_role("button", name="Show all ranks").click()
    expect(view.get_by_role("button", name="All ranks")).to_be_visible()
    view.get_by_role("searchbox").fill("rank [34]")
    expect(view.get_by_text("Not found", exact=True)).to_be_visible()
    view.get_by_role("button", name="Use regular expression").click()
    view.get_by_role("button", name="Show only matching lines").click()
    expect(rows).to_have_text(["rank 3"])
    # The end is in view.
    expect(view.get_by_role("button", name="Jump to end")).to_have_count(0)


def test_the_launchers_lines_are_folded(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", NOISY, "--name", "noisy", "--nodes", "4")
    lab.hpj("logs", "-f", run_id)
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = run_tab(page.locator(RUN_PAGE), "Log")
    log = view.get_by_role("log")
    folded = log.get_by_text("launcher: 3 lines")
    expect(folded).to_be_visible()
    expect(log.get_by_text("another node failed")).to_have_count(0)
    log.get_by_role("button", name="3 nodes").click()
    expect(log.get_by_text("another node failed")).to_have_count(3)
    choose(page, view, "Launcher Output")
    expect(log.get_by_text("another node failed")).to_have_count(0)
    expect(folded).to_have_count(0)


def test_all_ranks_are_downloaded(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", "echo rank $RANK", "--name", "all", "--wait", "--nodes", "2")
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = run_tab(page.locator(RUN_PAGE), "Log")
    expect(view.get_by_role("button", name="All ranks")).to_be_visible()
    with page.expect_download() as text:
        choose(page, view, "Download Log")
    assert text.value.suggested_filename == f"{run_id}.log"
    assert sorted(text.value.path().read_text().split("\n")) == ["", "0|rank 0", "1|rank 1"]
    with page.expect_download() as archive:
        choose(page, view, "Download One File per Rank")
    with zipfile.ZipFile(archive.value.path()) as files:
        assert files.read("attempt-1/rank-1.log") == b"rank 1\n"


def test_the_strip_leads_to_a_time(page: Page, lab: LabServer) -> None:
    command = "seq 200; sleep 3; echo ERROR: middle; sleep 3; seq 201 400"
    run_id = lab.hpj("submit", "-c", command, "--name", "long", "--wait")
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = run_tab(page.locator(RUN_PAGE), "Log")
    strip = view.get_by_role("slider", name="Log over time")
    expect(strip).to_be_visible()
    strip.click(position={"x": 1, "y": 10})
    log = view.get_by_role("log")
    expect(log.get_by_text("1", exact=True)).to_be_visible()
    view.get_by_role("button", name="Jump to end").click()
    expect(log.get_by_text("400", exact=True)).to_be_visible()
    assert violations(page, RUN_PAGE) == []
