"""What the tests do with a page of JupyterLab or Notebook 7."""

from __future__ import annotations

import contextlib
import re

from axe_playwright_python.sync_playwright import Axe
from lab_server import TOKEN, LabServer
from playwright.sync_api import Locator, Page, expect

CARD = ".jp-HyperPod-RunCard"
ROWS = ".jp-HyperPod-LogRow"
PANEL = "#hyperpod-panel"
DIALOG = ".jp-HyperPod-SubmitDialog"
RUN_PAGE = ".jp-HyperPod-RunPage"
CLUSTER_PAGE = ".jp-HyperPod-ClusterPage"
#: The panel's list of clusters, with what is said of AWS.
CLUSTERS = f"{PANEL} section[aria-label='Clusters']"

#: Whether the kernel of the notebook in front has started and has nothing to do.
KERNEL_IDLE = "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"

_HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});
  Object.defineProperty(
    document, 'visibilityState', {configurable: true, get: () => hidden ? 'hidden' : 'visible'}
  );
  document.dispatchEvent(new Event('visibilitychange'));
}"""

#: Finds a log's view (of a card or a run page) in the widget tree, and gives its rows' texts.
_LOG_ROWS = """selector => {
  const app = window.jupyterapp;
  const find = widget => {
    if (widget.node.matches(selector)) return widget;
    for (const child of widget.children()) {
      const found = find(child);
      if (found) return found;
    }
    return null;
  };
  let owner = null;
  for (const widget of app.shell.widgets('main')) owner = owner ?? find(widget);
  if (!owner?.log) return null;
  const { window: rows } = owner.log.model.feed;
  const texts = [];
  for (let n = rows.first; n < rows.end; n++) {
    const row = rows.row(n);
    if (!row.mark) texts.push(row.text);
  }
  return texts;
}"""


def open_lab(page: Page, server: LabServer) -> None:
    """Open the application, with nothing open in it, and wait until it is there."""
    page.goto(f"{server.page_url}&reset")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_selector("#main .jp-FileBrowser, #main-panel, .jp-TreePanel, .jp-Launcher", state="attached")
    page.wait_for_function("window.jupyterapp !== undefined")


def open_notebook(page: Page, server: LabServer, name: str) -> None:
    """Open a notebook of the server's root folder, wait for its cells."""
    if server.application == "lab":
        open_lab(page, server)
        execute(page, "docmanager:open", {"path": name}, keep=False)
    else:
        page.goto(f"{server.url}/notebooks/{name}?token={TOKEN}")
        page.wait_for_function("window.jupyterapp !== undefined")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")


def run_all(page: Page) -> None:
    """Run all cells, once the kernel is there."""
    page.wait_for_function(KERNEL_IDLE)
    execute(page, "notebook:run-all-cells", keep=False)


def restart_kernel(page: Page) -> None:
    """Restart the kernel and wait until it is ready again."""
    page.evaluate(
        "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart(); }"
    )


def save(page: Page) -> None:
    """Save the open document."""
    page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.context.save(); }")


def execute(page: Page, command: str, arguments: dict[str, object] | None = None, *, keep: bool = True) -> object:
    """Execute a command of the application, as an agent does; returns its JSON answer if wanted."""
    return page.evaluate(
        """async ([id, args, keep]) => {
             const answer = await window.jupyterapp.commands.execute(id, args);
             return keep ? answer ?? null : null;
           }""",
        [command, arguments or {}, keep],
    )


def open_run(page: Page, run_id: str) -> Locator:
    """The page of a run."""
    execute(page, "hyperpod:open-run", {"runId": run_id})
    return page.locator(RUN_PAGE)


def run_tab(shown: Locator, tab: str) -> Locator:
    """A run's page with one of its tabs in front."""
    shown.get_by_role("tab", name=tab, exact=True).click()
    return shown


def more_action(shown: Locator, action: str) -> None:
    """Choose an action of a run from the menu of its page."""
    item = shown.page.locator(".lm-Menu").get_by_text(action, exact=True)
    # What a cluster can do is known a moment after the page is there.
    for _ in range(20):
        shown.get_by_role("button", name="More actions").click()
        with contextlib.suppress(AssertionError):
            expect(item).to_be_visible(timeout=500)
            break
        shown.page.keyboard.press("Escape")
    item.click()


