"""Tables of a big cluster by REST: 10,000 jobs and 2,000 nodes; the first page, the next one, and the first one again.

The cluster's answer is a fixture: it is what the server adds that is measured.

python benchmarks/bench_tables.py [--json] [--quick]
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_log_socket import TOKEN, places
from log_fixtures import ROUNDS, SMALL, arguments, median, report

JOBS, NODES = (1_000, 300) if SMALL else (10_000, 2_000)
FRESH_S = 1.1
SERVER = """
import sys
from hyperpod_jlab.core.cluster import Job, Node
from hyperpod_jlab.engines.local.observe import LocalTables
from hyperpod_jlab.run.services import Hyperpod
from jupyter_server.serverapp import ServerApp

async def jobs(self, cluster=None):
    return [Job(str(n), f"train-{n %% 97}", f"user{n %% 31}", ("running", "waiting")[n %% 2], queue="gpu",
                nodes=(f"node-{n %% 2000}",), submitted_at=1.7e9 + n) for n in range(%d)]

async def nodes(self):
    return [Node(f"node-{n}", "idle", cpus=96, cpus_free=n %% 96, memory=1 << 40, accelerators=8,
                 accelerator_type="h100", queues=("gpu",), jobs=(str(n), str(n + 2000))) for n in range(%d)]

Hyperpod.jobs, LocalTables.nodes = jobs, nodes
ServerApp.launch_instance(sys.argv[1:])
"""


@contextlib.contextmanager
def server(home: Path) -> Iterator[str]:
    """A Jupyter server whose cluster is big; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--ServerApp.open_browser=False", "--ServerApp.allow_root=True"]
    options += [f"--ServerApp.port={port}", f"--IdentityProvider.token={TOKEN}"]
    options += [f"--ServerApp.root_dir={home}", "--ServerApp.jpserver_extensions={'hyperpod_jlab': True}"]
    command = [sys.executable, "-c", SERVER % (JOBS, NODES), *options]
    with (
        (home / "server.log").open("wb") as log,
        subprocess.Popen(command, env=places(home), cwd=home, stderr=log) as process,
    ):
        address = f"http://127.0.0.1:{port}/hyperpod/api/v1"
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/version?token={TOKEN}", timeout=5).close()
                break
            time.sleep(0.1)
        try:
            yield address
        finally:
            process.terminate()


def ask(address: str, path: str) -> tuple[float, dict[str, Any]]:
    """How long an answer took (ms), and the answer."""
    request = urllib.request.Request(f"{address}/clusters/local/{path}", headers={"Authorization": f"token {TOKEN}"})
    begin = time.perf_counter()
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
    return (time.perf_counter() - begin) * 1000, json.loads(body)


def measure(address: str, rounds: int) -> list[dict[str, Any]]:
    """Medians for both tables."""
    rows = []
    for table, count in (("jobs", JOBS), ("nodes", NODES)):
        times: dict[str, list[float]] = {"first": [], "next": [], "filtered": []}
        for _ in range(rounds):
            time.sleep(FRESH_S)  # each round queries the cluster again
            took, page = ask(address, table)
            assert page["total"] == count, page["total"]
            times["first"].append(took)
            times["next"].append(ask(address, f"{table}?cursor={page['next']}")[0])
            times["filtered"].append(ask(address, f"{table}?filter=7&sort=-name")[0])
        rows += [
            {"what": f"{count:,} {table}: {name} page, ms", "value": round(median(found), 1)}
            for name, found in times.items()
        ]
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with tempfile.TemporaryDirectory() as name, server(Path(name)) as address:
        rows = measure(address, rounds)
    report(options, f"Tables of a big cluster, median of {rounds}", rows)


if __name__ == "__main__":
    main()
