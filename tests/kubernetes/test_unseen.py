"""Attempts that nobody looked at, of runs without shared storage: the next who looks sees that they were there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_jlab.engines.kubernetes.observe.spool import DeletedPod, group_attempts
from hyperpod_jlab.engines.kubernetes.workloads import Eviction
from tests.kubernetes.session_fixtures import KubernetesSession

LOST = "hyperpod: the log of this node is lost: "
PAIR: dict[str, Any] = {"resources": {"nodes": 2}, "launcher": "python"}


@pytest.fixture
def bare(sessions: Callable[..., KubernetesSession]) -> KubernetesSession:
    """A session whose pods mount nothing."""
    return sessions(claim=False)


async def begun(bare: KubernetesSession, run_id: str, but: set[str], count: int = 2) -> set[str]:
    """Wait for containers of so many other pods without looking at the run; their uids."""
    end = time.monotonic() + 60
    while True:
        found = {
            pod["metadata"]["uid"]
            for pod in await asyncio.to_thread(bare.pods_of, run_id)
            if any("running" in one["state"] for one in pod["status"].get("containerStatuses", []))
        }
        if len(found - but) == count:
            return found - but
        assert time.monotonic() < end, found
        await asyncio.sleep(0.3)


def node_log(bare: KubernetesSession, run_id: str, attempt: int, node: int = 0) -> str:
    path = bare.records(run_id) / f"logs/attempt-{attempt}/node-{node}.log"
    return path.read_text() if path.exists() else ""


async def test_pods_that_were_removed_unseen_were_an_attempt(bare: KubernetesSession) -> None:
    run_id = await bare.submit("echo $HYPERPOD_ATTEMPT; sleep 20", **PAIR)
    first = await begun(bare, run_id, set())
    await asyncio.sleep(4)  # the launchers have begun the attempt
    names = [pod["metadata"]["name"] for pod in bare.pods_of(run_id)]
    bare.cluster.kubectl("delete", "pod", *names, "--wait=false", namespace=bare.namespace)
    await begun(bare, run_id, first)
    # A look waits a moment only for what is still to be found out.
    looks = 1
    while looks < 5 and "its log is lost" not in (await bare.hpj("show", run_id)).out:
        looks += 1
    answer = await bare.hpj("show", run_id)
    assert "its pods were removed; its log is lost" in answer.out, answer
    run = await bare.ended(run_id)
    one, two = run.status.attempts
    assert (run.state, one.state, two.state) == ("succeeded", "failed", "succeeded")
    assert len(one.nodes) == 2
    assert one.started_at is not None
    assert one.ended_at is not None
    assert two.started_at is not None
    assert one.started_at < one.ended_at <= two.started_at
    for node in (0, 1):
        assert node_log(bare, run_id, 1, node).startswith(LOST)
        assert LOST not in node_log(bare, run_id, 2, node)
    log = await bare.hpj("logs", run_id)
    assert log.out.startswith(f"node0|{LOST}"), log.out


def gone(rank: int, began: float, ended: float | None, uid: str = "") -> DeletedPod:
    return DeletedPod(rank, uid or f"{rank}-{began}", f"run-x-{rank}", "node1", began, ended, None)


EVICTION = Eviction("w", 21.0, 1, 10.0, "PREEMPTED", "it was preempted", "preempted")


def test_each_pod_of_node_0_was_an_attempt() -> None:
    pods = [gone(1, 11, 20), gone(0, 10, 20), gone(0, 50, None), gone(1, 51, 60)]
    one, two = group_attempts(pods, [100.0, 101.0], EVICTION)
    assert [(pod.rank, pod.started_at) for pod in one.pods] == [(0, 10), (1, 11)]
    assert (one.started_at, one.ended_at, one.end_reason[0]) == (10, 20, "PREEMPTED")
    assert [(pod.rank, pod.started_at) for pod in two.pods] == [(0, 50), (1, 51)]
    assert (two.started_at, two.ended_at, two.end_reason[0]) == (50, 60, "REQUEUED")


def test_what_a_pod_outlived_is_told_by_that_pod() -> None:
    assert group_attempts([gone(0, 10, 20)], [9.0, 30.0], None) == []
    assert group_attempts([gone(1, 10, 20)], [30.0], None) == []
