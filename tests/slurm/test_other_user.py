"""Jobs that run as another user than the one who submits, on a private partition: three user numbers on a real cluster."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

import pytest

from tests.session import Answer, write_config
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import settings_for


class Submitter:
    """alice on a machine of her own, whose jobs run as bob."""

    def __init__(self, cluster: SlurmTestbed) -> None:
        self.cluster = cluster
        home = cluster.partition.parent / "alices"
        home.mkdir(mode=0o700)
        key = home / "key"
        shutil.copy(cluster.ssh_key, key)
        config = home / "ssh_config"
        text = cluster.ssh_config.read_text().replace(str(cluster.ssh_key), str(key))
        known = cluster.folder / "ssh" / "known_hosts"
        if known.exists():
            shutil.copy(known, home / "known_hosts")
            text = text.replace(str(known), str(home / "known_hosts"))
        config.write_text(text)
        settings = settings_for(cluster, "ssh", login_nodes=["login1"], user="bob", ssh_config=str(config))
        self._config = home / "config.toml"
        write_config(settings, self._config)
        for path in (home, *home.iterdir()):
            shutil.chown(path, 20001, 20001)
            path.chmod(0o700 if path.is_dir() else 0o600)

    def hpj(self, *words: str) -> Answer:
        """Her command of ours."""
        done = self.cluster.run(
            "ctl",
            *(sys.executable, "-m", "hyperpod_jlab.cli.main", *words),
            user="alice",
            environment={"HYPERPOD_CONFIG": str(self._config)},
        )
        return Answer(done.returncode, done.stdout, done.stderr, 0.0)


@pytest.fixture
def alice(slurm_start: Callable[..., SlurmTestbed]) -> Submitter:
    people = "alice:20001 bob:20002 carol:20003"
    return Submitter(slurm_start("--users", people, "--login", "1", nodes=1))


def test_her_runs_are_hers_and_the_jobs(alice: Submitter) -> None:
    command = "id -un; umask; echo made > made.txt; mkdir sub; [ $HYPERPOD_ATTEMPT = 2 ]"
    words = ("submit", "--no-project-files", "--run-id", "run-1", "--max-restarts", "1")
    sent = alice.hpj(*words, "--env", "A=b", "--wait", "-c", command)
    assert (sent.code, sent.out) == (0, "run-1\n"), sent.err
    logs = alice.hpj("logs", "run-1", "--attempt", "2")
    assert logs.out.splitlines()[0] == "0|bob"
    (bundle,) = alice.cluster.partition.glob(".hyperpod/runs/*/run-1")
    made = [*bundle.rglob("*")]
    assert {path.stat().st_uid for path in made} == {20001, 20002}
    there = alice.cluster.partition_on_nodes / bundle.relative_to(alice.cluster.partition)
    for host in ("node1", "login1"):
        for look in (("ls", str(there)), ("cat", str(there / "spec.json"))):
            assert alice.cluster.run(host, *look, user="bob").returncode == 0
            assert alice.cluster.run(host, *look, user="carol").returncode != 0
    assert alice.cluster.run("node1", "ls", str(there.parents[2]), user="bob").returncode != 0
    for path in made:
        assert (path.stat().st_mode & 0o007) == 0, path
    time.sleep(1.5)
    cleaned = alice.hpj("clean", "--older", "1s", "--yes")
    assert cleaned.code == 0, cleaned.err
    assert not bundle.exists()


@pytest.mark.full
def test_her_records_reach_the_job_and_its_end_reaches_her(alice: Submitter) -> None:
    sent = alice.hpj("submit", "--no-project-files", "--run-id", "run-2", "-c", "sleep 600")
    assert sent.code == 0, sent.err
    cancelled = alice.hpj("cancel", "run-2")
    assert cancelled.code == 0, cancelled.err
    ended = any('"cancelled"' in alice.hpj("show", "run-2", "--json").out for _ in range(20))
    assert ended
