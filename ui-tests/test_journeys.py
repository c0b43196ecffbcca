"""Panel, run page and card as a user goes through them: keyboard, reload, themes, accessibility, languages, Notebook 7."""

from __future__ import annotations

import json
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
    use_theme,
    violations,
    wait_for_line,
)
from lab_server import LabServer, lab_server
from notebooks import LOAD, code_cell, counting, run_output, write_notebook
from playwright.sync_api import Locator, Page, expect

CATALOG = Path(__file__).parents[1] / "hyperpod_jlab/locale/de_DE/LC_MESSAGES/hyperpod_jlab.json"

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
    for _ in range(40):
        if item.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(item).to_be_focused()
    page.keyboard.press("Enter")
    log = page.locator(RUN_PAGE).get_by_role("log")
    expect(log).to_be_focused()
    expect(log.get_by_text("300", exact=True)).to_be_visible()
    page.keyboard.press("Home")
    expect(log.get_by_text("1", exact=True)).to_be_visible()
    expect(page.locator(RUN_PAGE).get_by_role("button", name="To the end")).to_be_visible()
    # And out of it again, back to the toolbar of the log.
    page.keyboard.press("Shift+Tab")
    expect(log).not_to_be_focused()
    expect(page.locator(RUN_PAGE)).to_contain_text(run_id)


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
def test_panel_page_and_card_are_accessible(
    page: Page, lab: LabServer, failed_run: str, theme: str
) -> None:
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
def german_lab(tmp_path: Path) -> Iterator[LabServer]:
    with lab_server(tmp_path / "home") as server:
        server.set_setting("@jupyterlab/translation-extension/plugin", {"locale": "de_DE"})
        yield server


def untranslated(part: Locator) -> list[str]:
    """Words of ours that are shown in English although there is German for them."""
    catalog = json.loads(CATALOG.read_text())
    forms = {key.rpartition("\x04")[2]: texts[0] for key, texts in catalog.items() if key}
    english = {text for text, german in forms.items() if text != german}
    shown = part.evaluate(
        """node => [node, ...node.querySelectorAll('*')].flatMap(part => [
             ...[...part.childNodes].filter(n => n.nodeType === 3).map(n => n.data.trim()),
             part.getAttribute('title'), part.getAttribute('aria-label'), part.getAttribute('placeholder')
           ]).filter(text => text)"""
    )
    return sorted(english.intersection(shown))


def test_everything_speaks_german(page: Page, german_lab: LabServer) -> None:
    run_id = submit(german_lab, "echo hallo", "--name", "gruss", "--wait")
    cells = [code_cell("gruss", run_output(run_id))]
    open_notebook(page, german_lab, write_notebook(german_lab.work, "deutsch.ipynb", cells))
    page.get_by_role("button", name=f"Protokoll des Laufs {run_id} zeigen").click()
    expect_state(page.locator(CARD), "erfolgreich")
    expect(page.locator(CARD).get_by_text("Der Lauf ist zu Ende")).to_be_visible()
    found = untranslated(page.locator(CARD))
    execute(page, "hyperpod:show-panel", keep=False)
    panel = page.locator(PANEL)
    expect(panel.get_by_role("button", name="gruss")).to_be_visible()
    found += untranslated(panel)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    run_page = page.locator(RUN_PAGE)
    expect(run_page.get_by_role("tab", name="Protokoll")).to_be_visible()
    expect(run_page.get_by_role("log")).to_contain_text("hallo")
    found += untranslated(run_page)
    execute(page, "hyperpod:open-cluster", {"cluster": "local"})
    cluster_page = page.locator(".jp-HyperPod-ClusterPage")
    expect(cluster_page.get_by_role("table").first).to_be_visible()
    found += untranslated(cluster_page)
    page.evaluate(
        "() => void window.jupyterapp.commands.execute('hyperpod:submit', {path: 'deutsch.ipynb'})"
    )
    dialog = page.locator(".jp-HyperPod-SubmitDialog")
    expect(dialog.get_by_role("tabpanel")).to_contain_text("Befehl jedes Prozesses")
    # A launcher is called `none` in all languages.
    found += [text for text in untranslated(dialog) if text != "none"]
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
