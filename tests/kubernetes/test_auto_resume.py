"""HyperPod's auto-resume: what stands in its way, and on a real operator what AWS's agent does: nodes are tainted, and their pods deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import yaml

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.kinds import pytorch_job as auto_resume
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import ENABLED
from tests.kubernetes.manifest_cases import text
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions
from tests.kubernetes.test_doctor import examine
from tests.kubernetes.test_kinds_run import findings

HEALTH = "sagemaker.amazonaws.com/node-health-status"
TWO: dict[str, Any] = {"resources": {"nodes": 2}, "launcher": "python"}
SOURCE = {"source": {"kind": "command", "command": "true"}}


# ------------------------------------------------------------------------------ the rule


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("kubeflow/training-operator:v1-855e096", "1.7.0"),
        ("docker.io/kubeflow/training-operator:v1-04f9f13@sha256:" + "0" * 64, "1.8.1"),
        ("registry:5000/mirror/training-operator:v1.9.3", "1.9.3"),
        ("registry:5000/mirror/training-operator", None),
        ("training-operator:latest", None),
    ],
)
def test_the_operators_version_is_what_its_image_says(image: str, version: str | None):
    assert auto_resume.parse_image_version(image) == version


@pytest.mark.parametrize(
    ("namespace", "operator", "codes"),
    [
        ("kubeflow", "1.8.1", []),
        ("hyperpod-ns-team-a", "1.7.0", []),
        ("aws-hyperpod", None, []),
        ("my-hyperpod", "1.8.0", ["namespace"]),
        ("kubeflow-2", "1.8.0", ["namespace"]),
        ("hyperpod", "1.9.3", ["operator"]),
        ("default", "1.9.3", ["namespace", "operator"]),
    ],
)
def test_each_condition_that_does_not_hold_is_named(namespace: str, operator: str | None, codes: list[str]):
    found = [*auto_resume.find_obstacles(namespace, operator)]
    assert [one.code for one in found] == [f"auto_resume_{code}" for code in codes]
    assert all(one.level == "warning" and one.hint for one in found)


@pytest.mark.parametrize(
    ("asked", "hyperpod", "resumed"),
    [(None, True, True), (None, False, False), (False, True, False), (True, False, True)],
)
def test_it_is_on_where_the_cluster_has_it_unless_the_run_refuses(asked: bool | None, hyperpod: bool, resumed: bool):
    assert parse(JobSpec, {**SOURCE, "auto_resume": asked}).is_resumed(hyperpod) is resumed
    case = {"spec": {"auto_resume": asked, "kubernetes": {"namespace": "hyperpod-ns-a"}}, "hyperpod": hyperpod}
    assert (ENABLED in text(case)) is resumed


@pytest.mark.parametrize("change", [{"namespace": "a"}, {"operator": "1.9.3"}])
def test_a_run_is_sent_without_the_annotation_where_it_cannot_work(change: dict[str, Any]):
    space = change.pop("namespace", "hyperpod")
    case = {"spec": {"kubernetes": {"namespace": space}}, "hyperpod": True, **change}
    assert ENABLED not in text(case)
    assert "OnFailure" not in text(case)


def test_a_hyperpod_job_is_retried_unless_the_run_refuses():
    def retries(asked: bool | None) -> int:
        case = {"kind": "HyperPodPyTorchJob", "spec": {"auto_resume": asked}}
        found: int = yaml.safe_load(text(case))["spec"]["runPolicy"]["jobMaxRetryCount"]
        return found

    assert [retries(asked) for asked in (None, True, False)] == [3, 3, 0]


def manifest(policy: str, namespace: str, asked: str = "true") -> dict[str, Any]:
    """A user's own."""
    return {
        "kind": "PyTorchJob",
        "metadata": {"namespace": namespace, "annotations": {ENABLED: asked}},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"restartPolicy": policy}}},
    }


@pytest.mark.parametrize(
    ("document", "operator", "codes"),
    [
        (manifest("OnFailure", "hyperpod"), "1.8.1", []),
        (manifest("Never", "hyperpod"), "1.8.1", ["restart_policy"]),
        (manifest("ExitCode", "default"), "1.9.3", ["namespace", "operator", "restart_policy"]),
        (manifest("OnFailure", "hyperpod"), None, ["operator"]),
        (manifest("Never", "default", "false"), "1.9.3", []),
        ({"metadata": {"annotations": {ENABLED: "true"}}}, "1.8.1", ["namespace"]),
    ],
)
def test_a_users_own_manifest_gets_the_same_findings(document: dict[str, Any], operator: str | None, codes: list[str]):
    found = [one.code for one in auto_resume.manifest_findings(document, operator)]
    assert found == [f"auto_resume_{code}" for code in codes]


# ------------------------------------------------------------------------------ on a real cluster


