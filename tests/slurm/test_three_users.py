"""Whose runs they are: one user submits, jobs run as a user, a third one looks; each has a uid of their own."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.slurm.cluster import USERS, SlurmTestbed

HPJ = Path(sys.executable).with_name("hpj")


class Person:
    """A user of the cluster at a shell of the controller's host."""

    def __init__(self, slurm: SlurmTestbed, user: str, partition: Path, config: Path) -> None:
        self._slurm = slurm
        self._user = user
        self._config = config
        lines = [
            'default_cluster = "ml"',
            "[storage]",
            f"path = {json.dumps(str(partition))}",
            "[clusters.ml]",
            'orchestrator = "slurm"',
            f"slurm_conf = {json.dumps(slurm.environment['SLURM_CONF'])}",
            f"storage = {json.dumps(str(slurm.partition_on_nodes / partition.name))}",
            f"python = {json.dumps(slurm.python_on_nodes)}",
        ]
        config.write_text("\n".join(lines))

    def hpj(self, *words: str) -> CompletedProcess[str]:
        """Run ``hpj``."""
        return self._slurm.run(
            "ctl", "env", f"HYPERPOD_CONFIG={self._config}", str(HPJ), *words, user=self._user, timeout=90
        )


@pytest.fixture
def folder(slurm_cluster: SlurmTestbed) -> Path:
    """alice's own folder, which nobody else may enter."""
    folder = slurm_cluster.partition / "alices"
    folder.mkdir(exist_ok=True)
    os.chown(folder, USERS["alice"], USERS["alice"])
    folder.chmod(0o700)
    return folder


def _person(slurm: SlurmTestbed, user: str, partition: Path) -> Person:
    return Person(slurm, user, partition, slurm.partition / f"{user}.toml")


def test_a_run_is_its_submitters(slurm_cluster: SlurmTestbed, folder: Path):
    alice = _person(slurm_cluster, "alice", folder)
    sent = alice.hpj(
        *("submit", "--account", "research", "--time-limit", "5m", "--follow"),
        *("--no-project-files", "-c", 'echo "uid $(id -u)"'),
    )
    assert sent.returncode == 0, sent.stderr
    assert f"uid {USERS['alice']}" in sent.stdout
    owners = {path.stat().st_uid for path in folder.rglob("*")}
    assert owners == {USERS["alice"]}


def test_another_one_cannot_use_the_folder(slurm_cluster: SlurmTestbed, folder: Path):
    bob = _person(slurm_cluster, "bob", folder)
    sent = bob.hpj("submit", "--no-project-files", "-c", "true")
    assert sent.returncode == 4
    assert "ask its owner for access" in sent.stderr
    assert slurm_cluster.exec("ctl", "squeue", "-h", "-u", "bob") == ""


def test_an_account_that_is_not_ones_own_is_refused(slurm_cluster: SlurmTestbed, folder: Path):
    alice = _person(slurm_cluster, "alice", folder)
    sent = alice.hpj("submit", "--account", "root", "--no-project-files", "-c", "true")
    assert sent.returncode == 2
    assert "alice has no account 'root' on the cluster" in sent.stderr
