"""Jobs that were sent with kubectl become runs, with their logs: found by what kubectl calls them, each once."""

from __future__ import annotations

import asyncio
import getpass
import time
from typing import Any

import pytest

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, USER_ANNOTATION
from hyperpod_jlab.run.access import read_access
from tests.kubernetes.acting import CLUSTER, Acting, only_looking, user
from tests.kubernetes.cluster import KubernetesTestbed

__all__ = ["user"]


def replica(cluster: KubernetesTestbed, command: str) -> dict[str, Any]:
    container = {"name": "pytorch", "image": cluster.image, "command": ["sh", "-c", command]}
    pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"replicas": 1, "restartPolicy": "Never", "template": {"spec": pod}}


def job(cluster: KubernetesTestbed, command: str, name: str = "theirs") -> dict[str, Any]:
    """A PyTorchJob of two pods that nobody sent from here."""
    one = replica(cluster, command)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": {"Master": one, "Worker": one}},
    }


async def _logs(user: Acting, run_id: str, wanted: set[str]) -> None:
    end = time.monotonic() + 40
    while True:
        await user.hyperpod.engines.get(CLUSTER).remote_records.catch_up(
            user.hyperpod.runs.bundle(run_id), 5
        )
        found = {line for path in user.logs(run_id) for line in path.read_text().splitlines()}
        if wanted <= found:
            return
        assert time.monotonic() < end, found
        await asyncio.sleep(0.3)


async def test_a_running_job_is_adopted_followed_and_cancelled(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    command = "echo one of $RANK; sleep 8; echo two of $RANK; sleep 600"
    kubernetes_cluster.create(job(kubernetes_cluster, command), namespace=user.namespace)
    run_id = await user.hyperpod.adopt("pytorchjob.kubeflow.org/theirs")
    run = await user.until(run_id, lambda run: run.state == "running")
    assert (run.name, run.nodes, run.scheduler_id) == ("theirs", 2, "theirs")
    assert run.kind == "PyTorchJob"
    found = kubernetes_cluster.get("pytorchjob", "theirs", user.namespace)
    assert found["metadata"]["labels"][RUN_LABEL] == run_id
    rows = {row.run_id: row for row in await user.hyperpod.jobs()}
    assert (rows[run_id].user, rows[run_id].mine) == (getpass.getuser(), True)
    await _logs(user, run_id, {"one of 0", "one of 1", "two of 0", "two of 1"})
    access = await read_access(user.hyperpod.engines, user.hyperpod.runs, run_id)
    assert [shell.node_rank for shell in access.shells] == [0, 1], access
    for again in ("theirs", "pytorchjob/theirs", f"{user.namespace}/pytorchjob/theirs"):
        with pytest.raises(ConflictError) as error:
            await user.hyperpod.adopt(again)
        assert (error.value.code, error.value.detail["run_id"]) == ("already_adopted", run_id)
    await user.hyperpod.runs.act(run_id, "cancel")
    assert (await user.ended(run_id)).state == "cancelled"
    await _logs(user, run_id, {"two of 0"})
    gone = kubernetes_cluster.run("get", "pytorchjob", "theirs", namespace=user.namespace)
    assert "NotFound" in gone.stderr


@pytest.mark.full
async def test_an_ended_job_is_adopted_with_its_end(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    made = job(kubernetes_cluster, "echo said; exit 4")
    kubernetes_cluster.create(made, namespace=user.namespace)
    end = time.monotonic() + 60
    conditions: dict[str, str] = {}
    while conditions.get("Failed") != "True":
        assert time.monotonic() < end, conditions
        await asyncio.sleep(0.5)
        conditions = kubernetes_cluster.conditions("pytorchjob", "theirs", user.namespace)
    run_id = await user.hyperpod.adopt("theirs", name="by name")
    run = await user.ended(run_id)
    assert (run.name, run.state, run.status.exit_code) == ("by name", "failed", 4), run.status
    await _logs(user, run_id, {"said"})


@pytest.mark.full
async def test_another_job_of_the_same_name_is_another_run(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    made = job(kubernetes_cluster, "sleep 600")
    kubernetes_cluster.create(made, namespace=user.namespace)
    first = await user.hyperpod.adopt("theirs")
    await user.until(first, lambda run: run.state == "running")
    kubernetes_cluster.kubectl("delete", "pytorchjob", "theirs", namespace=user.namespace)
    await asyncio.sleep(1.1)  # the id follows from the second in which a job was made
    kubernetes_cluster.create(made, namespace=user.namespace)
    await user.hyperpod.runs.act(first, "cancel")
    second = await user.hyperpod.adopt("theirs")
    assert second != first
    await user.until(second, lambda run: run.state == "running")
    assert (await user.ended(first)).state == "cancelled"
    await user.hyperpod.runs.act(second, "cancel")


@pytest.mark.full
async def test_what_cannot_be_adopted_is_told_why(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    for text, kind in (
        ("nothing", NotFoundError),
        ("pytorchjob/nothing", NotFoundError),
        ("deployment/x", UnsupportedError),
        ("../../x", InvalidInputError),
        ("a b", InvalidInputError),
        ("x;reboot", InvalidInputError),
    ):
        with pytest.raises(kind):
            await user.hyperpod.adopt(text)
    made = job(kubernetes_cluster, "sleep 600", "others")
    made["metadata"]["annotations"] = {USER_ANNOTATION: "somebody-else"}
    made["metadata"]["labels"] = {RUN_LABEL: "20260101-000000-aaaaaa"}
    kubernetes_cluster.create(made, namespace=user.namespace)
    with pytest.raises(DeniedError, match="is a run of somebody-else"):
        await user.hyperpod.adopt("others")


@pytest.mark.full
async def test_who_may_only_look_adopts_without_the_label(
    kubernetes_cluster: KubernetesTestbed, user: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = job(kubernetes_cluster, "echo seen; sleep 600")
    kubernetes_cluster.create(made, namespace=user.namespace)
    async with only_looking(kubernetes_cluster, user, monkeypatch) as watching:
        looker = watching.hyperpod
        run_id = await looker.adopt("theirs")
        found = kubernetes_cluster.get("pytorchjob", "theirs", user.namespace)
        assert RUN_LABEL not in found["metadata"].get("labels", {})
        await watching.until(run_id, lambda run: run.state == "running")
        await _logs(watching, run_id, {"seen"})
        with pytest.raises(ConflictError):
            await looker.adopt("theirs")
        with pytest.raises(DeniedError, match="permission to delete"):
            await looker.runs.act(run_id, "cancel")
