"""What ``hpj --json`` and the REST API say of runs on a real Kubernetes, frozen in golden files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.golden.frozen import Golden
from tests.golden.user import BAD_INPUT, Answers, User, by_rank, only, unsure, user_of, without
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.conftest import own_namespace
from tests.kubernetes.session_fixtures import CLUSTER, own_kubeconfig, settings_for
from tests.session import write_config

pytestmark = pytest.mark.timeout(300)  # the first one waits for all runs that are shown

PROGRAM = """import os, sys

print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], *sys.argv[1:])
"""
NODES = ["--nodes", "2", "--launcher", "python", "--time-limit", "5m"]
GPUS = ["--gpus-per-node", "8", "--processes-per-node", "1"]
SENT = {
    "trained": ["train.py", *NODES, "--env", "SEED=7", "--name", "train", "--", "--lr", "0.1"],
    "failed": ["-c", "echo no; exit 3", "--no-project-files"],
    "cancelled": ["-c", "echo on; sleep 600"],
    "swept": ["-c", "echo task $HYPERPOD_ARRAY_INDEX", "--array", "1-2%1"],
    "filling": ["-c", "echo on; sleep 900", "--nodes", "2", *GPUS, "--stop-grace", "1"],
    "waiting": ["-c", "true", *GPUS],
}
ENDED = ("trained", "failed", "cancelled", "swept")
SHOWN = (*ENDED, "swept.2", "filling", "waiting")
USED = {"cpu_seconds", "accelerator_seconds", "elapsed", "max_memory"}
DISK = {"free", "total", "files_free", "kind", "mount", "source", "file_systems", "parents"}
#: Of the machine, or of what other tests have on the cluster.
MACHINE = {"cpus", "cpus_free", "cpu_load", "memory", "memory_free", "jobs", "running", "waiting"}
VARYING = frozenset({"cost", "cursor", "scheduler_calls", *USED})
#: The job of a cancelled run may be gone before the launcher has written how it ended.
at_end = unsure("exit_code", "signal", "cpu_seconds", "max_memory")
#: The scheduler places pods as it likes.
PLACED = {"node1": "<node>", "node2": "<node>"}
#: How far an order has come when it is answered depends on the moment.
at_rest = without("state", "reason", "reason_code", "attempts", "started_at", "ended_at")


@dataclass(frozen=True)
class World:
    """A user whose runs are as they stay."""

    cluster: KubernetesTestbed
    namespace: str
    user: User


def send_all(user: User) -> None:
    """Send the runs, and wait until they are as they stay."""
    (user.folder / "train.py").write_text(PROGRAM)
    for run_id, words in SENT.items():
        if run_id == "waiting":
            user.says("filling")
        user.hpj("submit", "--run-id", run_id, *words).ok()
    user.says("cancelled")
    user.hpj("cancel", "cancelled").ok()
    user.ended(*ENDED)
    user.until("waiting", lambda run: run["reason_code"] == "unschedulable")


@pytest.fixture(scope="module")
def world(kubernetes_cluster: KubernetesTestbed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Runs of every kind."""
    cluster = kubernetes_cluster
    root = tmp_path_factory.mktemp("golden")
    assert cluster.partition is not None
    with own_namespace(cluster) as namespace:
        cluster.claim(namespace)
        partition = cluster.partition / namespace
        partition.mkdir(mode=0o755, exist_ok=True)
        own_kubeconfig(cluster.kubeconfig, root / "kubeconfig", "golden")
        settings = settings_for(cluster, namespace, partition, sub_path=namespace, context="golden")
        write_config(settings, root / "config.toml")
        also = {str(root): "<root>", str(cluster.partition): "<volume>", namespace: "<namespace>"}
        environment = {**cluster.environment, "KUBECONFIG": str(root / "kubeconfig")}
        try:
            with user_of(root, root / "config.toml", environment, also) as user:
                send_all(user)
                yield World(cluster, namespace, user)
                user.hpj("cancel", "filling", "waiting")
                user.ended("filling", "waiting")
        finally:
            shutil.rmtree(partition, ignore_errors=True)


@pytest.fixture
def answers(world: World, golden: Golden, start_kubernetes: Any) -> Answers:
    """Compares."""
    del start_kubernetes  # these tests are for a cluster of ours
    return Answers(world.user, golden, "kubernetes", VARYING)


def test_runs(answers: Answers, world: World) -> None:
    kept = only("runs", "run_id", *SENT)

    def ours(answer: Any) -> Any:
        runs = kept(answer)["runs"]
        shown = [at_end(run) if run["run_id"] == "cancelled" else run for run in runs]
        return {**answer, "runs": shown}

    answers.hpj("runs", "runs", cut=ours, also=PLACED)
    answers.hpj("runs-failed", "runs", "--state", "failed", cut=ours, also=PLACED)
    answers.get("runs", "runs", ours, also=PLACED)


@pytest.mark.parametrize("run", SHOWN)
def test_a_run(answers: Answers, run: str) -> None:
    cut = at_end if run == "cancelled" else None
    answers.hpj(f"show/{run}", "show", run, cut=cut, also=PLACED)
    answers.hpj(f"logs/{run}", "logs", run, cut=by_rank, also=PLACED)
    answers.get(f"runs/{run}/run", f"runs/{run}", cut, also=PLACED)
    for part in ("spec", "usage", "access", "why"):
        answers.get(f"runs/{run}/{part}", f"runs/{run}/{part}", cut, also=PLACED)


