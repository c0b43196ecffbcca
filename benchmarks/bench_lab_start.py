"""JupyterLab's start in the browser, from the request to the shell, with the panel open and without the extension.

python benchmarks/bench_lab_start.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, arguments, median, report
from page_fixtures import browser_of, running, scratch
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from conftest import VIEWPORT
from lab_page import execute, open_lab
from lab_server import LabServer

#: Notes when Lab is ready (shell there, splash gone), and when the panel shows something.
NOTE = """
const seen = {};
const look = () => {
  const note = name => { seen[name] = seen[name] ?? performance.now(); };
  if (document.querySelector('#main .jp-FileBrowser, #hyperpod-panel') &&
      !document.getElementById('jupyterlab-splash')) note('ready');
  if (document.querySelector('#hyperpod-panel')?.offsetHeight > 0 &&
      document.querySelector('#hyperpod-panel .jp-HyperPod-Section')) note('panel');
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
window.seen = seen;
"""


def disable(server: LabServer) -> None:
    """Switch the extension off as an administrator does."""
    path = server.home / ".jupyter/labconfig/page_config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"disabledExtensions": {"hyperpod_jlab": True}}))


def start(
    browser: Browser, server: LabServer, wanted: str, workspace: str = ""
) -> dict[str, float]:
    """One start in a browser that has nothing of it yet; ms since the request."""
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.add_init_script(NOTE)
    page.goto(server.page_url.replace("/lab?", f"/lab{workspace}?"))
    page.wait_for_function(f"window.seen?.ready && window.seen?.{wanted}", timeout=60_000)
    found: dict[str, float] = page.evaluate("window.seen")
    context.close()
    return found


def measure(rounds: int) -> list[dict[str, Any]]:
    """Medians, the two in turn."""
    with scratch() as folder, browser_of() as browser:
        plain_server = LabServer(folder / "plain")
        disable(plain_server)
        with running(LabServer(folder / "ours")) as ours:
            try:
                plain_server.start()
                page = browser.new_context(viewport=VIEWPORT).new_page()
                open_lab(page, ours)
                execute(page, "hyperpod:show-panel", keep=False)
                page.wait_for_timeout(2500)  # the layout is saved a moment later
                page.context.close()
                start(browser, plain_server, "ready")
                rounds_of = [
                    (
                        start(browser, ours, "panel"),
                        start(browser, plain_server, "ready"),
                        start(browser, ours, "ready", "/workspaces/closed"),
                    )
                    for _ in range(rounds)
                ]
            finally:
                plain_server.stop()
    ours_open, plain, closed = zip(*rounds_of, strict=True)
    rows = []
    for name, found, key in (
        ("ready without the extension", plain, "ready"),
        ("ready, panel closed", closed, "ready"),
        ("ready, panel open", ours_open, "ready"),
        ("the panel is painted", ours_open, "panel"),
    ):
        times = [one[key] for one in found]
        later = median(times) - median(one["ready"] for one in plain)
        later_best = min(times) - min(one["ready"] for one in plain)
        rows.append(
            {"what": f"{name}, ms", "median": round(median(times)), "later": f"{later:+.0f}"}
            | {"best": round(min(times)), "best's later": f"{later_best:+.0f}"}
        )
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    title = f"JupyterLab's start, median of {rounds}; and the best of them (the least disturbed); how much later"
    report(options, title, measure(rounds))


if __name__ == "__main__":
    main()
