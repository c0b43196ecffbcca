"""Start-up: ``import hyperpod_jlab``, ``hpj --help``, ``hpj --version``; a bare interpreter beside them.

python benchmarks/bench_startup.py [--json]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from log_fixtures import SMALL, arguments, median, report

ROUNDS = 1 if SMALL else 15
BIN = Path(sys.executable).parent
HEAVY = ("boto3", "botocore", "kubernetes", "tornado", "jupyter_server", "numpy", "pydantic", "asyncio")


def seconds(command: list[str]) -> float:
    """Wall time of a command, in seconds: the median of some runs after one to warm up."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    return median(times[1:])


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    commands = {
        "bare interpreter": [sys.executable, "-c", "pass"],
        "import hyperpod_jlab": [sys.executable, "-c", "import hyperpod_jlab"],
        "hpj --help": [str(BIN / "hpj"), "--help"],
        "hpj --version": [str(BIN / "hpj"), "--version"],
        "hpj runs --help": [str(BIN / "hpj"), "runs", "--help"],
        "hpj submit --help": [str(BIN / "hpj"), "submit", "--help"],
    }
    rows: list[dict[str, Any]] = [
        {"what": name, "ms": round(seconds(command) * 1000, 1)} for name, command in commands.items()
    ]
    code = f"import sys, hyperpod_jlab; print(*[name for name in {HEAVY} if name in sys.modules])"
    came = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = came.stdout.strip() or "none"
    report(options, f"Start-up; heavy packages that come with the import: {heavy}", rows)


if __name__ == "__main__":
    main()
