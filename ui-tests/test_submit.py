"""From cells on the screen to a run: the dialog, the live log, the chip at the cell."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_page import (
    DIALOG,
    RUN_PAGE,
    execute,
    expect_state,
    open_lab,
    open_notebook,
    run_tab,
    save,
    state_of,
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Locator, Page, expect

CHIP = ".jp-HyperPod-CellChip"
STATE = ".jp-HyperPod-StatusLine"
COUNTING = "import time\nfor n in range(500):\n    print('line', n)\n    time.sleep(0.1)"


def notebook(folder: Path, name: str) -> str:
    return write_notebook(folder, name, [code_cell("x = 1"), code_cell(COUNTING), code_cell("print('bye')")])


def cell(page: Page, number: int) -> Locator:
    return page.locator(".jp-Notebook .jp-CodeCell").nth(number)


def type_above(page: Page, number: int, text: str) -> None:
    """Type a line above a cell's code; nothing is saved."""
    cell(page, number).locator(".cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.type(f"{text}\n")


def open_dialog(page: Page) -> Locator:
    """Open the dialog for the selected cells by the keyboard; wait until it has looked at them."""
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    expect(dialog.locator('[data-field="resources.nodes"]')).to_be_focused()
    expect(dialog.locator(STATE)).to_contain_text("Ready to submit")
    return dialog


def unfold(dialog: Locator, name: str) -> Locator:
    """Unfold a part of the preview."""
    dialog.get_by_role("button", name=name, exact=True).click()
    return dialog.get_by_role("region", name=name, exact=True)


def test_what_is_on_the_screen_runs_and_nothing_is_written(page: Page, lab: LabServer) -> None:
    name = notebook(lab.work, "screen.ipynb")
    before = (lab.work / name).read_bytes()
    open_notebook(page, lab, name)
    type_above(page, 1, "print('not saved')")
    dialog = open_dialog(page)
    expect(unfold(dialog, "Code")).to_contain_text("not saved")
    page.keyboard.press("Control+Enter")
    wait_for_line(page, "not saved", RUN_PAGE)
    wait_for_line(page, "line 3", RUN_PAGE)
    assert (lab.work / name).read_bytes() == before

    run_page = page.locator(RUN_PAGE)
    expect_state(run_page, "running")
    page.locator(".lm-TabBar-tabLabel", has_text=name).click()
    expect_state(cell(page, 1).locator(CHIP), "running")
    expect(cell(page, 0).locator(CHIP)).to_have_count(0)
    type_above(page, 1, "# edited")
    expect(cell(page, 1).locator(CHIP)).to_contain_text("changed since")

    cell(page, 1).locator(CHIP).get_by_role("button", name="Open run").click()
    run_page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel run").click()
    expect_state(run_page, "cancelled")
    page.locator(".lm-TabBar-tabLabel", has_text=name).click()
    expect_state(cell(page, 1).locator(CHIP), "cancelled")
    save(page)
    saved = (lab.work / name).read_text()
    assert "hyperpod" not in saved.lower()
    assert "# edited" in saved

    open_notebook(page, lab, name)
    expect_state(cell(page, 1).locator(CHIP), "cancelled")


def test_what_is_wrong_is_told_at_its_field(page: Page, lab: LabServer) -> None:
    open_notebook(page, lab, notebook(lab.work, "wrong.ipynb"))
    cell(page, 0).locator(".cm-content").click()
    dialog = open_dialog(page)
    nodes = dialog.locator('[data-field="resources.nodes"]')
    submit = dialog.get_by_role("button", name="Submit")
    code = unfold(dialog, "Code")
    expect(code).to_contain_text("x = 1")
    nodes.fill("65")
    expect(dialog.locator("[data-findings]")).to_contain_text("at most 64 nodes")
    expect(nodes).to_have_attribute("aria-invalid", "true")
    expect(submit).to_be_disabled()
    dialog.get_by_role("button", name="Use 64 nodes").click()
    expect(nodes).to_have_value("64")
    expect(nodes).to_have_attribute("aria-invalid", "false")
    nodes.fill("two")
    expect(dialog.locator(STATE)).to_contain_text("Fix 1 field")
    expect(submit).to_be_disabled()
    expect(code).to_contain_text("x = 1")
    dialog.locator('[data-field="name"]').focus()
    page.keyboard.press("Enter")
    expect(nodes).to_have_attribute("aria-invalid", "true")
    expect(nodes).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(DIALOG)).to_have_count(0)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_dialog_and_chip_are_accessible(page: Page, lab: LabServer, theme: str) -> None:
    name = notebook(lab.work, f"{theme.split()[1]}.ipynb")
    open_notebook(page, lab, name)
    run = execute(page, "hyperpod:submit", {"path": name, "cells": ["cell-0"], "run": True})
    assert isinstance(run, dict)
    expect(state_of(cell(page, 0).locator(CHIP))).to_be_visible()
    expect_state(cell(page, 0).locator(CHIP), "succeeded")
    use_theme(page, theme)
    assert violations(page, CHIP) == []
    cell(page, 0).locator(CHIP).get_by_role("button", name="Show log").click()
    card = cell(page, 0).locator(".jp-HyperPod-CellChip + .jp-HyperPod-RunCard")
    expect_state(card, "succeeded")
    cell(page, 0).locator(CHIP).get_by_role("button", name="Hide log").click()
    expect(card).to_have_count(0)
    cell(page, 2).locator(".cm-content").click()
    dialog = open_dialog(page)
    for group in ("Program", "Environment", "Files", "Resources", "Scheduling"):
        dialog.get_by_role("button", name=group, exact=True).click()
    for view in ("Code", "local.json", "Changes", "Files ("):
        dialog.get_by_role("button", name=view).click()
        assert violations(page, DIALOG) == []
    dialog.locator('[data-field="resources.nodes"]').fill("x")
    expect(dialog.locator(STATE)).to_contain_text("Fix 1 field")
    dialog.get_by_role("button", name="Smoke test").click()
    assert violations(page, DIALOG) == []
    page.keyboard.press("Escape")
    use_theme(page, "JupyterLab Light")


