"""Attempts that Kueue preempted while nobody looked, of runs without shared storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.session_fixtures import KubernetesSession
from tests.kubernetes.table_fixtures import kubectl, queues
from tests.kubernetes.test_queues import kubernetes_cluster
from tests.kubernetes.test_unseen import LOST, begun, node_log

__all__ = ["kubernetes_cluster"]  # a fixture: a cluster with Kueue

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture
def bare(
    kubernetes_cluster: KubernetesTestbed,
    namespace: str,
    sessions: Callable[..., KubernetesSession],
) -> Iterator[KubernetesSession]:
    """A session whose pods mount nothing, with queues."""
    with queues(kubernetes_cluster, namespace):
        yield sessions(claim=False)


@pytest.mark.parametrize("events", [True, False])
async def test_a_preemption_that_nobody_saw_is_an_attempt(
    bare: KubernetesSession, events: bool
) -> None:
    low = await bare.submit(
        "echo said; sleep 5",
        queue="team",
        priority=f"{bare.namespace}-low",
        resources={"gpus_per_node": 4},
    )
    first = await begun(bare, low, set(), 1)
    await asyncio.sleep(3)
    await bare.submit(
        "sleep 5",
        queue="team",
        priority=f"{bare.namespace}-high",
        resources={"gpus_per_node": 4},
    )
    await begun(bare, low, first, 1)
    if not events:
        await kubectl(bare, "delete", "events", "--all")
    run = await bare.ended(low)
    one, two = run.status.attempts
    assert (run.state, one.state, two.state) == ("succeeded", "failed", "succeeded")
    assert one.reason_code == "preempted"
    assert "preempted" in (one.reason or "")
    assert (one.reason or "").endswith("; its log is lost")
    assert len(one.nodes) == (1 if events else 0)
    assert node_log(bare, low, 1).startswith(LOST)
    assert bare.log(low, attempt=2) == "said\n"
