"""The log viewer with several ranks: lines that all of them say are folded; nodes' own logs can be left out; search finds what is folded."""

from __future__ import annotations

from lab_page import RUN_PAGE, execute, open_lab, violations
from lab_server import LabServer
from playwright.sync_api import Page, expect


def test_ranks_that_say_the_same_are_folded(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", "echo same", "--name", "folded", "--wait", "--nodes", "4")
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    view = page.locator(RUN_PAGE)
    view.get_by_role("button", name="Node logs").click()
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
    view.get_by_role("searchbox").fill("same")
    page.keyboard.press("Enter")
    expect(view.get_by_text("1 of 4")).to_be_visible()
    expect(view.locator(".jp-HyperPod-LogRow.jp-mod-current")).to_contain_text("0-3same")
    page.keyboard.press("Enter")
    expect(view.get_by_text("2 of 4")).to_be_visible()
    expect(view.locator(".jp-HyperPod-LogRow.jp-mod-current")).to_contain_text("same")
    view.get_by_role("button", name="Fold", exact=True).click()
    expect(rows).to_have_text(["same"] * 4)
