"""What the page's benchmarks share: a real JupyterLab in Chromium, and a log beside which things are measured."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from conftest import QUIET, VIEWPORT
from lab_page import execute
from lab_server import LabServer
from playwright.sync_api import Browser, Page, sync_playwright

BUILT = Path(__file__).resolve().parents[1] / "hyperpod_jlab/labextension"
FRONT_END = Path(os.environ.get("FRONT_END", BUILT))
"""The built front end that is measured."""
RUN_PAGE = ".jp-HyperPod-RunPage"

#: Finds the run page's log and gives something of it.
OF_LOG = """what => {
  const find = widget => widget.node.matches('.jp-HyperPod-RunPage') ? widget
    : [...widget.children()].map(find).find(found => found);
  let page = null;
  for (const widget of window.jupyterapp.shell.widgets('main')) page = page ?? find(widget);
  const feed = page?.log?.model.feed;
  if (!feed) return 0;
  return what === 'received' ? feed.window.received
    : what === 'held' ? feed.window.length
    : page.node.querySelectorAll('.jp-HyperPod-LogRow').length;
}"""

#: A line of each of eight ranks, so many times a second.
TALK = """\
import os, time
rank, begin, said = int(os.environ["RANK"]), time.monotonic(), 0
while time.monotonic() - begin < {seconds}:
    while said < (time.monotonic() - begin) * {rate} / 8:
        said += 1
        print(f"step {{said}} loss {{1 / said + (said % 2) * rank:.4f}} tokens/s 91000")
    time.sleep(0.02)
"""


@contextmanager
def browser_of() -> Iterator[Browser]:
    """Chromium without a window."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is missing; scripts/ui-test.sh installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET, headless=True)
        yield browser
        browser.close()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for servers' homes."""
    folder = Path(tempfile.mkdtemp(prefix="hyperpod-bench-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def keep_front_end(server: LabServer) -> None:
    """Let a server have a copy of the built front end: a build beside the benchmark must not take files away from it."""
    shutil.copytree(FRONT_END, server.home / "extensions/hyperpod_jlab")
    config = server.home / ".jupyter/jupyter_lab_config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    path = [str(server.home / "extensions")]
    config.write_text(json.dumps({"LabApp": {"extra_labextensions_path": path}}))


@contextmanager
def running(server: LabServer) -> Iterator[LabServer]:
    """The server runs until the block ends, and leaves no run behind."""
    keep_front_end(server)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        if (server.home / "fsx").exists():
            server.cancel_all()


@contextmanager
def lab_page() -> Iterator[tuple[Page, LabServer]]:
    """A page at a JupyterLab of its own."""
    with scratch() as folder, running(LabServer(folder / "home")) as server, browser_of() as browser:
        page = browser.new_context(viewport=VIEWPORT).new_page()
        page.set_default_timeout(60_000)
        yield page, server


def talk(server: LabServer, rate: int, seconds: float) -> str:
    """Send a run of eight ranks that talk; returns its id."""
    (server.work / "talk.py").write_text(TALK.format(rate=rate, seconds=seconds))
    size = ("--nodes", "2", "--processes-per-node", "4", "--launcher", "python")
    return server.hpj("submit", "talk.py", *size, "--name", "talk")


def open_run(page: Page, run_id: str) -> None:
    """Open a run's page beside what is open."""
    execute(page, "hyperpod:open-run", {"runId": run_id})
    page.wait_for_selector(f"{RUN_PAGE} .jp-HyperPod-LogRow")


def of_log(page: Page, what: str) -> int:
    """`received`, `held` or `drawn` rows of the run page's log."""
    return int(page.evaluate(OF_LOG, what))


def row(what: str, value: Any, beside: Any = "") -> dict[str, Any]:
    """A row of a report."""
    return {"what": what, "value": value, "beside": beside}
