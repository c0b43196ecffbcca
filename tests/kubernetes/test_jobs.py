"""The jobs of all users: one row each, whatever made them; from objects, and on a real cluster, as far as rights go."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Job
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobContext, job_facts, job_rows, list_pod_groups, sum_requests
from hyperpod_jlab.engines.kubernetes.tables.kueue import workload
from hyperpod_jlab.engines.kubernetes.tables.pods import PodRow, pod_row
from hyperpod_jlab.engines.kubernetes.targets import JobId, parse_job_id
from tests.kubernetes.session_fixtures import KubernetesSession
from tests.kubernetes.table_fixtures import create, kubectl, pod, pytorch_job, until

# ---------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("run-20261121-x", JobId("run-20261121-x")),
        ("pytorchjob/mnist", JobId("mnist", "pytorchjob")),
        ("team-b/job/sweep.1", JobId("sweep.1", "job", "team-b")),
        (" PyTorchJob/Mnist ", JobId("mnist", "pytorchjob")),
        ("a/b/c/d", None),
        ("", None),
        ("--all", JobId("--all")),
        ("x; rm -rf", None),
    ],
)
def test_a_job_by_one_text(text: str, found: JobId | None) -> None:
    assert parse_job_id(text) == found
    if found is not None:
        assert parse_job_id(str(found)) == found


# ---------------------------------------------------------------------------------- shape


def template(gpus: int) -> dict[str, Any]:
    return {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}]}}


@pytest.mark.parametrize(
    ("kind", "spec", "pods", "gpus"),
    [
        (
            "PyTorchJob",
            {
                "pytorchReplicaSpecs": {
                    "Master": {"replicas": 1, "template": template(4)},
                    "Worker": {"replicas": 3, "template": template(4)},
                }
            },
            4,
            16,
        ),
        ("HyperPodPyTorchJob", {"replicaSpecs": [{"name": "pods", "replicas": 2, "template": template(8)}]}, 2, 16),
        ("Job", {"parallelism": 3, "completions": 10, "template": template(1)}, 3, 3),
        ("Job", {"parallelism": 3, "completions": 2, "template": template(1)}, 2, 2),
        ("Job", {"template": template(2)}, 1, 2),
        (
            "TrainJob",
            {
                "runtimeRef": {"name": "torch"},
                "trainer": {"numNodes": 4, "resourcesPerNode": {"limits": {"nvidia.com/gpu": "2"}}},
            },
            4,
            8,
        ),
        ("TrainJob", {"runtimeRef": {"name": "torch"}}, 1, 0),
        ("PyTorchJob", {}, 0, 0),
    ],
)
def test_how_many_pods_and_what_they_ask_for(kind: str, spec: dict[str, Any], pods: int, gpus: int) -> None:
    parts = list_pod_groups(KIND_BY_NAME[kind], spec)
    assert sum(part.pods for part in parts) == pods
    assert dict(sum_requests(parts)).get("nvidia.com/gpu", 0) // 1000 == gpus


def test_pods_that_are_alike_are_one_part() -> None:
    def pods(count: int, gpus: int, **selector: str) -> dict[str, Any]:
        made = template(gpus)
        made["spec"]["nodeSelector"] = selector
        return {"replicas": count, "template": made}

    replicas = {"Master": pods(1, 8, t="x"), "Worker": pods(3, 8, t="x"), "Other": pods(1, 0)}
    alike, other = list_pod_groups(KIND_BY_NAME["PyTorchJob"], {"pytorchReplicaSpecs": replicas})
    assert (alike.pods, dict(alike.per_pod), alike.selector) == (4, {"nvidia.com/gpu": 8000}, (("t", "x"),))
    assert (other.pods, other.per_pod, other.selector) == (1, (), ())


# ---------------------------------------------------------------------------------- rows


def job(kind: str = "PyTorchJob", name: str = "x", **given: Any) -> Any:
    meta = {"name": name, "namespace": "a", "uid": name, **given.pop("meta", {})}
    return job_facts(KIND_BY_NAME[kind], {"metadata": meta, "spec": {}, **given})


def context(**given: Any) -> JobContext:
    return JobContext(**{"namespace": "a", "current_user": "alice", "pods": [], "workloads": [], **given})


def conditions(*types: str) -> dict[str, Any]:
    return {"conditions": [{"type": one, "status": "True"} for one in types]}


def rows(*jobs: Any, **given: Any) -> list[Job]:
    return job_rows(jobs, context(**given))


def test_a_run_of_mine_is_linked() -> None:
    labels = {"hyperpod-jlab/run-id": "r1", "hyperpod-jlab/user": "alice"}
    (row,) = rows(job(name="run-r1", meta={"labels": labels}))
    assert (row.scheduler_id, row.run_id, row.mine, row.user) == ("run-r1", "r1", True, "alice")


def test_anothers_run_is_not() -> None:
    labels = {"hyperpod-jlab/run-id": "r1", "hyperpod-jlab/user": "bob"}
    (row,) = rows(job(name="run-r1", meta={"labels": labels}))
    assert (row.run_id, row.mine, row.user) == (None, False, "bob")
    (row,) = rows(job(name="run-r1", meta={"labels": labels, "namespace": "b"}))
    assert (row.scheduler_id, row.run_id) == ("b/pytorchjob/run-r1", None)


def test_a_job_whose_master_succeeded_runs_while_it_has_pods() -> None:
    """Once it has a completion time the operator counts no worker's end any more (1.8.1 and 1.9.3)."""
    status = {
        **conditions("Created", "Succeeded"),
        "completionTime": "2026-01-01T00:00:00Z",
        "replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"selector": "x"}},
    }
    replica = {"replicas": 1, "template": {"spec": {"containers": []}}}
    spec = {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}}
    given = job(spec=spec, status=status)
    worker = PodRow("u", "a", "x-worker-0", "node1", None, None, "x", "pytorchjob", ())
    assert rows(given, pods=[worker])[0].state == "running"
    (row,) = rows(given)
    assert (row.state, row.ends_at) == ("succeeded", 1767225600.0)


