"""Log throughput and memory: a burst followed live, history read whole, and the last screen of a 1 GB log.

Each measurement runs in a process of its own, so that its memory is its own. ``tail -F`` is read by a loop that does nothing
but count newlines; ours makes every line a text (or an object with a cursor).

python benchmarks/bench_log_throughput.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, SMALL, Run, arguments, median, memory, numbered, report

BURST = 10_000 if SMALL else 512_000
SLICE = 1_000
GIGABYTE = 1 << (24 if SMALL else 30)
SUSTAINED = (1 << 20, 1) if SMALL else (50 << 20, 20)  # bytes a second, seconds


def write_burst(path: Path) -> None:
    """Write numbered lines as fast as a program can that flushes now and then."""
    slices = [numbered(first, SLICE) for first in range(0, BURST, SLICE)]
    with path.open("ab", buffering=0) as file:
        for data in slices:
            file.write(data)


def write_sustained(path: Path) -> None:
    """Write so many MB a second for a while."""
    rate, seconds = SUSTAINED
    block = numbered(0, 10_000)
    begun = time.monotonic()
    written = 0
    with path.open("ab", buffering=0) as file:
        while written < rate * seconds:
            written += file.write(block)
            time.sleep(max(0.0, begun + written / rate - time.monotonic()))
        file.write(b"end\n")


async def ours(folder: Path, what: str) -> dict[str, float]:
    """Follow a writer (`burst`, `sustained`), or read what is there (`history`, `objects`, `cursors`)."""
    from hyperpod_jlab.logs.follow import Hub
    from hyperpod_jlab.logs.service import LogRequest, LogService

    run = Run(folder)
    logs = LogService(run, Hub(notifications=False))
    before = memory()["VmRSS"]
    live = what in ("burst", "sustained")
    count = size = 0
    begun = time.monotonic()
    async for batch in logs.lines(LogRequest("run", follow=live)):
        if count == 0 and live:
            print("ready", flush=True)
            count = 1
            continue
        if count <= 1:
            begun = time.monotonic() if live else begun
        if what in ("objects", "cursors"):
            for line in batch:
                count += 1
                size += len(line.line) + (len(line.cursor) if what == "cursors" else 0)
            continue
        ended = False
        for block in batch.blocks:
            texts = block.texts()
            count += len(texts)
            size += block.size
            ended = ended or texts[-1:] == ["end"]
        if live and (ended or (count > BURST and what == "burst")):
            break
    seconds = time.monotonic() - begun
    return {"lines": count, "seconds": seconds, "bytes": size, "grown": memory()["VmHWM"] - before}


def tail(folder: Path, what: str) -> dict[str, float]:
    """``tail -F``, read by a loop that counts newlines."""
    command = ["tail", *(["-F"] if what == "burst" else []), "-n", "+1", str(Run(folder).log(0))]
    count = size = 0
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := process.stdout.read1(1 << 20):
            if what == "burst" and count == 0:
                print("ready", flush=True)
                count = 1
                continue
            if count == 1:
                begun = time.monotonic()
            count += data.count(b"\n")
            size += len(data)
            if what == "burst" and count > BURST:
                process.kill()
    return {"lines": count, "seconds": time.monotonic() - begun, "bytes": size, "grown": 0.0}


async def last_screen(folder: Path) -> dict[str, float]:
    """A page of 200 lines from the end, by a service that was just made."""
    from hyperpod_jlab.logs.service import LogRequest, LogService

    begun = time.monotonic()
    logs = LogService(Run(folder))
    page = await logs.page(LogRequest("run"), "backward", 200)
    texts = [text for block in page.lines.blocks for text in block.texts()]
    seconds = time.monotonic() - begun
    assert len(texts) == 200
    await logs.close()
    return {"lines": 200, "seconds": seconds, "bytes": 0, "grown": memory()["VmHWM"] - memory()["VmRSS"]}


def measure(who: str, what: str, folder: Path, writer: Callable[[Path], None] | None) -> dict[str, float]:
    """One measurement, in a process of its own, beside its writer."""
    command = [sys.executable, __file__, "measure", who, what, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if writer is not None:
            process.stdout.readline()
            time.sleep(0.3)
            subprocess.run([sys.executable, __file__, writer.__name__, str(Run(folder).log(0))], check=True)
        return json.loads(process.stdout.read())


def live_row(name: str, who: str, what: str, writer: Callable[[Path], None], rounds: int) -> dict[str, Any]:
    """Follow a writer, several times."""
    results = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            Run(Path(folder)).log(0).write_bytes(b"start\n")
            results.append(measure(who, what, Path(folder), writer))
    return row(name, results)


def row(name: str, results: list[dict[str, float]]) -> dict[str, Any]:
    """The medians of several results."""
    return {
        "what": name,
        "lines/s": round(median(each["lines"] / each["seconds"] for each in results)),
        "MB/s": round(median(each["bytes"] / each["seconds"] / 1e6 for each in results)),
        "ms": round(median(each["seconds"] for each in results) * 1000),
        "memory +MB": round(max(each["grown"] for each in results), 1),
    }


def main() -> None:
    """Measure and print."""
    if len(sys.argv) > 2 and sys.argv[1] in ("write_burst", "write_sustained"):
        return globals()[sys.argv[1]](Path(sys.argv[2]))
    if len(sys.argv) > 2 and sys.argv[1] == "measure":
        who, what, folder = sys.argv[2], sys.argv[3], Path(sys.argv[4])
        if what == "last screen":
            result = asyncio.run(last_screen(folder))
        else:
            result = tail(folder, what) if who == "tail" else asyncio.run(ours(folder, what))
        print(json.dumps(result))
        return None
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    rows = [
        live_row("burst of 512k lines, followed: ours", "ours", "burst", write_burst, rounds),
        live_row("burst of 512k lines, followed: tail -F", "tail", "burst", write_burst, rounds),
        live_row("50 MB/s for 20 s, followed: ours", "ours", "sustained", write_sustained, 1),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = Run(folder)
        run.log(0).write_bytes(numbered(0, BURST))
        for label, who, what in (
            ("history of 512k lines, texts: ours", "ours", "history"),
            ("history of 512k lines, an object each: ours", "ours", "objects"),
            ("history of 512k lines, object and cursor each: ours", "ours", "cursors"),
            ("history of 512k lines, counted: tail -n +1", "tail", "history"),
        ):
            rows.append(row(label, [measure(who, what, folder, None) for _ in range(rounds)]))
        block = numbered(0, 100_000)
        with run.log(0).open("wb") as file:
            for _ in range(GIGABYTE // len(block)):
                file.write(block)
        rows.append(
            row("last 200 lines of 1 GB: ours", [measure("ours", "last screen", folder, None) for _ in range(rounds)])
        )
        begun = time.monotonic()
        subprocess.run(["tail", "-n", "200", run.log(0)], stdout=subprocess.DEVNULL, check=True)
        rows.append({"what": "last 200 lines of 1 GB: tail", "ms": round((time.monotonic() - begun) * 1000)})
        os.truncate(run.log(0), 0)
    return report(options, f"Throughput and memory of one log, median of {rounds}", rows)


if __name__ == "__main__":
    main()
