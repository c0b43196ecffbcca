"""The executed notebook in the page of a run: its outputs as JupyterLab shows them, live, of any rank, trusted on request; and as a file."""

from __future__ import annotations

import json

from lab_page import RUN_PAGE, expect_state, open_lab, open_run, run_tab, use_theme, violations
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from playwright.sync_api import Page, expect

CELLS = [
    "import os, time\nprint('rank', os.environ['RANK'])",
    'from IPython.display import HTML\nHTML(\'<b class="mine">bold</b><img src=x onerror="window.attacked = 1"><script>window.attacked = 2</script>\')',
    "%%javascript\nwindow.attacked = 3",
    "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2]);",
    "{'a': 1}",
    "for line in range(100): print('line', line)",
    "while not os.path.exists('go'): time.sleep(0.1)\nprint('went on')",
    "1 / 0",
]


def test_outputs_grow_and_never_run_scripts(page: Page, lab: LabServer) -> None:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "# A title"}]
    cells += [code_cell(text) for text in CELLS]
    name = write_notebook(lab.work, "shown.ipynb", cells)
    size = ("--launcher", "python", "--processes-per-node", "2", "--no-project-files")
    run_id = lab.hpj("submit", name, "--name", "shown", *size)
    open_lab(page, lab)
    shown = open_run(page, run_id)
    expect_state(shown, "running")
    run_tab(shown, "Notebook")
    notebook = shown.get_by_role("region", name="Cells and outputs")
    expect(notebook.get_by_role("heading", name="A title")).to_be_visible()
    outputs = notebook.locator(".jp-OutputArea-output")
    expect(outputs.filter(has_text="rank 0")).to_be_visible(timeout=20_000)
    expect(notebook.locator("b", has_text="bold")).to_be_visible()
    expect(notebook.locator("img[src^='data:image/png']")).to_be_visible()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        page.screenshot(path=f"test-results/notebook-{theme[11:].lower()}.png")
        # JupyterLab's own pictures have no alternative text.
        found = [one for one in violations(page, RUN_PAGE) if not one.startswith("image-alt")]
        assert found == []
    shown.get_by_role("spinbutton", name="Rank").fill("1")
    expect(outputs.filter(has_text="rank 1")).to_be_visible()
    bold = notebook.locator("b", has_text="bold")
    bold.evaluate("node => { node.stays = true; }")
    bundle = next(lab.work.parent.rglob(f"runs/*/{run_id}/work"))
    (bundle / "go").touch()
    expect(outputs.filter(has_text="went on")).to_be_visible(timeout=20_000)
    expect(outputs.filter(has_text="ZeroDivisionError")).to_be_visible(timeout=20_000)
    assert bold.evaluate("node => node.stays"), "cells without news were drawn again"
    expect_state(shown, "failed")
    expect(shown.get_by_role("tab", name="Notebook")).to_have_attribute("aria-selected", "true")
    # As a file: with all outputs, not trusted by the server, and a second one beside it.
    for file in (f"shown-{run_id}-rank-1.ipynb", f"shown-{run_id}-rank-1-2.ipynb"):
        open_run(page, run_id).get_by_role("button", name="Open as notebook").click()
        expect(page.locator(".jp-NotebookPanel:visible").get_by_text("went on", exact=True)).to_be_visible()
        document = json.loads((lab.work / file).read_text())
        assert "ZeroDivisionError" in json.dumps(document["cells"][-1]["outputs"])
    assert page.evaluate("window.attacked") is None
    # Long outputs scroll in a box; scripts run once the user trusts them.
    open_run(page, run_id)
    expect(notebook.locator(".jp-mod-outputsScrolled")).to_have_count(1)
    shown.get_by_role("button", name="Go to error").click()
    expect(outputs.filter(has_text="ZeroDivisionError")).to_be_in_viewport()
    shown.get_by_role("button", name="Trust and show").click()
    page.wait_for_function("window.attacked !== undefined")
    expect(shown.get_by_role("button", name="Trust and show")).to_have_count(0)