def test_a_job_that_another_job_made_is_no_row() -> None:
    owner = {"kind": "JobSet", "name": "set", "controller": True}
    assert rows(job("Job", meta={"ownerReferences": [owner]})) == []
    cron = {"kind": "CronJob", "name": "nightly", "controller": True}
    assert len(rows(job("Job", meta={"ownerReferences": [cron]}))) == 1


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        ({"status": conditions("Created", "Running")}, "running", None),
        ({"status": conditions("Created", "Failed")}, "failed", None),
        ({}, "waiting", None),
        ({"spec": {"runPolicy": {"suspend": True}}, "status": conditions("Suspended")}, "held", "it is suspended"),
        (
            {
                "meta": {"labels": {"kueue.x-k8s.io/queue-name": "team"}},
                "spec": {"runPolicy": {"suspend": True}},
                "status": conditions("Suspended"),
            },
            "waiting",
            "it is waiting in its queue",
        ),
    ],
)
def test_a_state_and_why(given: dict[str, Any], state: str, words: str | None) -> None:
    (row,) = rows(job(**given))
    assert row.state == state
    if words is not None:
        assert row.reason == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("PyTorchJob x is failed because 1 Master replica(s) failed.", "a pod of its failed (Master)"),
        ("PyTorchJob x is failed because 3 Worker replica(s) failed.", "3 of its pods failed (Worker)"),
        ("Job has reached the specified backoff limit", "its pods failed more often than backoffLimit allows"),
        (
            "Container c for pod team/x-0 failed with exit code 42 matching FailJob rule at index 0",
            "its pod x-0 ended with exit code 42, which ends the job (podFailurePolicy)",
        ),
        ("jobset failed due to one or more job failures", "one or more of its jobs failed"),
        ("what nobody\n has heard of", "its operator reports: what nobody has heard of"),
    ],
)
def test_why_a_job_failed_is_told_in_words(said: str, words: str) -> None:
    failed = {"type": "Failed", "status": "True", "message": said}
    (row,) = rows(job(status={"conditions": [failed]}))
    assert (row.state, row.reason, row.reason_detail) == ("failed", words, " ".join(said.split()))


