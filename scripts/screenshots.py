"""Make the screenshots of the docs (docs/images/*.png): a real JupyterLab with real runs on the embedded cluster, in Chromium.

Needs what the browser tests need: `scripts/ui-test.sh` installs Chromium where it is missing.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ui-tests"))

from conftest import QUIET  # noqa: E402
from lab_page import CARD, execute, open_lab, open_notebook, run_all, use_theme  # noqa: E402
from lab_server import LabServer, lab_server  # noqa: E402
from notebooks import LOAD, code_cell, write_notebook  # noqa: E402

IMAGES = ROOT / "docs" / "images"
VIEWPORT = {"width": 1240, "height": 800}
RUN_PAGE = ".jp-HyperPod-RunPage"

TRAINING = """\
import os
import time

rank = int(os.environ["RANK"])
for epoch in range(60):
    loss = 2.3 * 0.93**epoch + 0.01 * rank
    print(f"epoch {epoch:2d}  loss {loss:.4f}")
    time.sleep(0.25)
"""

CELL = (
    f"%%hyperpod --nodes 2 --processes-per-node 2 --launcher python --name train-digits\n{TRAINING}"
)
BROKEN = 'data = load("digits.csv")\n'


def prepare(server: LabServer) -> str:
    """Send runs of every kind; returns the id of the one whose page is shown."""
    # Not this machine's own environment: its path would stand in the pictures.
    with (server.home / "config.toml").open("a") as config:
        config.write('python = "/usr/bin/python3"\n')
    (server.work / "train.py").write_text(TRAINING)
    (server.work / "evaluate.py").write_text(BROKEN)
    server.hpj("submit", "-c", "echo 65536 tokens", "--name", "tokenize", "--wait")
    failed = server.hpj("submit", "evaluate.py", "--name", "evaluate")
    while '"state": "failed"' not in server.hpj("show", failed, "--json"):
        time.sleep(0.2)
    size = ("--nodes", "2", "--processes-per-node", "2", "--launcher", "python")
    return server.hpj("submit", "train.py", *size, "--name", "train-digits")


def shoot(page: Page, name: str) -> None:
    """Take a picture once nothing moves any more."""
    page.mouse.move(0, VIEWPORT["height"] - 1)
    page.wait_for_timeout(800)
    path = IMAGES / f"{name}.png"
    page.screenshot(path=path)
    print(f"    {path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB")


def shoot_run_page(page: Page, run_id: str) -> None:
    """The panel beside a run's page, in both themes."""
    execute(page, "hyperpod:show-panel", keep=False)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    expect(page.locator(RUN_PAGE).get_by_text("epoch  9").first).to_be_visible(timeout=60_000)
    shoot(page, "run-page")
    use_theme(page, "JupyterLab Dark")
    shoot(page, "run-page-dark")
    use_theme(page, "JupyterLab Light")


def shoot_card(page: Page, server: LabServer) -> None:
    """A cell with the magic, its output the live log, in both themes."""
    name = write_notebook(server.work, "digits.ipynb", [code_cell(LOAD), code_cell(CELL)])
    open_notebook(page, server, name)
    run_all(page)
    expect(page.locator(CARD).get_by_text("epoch  9").first).to_be_visible(timeout=60_000)
    shoot(page, "cell-output")
    use_theme(page, "JupyterLab Dark")
    shoot(page, "cell-output-dark")
    use_theme(page, "JupyterLab Light")


def shoot_dialog(page: Page, server: LabServer) -> None:
    """The submit dialog for a cell."""
    name = write_notebook(server.work, "train.ipynb", [code_cell(TRAINING)])
    open_notebook(page, server, name)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_role("tabpanel").last).to_contain_text("Command of each process")
    shoot(page, "submit-dialog")
    page.keyboard.press("Escape")


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("Chromium is missing; scripts/ui-test.sh installs it", file=sys.stderr)
        return 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="hyperpod-")) / "home"
    with sync_playwright() as playwright, lab_server(home) as server:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET, headless=True)
        page = browser.new_context(viewport=VIEWPORT).new_page()
        run_id = prepare(server)
        open_lab(page, server)
        shoot_run_page(page, run_id)
        server.cancel_all()
        shoot_card(page, server)
        server.cancel_all()
        shoot_dialog(page, server)
        browser.close()
    shutil.rmtree(home.parent, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