def test_more_of_runs(answers: Answers, world: World) -> None:
    answers.get("runs/swept/children", "runs/swept/children", also=PLACED)
    answers.get("runs/trained/script", "runs/trained/script")


def test_why(answers: Answers) -> None:
    answers.hpj("why/waiting", "why", "waiting")
    answers.hpj("why/ended", "why", "failed")


def test_tables(answers: Answers, world: World) -> None:
    ours = only("jobs", "run_id", *SENT)
    answers.hpj("clusters", "clusters", cut=only("clusters", "name", CLUSTER), varying=MACHINE)
    answers.hpj("nodes", "nodes", varying=MACHINE)
    answers.hpj("queues", "queues", varying=MACHINE)
    answers.hpj("jobs", "jobs", cut=ours, also=PLACED)
    answers.hpj("jobs-ended", "jobs", "--ended", cut=ours, also=PLACED)
    answers.get("clusters", "clusters", only("clusters", "name", CLUSTER), varying=MACHINE)
    for table in ("nodes", "queues"):
        answers.get(f"cluster/{table}", f"clusters/{CLUSTER}/{table}", varying=MACHINE)
    path = f"clusters/{CLUSTER}/jobs"
    answers.get("cluster/jobs", path, ours, varying={"total"}, also=PLACED)


def test_choices(answers: Answers, world: World) -> None:
    kept = {"default", "kubeflow", world.namespace}  # there are other tests' too

    def cut(answer: Any) -> Any:
        named = answer["choices"]
        return {name: [one for one in named[name] if one in kept] for name in named}

    answers.get("cluster/choices", f"clusters/{CLUSTER}/choices", cut)


def test_storage(answers: Answers) -> None:
    answers.hpj("storage", "storage", "--no-aws", varying=DISK)


def test_doctor(answers: Answers) -> None:
    def cut(answer: Any) -> Any:
        of_cluster = only("checks", "about", CLUSTER)(answer)
        for check in of_cluster["checks"]:
            said = re.sub(r"\bv\d+\.\d+\.\d+", "<kubernetes>", check["evidence"])
            check["evidence"] = re.sub(r"\d+ running", "<number> running", said)
        return of_cluster

    answers.hpj("doctor", "doctor", "--cluster", CLUSTER, cut=cut)


def test_dry_run(answers: Answers) -> None:
    answers.hpj("dry-run/train", "submit", "--dry-run", "--run-id", "dry", *SENT["trained"])
    answers.hpj("dry-run/array", "submit", "--dry-run", "--run-id", "dry", *SENT["swept"])


def test_actions(answers: Answers) -> None:
    user = answers.user
    sent = answers.hpj("actions/submit", "submit", "-c", "true", *GPUS, cut=at_rest)
    run_id = sent["run_id"]
    answers.hpj("actions/hold", "hold", run_id, cut=at_rest)
    user.until(run_id, lambda run: run["reason_code"] == "held")
    answers.hpj("actions/why-held", "why", run_id)
    answers.hpj("actions/change", "change", run_id, "--time-limit", "20m", cut=at_rest)
    answers.hpj("actions/release", "release", run_id, cut=at_rest)
    answers.hpj("actions/cancel", "cancel", run_id, cut=at_rest)
    user.ended(run_id)
    answers.hpj("actions/cancel-ended", "cancel", run_id)
    running = user.hpj("submit", "-c", "echo on; sleep 600").ok()["run_id"]
    user.says(running)
    answers.hpj("actions/hold-running", "hold", running, cut=at_rest)
    answers.hpj("actions/requeue", "requeue", running, cut=at_rest)
    answers.hpj("actions/cancel-two", "cancel", running, "nope", cut=without("run"))
    user.ended(running)


TAKEN = {
    "unknown-queue": ["--queue", "nope"],
    "too-many-nodes": ["--nodes", "9", *GPUS],
    "slurm-option": ["--slurm", "constraint=a100"],
}


@pytest.mark.parametrize("what", TAKEN)
def test_what_other_clusters_refuse_is_taken(answers: Answers, what: str) -> None:
    """A cluster without queues, that may grow."""
    sent = answers.hpj(f"taken/{what}", "submit", "-c", "true", *TAKEN[what], cut=at_rest)
    answers.user.hpj("cancel", sent["run_id"])
    answers.user.ended(sent["run_id"])


ERRORS: dict[str, list[str]] = {
    "unknown-image": ["submit", "-c", "true", "--image", "no such image"],
    "unknown-account": ["submit", "-c", "true", "--service-account", "nope"],
    **BAD_INPUT,
    "change-queue": ["change", "waiting", "--queue", "nope"],
}


@pytest.mark.parametrize("error", ERRORS)
def test_errors(answers: Answers, error: str) -> None:
    answers.hpj(f"errors/{error}", *ERRORS[error])


def test_errors_of_the_server(answers: Answers) -> None:
    command: dict[str, Any] = {"source": {"kind": "command", "command": "true"}}
    nobody = {"kubernetes": {"service_account": "nope"}}
    answers.send("errors/unknown-account", "POST", "runs", {"spec": {**command, **nobody}})
    answers.send("errors/bad-field", "POST", "runs", {"spec": {**command, "quue": "nope"}})
    answers.get("errors/unknown-run", "runs/nope")
    answers.get("errors/unknown-cluster", "clusters/nope/nodes")
    answers.send("errors/requeue-ended", "POST", "runs/failed/requeue", None)
