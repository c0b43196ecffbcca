"""One journey by the keyboard alone: from a cell through the submit dialog, the panel, the run page, the cluster page and the page of all runs."""

from __future__ import annotations

import re
import secrets

from lab_page import CLUSTER_PAGE, DIALOG, PANEL, RUN_PAGE, expect_state, open_lab, tab_to, violations
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Locator, Page, Route, expect

RUNS_PAGE = ".jp-HyperPod-RunsPage"
MENU = ".lm-Menu"
QUESTION = ".jp-Dialog"
SLOW = "import time\nfor n in range(600):\n    print('line', n, flush=True)\n    time.sleep(0.1)"

#: Whether an element that has the focus, or what surrounds it, looks otherwise without it. A copy without children has no focus.
_HAS_RING = """node => {
  const look = one => {
    const { boxShadow, outlineColor, outlineStyle, outlineWidth } = getComputedStyle(one);
    return [boxShadow, outlineStyle === 'none' ? '' : [outlineColor, outlineStyle, outlineWidth]].join();
  };
  for (let one = node, steps = 0; one && steps < 3; one = one.parentElement, steps++) {
    const copy = one.cloneNode(false);
    copy.removeAttribute('name');
    copy.removeAttribute('autofocus');
    one.after(copy);
    const unfocused = look(copy);
    copy.remove();
    if (look(one) !== unfocused) return true;
  }
  return false;
}"""


def stop(page: Page, target: Locator, part: str) -> None:
    """Here the focus is, it can be seen, and a screen reader can say where it is; the part of the page has no fault."""
    expect(target).to_be_focused()
    expect(target).to_be_in_viewport()
    expect(target).to_have_accessible_name(re.compile(r"\S"))
    assert target.evaluate(_HAS_RING), target.evaluate("node => node.outerHTML")
    assert violations(page, part) == []


def choose_in_menu(page: Page, label: str) -> None:
    """Walk down an open menu to an entry and choose it."""
    active = page.locator(f"{MENU} .lm-Menu-item.lm-mod-active")
    for _ in range(20):
        page.keyboard.press("ArrowDown")
        if label in (active.text_content() or ""):
            break
    expect(active).to_contain_text(label)
    page.keyboard.press("Enter")


def command(page: Page, label: str) -> None:
    """Execute a command by the palette."""
    page.keyboard.press("Control+Shift+c")
    expect(page.locator("#modal-command-palette input")).to_be_focused()
    page.keyboard.type(label)
    expect(page.locator("#modal-command-palette .lm-mod-active")).to_contain_text(label)
    page.keyboard.press("Enter")


