"""Calls of Slurm's commands while nobody does anything: our panel with a followed log in every tab, jupyterlab-slurm's table beside it.

Each has a cluster, a JupyterLab and a browser of its own at the same time, once with one tab and once with five; one job runs, one waits. Every call of a
Slurm command through the clusters' wrappers is counted: in the first ten minutes after the tabs were opened, and in ten minutes after those.

python benchmarks/bench_slurm_load.py [--json] [--quick]
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from log_fixtures import arguments, report
from page_fixtures import VIEWPORT, browser_of, execute, keep_front_end, open_run, scratch
from playwright.sync_api import Browser, Page
from slurm_fixtures import CLUSTER, LabServer, SlurmTestbed, config_for, lab_of, peers_python, running, version_of

MINUTES = 10
"""Of each count."""
TABS = (1, 5)
PEER = "jupyterlab-slurm"
TALK = "while :; do date; sleep 1; done"
WAITS = ("sbatch", "--nodes=4", "--exclusive", "--chdir=/tmp", "--output=/dev/null", "--wrap=true")


class OtherLab(LabServer):
    """A JupyterLab without our extension."""

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/api", timeout=5).close()
        except OSError:
            return False
        return True


@contextmanager
def lab(cluster: SlurmTestbed, python: str | None = None) -> Iterator[LabServer]:
    """A JupyterLab of a user of the cluster: of this environment with our front end, or of another one."""
    with lab_of(python), scratch() as folder:
        kind = LabServer if python is None else OtherLab
        server = kind(folder / "home", config=config_for(cluster))
        there = f"{cluster.folder / 'bin'}:{server.environment['PATH']}"
        server.environment |= cluster.environment | {"PATH": there}
        if python is None:
            keep_front_end(server)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def open_tab(browser: Browser, server: LabServer) -> Page:
    """JupyterLab in a window of its own, which is shown."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{server.page_url}&reset")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_function("window.jupyterapp !== undefined")
    return page


def ours(stack: ExitStack, browser: Browser, cluster: SlurmTestbed, tabs: int) -> None:
    """The panel and a run's page in each tab."""
    server = stack.enter_context(lab(cluster))
    run = server.hpj("submit", "--cluster", CLUSTER, "-c", TALK)
    cluster.exec("ctl", *WAITS)
    for _ in range(tabs):
        page = open_tab(browser, server)
        page.wait_for_function("window.jupyterapp.commands.hasCommand('hyperpod:open-run')")
        page.evaluate("window.jupyterapp.shell.activateById('hyperpod-panel')")
        open_run(page, run)


def theirs(stack: ExitStack, browser: Browser, cluster: SlurmTestbed, tabs: int) -> None:
    """jupyterlab-slurm's table in each tab, with its own defaults."""
    python = peers_python(PEER, "jupyterlab", PEER)
    server = stack.enter_context(lab(cluster, python))
    cluster.exec("ctl", "sbatch", "--chdir=/tmp", "--output=/dev/null", f"--wrap={TALK}")
    cluster.exec("ctl", *WAITS)
    for _ in range(tabs):
        page = open_tab(browser, server)
        page.wait_for_function(f"window.jupyterapp.commands.hasCommand('{PEER}:open')")
        execute(page, f"{PEER}:open", keep=False)
        page.wait_for_selector(".ag-row, table tbody tr")


def counted(cluster: SlurmTestbed, begin: float, minutes: float) -> str:
    """Calls a minute since then, and of which commands."""
    calls = [call.name for call in cluster.calls() if begin <= call.at < begin + 60 * minutes]
    names = ", ".join(f"{calls.count(name)} {name}" for name in sorted(set(calls)))
    return f"{len(calls) / minutes:.1f}" + (f" ({names})" if names else "")


def measure(minutes: float) -> list[dict[str, Any]]:
    """All counts, made at the same time."""
    ways: dict[str, Callable[[ExitStack, Browser, SlurmTestbed, int], None]] = {
        "ours": ours,
        f"{PEER} {version_of(peers_python(PEER, 'jupyterlab', PEER), 'jupyterlab_slurm')}": theirs,
    }
    began: dict[tuple[str, int], tuple[SlurmTestbed, float]] = {}
    with ExitStack() as stack:
        browser = stack.enter_context(browser_of())
        for name, way in ways.items():
            for tabs in TABS:
                cluster = stack.enter_context(running())
                way(stack, browser, cluster, tabs)
                began[name, tabs] = (cluster, time.time())
        time.sleep(2 * 60 * minutes)
        return [
            {
                "what": f"{name}, {tabs} tabs",
                f"calls/min, first {minutes:g} min": counted(cluster, begin, minutes),
                f"next {minutes:g} min": counted(cluster, begin + 60 * minutes, minutes),
            }
            for (name, tabs), (cluster, begin) in began.items()
        ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    report(options, "Scheduler calls of an idle panel", measure(1 if options.quick else MINUTES))


if __name__ == "__main__":
    main()
