"""Numbers in what ranks print: what reading them costs on a node, and how fast they are there.

- 64 ranks write 1,000 lines a second each, one in ten with numbers: CPU of the process that reads them, beside ``grep -c loss`` on the same bytes as they come.
- A rank prints a number every 50 ms: time from the print to the answer of the server's core, which waits for it as a page does.
- A node's file with 10 series of 100,000 points: time to read it and to thin it out for a page, beside ``json.loads`` on its lines.

python benchmarks/bench_training.py [--json] [--quick]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from log_fixtures import SMALL, arguments, median, report

from hyperpod_jlab.launcher.assemble import launcher_source
from hyperpod_jlab.run.metrics import RunMetrics

RANKS, LINES_A_SECOND = 64, 1000
NOISE = b"2026-11-27 07:00:00,123 INFO worker: batch of 32 samples read from the cache in shard 12\n"

READ = """
import sys
folder = sys.argv[1]
sys.path.insert(0, folder)
import launcher
sys.exit(launcher.run_metrics(launcher.AttemptPaths(folder, folder, 1, 0)))
"""


def node(folder: Path, ranks: int) -> Path:
    """A bundle with the empty logs of one node."""
    logs = folder / "logs" / "attempt-1"
    logs.mkdir(parents=True)
    (folder / "status" / "attempt-1").mkdir(parents=True)
    (folder / "launcher.py").write_bytes(launcher_source())
    plan = {"format": 1, "run_id": "r", "launcher": "python", "processes_per_node": ranks}
    (folder / "launch.json").write_text(json.dumps(plan))
    for rank in range(ranks):
        (logs / f"node-0.rank-{rank}.log").touch()
    return logs


def start(folder: Path) -> subprocess.Popen[bytes]:
    """The process that reads the numbers."""
    command = [sys.executable, "-I", "-S", "-c", READ, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_all(logs: Path, seconds: float) -> int:
    """Be the ranks; the lines written."""
    files = [os.open(logs / f"node-0.rank-{rank}.log", os.O_WRONLY | os.O_APPEND) for rank in range(RANKS)]
    begin, turn = time.monotonic(), 0
    while (now := time.monotonic()) < begin + seconds:
        turn += 1
        text = b"step %d/100000 loss %.4f lr 1e-4\n" % (turn, 2 / turn) + NOISE * 9
        for file in files:
            os.write(file, text * (LINES_A_SECOND // 100))
        time.sleep(max(0.0, begin + turn * 0.1 - now))
    for file in files:
        os.close(file)
    return turn * RANKS * LINES_A_SECOND // 10


def cost(seconds: float) -> dict[str, float]:
    """CPU of the process while 64 ranks write, in percent of a core for 10,000 lines a second; the same for grep."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = node(folder, RANKS)
        process = start(folder)
        time.sleep(1)
        paths = [str(logs / f"node-0.rank-{rank}.log") for rank in range(RANKS)]
        tail = subprocess.Popen(["tail", "-q", "-n+1", "-F", *paths], stdout=subprocess.PIPE)
        peer = subprocess.Popen(["grep", "-c", "loss"], stdin=tail.stdout, stdout=subprocess.DEVNULL)
        before = cpu_of(process.pid), cpu_of(tail.pid) + cpu_of(peer.pid)
        begin = time.monotonic()
        lines = write_all(logs, seconds)
        took = time.monotonic() - begin
        used = cpu_of(process.pid) - before[0]
        theirs = cpu_of(tail.pid) + cpu_of(peer.pid) - before[1]
        process.terminate()
        process.wait()
        tail.kill()
        tail.wait()
        peer.wait()
        per_10k = lines / took / 10_000
        return {
            "lines_a_second": round(lines / took),
            "percent_of_core": round(100 * used / took / per_10k, 2),
            "tail_and_grep": round(100 * theirs / took / per_10k, 2),
        }


def latency(count: int) -> dict[str, float]:
    """Milliseconds from a print to the point that a page would get."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = node(folder, 1)
        process = start(folder)
        time.sleep(0.5)
        metrics = RunMetrics(folder, is_own=True)
        seen: list[float] = []
        printed: dict[int, float] = {}
        stop = threading.Event()

        def look() -> None:
            cursor = None
            while not stop.is_set():
                if metrics.refresh():
                    now = time.monotonic()
                    found, cursor = metrics.read(["loss"], cursor=cursor)
                    for series in found:
                        seen.extend(now - printed[step] for step, _, _ in series.points if step)
                time.sleep(0.1)  # as the route does

        thread = threading.Thread(target=look)
        thread.start()
        with (logs / "node-0.rank-0.log").open("ab", buffering=0) as file:
            for step in range(1, count + 1):
                printed[step] = time.monotonic()
                file.write(b"step %d loss 0.5\n" % step)
                time.sleep(0.05)
        time.sleep(1)
        stop.set()
        thread.join()
        process.terminate()
        process.wait()
        ordered = sorted(seen)
        return {
            "points": len(ordered),
            "p50_ms": round(1000 * median(ordered)),
            "p95_ms": round(1000 * ordered[int(len(ordered) * 0.95)]),
        }


def reading(points: int) -> dict[str, float]:
    """Seconds to read a file of 10 series, and to thin it out, beside a bare loop of ``json.loads``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = node(folder, 1)
        names = [f"metric_{number}" for number in range(10)]
        with (logs / "node-0.metrics.jsonl").open("w") as file:
            file.write('{"format":1}\n')
            for step in range(points):
                values = dict.fromkeys(names, 1 / (step + 1))
                document: dict[str, Any] = {"time": step / 10, "rank": 0, "step": step}
                file.write(json.dumps({**document, "values": values}) + "\n")
        begin = time.perf_counter()
        for line in (logs / "node-0.metrics.jsonl").read_bytes().splitlines():
            json.loads(line)
        bare = time.perf_counter() - begin
        metrics = RunMetrics(folder, is_own=True)
        begin = time.perf_counter()
        metrics.refresh()
        first = time.perf_counter() - begin
        begin = time.perf_counter()
        metrics.read(most=1000)
        thinned = time.perf_counter() - begin
        return {"read_s": round(first, 3), "json_loads_s": round(bare, 3), "thin_out_ms": round(1000 * thinned, 1)}


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    quick = options.quick or SMALL
    rows = [
        {"what": "reading 64 ranks", **cost(3 if quick else 15)},
        {"what": "print to answer", **latency(40 if quick else 200)},
        {"what": "10 series of a file", **reading(10_000 if quick else 100_000)},
    ]
    report(options, "numbers in what ranks print", rows)


if __name__ == "__main__":
    main()
