"""What the cluster does not take, or takes and can never start: the user reads why, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hyperpod_jlab.core.errors import RefusedError
from tests.kubernetes.fault_fixtures import refused, why
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions


def quota(session: KubernetesSession, **hard: str) -> None:
    """What the namespace may have at most."""
    made = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "little"},
        "spec": {"hard": {name.replace("__", "/").replace("_", "."): hard[name] for name in hard}},
    }
    session.cluster.create(made, namespace=session.namespace)


async def cancelled(session: KubernetesSession, run_id: str) -> None:
    """What waits for ever can be cancelled."""
    await session.hyperpod.runs.act(run_id, "cancel")
    run = await session.ended(run_id)
    assert run.state == "cancelled"


async def test_an_image_that_does_not_exist(session: KubernetesSession) -> None:
    run_id = await session.submit(environment={"image": "localhost/testbed/nothing:1"})
    reason = await why(session, run_id, "image_registry")
    assert "localhost/testbed/nothing:1" in str(reason.reason)
    run = await session.hyperpod.runs.get(run_id)
    assert run.state in {"queued", "starting", "waiting"}, run.status
    await cancelled(session, run_id)


@pytest.mark.full
async def test_an_image_whose_name_is_none(session: KubernetesSession) -> None:
    error = await refused(session, environment={"image": "Not A Name"})
    assert error.code == "image_name"
    assert "Not A Name" in error.message


async def test_a_cluster_without_a_claim(sessions: Sessions) -> None:
    session = sessions(claim=False)
    error = await refused(session)
    assert error.code == "no_storage"
    assert 'storage = { claim = "fsx-claim", mount = "/data" }' in (error.hint or "")
    with pytest.raises(RefusedError, match="need shared storage"):
        await session.hyperpod.submitter.preview(session.request("echo ran"))


async def test_a_claim_that_does_not_exist(sessions: Sessions) -> None:
    session = sessions(storage={"claim": "nothing", "mount": "/data"})
    error = await refused(session)
    assert error.code == "no_claim"
    assert "nothing" in error.message
    assert session.namespace in error.message


async def test_a_namespace_that_does_not_exist(sessions: Sessions) -> None:
    session = sessions()
    storage = {"claim": "fsx", "mount": "/data"}
    nowhere = sessions(claim=False, storage=storage, namespace="no-such-namespace")
    error = await refused_anywhere(nowhere)
    assert error.code == "no_namespace"
    assert "no-such-namespace" in error.message
    assert "kubectl get namespaces" in str(error.hint)
    error = await refused(session, kubernetes={"namespace": "no-such-namespace"})
    assert error.code == "no_namespace"


async def test_of_a_namespace_that_does_not_exist_nothing_else_is_said(session: KubernetesSession) -> None:
    """Neither that it has no claim nor that it has no queue."""
    there: dict[str, Any] = {"kubernetes": {"namespace": "no-such-namespace"}, "queue": "any"}
    preview = await session.hyperpod.submitter.preview(session.request(**there))
    errors = [found.code for found in preview.findings if found.level in {"error", "warning"}]
    assert errors == ["no_namespace"]


async def refused_anywhere(session: KubernetesSession) -> Any:
    """Submit what cannot be; nothing is left of the run here."""
    with pytest.raises(Exception) as told:  # noqa: PT011 - what it is is asserted by the caller
        await session.submit()
    assert not (await session.hyperpod.runs.list()).runs
    return told.value


async def test_no_jobs_left_in_the_quota(session: KubernetesSession) -> None:
    """The API server refuses the job."""
    quota(session, count__pytorchjobs_kubeflow_org="0")
    error = await refused(session)
    assert error.code == "quota_exceeded"
    assert "little" in str(error)


@pytest.mark.full
async def test_no_pods_left_in_the_quota(session: KubernetesSession) -> None:
    """The job is taken, the operator cannot make its pods: the run waits and says so, and goes on when there is room."""
    quota(session, pods="0")
    run_id = await session.submit("echo ran")
    reason = await why(session, run_id, "quota_exceeded")
    assert "little" in str(reason.reason)
    session.cluster.kubectl("delete", "resourcequota", "little", namespace=session.namespace)
    run = await session.ended(run_id)
    assert (run.state, session.log(run_id)) == ("succeeded", "ran\n")


@pytest.mark.full
async def test_a_rule_of_the_cluster_refuses_it(session: KubernetesSession) -> None:
    """An admission policy of the admin's, here one for this namespace only."""
    rule = f"no-{session.namespace}"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": rule},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": ["kubeflow.org"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pytorchjobs"],
                    }
                ]
            },
            "validations": [{"expression": "false", "message": "every job needs a cost centre <b>of its own</b>"}],
        },
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": session.namespace}}
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": rule},
        "spec": {"policyName": rule, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": here}},
    }
    session.cluster.create(policy, binding)
    try:
        for _ in range(50):  # the API server takes it up after a moment
            preview = await session.hyperpod.submitter.preview(session.request())
            if any(finding.level == "error" for finding in preview.findings):
                break
        error = await refused(session)
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            session.cluster.kubectl("delete", kind, rule)
    assert "every job needs a cost centre <b>of its own</b>" in error.message
    assert error.code in {"webhook_denied", "policy_denied", "invalid_object"}


@pytest.mark.full
async def test_the_operators_own_webhook_refuses_it(session: KubernetesSession) -> None:
    """A manifest with a kind of replica which the operator does not know."""
    container = [{"name": "pytorch", "image": session.cluster.image}]
    replica = {"replicas": 1, "template": {"spec": {"containers": container}}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": {"Boss": replica}}}
    (session.folder / "job.yaml").write_text(yaml.safe_dump(job))
    error = await refused(session, source={"kind": "native", "path": "job.yaml"})
    assert "Boss" in error.message
    assert error.code == "webhook_denied"
    assert "training-operator" in str(error.hint)


@pytest.mark.full
@pytest.mark.parametrize(
    ("wanted", "named", "field"),
    [
        ({"cpus": 1000}, "1000 CPUs", "resources.cpus"),
        ({"gpus_per_node": 64}, "64 GPUs", "resources.gpus_per_node"),
        ({"accelerators": {"kind": "neuron", "count": 1}}, "aws.amazon.com/neuroncore", "resources.gpus_per_node"),
    ],
    ids=["cpus", "gpus", "neuron"],
)
async def test_more_than_a_node_has_is_said_before_it_is_sent(
    session: KubernetesSession, wanted: dict[str, Any], named: str, field: str
) -> None:
    preview = await session.hyperpod.submitter.preview(session.request(resources=wanted))
    (found,) = [finding for finding in preview.findings if finding.level == "error"]
    assert (found.code, found.field) == ("too_large", field)
    assert named in found.message
    error = await refused(session, resources=wanted)
    assert named in error.message


@pytest.mark.full
async def test_a_run_id_whose_name_would_be_too_long_or_odd(session: KubernetesSession) -> None:
    """The longest id works to the end, and what is no id reaches no cluster."""
    longest = "x" * 40
    assert await session.submit("echo ran", run_id=longest, resources={"nodes": 2}) == longest
    run = await session.ended(longest)
    assert run.state == "succeeded"
    assert [session.log(longest, node) for node in (0, 1)] == ["ran\n"] * 2
    for name in ("Upper", "a_b", "a/b", "-a", "x" * 41, "", "a.b", "ä"):
        answer = await session.hpj("--json", "submit", "-c", "true", f"--run-id={name}")
        assert answer.code == 2, name
