"""``hpj nodes``, ``queues`` and ``jobs`` on a real cluster: readable in a terminal of 120 columns, whole in a pipe."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from hyperpod_jlab.core.config import Settings
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import settings_for
from tests.slurm.jobs_fixtures import all_answer, sbatch

HPJ = Path(sys.executable).with_name("hpj")
WIDTH = 120


@pytest.fixture
def environment(slurm: SlurmTestbed, tmp_path: Path) -> dict[str, str]:
    """Of a user whose only cluster is the shared one."""
    all_answer(slurm)
    settings: Settings = settings_for(slurm)
    slurm_settings = settings.clusters["slurm"].model_dump(exclude_none=True)
    lines = ['default_cluster = "slurm"', "[storage]", f'path = "{slurm.partition}"']
    lines.append("[clusters.slurm]")
    lines += [f"{name} = {json.dumps(value)}" for name, value in slurm_settings.items()]
    config = tmp_path / "config.toml"
    config.write_text("\n".join(lines) + "\n")
    return {
        **os.environ,
        "HYPERPOD_CONFIG": str(config),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TERM": "xterm",
        "NO_COLOR": "1",
    }


def in_terminal(environment: dict[str, str], *words: str) -> list[str]:
    """The lines that a terminal of 120 columns shows."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    # These would count before what the terminal says of itself.
    own = {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}
    process = subprocess.Popen([HPJ, *words], env=own, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    while True:
        try:
            shown += os.read(leader, 65536)
        except OSError:
            break
    assert process.wait(timeout=60) == 0, shown
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()


def in_pipe(environment: dict[str, str], *words: str) -> str:
    """What a script gets."""
    done = subprocess.run([HPJ, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nodes(slurm: SlurmTestbed, environment: dict[str, str]) -> None:
    sbatch(slurm, "--nodelist=node1", "--gpus-per-node=2", wait="RUNNING")
    slurm.exec("ctl", "scontrol", "update", "NodeName=node2", "State=DRAIN", "Reason=bad = fan")
    head, *rows = in_terminal(environment, "nodes")
    assert head.split("  ")[0] == "NODE"
    assert "INSTANCE" not in head
    assert max(map(len, [head, *rows])) <= WIDTH
    first = next(row for row in rows if row.startswith("node1"))
    second = next(row for row in rows if row.startswith("node2"))
    assert re.search(r"\bup\b +h100 6/8 +0-1 +15/16 ", first)
    assert re.search(r"\bdrained\b +h100 0/8 ", second)
    assert "bad = fan (root, " in second


def test_queues(slurm: SlurmTestbed, environment: dict[str, str]) -> None:
    del slurm
    head, *rows = in_terminal(environment, "queues")
    assert max(map(len, [head, *rows])) <= WIDTH
    assert re.search(r"^dev\* +up +4/4 +h100 32/32 +64/64 +1h 00m +10m 00s ", rows[0])
    assert rows[0].endswith("everybody")


def test_jobs(slurm: SlurmTestbed, environment: dict[str, str]) -> None:
    job = sbatch(slurm, "--hold", "--gpus=2", "--time=30", "--job-name=" + "long " * 20)
    head, *rows = in_terminal(environment, "jobs")
    row = next(row for row in rows if row.startswith(f"{job} "))
    assert max(map(len, [head, *rows])) <= WIDTH
    assert re.search(r"root +held +dev +1 +2 +1 +30m 00s", row)
    assert "its user held it" in row


def test_all_of_it_is_in_a_pipe(slurm: SlurmTestbed, environment: dict[str, str]) -> None:
    name = "two\nlines " + "x" * 150
    job = sbatch(slurm, "--hold", f"--job-name={name}")
    entries = json.loads(in_pipe(environment, "jobs", "--json"))["jobs"]
    assert next(entry["name"] for entry in entries if entry["scheduler_id"] == job) == name
    table = in_pipe(environment, "jobs")
    assert "x" * 150 in table
    assert len([line for line in table.splitlines() if line.startswith(f"{job} ")]) == 1


def test_what_ended_is_shown_when_asked_for(slurm: SlurmTestbed, environment: dict[str, str]) -> None:
    job = sbatch(slurm, "--hold")
    slurm.exec("ctl", "scancel", job)
    sbatch(slurm, "--hold")
    assert f'"scheduler_id": "{job}"' not in in_pipe(environment, "jobs", "--json")
    ended = json.loads(in_pipe(environment, "jobs", "--ended", "--json"))["jobs"]
    assert next(one["state"] for one in ended if one["scheduler_id"] == job) == "cancelled"