def test_without_a_server_the_dialog_has_the_keys(page: Page, lab: LabServer) -> None:
    open_notebook(page, lab, notebook(lab.work, "gone.ipynb"))
    page.route("**/hyperpod/**/schema*", lambda route: route.abort())
    cell(page, 0).locator(".cm-content").click()
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    expect(dialog.get_by_role("button", name="Try again")).to_be_focused()
    page.unroute("**/hyperpod/**/schema*")
    page.keyboard.press("Enter")
    nodes = dialog.locator('[data-field="resources.nodes"]')
    expect(nodes).to_be_focused()
    dialog.get_by_role("button", name="Submit").focus()
    page.keyboard.press("Tab")
    expect(dialog.get_by_role("button", name="Defaults")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(DIALOG)).to_have_count(0)


def test_a_file_runs_from_the_file_browser(page: Page, lab: LabServer) -> None:
    (lab.work / "hello.py").write_text("print('hello from a file')\n")
    open_lab(page, lab)
    execute(page, "filebrowser:refresh", keep=False)
    page.locator(".jp-DirListing-item", has_text="hello.py").click(button="right")
    page.get_by_role("menuitem", name="Run on Cluster").click()
    dialog = page.locator(DIALOG)
    expect(unfold(dialog, "Code")).to_contain_text("hello from a file")
    dialog.get_by_role("button", name="Submit").click()
    wait_for_line(page, "hello from a file", RUN_PAGE)
    expect_state(page.locator(RUN_PAGE), "succeeded")


def test_a_new_run_needs_no_notebook(page: Page, lab: LabServer) -> None:
    (lab.work / "new.py").write_text("print('a new file')\n")
    open_lab(page, lab)
    page.evaluate("() => { window.jupyterapp.commands.execute('hyperpod:new-run'); }")
    dialog = page.locator(DIALOG)
    source = dialog.locator('[data-field="source"]')
    expect(source).to_be_focused()
    expect(dialog.locator(STATE)).to_contain_text("Enter a command")
    expect(dialog.get_by_role("button", name="Submit")).to_be_disabled()
    assert violations(page, DIALOG) == []
    dialog.get_by_label("File", exact=True).first.check()
    source.fill("new.py")
    expect(dialog.locator(STATE)).to_contain_text("Ready to submit")
    expect(unfold(dialog, "Code")).to_contain_text("a new file")
    dialog.get_by_label("Command", exact=True).first.check()
    source.fill("echo it is $((40 + 2))")
    expect(dialog.locator(STATE)).to_contain_text("Ready to submit")
    page.keyboard.press("Control+Enter")
    wait_for_line(page, "it is 42", RUN_PAGE)


def test_agents_need_no_dialog(page: Page, lab: LabServer) -> None:
    (lab.work / "agent.py").write_text("print('by an agent')\n")
    open_lab(page, lab)
    preview = execute(page, "hyperpod:submit", {"path": "agent.py", "preview": True})
    assert isinstance(preview, dict)
    assert preview["parts"][0]["text"] == "print('by an agent')\n"
    run = execute(page, "hyperpod:submit", {"path": "agent.py", "run": True, "spec": {"name": "agent"}})
    assert isinstance(run, dict)
    assert run["name"] == "agent"
    again = execute(page, "hyperpod:submit", {"cloneOf": run["run_id"], "run": True})
    assert isinstance(again, dict)
    assert again["run_id"] != run["run_id"]


def test_submit_works_in_notebook_7(page: Page, notebook7: LabServer) -> None:
    open_notebook(page, notebook7, notebook(notebook7.work, "seven.ipynb"))
    cell(page, 1).locator(".cm-content").click()
    open_dialog(page)
    page.keyboard.press("Control+Enter")
    expect_state(cell(page, 1).locator(CHIP), "running")
    expect_state(page.locator(RUN_PAGE), "running")


def test_a_traceback_leads_to_the_cell(page: Page, lab: LabServer) -> None:
    cells = [code_cell("def f(n):\n    return 1 // n"), code_cell("print('go')\nf(0)")]
    name = write_notebook(lab.work, "failing.ipynb", cells)
    open_notebook(page, lab, name)
    run = execute(page, "hyperpod:submit", {"path": name, "run": True})
    assert isinstance(run, dict)
    execute(page, "hyperpod:open-run", {"runId": run["run_id"]}, keep=False)
    run_page = page.locator(RUN_PAGE)
    expect_state(run_page, "failed")
    run_tab(run_page, "Log")
    link = run_page.get_by_role("link", name="cell-01.py")
    link.click()
    expect(cell(page, 0).locator(".cm-content")).to_be_focused()
    page.keyboard.type("# edited")
    expect(cell(page, 0).locator(".cm-line").nth(1)).to_have_text("# edited    return 1 // n")
    page.locator(".lm-TabBar-tabLabel", has_text="failing").last.click()
    link.focus()
    page.keyboard.press("Enter")
    copy = page.locator(".jp-HyperPod-SentCell")
    expect(copy.locator('[aria-current="true"]')).to_have_text("    return 1 // n\n")
    assert violations(page, ".jp-Dialog") == []
    page.keyboard.press("Escape")
