"""Cancel and kill: no process stays behind, and the state is told right."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from hyperpod_jlab.engines.local.attempt import find_processes
from hyperpod_jlab.storage.records import BundleReader
from tests.local.conftest import LocalCluster, alive, descriptors

STUBBORN = """
trap '' TERM
setsid bash -c 'trap "" TERM; echo escaped; sleep 301' &
(setsid sleep 302 &) &
echo ready
sleep 303
"""


async def test_cancel_leaves_no_process(local: LocalCluster) -> None:
    run_id = await local.submit(STUBBORN, resources={"nodes": 2}, stop_grace=1)
    await local.until(run_id, lambda _: "escaped" in local.log(run_id, 1) + local.log(run_id, 0))
    await local.running(run_id)
    await local.until(run_id, lambda _: len(local.processes(run_id)) >= 6)
    asked = time.monotonic()
    run = await local.hyperpod.runs.act(run_id, "cancel")
    assert run.state in {"running", "cancelled"}
    while local.processes(run_id):
        # Grace and kill take 3 s; the rest is for a busy machine. What was left would live for 300 s.
        assert time.monotonic() - asked < 20, "processes live beyond the grace"
        await asyncio.sleep(0.05)
    run = await local.ended(run_id)
    assert (run.state, run.status.reason_code) == ("cancelled", None)


@pytest.mark.parametrize("how", ["cancel", "time limit"])
async def test_ranks_that_end_well_when_told_to_have_not_succeeded(local: LocalCluster, how: str) -> None:
    """A trainer saves a checkpoint and exits with 0. What waits for the run's success does not start."""
    command = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    limit: dict[str, Any] = {"time_limit": 3} if how == "time limit" else {}
    run_id = await local.submit(command, resources={"nodes": 2}, **limit)
    after = await local.submit("echo started", after=[run_id])
    await local.until(run_id, lambda _: "ready" in local.log(run_id))
    if how == "cancel":
        await local.hyperpod.runs.act(run_id, "cancel")
    run = await local.ended(run_id)
    wanted = ("cancelled", None) if how == "cancel" else ("failed", "timeout")
    assert (run.state, run.status.reason_code) == wanted
    assert "saved" in local.log(run_id)
    assert (await local.ended(after)).status.attempts == ()


async def test_cancel_while_waiting_never_starts_it(local: LocalCluster) -> None:
    first = await local.submit("sleep 300")
    waiting = await local.submit("echo started", after=[first])
    await local.until(waiting, lambda run: run.state == "waiting" and bool(run.status.reason))
    await local.hyperpod.runs.act(waiting, "cancel")
    run = await local.ended(waiting)
    assert run.state == "cancelled"
    assert run.status.attempts == ()


async def test_a_normal_end_leaves_no_process(local: LocalCluster) -> None:
    run_id = await local.submit("setsid sleep 304 & (setsid sleep 305 &) & echo done")
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    await local.until(run_id, lambda _: not local.processes(run_id))


@pytest.mark.parametrize("whom", ["supervisor", "all"])
async def test_kill_minus_nine_is_told_within_ten_seconds(local: LocalCluster, whom: str) -> None:
    run_id = await local.submit("sleep 306", resources={"nodes": 2})
    await local.until(run_id, lambda run: len(run.status.attempts) == 1 and len(run.status.attempts[0].nodes) == 2)
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    killed = time.monotonic()
    os.kill(owner.pid, signal.SIGKILL)
    if whom == "all":
        for pid in find_processes(local.records(run_id)):
            with contextlib.suppress(ProcessLookupError):  # it has just ended with its parent
                os.kill(pid, signal.SIGKILL)
    run = await local.ended(run_id)
    assert time.monotonic() - killed < 10
    assert (run.state, run.status.reason_code) == ("failed", "lost")
    await local.until(run_id, lambda _: not local.processes(run_id))
    listed = (await local.hyperpod.runs.list()).runs
    assert [run.state for run in listed] == ["failed"]


