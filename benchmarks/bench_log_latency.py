"""Log latency: from a rank's write to the subscriber, 16 streams, at 1, 20 and 200 lines a second in all.

Four readers watch the same files at the same time, each in a process of its own: ours by polling only, ours with inotify,
``tail -F`` and ``tail ---disable-inotify -F`` (what Lustre and NFS leave of it). Lines carry the monotonic time of their write.

python benchmarks/bench_log_latency.py [--json] [--quick]
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

from log_fixtures import ROUNDS, SMALL, Run, arguments, median, percentile, report

STREAMS = 2 if SMALL else 16
RATES = {20: 1} if SMALL else {1: 30, 20: 10, 200: 5}  # lines a second: seconds
READERS = ("ours, polling", "ours, inotify", "tail -F", "tail ---disable-inotify -F")
END = "end"


def write(folder: Path, rate: int) -> None:
    """Write stamped lines at random moments, each to the next stream."""
    rng = random.Random(rate)
    run = Run(folder)
    files = [os.open(run.log(rank), os.O_WRONLY | os.O_APPEND) for rank in range(STREAMS)]
    due = time.monotonic()
    for number in range(rate * RATES[rate]):
        due += rng.uniform(0.5, 1.5) / rate
        time.sleep(max(0.0, due - time.monotonic()))
        os.write(files[number % STREAMS], b"%d\n" % time.monotonic_ns())
    time.sleep(2.0)
    os.write(files[0], END.encode() + b"\n")


async def follow(folder: Path, notifications: bool) -> list[float]:
    """Latencies in ms, as a subscriber of ours sees them."""
    from hyperpod_jlab.logs.follow import Hub
    from hyperpod_jlab.logs.service import LogRequest, LogService

    logs = LogService(Run(folder), Hub(notifications=notifications))
    found: list[float] = []
    print("ready", flush=True)
    async for batch in logs.lines(LogRequest("run", follow=True)):
        now = time.monotonic_ns()
        for block in batch.blocks:
            for text in block.texts():
                if text == END:
                    return found
                if text != "start":
                    found.append((now - int(text)) / 1e6)
    return found


def tail(folder: Path, options: list[str]) -> list[float]:
    """Latencies in ms of a tail's output."""
    run = Run(folder)
    files = [str(run.log(rank)) for rank in range(STREAMS)]
    command = ["tail", *options, "-q", "-n", "+1", *files]
    found: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        print("ready", flush=True)
        rest = b""
        while True:
            data = process.stdout.read1(1 << 16)
            now = time.monotonic_ns()
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line.decode() == END:
                    process.kill()
                    return found
                if line != b"start":
                    found.append((now - int(line)) / 1e6)


def read(reader: str, folder: Path) -> list[float]:
    """One reader's latencies."""
    if reader.startswith("ours"):
        return asyncio.run(follow(folder, reader.endswith("inotify")))
    return tail(folder, reader.split()[1:])


def one_round(rate: int) -> dict[str, list[float]]:
    """All readers beside each other."""
    with tempfile.TemporaryDirectory() as name:
        run = Run(Path(name))
        for rank in range(STREAMS):
            run.log(rank).write_text("start\n")
        readers = {
            reader: subprocess.Popen([sys.executable, __file__, reader, name], stdout=subprocess.PIPE, text=True)
            for reader in READERS
        }
        for process in readers.values():
            assert process.stdout is not None
            process.stdout.readline()
        time.sleep(1.0)
        subprocess.run([sys.executable, __file__, "write", name, str(rate)], check=True)
        found = {}
        for reader, process in readers.items():
            assert process.stdout is not None
            found[reader] = json.loads(process.stdout.read())
            process.wait()
            assert len(found[reader]) == rate * RATES[rate], (reader, len(found[reader]))
        return found


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 2 and sys.argv[1] == "write":
        return write(Path(sys.argv[2]), int(sys.argv[3]))
    if len(sys.argv) > 2 and sys.argv[1] in READERS:
        print(json.dumps(read(sys.argv[1], Path(sys.argv[2]))))
        return None
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    rows = []
    for rate in RATES:
        results = [one_round(rate) for _ in range(rounds)]
        for reader in READERS:
            row = {"lines/s": rate, "reader": reader}
            for name, share in (("p50 ms", 0.5), ("p99 ms", 0.99), ("max ms", 1.0)):
                row[name] = round(median(percentile(result[reader], share) for result in results), 1)
            rows.append(row)
    return report(options, f"From write to subscriber, {STREAMS} streams, median of {rounds}", rows)


if __name__ == "__main__":
    main()
