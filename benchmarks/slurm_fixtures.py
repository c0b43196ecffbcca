"""What the Slurm benchmarks share: a real Slurm of the testbed's, users' homes and configuration, peers in environments of their own, long queues."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(PROJECT), str(PROJECT / "ui-tests")]

import lab_server  # noqa: E402
from bench_log_socket import places  # noqa: E402
from lab_server import LabServer  # noqa: E402
from slurm_lab import CLUSTER, config_for  # noqa: E402

from tests.slurm.cluster import SlurmTestbed, running  # noqa: E402

__all__ = ["CLUSTER", "LabServer", "SlurmTestbed", "config_for", "running"]

PEERS = ("submitit", "torchx")
QUIETER = ("--option", "SchedulerParameters=batch_sched_delay=3,sched_interval=60,bf_interval=30")
"""How often Slurm looks at its queue unless told (man slurm.conf), for long queues: with the testbed's haste it would do nothing else."""

_FILL = """\
one() {
  set -- $1
  sbatch --quiet --output=/dev/null --chdir=/tmp --job-name="train-$(($1 % 97))" --time="$((60 + $1 % 600))" \\
    --nodes="$((1 + $1 % 4))" --gpus-per-node="$((1 + $1 % 8))" --nice="$(($1 % 50))" $2 --wrap=true >/dev/null
}
export -f one
sbatch --output=/dev/null --chdir=/tmp --nodes=4 --exclusive --wrap="sleep 100000"
seq 2 "$0" | sed 's/[02468]$/& --hold/' | xargs -P 4 -d '\\n' -n 1 bash -c 'one "$0"'
"""
"""One job that has all nodes, and then as many as make up the count that the script is told, half of them held."""


@contextmanager
def user_of(cluster: SlurmTestbed) -> Iterator[tuple[Path, dict[str, str]]]:
    """The home and the environment of a user whose default cluster is this one."""
    with tempfile.TemporaryDirectory(prefix="hyperpod-bench-") as name:
        home = Path(name)
        config = home / "config.toml"
        config.write_text(f'default_cluster = "{CLUSTER}"\n{config_for(cluster)}')
        yield home, places(home) | cluster.environment | {"HYPERPOD_CONFIG": str(config)}


@contextmanager
def lab_of(python: str | None) -> Iterator[None]:
    """Within, JupyterLab is that of another environment."""
    before = lab_server.PYTHON
    lab_server.PYTHON = python or before
    yield
    lab_server.PYTHON = before


def peers_python(folder: str, *packages: str) -> str:
    """The interpreter of an environment with these packages, which is made when it is not there."""
    python = PROJECT / ".bench" / folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parents[1])], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(install, check=True)
    return str(python)


def version_of(python: str, package: str) -> str:
    """The version of a package that is installed there."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return printed([python, "-c", code])


def printed(command: Sequence[str], environment: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """What a command prints, without the newline at the end.

    Raises:
        RuntimeError: It fails; with its complaint.
    """
    variables = environment or dict(os.environ)
    done = subprocess.run(command, check=False, env=variables, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[:3]}: {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout.strip()


def fill(cluster: SlurmTestbed, count: int) -> None:
    """Make the queue so long, every job with a record of its own: each costs an sbatch."""
    cluster.run("ctl", "bash", "-c", _FILL, str(count), timeout=1800).check_returncode()
    found = int(cluster.exec("ctl", "bash", "-c", "squeue --noheader | wc -l"))
    assert found == count, found
