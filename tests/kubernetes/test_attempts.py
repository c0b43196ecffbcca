"""Attempts of a run on a real cluster: which ends open the next one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes.session_fixtures import KubernetesSession

TWO: dict[str, Any] = {"resources": {"nodes": 2}, "launcher": "python"}
#: In its first attempt a run waits, later ones end well.
WAITS = "echo up $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"


def delete_pod(session: KubernetesSession, run_id: str, name: str) -> None:
    """Delete a pod as somebody else would."""
    pod = f"run-{run_id}-{name}"
    session.cluster.kubectl("delete", "pod", pod, "--wait=false", namespace=session.namespace)


async def test_a_run_that_fails_is_tried_again(session: KubernetesSession) -> None:
    run_id = await session.submit(
        'echo $HYPERPOD_ATTEMPT; [ "$HYPERPOD_ATTEMPT.$NODE_RANK" != 1.1 ] || exit 3', max_restarts=2, **TWO
    )
    run = await session.ended(run_id)
    assert run.state == "succeeded"
    first, second = run.status.attempts
    assert (first.state, first.exit_code, second.state) == ("failed", 3, "succeeded")
    assert [session.log(run_id, node, 0, 2) for node in (0, 1)] == ["2\n", "2\n"]
    assert len({pod["metadata"]["uid"] for pod in session.pods_of(run_id)}) == 2


@pytest.mark.full
async def test_not_without_end(session: KubernetesSession) -> None:
    run_id = await session.submit("exit 4", max_restarts=1, **TWO)
    run = await session.ended(run_id)
    assert (run.state, run.status.exit_code, len(run.status.attempts)) == ("failed", 4, 2)


@pytest.mark.parametrize("name", [pytest.param("master-0", marks=pytest.mark.full), "worker-0"])
async def test_a_deleted_pod_comes_anew_and_opens_the_next_attempt(session: KubernetesSession, name: str) -> None:
    run_id = await session.submit(WAITS, **TWO)
    await session.running(run_id)
    await session.until(run_id, lambda _: [session.log(run_id, node) for node in (0, 1)] == ["up 1\n"] * 2)
    delete_pod(session, run_id, name)
    run = await session.ended(run_id)
    assert run.state == "succeeded", run.status
    assert [attempt.state for attempt in run.status.attempts] == ["failed", "succeeded"]
    assert [session.log(run_id, node, 0, 2) for node in (0, 1)] == ["up 2\n", "up 2\n"]


async def test_a_requeued_run_goes_on_in_new_pods(session: KubernetesSession) -> None:
    run_id = await session.submit("echo up; sleep 600", **TWO)
    await session.until(run_id, lambda _: [session.log(run_id, node) for node in (0, 1)] == ["up\n"] * 2)
    await session.hyperpod.runs.act(run_id, "requeue")
    run = await session.until(run_id, lambda _: [session.log(run_id, node, 0, 2) for node in (0, 1)] == ["up\n"] * 2)
    assert [attempt.number for attempt in run.status.attempts] == [1, 2]
    assert run.state == "running"
    assert session.log(run_id) == "up\n"


@pytest.mark.full
async def test_the_time_limit_ends_it(session: KubernetesSession) -> None:
    run_id = await session.submit("echo up; sleep 600", time_limit="10s", max_restarts=3, **TWO)
    run = await session.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "timeout")
    assert len(run.status.attempts) == 1
