"""What the log benchmarks share: a run's folder, fixed inputs, percentiles, a table, and what it was measured on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyperpod_jlab.logs.source import SourceSet

SMALL = "BENCH_SMALL" in os.environ
"""Whether to do as little as shows that the benchmark works, as ``make test`` does. Processes that it starts do the same."""

ROUNDS = 1 if SMALL else 5


class Run:
    """What the log service asks of runs."""

    def __init__(self, root: Path, per_node: int = 16) -> None:
        self.root = root
        self.per_node = per_node
        self.ended = False

    def sources(self, run_id: str) -> SourceSet:  # noqa: ARG002
        from hyperpod_jlab.logs.records import RecordStreams

        return RecordStreams(self.root, self.per_node)

    async def is_ended(self, run_id: str) -> bool:  # noqa: ARG002
        return self.ended

    def log(self, rank: int) -> Path:
        folder = self.root / "logs" / "attempt-1"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"node-{rank // self.per_node}.rank-{rank % self.per_node}.log"


def numbered(first: int, count: int) -> bytes:
    """Lines such as a training prints, 60 bytes each."""
    return b"".join(
        b"step %09d loss=%.6f lr=3.0e-04 tokens/s=%7d ok\n" % (n, 10 / (n + 1), 91000 + n % 977)
        for n in range(first, first + count)
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def median(values: Iterable[float]) -> float:
    """The median."""
    return statistics.median(values)


def memory() -> dict[str, float]:
    """This process' memory now and at its highest, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return {key: int(fields[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")}


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine() -> dict[str, Any]:
    """What was measured, when, and on what."""
    import hyperpod_jlab

    def first_line(command: list[str]) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": first_line(["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]),
        "hyperpod_jlab": hyperpod_jlab.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "tail": first_line(["tail", "--version"]),
        "grep": first_line(["grep", "--version"]),
    }


def arguments(description: str | None) -> argparse.Namespace:
    """The options that all have: ``--json`` and ``--quick`` (one round)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--quick", action="store_true", help="one round instead of five")
    return parser.parse_args()


def report(options: argparse.Namespace, title: str, rows: list[dict[str, Any]]) -> None:
    """Print the rows as a table, or as JSON."""
    if options.json:
        print(json.dumps({"title": title, "machine": machine(), "rows": rows}))
        return
    print(title)
    print("  " + ", ".join(f"{key} {value}" for key, value in machine().items()))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [columns, *([str(row.get(key, "")) for key in columns] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    for line in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)))
