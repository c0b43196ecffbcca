"""Several people on one cluster: what they see of each other's runs, what they may not do, and what the cluster lets them do at all."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.session import Answer, write_config
from tests.slurm.cluster import ONE, SlurmTestbed, running
from tests.slurm.hyperpod_fixtures import CLUSTER, settings_for

OPTIONS = (
    *("--users", "alice:20001 bob:20002 carol:20003", "--dbd", "--accounts", "research:alice,bob"),
    *("--qos", "single MaxJobsPerUser=1"),
    *("--qos", "strict MaxTRESPerJob=cpu=2 Flags=DenyOnLimit"),
)


class People:
    """Users of one cluster who use our command line on its controller's host, with a partition that they share."""

    def __init__(self, cluster: SlurmTestbed) -> None:
        self.cluster = cluster
        self._config = cluster.partition.parent / "shared.toml"
        settings = settings_for(cluster)
        slurm = settings.clusters[CLUSTER].model_copy(update={"commands": None, "slurm_conf": None})
        storage = settings.storage.model_copy(update={"shared": True})
        changed = {"clusters": {CLUSTER: slurm}, "storage": storage}
        write_config(settings.model_copy(update=changed), self._config)
        self._config.chmod(0o644)

    def hpj(self, user: str, *words: str) -> Answer:
        """A user's command of ours."""
        done = self.cluster.run(
            "ctl",
            *(sys.executable, "-m", "hyperpod_jlab.cli.main", *words),
            user=user,
            environment={"HYPERPOD_CONFIG": str(self._config)},
        )
        return Answer(done.returncode, done.stdout, done.stderr, 0.0)

    def submit(self, user: str, command: str, *options: str) -> str:
        """A user's run; returns its id."""
        words = ("submit", "--no-project-files", "--queue", "batch", "--time-limit", "1h")
        answer = self.hpj(user, *words, *options, "-c", command)
        assert answer.code == 0, answer.err
        return answer.out.strip()

    def refused(self, user: str, *options: str) -> dict[str, Any]:
        """The error of a submit that is refused."""
        words = ("submit", "--no-project-files", "--json", *options, "-c", "true")
        answer = self.hpj(user, *words)
        assert (answer.code, answer.out) == (2, "")
        return answer.error

    def show(self, user: str, run_id: str) -> dict[str, Any]:
        """A run as a user sees it."""
        answer = self.hpj(user, "show", run_id, "--json")
        assert answer.code == 0, answer.err
        found: dict[str, Any] = json.loads(answer.out)
        return found

    def until(self, user: str, run_id: str, *states: str) -> dict[str, Any]:
        """The run once it is in one of these states."""
        run: dict[str, Any] = {}
        end = time.monotonic() + 60
        while time.monotonic() < end:
            run = self.show(user, run_id)
            if run["state"] in states:
                return run
            time.sleep(0.2)
        raise AssertionError(f"never {states}: {run}")


@pytest.fixture(scope="module")
def bed(slurm_version: str) -> Iterator[SlurmTestbed]:
    """A cluster where carol has no account."""
    with ONE.only(running(*OPTIONS, version=slurm_version, nodes=2)) as cluster:
        yield cluster


@pytest.fixture
def people(bed: SlurmTestbed) -> Iterator[People]:
    """Its users."""
    yield People(bed)
    bed.heal()


def test_runs_of_others_have_their_states_and_stay_theirs(people: People) -> None:
    mine = people.submit("alice", "sleep 600")
    theirs = people.submit("bob", "echo hello; sleep 600")
    people.until("bob", mine, "running")
    people.until("alice", theirs, "running")
    listed = json.loads(people.hpj("alice", "runs", "--all-users", "--json").out)["runs"]
    assert {run["run_id"]: (run["user"], run["state"]) for run in listed} == {
        mine: ("alice", "running"),
        theirs: ("bob", "running"),
    }
    answer = people.hpj("alice", "cancel", theirs, "--json")
    assert answer.code == 4
    assert "bob" in answer.error["message"]
    assert people.hpj("alice", "logs", theirs, "--rank", "0").out == "0|hello\n"
    assert people.hpj("bob", "cancel", theirs).code == 0
    assert people.until("alice", theirs, "cancelled")["state"] == "cancelled"


