"""The page of all runs: filters, order, groups, selection and saved views."""

from __future__ import annotations

import secrets

from lab_page import PANEL, RUN_PAGE, execute, open_lab, use_theme, violations
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Page, expect

RUNS_PAGE = ".jp-HyperPod-RunsPage"


def test_all_runs_in_a_table(page: Page, lab: LabServer, console: list[str]) -> None:
    # The Lab is shared, and the test may run a second time: names of its own.
    mark = secrets.token_hex(2)
    twice, breaks, long = f"twice-{mark}", f"breaks-{mark}", f"long-{mark}"
    notebook = write_notebook(lab.work, "table.ipynb", [code_cell("print('table')")])
    lab.hpj("submit", notebook, "--name", "from-notebook", "--wait")
    for _ in range(2):
        lab.hpj("submit", "-c", "echo twice", "--name", twice)
    lab.hpj("submit", "-c", "echo 'no such file' >&2; exit 3", "--name", breaks)
    for n in (1, 2):
        lab.hpj("submit", "-c", "sleep 600", "--name", f"{long}-{n}")
    open_lab(page, lab)
    execute(page, "hyperpod:show-panel", keep=False)
    page.locator(PANEL).get_by_role("button", name="All (").click()
    shown = page.locator(RUNS_PAGE)
    rows = shown.locator(".jp-HyperPod-RunsTable-name")
    expect(rows.first).to_have_text(f"{long}-2")
    failed = shown.locator('tr[data-state="failed"]')
    expect(failed.filter(has_text=breaks)).to_be_visible()
    expect(shown.get_by_role("button", name=f"{twice} · ")).to_have_count(2)
    assert violations(page, RUNS_PAGE) == []
    # By the keyboard: one stop, Space selects, Delete cancels.
    rows.first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(shown.get_by_role("status")).to_have_text("2 selected")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, RUNS_PAGE) == []
    rows.nth(1).focus()
    page.keyboard.press("Delete")
    page.locator(".jp-Dialog").get_by_role("button", name="Cancel 2 runs").click()
    cancelled = shown.locator('tr[data-state="cancelled"]')
    for n in (1, 2):
        expect(cancelled.get_by_role("button", name=f"{long}-{n}")).to_be_visible()
    page.keyboard.press("Escape")
    # A filter and a group are a view, which is there again after a reload.
    shown.get_by_role("searchbox").fill(twice)
    expect(rows).to_have_count(2)
    shown.get_by_role("button", name="Group", exact=True).click()
    page.locator(".lm-Menu").get_by_text("Name", exact=True).click()
    group = shown.get_by_role("button", name=f"{twice} 2")
    expect(group).to_have_attribute("aria-expanded", "true")
    assert violations(page, RUNS_PAGE) == []
    shown.get_by_role("button", name="Views").click()
    page.locator(".lm-Menu").get_by_text("Save View…").click()
    page.locator(".jp-Dialog input").fill("Twins")
    page.locator(".jp-Dialog").get_by_role("button", name="Save").click()
    expect(shown.get_by_role("button", name="View: Twins")).to_be_visible()
    group.click()
    expect(rows).to_have_count(0)
    group.click()
    rows.first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(RUN_PAGE).locator("h1")).to_have_text(twice)
    execute(page, "hyperpod:open-runs", keep=False)
    shown.get_by_role("button", name="View: Twins").click()
    page.locator(".lm-Menu").get_by_text("All Runs", exact=True).click()
    shown.get_by_role("button", name="Show only failed runs").click()
    shown.get_by_role("searchbox").fill(mark)
    expect(rows).to_have_text([breaks])
    shown.get_by_role("checkbox", name=f"Select {breaks}").click()
    shown.get_by_role("button", name="Delete 1").click()
    page.locator(".jp-Dialog").get_by_role("button", name="Delete run").click()
    expect(shown.get_by_text("No run matches the filter.")).to_be_visible()
    assert violations(page, RUNS_PAGE) == []
    assert [line for line in console if "exception" in line] == []
