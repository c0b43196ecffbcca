"""Search of a 1 GB log: ours beside ``grep -c`` in the C locale, a few hits in 17 million lines.

Ours runs Python's regular expressions in a process of its own; the table says how long the event loop was held meanwhile.

python benchmarks/bench_log_search.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from pathlib import Path

from log_fixtures import ROUNDS, SMALL, Run, arguments, median, memory, numbered, report

GIGABYTE = 1 << (22 if SMALL else 30)
RARE = b"step 000000042 CUDA error: device-side assert triggered on rank 5\n"
PATTERNS = {
    "a text": (r"CUDA error", []),
    "a text in a pattern": (r"CUDA error: .* rank \d+", []),
    "no text to look for": (r"[A-Z]{4} [a-z]{5}:", []),
    "a text, any case": (r"cuda ERROR", ["-i"]),
    "nothing found": (r"Segmentation fault", []),
}


def make(path: Path) -> None:
    """A gigabyte of lines with a rare one every 100 MB."""
    block = numbered(0, 100_000)
    with path.open("wb") as file:
        for number in range(GIGABYTE // len(block)):
            if number % 17 == 0:
                file.write(RARE)
            file.write(block)


async def ours(folder: Path, pattern: str, ignore_case: bool) -> tuple[int, float, float]:
    """Hits, seconds, and the longest time in ms for which the event loop was held."""
    from hyperpod_jlab.logs.service import LogRequest, LogService

    longest = 0.0

    async def heartbeat() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            longest = max(longest, (time.monotonic() - before - 0.005) * 1000)

    logs = LogService(Run(folder))
    beating = asyncio.create_task(heartbeat())
    begun = time.monotonic()
    request = LogRequest("run", grep=pattern, ignore_case=ignore_case)
    found = await logs.search(request, limit=1000, seconds=600)
    seconds = time.monotonic() - begun
    beating.cancel()
    await logs.close()
    return len(found.hits), seconds, longest


def grep(path: Path, pattern: str, options: list[str]) -> tuple[int, float]:
    """Hits and seconds."""
    begun = time.monotonic()
    ran = subprocess.run(
        ["grep", "-cP" if "\\d" in pattern else "-cE", *options, pattern, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    return int(ran.stdout), time.monotonic() - begun


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = Run(folder).log(0)
        make(path)
        before = memory()["VmRSS"]
        for label, (pattern, flags) in PATTERNS.items():
            found = [asyncio.run(ours(folder, pattern, bool(flags))) for _ in range(rounds)]
            beside = [grep(path, pattern, flags) for _ in range(rounds)]
            assert {each[0] for each in found} == {each[0] for each in beside}, (label, found, beside)
            rows.append(
                {
                    "pattern": f"{label}: {pattern}",
                    "hits": found[0][0],
                    "ours ms": round(median(each[1] for each in found) * 1000),
                    "grep ms": round(median(each[1] for each in beside) * 1000),
                    "loop held ms": round(median(each[2] for each in found), 1),
                    "memory +MB": round(memory()["VmHWM"] - before, 1),
                }
            )
    report(options, f"Search of 1 GB, median of {rounds}", rows)


if __name__ == "__main__":
    main()
