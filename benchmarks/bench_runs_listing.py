"""Listing runs: the 50 newest of 10,000 bundles, warm and cold, in one process and as ``hpj runs --limit 50``.

    python benchmarks/bench_runs_listing.py [--json]

"beyond start-up" is what ``hpj runs --limit 50`` takes over the same command on an empty partition. Reading every bundle's head without an index
stands beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from log_fixtures import SMALL, arguments, report

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.run.listing import RunFilter
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition

ROUNDS, RUNS = (1, 60) if SMALL else (15, 10_000)
HPJ = [str(Path(sys.executable).parent / "hpj"), "runs", "--limit", "50"]


def make_bundles(partition: Partition, number: int) -> None:
    """Runs that ended well, one a minute."""
    partition.prepare()
    began = time.time() - 60 * number
    for count in range(number):
        run_id, created = f"run-{count:06}", began + 60 * count
        files: dict[str, Any] = {
            "bundle.json": {
                "format": 1,
                "run_id": run_id,
                "name": f"train-{count}",
                "user": current_user(),
                "host": "here",
                "created_at": created,
                "cluster": "local",
                "orchestrator": "local",
                "spec_digest": "0",
            },
            "spec.json": {"format": 1, "source": {"kind": "command", "command": "true"}},
            "submission.json": {"scheduler_id": run_id, "submitted_at": created},
            "status/attempt-1/node-0.json": {
                "node_rank": 0,
                "node": "n0",
                "started_at": created + 1,
                "ended_at": created + 50,
                "exit_code": 0,
            },
        }
        folder = partition.bundle(run_id)
        (folder / "status" / "attempt-1").mkdir(parents=True)
        (folder / "status" / "observations").mkdir()
        (folder / "status" / "actions").mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))


def median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of some rounds, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def without_index(partition: Partition) -> None:
    """Read every head, and take the 50 newest."""
    heads = [json.loads(path.read_bytes()) for path in partition.runs.glob("*/*/bundle.json")]
    sorted(heads, key=lambda head: -head["created_at"])[:50]


def command(root: Path) -> Callable[[], object]:
    """``hpj runs --limit 50`` on a partition."""
    config = root.parent / f"{root.name}.toml"
    config.write_text(f'[storage]\npath = "{root}"\n')
    environment = {**os.environ, "HYPERPOD_CONFIG": str(config)}

    def call() -> None:
        subprocess.run(HPJ, env=environment, stdout=subprocess.DEVNULL, check=True)

    return call


def measure(folder: Path, number: int) -> dict[str, float]:
    """All figures, in milliseconds."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    partition = Partition(folder / "full")
    make_bundles(partition, number)
    Partition(folder / "empty").prepare()
    time.sleep(3.1)  # folders that have just changed are read again each time
    hyperpod = Hyperpod(Settings.model_validate({"storage": {"path": str(partition.root)}}))

    def listed() -> None:
        found = asyncio.run(hyperpod.runs.list(RunFilter(limit=50)))
        assert len(found.runs) == min(50, number)

    cold = median(listed, 1)
    warm = median(listed)
    empty, full = command(folder / "empty"), command(partition.root)
    empty(), full()
    start_up, whole = median(empty), median(full)
    return {
        "first listing, no index yet": cold,
        "listing in a warm process": warm,
        "hpj runs --limit 50, empty partition": start_up,
        "hpj runs --limit 50": whole,
        "hpj runs --limit 50 beyond start-up": whole - start_up,
        "every head read, without an index": median(lambda: without_index(partition), 3),
    }


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), RUNS)
    rows: list[dict[str, Any]] = [{"what": name, "ms": round(value, 1)} for name, value in figures.items()]
    report(options, f"{RUNS:,} runs", rows)


if __name__ == "__main__":
    main()
