"""A queue of 10,000 jobs and 2,000 nodes of a real Slurm: tables by REST, the server's memory, how long its event loop is held, the page.

A look anew runs squeue, whose own time is in it; it is measured beside, as is `squeue --json`, which other panels use.

python benchmarks/bench_slurm_queue.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench_log_socket import TOKEN, server
from log_fixtures import ROUNDS, arguments, median, report
from page_fixtures import VIEWPORT, browser_of, execute, keep_front_end, row, scratch
from slurm_fixtures import CLUSTER, QUIETER, LabServer, SlurmTestbed, config_for, fill, printed, running, user_of

from hyperpod_jlab.engines.slurm.jobs import FIELDS
from hyperpod_jlab.engines.slurm.rows import long_format
from hyperpod_jlab.engines.slurm.tables import NODES_TTL_S

JOBS, CLOUD, NODES = 10_000, 2_000, 2_004
STALL_MS = 50
TICKER = """\
import asyncio, os, time

async def tick():
    while True:
        begin = time.perf_counter()
        await asyncio.sleep(0.01)
        late = (time.perf_counter() - begin) * 1000 - 10
        if late > %d:
            with open(os.environ["STALLS"], "a") as file:
                file.write(f"{late}\\n")

def _load_jupyter_server_extension(app):
    app.io_loop.add_callback(tick)

def _jupyter_server_extension_points():
    return [{"module": "bench_ticker"}]
"""
"""Notes when the server's event loop was held."""

RAW = {
    "squeue, the same fields": (
        "squeue",
        "--noheader",
        "--all",
        "--states=all",
        f"--Format={long_format('@@', FIELDS)}",
    ),
    "squeue": ("squeue",),
    "squeue --json": ("squeue", "--json"),
    "scontrol -o show nodes": ("scontrol", "-o", "show", "nodes"),
}

PAGE = ".jp-HyperPod-ClusterPage"
PAINTED = f"""() => {{
  const rows = document.querySelectorAll('{PAGE} tbody tr').length;
  return rows > 0 ? rows : null;
}}"""


class Asker:
    """Asks a server for tables.

    Args:
        address: The API's.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str) -> tuple[float, dict[str, Any]]:
        """How long an answer took (ms), and the answer."""
        request = urllib.request.Request(f"http://{self._address}/{path}", headers={"Authorization": f"token {TOKEN}"})
        begin = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
        return (time.perf_counter() - begin) * 1000, json.loads(body)

    def table(self, name: str, **query: Any) -> tuple[float, dict[str, Any]]:
        """The same of a table of the cluster."""
        return self.ask(f"clusters/{CLUSTER}/{name}?{urllib.parse.urlencode(query)}")


def took(call: Callable[[], object]) -> float:
    """A call's time, in ms."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


def memory(pid: int, key: str) -> float:
    """`VmRSS` (now) or `VmHWM` (at its highest) of a process, in MB."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{key}:")[1].split()[0]) / 1024


@contextmanager
def server_of(cluster: SlurmTestbed) -> Iterator[tuple[Asker, int, Path]]:
    """A new server whose user looks at the cluster for the first time; its process, and the file of its stalls."""
    with user_of(cluster) as (home, environment):
        (home / "bench_ticker.py").write_text(TICKER % STALL_MS)
        stalls = home / "stalls"
        stalls.touch()
        more = {"PYTHONPATH": str(home), "STALLS": str(stalls)}
        with server(home, environment | more, "bench_ticker") as (address, pid):
            asker = Asker(address)
            asker.ask("clusters/local/jobs")
            yield asker, pid, stalls


def stalled(stalls: Path, begin: int) -> tuple[int, float]:
    """How many stalls there were since the file was so long, and the longest (ms)."""
    found = [float(line) for line in stalls.read_text()[begin:].split()]
    return len(found), max(found, default=0.0)


def looks(asker: Asker, rounds: int) -> dict[str, list[float]]:
    """What each way of asking for a table took, in ms."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        time.sleep(NODES_TTL_S + 0.3)  # each round queries the cluster again
        for table, count in (("jobs", JOBS), ("nodes", NODES)):
            first, page = asker.table(table)
            assert page["total"] >= count, page["total"]
            found = {
                "first page, a look anew": first,
                "next page": asker.table(table, cursor=page["next"])[0],
                "first page again": asker.table(table)[0],
                "filtered and sorted": asker.table(table, filter=7, sort="-name")[0],
            }
            for what, value in found.items():
                times.setdefault(f"{count:,} {table}: {what}, ms", []).append(value)
    return times


