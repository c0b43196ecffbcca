"""An environment that travels with a run, built and warm: from the start of the node to the start of its rank; `uv sync` of the same lock beside it.

    python benchmarks/bench_environment.py [--json]

The lock is that of a project with JupyterLab and NumPy. uv's cache is warm in all rounds; the first time, packages come from the index.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture import capture
from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.launcher import launcher_source

ROUNDS = 7
PROJECT = """
[project]
name = "bench"
version = "1"
requires-python = ">=3.11"
dependencies = ["jupyterlab==4.4.*", "numpy==2.*"]
"""
UV = (sys.executable, "-m", "uv")


def start_seconds(partition: Path, name: str, environment: bytes | None) -> float:
    """Run an empty script; seconds from the node's start to that of its rank."""
    bundle = partition / ".hyperpod" / "runs" / "00" / name
    for part in ("code", "work", "logs", "status"):
        (bundle / part).mkdir(parents=True)
    (bundle / "launcher.py").write_bytes(launcher_source())
    (bundle / "code" / "main.py").write_text("")
    plan: dict[str, Any] = {
        "format": 1,
        "run_id": name,
        "launcher": "python",
        "python": sys.executable,
        "command": [{"python": True}, {"bundle": "code/main.py"}],
    }
    if environment is not None:
        (bundle / ENVIRONMENT_FILE).write_bytes(environment)
        plan["environment"] = ENVIRONMENT_FILE
    (bundle / "launch.json").write_text(json.dumps(plan))
    command = [sys.executable, str(bundle / "launcher.py"), "node", "--node-rank=0", "--nodes=1"]
    command += ["--master-addr=127.0.0.1", "--master-port=0", "--scheduler-id=1"]
    command += ["--incarnation=1", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    record = json.loads((bundle / "status" / "attempt-1" / "node-0.json").read_text())
    return float(record["ranks"][0]["started_at"]) - float(record["started_at"])


def sync_seconds(project: Path) -> float:
    """Seconds of a plain `uv sync`."""
    begin = time.perf_counter()
    variables = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([*UV, "sync", "-q", "--frozen"], cwd=project, check=True, env=variables)
    return time.perf_counter() - begin


def measure(folder: Path) -> dict[str, Any]:
    """All figures, in seconds; the middle of several rounds."""
    project = folder / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    subprocess.run([*UV, "lock", "-q"], cwd=project, check=True)
    source = {"source": {"kind": "command", "command": "true"}, "files": {"project": False}}
    spec = parse(JobSpec, {**source, "environment": {"capture": "lock"}})
    begin = time.perf_counter()
    captured = capture(spec, base=project)
    capture_s = time.perf_counter() - begin
    document = next(file.data for file in captured.files if file.path == ENVIRONMENT_FILE)
    sync_seconds(project)  # fills uv's cache
    times: dict[str, list[float]] = {name: [] for name in ("none", "built", "warm", "new", "same")}
    for number in range(ROUNDS):
        partition = folder / f"partition-{number}"
        times["none"].append(start_seconds(partition, "none", None))
        times["built"].append(start_seconds(partition, "built", document))
        times["warm"].append(start_seconds(partition, "warm", document))
        shutil.rmtree(project / ".venv")
        times["new"].append(sync_seconds(project))
        times["same"].append(sync_seconds(project))
    figures: dict[str, Any] = {name: statistics.median(values) for name, values in times.items()}
    packages = sum("==" in line for line in json.loads(document)["requirements"].splitlines())
    return {"packages": packages, "capture": capture_s, **figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder))
    if args.json:
        print(json.dumps(figures))
        return
    print(f"{figures['packages']} packages; median of {ROUNDS} rounds, seconds")
    rows = (
        ("capture of the lock on submit", "capture"),
        ("start of a rank without an environment", "none"),
        ("start of a rank, environment there already", "warm"),
        ("start of a rank, environment built by this run (uv cache warm)", "built"),
        ("uv sync --frozen into a new .venv (uv cache warm)", "new"),
        ("uv sync --frozen, .venv there already", "same"),
    )
    for text, name in rows:
        print(f"{text:64} {figures[name]:8.3f}")


if __name__ == "__main__":
    main()
