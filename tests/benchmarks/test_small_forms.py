"""Benchmarks still give their figures. Here they do as little as they can, and no time is compared."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.local
FOLDER = Path(__file__).parents[2] / "benchmarks"
NAMES = (
    *("frontend_size", "log_latency", "log_ranks", "log_search", "log_throughput", "runs_listing"),
    *("slurm_history", "startup", "submit", "tables", "training"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_gives_its_figures(name: str, tmp_path: Path) -> None:
    folders = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("DATA", "CACHE", "STATE")}
    done = subprocess.run(
        [sys.executable, str(FOLDER / f"bench_{name}.py"), "--json"],
        env={**os.environ, **folders, "BENCH_SMALL": "1", "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    assert measured["machine"]["commit"]
    assert measured["machine"]["date"]
    figures = [value for row in measured["rows"] for value in row.values()]
    assert any(isinstance(value, int | float) for value in figures)
