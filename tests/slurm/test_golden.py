"""What ``hpj --json`` and the REST API say of runs on a real Slurm, frozen in golden files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.golden.frozen import Golden
from tests.golden.user import BAD_INPUT, Answers, User, by_rank, only, user_of, without
from tests.session import write_config
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, settings_for
from tests.slurm.jobs_fixtures import all_answer

pytestmark = pytest.mark.timeout(300)  # the first one waits for all runs that are shown

OWN = "golden"
"""The user's partition: a folder of the cluster's own."""

PROGRAM = """import os, sys

print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], *sys.argv[1:])
"""
NODES = ["--nodes", "2", "--processes-per-node", "2", "--gpus-per-node", "2", "--time-limit", "5m"]
SENT = {
    "trained": ["train.py", *NODES, "--env", "SEED=7", "--name", "train", "--", "--lr", "0.1"],
    "failed": ["-c", "echo no; exit 3", "--no-project-files"],
    "cancelled": ["-c", "echo on; sleep 600"],
    "waiting": ["-c", "true", "--slurm", "begin=now+2hours", "--time-limit", "10m"],
    "dependent": ["-c", "true", "--after", "waiting"],
    "swept": ["-c", "echo task $HYPERPOD_ARRAY_INDEX", "--array", "1-2%1"],
}
ENDED = ("trained", "failed", "cancelled", "swept")
SHOWN = (*ENDED, "swept.2", "waiting", "dependent")
USED = {"cpu_seconds", "accelerator_seconds", "elapsed", "max_memory"}
DISK = {"free", "total", "files_free", "kind", "mount", "source", "file_systems", "parents"}
VARYING = frozenset({"cost", "cpu_load", "cursor", "scheduler_calls", *USED})
#: Where jobs run depends on which others have just ended.
PLACED = {f"node{number}": "<node>" for number in range(1, 5)}
#: How far an order has come when it is answered depends on the moment.
at_rest = without("state", "reason", "reason_code", "attempts", "started_at", "ended_at")


@dataclass(frozen=True)
class World:
    """A user whose runs are as they stay."""

    cluster: SlurmTestbed
    user: User
    jobs: tuple[str, ...]


def until_said(cluster: SlurmTestbed, wanted: str, *words: str) -> None:
    """Wait until ``squeue`` says this."""
    end = time.monotonic() + 60
    while (said := cluster.exec("ctl", "squeue", "-h", *words).strip()) != wanted:
        assert time.monotonic() < end, said
        time.sleep(0.1)


def theirs(cluster: SlurmTestbed) -> str:
    """Send a job with sbatch and wait for its end; returns its number."""
    words = ("sbatch", "--parsable", "--job-name=theirs", f"--chdir={cluster.partition_on_nodes}")
    done = cluster.run("ctl", *words, input="#!/bin/bash\necho it was; exit 4\n")
    job = done.stdout.strip()
    until_said(cluster, "FAILED", "-t", "all", "-j", job, "-o", "%T")
    return job


def send_all(user: User) -> None:
    """Send the runs, and wait until they are as they stay."""
    (user.folder / "train.py").write_text(PROGRAM)
    for run_id, words in SENT.items():
        user.hpj("submit", "--run-id", run_id, *words).ok()
    user.says("cancelled")
    user.hpj("cancel", "cancelled").ok()
    user.ended(*ENDED)
    for run_id, reason in (("waiting", "BeginTime"), ("dependent", "Dependency")):
        until_reason(user, run_id, reason)


def until_reason(user: User, run_id: str, reason: str) -> None:
    """Wait until a run waits for this reason."""
    user.until(run_id, lambda run: run["reason_code"] == reason)


@pytest.fixture(scope="module")
def world(slurm_cluster: SlurmTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Runs of every kind."""
    cluster = slurm_cluster
    root = tmp_path_factory.mktemp("golden")
    all_answer(cluster)
    partition = cluster.partition / OWN
    partition.mkdir(mode=0o755)
    settings = settings_for(cluster, storage=str(cluster.partition_on_nodes / OWN))
    storage = settings.storage.model_copy(update={"path": str(partition)})
    config = root / "config.toml"
    write_config(settings.model_copy(update={"storage": storage}), config)
    version = cluster.exec("ctl", "scontrol", "--version").split()[-1]
    also = {str(root): "<root>", str(cluster.folder.parent): "<cluster>", version: "<slurm>"}
    also[cluster.python_on_nodes] = "<python>"
    try:
        with user_of(root, config, {}, also) as user:
            send_all(user)
            job = theirs(cluster)
            jobs = [user.hpj("show", run_id).ok()["scheduler_id"] for run_id in SENT]
            until_said(cluster, "", "-t", "R,CG")
            children = [f"{jobs[-1]}_1", f"{jobs[-1]}_2"]
            yield World(cluster, user, (*jobs, *children, job))
    finally:
        cluster.heal()


@pytest.fixture
def answers(world: World, golden: Golden) -> Answers:
    """Compares."""
    return Answers(world.user, golden, "slurm", VARYING)


def test_runs(answers: Answers, world: World) -> None:
    ours = only("runs", "run_id", *SENT)
    answers.hpj("runs", "runs", cut=ours, also=PLACED)
    answers.hpj("runs-failed", "runs", "--state", "failed", cut=ours, also=PLACED)
    answers.get("runs", "runs", ours, also=PLACED)


