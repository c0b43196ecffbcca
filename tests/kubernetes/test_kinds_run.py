"""Each kind on a real cluster: through its real operator over two pods, or, where that is closed, as far as the API server goes."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.hyperpod_crd import crd
from tests.kubernetes.session_fixtures import CLAIM, KubernetesSession, Sessions

TWO_BY_TWO = {"nodes": 2, "processes_per_node": 2}


async def findings(session: KubernetesSession, **spec: Any) -> dict[str, Finding]:
    """What the preview finds, by code."""
    try:
        preview = await session.hyperpod.submitter.preview(session.request(**spec))
    except HyperpodError as error:
        return {error.code: Finding(level="error", **_told(error))}
    return {finding.code: finding for finding in preview.findings}


def _told(error: HyperpodError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "hint": error.hint}


async def runs_over_two_pods(session: KubernetesSession, kind: str) -> str:
    """Submit a run of two nodes as this kind, and see that its four ranks knew each other; its id."""
    run_id = await session.submit(
        "echo $NODE_RANK $RANK $WORLD_SIZE", resources=TWO_BY_TWO, launcher="python", kubernetes={"kind": kind}
    )
    run = await session.ended(run_id)
    assert (run.state, run.kind) == ("succeeded", kind), run.status
    words = [session.log(run_id, node, rank) for node in (0, 1) for rank in (0, 1)]
    assert words == ["0 0 4\n", "0 1 4\n", "1 2 4\n", "1 3 4\n"]
    return run_id


@pytest.mark.full
async def test_a_job_runs_over_two_pods(session: KubernetesSession):
    run_id = await runs_over_two_pods(session, "Job")
    service = session.cluster.get("service", f"run-{run_id}", session.namespace)
    assert service["metadata"]["ownerReferences"][0]["kind"] == "Job"


@pytest.mark.full
async def test_a_second_submit_makes_a_missing_service(session: KubernetesSession):
    run_id = await session.submit("sleep 3", resources={"nodes": 2}, kubernetes={"kind": "Job"})
    engine = session.hyperpod.engines.get(None)
    bundle = BundleReader(session.hyperpod.partition, run_id)
    assert await engine.find(bundle) is not None
    session.cluster.kubectl("delete", "service", f"run-{run_id}", namespace=session.namespace)
    assert await engine.find(bundle) is None
    await engine.submit(bundle)
    assert await engine.find(bundle) is not None
    assert (await session.ended(run_id)).state == "succeeded"


RUNTIME = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "TrainingRuntime",
    "metadata": {"name": "two", "labels": {"trainer.kubeflow.org/framework": "torch"}},
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {
                                "template": {
                                    "spec": {
                                        "restartPolicy": "Never",
                                        "containers": [{"name": "node", "image": "none"}],
                                    }
                                }
                            },
                        },
                    }
                ]
            }
        },
    },
}


@pytest.mark.full
async def test_a_train_job_runs_over_two_pods(trainer: KubernetesSession):
    await runs_over_two_pods(trainer, "TrainJob")


@pytest.mark.full
async def test_a_train_job_needs_a_runtime(trainer: KubernetesSession, sessions: Sessions):
    other = sessions(runtime="nope")
    found = await findings(other, kubernetes={"kind": "TrainJob"})
    assert "two" in (found["no_such_runtime"].hint or "")


@pytest.mark.full
async def test_a_hyperpod_job_is_taken_and_said_to_need_its_agent(hyperpod_kind: KubernetesSession):
    found = await findings(
        hyperpod_kind,
        resources={"nodes": 2, "gpus_per_node": 8},
        auto_resume=True,
        alarms={"stop_on": ["hang"]},
        kubernetes={"kind": "HyperPodPyTorchJob"},
    )
    assert found["needs_agent"].level == "warning"
    assert "HyperPodPyTorchJob" in found["dry_run"].message
    assert [one for one in found.values() if one.level == "error"] == []
    wrong = {"template": {"spec": {"nodeSelektor": {"a": "b"}}}}
    found = await findings(hyperpod_kind, kubernetes={"kind": "HyperPodPyTorchJob", "patch": wrong})
    assert any("nodeSelektor" in one.message for one in found.values() if one.level == "error")
    assert "nodeSelektor:" in found["patched"].message


async def test_the_choice_is_made_and_said(session: KubernetesSession):
    found = await findings(session)
    assert found["kind"].level == "info"
    assert "PyTorchJob" in found["kind"].message
    assert found["dry_run"].level == "info"
    assert "Job" in (await findings(session, kubernetes={"kind": "Job"}))["kind"].message
    assert "unknown_instance_type" not in found
    found = await findings(session, resources={"instance_type": "ml.p7.48xlarge"})
    assert found["unknown_instance_type"].level == "warning"


async def test_what_is_missing_is_said_before_the_submit(sessions: Sessions):
    without_claim = sessions(storage={"claim": "nope", "mount": "/data"})
    assert (await findings(without_claim))["no_claim"].level == "error"
    without_image = sessions(image=None)
    assert (await findings(without_image))["no_image"].level == "error"
    found = await findings(sessions(), kubernetes={"namespace": "no-such-namespace"})
    errors = [one for one in found.values() if one.level == "error"]
    assert any("no-such-namespace" in one.message for one in errors)


async def test_the_dry_runs_verdict_is_a_finding(session: KubernetesSession):
    patch = {"template": {"spec": {"tolerationz": ["x"]}}}
    found = await findings(session, kubernetes={"patch": patch})
    errors = [one.message for one in found.values() if one.level == "error"]
    assert any("tolerationz" in message for message in errors)


async def test_the_pods_are_checked_too(session: KubernetesSession):
    """An operator's object may hold any template; what would keep its pods from being made is said before."""
    for wrong in (
        {"resources": {"instance_type": "no label"}},
        {"priority": "no-such-class"},
        {"kubernetes": {"patch": {"template": {"spec": {"serviceAccountName": "nobody"}}}}},
        {"kubernetes": {"patch": {"template": {"spec": {"nodeSelektor": {"a": "b"}}}}}},
    ):
        found = await findings(session, **wrong)
        assert [one for one in found.values() if one.level == "error"], wrong


