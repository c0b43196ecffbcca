"""JupyterLab of a user of a real Slurm cluster, which the testbed starts on this machine."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab_server import LabServer, lab_server

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.slurm.cluster import SlurmTestbed

CLUSTER = "slurm"
TIMEOUT = 60.0


def config_for(cluster: SlurmTestbed, transport: str = "here", user: str = "", name: str = CLUSTER) -> str:
    """The configuration of a user of the cluster.

    Args:
        cluster: The cluster.
        transport: `here` (as root, which may do all) or `ssh`.
        user: Who one is on the login nodes, and who the runs run as.
        name: The cluster's name there.
    """
    keys: dict[str, object] = {
        "orchestrator": "slurm",
        "transport": transport,
        "storage": str(cluster.partition_on_nodes),
        "python": cluster.python_on_nodes,
        "commands": str(cluster.folder / "bin"),
        "slurm_conf": cluster.environment["SLURM_CONF"],
    }
    if transport == "ssh":
        del keys["slurm_conf"], keys["commands"]
        keys |= {"login_nodes": list(cluster.login_hosts), "ssh_config": str(cluster.ssh_config)}
        keys |= {"user": user} if user else {}
    # A text or a list in JSON is one in TOML too.
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    top = f"[storage]\npath = {json.dumps(str(cluster.partition))}\n[clusters.{name}]\n"
    return top + "\n".join(lines) + "\n"


@contextmanager
def slurm_lab(
    home: Path, cluster: SlurmTestbed, transport: str = "here", user: str = "", name: str = CLUSTER
) -> Iterator[LabServer]:
    """A server that knows this cluster and, as all do, the embedded one."""
    with lab_server(home, config=config_for(cluster, transport, user, name)) as server:
        yield server


def sbatch(cluster: SlurmTestbed, *options: str, user: str) -> str:
    """Send a job that sleeps by a user's own sbatch, past the package; its id."""
    words = ("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options)
    return cluster.exec("ctl", *words, "--wrap=sleep 300", user=user).strip()


def wait_for_job(cluster: SlurmTestbed, job: str, state: str) -> None:
    """Wait until a job is in a state of squeue's, such as `RUNNING`."""
    end = time.monotonic() + TIMEOUT
    while state != (found := look(cluster, job, "%T")):
        assert time.monotonic() < end, f"job {job} is {found}, never {state}"
        time.sleep(0.1)


def look(cluster: SlurmTestbed, job: str, letters: str) -> str:
    """What squeue says of a job."""
    return cluster.exec("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", letters).strip()
