"""HyperPod clusters of an AWS account by REST and on the command line: 100 clusters, and one with a group of 6,758 nodes.

AWS is the testbed's on loopback, in a process of its own, which takes 0.1 s for each call; plain boto3 makes the same calls beside it.

python benchmarks/bench_hyperpod.py [--json] [--quick]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from bench_log_socket import TOKEN, places, server  # noqa: E402
from bench_slurm_queue import STALL_MS, TICKER, memory, stalled  # noqa: E402
from log_fixtures import ROUNDS, arguments, median, report  # noqa: E402
from slurm_fixtures import peers_python, version_of  # noqa: E402

CLUSTERS, NODES = 100, 6_758
LATENCY_S = 0.1
REGION = "us-west-2"
IDLE_S = 5.0
LONGEST_S = 120.0
"""Seconds that a listing may take."""
SHOWN_S = 120.0
"""Seconds for which a page is played that asks as the panel does."""

AWS = """
import json, sys, threading
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import client_environment, example_account
from testbed.aws.server import AwsServer
from testbed.aws.state import Account
region, clusters, nodes, latency = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
account = Account()
account.add_caller("AKIATESTBEDEXAMPLE01")
for number in range(clusters - 1):
    account.add_cluster(f"c-{number:03d}", region, orchestrator={"Slurm": {}}).add_group("workers", "ml.p5.48xlarge", 4)
account.add_cluster("largest", region, orchestrator={"Slurm": {}}).add_group("workers", "ml.p5.48xlarge", nodes)
endpoint = Endpoint(account)
for action in ("ListClusters", "DescribeCluster", "ListClusterNodes", "ListTags"):
    endpoint.faults.slow[f"sagemaker:{action}"] = latency
with AwsServer(endpoint) as server:
    print(json.dumps(client_environment(server.url, region)), flush=True)
    for _ in sys.stdin:
        print(len(endpoint.calls), flush=True)
"""
"""The account; a line in is answered by the number of calls so far."""

PEER = """
import os, sys, time
begin = time.perf_counter()
import boto3
client = boto3.client("sagemaker", region_name=os.environ["AWS_REGION"])
if sys.argv[1] == "list":
    found = [one["ClusterName"] for page in client.get_paginator("list_clusters").paginate(PaginationConfig={"PageSize": 100})
             for one in page["ClusterSummaries"]]
    print(len(found), time.perf_counter() - begin)
    for name in found:
        client.describe_cluster(ClusterName=name)
else:
    pages = client.get_paginator("list_cluster_nodes").paginate(ClusterName="largest", PaginationConfig={"PageSize": 100})
    print(sum(len(page["ClusterNodeSummaries"]) for page in pages), time.perf_counter() - begin)
