"""Submit to a real Slurm: from the call to the job's id; raw sbatch, submitit and torchx beside it, on the same cluster in turn.

Warm: calls in one Python process after its first one. Cold: a command's whole time. All go through the same wrapper around Slurm's commands.

python benchmarks/bench_slurm_submit.py [--json] [--quick]
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, arguments, median, report
from slurm_fixtures import PEERS, PROJECT, SlurmTestbed, peers_python, printed, running, user_of, version_of

WARM = 8
MANY = 100
ENDING = 120.0

LOOP = f"""
import json, sys, time
folder = sys.argv[1]
def measure(submit, count={WARM}):
    times = []
    for number in range(count):
        begin = time.perf_counter()
        submit(number)
        times.append(time.perf_counter() - begin)
    return times
"""

WAYS = {
    "raw sbatch": """
import subprocess
script = b"#!/bin/bash\\ntrue\\n"
def submit(number):
    subprocess.run(["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp"], input=script, check=True, capture_output=True)
print(json.dumps(measure(submit)))
""",
    "ours, a command": """
import hyperpod_jlab
def submit(number):
    hyperpod_jlab.submit(command="true")
print(json.dumps(measure(submit)))
""",
    "ours, a function": """
import hyperpod_jlab
def work(x):
    return x + 1
def submit(number):
    hyperpod_jlab.submit(work, args=(number,))
print(json.dumps(measure(submit)))
""",
    "submitit, a function": """
import submitit
def work(x):
    return x + 1
executor = submitit.SlurmExecutor(folder=folder)
executor.update_parameters(time=5)
def submit(number):
    executor.submit(work, number)
print(json.dumps(measure(submit)))
""",
    "torchx, a command": """
import torchx.runner, torchx.specs as specs
role = specs.Role("true", image="", entrypoint="true", resource=specs.Resource(cpu=1, gpu=0, memMB=100))
runner = torchx.runner.get_runner()
def submit(number):
    runner.run(specs.AppDef(f"bench{number}", [role]), "slurm", {"partition": "dev", "job_dir": None})
print(json.dumps(measure(submit)))
""",
}
"""How one run is sent, by name; ``measure`` prints the seconds that each took."""

ARRAYS = {
    "raw sbatch --array": f"""
import subprocess
script = b"#!/bin/bash\\ntrue\\n"
def submit(number):
    subprocess.run(["sbatch", "--parsable", "--array=0-{MANY - 1}", "--output=/dev/null", "--chdir=/tmp"], input=script, check=True, capture_output=True)
print(json.dumps(measure(submit, 4)))
""",
    "ours, an array": f"""
import hyperpod_jlab
def submit(number):
    hyperpod_jlab.submit(command="true", array="0-{MANY - 1}")
print(json.dumps(measure(submit, 4)))
""",
    "submitit, an array": f"""
import submitit
executor = submitit.SlurmExecutor(folder=folder)
executor.update_parameters(time=5)
def submit(number):
    executor.map_array(abs, range({MANY}))
print(json.dumps(measure(submit, 4)))
""",
}
"""How runs of the same kind are sent at once."""

COLD = {
    "raw sbatch": ("sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", "--wrap=true"),
    "ours, hpj submit": (str(PROJECT / ".venv/bin/hpj"), "submit", "-c", "true"),
}


def python_of(name: str, peers: str) -> str:
    """The interpreter for a way of sending."""
    return peers if name.startswith(PEERS) else sys.executable


def in_process(code: str, python: str, environment: dict[str, str], work: Path) -> list[float]:
    """What the calls in one process took, in ms."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        said = printed([python, "-c", LOOP + code, folder], environment, work)
    return [seconds * 1000 for seconds in json.loads(said.splitlines()[-1])]


def quiet(cluster: SlurmTestbed) -> None:
    """What was sent takes no time from what comes next."""
    cluster.exec("ctl", "scancel", "--user=root")
    end = time.monotonic() + ENDING
    while cluster.exec("ctl", "squeue", "--noheader"):
        if time.monotonic() > end:
            raise TimeoutError("cancelled jobs stay in the queue")
        time.sleep(0.2)
    time.sleep(0.5)


def cold(name: str, environment: dict[str, str], work: Path) -> float:
    """A command's time, in ms."""
    begin = time.perf_counter()
    printed(COLD[name], environment, work)
    return (time.perf_counter() - begin) * 1000


def measure(cluster: SlurmTestbed, rounds: int) -> list[dict[str, Any]]:
    """Medians, one round of each way after the other."""
    peers = peers_python("slurm-peers", *PEERS)
    first: dict[str, list[float]] = {name: [] for name in (*WAYS, *ARRAYS)}
    warm: dict[str, list[float]] = {name: [] for name in (*WAYS, *ARRAYS)}
    alone: dict[str, list[float]] = {name: [] for name in COLD}
    for _ in range(rounds):
        for name, code in (WAYS | ARRAYS).items():
            with user_of(cluster) as (home, environment):
                took = in_process(code, python_of(name, peers), environment, home)
            first[name].append(took[0])
            warm[name].append(median(took[1:]))
            quiet(cluster)
        for name in COLD:
            with user_of(cluster) as (home, environment):
                alone[name].append(cold(name, environment, home))
            quiet(cluster)
    rows = [
        {"what": name, "first, ms": round(median(first[name])), "warm, ms": round(median(warm[name]))} for name in first
    ]
    rows += [{"what": f"{name}, cold", "first, ms": round(median(found))} for name, found in alone.items()]
    rows += [{"what": f"{name} {version_of(peers, name)}"} for name in PEERS]
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    rounds = 1 if options.quick else ROUNDS
    with running() as cluster:
        rows = measure(cluster, rounds)
    report(options, f"Submit to Slurm, median of {rounds}", rows)


if __name__ == "__main__":
    main()
