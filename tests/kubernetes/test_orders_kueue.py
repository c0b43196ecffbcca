"""What is done to runs that Kueue looks after: held by their workload, requeued into the line, moved to another queue."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.core.errors import ConflictError, NotFoundError
from hyperpod_jlab.core.job_actions import Change
from hyperpod_jlab.core.run import Run
from tests.kubernetes.session_fixtures import KubernetesSession
from tests.kubernetes.table_fixtures import kubectl
from tests.kubernetes.test_queues import kubernetes_cluster, session, waits

__all__ = ["kubernetes_cluster", "session"]  # fixtures: a cluster with Kueue, a namespace with queues

pytestmark = pytest.mark.timeout(300)


def running(run: Run) -> bool:
    return run.state == "running"


async def active(session: KubernetesSession) -> str:
    return await kubectl(session, "get", "workloads", "-o", "jsonpath={.items[*].spec.active}")


@pytest.mark.full
async def test_a_held_run_stays_in_the_queue_though_there_is_room(session: KubernetesSession) -> None:
    first = await waits(session, gpus_per_node=4)
    await session.until(first, running)
    second = await waits(session, gpus_per_node=4)
    await session.until(second, lambda run: run.status.reason_code == "quota")
    run = await session.hyperpod.runs.act(second, "hold")
    assert (run.state, run.status.reason_code) == ("waiting", "held")
    assert "false" in await active(session)
    (held,) = [job for job in await session.hyperpod.jobs() if job.run_id == second]
    assert held.state == "held"
    await session.hyperpod.runs.act(first, "cancel")
    await asyncio.sleep(4)
    assert (await session.hyperpod.runs.get(second)).status.reason_code == "held"
    await session.hyperpod.runs.act(second, "release")
    await session.until(second, running)
    with pytest.raises(ConflictError):
        await session.hyperpod.runs.act(second, "release")


async def test_a_requeued_run_goes_through_the_queue_to_its_next_attempt(session: KubernetesSession) -> None:
    run_id = await session.submit("echo $HYPERPOD_ATTEMPT; sleep 300", queue="team", resources={"gpus_per_node": 4})
    await session.until(run_id, lambda run: running(run) and session.log(run_id) == "1\n")
    await session.hyperpod.runs.act(run_id, "requeue")
    run = await session.until(run_id, lambda run: len(run.status.attempts) == 2 and running(run))
    assert run.status.attempts[0].state != "running"
    await session.until(run_id, lambda _: session.log(run_id, attempt=2) == "2\n")
    assert "false" not in await active(session)


@pytest.mark.full
async def test_a_waiting_run_is_moved_to_another_queue(session: KubernetesSession) -> None:
    first = await waits(session, gpus_per_node=4)
    await session.until(first, running)
    second = await waits(session, gpus_per_node=2)
    await session.until(second, lambda run: run.status.reason_code == "quota")
    with pytest.raises(NotFoundError, match="queue nothing-like-it not found"):
        await session.hyperpod.runs.act(second, "change", Change(queue="nothing-like-it"))
    await session.hyperpod.runs.act(second, "change", Change(queue="spare"))
    await session.until(second, running)
    with pytest.raises(ConflictError, match="only while a job is waiting"):
        await session.hyperpod.runs.act(second, "change", Change(queue="team"))


@pytest.mark.full
async def test_an_array_begins_with_as_many_tasks_as_the_quota_has_room_for(session: KubernetesSession) -> None:
    run_id = await session.submit("sleep 1", queue="team", array="1-6%5", resources={"gpus_per_node": 2})
    run = await session.ended(run_id)
    assert (run.state, run.children) == ("succeeded", {"succeeded": 6})
    job = session.cluster.get("job", f"run-{run_id}", session.namespace)
    assert job["spec"]["parallelism"] == 2
    single = await session.submit("true", queue="team", array="0")
    assert (await session.ended(single)).state == "succeeded"