async def test_pods_have_the_service_account_that_the_spec_names(session: KubernetesSession):
    asked = {"service_account": "trainer"}
    found = await findings(session, kubernetes=asked)
    missing = found["no_service_account"]
    assert (missing.level, missing.field) == ("error", "kubernetes.service_account")
    assert "trainer" in missing.message
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}}
    session.cluster.create(account, namespace=session.namespace)
    run_id = await session.submit("true", kubernetes=asked)
    assert (await session.ended(run_id)).state == "succeeded"
    (pod,) = session.pods_of(run_id)
    assert pod["spec"]["serviceAccountName"] == "trainer"


ELASTIC = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: elastic}
spec:
  elasticPolicy: {rdzvBackend: c10d, minReplicas: 1, maxReplicas: 3}
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: IMAGE
              command: [sh, -c, "echo $PET_NNODES; until [ -e /data/enough ]; do sleep 0.2; done"]
              volumeMounts: [{name: data, mountPath: /data, subPath: NAMESPACE}]
          volumes: [{name: data, persistentVolumeClaim: {claimName: fsx}}]
"""


async def test_an_elastic_job_of_ones_own_grows_while_it_runs(session: KubernetesSession):
    """Whoever changes the number of pods (an autoscaler, say), the new pod is a node of the run like the first."""
    text = ELASTIC.replace("IMAGE", session.cluster.image).replace("NAMESPACE", session.namespace)
    (session.folder / "job.yaml").write_text(text)
    run_id = await session.submit(source={"kind": "native", "path": "job.yaml"})
    await session.until(run_id, lambda run: run.state == "running")
    more = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 2}}}}
    words = ("patch", "pytorchjob", "elastic", "--type=merge", "-p", json.dumps(more))
    session.cluster.kubectl(*words, namespace=session.namespace)
    await session.until(run_id, lambda run: len(run.status.attempts[-1].nodes) == 2)
    (session.partition / "enough").touch()
    run = await session.ended(run_id)
    assert (run.state, run.kind) == ("succeeded", "PyTorchJob")
    logs = (await session.hpj("logs", run_id)).out.split()
    assert [line.rpartition("|")[2] for line in logs] == ["1:3", "1:3"]


async def test_a_full_quota_is_said_and_refuses_nothing(session: KubernetesSession):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    session.cluster.create({**quota, "spec": {"hard": {"pods": "0"}}}, namespace=session.namespace)
    found = await findings(session)
    assert found["quota_exceeded"].level == "warning"


async def test_anothers_object_of_that_name_is_a_collision(session: KubernetesSession):
    run_id = "20261121-000000-theirs"
    preview = await session.hyperpod.submitter.preview(session.request(run_id=run_id))
    theirs = yaml.safe_load(preview.rendered.text)
    theirs["metadata"]["labels"] = {}
    theirs["spec"]["runPolicy"]["suspend"] = True
    session.cluster.run("create", "-f", "-", namespace=session.namespace, input=json.dumps(theirs))
    with pytest.raises(HyperpodError, match="does not belong to this run") as caught:
        await session.submit("true", run_id=run_id)
    assert caught.value.code == "name_taken"


async def test_a_secret_of_the_cluster_is_a_variable(session: KubernetesSession):
    session.cluster.kubectl(
        "create", "secret", "generic", "hub", "--from-literal=token=s3cret", namespace=session.namespace
    )
    run_id = await session.submit("echo ${#TOKEN} $TOKEN | tr 3 e", environment={"secrets": {"TOKEN": "hub/token"}})
    assert (await session.ended(run_id)).state == "succeeded"
    assert session.log(run_id) == "6 secret\n"


@pytest.fixture
async def trainer(sessions: Sessions, namespace: str) -> KubernetesSession:
    """A session whose TrainJobs have a runtime of the test's own."""
    made = sessions(runtime="two")
    made.cluster.create(RUNTIME, namespace=namespace)
    return made


