"""What the page tells by itself: ends of runs in one notification, tabs of runs, the magic in kernels."""

from __future__ import annotations

from pathlib import Path

from lab_page import (
    CARD,
    PANEL,
    RUN_PAGE,
    execute,
    expect_state,
    open_lab,
    open_notebook,
    restart_kernel,
    run_all,
    wait_for_line,
)
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Page, expect

TOAST = ".Toastify__toast"
PREVIEW = ".lm-TabBar-tab[data-hyperpod-preview='true']"


def test_runs_end_in_one_notification_and_share_a_preview(page: Page, lab: LabServer, tmp_path: Path) -> None:
    open_lab(page, lab)
    execute(page, "hyperpod:show-panel")
    go = tmp_path / "go"
    wait = f"until [ -e '{go}' ]; do sleep 0.2; done"
    runs = [lab.hpj("submit", "-c", f"{wait}; exit {code}", "--name", "sweep") for code in (0, 1, 0)]
    rows = page.locator(f"{PANEL} .jp-HyperPod-Row")
    for run_id in runs:  # the end of a run that the page never saw is no news
        expect(rows.locator(f"[data-row='{run_id}']")).to_be_visible()
    name = f"sweep · {runs[1].rsplit('-', 1)[-1]}"
    second = rows.get_by_role("button").filter(has_text=name)
    expect(second).to_be_visible()
    # One click shows a preview, which the next one takes the place of.
    first = rows.locator(f"[data-row='{runs[0]}']")
    first.click()
    expect(page.locator(PREVIEW)).to_contain_text("sweep")
    second.click()
    expect(page.locator(PREVIEW)).to_have_count(1)
    expect(page.locator(PREVIEW)).to_contain_text(name)
    expect(page.locator(RUN_PAGE)).to_have_count(1)
    # A double click keeps it.
    second.dblclick()
    expect(page.locator(PREVIEW)).to_have_count(0)
    first.click()
    expect(page.locator(RUN_PAGE)).to_have_count(2)
    expect(page.locator(f"{PREVIEW} .jp-HyperPod-StateShape")).to_be_visible()
    page.locator(RUN_PAGE).locator("visible=true").get_by_role("tab", name="Code").click()
    expect(page.locator(PREVIEW)).to_have_count(0)
    execute(page, "application:close-all", keep=False)
    go.touch()
    toast = page.locator(TOAST)
    expect(toast).to_contain_text("3 runs finished, 1 failed.", timeout=30_000)
    expect(toast).to_have_count(1)
    expect(toast.get_by_role("button", name="Show runs")).to_be_visible()


def test_the_magic_is_there_without_loading_it(page: Page, lab: LabServer) -> None:
    cells = [code_cell("%%hyperpod --name there\nprint('from the cluster')")]
    name = write_notebook(lab.work, "magic.ipynb", cells)
    open_notebook(page, lab, name)
    run_all(page)
    expect_state(page.locator(CARD), "succeeded")
    wait_for_line(page, "from the cluster")
    restart_kernel(page)
    run_all(page)
    expect(page.locator(".jp-InputPrompt").first).to_have_text("[1]:")
    expect_state(page.locator(CARD), "succeeded")
    expect(page.locator(".jp-RenderedText[data-mime-type*='stderr']")).to_have_count(0)