def test_all_of_it_by_the_keyboard(page: Page, lab: LabServer, console: list[str]) -> None:
    # A second try finds the runs of the first one in the lists.
    mark = secrets.token_hex(2)
    over, by_keys = f"over-{mark}", f"by-keys-{mark}"
    lab.hpj("submit", "-c", "true", "--name", f"{over}-a", "--wait")
    lab.hpj("submit", "-c", "true", "--name", f"{over}-b", "--wait")
    notebook = write_notebook(lab.work, "keys.ipynb", [code_cell(SLOW)])
    open_lab(page, lab)
    # It comes a moment after Lab, and takes the focus.
    expect(page.locator(".jp-Launcher")).to_be_focused()
    command(page, "Open from Path")
    page.locator(QUESTION).get_by_role("textbox").wait_for()
    page.keyboard.type(notebook)
    page.keyboard.press("Enter")
    expect(page.locator(".jp-Notebook .jp-Cell").first).to_be_focused()

    # The form: Tab from field to field, arrows choose.
    page.keyboard.press("Control+Shift+Enter")
    dialog = page.locator(DIALOG)
    nodes = dialog.locator('[data-field="resources.nodes"]')
    stop(page, nodes, DIALOG)
    page.keyboard.press("ArrowUp")
    expect(nodes).to_have_value("2")
    page.keyboard.press("ArrowDown")
    expect(nodes).to_have_value("1")
    name = dialog.locator('[data-field="name"]')
    tab_to(page, name)
    page.keyboard.press("Control+a")
    page.keyboard.type(by_keys)
    stop(page, name, DIALOG)
    expect(dialog.locator(".jp-HyperPod-StatusLine")).to_contain_text("Ready to submit")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    shown = page.locator(f"{RUN_PAGE}:visible")
    expect_state(shown, "running")
    stop(page, shown.get_by_role("log"), RUN_PAGE)

    # The panel: one stop for its list, arrows go over the runs.
    command(page, "HyperPod Clusters and Runs")
    panel = page.locator(PANEL)
    first = panel.get_by_role("button", name=by_keys)
    tab_to(page, first)
    stop(page, first, PANEL)
    page.keyboard.press("ArrowDown")
    stop(page, panel.get_by_role("button", name=f"{over}-b"), PANEL)
    page.keyboard.press("ArrowDown")
    stop(page, panel.get_by_role("button", name=f"{over}-a"), PANEL)
    # Enter opens a run and pins it: the next one does not take its place.
    page.keyboard.press("Enter")
    expect(shown.locator("h1")).to_have_text(f"{over}-a")
    stop(page, shown.get_by_role("log"), RUN_PAGE)
    command(page, "HyperPod Clusters and Runs")
    tab_to(page, panel.get_by_role("button", name=f"{over}-a"))
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(shown.locator("h1")).to_have_text(by_keys)
    expect(shown.get_by_role("log")).to_be_focused()
    expect(page.get_by_role("tab", name=re.compile(f"{over}-a"))).to_be_visible()

    # The run's page: its tabs, and the search in its log.
    log_tab = shown.get_by_role("tab", name="Log", exact=True)
    tab_to(page, log_tab, "Shift+Tab")
    for tab in ("Notebook", "Code", "Settings", "Overview"):
        page.keyboard.press("ArrowRight")
        stop(page, shown.get_by_role("tab", name=tab, exact=True), RUN_PAGE)
    ranks = shown.get_by_role("button", name="Rank 0")
    tab_to(page, ranks)
    stop(page, ranks, RUN_PAGE)
    tab_to(page, shown.get_by_role("tab", name="Overview", exact=True), "Shift+Tab")
    page.keyboard.press("ArrowRight")
    tab_to(page, shown.get_by_role("log"))
    page.keyboard.press("Control+f")
    field = shown.get_by_role("searchbox")
    page.keyboard.type("line 7")
    expect(shown.get_by_text(re.compile("^1 of "))).to_be_visible()
    stop(page, field, RUN_PAGE)
    page.keyboard.press("Escape")
    stop(page, shown.get_by_role("log"), RUN_PAGE)

    # The context menu of its row cancels it.
    command(page, "HyperPod Clusters and Runs")
    tab_to(page, first)
    page.keyboard.press("Shift+F10")
    choose_in_menu(page, "Cancel Run")
    question = page.locator(QUESTION)
    stop(page, question.get_by_role("button", name="Cancel run"), QUESTION)
    page.keyboard.press("Enter")
    expect_state(shown, "cancelled")
    stop(page, first, PANEL)

    # The cluster's page: its map, and the drawer of a node.
    cluster = panel.get_by_role("list", name="Clusters").get_by_role("button", name="local")
    tab_to(page, cluster, "Shift+Tab")
    stop(page, cluster, PANEL)
    page.keyboard.press("Enter")
    shown = page.locator(f"{CLUSTER_PAGE}:visible")
    overview = shown.get_by_role("tab", name="Overview")
    tab_to(page, overview)
    stop(page, overview, CLUSTER_PAGE)
    map_of_nodes = shown.get_by_role("group", name=re.compile("Map of"))
    tab_to(page, map_of_nodes)
    page.keyboard.press("ArrowRight")
    stop(page, map_of_nodes, CLUSTER_PAGE)
    # The table comes only after the drawer is closed, and gets the focus then.
    held: list[Route] = []
    nodes_asked = re.compile("/clusters/local/nodes")

    def hold(route: Route) -> None:
        held.append(route)

    page.route(nodes_asked, hold)
    page.keyboard.press("Enter")
    drawer = shown.get_by_role("complementary")
    stop(page, drawer.get_by_role("button", name="Close"), CLUSTER_PAGE)
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    for route in held:
        route.continue_()
    page.unroute(nodes_asked)
    node = shown.locator(".jp-HyperPod-Table-name").first
    stop(page, node, CLUSTER_PAGE)
    page.keyboard.press("Enter")
    stop(page, drawer.get_by_role("button", name="Close"), CLUSTER_PAGE)
    page.keyboard.press("Enter")
    stop(page, node, CLUSTER_PAGE)

    # All runs: a filter, one that is selected, and deleted.
    command(page, "HyperPod Runs")
    runs = page.locator(RUNS_PAGE)
    rows = runs.locator(".jp-HyperPod-RunsTable-name")
    expect(rows.first).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type(over)
    expect(rows).to_have_text([f"{over}-b", f"{over}-a"])
    stop(page, runs.get_by_role("searchbox"), RUNS_PAGE)
    tab_to(page, rows.first)
    page.keyboard.press("Space")
    stop(page, rows.first, RUNS_PAGE)
    page.keyboard.press("Delete")
    stop(page, question.get_by_role("button", name="Delete run"), QUESTION)
    page.keyboard.press("Enter")
    expect(rows).to_have_text([f"{over}-a"])
    stop(page, rows.first, RUNS_PAGE)
    assert [line for line in console if "exception" in line] == []