@pytest.fixture
def hyperpod_kind(session: KubernetesSession) -> Iterator[KubernetesSession]:
    """A session on a cluster that knows HyperPodPyTorchJobs; one that knows them already is left as it is."""
    name = "hyperpodpytorchjobs.sagemaker.amazonaws.com"
    known = session.cluster.run("get", "crd", name).returncode == 0
    if not known:
        session.cluster.create(crd())
        session.cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}")
    yield session
    if not known:
        session.cluster.kubectl("delete", "crd", name)


async def test_who_may_only_make_jobs_gets_a_job(sessions: Sessions, namespace: str):
    rules = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]}]
    user = sessions(kubeconfig=sessions().cluster.user("jobs-only", namespace, rules=rules))
    found = await findings(user)
    assert "you do not have the permission to create a PyTorchJob" in found["kind"].message
    assert found["dry_run"].level == "info"
    two = await findings(user, resources={"nodes": 2})  # needs a service too
    assert "services" in two["missing_right"].message


@pytest.mark.full
@pytest.mark.parametrize("kind", ["TrainJob", "Job"])
async def test_a_failure_ends_the_run_with_its_exit_code(trainer: KubernetesSession, kind: str):
    run_id = await trainer.submit(
        "test $RANK = 0 && sleep 600; exit 7", resources={"nodes": 2}, launcher="python", kubernetes={"kind": kind}
    )
    run = await trainer.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 7), run.status


@pytest.mark.full
async def test_failed_code_is_not_executed_again_whatever_the_runtime(sessions: Sessions, namespace: str):
    """A runtime that says nothing of restarts: its pods' containers are started again whenever they fail."""
    session = sessions(runtime="two")
    runtime: dict[str, Any] = copy.deepcopy(RUNTIME)
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    del job["template"]["spec"]["template"]["spec"]["restartPolicy"]
    session.cluster.create(runtime, namespace=namespace)
    run_id = await session.submit("echo once; exit 7", kubernetes={"kind": "TrainJob"})
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 7), run.status
    trainjob = ("get", "trainjob", f"run-{run_id}", "-o", "name")

    async def is_left() -> bool:
        await session.hyperpod.runs.get(run_id)
        found = session.cluster.run(*trainjob, namespace=namespace)
        return found.returncode == 0 and bool(session.pods_of(run_id))

    deadline = time.monotonic() + 150
    while await is_left():
        assert time.monotonic() < deadline, "its pods are started again without end"
        await asyncio.sleep(2)
    run = await session.hyperpod.runs.get(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 7), run.status
    assert len(run.status.attempts) == 1
    assert session.log(run_id) == "once\n"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["TrainJob", "Job"])
async def test_cancelling(trainer: KubernetesSession, kind: str):
    run_id = await trainer.submit("sleep 600", kubernetes={"kind": kind})
    await trainer.until(run_id, lambda run: run.state == "running")
    await trainer.hyperpod.runs.act(run_id, "cancel")
    run = await trainer.ended(run_id)
    assert run.state == "cancelled", run.status
    assert trainer.cluster.run("get", kind, f"run-{run_id}", namespace=trainer.namespace).returncode


@pytest.mark.full
async def test_another_namespace(sessions: Sessions, namespace: str):
    session = sessions()
    other = f"{namespace}-other"
    session.cluster.make_namespace(other)
    session.cluster.claim(other, CLAIM)
    try:
        run_id = await session.submit("echo there", kubernetes={"namespace": other})
        run = await session.ended(run_id)
        assert run.state == "succeeded", run.status
        assert session.log(run_id) == "there\n"
        assert session.cluster.get("pytorchjob", f"run-{run_id}", other)
    finally:
        session.cluster.delete_namespace(other)


@pytest.mark.full
async def test_a_namespace_that_is_removed_is_said(sessions: Sessions, namespace: str):
    session = sessions()
    other = f"{namespace}-gone"
    session.cluster.make_namespace(other)
    session.cluster.claim(other, CLAIM)
    run_id = await session.submit("echo up; sleep 600", kubernetes={"namespace": other})
    await session.until(run_id, lambda run: run.state == "running" and bool(run.status.attempts))
    session.cluster.delete_namespace(other)
    run = await session.ended(run_id)
    assert run.state == "failed"
    assert "removed from the cluster" in (run.status.reason or ""), run.status
