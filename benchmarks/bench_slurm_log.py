"""From a write of a job on a node of a real Slurm to a client of the log socket, and how often Slurm's commands were called for it.

The node has the partition at another place than the server, on the same machine: what a network file system adds is not in it. For latency the client
follows the same run by the log service too, and by `tail -F`.

python benchmarks/bench_slurm_log.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench_log_socket import LONGEST, STAMPED, STAMPS, by_service, by_socket, server
from log_fixtures import ROUNDS, arguments, median, percentile, report
from slurm_fixtures import SlurmTestbed, printed, running, user_of

HPJ = ("-m", "hyperpod_jlab.cli.main")
WARM = 5
"""Seconds before the first line, in which all who follow come."""
NODE = "node3"
"""In a queue of its own, and not the controller's host."""

LASTS = STAMPS * 0.05
"""Seconds in which the lines come."""


async def by_tail(log: Path) -> list[float]:
    """The same latencies in ms by ``tail -F``."""
    tail = await asyncio.create_subprocess_exec("tail", "-n", "+1", "-F", str(log), stdout=asyncio.subprocess.PIPE)
    found: list[float] = []
    assert tail.stdout is not None
    while len(found) < STAMPS:
        line = await tail.stdout.readline()
        found.append((time.monotonic_ns() - int(line)) / 1e6)
    tail.terminate()
    await tail.wait()
    return found


async def one_round(cluster: SlurmTestbed, number: int) -> dict[str, list[float]]:
    """Latencies of each way, and the calls while the log came."""
    with user_of(cluster) as (home, environment):
        os.environ.update(environment)
        run = f"stamped{number}"
        submit = ["submit", "--run-id", run, "--queue", "batch", "-c", f"sleep {WARM}; {STAMPED}"]
        with server(home, environment) as (address, _):
            printed([sys.executable, *HPJ, *submit], environment, home)
            log = next_log(cluster.partition, run)
            async with asyncio.timeout(LONGEST):
                *found, begin = await asyncio.gather(
                    by_socket(address, run), by_service(run), by_tail(log), asyncio.to_thread(first_line, log)
                )
            calls = float(sum(begin < call.at < begin + LASTS for call in cluster.calls()))
    return dict(zip(("socket", "service", "tail -F"), found, strict=True)) | {"calls": [calls]}


def first_line(log: Path) -> float:
    """When the first line had come (Unix seconds)."""
    end = time.monotonic() + LONGEST
    while log.stat().st_size == 0:
        if time.monotonic() > end:
            raise TimeoutError("the job writes nothing")
        time.sleep(0.05)
    return time.time()


def next_log(partition: Path, run: str) -> Path:
    """The log of a run's first rank, once it is there."""
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        for path in partition.glob(f"**/{run}/**/node-0.rank-0.log"):
            return path
        time.sleep(0.02)
    raise TimeoutError("the job does not begin")


async def measure(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """Medians of all rounds."""
    found = [await one_round(cluster, number) for number in range(rounds)]
    rows: list[dict[str, Any]] = []
    for name in ("socket", "service", "tail -F"):
        for share in (0.5, 0.99):
            value = median(percentile(one[name], share) for one in found)
            rows.append({"what": f"{name}, p{share * 100:.0f} ms", "value": round(value, 1)})
    calls = [int(one["calls"][0]) for one in found]
    rows.append({"what": "scheduler calls while lines came", "value": str(calls)})
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with running() as cluster:
        rows = asyncio.run(measure(cluster, rounds))
    report(options, f"Log latency from a node of Slurm, median of {rounds}", rows)


if __name__ == "__main__":
    main()
