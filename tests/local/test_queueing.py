"""Slots, holds, requeues, dependencies and GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, RefusedError
from hyperpod_jlab.engines.local import machine
from tests.local.conftest import LocalCluster


@pytest.mark.parametrize("slots", [1])
async def test_later_runs_wait_with_a_reason_and_in_order(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    gate.touch()
    wait = f"while [ -e {gate} ]; do sleep 0.05; done"
    first = await local.submit(wait, name="first")
    await local.until(first, lambda run: run.state == "running")
    second = await local.submit("date +%s%N", name="second")
    third = await local.submit("date +%s%N", name="third")
    run = await local.until(second, lambda run: run.status.reason_code == "slots")
    assert run.state == "waiting"
    assert run.status.reason == "waiting for first"
    await local.until(third, lambda run: run.status.reason_code == "slots")
    why = await local.hyperpod.runs.explain_wait(third)
    assert why.position == 2
    assert why.ahead == (second,)
    queue = (await local.hyperpod.queues())[0]
    assert (queue.slots, queue.slots_free, queue.running, queue.waiting) == (1, 0, 1, 2)
    gate.unlink()
    assert (await local.ended(third)).state == "succeeded"
    assert int(local.log(second)) < int(local.log(third))


@pytest.mark.parametrize("slots", [1])
async def test_hold_and_release(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    gate.touch()
    first = await local.submit(f"while [ -e {gate} ]; do sleep 0.05; done")
    await local.until(first, lambda run: run.state == "running")
    held = await local.submit("echo held one")
    await local.until(held, lambda run: run.state == "waiting")
    await local.hyperpod.runs.act(held, "hold")
    await local.until(held, lambda run: run.status.reason_code == "held")
    later = await local.submit("echo later one")
    gate.unlink()
    assert (await local.ended(later)).state == "succeeded", "a held run does not block the line"
    assert (await local.hyperpod.runs.get(held)).status.reason_code == "held"
    await local.hyperpod.runs.act(held, "release")
    assert (await local.ended(held)).state == "succeeded"


async def test_requeue_opens_the_next_attempt(local: LocalCluster) -> None:
    run_id = await local.submit('[ "$HYPERPOD_ATTEMPT" = 2 ] || sleep 300', stop_grace=1)
    await local.until(run_id, lambda run: bool(run.status.attempts) and bool(run.status.attempts[0].nodes))
    await local.hyperpod.runs.act(run_id, "requeue")
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert [attempt.number for attempt in run.status.attempts] == [1, 2]
    assert run.status.attempts[0].state == "failed"


async def test_actions_that_do_not_fit_say_so(local: LocalCluster) -> None:
    run_id = await local.submit("true")
    await local.ended(run_id)
    for action in ("hold", "release", "requeue"):
        with pytest.raises(ConflictError, match=f"to {action} it, the run must be"):
            await local.hyperpod.runs.act(run_id, action)


async def test_dependencies(local: LocalCluster) -> None:
    first = await local.submit("sleep 1; date +%s%N")
    second = await local.submit("date +%s%N", after=[first])
    assert (await local.ended(second)).state == "succeeded"
    assert int(local.log(first)) < int(local.log(second))
    failing = await local.submit("exit 1")
    never = await local.submit("echo never", after=[first, failing])
    run = await local.ended(never)
    assert (run.state, run.status.reason_code) == ("failed", "dependency")
    assert run.status.reason == f"waiting for {failing}, which ended as failed"


async def test_more_gpus_than_there_are_is_refused(local: LocalCluster) -> None:
    with pytest.raises(RefusedError, match="gpu devices") as caught:
        await local.submit("true", resources={"gpus_per_node": 4096 // 8})
    assert caught.value.code == "not_enough_gpus"
    assert (await local.hyperpod.runs.list()).runs == ()


async def test_gpus_of_nvidia_smi_are_shared_out(
    local: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that lists GPUs is one of the test's own: this machine may have none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\nfor i in 1 2 3 4; do echo Some GPU; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    machine.gpus.cache_clear()
    try:
        gate = local.folder / "gate"
        gate.touch()
        show = "echo $NODE_RANK:$CUDA_VISIBLE_DEVICES"
        first = await local.submit(
            f"{show}; while [ -e {gate} ]; do sleep 0.05; done",
            resources={"nodes": 2, "gpus_per_node": 1, "processes_per_node": 1},
        )
        await local.until(first, lambda _: bool(local.log(first, 1)) and bool(local.log(first, 0)))
        second = await local.submit(show, resources={"gpus_per_node": 2, "processes_per_node": 1})
        third = await local.submit(show, resources={"gpus_per_node": 4, "processes_per_node": 1})
        await local.ended(second)
        run = await local.until(third, lambda run: run.status.reason_code == "gpus")
        assert "needs 4 GPUs" in (run.status.reason or "")
        gate.unlink()
        await local.ended(third)
        assert [local.log(first, node).strip() for node in (0, 1)] == ["0:0", "1:1"]
        assert local.log(second) == "0:2,3\n"
        assert local.log(third) == "0:0,1,2,3\n"
        assert (await local.hyperpod.nodes())[0].accelerators == 4
    finally:
        machine.gpus.cache_clear()


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"environment": {"python": "/no/such/python"}}, "no_python"),
        ({"environment": {"python": "/bin/true"}}, "no_python"),
        ({"environment": {"image": "some/image:1"}}, "unsupported"),
        ({"resources": {"nodes": 65}}, "too_many_nodes"),
        ({"resources": {"processes_per_node": 600}}, "too_many_processes"),
    ],
)
async def test_what_this_machine_cannot_do_is_refused(local: LocalCluster, spec: dict[str, Any], code: str) -> None:
    with pytest.raises(RefusedError) as caught:
        await local.submit("true", **spec)
    assert caught.value.code == code
    assert caught.value.hint
    assert (await local.hyperpod.runs.list()).runs == ()


async def test_the_cluster_describes_itself(local: LocalCluster) -> None:
    cluster = (await local.hyperpod.clusters.configured())[0]
    assert (cluster.name, cluster.orchestrator, cluster.default, cluster.state) == ("local", "local", True, "up")
    node = (await local.hyperpod.nodes())[0]
    assert node.cpus == machine.cpus()
