"""Panel, run page and card as a user goes through them: keyboard, reload, themes, accessibility, languages, Notebook 7."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import (
    CARD,
    PANEL,
    RUN_PAGE,
    execute,
    expect_state,
    log_lines,
    open_lab,
    open_notebook,
    run_all,
    run_tab,
    tab_to,
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer, lab_server
from notebooks import LOAD, code_cell, counting, run_output, write_notebook
from playwright.sync_api import Locator, Page, expect

#: JupyterLab's own setting, by which every string that can be translated begins with a mark.
TRANSLATION = "@jupyterlab/translation-extension/plugin"
MARK = "!!"
MARKED = {"displayStringsPrefix": True, "stringsPrefix": MARK}

#: Ranks, colours, a mark and an error: something of everything that a log shows.
COLOURFUL = (
    "for n in $(seq 40); do printf 'step \\033[32m%d\\033[0m of \\033[1m40\\033[0m\\n' $n; done; "
    "printf '\\033[31mboom\\033[0m\\n'; echo plain; exit 3"
)


def submit(server: LabServer, command: str, *options: str) -> str:
    """Send a command's run; returns its id."""
    return server.hpj("submit", *options, "-c", command)


@pytest.fixture(scope="module")
def failed_run(lab: LabServer) -> str:
    run_id = submit(lab, COLOURFUL, "--name", "boom", "--nodes", "2")
    lab.hpj("logs", "-f", run_id)
    return run_id


def test_keyboard_leads_from_the_panel_to_the_log(page: Page, lab: LabServer) -> None:
    run_id = submit(lab, "seq 300", "--name", "keyboard", "--wait")
    open_lab(page, lab)
    # It comes a moment after Lab, and takes the focus.
    expect(page.locator(".jp-Launcher")).to_be_focused()
    page.keyboard.press("Control+Shift+c")
    expect(page.locator("#modal-command-palette input")).to_be_focused()
    page.keyboard.type("HyperPod Clusters and Runs")
    expect(page.locator("#modal-command-palette .lm-mod-active")).to_contain_text("HyperPod")
    page.keyboard.press("Enter")
    item = page.locator(PANEL).get_by_role("button", name="keyboard")
    expect(item).to_be_visible()
    tab_to(page, item)
    page.keyboard.press("Enter")
    log = page.locator(RUN_PAGE).get_by_role("log")
    expect(log).to_be_focused()
    expect(log.get_by_text("300", exact=True)).to_be_visible()
    page.keyboard.press("Home")
    expect(log.get_by_text("1", exact=True)).to_be_visible()
    expect(page.locator(RUN_PAGE).get_by_role("button", name="Jump to end")).to_be_visible()
    # And out of it again, back to the toolbar of the log.
    page.keyboard.press("Shift+Tab")
    expect(log).not_to_be_focused()
    expect(page.locator(RUN_PAGE).locator("h1")).to_have_attribute("title", run_id)


def test_reload_of_the_run_page_in_mid_stream(page: Page, lab: LabServer) -> None:
    count = 200
    command = f"for n in $(seq {count}); do echo line $n; sleep 0.03; done"
    run_id = submit(lab, command, "--name", "reloaded")
    open_lab(page, lab)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    wait_for_line(page, "line 20", RUN_PAGE)
    page.wait_for_timeout(1500)  # the application saves its layout a moment after it changed
    page.reload()
    wait_for_line(page, f"line {count}", RUN_PAGE)
    assert log_lines(page, RUN_PAGE) == [f"line {n + 1}" for n in range(count)]
    expect_state(page.locator(RUN_PAGE), "succeeded")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_panel_page_and_card_are_accessible(page: Page, lab: LabServer, failed_run: str, theme: str) -> None:
    name = write_notebook(lab.work, "axe.ipynb", [code_cell("boom", run_output(failed_run))])
    open_notebook(page, lab, name)
    use_theme(page, theme)
    page.get_by_role("button", name="Show the log of run").click()
    expect_state(page.locator(CARD), "failed")
    wait_for_line(page, "plain")
    execute(page, "hyperpod:show-panel", keep=False)
    expect(page.locator(PANEL).get_by_role("button", name="boom")).to_be_visible()
    found = violations(page, CARD) + violations(page, PANEL)
    execute(page, "hyperpod:open-run", {"runId": failed_run})
    expect_state(page.locator(RUN_PAGE), "failed")
    found += violations(page, RUN_PAGE)
    run_tab(page.locator(RUN_PAGE), "Log")
    expect(page.locator(RUN_PAGE).get_by_text("step 40 of 40").first).to_be_visible()
    found += violations(page, RUN_PAGE)
    dark = page.locator(RUN_PAGE).evaluate("node => getComputedStyle(node).backgroundColor")
    use_theme(page, "JupyterLab Light")
    assert is_dark(dark) == ("Dark" in theme)
    assert found == []


