"""Arrays on a real cluster: one Job, of which each pod is a task with records, a log and a state of its own."""

from __future__ import annotations

import pytest

from hyperpod_jlab.model.errors import HyperpodError, RefusedError, UnsupportedError
from hyperpod_jlab.model.run import Run
from tests.kubernetes.session_fixtures import KubernetesSession

BY_CLAIM = pytest.mark.parametrize("claim", [True, False], indirect=True)


async def children(session: KubernetesSession, run_id: str) -> dict[int, Run]:
    """The tasks of an array, by their indices."""
    found = await session.hyperpod.runs.children(run_id)
    return {int(run.run_id.partition(".")[2]): run for run in found}


@BY_CLAIM
async def test_each_task_has_a_state_and_a_log_of_its_own(session: KubernetesSession):
    """The indices are not those of the Job, some tasks fail, and one runs out of attempts; the others are none the worse."""
    command = "echo task $HYPERPOD_ARRAY_INDEX attempt $HYPERPOD_ATTEMPT; [ $HYPERPOD_ARRAY_INDEX != 5 ] || exit 7"
    run_id = await session.submit(command, array="1-3,5%2", max_restarts=1)
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code, run.kind) == ("failed", 7, "Job")
    assert run.children == {"succeeded": 3, "failed": 1}
    tasks = await children(session, run_id)
    assert {index: one.state for index, one in tasks.items()} == {
        1: "succeeded",
        2: "succeeded",
        3: "succeeded",
        5: "failed",
    }
    assert [len(tasks[index].status.attempts) for index in (1, 2, 3, 5)] == [1, 1, 1, 2]
    assert tasks[5].status.exit_code == 7
    for index in (1, 2, 3, 5):
        await session.hyperpod.runs.catch_up(f"{run_id}.{index}", 20)
        assert session.log(f"{run_id}.{index}") == f"task {index} attempt 1\n"
    assert session.log(f"{run_id}.5", attempt=2) == "task 5 attempt 2\n"
    job = session.cluster.get("job", f"run-{run_id}", session.namespace)
    assert job["spec"]["parallelism"] == 2
    # Whoever looks for the first time, after all is over, sees the same.
    told = await session.hpj("show", run_id, "--json")
    assert '"succeeded": 3' in told.out


@BY_CLAIM
async def test_one_task_is_cancelled_and_the_others_go_on(session: KubernetesSession):
    run_id = await session.submit("echo on; sleep 600", array="0-1")
    for index in (0, 1):
        await session.until(
            f"{run_id}.{index}", lambda run: session.log(run.run_id) == "on\n"
        )
    with pytest.raises(UnsupportedError, match="by itself"):
        await session.hyperpod.runs.act(f"{run_id}.1", "requeue")
    await session.hyperpod.runs.act(f"{run_id}.1", "cancel")
    child = await session.ended(f"{run_id}.1")
    other = await session.hyperpod.runs.get(f"{run_id}.0")
    assert (child.state, other.state) == ("cancelled", "running")
    assert session.log(f"{run_id}.1") == "on\n"
    array = await session.hyperpod.runs.get(run_id)
    assert array.children == {"running": 1, "cancelled": 1}
    await session.hyperpod.runs.act(run_id, "cancel")
    array = await session.ended(run_id)
    assert (array.state, array.children) == ("cancelled", {"cancelled": 2})


async def test_a_lost_pod_comes_anew_for_its_task_alone(session: KubernetesSession):
    """An eviction is no failure of the task; a task that has not begun tells that it waits for its turn, and ends if it is cancelled."""
    run_id = await session.submit("sleep 8", array="0-2%1")
    await session.running(f"{run_id}.0")
    waiting = await session.hyperpod.runs.get(f"{run_id}.2")
    assert (waiting.state, waiting.status.reason_code) == ("waiting", "array_limit")
    await session.hyperpod.runs.act(f"{run_id}.2", "cancel")
    assert (await session.hyperpod.runs.get(f"{run_id}.2")).state == "cancelled"
    (pod,) = session.pods_of(run_id)
    node, key = pod["spec"]["nodeName"], "hyperpod-jlab/test=lost:NoExecute"
    session.cluster.kubectl("taint", "node", node, key)
    try:
        run = await session.running(f"{run_id}.0", attempt=2)
    finally:
        session.cluster.kubectl("taint", "node", node, f"{key}-")
    assert run.status.attempts[0].reason_code == "node_fail"
    run = await session.ended(run_id)
    assert run.children == {"succeeded": 2, "cancelled": 1}


async def test_what_an_array_cannot_be_is_refused_with_why(session: KubernetesSession):
    for spec, field in (
        ({"resources": {"nodes": 2}}, "resources.nodes"),
        ({"kubernetes": {"kind": "PyTorchJob"}}, "kubernetes.kind"),
    ):
        with pytest.raises(RefusedError) as caught:
            await session.submit("true", array="0-1", **spec)
        assert (caught.value.code, caught.value.detail.get("field")) == ("unsupported", field)
    with pytest.raises(HyperpodError, match="wait for others") as refused:
        await session.submit("true", after=[await session.submit("true")])
    assert refused.value.code == "unsupported"
