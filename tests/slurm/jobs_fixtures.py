"""Jobs as users send them: with sbatch, past the package."""

from __future__ import annotations

import time

from tests.slurm.cluster import SlurmTestbed

DEADLINE = 30.0


def sbatch(cluster: SlurmTestbed, *options: str, user: str | None = None, wait: str = "") -> str:
    """Send a job that sleeps; its id.

    Args:
        cluster: Where to.
        options: Of sbatch.
        user: Who sends it.
        wait: The state to wait for, such as ``RUNNING``.
    """
    words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", "--wrap=sleep 300"]
    job = cluster.exec("ctl", *words, *options, user=user).strip()
    end = time.monotonic() + DEADLINE
    while wait and wait != (state := cluster.exec("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()):
        assert time.monotonic() < end, f"job {job} is {state}, never {wait}"
        time.sleep(0.1)
    return job


def all_answer(cluster: SlurmTestbed) -> None:
    """Wait until no node is said to be silent: after a resume one is, until the controller has heard of it."""
    end = time.monotonic() + DEADLINE
    while "*" in (states := cluster.exec("ctl", "sinfo", "-h", "-N", "-o", "%T")):
        assert time.monotonic() < end, f"a node does not answer: {states.split()}"
        time.sleep(0.2)
