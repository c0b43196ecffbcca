"""How runs end on a real cluster when something else than their program ends them, and what is said of it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.kubernetes.session_fixtures import KubernetesSession

pytestmark = pytest.mark.full

PAIR: dict[str, Any] = {"resources": {"nodes": 2}, "launcher": "python"}
HOG = "python3 -c 'import os; x = [os.urandom(1 << 20) for _ in range(400)]; print(len(x))'"


async def test_an_image_that_does_not_exist_is_said_while_it_waits(session: KubernetesSession) -> None:
    run_id = await session.submit("true", environment={"image": "localhost/no/such/image:1"})
    run = await session.until(run_id, lambda run: run.status.reason is not None)
    assert run.state == "waiting"
    assert "localhost/no/such/image:1" in (run.status.reason or "")
    assert (run.status.reason_code or "").startswith("image_")
    await session.hyperpod.runs.act(run_id, "cancel")
    assert (await session.ended(run_id)).state == "cancelled"


async def test_a_cancel_waits_for_no_pod_that_has_not_begun(session: KubernetesSession) -> None:
    """The second pod's init container, which waits for the first, hears no signal to end."""
    run_id = await session.submit("true", environment={"image": "localhost/no/such:1"}, **PAIR)

    def prepares() -> bool:
        statuses = [pod["status"] for pod in session.pods_of(run_id)]
        said = [one for each in statuses for one in each.get("initContainerStatuses", [])]
        return any("running" in one["state"] for one in said)

    await session.until(run_id, lambda _: prepares())
    begin = time.monotonic()
    await session.hyperpod.runs.act(run_id, "cancel")
    assert time.monotonic() - begin < 8
    assert (await session.ended(run_id)).state == "cancelled"


async def test_a_program_that_the_image_lacks_is_named(session: KubernetesSession) -> None:
    run_id = await session.submit("true", environment={"python": "/no/such/python3"})
    run = await session.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "no_program")
    assert "the image does not have this Python" in (run.status.reason or "")


@pytest.mark.timeout(300)
async def test_memory_that_runs_out_is_said(session: KubernetesSession) -> None:
    """Its pod is made anew, until it was lost too often."""
    run_id = await session.submit(HOG, resources={"memory": "64M"})
    run = await session.ended(run_id, 250)
    assert run.state == "failed"
    assert len(run.status.attempts) == 6
    assert run.status.reason_code == "node_fail"
    assert "memory was low" in (run.status.reason or "")


async def test_a_job_that_somebody_removes_is_lost(session: KubernetesSession) -> None:
    run_id = await session.submit("echo begun; sleep 600", **PAIR)
    await session.running(run_id)
    await session.until(run_id, lambda _: session.log(run_id) == "begun\n")
    session.cluster.kubectl("delete", "pytorchjob", f"run-{run_id}", namespace=session.namespace)
    run = await session.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "lost")
    assert run.status.reason == f"its PyTorchJob run-{run_id} was removed from the cluster"
    assert session.log(run_id) == "begun\n"


async def test_a_cancel_brings_the_last_words(session: KubernetesSession) -> None:
    command = "trap 'echo last words; exit 1' TERM; echo begun; while :; do sleep 0.1; done"
    run_id = await session.submit(command, **PAIR)
    for node in (0, 1):
        await session.until(run_id, lambda _, node=node: session.log(run_id, node) == "begun\n")  # type: ignore[misc]
    await session.hyperpod.runs.act(run_id, "cancel")
    run = await session.ended(run_id)
    assert run.state == "cancelled"
    said = "begun\nlast words\n"  # the launchers write it, while their pods end
    for node in (0, 1):
        await session.until(run_id, lambda _, node=node: session.log(run_id, node) == said)  # type: ignore[misc]
    assert (await session.hyperpod.runs.get(run_id)).state == "cancelled"


async def test_a_run_stays_what_it_was_when_its_job_is_gone(session: KubernetesSession) -> None:
    run_id = await session.submit("echo done; exit 4")
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 4)
    session.cluster.kubectl("delete", "pytorchjob", f"run-{run_id}", namespace=session.namespace)
    listed = (await session.hyperpod.runs.list()).runs
    found = [one for one in listed if one.run_id == run_id]
    for one in (await session.hyperpod.runs.get(run_id), *found):
        assert (one.state, one.status.exit_code, one.status.reason) == ("failed", 4, "exit code 4")
    assert found
