"""The page of a run: why it waits, its ranks and curves, why it failed, its code and settings."""

from __future__ import annotations

from lab_page import RUN_PAGE, expect_state, open_lab, open_run, run_tab, use_theme, violations
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Page, expect

RANKS = """
import os, time
held = bytearray((40 + 80 * int(os.environ["RANK"])) << 20)
for step in range(600):
    print("step", step, "of rank", os.environ["RANK"], flush=True)
    time.sleep(0.5)
"""


def test_how_much_memory_a_rank_uses(page: Page, lab: LabServer) -> None:
    (lab.work / "ranks.py").write_text(RANKS)
    size = ("--launcher", "python", "--nodes", "2", "--processes-per-node", "2")
    limit = ("--time-limit", "30m")
    run_id = lab.hpj("submit", "ranks.py", "--name", "ranks", *size, *limit)
    open_lab(page, lab)
    shown = open_run(page, run_id)
    expect_state(shown, "running")
    expect(shown.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")
    expect(shown.locator(".jp-HyperPod-Elapsed")).to_contain_text("/ 30:00")
    run_tab(shown, "Overview")
    memory = shown.get_by_role("img", name="Memory.")
    expect(memory.locator("canvas")).to_be_visible()
    figures = shown.locator(".jp-HyperPod-Chart").filter(has_text="Memory").get_by_role("row")
    expect(figures.filter(has_text="Rank 2")).to_contain_text("MiB")
    # By the keyboard: the strip is one stop, and its arrows go from rank to rank.
    shown.get_by_role("button", name="Rank 0: running").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    line = shown.locator(".jp-HyperPod-Ranks-line")
    expect(line).to_contain_text("Rank 2 on local-1")
    expect(line).to_contain_text("of rank 2")
    expect(line).to_contain_text("MiB of memory")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        expect(memory.locator("canvas")).to_be_visible()
        assert violations(page, RUN_PAGE) == []
    page.keyboard.press("Enter")
    expect(shown.get_by_role("tab", name="Log")).to_have_attribute("aria-selected", "true")
    lab.hpj("cancel", run_id)
    expect_state(shown, "cancelled")


def test_a_failure_is_told_once_with_its_lines(page: Page, lab: LabServer, console: list[str]) -> None:
    (lab.work / "weights.bin").write_bytes(bytes(2000))
    cells = [code_cell("x = 1"), code_cell("def step(n):\n    return n / 0\n\nstep(1)")]
    name = write_notebook(lab.work, "fails.ipynb", cells)
    run_id = lab.hpj("submit", name, "--name", "fails")
    open_lab(page, lab)
    shown = open_run(page, run_id)
    expect_state(shown, "failed")
    run_tab(shown, "Overview")
    card = shown.locator(".jp-HyperPod-Failure")
    expect(card).to_contain_text("ZeroDivisionError: division by zero")
    expect(card.locator('[data-failed="true"]')).to_contain_text("return n / 0")
    expect(shown.get_by_text("division by zero")).to_have_count(2)  # and in the folded traceback
    assert violations(page, RUN_PAGE) == []
    # The cells come first, and nothing is asked of a file that cannot be shown.
    run_tab(shown, "Code")
    expect(shown.locator(".jp-HyperPod-CodeTab-head")).to_contain_text("cell-0")
    expect(shown.get_by_text("Runtime (")).to_be_visible()
    assert violations(page, RUN_PAGE) == []
    run_tab(shown, "Settings")
    expect(shown.get_by_role("row", name="Nodes 1")).to_be_visible()
    assert violations(page, RUN_PAGE) == []
    assert [line for line in console if "422" in line] == []
    card.get_by_role("button", name="Open cell").click()
    expect(page.locator(".jp-Notebook .jp-CodeCell").nth(1).locator(".cm-content")).to_be_focused()


def test_why_a_run_waits_is_what_its_page_shows(page: Page, lab: LabServer) -> None:
    busy = [lab.hpj("submit", "-c", "sleep 600", "--name", f"busy-{n}") for n in range(4)]
    run_id = lab.hpj("submit", "-c", "echo at last", "--name", "waits")
    open_lab(page, lab)
    shown = open_run(page, run_id)
    expect_state(shown, "waiting")
    why = shown.locator(".jp-HyperPod-Why")
    expect(why).to_contain_text("Waiting for busy-0")
    expect(why.get_by_role("row")).to_have_count(5)
    assert violations(page, RUN_PAGE) == []
    why.get_by_role("button", name="busy-1").click()
    expect(page.locator(RUN_PAGE).locator("visible=true").locator("h1")).to_have_text("busy-1")
    for each in busy:
        lab.hpj("cancel", each)
