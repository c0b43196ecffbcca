"""What is done to runs and jobs on a real cluster: cancel, hold, release, requeue, another queue; and what is refused, in words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, DeniedError, NotFoundError, UnsupportedError
from hyperpod_jlab.core.job_actions import Change
from hyperpod_jlab.engines.forwarding import LocalEnd
from tests.kubernetes.acting import CLUSTER, Acting, only_looking, user
from tests.kubernetes.cluster import KubernetesTestbed

__all__ = ["user"]

pytestmark = pytest.mark.full


def object_of(run_id: str) -> str:
    return f"run-{run_id}"


def job_of(cluster: KubernetesTestbed, user: Acting, run_id: str) -> dict[str, Any]:
    return cluster.get("pytorchjob", object_of(run_id), user.namespace)


def pods_of(cluster: KubernetesTestbed, user: Acting) -> list[str]:
    items = cluster.get("pods", namespace=user.namespace)["items"]
    return [pod["metadata"]["name"] for pod in items]


async def once(there: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not await asyncio.to_thread(there):
        assert time.monotonic() < end, "never so"
        await asyncio.sleep(0.3)


async def test_a_run_that_waits_for_room_is_held_stays_held_and_is_released(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    gated = {"template": {"spec": {"schedulingGates": [{"name": "tests/gate"}]}}}
    run_id = await user.submit("echo begun", kubernetes={"patch": gated})
    await user.until(run_id, lambda run: run.state == "waiting")
    await once(lambda: pods_of(kubernetes_cluster, user))
    run = await user.hyperpod.runs.act(run_id, "hold")
    assert (run.state, run.status.reason_code) == ("waiting", "held")
    await once(lambda: not pods_of(kubernetes_cluster, user))
    await asyncio.sleep(3)
    assert not pods_of(kubernetes_cluster, user)
    with pytest.raises(ConflictError, match="running"):
        await user.hyperpod.runs.act(run_id, "requeue")
    run = await user.hyperpod.runs.act(run_id, "release")
    assert (run.state, run.status.reason_code) != ("waiting", "held")
    await once(lambda: pods_of(kubernetes_cluster, user))
    with pytest.raises(ConflictError, match="is not held"):
        await user.hyperpod.runs.act(run_id, "release")
    await user.hyperpod.runs.act(run_id, "cancel")
    assert (await user.ended(run_id)).state == "cancelled"
    await once(lambda: not pods_of(kubernetes_cluster, user))


async def test_a_running_run_is_requeued_as_its_next_attempt(user: Acting) -> None:
    command = "echo begun $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"
    run_id = await user.submit(command, resources={"nodes": 2})
    await user.until(run_id, lambda run: user.log(run_id, 1) == "begun 1\n")
    with pytest.raises(ConflictError, match="waiting"):
        await user.hyperpod.runs.act(run_id, "hold")
    await user.hyperpod.runs.act(run_id, "requeue")
    run = await user.ended(run_id)
    assert run.state == "succeeded", run.status
    assert len(run.status.attempts) == 2
    assert user.log(run_id, 1) == "begun 1\n"
    assert [user.log(run_id, node, attempt=2) for node in (0, 1)] == ["begun 2\n"] * 2


async def test_a_run_whose_job_is_gone_is_cancelled_without_an_error(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    run_id = await user.submit("sleep 600")
    await user.running(run_id)
    name = object_of(run_id)
    kubernetes_cluster.kubectl("delete", "pytorchjob", name, namespace=user.namespace)
    await user.hyperpod.runs.act(run_id, "cancel")
    assert (await user.ended(run_id)).state == "cancelled"
    again = await user.hyperpod.runs.act(run_id, "cancel")
    assert again.state == "cancelled"


async def test_what_has_ended_keeps_its_job_and_its_end(kubernetes_cluster: KubernetesTestbed, user: Acting) -> None:
    run_id = await user.submit("true")
    await user.ended(run_id)
    await once(
        lambda: (
            kubernetes_cluster.conditions("pytorchjob", object_of(run_id), user.namespace).get("Succeeded") == "True"
        )
    )
    assert (await user.hyperpod.runs.act(run_id, "cancel")).state == "succeeded"
    assert job_of(kubernetes_cluster, user, run_id)
    (said,) = await user.hyperpod.engines.get(CLUSTER).job_actions.act_on_jobs("cancel", [object_of(run_id)])
    assert isinstance(said.error, ConflictError)
    assert "has ended" in said.error.message
    assert job_of(kubernetes_cluster, user, run_id)


async def test_the_time_limit_cannot_be_changed_and_there_may_be_no_such_queue(user: Acting) -> None:
    run_id = await user.submit("sleep 600")
    await user.running(run_id)
    with pytest.raises(UnsupportedError, match="time limit"):
        await user.hyperpod.runs.act(run_id, "change", Change(time_limit=60))
    with pytest.raises((UnsupportedError, NotFoundError), match="queue"):
        await user.hyperpod.runs.act(run_id, "change", Change(queue="nowhere"))
    await user.hyperpod.runs.act(run_id, "cancel")


def foreign(cluster: KubernetesTestbed, name: str) -> dict[str, Any]:
    """A Job that nobody sent from here."""
    container = {"name": "c", "image": cluster.image, "command": ["sleep", "600"]}
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


async def test_jobs_of_the_table_are_acted_on_one_result_each(
    kubernetes_cluster: KubernetesTestbed, user: Acting
) -> None:
    names = ["one", "two"]
    objects = [foreign(kubernetes_cluster, name) for name in names]
    kubernetes_cluster.create(*objects, namespace=user.namespace)
    await once(lambda: len(pods_of(kubernetes_cluster, user)) == 2)
    engine = user.hyperpod.engines.get(CLUSTER)
    jobs = ["job/one", f"{user.namespace}/job/two", "job/three", "pod/x", "Job one!", "nonsense"]
    results = await engine.job_actions.act_on_jobs("cancel", jobs)
    assert [result.scheduler_id for result in results] == jobs
    codes = [result.error.code if result.error else None for result in results]
    assert codes == [None, None, "no_such_job", "unsupported", "invalid_job", "no_such_job"]
    await once(lambda: not pods_of(kubernetes_cluster, user))


async def test_who_may_only_look_is_told_which_right_is_missing(
    kubernetes_cluster: KubernetesTestbed, user: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await user.submit("sleep 600")
    await user.running(run_id)
    name = object_of(run_id)
    async with only_looking(kubernetes_cluster, user, monkeypatch) as looking:
        looker = looking.hyperpod
        engine = looker.engines.get(CLUSTER)
        (said,) = await engine.job_actions.act_on_jobs("cancel", [f"pytorchjob/{name}"])
        assert isinstance(said.error, DeniedError)
        assert (
            said.error.message
            == f"you do not have the permission to delete pytorchjobs.kubeflow.org in the namespace {user.namespace}"
        )
        with pytest.raises(DeniedError, match="permission to delete"):
            await looker.runs.act(run_id, "cancel")
        bundle = looker.runs.bundle(run_id)
        with pytest.raises(DeniedError, match="permission to forward ports"):
            await engine.forwarding.forward(bundle, 0, 80, LocalEnd(0, print, print))
        assert (await looker.runs.get(run_id)).state == "running"  # the cancel left the journal
    await user.hyperpod.runs.act(run_id, "cancel")
