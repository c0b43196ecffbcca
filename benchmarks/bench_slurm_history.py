"""The accounting of a Slurm cluster with 1,000,000 jobs in a month: our own time to the first part and to the last, memory, and calls.

The cluster's sacct is a stand-in that prints a million rows by its --starttime and --endtime, as a real slurmdbd with so many rows takes long to fill;
the time that it takes is not ours and is not counted.

python benchmarks/bench_slurm_history.py [--json] [--quick]
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from log_fixtures import ROUNDS, SMALL, arguments, median, memory, report
from page_fixtures import row

JOBS = 5_000 if SMALL else 1_000_000
SPAN_S = 30 * 86_400
RUNNING = 20 if SMALL else 2_000
SACCT = """\
#!{python} -SE
import sys

with open({calls!r}, "a") as file:
    file.write(".")
JOBS, SPAN, RUNNING, NOW = {jobs}, {span}, {running}, {now}
options = dict(word[2:].split("=", 1) for word in sys.argv if "=" in word)
fields, delimiter = options["format"].split(","), options["delimiter"]
first, last = (int(options[name][3:]) for name in ("starttime", "endtime"))
every = SPAN / JOBS
if options["state"] == "R":
    numbers = range(JOBS, JOBS + RUNNING)
else:  # number n ended n * every seconds before now
    numbers = range(max(0, int((NOW - last) / every)), min(JOBS, int((NOW - first) / every) + 1))
template = delimiter.join("{{" + name + "}}" for name in fields) + "\\n"
for n in numbers:
    end = NOW - int(n * every)
    if options["state"] != "R" and not first <= end <= last:
        continue
    sys.stdout.write(template.format(
        JobID=JOBS - n, JobIDRaw=JOBS - n, State="COMPLETED" if n < JOBS else "RUNNING",
        ExitCode="0:0", User=f"user{{n % 211}}", Account=f"team{{n % 17}}", QOS="normal",
        Partition="gpu", Priority=1000 + n % 999, TimelimitRaw=1440, NNodes=1 + n % 4,
        NodeList=f"gpu-[{{n % 500}}-{{n % 500 + n % 4}}]", AllocCPUS=96,
        AllocTRES=f"billing=96,cpu=96,gres/gpu:h100={{n % 9}},gres/gpu={{n % 9}},mem=900G,node={{1 + n % 4}}",
        Submit=end - 9000 - n % 7000, Start=end - 3000 - n % 5000, Comment="",
        WorkDir=f"/fsx/home/user{{n % 211}}/experiments/{{n % 1013}}", JobName=f"train-{{n % 97}}",
        End=end if n < JOBS else "Unknown",
    ))
"""
"""The stand-in."""


async def measure() -> dict[str, float]:
    """One reading of the whole month, in a new process."""
    from hyperpod_jlab.core.config import Settings
    from hyperpod_jlab.core.validation import parse
    from hyperpod_jlab.engines.protocol import require
    from hyperpod_jlab.run.services import Hyperpod

    folder = Path(sys.argv[2])
    cluster = {"orchestrator": "slurm", "commands": str(folder / "bin")}
    settings = {"default_cluster": "big", "storage": {"path": str(folder)}, "clusters": {"big": cluster}}
    engine = Hyperpod(parse(Settings, settings)).engines.get("big")
    now = int((folder / "now").read_text())
    engine.tables  # noqa: B018 - what the server has imported anyway
    before, begin, clock = memory()["VmRSS"], time.process_time(), time.perf_counter()
    first, count, parts = 0.0, 0, 0
    async for jobs in require(engine.history, engine, "").jobs_between(now - SPAN_S, now + 1):
        if not count and jobs:
            first = time.process_time() - begin
        count, parts = count + len(jobs), parts + 1
    return {
        "count": count,
        "parts": parts,
        "first": first,
        "all": time.process_time() - begin,
        "wall": time.perf_counter() - clock,
        "memory": memory()["VmHWM"] - before,
        "calls": (folder / "calls").stat().st_size,
    }


def standing_in(folder: Path) -> None:
    """Make the cluster's commands."""
    (folder / "bin").mkdir()
    now = int(time.time())
    (folder / "now").write_text(str(now))
    values = {"jobs": JOBS, "span": SPAN_S, "running": RUNNING, "now": now}
    sacct = SACCT.format(python=sys.executable, calls=str(folder / "calls"), **values)
    others = dict.fromkeys(("squeue", "sinfo", "scontrol", "sacctmgr"), "#!/bin/sh\n")
    for name, program in {**others, "sacct": sacct}.items():
        (folder / "bin" / name).write_text(program)
        (folder / "bin" / name).chmod(0o755)


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__)
    found: list[dict[str, float]] = []
    for _ in range(1 if options.quick else ROUNDS):
        with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
            folder = Path(name)
            standing_in(folder)
            variables = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
            command = [sys.executable, __file__, "--measure", name]
            done = subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE)
            found.append(json.loads(done.stdout))
    assert all(JOBS <= one["count"] + 1 <= JOBS + RUNNING + 1 for one in found), found

    def of(key: str) -> float:
        return median(one[key] for one in found)

    rows: list[dict[str, Any]] = [
        row("executions", f"{of('count'):,.0f}"),
        row("our own time to the first part, ms", round(of("first") * 1000)),
        row("our own time for all, s", round(of("all"), 1)),
        row("with sacct, s", round(of("wall"), 1)),
        row("memory at the highest, MB", f"+{of('memory'):.0f}"),
        row("calls of sacct", round(of("calls"))),
    ]
    report(options, f"{JOBS:,} jobs of a Slurm cluster in a month, median of {len(found)}", rows)


if __name__ == "__main__":
    if "--measure" in sys.argv:
        print(json.dumps(asyncio.run(measure())))
    else:
        main()
