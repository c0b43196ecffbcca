"""Clusters without a training operator, with one of another version, and users who lack one right at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import DeniedError, HyperpodError
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


async def test_no_operator_is_there(
    start_kubernetes: Callable[..., AbstractContextManager[KubernetesTestbed]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run is a plain Job, which is said; a kind that the cluster lacks is refused with what it has."""
    with start_kubernetes(nodes=1, parts=()) as cluster:
        cluster.kubectl("create", "namespace", "team")
        sessions = Sessions(cluster, "team", tmp_path, monkeypatch)
        try:
            session = sessions()
            preview = await session.hyperpod.submitter.preview(session.request("echo ran"))
            chosen = next(one for one in preview.findings if one.code == "kind")
            assert "as a Job" in chosen.message
            two = {"processes_per_node": 2}
            run_id = await session.submit("echo ran", resources=two, launcher="python")
            run = await session.ended(run_id)
            assert run.state == "succeeded", run.status
            assert [session.log(run_id, 0, rank) for rank in (0, 1)] == ["ran\n"] * 2
            with pytest.raises(HyperpodError) as refused:
                await session.submit(kubernetes={"kind": "PyTorchJob"})
            assert refused.value.code == "no_such_kind"
            assert "it has: Job" in str(refused.value.hint)
        finally:
            await sessions.close()


async def test_fields_that_we_do_not_know_are_kept(kubernetes: KubernetesTestbed, session: KubernetesSession) -> None:
    """An operator of a later version: more fields in the object, and conditions of other names in its status."""
    crd = "pytorchjobs.kubeflow.org"
    keep = "x-kubernetes-preserve-unknown-fields"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties"
    opened = [{"op": "add", "path": f"{path}/{part}/{keep}", "value": True} for part in ("spec", "status")]
    closed = [{"op": "remove", "path": one["path"]} for one in opened]
    kubernetes.kubectl("patch", "crd", crd, "--type=json", "-p", json.dumps(opened))
    try:
        run_id = await session.submit("echo begun; sleep 15; echo ran")
        await session.running(run_id)
        job, namespace = f"run-{run_id}", session.namespace
        spec: dict[str, Any] = {"spec": {"future": {"mode": "fast"}}}
        kubernetes.kubectl("patch", "pytorchjob", job, "--type=merge", "-p", json.dumps(spec), namespace=namespace)
        strange = {"type": "Levitating", "status": "True", "reason": "New", "message": "<b>"}
        old = session.job_of(run_id)["status"]["conditions"]
        status = {"status": {"conditions": [*old, strange], "novel": {"x": 1}}}
        kubernetes.kubectl(
            *("patch", "pytorchjob", job, "--type=merge", "--subresource=status"),
            *("-p", json.dumps(status)),
            namespace=namespace,
        )
        assert (await session.hyperpod.runs.get(run_id)).state == "running"
        jobs = await session.hyperpod.jobs("k8s")
        assert any(one.run_id == run_id for one in jobs)
        run = await session.ended(run_id)
        assert (run.state, session.log(run_id)) == ("succeeded", "begun\nran\n")
        held = await session.submit("echo ran")
        assert (await session.ended(held)).state == "succeeded"
        assert session.job_of(run_id)["spec"]["future"] == {"mode": "fast"}
    finally:
        kubernetes.kubectl("patch", "crd", crd, "--type=json", "-p", json.dumps(closed))


RIGHTS: list[dict[str, Any]] = [
    {
        "apiGroups": ["kubeflow.org"],
        "resources": ["pytorchjobs"],
        "verbs": ["create", "get", "list", "watch", "patch", "delete"],
    },
    {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]


def without(resource: str, verb: str) -> list[dict[str, Any]]:
    """All rights but one."""
    left = []
    for rule in RIGHTS:
        for one in rule["resources"]:
            verbs = [each for each in rule["verbs"] if (one, each) != (resource, verb)]
            left.append({**rule, "resources": [one], "verbs": verbs or ["impossible"]})
    return left


@pytest.mark.parametrize(
    "lacking",
    [
        ("pytorchjobs", "create"),
        ("pytorchjobs", "get"),
        ("pytorchjobs", "list"),
        ("pytorchjobs", "watch"),
        ("pytorchjobs", "delete"),
        ("pods", "list"),
        ("pods", "watch"),
        ("events", "list"),
        ("pods/log", "get"),
    ],
    ids=lambda right: "-".join(right).replace("/", "-"),
)
async def test_one_right_is_missing(
    lacking: tuple[str, str], kubernetes_cluster: KubernetesTestbed, namespace: str, sessions: Sessions
) -> None:
    """Either all goes as usual, or the refusal names the verb, the kind of object and the namespace; no state is wrong."""
    resource, verb = lacking
    kubeconfig = kubernetes_cluster.user("alice", namespace, rules=without(resource, verb))
    session = sessions(kubeconfig=kubeconfig)
    if verb == "create":
        with pytest.raises(HyperpodError) as refused:
            await session.submit("echo ran")
        _names_the_right(refused.value, resource, verb, namespace)
        assert not (await session.hyperpod.runs.list()).runs
        return
    run_id = await session.submit("echo ran; sleep 2")
    try:
        run = await session.until(run_id, lambda run: run.status.ended, 60)
        assert run.state == "succeeded", run.status
        assert session.log(run_id) == "ran\n"
    except AssertionError:
        run = await session.hyperpod.runs.get(run_id)
        assert run.state in {"unknown", "running"}, run.status
        reason = str(run.status.reason)
        assert f"{verb} {resource}" in reason or f"{verb} pods" in reason, run.status
        assert namespace in reason
    if verb == "delete":
        other = await session.submit("sleep 600")
        await session.running(other)
        with pytest.raises(DeniedError) as denied:
            await session.hyperpod.runs.act(other, "cancel")
        _names_the_right(denied.value, resource, verb, namespace)
        assert (await session.hyperpod.runs.get(other)).state == "running"


def _names_the_right(error: HyperpodError, resource: str, verb: str, namespace: str) -> None:
    said = f"{error} {error.hint}"
    assert verb in said
    assert resource in said
    assert namespace in said
