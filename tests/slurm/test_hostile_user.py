"""alice's jobs on a partition that she shares with bob, who does what Slurm and the kernel let him: real users, real jobs.

`tests/security` has the same on the local cluster, and more of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.security.attacks import program
from tests.slurm.cluster import TESTBED, USERS, SlurmTestbed
from tests.slurm.test_three_users import HPJ

DEADLINE = 90.0
_ATTACK = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.security import attacks
name, *words = json.loads(sys.stdin.read())
print(json.dumps(getattr(attacks, name)(*[Path(one) if one.startswith("/") else one for one in words]), default=str))
"""


class Team:
    """Two users of the cluster with one partition."""

    def __init__(self, slurm: SlurmTestbed) -> None:
        self.slurm = slurm
        self.partition = slurm.partition / "team"
        self.canaries = slurm.partition / "canaries"
        for folder in (self.partition, self.canaries):
            folder.mkdir()
            folder.chmod(0o1777)
        lines = [
            'default_cluster = "ml"',
            "[storage]",
            f"path = {json.dumps(str(self.partition))}",
            "shared = true",
            "[clusters.ml]",
            'orchestrator = "slurm"',
            f"slurm_conf = {json.dumps(slurm.environment['SLURM_CONF'])}",
            f"storage = {json.dumps(str(slurm.partition_on_nodes / 'team'))}",
            f"python = {json.dumps(slurm.python_on_nodes)}",
        ]
        self.config = slurm.partition / "team.toml"
        self.config.write_text("\n".join(lines))

    def hpj(self, user: str, *words: str) -> CompletedProcess[str]:
        """Run ``hpj`` as one of them."""
        command = ("env", f"HYPERPOD_CONFIG={self.config}", str(HPJ), *words)
        done = self.slurm.run("ctl", *command, user=user, timeout=DEADLINE)
        said = done.stdout + done.stderr
        assert "Traceback" not in said, said
        assert "internal error" not in said, said
        return done

    def attack(self, name: str, *words: str | Path) -> bool:
        """Call a function of `attacks` as bob; whether the kernel let it be done."""
        done = self.slurm.run(
            "ctl",
            self.slurm.python_on_nodes,
            "-c",
            _ATTACK,
            TESTBED.parent,
            user="bob",
            input=json.dumps([name, *map(str, words)]),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip() not in {"false", "[]"}

    def job(self, run_id: str, user: str = "alice") -> str:
        """The scheduler's id of a run."""
        shown = self.hpj(user, "show", run_id, "--json")
        assert shown.returncode == 0, shown.stderr
        return str(json.loads(shown.stdout)["scheduler_id"])

    def state(self, run_id: str) -> str:
        """A run's state."""
        return str(json.loads(self.hpj("alice", "show", run_id, "--json").stdout)["state"])

    def ended(self, run_id: str) -> str:
        """The state in which a run ended."""
        end = time.monotonic() + DEADLINE
        while (state := self.state(run_id)) not in {"succeeded", "failed", "cancelled"}:
            assert time.monotonic() < end, state
            time.sleep(0.5)
        return state

    @property
    def betrayed(self) -> list[str]:
        """What of bob's ran as alice."""
        return [path.name for path in self.canaries.iterdir() if path.stat().st_uid == USERS["alice"]]

    @property
    def launcher(self) -> str:
        """A launcher of bob's, which tells as whom it ran."""
        return program(self.slurm.partition_on_nodes / "canaries", "launcher")


@pytest.fixture
def team(slurm: SlurmTestbed) -> Iterator[Team]:
    """One for a test; nothing of it stays on the partition."""
    made = Team(slurm)
    yield made
    import shutil

    shutil.rmtree(made.partition)
    shutil.rmtree(made.canaries)
    made.config.unlink()


SENT = ("submit", "--account", "research", "--time-limit", "5m", "--no-project-files", "--run-id")


def test_a_waiting_job_runs_what_its_user_sent(team: Team) -> None:
    assert team.attack("take_common_folders", team.partition) is not None
    sent = team.hpj("alice", *SENT, "waits", "--slurm", "hold", "-c", "echo mine; id -u")
    assert sent.returncode == 0, sent.stderr
    bundle = Path(json.loads(team.hpj("alice", "show", "waits", "--json").stdout)["bundle"])
    swapped = team.attack("swap", bundle, team.launcher)
    assert team.hpj("alice", "release", "waits").returncode == 0
    ended = team.ended("waits")
    assert team.betrayed == []
    assert not swapped
    assert ended == "succeeded"
    assert f"mine\n0|{USERS['alice']}\n" in team.hpj("alice", "logs", "waits").stdout


def test_an_id_that_another_user_took_does_not_send_that_users_bundle(team: Team) -> None:
    words = ("--name", "nightly", "-c", "echo mine")
    first = team.hpj("alice", *SENT, "nightly-1", "--wait", *words)
    assert first.returncode == 0, first.stderr
    template = Path(json.loads(team.hpj("alice", "show", "nightly-1", "--json").stdout)["bundle"])
    _own_folder(team)
    assert team.attack("hijack", template, "nightly-2", team.partition, team.launcher)
    second = team.hpj("alice", *SENT, "nightly-2", "--json", "--wait", *words)
    assert team.betrayed == []
    if second.returncode == 0:
        assert "mine" in team.hpj("alice", "logs", "nightly-2").stdout
    else:
        assert json.loads(second.stderr.splitlines()[-1])["code"] == "run_id_taken"
    squeue = team.slurm.exec("ctl", "squeue", "-h", "-o", "%u %j")
    assert "bob" not in squeue


def test_a_run_that_names_ones_own_job_acts_on_nothing(team: Team) -> None:
    """bob's run says that it is alice's, and that its job is one which she has."""
    sent = team.hpj("alice", *SENT, "precious", "--slurm", "hold", "-c", "true")
    assert sent.returncode == 0, sent.stderr
    job = team.job("precious")
    template = _own_folder(team)
    assert team.attack("pose", template, "posing", team.partition, job)
    assert team.state("precious") == "waiting"
    for action in ("cancel", "hold", "release", "requeue"):
        acted = team.hpj("alice", action, "posing", "--json")
        assert acted.returncode != 0, acted.stdout
    assert team.state("precious") == "waiting"
    assert team.slurm.exec("ctl", "squeue", "-h", "-j", job, "-o", "%t %r").split() == ["PD", "JobHeldUser"]
    listed = json.loads(team.hpj("alice", "runs", "--json").stdout)["runs"]
    assert [run["run_id"] for run in listed] == ["precious"]
    assert team.hpj("alice", "cancel", "precious").returncode == 0
    assert team.ended("precious") == "cancelled"


def test_another_users_job_is_not_acted_on(team: Team) -> None:
    sent = team.hpj("alice", *SENT, "precious", "--slurm", "hold", "-c", "true")
    assert sent.returncode == 0, sent.stderr
    job = team.job("precious")
    for words in (("precious",), ("--jobs", job)):
        for action in ("cancel", "hold", "release"):
            acted = team.hpj("bob", action, *words, "--json")
            assert acted.returncode != 0, acted.stdout
    assert team.state("precious") == "waiting"
    assert team.hpj("alice", "cancel", "precious").returncode == 0


def _own_folder(team: Team) -> Path:
    """A bundle of bob's own, by a run of his."""
    sent = team.hpj("bob", *SENT, "template", "--wait", "-c", "true")
    assert sent.returncode == 0, sent.stderr
    bundle = Path(json.loads(team.hpj("bob", "show", "template", "--json").stdout)["bundle"])
    assert bundle.stat().st_uid == USERS["bob"]
    return bundle
