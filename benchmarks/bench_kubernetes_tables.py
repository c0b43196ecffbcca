"""Tables of 2,000 nodes and 5,000 pods of a real Kubernetes (kwok): first page, the next look, stalls of the event loop; and the official client's lists.

The server looks for the first time in each round anew. A delta is a pod made or removed: the next look must show it.

python benchmarks/bench_kubernetes_tables.py [--json] [--quick]; with KUBERNETES_TESTBED=DIR on a cluster of the testbed's that is filled already
"""

from __future__ import annotations

import json
import os
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

from tests.kubernetes.cluster import TESTBED, KubernetesTestbed, running  # noqa: E402

NODES, PODS = 2_000, 5_000
FRESH_S = 1.2
"""Seconds after which the server looks anew."""
IDLE_S = 5.0
CONFIG = """default_cluster = "k8s"
[storage]
path = "{partition}"
[clusters.k8s]
orchestrator = "kubernetes"
namespace = "default"
image = "none"
"""
PEER = """
import sys, time
from kubernetes import client, config
config.load_kube_config()
api = client.CoreV1Api()
begin = time.perf_counter()
nodes = api.list_node().items
pods = api.list_pod_for_all_namespaces(field_selector="status.phase!=Succeeded,status.phase!=Failed").items
print(len(nodes), len(pods), (time.perf_counter() - begin) * 1000)
for line in open("/proc/self/status"):
    if line.startswith("VmRSS"):
        print(int(line.split()[1]) / 1024)
"""
"""The same lists as the tables stand on, by the official client."""


@contextmanager
def filled() -> Iterator[KubernetesTestbed]:
    """A cluster with so many nodes and pods."""
    there = os.environ.get("KUBERNETES_TESTBED")
    if there:
        folder = Path(there)
        yield KubernetesTestbed(folder / "kubeconfig", "none", ("node1",), None, folder)
        return
    with running("--kwok", str(NODES), nodes=1, parts=("kwok",)) as cluster:
        fake = [sys.executable, TESTBED / "kubernetes" / "fake.py", cluster.kubeconfig]
        subprocess.run([*fake, "pods", str(PODS)], check=True)
        yield cluster


@contextmanager
def server_of(cluster: KubernetesTestbed) -> Iterator[tuple[str, int, Path]]:
    """A new server; its address, process, and the file of its stalls."""
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
        home = Path(name)
        (home / "partition").mkdir()
        config = home / "config.toml"
        config.write_text(CONFIG.format(partition=home / "partition"))
        (home / "bench_ticker.py").write_text(TICKER % STALL_MS)
        stalls = home / "stalls"
        stalls.touch()
        more = {"PYTHONPATH": str(home), "STALLS": str(stalls), "HYPERPOD_CONFIG": str(config)}
        with server(home, places(home) | cluster.environment | more, "bench_ticker") as found:
            address, pid = found
            ask(address, "clusters/local/jobs")
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


def change(cluster: KubernetesTestbed, number: int) -> str:
    """Make a pod on a node; its name."""
    name = f"delta-{number}-{os.getpid()}"
    container = {"name": "main", "image": "localhost/fake:1"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": "fake-1", "containers": [container]},
    }
    cluster.create(pod)
    return name


def look(cluster: KubernetesTestbed, number: int) -> dict[str, float]:
    """One server's first look, later ones, and its stalls."""
    with server_of(cluster) as (address, pid, stalls):
        time.sleep(1)
        begin = len(stalls.read_text())
        time.sleep(IDLE_S)
        idle, _ = stalled(stalls, begin)
        before, begin = memory(pid, "VmRSS"), len(stalls.read_text())
        first, page = ask(address, "clusters/k8s/nodes")
        assert page["total"] >= NODES, page["total"]
        following = ask(address, "clusters/k8s/nodes", cursor=page["next"])[0]
        name = change(cluster, number)
        time.sleep(FRESH_S)
        delta, page = ask(address, "clusters/k8s/nodes", filter=name)
        assert [row["name"] for row in page["nodes"]] == ["fake-1"], page
        cluster.kubectl("delete", "pod", name, "--now", "--wait=false")
        jobs = ask(address, "clusters/k8s/jobs")[0]
        line = ask(address, "clusters")[0]
        time.sleep(max(0.0, IDLE_S - FRESH_S))
        count, longest = stalled(stalls, begin)
        return {
            "nodes: first page, the first look, ms": first,
            "nodes: next page, ms": following,
            "nodes: a delta, the next look, ms": delta,
            "jobs: first page, ms": jobs,
            "the clusters' line, ms": line,
            f"stalls over {STALL_MS} ms, idle": idle,
            f"stalls over {STALL_MS} ms, looking": count,
            "longest stall, looking, ms": longest,
            "memory more than before, MB": memory(pid, "VmRSS") - before,
        }


def peer(cluster: KubernetesTestbed) -> dict[str, float]:
    """The official client."""
    done = subprocess.run(
        [sys.executable, "-c", PEER],
        env={**os.environ, **cluster.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    counts, held = done.stdout.splitlines()
    nodes, pods, took = counts.split()
    assert int(nodes) >= NODES, nodes
    assert int(pods) >= PODS, pods
    return {
        "kubernetes client: both lists, ms": float(took),
        "kubernetes client: memory of its process, MB": float(held),
    }


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with filled() as cluster:
        found = [look(cluster, number) | peer(cluster) for number in range(rounds)]
    rows = [{"what": name, "value": round(median(one[name] for one in found), 1)} for name in found[0]]
    report(options, f"{NODES:,} nodes and {PODS:,} pods of a Kubernetes, median of {rounds}", rows)


if __name__ == "__main__":
    main()
