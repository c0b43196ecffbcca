"""What real versions of Slurm answered: recorded once, read by the tests of pure parsers.

python -m tests.slurm.recorded VERSION BIN     # anew, from the cluster whose commands are in BIN (SLURM_CONF names it)
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hyperpod_jlab.engines.slurm import jobs as job
from hyperpod_jlab.engines.slurm import tables as nodes
from hyperpod_jlab.engines.slurm import tables as queues
from hyperpod_jlab.engines.slurm.rows import long_format

FOLDER = Path(__file__).parent / "recorded"
VERSIONS = ("22.05", "24.11")
MARK = "\x1e0123456789ab"

_COMMANDS = {
    "nodes": ["sinfo", "--Node", "--noheader", "--all", f"--Format={long_format(MARK, nodes.FIELDS)}"],
    "jobs": ["squeue", "--noheader", "--all", "--states=all", f"--Format={long_format(MARK, job.FIELDS)}"],
    "queues": list(queues.COMMAND),
}  # fmt: skip


def recorded(version: str, name: str) -> str:
    """What a version answered when it was asked for its ``nodes``, ``jobs`` or ``queues``."""
    return (FOLDER / f"{name}-{version}.txt").read_bytes().decode()


def record(version: str, commands: Path) -> None:
    """Ask a cluster anew."""
    environment = {**os.environ, "SLURM_TIME_FORMAT": "%s"}
    for name, argv in _COMMANDS.items():
        done = subprocess.run([commands / argv[0], *argv[1:]], env=environment, capture_output=True, check=True)
        (FOLDER / f"{name}-{version}.txt").write_bytes(done.stdout)


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
