"""What runs cost: before the submit, in the run's page, and on the page of usage with its bars, table and export."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_page import (
    DIALOG,
    RUN_PAGE,
    expect_state,
    open_lab,
    open_notebook,
    open_run,
    panel_menu,
    run_tab,
    use_theme,
    violations,
)
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from past_runs import submit_in_the_past
from playwright.sync_api import Locator, Page, expect

USAGE = ".jp-HyperPod-UsagePage"
CONFIG = """
[storage]
path = "{home}/fsx"
[clusters.local]
slots = 4
[clusters.local.cost]
node_price = 1.5
[cost]
confirm_over = 10
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[LabServer]:
    """A Lab whose runs have a price; some ran on the days before, none of them past midnight of today."""
    home = tmp_path / "home"
    server = LabServer(home, config=CONFIG.format(home=home))
    for days, hours, name in ((4, 5, "first"), (2, 2, "second"), (2, 3, "first")):
        notebook = write_notebook(server.work, f"{name}.ipynb", [code_cell("print(1)")])
        words = (notebook, "--name", name, "--accept-cost")
        submit_in_the_past(server, *words, days=days, hours=hours)
    server.start()
    yield server
    server.stop()
    server.cancel_all()


def rows(usage: Locator) -> list[list[str]]:
    """The cells of the table's rows."""
    return [row.locator("th, td").all_inner_texts() for row in usage.locator("tbody tr").all()]


def test_usage_by_day_and_key(page: Page, lab: LabServer, console: list[str]) -> None:
    open_lab(page, lab)
    panel_menu(page, "Usage and Cost")
    usage = page.locator(USAGE)
    expect(usage.locator("canvas")).to_be_visible()
    # There are no GPUs: node-hours come first.
    expect(usage.get_by_role("group", name="Show").get_by_role("button")).to_have_text(["Node-hours", "Cost"])
    assert [row[:3] for row in rows(usage)] == [["root", "3", "10"]]
    usage.get_by_role("combobox", name="By", exact=True).select_option("Notebook")
    expect(usage.locator("tbody tr")).to_have_count(2)
    found = rows(usage)
    assert [row[1:3] for row in found] == [["2", "8"], ["1", "2"]]
    assert [found[0][0], found[0][4]] == ["first.ipynb", "80 %"]
    usage.get_by_role("button", name="Cost", exact=True).click()
    expect(usage.locator("figcaption")).to_contain_text("Cost per day")
    expect(usage.locator("tfoot")).to_contain_text(re.compile(r"Total\s*3\s*10\s*\$\d+\.\d\d"))
    for theme in ("Dark", "Light"):
        use_theme(page, f"JupyterLab {theme}")
        page.wait_for_timeout(1000)
        page.screenshot(path=f"test-results/usage-{theme.lower()}.png")
        assert violations(page, USAGE) == []
    # The day under the cursor: the newest one, on which nothing ran.
    box = usage.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 20)
    expect(usage.locator("figcaption")).to_contain_text(re.compile(r"[A-Z][a-z]{2} \d"))
    expect(usage.locator(".jp-HyperPod-UsagePage-legend")).to_contain_text("second.ipynb$0")
    usage.get_by_role("combobox", name="Time", exact=True).select_option("7 days")
    usage.get_by_role("combobox", name="Cluster", exact=True).select_option("local")
    expect(usage.locator("[aria-busy=true]")).to_have_count(0)
    with page.expect_download() as download:
        usage.get_by_role("button", name="Export CSV").click()
    name = download.value.suggested_filename
    assert re.fullmatch(r"usage-by-notebook-\d{4}-\d\d-\d\d-to-\d{4}-\d\d-\d\d\.csv", name)
    text = Path(download.value.path()).read_text()
    assert text == lab.hpj("usage", "--by", "notebook", "--since", "7d", "--csv") + "\n"
    hours = sum(float(row["node_hours"]) for row in csv.DictReader(io.StringIO(text)))
    assert hours == pytest.approx(10)
    assert [line for line in console if "hyperpod/api" in line or "exception" in line] == []


def test_a_run_says_what_it_cost_and_what_was_wasted(page: Page, lab: LabServer) -> None:
    lab.stop()
    words = ("-c", "true", "--name", "lost", "--accept-cost")
    run_id = submit_in_the_past(lab, *words, days=1, hours=2, attempts=2)
    lab.start()
    open_lab(page, lab)
    shown = open_run(page, run_id)
    expect_state(shown, "succeeded")
    cost = run_tab(shown, "Overview").locator(".jp-HyperPod-Cost")
    expect(cost).to_contain_text("Node-hours4")
    expect(cost).to_contain_text(re.compile(r"Cost\$\d\.\d\d"))
    expect(cost).to_contain_text("(2 node-hours) wasted by attempts that were repeated")
    expect(cost).to_contain_text("$1.50 per node and hour, from the configuration.")
    for theme in ("Dark", "Light"):
        use_theme(page, f"JupyterLab {theme}")
        page.wait_for_timeout(1000)
        page.screenshot(path=f"test-results/run-cost-{theme.lower()}.png")
        assert violations(page, RUN_PAGE) == []
    cost.get_by_role("button", name="Usage and cost").click()
    cluster = page.locator(USAGE).get_by_role("combobox", name="Cluster", exact=True)
    expect(cluster).to_have_value("local")
    expect(page.locator(USAGE).locator("tfoot")).to_contain_text("Total")


def test_a_run_over_the_limit_is_confirmed(page: Page, lab: LabServer) -> None:
    open_notebook(page, lab, "first.ipynb")
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    line = dialog.locator(".jp-HyperPod-StatusLine")
    dialog.locator('[data-field="time_limit"]').fill("100h")
    expect(line).to_contain_text(re.compile(r"about \$[\d.]+/h, at most \$\d+"))
    expect(line).to_contain_text("Ready to submit")
    expect(line.get_by_title("from the configuration")).to_be_visible()
    expect(dialog).to_contain_text("Warning: The run may cost")
    page.screenshot(path="test-results/submit-cost.png")
    dialog.get_by_role("button", name="Submit", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("Submit it anyway?")
    expect(dialog.get_by_role("alert")).to_be_focused()
    page.screenshot(path="test-results/submit-cost-question.png")
    assert violations(page, DIALOG) == []
    dialog.get_by_role("button", name="Submit anyway").click()
    expect_state(page.locator(RUN_PAGE), "succeeded")
    shown = lab.hpj("show", "last", "--json")
    assert '"time_limit": 360000' in shown
