"""The page's memory while it takes in a log of ten million lines.

python benchmarks/bench_page_memory.py [--json] [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from log_fixtures import arguments, report
from page_fixtures import lab_page, of_log, open_run, row
from playwright.sync_api import CDPSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ui-tests"))

from lab_page import open_lab

LINES = 10_000_000
TIMEOUT_S = 240


def heap(devtools: CDPSession) -> float:
    """The page's JavaScript heap in MB, rubbish taken out."""
    devtools.send("HeapProfiler.collectGarbage")
    return float(devtools.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def measure(lines: int) -> list[dict[str, Any]]:
    """The heap each tenth of the way, and at the end."""
    with lab_page() as (page, server):
        open_lab(page, server)
        command = f"echo begin; sleep 8; seq -f 'step %.0f loss=0.123456 lr=3.0e-04' {lines}"
        run_id = server.hpj("submit", "-c", command, "--name", "long")
        open_run(page, run_id)
        devtools = page.context.new_cdp_session(page)
        first = heap(devtools)
        rows, begin, most = [row("heap before, MB", round(first, 1))], time.monotonic(), 0
        for share in range(1, 11):
            while of_log(page, "received") < lines * share // 10:
                if time.monotonic() - begin > TIMEOUT_S:
                    break
                page.wait_for_timeout(200)
                most = max(most, of_log(page, "drawn"))
            received = of_log(page, "received")
            rows.append(row(f"heap after {received / 1e6:.1f} M lines, MB", round(heap(devtools), 1)))
        took = time.monotonic() - begin
        rows.append(row("lines/s shown", round(received / took)))
        rows.append(row("rows in the document, at most", most))
        rows.append(row("rows held", of_log(page, "held")))
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rows = measure(LINES // 10 if options.quick else LINES)
    report(options, "A log taken in by the page", rows)


if __name__ == "__main__":
    main()