async def test_a_killed_launcher_is_a_failure(local: LocalCluster) -> None:
    run_id = await local.submit("sleep 307")
    await local.until(run_id, lambda run: bool(run.status.attempts) and bool(run.status.attempts[0].nodes))
    node = BundleReader(local.hyperpod.partition, run_id).read().attempts[0].nodes[0]
    assert node.pid is not None
    os.kill(node.pid, signal.SIGKILL)
    run = await local.ended(run_id)
    assert run.state == "failed"
    assert local.processes(run_id) == []


async def test_the_slot_of_a_killed_supervisor_is_free(local: LocalCluster) -> None:
    run_id = await local.submit("sleep 308")
    await local.until(run_id, lambda run: run.state == "running")
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    os.kill(owner.pid, signal.SIGKILL)
    await local.ended(run_id)
    # The kernel lets a killed process' locks go a moment after it says that the process is dead.
    async with asyncio.timeout(20):
        while await local.hyperpod.jobs():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_runs_outlive_whoever_submits_and_hold_nothing_of_it(local: LocalCluster) -> None:
    """`$(hpj submit ...)` returns at once: the supervisor keeps no descriptor of the submitting process, nor its session."""
    code = (
        "import asyncio, sys; from pathlib import Path;"
        "from hyperpod_jlab.run.services import Hyperpod;"
        "from hyperpod_jlab.run.submit import Request; from hyperpod_jlab.core.spec import JobSpec;"
        "spec = JobSpec.model_validate({'source': {'kind': 'command', 'command': 'sleep 2; echo late'}});"
        "print(asyncio.run(Hyperpod().submitter.submit(Request(spec, base=Path(sys.argv[1])))))"
    )
    started = time.monotonic()
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(local.folder)],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    run_id = done.stdout.strip()
    run = await local.until(run_id, lambda run: bool(run.status.attempts))
    assert time.monotonic() - started < 20
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    assert alive(owner.pid)
    assert not [name for name in descriptors(owner.pid) if name.startswith(("pipe:", "socket:"))]
    assert os.getsid(owner.pid) != os.getsid(0)
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert local.log(run_id) == "late\n"


async def test_the_other_nodes_of_a_killed_launcher_are_ended(local: LocalCluster) -> None:
    run_id = await local.submit("sleep 309", resources={"nodes": 3})
    started = await local.until(
        run_id, lambda run: bool(run.status.attempts) and len(run.status.attempts[0].nodes) == 3
    )
    assert started.state == "running"
    nodes = BundleReader(local.hyperpod.partition, run_id).read().attempts[0].nodes
    pid = nodes[1].pid
    assert pid is not None
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    run = await local.ended(run_id)
    assert time.monotonic() - killed < 10
    assert (run.state, run.status.reason_code) == ("failed", "node_fail")
    assert run.status.reason == "the launcher of node 1 was killed (SIGKILL)"
    assert local.processes(run_id) == []


async def test_a_killed_launcher_may_be_restarted(local: LocalCluster) -> None:
    command = '[ "$HYPERPOD_ATTEMPT" = 2 ] || sleep 310; echo again'
    run_id = await local.submit(command, resources={"nodes": 2}, max_restarts=1)
    await local.until(run_id, lambda run: bool(run.status.attempts) and len(run.status.attempts[0].nodes) == 2)
    pid = BundleReader(local.hyperpod.partition, run_id).read().attempts[0].nodes[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    run = await local.ended(run_id)
    assert [attempt.state for attempt in run.status.attempts] == ["failed", "succeeded"]
    assert local.log(run_id, node=1, attempt=2) == "again\n"


async def test_what_a_lost_run_left_behind_goes_with_a_cancel(local: LocalCluster) -> None:
    run_id = await local.submit(STUBBORN, resources={"nodes": 2}, stop_grace=1)
    await local.until(run_id, lambda _: "escaped" in local.log(run_id, 1) + local.log(run_id, 0))
    await local.running(run_id)
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    launchers = [
        node.pid
        for attempt in BundleReader(local.hyperpod.partition, run_id).read().attempts
        for node in attempt.nodes
        if node.pid is not None
    ]
    for pid in [owner.pid, *launchers]:  # all who could clean up, at once
        os.kill(pid, signal.SIGKILL)
    run = await local.ended(run_id)
    assert run.status.reason_code == "lost"
    run = await local.hyperpod.runs.act(run_id, "cancel")
    assert (run.state, local.processes(run_id)) == ("failed", [])