@pytest.mark.full
def test_a_job_that_claims_to_be_of_somebody_elses_run_changes_nothing(people: People) -> None:
    run_id = people.submit("alice", "sleep 600")
    people.until("alice", run_id, "running")
    waits = people.submit("alice", "true", "--slurm", "begin=now+1hour")
    for claimed in (run_id, waits):
        people.cluster.exec(
            "ctl",
            *("sbatch", "--comment", f"hyperpod:{claimed}", "-o", "/dev/null", "--chdir=/tmp"),
            *("-t", "1", "--wrap", "exit 7"),
            user="bob",
        )
    own = people.submit("bob", "true")
    people.until("bob", own, "succeeded")
    for user in ("alice", "bob", "carol"):
        assert people.show(user, run_id)["state"] == "running", user
        assert people.show(user, waits)["state"] == "waiting", user


def test_the_doctor_names_the_account_that_is_missing(people: People) -> None:
    checks = {}
    for user in ("alice", "carol"):
        answer = people.hpj(user, "doctor", "--cluster", CLUSTER, "--json")
        found = json.loads(answer.out)["checks"]
        checks[user] = next(check for check in found if check["key"] == "identity")
    assert checks["alice"]["level"] == "ok"
    assert "accounts: research" in checks["alice"]["evidence"]
    assert (checks["carol"]["level"], checks["carol"]["who"]) == ("fail", "admin")
    assert checks["carol"]["fix"].startswith("sacctmgr add user carol account=ACCOUNT")


class TestLimits:
    def test_who_has_no_account_is_told_before_anything_is_sent(self, people: People) -> None:
        error = people.refused("carol", "--queue", "batch")
        assert error["code"] == "no_association"
        assert error["hint"]
        assert json.loads(people.hpj("carol", "runs", "--json").out)["runs"] == []

    @pytest.mark.full
    def test_who_waits_for_a_limit_is_told_which(self, people: People) -> None:
        first = people.submit("alice", "sleep 600", "--qos", "single")
        people.until("alice", first, "running")
        second = people.submit("alice", "true", "--qos", "single")
        run = people.until("alice", second, "waiting")
        assert run["reason_code"] == "QOSMaxJobsPerUserLimit"
        assert "QoS" in run["reason"]

    def test_more_than_a_strict_limit_is_refused(self, people: People) -> None:
        error = people.refused("alice", "--queue", "batch", "--qos", "strict", "--cpus", "4")
        assert error["code"] == "qos_limit"

    @pytest.mark.full
    def test_a_run_whose_predecessor_fails_never_starts_and_says_so(self, people: People) -> None:
        first = people.submit("alice", "sleep 12; exit 3")
        second = people.submit("alice", "true", "--after", first)
        assert people.until("alice", second, "waiting")["reason_code"] == "Dependency"
        run = people.until("alice", second, "failed", "cancelled")
        assert (run["state"], run["reason_code"]) == ("failed", "dependency")
        assert run["reason"] == "a run that it depends on did not succeed"


@pytest.mark.full
def test_jobs_that_the_cluster_does_not_show_are_not_taken_for_lost(slurm_version: str) -> None:
    options = ("--users", "alice:20001 bob:20002", "--option", "PrivateData=jobs")
    with running(*options, version=slurm_version, nodes=1) as cluster:
        people = People(cluster)
        theirs = people.submit("bob", "sleep 600")
        people.until("bob", theirs, "running")
        time.sleep(70)  # so long a job may be on its way into the queue
        run = people.show("alice", theirs)
        assert (run["state"], run["reason_code"]) == ("running", None)
