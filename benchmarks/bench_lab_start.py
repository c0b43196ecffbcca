"""JupyterLab's start in the browser, from the request to the visible launcher, with the panel open, closed, and without the extension.

python benchmarks/bench_lab_start.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from log_fixtures import arguments, median, percentile, report
from page_fixtures import browser_of, running, scratch
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from conftest import VIEWPORT
from lab_page import execute, open_lab
from lab_server import LabServer

STARTS = 15
CLOSED = "/workspaces/closed"
"""A workspace in which the panel is closed."""

#: Notes when the launcher is in view and the splash gone, and when the panel shows something.
NOTE = """
const seen = {};
const look = () => {
  const note = name => { seen[name] = seen[name] ?? performance.now(); };
  if (document.querySelector('.jp-Launcher')?.offsetHeight > 0 &&
      !document.getElementById('jupyterlab-splash')) note('launcher');
  if (document.querySelector('#hyperpod-panel')?.offsetHeight > 0 &&
      document.querySelector('#hyperpod-panel section')) note('panel');
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


def start(browser: Browser, server: LabServer, wanted: str, workspace: str = "") -> dict[str, float]:
    """One start in a browser that has nothing of it yet; ms since the request."""
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.add_init_script(NOTE)
    page.goto(server.page_url.replace("/lab?", f"/lab{workspace}?"))
    page.wait_for_function(f"window.seen?.launcher && window.seen?.{wanted}", timeout=60_000)
    found: dict[str, float] = page.evaluate("window.seen")
    context.close()
    return found


def share_of_ours(browser: Browser, server: LabServer, workspace: str = "") -> tuple[float, float]:
    """JavaScript below frames of the extension until the launcher is in view (ms), and its share of all: other work on the machine slows both."""
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.add_init_script(NOTE)
    session = context.new_cdp_session(page)
    for command in ("enable", "start"):
        session.send(f"Profiler.{command}")
    page.goto(server.page_url.replace("/lab?", f"/lab{workspace}?"))
    page.wait_for_function("window.seen?.launcher", timeout=60_000)
    profile = session.send("Profiler.stop")["profile"]
    context.close()
    nodes = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in nodes.values() for child in node.get("children", [])}

    def is_ours(at: int) -> bool:
        while "/hyperpod_jlab/static/" not in nodes[at]["callFrame"]["url"]:
            if at not in parents:
                return False
            at = parents[at]
        return True

    ours = busy = 0.0
    for at, lasted in zip(profile["samples"], profile["timeDeltas"], strict=True):
        if nodes[at]["callFrame"]["functionName"] != "(idle)":
            busy += lasted / 1000
            ours += lasted / 1000 if is_ours(at) else 0
    return ours, ours / busy


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
                start(browser, plain_server, "launcher")
                rounds_of = [
                    (
                        start(browser, ours, "panel"),
                        start(browser, plain_server, "launcher"),
                        start(browser, ours, "launcher", CLOSED),
                    )
                    for _ in range(rounds)
                ]
                shares = [
                    (share_of_ours(browser, ours), share_of_ours(browser, ours, CLOSED))
                    for _ in range(max(1, rounds // 3))
                ]
            finally:
                plain_server.stop()
    ours_open, plain, closed = zip(*rounds_of, strict=True)
    rows = []
    for name, found, key in (
        ("launcher, without the extension", plain, "launcher"),
        ("launcher, panel closed", closed, "launcher"),
        ("launcher, panel open", ours_open, "launcher"),
        ("the panel is painted", ours_open, "panel"),
    ):
        times = [one[key] for one in found]
        later = [ms - one["launcher"] for ms, one in zip(times, plain, strict=True)]
        best = min(times) - min(one["launcher"] for one in plain)
        quarters = " to ".join(f"{percentile(later, share):+.0f}" for share in (0.25, 0.75))
        rows.append(
            {"what": f"{name}, ms", "median": round(median(times))}
            | {"later": f"{median(later):+.0f}", "middle half": quarters}
            | {"best": round(min(times)), "best's later": f"{best:+.0f}"}
        )
    for name, found in zip(("open", "closed"), zip(*shares, strict=True), strict=True):
        ours_ms, share = (median(values) for values in zip(*found, strict=True))
        rows.append(
            {"what": f"JavaScript of the extension until then, panel {name}, ms"}
            | {"median": round(ours_ms), "later": f"{share:.1%} of all"}
        )
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else STARTS
    title = f"JupyterLab's start, median of {rounds} and the best of them; how much later than the start beside it without the extension"
    report(options, title, measure(rounds))


if __name__ == "__main__":
    main()
