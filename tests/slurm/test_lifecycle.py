"""A run from its submit to its end, on a real cluster, over both transports."""

from __future__ import annotations

import asyncio
import time

import pytest

from hyperpod_jlab.engines.slurm.queue import MIN_POLL_S
from tests.slurm.fault_fixtures import start_now
from tests.slurm.hyperpod_fixtures import SlurmSession


class TestOneAttempt:
    @pytest.mark.both_transports
    async def test_two_nodes_see_each_other(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "echo $NODE_RANK $RANK $WORLD_SIZE $(hostname) $MASTER_ADDR:$MASTER_PORT",
            resources={"nodes": 2, "processes_per_node": 2},
            launcher="python",
        )
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        words = [session.log(run_id, node, rank).split() for node in (0, 1) for rank in (0, 1)]
        assert [word[:4] for word in words] == [
            ["0", "0", "4", "node1"],
            ["0", "1", "4", "node1"],
            ["1", "2", "4", "node2"],
            ["1", "3", "4", "node2"],
        ]
        assert len({word[4] for word in words}) == 1
        assert words[0][4].startswith("node1:")

    async def test_paths_are_the_nodes_own_there_and_ours_here(self, session: SlurmSession) -> None:
        (session.folder / "data.txt").write_text("the project's file\n")
        run_id = await session.submit("pwd; cat data.txt", files={"project": True})
        run = await session.ended(run_id)
        there = session.cluster.partition_on_nodes
        assert session.log(run_id).splitlines()[0].startswith(f"{there}/.hyperpod/runs/")
        assert session.log(run_id).splitlines()[1] == "the project's file"
        assert run.bundle.startswith(f"{session.cluster.partition}/")

    async def test_a_failure_has_its_exit_code_and_is_not_tried_again(self, session: SlurmSession) -> None:
        run_id = await session.submit("exit 3", resources={"nodes": 2})
        run = await session.ended(run_id)
        assert (run.state, run.status.exit_code) == ("failed", 3)
        assert len(run.status.attempts) == 1

    async def test_gpus_are_given_and_seen(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "echo $CUDA_VISIBLE_DEVICES", resources={"accelerators": {"kind": "gpu", "type": "h100", "count": 2}}
        )
        await session.ended(run_id)
        assert session.log(run_id) == "0,1\n"

    async def test_the_submitters_environment_stays_here(self, session: SlurmSession) -> None:
        run_id = await session.submit("env", environment={"variables": {"GIVEN": "a 'b' $c\n`d`"}})
        await session.ended(run_id)
        log = session.log(run_id)
        assert "GIVEN=a 'b' $c\n`d`\n" in log
        assert "PYTEST_CURRENT_TEST" not in log

    @pytest.mark.both_transports
    async def test_cancel_ends_it_as_cancelled(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 600", resources={"nodes": 2})
        await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "cancel")
        run = await session.ended(run_id)
        assert run.state == "cancelled"

    async def test_a_warning_waits_for_the_ranks_and_a_limit_of_a_minute_has_none(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "trap 'echo warned; exit' USR2; echo up; while :; do sleep 0.1; done", time_limit=180
        )
        short = await session.submit("trap 'echo warned' USR2; sleep 3; echo done", time_limit=60)
        run = await session.running(run_id)
        await session.until(run_id, lambda _: session.log(run_id) == "up\n")
        session.cluster.exec("ctl", "scancel", "--signal=USR2", "--batch", session.job_of(run))
        assert (await session.ended(run_id)).state == "succeeded"
        assert (await session.ended(short)).state == "succeeded"
        assert session.log(run_id) == "up\nwarned\n"
        assert session.log(short) == "done\n"

    async def test_a_waiting_run_that_is_cancelled_never_began(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
        run = await session.until(run_id, lambda run: run.status.reason_code is not None)
        assert run.status.reason_code == "BeginTime"
        await session.hyperpod.runs.act(run_id, "cancel")
        run = await session.ended(run_id)
        assert run.state == "cancelled"
        assert run.status.attempts == ()

    async def test_hold_keeps_it_and_release_lets_it_go(self, session: SlurmSession) -> None:
        run_id = await session.submit("true", slurm={"flags": {"hold": True}})
        held = await session.until(run_id, lambda run: run.status.reason_code == "held")
        assert held.state == "waiting"
        await session.hyperpod.runs.act(run_id, "release")
        run = await session.ended(run_id)
        assert run.state == "succeeded"


class TestSeveralAttempts:
    async def test_failures_are_tried_again_as_often_as_asked(self, session: SlurmSession) -> None:
        run_id = await session.submit("echo this is $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 3 ]", max_restarts=3)
        run = await session.ended(run_id)
        assert [attempt.state for attempt in run.status.attempts] == ["failed", "failed", "succeeded"]
        assert session.log(run_id, attempt=2) == "this is 2\n"

    async def test_no_oftener(self, session: SlurmSession) -> None:
        run_id = await session.submit("exit 4", max_restarts=1, resources={"nodes": 2})
        run = await session.ended(run_id)
        assert run.state == "failed"
        assert [attempt.exit_code for attempt in run.status.attempts] == [4, 4]

    @pytest.mark.both_transports
    async def test_a_requeue_opens_the_next_attempt(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "echo this is $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", resources={"nodes": 2}
        )
        run = await session.running(run_id)
        await session.hyperpod.runs.act(run_id, "requeue")
        waiting = await session.until(run_id, lambda run: run.state == "waiting")
        assert waiting.status.attempts[0].reason_code == "requeued"
        start_now(session.cluster, session.job_of(run))
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        assert [attempt.reason_code for attempt in run.status.attempts] == ["requeued", None]
        assert session.log(run_id, attempt=2) == "this is 2\n"

    async def test_a_lost_node_is_named_as_the_reason(self, session: SlurmSession) -> None:
        run_id = await session.submit(
            "echo this is $HYPERPOD_ATTEMPT; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", resources={"nodes": 2}
        )
        run = await session.running(run_id)
        session.cluster.node_kill("node2")
        run = await session.until(run_id, lambda run: run.state == "waiting" and bool(run.status.attempts))
        assert run.status.attempts[0].reason_code == "node_fail"
        start_now(session.cluster, session.job_of(run))
        run = await session.ended(run_id)
        assert run.state == "succeeded"
        assert "node2" not in run.status.attempts[1].nodes


class TestArrays:
    @pytest.mark.both_transports
    async def test_children_have_logs_and_states_of_their_own(self, session: SlurmSession) -> None:
        run_id = await session.submit("echo child $HYPERPOD_ARRAY_INDEX; [ $HYPERPOD_ARRAY_INDEX != 2 ]", array="0-3%2")
        run = await session.ended(run_id)
        assert run.state == "failed"
        assert run.children == {"succeeded": 3, "failed": 1}
        child = await session.hyperpod.runs.get(f"{run_id}.2")
        assert (child.state, child.status.exit_code) == ("failed", 1)
        assert session.log(f"{run_id}.3") == "child 3\n"

    async def test_one_child_can_be_cancelled(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 600", array="0-1")
        await session.running(f"{run_id}.1")
        await session.hyperpod.runs.act(f"{run_id}.1", "cancel")
        child = await session.ended(f"{run_id}.1")
        other = await session.hyperpod.runs.get(f"{run_id}.0")
        assert (child.state, other.state) == ("cancelled", "running")


class TestCalls:
    async def test_a_watched_run_that_changes_nothing_costs_fewer_and_fewer_calls(self, session: SlurmSession) -> None:
        run_id = await session.submit("sleep 600")
        await session.running(run_id)
        await asyncio.sleep(5)
        session.cluster.forget_calls()
        began = time.monotonic()
        for _ in range(100):
            await session.hyperpod.runs.get(run_id)
            await asyncio.sleep(0.05)
        lasted = time.monotonic() - began  # 5 s, and more on a busy machine
        assert len(session.cluster.calls()) <= lasted / MIN_POLL_S + 1
