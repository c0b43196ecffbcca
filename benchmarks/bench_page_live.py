"""A live log in the page: long tasks, rows in the document, and typing in a notebook beside it, next to a page without one.

python benchmarks/bench_page_live.py [--json] [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from log_fixtures import arguments, percentile, report
from page_fixtures import lab_page, of_log, open_run, row, talk
from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from lab_page import execute, open_lab
from notebooks import code_cell, write_notebook

RATE = 1000
WATCH_S = 15
KEYS = 120
EDITOR = ".jp-Notebook .jp-CodeCell .cm-content"

WATCH = """() => {
  window.longTasks = [];
  new PerformanceObserver(list => list.getEntries().forEach(entry => window.longTasks.push(entry.duration)))
    .observe({ entryTypes: ['longtask'] });
  window.keys = [];
  document.addEventListener('keydown', event => {
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.keys.push(performance.now() - event.timeStamp);
      port2.postMessage(0);
    });
  }, true);
}"""


def long_tasks(page: Page, seconds: float) -> list[float]:
    """How long each task over 50 ms took, in ms."""
    page.evaluate("() => { window.longTasks = []; }")
    page.wait_for_timeout(seconds * 1000)
    return list(page.evaluate("window.longTasks"))


def typing(page: Page) -> list[float]:
    """From each keystroke to the frame that shows it, in ms."""
    page.locator(EDITOR).first.click()
    page.evaluate("() => { window.keys = []; }")
    for number in range(KEYS):
        page.keyboard.press("Enter" if number % 30 == 29 else "abcdefghij"[number % 10])
        page.wait_for_timeout(40)
    return list(page.evaluate("window.keys"))


def told(tasks: list[float]) -> str:
    """Long tasks in a word."""
    return f"{sum(task > 100 for task in tasks)} (over 50 ms: {len(tasks)}, longest {max(tasks, default=0):.0f} ms)"


def measure(seconds: float) -> list[dict[str, Any]]:
    """All figures: the idle page first, then the same page beside a live log."""
    with lab_page() as (page, server):
        name = write_notebook(server.work, "typed.ipynb", [code_cell("")])
        open_lab(page, server)
        execute(page, "docmanager:open", {"path": name}, keep=False)
        page.wait_for_selector(EDITOR)
        page.wait_for_timeout(5000)
        page.evaluate(WATCH)
        idle, plain = long_tasks(page, seconds), typing(page)
        run_id = talk(server, RATE, 3 * seconds + 60)
        open_run(page, run_id)
        page.evaluate(
            """() => {
              const { shell } = window.jupyterapp;
              shell.add(shell.currentWidget, 'main', { mode: 'split-right' });
            }"""
        )
        page.wait_for_timeout(3000)
        before = of_log(page, "received")
        live = long_tasks(page, seconds)
        rate = (of_log(page, "received") - before) / seconds
        beside = typing(page)
        drawn, held = of_log(page, "drawn"), of_log(page, "held")
    rows = [row("lines/s taken in", round(rate))]
    rows.append(row(f"long tasks > 100 ms in {seconds:.0f} s", told(live), told(idle)))
    for share in (0.5, 0.95):
        times = [round(percentile(found, share)) for found in (beside, plain)]
        rows.append(row(f"keystroke to paint, p{share * 100:.0f} ms", *times))
    return [*rows, row("rows in the document", drawn), row("rows held", held)]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rows = measure(5 if options.quick else WATCH_S)
    report(options, f"A live log of {RATE} lines/s in the page; beside: the idle page", rows)


if __name__ == "__main__":
    main()