@pytest.mark.parametrize("run", SHOWN)
def test_a_run(answers: Answers, run: str) -> None:
    answers.hpj(f"show/{run}", "show", run, also=PLACED)
    answers.hpj(f"logs/{run}", "logs", run, cut=by_rank, also=PLACED)
    answers.get(f"runs/{run}/run", f"runs/{run}", also=PLACED)
    for part in ("spec", "usage", "access", "why"):
        answers.get(f"runs/{run}/{part}", f"runs/{run}/{part}", also=PLACED)


def test_more_of_runs(answers: Answers, world: World) -> None:
    answers.get("runs/swept/children", "runs/swept/children", also=PLACED)
    answers.get("runs/trained/script", "runs/trained/script")
    answers.get("runs/dependent/script", "runs/dependent/script")
    answers.hpj("why/waiting", "why", "waiting")
    answers.hpj("why/dependent", "why", "dependent")
    answers.hpj("why/ended", "why", "failed")


def test_tables(answers: Answers, world: World) -> None:
    ours = only("jobs", "scheduler_id", *world.jobs)

    def ended(answer: Any) -> Any:
        """Only the newest job with each id: Slurm used some ids before, in earlier tests."""
        newest = {one["scheduler_id"]: one for one in reversed(answer["jobs"])}
        return ours({**answer, "jobs": list(newest.values())})

    answers.hpj("clusters", "clusters", cut=only("clusters", "name", CLUSTER))
    answers.hpj("nodes", "nodes")
    answers.hpj("queues", "queues")
    answers.hpj("jobs", "jobs", cut=ours, also=PLACED)
    answers.hpj("jobs-ended", "jobs", "--ended", cut=ended, also=PLACED)
    answers.get("clusters", "clusters", only("clusters", "name", CLUSTER))
    for table in ("nodes", "queues", "choices"):
        answers.get(f"cluster/{table}", f"clusters/{CLUSTER}/{table}")
    path = f"clusters/{CLUSTER}/jobs?limit=1000"
    answers.get("cluster/jobs", path, lambda answer: {**ours(answer), "total": None}, also=PLACED)


def test_storage(answers: Answers) -> None:
    answers.hpj("storage", "storage", "--no-aws", varying=DISK)


def test_doctor(answers: Answers) -> None:
    answers.hpj("doctor", "doctor", "--cluster", CLUSTER, cut=only("checks", "about", CLUSTER))


def test_dry_run(answers: Answers) -> None:
    answers.hpj("dry-run/train", "submit", "--dry-run", "--run-id", "dry", *SENT["trained"])
    answers.hpj("dry-run/array", "submit", "--dry-run", "--run-id", "dry", *SENT["swept"])


def test_actions(answers: Answers) -> None:
    user = answers.user
    later = ("--slurm", "begin=now+1hour")
    sent = answers.hpj("actions/submit", "submit", "-c", "sleep 600", *later, cut=at_rest)
    run_id = sent["run_id"]
    answers.hpj("actions/hold", "hold", run_id, cut=at_rest)
    until_reason(user, run_id, "held")
    answers.hpj("actions/why-held", "why", run_id)
    answers.hpj("actions/change", "change", run_id, "--time-limit", "20m")
    answers.hpj("actions/release", "release", run_id, cut=at_rest)
    answers.hpj("actions/cancel", "cancel", run_id, cut=at_rest)
    user.ended(run_id)
    answers.hpj("actions/cancel-ended", "cancel", run_id)
    running = user.hpj("submit", "-c", "echo on; sleep 600").ok()["run_id"]
    user.says(running)
    answers.hpj("actions/hold-running", "hold", running)
    answers.hpj("actions/requeue", "requeue", running, cut=at_rest)
    answers.hpj("actions/cancel-two", "cancel", running, "nope", cut=without("run"))
    user.ended(running)


ERRORS: dict[str, list[str]] = {
    "unknown-queue": ["submit", "-c", "true", "--queue", "nope"],
    "too-many-nodes": ["submit", "-c", "true", "--nodes", "99"],
    "too-long": ["submit", "-c", "true", "--time-limit", "9d"],
    "refused-by-slurm": ["submit", "-c", "true", "--slurm", "constraint=nope"],
    **BAD_INPUT,
    "change-queue": ["change", "waiting", "--queue", "nope"],
}


@pytest.mark.parametrize("error", ERRORS)
def test_errors(answers: Answers, error: str) -> None:
    answers.hpj(f"errors/{error}", *ERRORS[error])


def test_an_unknown_option_of_sbatch(answers: Answers) -> None:
    words = ("submit", "-c", "true", "--slurm", "nonsense=1")
    answers.hpj("errors/unknown-slurm-option", *words, varying={"hint"})  # all that sbatch has


def test_errors_of_the_server(answers: Answers) -> None:
    command: dict[str, Any] = {"source": {"kind": "command", "command": "true"}}
    answers.send("errors/unknown-queue", "POST", "runs", {"spec": {**command, "queue": "nope"}})
    answers.send("errors/bad-field", "POST", "runs", {"spec": {**command, "quue": "nope"}})
    answers.get("errors/unknown-run", "runs/nope")
    answers.get("errors/unknown-cluster", "clusters/nope/nodes")
    answers.send("errors/requeue-ended", "POST", "runs/failed/requeue", None)