def hide_page(page: Page, *, hidden: bool = True) -> None:
    """Hide the page, as if another tab of the browser were in front, or show it again."""
    page.evaluate(_HIDE, hidden)


def open_tab(page: Page, cluster: str, tab: str) -> Locator:
    """A tab of a cluster's page."""
    execute(page, "hyperpod:open-cluster", {"cluster": cluster})
    shown = page.locator(CLUSTER_PAGE)
    shown.get_by_role("tab", name=tab, exact=True).click()
    return shown


def panel_menu(page: Page, entry: str) -> None:
    """Choose an entry of the panel's menu."""
    execute(page, "hyperpod:show-panel", keep=False)
    found = page.locator(".lm-Menu").get_by_text(entry, exact=True)
    # The menu is as it was when it was opened, and what a user may do is asked for after the panel is there.
    for _ in range(40):
        page.locator(PANEL).get_by_role("button", name="More", exact=True).click()
        if found.count() == 1:
            break
        page.keyboard.press("Escape")
        page.wait_for_timeout(500)
    found.click()


def row(shown: Locator, text: str) -> Locator:
    """The rows in which a cell says just this."""
    cell = shown.page.get_by_role("cell", name=text, exact=True)
    return shown.get_by_role("row").filter(has=cell)


def refresh_until(shown: Locator, there: Locator, count: int = 1) -> None:
    """Press Refresh until a table shows something: it shows one look at the cluster for a while."""
    for _ in range(40):
        if there.count() == count:
            return
        shown.get_by_role("button", name="Refresh").first.click()
        shown.page.wait_for_timeout(500)
    expect(there).to_have_count(count)


def tab_to(page: Page, target: Locator, key: str = "Tab") -> None:
    """Press Tab until something has the focus."""
    for _ in range(60):
        if target.evaluate("node => node === document.activeElement"):
            break
        page.keyboard.press(key)
    expect(target).to_be_focused()


def log_lines(page: Page, owner: str = CARD) -> list[str]:
    """All rows that a card (or a run page) holds, drawn or not."""
    return list(page.evaluate(_LOG_ROWS, owner) or [])


def wait_for_line(page: Page, text: str, owner: str = CARD, timeout: float = 30_000) -> None:
    """Wait until a log's view holds a line."""
    page.wait_for_function(
        f"([owner, text]) => (({_LOG_ROWS})(owner) ?? []).includes(text)", arg=[owner, text], timeout=timeout
    )


def state_of(owner: Locator) -> Locator:
    """The chip with the state in a card or page."""
    return owner.locator(".jp-HyperPod-StateChip").first


def expect_state(owner: Locator, state: str, timeout: float = 20_000) -> None:
    """Wait until a card or page shows a state."""
    expect(state_of(owner)).to_have_text(re.compile(f"^{state}$"), timeout=timeout)


def use_theme(page: Page, theme: str) -> None:
    """Change the theme, wait until it is there."""
    execute(page, "apputils:change-theme", {"theme": theme}, keep=False)
    light = "false" if "Dark" in theme else "true"
    page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")


def violations(page: Page, selector: str) -> list[str]:
    """What axe finds wrong in a part of the page."""
    results = Axe().run(page, context=selector)
    return [
        f"{item['id']} ({item['impact']}): {item['help']}: {node['html'][:160]}"
        for item in results.response["violations"]
        for node in item["nodes"]
    ]


def job_form(page: Page, notebook: str, environment: str, **parameters: str) -> Locator:
    """jupyter-scheduler's form for a notebook in the file browser, filled in; returns its tab."""
    page.locator(".jp-DirListing-item", has_text=notebook).click(button="right")
    page.locator('.lm-Menu [data-command="scheduling:create-from-filebrowser"]').click()
    jobs = page.locator("#notebook-jobs-panel")
    jobs.get_by_label("Environment").click()
    page.get_by_role("option", name=environment, exact=True).click()
    for number, (name, value) in enumerate(parameters.items()):
        jobs.get_by_title("Add new parameter").click()
        jobs.locator(f"[name=parameter-{number}-name]").fill(name)
        field = jobs.locator(f"[name=parameter-{number}-value]")
        field.fill(value)
        field.blur()  # the form checks a field when it is left
    return jobs
