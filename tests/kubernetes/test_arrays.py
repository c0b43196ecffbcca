"""Arrays on a real cluster: one Job, of which each pod is a task with records, a log and a state of its own."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import HyperpodError, RefusedError, UnsupportedError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.actions import cancelled
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.engines.kubernetes.observe.pods import LIMIT, Task, Tasks, find_position, job_row
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunSnapshot
from hyperpod_jlab.engines.kubernetes.observe.runs import RunTracker
from hyperpod_jlab.launcher.commands import find_task
from hyperpod_jlab.run.view import with_observations
from hyperpod_jlab.storage.partition import Partition
from tests.kubernetes.session_fixtures import KubernetesSession
from tests.kubernetes.test_verdicts import pod
from tests.storage.bundles import make_bundle, write_files


@pytest.mark.parametrize(
    ("listed", "tasks"), [("0-3", [0, 1, 2, 3]), ("1-3,7", [1, 2, 3, 7]), ("9", [9]), ("2,4-5", [2, 4, 5])]
)
def test_a_place_in_the_job_is_a_task_of_the_array(listed: str, tasks: list[int]):
    assert [find_task(listed, place) for place in range(len(tasks))] == tasks
    assert [find_position(listed, task) for task in tasks] == [*range(len(tasks))]
    with pytest.raises(SystemExit):
        find_task(listed, len(tasks))


def _task_snapshot(now: float, *phases: str) -> RunSnapshot:
    """The second task of a Job that has not counted it as ended, with these pods."""
    job = {"metadata": {"name": "run-x", "uid": "1"}, "spec": {"parallelism": 2, "completions": 2}}
    pods = tuple(pod(0, phase, None if phase == "Running" else 143) for phase in phases)
    task = Task(None, None, bool(pods))
    return RunSnapshot(replace(job_row(BatchJob(), job), task=task), pods, now)


@pytest.mark.parametrize(
    ("phases", "said"),
    [((), ("cancelled", None)), (("Failed",), ("cancelled", None)), (("Running",), ("running", "being cancelled"))],
)
@pytest.mark.parametrize("noted", [True, False], ids=["noted", "unnoted"])
def test_a_task_is_cancelled_once_its_pod_has_ended(
    tmp_path: Path, phases: tuple[str, ...], said: tuple[str, str | None], noted: bool
):
    """Its Job counts it as failed a moment later: it does not wait meanwhile."""
    (tmp_path / "fsx").mkdir()
    array = make_bundle(Partition(tmp_path / "fsx", shared=True), "x", code=None, array="0-1")
    task, now = array.child(1), time.time()
    node = {"node_rank": 0, "node": "n0", "started_at": now - 60}
    ended = {"ended_at": now + 1, "exit_code": 143, "stopped_by": "cancel"}
    begun = {**node, **(ended if noted and phases != ("Running",) else {})}
    write_files(task.records, [("status/attempt-1/node-0.json", begun)])
    task.add_action("cancel", "ada")
    task.add_observation(cancelled("run-x"))
    place = RunLocation(task.run_id, BatchJob(), "team", "run-x", array="0-1", task=1)
    config = parse(KubernetesCluster, {"orchestrator": "kubernetes"})
    seen = {task.run_id: _task_snapshot(now + 1, *phases)}
    words, _, doubted = RunTracker(ClusterConnection(config))._observe_all([(task, place)], seen)
    assert not doubted
    status = derive(with_observations(task, task.read(), words), StateContext(now + 2, "alive"))
    assert (status.state, status.reason) == said


def _failed(reason: str) -> list[dict[str, Any]]:
    return [{"type": "Failed", "status": "True", "reason": reason}]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, ["waiting"] * 4),
        ({"active": 2}, ["waiting"] * 4),
        ({"active": 1, "completedIndexes": "0,2-3"}, ["COMPLETED", "waiting", "COMPLETED", "COMPLETED"]),
        ({"active": 1, "failedIndexes": "1"}, ["waiting", "FAILED", "waiting", "waiting"]),
        (
            {"conditions": _failed("FailedIndexes"), "completedIndexes": "0-2", "failedIndexes": "3"},
            ["COMPLETED"] * 3 + ["FAILED"],
        ),
        ({"conditions": _failed("DeadlineExceeded"), "completedIndexes": "0"}, ["COMPLETED"] + ["TIMEOUT"] * 3),
        ({"completedIndexes": "nonsense", "failedIndexes": 7}, ["waiting"] * 4),
    ],
)  # fmt: skip
def test_what_a_job_says_of_its_tasks(status: dict[str, Any], words: list[str]):
    job = {"metadata": {"name": "run-x", "uid": "1"}, "spec": {"parallelism": 2, "completions": 4}, "status": status}
    tasks = Tasks(job, ())
    seen = []
    for place in range(4):
        row = job_row(BatchJob(), job)
        word = tasks.build_task(place).observe(row.observe(1000.0), job)
        seen.append(word.verdict or word.state)
        waits = LIMIT if word.state == "waiting" and status.get("active") == 2 else None
        assert word.reason_code == waits
    assert seen == words


async def children(session: KubernetesSession, run_id: str) -> dict[int, Run]:
    """The tasks of an array, by their indices."""
    found = await session.hyperpod.runs.children(run_id)
    return {int(run.run_id.partition(".")[2]): run for run in found}


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
    logs = await session.hpj("logs", run_id)
    assert {f"task {index} attempt 1" for index in tasks} <= {
        line.rpartition("|")[2].strip() for line in logs.out.splitlines()
    }, logs.out
    # Whoever looks for the first time, after all is over, sees the same.
    told = await session.hpj("show", run_id, "--json")
    assert '"succeeded": 3' in told.out


async def test_one_task_is_cancelled_and_the_others_go_on(session: KubernetesSession):
    run_id = await session.submit("echo on; sleep 600", array="0-1")
    for index in (0, 1):
        # The log may say it before the pod's state does.
        await session.until(
            f"{run_id}.{index}", lambda run: run.state == "running" and session.log(run.run_id) == "on\n"
        )
    with pytest.raises(UnsupportedError, match="single tasks"):
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
    once = '[ "$HYPERPOD_ARRAY_INDEX.$HYPERPOD_ATTEMPT" != 0.1 ] || sleep 600'
    run_id = await session.submit(once, array="0-2%1")
    await session.running(f"{run_id}.0")
    waiting = await session.hyperpod.runs.get(f"{run_id}.2")
    assert (waiting.state, waiting.status.reason_code) == ("waiting", "array_limit")
    await session.hyperpod.runs.act(f"{run_id}.2", "cancel")
    assert (await session.hyperpod.runs.get(f"{run_id}.2")).state == "cancelled"
    (pod,) = session.pods_of(run_id)
    node, key = pod["spec"]["nodeName"], "hyperpod-jlab/test=lost:NoExecute"
    session.cluster.kubectl("taint", "node", node, key)
    try:
        # Not until it runs: the second attempt may have ended before it is looked at.
        run = await session.until(f"{run_id}.0", lambda run: len(run.status.attempts) == 2)
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
    with pytest.raises(HyperpodError, match="wait for other runs") as refused:
        await session.submit("true", after=[await session.submit("true")])
    assert refused.value.code == "unsupported"


async def test_a_requeue_starts_the_tasks_anew_that_run(session: KubernetesSession):
    once = '[ "$HYPERPOD_ARRAY_INDEX.$HYPERPOD_ATTEMPT" != 1.1 ] || sleep 600'
    run_id = await session.submit(once, array="0-1")
    await session.ended(f"{run_id}.0")
    await session.running(f"{run_id}.1")
    await session.hyperpod.runs.act(run_id, "requeue")
    run = await session.ended(run_id)
    assert run.children == {"succeeded": 2}, run.status
    tasks = await children(session, run_id)
    assert [len(tasks[index].status.attempts) for index in (0, 1)] == [1, 2]