"""
"""The same lists by boto3 alone, one call after the other; then the descriptions."""


class Account:
    """The account's process."""

    def __init__(self) -> None:
        words = [REGION, str(CLUSTERS), str(NODES), str(LATENCY_S)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", AWS, *words], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.environment: dict[str, str] = json.loads(self._line())

    def calls(self) -> int:
        """How many calls there were so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._line())

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@contextmanager
def server_of(account: Account) -> Iterator[tuple[str, int, Path]]:
    """A new server; its address, process, and the file of its stalls."""
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
        home = Path(name)
        (home / "bench_ticker.py").write_text(TICKER % STALL_MS)
        stalls = home / "stalls"
        stalls.touch()
        more = {"PYTHONPATH": str(home), "STALLS": str(stalls)}
        environment = places(home) | account.environment | more
        with server(home, environment, "bench_ticker") as (address, pid):
            ask(address, "clusters/local")  # AWS is not asked for that
            yield address, pid, stalls


def ask(address: str, path: str, **query: Any) -> tuple[float, dict[str, Any]]:
    """How long an answer took (ms), and the answer."""
    request = urllib.request.Request(
        f"http://{address}/{path}?{urllib.parse.urlencode(query)}", headers={"Authorization": f"token {TOKEN}"}
    )
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        body = answer.read()
    return (time.perf_counter() - begin) * 1000, json.loads(body)


def look(address: str, path: str, rows: str, total: int) -> tuple[float, float]:
    """When AWS' first rows were there, and when all were (ms)."""
    begin, first = time.perf_counter(), 0.0
    while time.perf_counter() - begin < LONGEST_S:
        _, page = ask(address, path)
        took = (time.perf_counter() - begin) * 1000
        listed = [row for row in page[rows] if row.get("hyperpod") or row.get("instance")]
        first = first or (took if listed else 0.0)
        if not page["loading"]:
            assert page["problem"] is None, page["problem"]
            assert page["total"] == total, page["total"]
            return first, took
        time.sleep(0.1)
    raise RuntimeError(f"{path}: not all there after {LONGEST_S:.0f} s")


def measure(account: Account) -> dict[str, float]:
    """One server's first looks."""
    with server_of(account) as (address, pid, stalls):
        time.sleep(1)
        begin = len(stalls.read_text())
        time.sleep(IDLE_S)
        idle, _ = stalled(stalls, begin)
        begin = len(stalls.read_text())
        first, all_rows = look(address, "clusters", "clusters", CLUSTERS + 1)  # and local
        before = memory(pid, "VmRSS")
        first_nodes, all_nodes = look(address, "clusters/largest/nodes", "nodes", NODES)
        sorted_page = ask(address, "clusters/largest/nodes", sort="-host", filter="10.0.1")[0]
        time.sleep(1)
        count, longest = stalled(stalls, begin)
        return {
            f"{CLUSTERS} clusters: first rows, ms": first,
            f"{CLUSTERS} clusters: all described, ms": all_rows,
            f"{NODES:,} nodes: first page, ms": first_nodes,
            f"{NODES:,} nodes: all, ms": all_nodes,
            f"{NODES:,} nodes: filtered and sorted, ms": sorted_page,
            f"{NODES:,} nodes: memory, MB": memory(pid, "VmRSS") - before,
            f"stalls over {STALL_MS} ms, idle": idle,
            f"stalls over {STALL_MS} ms, looking": count,
            "longest stall, ms": longest,
        }


def calls_a_minute(account: Account) -> dict[str, float]:
    """AWS calls a minute of a panel that is shown, once all is known, and of one that is hidden."""
    with server_of(account) as (address, _pid, _stalls):
        look(address, "clusters", "clusters", CLUSTERS + 1)  # and local
        begin, before = time.monotonic(), account.calls()
        while time.monotonic() - begin < SHOWN_S:
            time.sleep(5)
            ask(address, "clusters")
        shown, before = account.calls() - before, account.calls()
        time.sleep(60)
        return {"calls a minute, panel shown": shown * 60 / SHOWN_S, "calls a minute, hidden": account.calls() - before}


def command(words: list[str], account: Account, home: Path) -> tuple[float, str]:
    """What a command took (ms), and what it printed."""
    begin = time.perf_counter()
    done = subprocess.run(words, env=places(home) | account.environment, capture_output=True, text=True, check=True)
    return (time.perf_counter() - begin) * 1000, done.stdout


def commands(account: Account, home: Path) -> dict[str, float]:
    """The command line, and boto3 alone."""
    hpj = str(Path(sys.executable).parent / "hpj")
    found = {}
    for what in ("list", "nodes"):
        took, printed = command([sys.executable, "-c", PEER, what], account, home)
        found[f"boto3 alone, {what}: the rows, ms"] = float(printed.split()[1]) * 1000
        found[f"boto3 alone, {what}: whole, ms"] = took
    found["hpj clusters, ms"] = command([hpj, "clusters", "--json"], account, home)[0]
    found["hpj nodes largest, ms"] = command([hpj, "nodes", "largest", "--json"], account, home)[0]
    return found


def peer(account: Account, home: Path) -> tuple[str, float]:
    """Its version, and the start alone of AWS' own `hyp list-cluster`: it asks EKS and sends telemetry, so it is not run."""
    python = peers_python("sagemaker-hyperpod", "sagemaker-hyperpod")
    words = [str(Path(python).parent / "hyp"), "list-cluster", "--help"]
    command(words, account, home)
    return version_of(python, "sagemaker-hyperpod"), command(words, account, home)[0]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    account = Account()
    try:
        with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
            found = [measure(account) | commands(account, Path(name)) for _ in range(rounds)]
            rows = [{"what": what, "value": round(median(one[what] for one in found), 1)} for what in found[0]]
            if not options.quick:
                rows += [{"what": what, "value": round(value, 1)} for what, value in calls_a_minute(account).items()]
                version, took = peer(account, Path(name))
                rows.append({"what": f"hyp {version} list-cluster --help, ms", "value": round(took)})
    finally:
        account.end()
    report(options, f"HyperPod clusters of an account, median of {rounds}", rows)


if __name__ == "__main__":
    main()
