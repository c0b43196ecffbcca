"""Start-up: ``import hyperpod_jlab``, ``hpj --help``, ``hpj --version``; a bare interpreter beside them.

python benchmarks/bench_startup.py [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 15
BIN = Path(sys.executable).parent
HEAVY = (
    "boto3",
    "botocore",
    "kubernetes",
    "tornado",
    "jupyter_server",
    "numpy",
    "pydantic",
    "asyncio",
)


def seconds(command: list[str]) -> float:
    """Wall time of a command, in seconds: the median of some runs after one to warm up."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    commands = {
        "bare interpreter": [sys.executable, "-c", "pass"],
        "import hyperpod_jlab": [sys.executable, "-c", "import hyperpod_jlab"],
        "hpj --help": [str(BIN / "hpj"), "--help"],
        "hpj --version": [str(BIN / "hpj"), "--version"],
        "hpj runs --help": [str(BIN / "hpj"), "runs", "--help"],
        "hpj submit --help": [str(BIN / "hpj"), "submit", "--help"],
    }
    rows = {name: round(seconds(command) * 1000, 1) for name, command in commands.items()}
    code = f"import sys, hyperpod_jlab; print([name for name in {HEAVY} if name in sys.modules])"
    came = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if as_json:
        print(json.dumps({"ms": rows, "came_along": came.stdout.strip()}))
        return
    for name, value in rows.items():
        print(f"{name:24} {value:>7} ms")
    print(f"heavy packages that come with the import: {came.stdout.strip()}")


if __name__ == "__main__":
    main()
