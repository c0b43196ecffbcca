"""512 ranks on 64 nodes, of which 500 are quiet: looks a second, processor time and latency of one who follows all.

A program plays the launchers and the 12 busy ranks (5 lines a second each). Ours with the nodes' activity records, ours
without them, and ``tail ---disable-inotify -F`` on all 512 files.

python benchmarks/bench_log_ranks.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from log_fixtures import ROUNDS, SMALL, Run, arguments, cpu_seconds, median, memory, percentile, report

NODES, PER_NODE, BUSY = (2, 2, 1) if SMALL else (64, 8, 12)
SETTLE, SECONDS = (1.0, 3.0) if SMALL else (8.0, 15.0)
READERS = ("ours", "ours, no activity records", "tail ---disable-inotify -F")


def record(run: Run, node: int, sizes: dict[int, int], changed: dict[int, float]) -> None:
    """Write a node's activity record as its launcher does."""
    ranks = range(node * PER_NODE, (node + 1) * PER_NODE)
    streams = {str(rank % PER_NODE): {"size": sizes[rank], "changed": changed[rank]} for rank in ranks}
    target = run.log(node * PER_NODE).with_name(f"node-{node}.activity.json")
    temporary = target.with_name(f".{node}.tmp")
    temporary.write_text(json.dumps({"time": time.time(), "ended": False, "streams": streams}))
    temporary.replace(target)


def play(folder: Path, seconds: float, records: bool) -> None:
    """Be the launchers and the busy ranks."""
    run = Run(folder, PER_NODE)
    rng = random.Random(1)
    busy = rng.sample(range(NODES * PER_NODE), BUSY)
    files = {rank: os.open(run.log(rank), os.O_WRONLY | os.O_APPEND) for rank in busy}
    sizes = {rank: run.log(rank).stat().st_size for rank in range(NODES * PER_NODE)}
    changed = dict.fromkeys(sizes, time.time() - 600)
    reported = dict.fromkeys(range(NODES), 0.0)
    begun = due = time.monotonic()
    number = 0
    while (now := time.monotonic()) < begun + seconds:
        rank = busy[number % BUSY]
        sizes[rank] += os.write(files[rank], b"%d\n" % time.monotonic_ns())
        changed[rank] = time.time()
        number += 1
        for node in range(NODES if records else 0):
            active = any(each // PER_NODE == node for each in busy)
            if now - reported[node] > (0.25 if active else 5.0):
                reported[node] = now
                record(run, node, sizes, changed)
        due += rng.uniform(0.5, 1.5) / (5 * BUSY)
        time.sleep(max(0.0, due - time.monotonic()))
    for each in files.values():
        os.write(each, b"end\n")


async def ours(folder: Path) -> dict[str, float]:
    """Follow all ranks; counts from the time when things have settled."""
    from hyperpod_jlab.logs.follow import Hub
    from hyperpod_jlab.logs.service import LogRequest, LogService

    hub = Hub(notifications=False)
    logs = LogService(Run(folder, PER_NODE), hub)
    found: list[float] = []
    begun = time.monotonic()
    start: tuple[float, float, int] | None = None
    print("ready", flush=True)
    async for batch in logs.lines(LogRequest("run", follow=True)):
        now = time.monotonic_ns()
        texts = [text for block in batch.blocks for text in block.texts()]
        if start is None and time.monotonic() - begun > SETTLE:
            start = (time.monotonic(), cpu_seconds(os.getpid()), hub.reads)
        if start is not None:
            found += [(now - int(text)) / 1e6 for text in texts if text.isdigit()]
        if "end" in texts:
            break
    assert start is not None
    seconds = time.monotonic() - start[0]
    return {
        "looks/s": (hub.reads - start[2]) / seconds,
        "cpu %": (cpu_seconds(os.getpid()) - start[1]) / seconds * 100,
        "p50 ms": percentile(found, 0.5),
        "p99 ms": percentile(found, 0.99),
        "RSS MB": memory()["VmRSS"],
    }


def tail(folder: Path) -> dict[str, float]:
    """The same with tail."""
    run = Run(folder, PER_NODE)
    files = [str(run.log(rank)) for rank in range(NODES * PER_NODE)]
    found: list[float] = []
    begun = time.monotonic()
    start: tuple[float, float] | None = None
    with subprocess.Popen(["tail", "---disable-inotify", "-F", "-q", *files], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        print("ready", flush=True)
        while True:
            line = process.stdout.readline()
            now = time.monotonic_ns()
            if start is None and time.monotonic() - begun > SETTLE:
                start = (time.monotonic(), cpu_seconds(process.pid))
            if start is not None and line.strip().isdigit():
                found.append((now - int(line)) / 1e6)
            if line == b"end\n":
                break
        assert start is not None
        seconds = time.monotonic() - start[0]
        cpu = (cpu_seconds(process.pid) - start[1]) / seconds * 100
        process.kill()
    return {
        "looks/s": NODES * PER_NODE,
        "cpu %": cpu,
        "p50 ms": percentile(found, 0.5),
        "p99 ms": percentile(found, 0.99),
    }


def one(reader: str) -> dict[str, float]:
    """One reader beside its players."""
    with tempfile.TemporaryDirectory() as name:
        run = Run(Path(name), PER_NODE)
        for rank in range(NODES * PER_NODE):
            run.log(rank).write_text(f"rank {rank} is up\n" * 50)
        with subprocess.Popen([sys.executable, __file__, reader, name], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            records = "" if "no activity" in reader else "records"
            command = [sys.executable, __file__, "play", name, str(SETTLE + SECONDS), records]
            subprocess.run(command, check=True)
            return json.loads(process.stdout.read())


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 2 and sys.argv[1] == "play":
        return play(Path(sys.argv[2]), float(sys.argv[3]), bool(sys.argv[4]))
    if len(sys.argv) > 2 and sys.argv[1] in READERS:
        folder = Path(sys.argv[2])
        print(json.dumps(tail(folder) if "tail" in sys.argv[1] else asyncio.run(ours(folder))))
        return None
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    rows = []
    for reader in READERS:
        results = [one(reader) for _ in range(rounds)]
        rows.append({"reader": reader, **{key: round(median(each[key] for each in results), 1) for key in results[0]}})
    return report(options, f"{NODES * PER_NODE} ranks, {BUSY} of them busy, median of {rounds}", rows)


if __name__ == "__main__":
    main()