def is_dark(colour: str) -> bool:
    """Whether an `rgb(r, g, b)` is nearer to black."""
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) < 3 * 128


@pytest.fixture
def marked_lab(tmp_path: Path) -> Iterator[LabServer]:
    with lab_server(tmp_path / "home") as server:
        server.set_setting(TRANSLATION, MARKED)
        yield server


def untranslatable(part: Locator) -> list[str]:
    """Labels that cannot be translated. Sentences and names with numbers may be the server's."""
    shown = part.evaluate(
        """node => [node, ...node.querySelectorAll('*')].flatMap(part => [
             ...[...part.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()),
             part.getAttribute('title'), part.getAttribute('aria-label'), part.getAttribute('placeholder')
           ]).filter(text => text)"""
    )
    assert any(MARK in text for text in shown)
    label = re.compile(r"[A-Z][a-z]+( [A-Za-z]+){0,4}[…:]?")
    return sorted({text for text in shown if label.fullmatch(text)})


def test_every_string_can_be_translated(page: Page, marked_lab: LabServer) -> None:
    run_id = submit(marked_lab, "echo hello", "--name", "hello", "--wait")
    cells = [code_cell("hello", run_output(run_id))]
    open_notebook(page, marked_lab, write_notebook(marked_lab.work, "marked.ipynb", cells))
    page.get_by_role("button", name=f"{MARK}Show the log of run {run_id}").click()
    expect_state(page.locator(CARD), f"{MARK}succeeded")
    expect(page.locator(CARD).get_by_text(f"{MARK}The run has ended")).to_be_visible()
    found = untranslatable(page.locator(CARD))
    execute(page, "hyperpod:show-panel", keep=False)
    panel = page.locator(PANEL)
    expect(panel.get_by_role("button", name="hello")).to_be_visible()
    found += untranslatable(panel)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    run_page = page.locator(RUN_PAGE)
    expect(run_page.get_by_role("tab", name=f"{MARK}Log")).to_be_visible()
    expect(run_page.get_by_role("log")).to_contain_text("hello")
    found += untranslatable(run_page)
    execute(page, "hyperpod:open-cluster", {"cluster": "local"})
    cluster_page = page.locator(".jp-HyperPod-ClusterPage")
    expect(cluster_page.locator(".jp-HyperPod-NodeMap")).to_be_visible()
    found += untranslatable(cluster_page)
    cluster_page.get_by_role("tab").nth(1).click()
    expect(cluster_page.get_by_role("table").first).to_be_visible()
    found += untranslatable(cluster_page)
    page.evaluate("() => void window.jupyterapp.commands.execute('hyperpod:submit', {path: 'marked.ipynb'})")
    dialog = page.locator(".jp-HyperPod-SubmitDialog")
    for button in dialog.locator(".jp-HyperPod-ToggleBar-button").all():
        button.click()
    dialog.get_by_role("button", name=f"{MARK}Code").click()
    expect(dialog).to_contain_text(f"{MARK}Command of each process")
    found += untranslatable(dialog)
    assert found == []


def test_notebook7_has_card_and_run_page(page: Page, notebook7: LabServer) -> None:
    cells = [code_cell(LOAD), code_cell(counting(3, 0, "--name seven"))]
    name = write_notebook(notebook7.work, "seven.ipynb", cells)
    open_notebook(page, notebook7, name)
    run_all(page)
    card = page.locator(CARD)
    wait_for_line(page, "line 2")
    expect_state(card, "succeeded")
    card.get_by_role("button", name="Open").click()
    run_page = page.locator(RUN_PAGE)
    expect_state(run_page, "succeeded")
    expect(run_page.get_by_text("line 2", exact=True)).to_be_visible()
