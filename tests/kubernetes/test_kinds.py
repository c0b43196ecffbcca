"""Kinds by themselves: which one a run becomes, what their objects' words mean, and which pod is which node."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME, KINDS, InstalledKinds, choose, find_kind
from hyperpod_jlab.engines.kubernetes.kinds.kind import is_suspended, suspend_patch
from hyperpod_jlab.engines.kubernetes.kinds.train_job import Runtime, TrainJob, runtime_findings
from hyperpod_jlab.engines.kubernetes.submit.preflight import unsupported

NOW = 1_795_300_000.0
ALL = frozenset(KIND_BY_NAME)


def spec(kind: str | None = None) -> JobSpec:
    source = {"kind": "command", "command": "true"}
    return parse(JobSpec, {"source": source, "kubernetes": {"kind": kind}})


# ------------------------------------------------------------------------------ the choice


@pytest.mark.parametrize(
    ("kinds", "runtimes", "named", "kind"),
    [
        (ALL, (), None, "PyTorchJob"),
        (ALL, (), "HyperPodPyTorchJob", "HyperPodPyTorchJob"),
        (ALL, (), "Job", "Job"),
        (ALL - {"PyTorchJob"}, (Runtime(),), None, "TrainJob"),
        (ALL - {"PyTorchJob"}, (), None, "Job"),
        (ALL - {"PyTorchJob"}, None, None, "TrainJob"),
        ({"Job", "HyperPodPyTorchJob"}, (), None, "Job"),
        (None, None, None, "PyTorchJob"),
        (None, None, "TrainJob", "TrainJob"),
    ],
)
def test_the_choice(kinds: Any, runtimes: Any, named: str | None, kind: str):
    offers = InstalledKinds(None if kinds is None else frozenset(kinds), runtimes)
    choice = choose(spec(named), offers, None)
    assert choice.kind.name == kind
    assert choice.reason


@pytest.mark.parametrize(
    ("denied", "kind", "why"),
    [
        ({"PyTorchJob"}, "TrainJob", "do not have the permission to create a PyTorchJob"),
        ({"PyTorchJob", "TrainJob"}, "Job", "do not have the permission to create a PyTorchJob"),
        ({"TrainJob", "Job"}, "PyTorchJob", "training operator"),
        (set(KIND_BY_NAME), "PyTorchJob", "training operator"),
    ],
)
def test_what_one_may_make_is_chosen(denied: set[str], kind: str, why: str):
    choice = choose(spec(), InstalledKinds(ALL, (Runtime(),), frozenset(denied)), None)
    assert choice.kind.name == kind
    assert why in choice.reason


@pytest.mark.parametrize("kinds", [frozenset(), {"Job"}, {"HyperPodPyTorchJob"}])
def test_what_is_not_offered_is_refused_with_what_is(kinds: set[str]):
    with pytest.raises(RefusedError, match="no TrainJob") as caught:
        choose(spec("TrainJob"), InstalledKinds(frozenset(kinds), ()), None)
    hint = caught.value.hint or ""
    assert all(kind in hint for kind in kinds)


def test_a_cluster_with_nothing_is_refused():
    with pytest.raises(RefusedError, match="no kind") as caught:
        choose(spec(), InstalledKinds(frozenset({"HyperPodPyTorchJob"}), ()), None)
    assert caught.value.code == "no_such_kind"


@pytest.mark.parametrize(
    ("runtimes", "named", "runtime"),
    [
        ((Runtime("a"), Runtime()), None, Runtime()),
        ((Runtime("a"),), None, Runtime("a")),
        ((Runtime("a", "TrainingRuntime"), Runtime("a")), "a", Runtime("a", "TrainingRuntime")),
        (None, "b", Runtime("b")),
        (None, None, Runtime()),
    ],
)
def test_the_runtime(runtimes: Any, named: str | None, runtime: Runtime):
    kind = choose(spec("TrainJob"), InstalledKinds(ALL, runtimes), named).kind
    assert isinstance(kind, TrainJob)
    assert kind.runtime == runtime


@pytest.mark.parametrize(("runtimes", "named"), [(("a", "b"), None), ((), None), (("a",), "b")])
def test_a_runtime_that_is_not_there(runtimes: tuple[str, ...], named: str | None):
    with pytest.raises(RefusedError, match="runtime") as caught:
        choose(spec("TrainJob"), InstalledKinds(ALL, tuple(map(Runtime, runtimes))), named)
    assert all(name in (caught.value.hint or "") for name in runtimes)


def runtime(job: str = "node", container: str = "node", **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "sidecar"}, {"name": container}], **pod}
    jobs = [{"name": "data"}, {"name": job, "template": {"spec": {"template": {"spec": spec}}}}]
    return {"spec": {"template": {"spec": {"replicatedJobs": jobs}}}}


@pytest.mark.parametrize(
    ("found", "codes"),
    [
        (runtime(restartPolicy="Never"), []),
        (runtime(), ["runtime_restarts"]),
        (runtime(restartPolicy="OnFailure"), ["runtime_restarts"]),
        (runtime(job="trainer"), ["runtime_without_node"]),
        (runtime(container="main"), ["runtime_without_node"]),
        ({}, ["runtime_without_node"]),
        ({"spec": {"template": None}}, ["runtime_without_node"]),
    ],
)
def test_what_a_runtime_must_have(found: dict[str, Any], codes: list[str]):
    assert [one.code for one in runtime_findings(found, Runtime())] == codes


# ------------------------------------------------------------------------------ objects' words


def job(kind: str, *true: str, **status: Any) -> dict[str, Any]:
    found = KIND_BY_NAME[kind]
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": "2026-11-21T22:00:00Z", "new": [1]} for name in true
    ]
    return {
        "apiVersion": f"{found.group}/{found.version}",
        "kind": kind,
        "metadata": {"name": "run-x", "later": {}},
        "spec": {"pytorchReplicaSpecs": {"Master": {}, "Worker": {"replicas": 2}}, "later": 1},
        "status": {"conditions": conditions, "later": {"a": 1}, **status},
    }


_DONE = {"replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"succeeded": 2}}}
_MASTER_DONE = {"replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"active": 2}}}


@pytest.mark.parametrize(
    ("found", "state", "verdict"),
    [
        (job("PyTorchJob"), "waiting", None),
        (job("PyTorchJob", "Created"), "waiting", None),
        (job("PyTorchJob", "Created", "Running"), "running", None),
        (job("PyTorchJob", "Created", "Restarting"), "running", None),
        (job("PyTorchJob", "Created", "Suspended"), "waiting", None),
        (job("PyTorchJob", "Created", "Succeeded", **_MASTER_DONE), "running", None),
        (job("PyTorchJob", "Created", "Succeeded", **_DONE), "ended", "COMPLETED"),
        (job("PyTorchJob", "Created", "Failed", **_DONE), "ended", "FAILED"),
        (job("TrainJob"), "waiting", None),
        (job("TrainJob", jobsStatus=[{"name": "node", "ready": 1}]), "running", None),
        (job("TrainJob", jobsStatus="later"), "waiting", None),
        (job("TrainJob", "Suspended"), "waiting", None),
        (job("TrainJob", "Complete"), "ended", "COMPLETED"),
        (job("TrainJob", "Failed"), "ended", "FAILED"),
        (job("Job", active=2, ready=0), "waiting", None),
        (job("Job", active=2, ready=1), "running", None),
        (job("Job", succeeded=1), "running", None),
        (job("Job", "Suspended"), "waiting", None),
        (job("Job", "SuccessCriteriaMet", "Complete", succeeded=2), "ended", "COMPLETED"),
        (job("Job", "FailureTarget", "Failed"), "ended", "FAILED"),
        (job("HyperPodPyTorchJob"), "waiting", None),
        (job("HyperPodPyTorchJob", "Created", "PodsRunning"), "running", None),
        (job("HyperPodPyTorchJob", "Created", "Running"), "running", None),
        (job("HyperPodPyTorchJob", "Created", "Completed"), "ended", "COMPLETED"),
        (job("HyperPodPyTorchJob", "Created", "Succeeded"), "ended", "COMPLETED"),
        (job("HyperPodPyTorchJob", "Running", "Failed"), "ended", "FAILED"),
        (job("HyperPodPyTorchJob", "Suspended"), "waiting", None),
        (job("HyperPodPyTorchJob", "SomethingNew"), "waiting", None),
    ],
)
def test_what_an_object_says(found: dict[str, Any], state: str, verdict: str | None):
    kind = find_kind(found)
    assert kind is not None
    said = kind.observe(found, NOW)
    assert (said.state, said.verdict, said.scheduler_id) == (state, verdict, "run-x")
    assert (said.exit_code == 0) == (verdict == "COMPLETED")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "status", [None, "text", [], {"conditions": None}, {"conditions": {"a": 1}}, {"conditions": ["a", 1, {}]}]
)
def test_a_status_of_another_form_says_nothing(kind: Any, status: Any):
    assert kind.observe({"metadata": {"name": "run-x"}, "status": status}, NOW).state == "waiting"
    assert kind.observe({"metadata": {"name": "run-x"}}, NOW).state == "waiting"


def test_a_deadline_is_a_time_limit():
    found = job("Job", "Failed")
    found["status"]["conditions"][0] |= {"reason": "DeadlineExceeded", "message": "too long"}
    said = KIND_BY_NAME["Job"].observe(found, NOW)
    assert (said.verdict, said.reason, said.time) == ("TIMEOUT", "it reached its time limit", 1_795_298_400.0)
    assert said.detail == "too long"


@pytest.mark.parametrize("text", [None, "", "yesterday", 7, "9999-12-31T23:59:59Z"])
def test_an_end_without_a_time_is_now(text: Any):
    found = job("TrainJob", "Complete")
    found["status"]["conditions"][0]["lastTransitionTime"] = text
    assert KIND_BY_NAME["TrainJob"].observe(found, NOW).time == NOW


def test_other_objects_are_no_kind_of_ours():
    assert find_kind({"kind": "PyTorchJob", "apiVersion": "example.org/v1"}) is None
    assert find_kind({"kind": "Pod", "apiVersion": "v1"}) is None
    assert find_kind({}) is None


# ------------------------------------------------------------------------------ pods


_INDEX = "batch.kubernetes.io/job-completion-index"
_ROLE = "training.kubeflow.org/replica-type"
_REPLICA = "training.kubeflow.org/replica-index"


@pytest.mark.parametrize(
    ("kind", "labels", "name", "rank"),
    [
        ("PyTorchJob", {_ROLE: "master", _REPLICA: "0"}, "x", 0),
        ("PyTorchJob", {_ROLE: "worker", _REPLICA: "0"}, "x", 1),
        ("PyTorchJob", {_ROLE: "Worker", _REPLICA: "6"}, "x", 7),
        ("PyTorchJob", {_ROLE: "launcher", _REPLICA: "0"}, "x", None),
        ("PyTorchJob", {}, "x", None),
        ("PyTorchJob", {_ROLE: "worker", _REPLICA: "-1"}, "x", None),
        ("TrainJob", {_INDEX: "3"}, "x", 3),
        ("Job", {_INDEX: "0"}, "x", 0),
        ("Job", {_INDEX: "9" * 30}, "x", None),
        ("HyperPodPyTorchJob", {"HPJob": "run-x"}, "run-x-pod-12", 12),
        ("HyperPodPyTorchJob", {"HPJob": "run-x"}, "odd", None),
        ("HyperPodPyTorchJob", {}, "run-x-pod-12", None),
    ],
)
def test_a_pods_place(kind: str, labels: dict[str, str], name: str, rank: int | None):
    pod = {"metadata": {"name": name, "labels": labels}, "spec": {"initContainers": [{"name": "init-pytorch"}]}}
    assert KIND_BY_NAME[kind].node_rank(pod) == rank


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_suspending(kind: Any):
    assert not is_suspended(kind, {"metadata": {}})
    assert is_suspended(kind, suspend_patch(kind, True))
    assert not is_suspended(kind, suspend_patch(kind, False))


def test_what_only_slurm_knows_is_said_to_be_ignored() -> None:
    spec = JobSpec.model_validate(
        {
            "source": {"kind": "command", "command": "true"},
            "account": "vision",
            "qos": "high",
            "slurm": {"flags": {"nice": "5"}},
        }
    )
    found = [(one.code, one.level, one.field) for one in unsupported(spec)]
    assert found == [("ignored", "info", field) for field in ("account", "qos", "slurm")]
