"""Follow streams of pods' logs: from a line's write to the follower at 1, 32 and 256 pods of which one prints, and what opening 500 takes.

A stand-in API server in a process of its own, over TLS, so that the client alone is measured: the real one's part is in `bench_kubernetes_log.py`. Beside the
official Python client (a thread a pod).

python benchmarks/bench_kubernetes_streams.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from kubernetes_fixtures import EACH, NAMESPACE, stand_in
from log_fixtures import ROUNDS, arguments, median, percentile, report

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_log import PodLog, PodLogLine

LINES = 200
MANY = 500
PODS = (1, 32, 256)
BY_CLIENT = """
import sys, threading, time
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
core.api_client.configuration.connection_pool_maxsize = 1000
core = client.CoreV1Api(client.ApiClient(core.api_client.configuration))
count, wanted = int(sys.argv[2]), int(sys.argv[3])
opened = threading.Semaphore(0)
found = []
done = threading.Event()
def follow(number):
    answer = core.read_namespaced_pod_log(f"p-{number}", "bench", follow=True, _preload_content=False)
    first = True
    rest = b""
    while chunk := answer.read1(65536):
        now = time.time_ns()
        *lines, rest = (rest + chunk).split(b"\\n")
        if first:
            opened.release()
            first = False
            lines = lines[1:]
        if number == 0:
            found.extend((now - int(line)) / 1e6 for line in lines)
            if len(found) >= wanted:
                done.set()
begin = time.monotonic()
for number in range(count):
    threading.Thread(target=follow, args=(number,), daemon=True).start()
for _ in range(count):
    opened.acquire()
took = time.monotonic() - begin
if wanted:
    done.wait()
rss = [line for line in open("/proc/self/status") if line.startswith("VmRSS")][0].split()[1]
print(took, int(rss) / 1024, *found)
import os
sys.stdout.flush()
os._exit(0)
"""


def memory() -> float:
    """This process' resident memory in MB."""
    gc.collect()
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


class Streams:
    """Followers of many pods."""

    def __init__(self, client: KubeClient, count: int) -> None:
        self.late: list[float] = []
        self.enough = asyncio.Event()
        self._client, self._count = client, count
        self._open = 0
        self._all = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> float:
        """Follow all; seconds until each has given its first line."""
        begin = time.monotonic()
        self._tasks = [asyncio.create_task(self._follow(one)) for one in range(self._count)]
        await self._all.wait()
        return time.monotonic() - begin

    async def _follow(self, number: int) -> None:
        first = True
        log = PodLog(self._client, NAMESPACE, f"p-{number}", "c")
        async for portion in log.follow():
            now = time.time_ns()
            entries = [item for item in portion.items if isinstance(item, PodLogLine)]
            if entries and first:
                first = False
                self._open += 1
                if self._open == self._count:
                    self._all.set()
            elif number == 0:
                self.late += [(now - int(entry.data)) / 1e6 for entry in entries]
                if len(self.late) >= LINES:
                    self.enough.set()

    async def close(self) -> None:
        """End all."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def stalls(seconds: float) -> float:
    """The longest time (ms) for which the event loop did nothing else."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        await asyncio.sleep(0.005)
        longest = max(longest, time.monotonic() - begin - 0.005)
    return longest * 1000


async def ours(count: int, lines: bool) -> tuple[float, float, list[float], float]:
    """Seconds to open, MB more, latencies in ms, the longest stall in ms while lines come."""
    client = KubeClient(load_access(KubernetesCluster(orchestrator="kubernetes")))
    await client.get(f"/api/v1/namespaces/{NAMESPACE}/pods/p-1")  # imports, certificates
    before = memory()
    streams = Streams(client, count)
    took = await streams.open()
    more = memory() - before
    stall = 0.0
    if lines:
        streams.late.clear()
        stall = await stalls(LINES * EACH / 2)
        await streams.enough.wait()
    await streams.close()
    await client.close()
    return took, more, streams.late, stall


def by_client(kubeconfig: Path, count: int, lines: int) -> tuple[float, float, list[float]]:
    """The same by the official client; its memory is the whole process'."""
    words = [sys.executable, "-c", BY_CLIENT, str(kubeconfig), str(count), str(lines)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    took, rss, *late = map(float, done.stdout.split())
    return took, rss, late


def in_own_process(count: int, lines: bool) -> tuple[float, float, list[float], float]:
    """`ours` in a new process, so that the memory of one measurement is not another's."""
    words = [sys.executable, __file__, "--one", str(count), str(int(lines))]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=300)
    took, more, stall, *late = map(float, done.stdout.split())
    return took, more, late, stall


def rows_of(what: str, found: list[list[float]]) -> list[dict[str, Any]]:
    """Two rows: the medians of all rounds' p50 and p99."""
    return [
        {
            "what": f"{what}, p{share * 100:.0f} ms",
            "value": round(median(percentile(one, share) for one in found), 2),
        }
        for share in (0.5, 0.99)
    ]


def measure(rounds: int) -> list[dict[str, Any]]:
    """Medians of all rounds."""
    rows: list[dict[str, Any]] = []
    with stand_in(1) as kubeconfig:
        os.environ["KUBECONFIG"] = str(kubeconfig)
        for count in PODS:
            found = [in_own_process(count, lines=True) for _ in range(rounds)]
            rows += rows_of(f"{count} pods", [one[2] for one in found])
            stall = median(one[3] for one in found)
            rows.append({"what": f"{count} pods, longest stall ms", "value": round(stall, 1)})
            peers = [by_client(kubeconfig, count, LINES)[2] for _ in range(rounds)]
            rows += rows_of(f"{count} pods, kubernetes client", peers)
        opened = [in_own_process(MANY, lines=False) for _ in range(rounds)]
        peers_opened = [by_client(kubeconfig, MANY, 0) for _ in range(rounds)]
    for name, number in (("s", 0), ("MB more", 1)):
        value = median(one[number] for one in opened)
        rows.append({"what": f"{MANY} streams opened, {name}", "value": round(value, 2)})
    took = median(one[0] for one in peers_opened)
    rss = median(one[1] for one in peers_opened)
    rows.append({"what": f"{MANY} by kubernetes client, s", "value": round(took, 2)})
    rows.append({"what": f"{MANY} by kubernetes client, MB in all", "value": round(rss, 1)})
    return rows


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--one"]:
        took, more, late, stall = asyncio.run(ours(int(sys.argv[2]), lines=sys.argv[3] == "1"))
        print(took, more, stall, *late)
        return
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    report(options, f"Follow streams of pods' logs, median of {rounds}", measure(rounds))


if __name__ == "__main__":
    main()