def test_what_kueue_says_counts_for_what_waits() -> None:
    waits = workload(
        {
            "metadata": {
                "name": "w",
                "namespace": "a",
                "ownerReferences": [{"kind": "PyTorchJob", "name": "x", "uid": "x", "controller": True}],
            },
            "spec": {"queueName": "team", "priority": 7, "podSets": [{"count": 2}]},
            "status": {
                "conditions": [
                    {
                        "type": "QuotaReserved",
                        "status": "False",
                        "reason": "Pending",
                        "message": "LocalQueue team doesn't exist",
                    }
                ]
            },
        }
    )
    (row,) = rows(job(spec={"runPolicy": {"suspend": True}}), workloads=[waits])
    assert (row.state, row.reason_code, row.queue, row.priority) == ("waiting", "unknown_queue", "team", 7)


def test_workloads_of_kinds_that_are_not_known_here_are_rows_too() -> None:
    ray = workload(
        {
            "metadata": {
                "name": "rayjob-sweep",
                "namespace": "b",
                "ownerReferences": [{"kind": "RayJob", "name": "sweep", "uid": "u", "controller": True}],
            },
            "spec": {"queueName": "team", "podSets": [{"count": 1}, {"count": 4}]},
            "status": {
                "conditions": [{"type": "Admitted", "status": "True"}],
                "admission": {"podSetAssignments": [{"resourceUsage": {"nvidia.com/gpu": "32"}}]},
            },
        }
    )
    (row,) = rows(workloads=[ray])
    assert (row.scheduler_id, row.state, row.accelerators, row.node_count) == ("b/rayjob/sweep", "running", 32, 5)


def test_the_nodes_are_those_of_its_pods() -> None:
    def made(name: str, node: str) -> Any:
        labels = {"training.kubeflow.org/job-name": "x"}
        return pod_row(
            {
                "metadata": {"name": name, "namespace": "a", "labels": labels},
                "spec": {"nodeName": node},
                "status": {"phase": "Running"},
            }
        )

    pods = [made("x-master-0", "n1"), made("x-worker-0", "n2"), made("x-worker-1", "n2")]
    (row,) = rows(job(status=conditions("Running")), pods=pods)
    assert row.nodes == ("n1", "n2")


# ---------------------------------------------------------------------------------- a real cluster


async def mine(session: KubernetesSession) -> dict[str, Job]:
    found = await session.hyperpod.jobs()
    return {row.name: row for row in found if row.account == session.namespace}


@pytest.mark.full
async def test_jobs_of_all_kinds_with_why_they_wait(session: KubernetesSession) -> None:
    image = session.cluster.image
    missing = pod("x", "localhost/none/such:1", {})
    missing["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    plain = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sweep"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": {**pod("x", image, {})["spec"], "restartPolicy": "Never"}},
        },
    }
    never = pytorch_job("never", missing)
    large = pytorch_job("large", pod("x", image, {"nvidia.com/gpu": "99"}))
    await create(session, plain, never, large)
    run_id = await session.submit("sleep 300", resources={"nodes": 2})
    await session.running(run_id)

    def there(rows: dict[str, Job]) -> bool:
        codes = {row.reason_code for row in rows.values()}
        states = [row.state for row in rows.values()]
        return {"image_never_pulled", "unschedulable"} <= codes and states.count("running") == 2

    found = await until(lambda: mine(session), there)
    assert found["sweep"].scheduler_id == "job/sweep"
    assert found["sweep"].node_count == 2
    assert found["never"].reason is not None
    assert "localhost/none/such:1" in found["never"].reason
    assert found["large"].accelerators == 99
    run = next(row for row in found.values() if row.run_id == run_id)
    assert run.mine
    assert 1 <= len(run.nodes) <= 2
    assert run.started_at is not None
    rows = await session.hyperpod.nodes()
    assert sum(run_id in row.jobs for row in rows) == len(run.nodes)
    line = next(one for one in await session.hyperpod.clusters.configured() if one.name == "k8s")
    assert line.nodes is not None
    assert line.running is not None
    assert line.running >= 2
    assert line.detail["accelerators"] >= line.detail["accelerators_free"]
    await kubectl(session, "delete", "job,pytorchjob", "--all", "--wait=false")