@pytest.fixture
async def resumed(sessions: Sessions) -> AsyncIterator[KubernetesSession]:
    """A session on a cluster that is HyperPod's, in a namespace where it resumes runs."""
    cluster, name = sessions().cluster, f"hyperpod-{uuid4().hex[:8]}"
    cluster.make_namespace(name)
    cluster.kubectl("label", "node", *cluster.nodes, f"{HEALTH}=Schedulable", "--overwrite")
    yield sessions(namespace=name, hyperpod="ml-cluster")
    cluster.kubectl("label", "node", *cluster.nodes, f"{HEALTH}-")
    cluster.delete_namespace(name)


async def begun(session: KubernetesSession, run_id: str, attempt: int) -> None:
    """Wait until both nodes are in this attempt."""
    up = f"up {attempt}\n"
    await session.until(run_id, lambda _: [session.log(run_id, node, 0, attempt) for node in (0, 1)] == [up] * 2)


async def test_a_run_goes_on_when_a_pod_is_deleted_and_when_a_node_is_drained(resumed: KubernetesSession) -> None:
    run_id = await resumed.submit("echo up $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 3 ] || sleep 600", **TWO)
    assert resumed.job_of(run_id)["metadata"]["annotations"][ENABLED] == "true"
    await begun(resumed, run_id, 1)
    cluster, pods = resumed.cluster, f"run-{run_id}-worker-"
    delete = ("delete", "pod", "--wait=false")
    cluster.kubectl(*delete, f"{pods}0", namespace=resumed.namespace)
    await begun(resumed, run_id, 2)
    node = cluster.get("pod", f"{pods}1", resumed.namespace)["spec"]["nodeName"]
    there = [pod for pod in resumed.pods_of(run_id) if pod["spec"]["nodeName"] == node]
    pending = f"{HEALTH}=UnschedulablePendingReplacement"
    cluster.kubectl("taint", "node", node, f"{pending}:NoSchedule")
    try:
        cluster.kubectl("label", "node", node, pending, "--overwrite")
        names = [pod["metadata"]["name"] for pod in there]
        cluster.kubectl(*delete, *names, namespace=resumed.namespace)
        run = await resumed.ended(run_id)
    finally:
        cluster.kubectl("taint", "node", node, f"{HEALTH}-")
    assert run.state == "succeeded", run.status
    assert [attempt.state for attempt in run.status.attempts] == ["failed", "failed", "succeeded"]
    assert node not in {pod["spec"]["nodeName"] for pod in resumed.pods_of(run_id)}


async def test_a_run_whose_ranks_fail_ends_as_failed_and_leaves_no_pods(resumed: KubernetesSession) -> None:
    run_id = await resumed.submit("echo ran; sleep $NODE_RANK; exit 4", max_restarts=1, **TWO)
    run = await resumed.ended(run_id)
    assert (run.state, run.status.exit_code, len(run.status.attempts)) == ("failed", 4, 2)
    assert [resumed.log(run_id, 0, 0, attempt) for attempt in (1, 2)] == ["ran\n"] * 2
    job, end = f"run-{run_id}", time.monotonic() + resumed.deadline
    while "Failed" not in resumed.cluster.conditions("pytorchjob", job, resumed.namespace):
        assert time.monotonic() < end, "its job continues"
        await asyncio.sleep(1)
    while resumed.pods_of(run_id):
        assert time.monotonic() < end, "its pods stay"
        await asyncio.sleep(1)
    assert (await resumed.ended(run_id)).status.exit_code == 4
    assert len(list((resumed.records(run_id) / "status").glob("attempt-*"))) == 2


async def test_what_stands_in_the_way_is_said_before_the_submit_and_by_the_doctor(
    resumed: KubernetesSession, sessions: Sessions
) -> None:
    assert not [code for code in await findings(resumed) if code.startswith("auto_resume")]
    _, checks = await examine(resumed)
    assert checks["auto-resume"]["level"] == "ok"
    elsewhere = sessions(hyperpod="ml-cluster")
    assert (await findings(elsewhere))["auto_resume_namespace"].level == "warning"
    assert "auto_resume_namespace" not in await findings(elsewhere, auto_resume=False)
    _, checks = await examine(elsewhere)
    assert "auto_resume_namespace" in checks["auto-resume"]["evidence"]
    asked = await findings(resumed, auto_resume=True, kubernetes={"kind": "Job"})
    assert asked["auto_resume_kind"].level == "warning"


async def test_who_may_not_see_the_operator_is_told_which_ones_work(
    resumed: KubernetesSession, sessions: Sessions
) -> None:
    user = resumed.cluster.user("researcher", resumed.namespace)
    theirs = sessions(namespace=resumed.namespace, kubeconfig=user, hyperpod="ml-cluster")
    found = (await findings(theirs))["auto_resume_operator"]
    assert (found.level, "1.8.1" in (found.hint or "")) == ("info", True)
