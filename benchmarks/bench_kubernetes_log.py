"""From a write in a pod of a real Kubernetes to a client of the log socket: eight pods of which one prints.

Beside them a pod that prints the same is followed by ``kubectl logs -f`` and by the official Python client.

python benchmarks/bench_kubernetes_log.py [--json] [--quick]

HYPERPOD_TEST_KUBECONFIG and HYPERPOD_TEST_PARTITION name a cluster in place of one of its own (docs/testing.md).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import Any

from bench_log_socket import LONGEST, STAMPED, STAMPS, by_service, by_socket, server
from kubernetes_users import user_of
from log_fixtures import ROUNDS, arguments, median, percentile, report

from tests.kubernetes.cluster import KubernetesTestbed, of_the_user, running

HPJ = (sys.executable, "-m", "hyperpod_jlab.cli.main")
PODS = 8
WARM = 10
"""Seconds before the first line, in which all pods start and all who follow come."""
COMMAND = f"sleep {WARM}; if [ $NODE_RANK = 0 ]; then {STAMPED}; else sleep {STAMPS * 0.05 + 2}; fi"

BY_CLIENT = """
import sys, time
from kubernetes import client, config
config.load_kube_config()
core = client.CoreV1Api()
answer = core.read_namespaced_pod_log("peer", sys.argv[1], follow=True, _preload_content=False)
rest, found = b"", []
while chunk := answer.read1(65536):
    now = time.monotonic_ns()
    *lines, rest = (rest + chunk).split(b"\\n")
    found += [(now - int(line)) / 1e6 for line in lines]
print(*found)
"""


async def of_run(cluster: KubernetesTestbed, run: str) -> dict[str, list[float]]:
    """Latencies in ms of a run's lines, by the socket and by the log service."""
    with user_of(cluster) as (home, environment, _):
        os.environ.update(environment)
        words = ["--run-id", run, "--nodes", str(PODS), "--no-project-files", "-c", COMMAND]
        submit = [*HPJ, "submit", *words]
        await asyncio.to_thread(subprocess.run, submit, env=environment, cwd=home, check=True, capture_output=True)
        with server(home, environment) as (address, _):
            async with asyncio.timeout(LONGEST):
                socket, service = await asyncio.gather(by_socket(address, run), by_service(run))
    return {"socket": socket, "service": service}


async def by_kubectl(namespace: str) -> list[float]:
    """The same of the peer's lines by ``kubectl logs -f``."""
    follower = await asyncio.create_subprocess_exec(
        *("kubectl", "logs", "-f", "peer", "-n", namespace), stdout=asyncio.subprocess.PIPE
    )
    found: list[float] = []
    assert follower.stdout is not None
    while line := await follower.stdout.readline():
        found.append((time.monotonic_ns() - int(line)) / 1e6)
    await follower.wait()
    return found


async def by_client(namespace: str) -> list[float]:
    """The same by the official client."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BY_CLIENT, namespace, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return [float(number) for number in out.split()]


async def of_peers(cluster: KubernetesTestbed) -> dict[str, list[float]]:
    """Latencies in ms of a pod's lines by other programs."""
    with user_of(cluster) as (_, environment, namespace):
        os.environ.update(environment)
        command = f"sleep {WARM}; {STAMPED}"
        cluster.kubectl(
            *("run", "peer", f"--image={cluster.image}", "--restart=Never", "--command", "--"),
            *("sh", "-c", command),
            namespace=namespace,
        )
        cluster.kubectl("wait", "--for=condition=Ready", "pod/peer", namespace=namespace)
        async with asyncio.timeout(LONGEST):
            kubectl, client = await asyncio.gather(by_kubectl(namespace), by_client(namespace))
    return {"kubectl logs -f": kubectl, "kubernetes client": client}


async def measure(cluster: KubernetesTestbed, rounds: int) -> list[dict[str, Any]]:
    """Medians of all rounds."""
    found: dict[str, list[list[float]]] = {}
    for number in range(rounds):
        said = await of_run(cluster, f"run{number}")
        for name, one in (said | await of_peers(cluster)).items():
            found.setdefault(name, []).append(one)
    return [
        {"what": f"{name}, p{share * 100:.0f} ms", "value": round(median(percentile(one, share) for one in each), 1)}
        for name, each in found.items()
        for share in (0.5, 0.99)
    ]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    theirs = of_the_user()
    if theirs is not None:
        rows = asyncio.run(measure(theirs, rounds))
    else:
        with running() as cluster:
            rows = asyncio.run(measure(cluster, rounds))
    report(options, f"Log latency from {PODS} pods, median of {rounds}", rows)


if __name__ == "__main__":
    main()
