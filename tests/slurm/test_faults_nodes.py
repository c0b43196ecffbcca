"""Nodes that are not as they should be: the storage partition not mounted, a wrong clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import here, sessions, start_now
from tests.slurm.hyperpod_fixtures import SlurmSession

__all__ = ["here", "sessions"]


async def test_a_node_that_does_not_see_the_partition_is_named(
    slurm_start: Callable[..., SlurmTestbed], sessions: Callable[..., SlurmSession]
) -> None:
    session = sessions(slurm_start(nodes=2, on_nodes=["node1"]))
    alone = await session.submit("hostname", slurm={"flags": {"nodelist": "node2"}})
    both = await session.submit("hostname", resources={"nodes": 2})
    run = await session.ended(alone)
    assert (run.state, run.status.reason_code) == ("failed", "partition_missing")
    assert run.status.reason == (
        "Slurm could not open the log of the run on node2: the storage partition is not mounted or not writable there"
    )
    run = await session.ended(both)
    assert (run.state, run.status.reason_code) == ("failed", "partition_missing")
    assert run.status.reason == (
        "the folder of the run does not exist on node2: check that the storage partition is mounted there"
    )
    fine = await session.submit("hostname", slurm={"flags": {"nodelist": "node1"}})
    assert (await session.ended(fine)).state == "succeeded"


class TestClock:
    async def test_two_nodes_that_differ_by_minutes(self, here: SlurmSession) -> None:
        here.cluster.node_clock("node1", "+5m")
        here.cluster.node_clock("node2", "-5m")
        run_id = await here.submit("hostname", resources={"nodes": 2})
        run = await here.ended(run_id)
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
        failed = await here.submit("exit 3", resources={"nodes": 2}, max_restarts=1)
        run = await here.ended(failed)
        assert (run.state, run.status.exit_code) == ("failed", 3)
        assert [attempt.exit_code for attempt in run.status.attempts] == [3, 3]

    @pytest.mark.full
    @pytest.mark.parametrize("offset", ["+5m", "-5m"])
    async def test_requeue_and_cancel_on_such_a_node(self, here: SlurmSession, offset: str) -> None:
        here.cluster.node_clock("node1", offset)
        again, ended = await asyncio.gather(*(self._sleeper(here) for _ in range(2)))
        await here.hyperpod.runs.act(again, "requeue")
        waits = await here.until(again, lambda run: run.state == "waiting", 20)
        assert waits.status.attempts[0].reason_code == "requeued"
        start_now(here.cluster, here.job_of(waits))
        assert (await here.ended(again)).state == "succeeded"
        await here.hyperpod.runs.act(ended, "cancel")
        run = await here.ended(ended, 20)
        assert run.state == "cancelled"

    async def _sleeper(self, here: SlurmSession) -> str:
        """A run on node1 that sleeps in its first attempt."""
        run_id = await here.submit("[ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", slurm={"flags": {"nodelist": "node1"}})
        await here.running(run_id)
        return run_id
