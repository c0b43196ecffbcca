"""Submit latency: from the call to the run id, warm, in one Python process; submitit's LocalExecutor beside it.

    python benchmarks/bench_submit.py [--json]

Both submit the same small function to this machine. submitit lives in an environment of its own under .bench/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, SMALL, arguments, median, report

WARM = 2 if SMALL else 8
ENVIRONMENT = Path(__file__).parent.parent / ".bench" / "submitit"

OURS = f"""
import json, time, hyperpod_jlab
def work(x):
    return x + 1
times, runs = [], []
for _ in range({WARM}):
    start = time.perf_counter()
    runs.append(hyperpod_jlab.submit(work, args=(1,)))
    times.append(time.perf_counter() - start)
for run in runs:
    run.wait()
assert runs[-1].result() == 2
print(json.dumps(times))
"""

THEIRS = f"""
import json, sys, time, submitit
def work(x):
    return x + 1
executor = submitit.LocalExecutor(folder=sys.argv[1])
executor.update_parameters(timeout_min=5)
times, jobs = [], []
for _ in range({WARM}):
    start = time.perf_counter()
    jobs.append(executor.submit(work, 1))
    times.append(time.perf_counter() - start)
assert [job.result() for job in jobs][-1] == 2
print(json.dumps(times))
"""


def peer_python() -> Path:
    """The interpreter of the environment with submitit, which is made when it is not there."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "submitit"]
        subprocess.run(command, check=True)
    return python


def one_round(python: str, code: str, folder: Path) -> tuple[float, float]:
    """The first submit of a process, and the median of the warm ones after it, in seconds."""
    environment = dict(os.environ)
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
    work = folder / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [python, "-c", code, str(folder / "jobs")],
        env=environment,
        cwd=work,
        capture_output=True,
        text=True,
        check=True,
    )
    times = json.loads(done.stdout.splitlines()[-1])
    return times[0], median(times[1:])


def version(python: str, name: str) -> str:
    """The version of an installed package."""
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    """Measure both, round by round in turn, and print the medians."""
    options = arguments(__doc__)
    peers = {"hyperpod_jlab": (sys.executable, OURS)}
    if not SMALL:
        peers["submitit"] = (str(peer_python()), THEIRS)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
    for _ in range(ROUNDS):
        for name, (python, code) in peers.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name].append(one_round(python, code, Path(folder)))
                time.sleep(0.2)
    rows: list[dict[str, Any]] = [
        {
            "what": f"{name} {version(peers[name][0], name)}",
            "first, ms": round(median(first for first, _ in rounds) * 1000, 1),
            "warm, ms": round(median(warm for _, warm in rounds) * 1000, 1),
        }
        for name, rounds in found.items()
    ]
    report(options, "Submit of a function to this machine", rows)


if __name__ == "__main__":
    main()