def by_rest(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """Times, memory and stalls."""
    cold = []
    for _ in range(rounds):
        with server_of(cluster) as (asker, _, _):
            cold.append(asker.table("jobs")[0])
    with server_of(cluster) as (asker, pid, stalls):
        before, begin = memory(pid, "VmRSS"), time.monotonic()
        found = looks(asker, rounds)
        lasted, busy = time.monotonic() - begin, stalled(stalls, 0)
        after, highest = memory(pid, "VmRSS"), memory(pid, "VmHWM")
        begin_idle = stalls.stat().st_size
        time.sleep(lasted)
        idle = stalled(stalls, begin_idle)
    rows = [row(f"{JOBS:,} jobs: a new server's first page, ms", round(median(cold)))]
    rows += [row(what, round(median(times))) for what, times in found.items()]
    rows += [
        row("server's MB before", round(before)),
        row("after, at the highest", f"+{after - before:.0f}, +{highest - before:.0f}"),
        row(f"stalls over {STALL_MS} ms in {lasted:.0f} s", busy[0], f"idle: {idle[0]}"),
        row("longest stall, ms", round(busy[1]), f"idle: {idle[1]:.0f}"),
    ]
    return rows


def by_command(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """Slurm's own commands, and ours."""
    times: dict[str, list[float]] = {}
    hpj = [sys.executable, "-m", "hyperpod_jlab.cli.main", "jobs", "--cluster", CLUSTER]
    for _ in range(rounds):
        with user_of(cluster) as (home, environment):
            commands = {**RAW, "hpj jobs": hpj, "hpj jobs, again": hpj}
            for name, command in commands.items():
                spent = took(lambda words=command: printed(words, environment, home))
                times.setdefault(name, []).append(spent)
    return [row(f"{name}, ms", round(median(found))) for name, found in times.items()]


class SlurmLab(LabServer):
    """JupyterLab of a user on whose machine Slurm's commands are."""

    def start(self) -> None:
        """Start it, with the front end that is measured."""
        if not (self.home / "extensions").exists():
            keep_front_end(self)
        super().start()


def in_the_page(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """From the command that opens the cluster's page to its rows, and how many the document has."""
    times, counts = [], []
    with scratch() as folder, browser_of() as browser:
        lab = SlurmLab(folder / "home", config=config_for(cluster))
        try:
            lab.start()
            for _ in range(rounds):
                page = browser.new_context(viewport=VIEWPORT).new_page()
                page.goto(f"{lab.page_url}&reset")
                page.wait_for_selector("#jupyterlab-splash", state="detached")
                page.wait_for_function("window.jupyterapp !== undefined")
                time.sleep(NODES_TTL_S)
                begin = time.perf_counter()
                execute(page, "hyperpod:open-cluster", {"cluster": CLUSTER})
                page.locator(PAGE).get_by_role("tab", name="Jobs").click()
                found = page.wait_for_function(PAINTED, timeout=60_000, polling=10)
                times.append((time.perf_counter() - begin) * 1000)
                counts.append(int(found.json_value()))
                page.context.close()
        finally:
            lab.stop()
    return [
        row("page: from opening it to its rows, ms", round(median(times))),
        row("rows in the page's document", max(counts)),
    ]


def measure(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """All figures of a cluster whose queue is long."""
    return [*by_command(cluster, rounds), *by_rest(cluster, rounds), *in_the_page(cluster, rounds)]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with running("--cloud", str(CLOUD), "--option", f"MaxJobCount={2 * JOBS}", *QUIETER) as cluster:
        fill(cluster, JOBS)
        rows = measure(cluster, rounds)
    report(options, f"A long queue of a real Slurm, median of {rounds}", rows)


if __name__ == "__main__":
    main()
