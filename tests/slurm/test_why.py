"""Why a run waits, on a real cluster: others' jobs, holds, times, limits; and that what would start now does."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Holder, WaitReason
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from tests.slurm.cluster import ONE, SlurmTestbed, running

DEADLINE = 40.0

OPTIONS = [
    *("--users", "alice:20001", "--dbd", "--accounts", "research:alice"),
    *("--parts", "dev:1-4:default spare:5-5", "--qos", "single MaxJobsPerUser=1"),
    *("--partition-extra", "dev=MaxNodes=4 MaxTime=600 DefaultTime=10"),
]
"""A queue of four nodes and one of a fifth, 8 GPUs on each node."""


class Waiting:
    """A user's services on the cluster, and another user who was there first."""

    def __init__(self, testbed: SlurmTestbed, folder: Path) -> None:
        self.testbed = testbed
        self.folder = folder
        self.hyperpod = Hyperpod()

    async def submit(self, nodes: int = 1, gpus: int = 8, **spec: Any) -> str:
        data = {
            "source": {"kind": "command", "command": "sleep 100"},
            "time_limit": "5m",
            "stop_grace": 1,
            "resources": {"nodes": nodes, "gpus_per_node": gpus, "processes_per_node": 1},
            **spec,
        }
        return await self.hyperpod.submitter.submit(Request(parse(JobSpec, data), cluster="slurm", base=self.folder))

    async def others(self, *options: str, starts: bool = True) -> str:
        """A job of alice's; its id. Returns when it runs."""
        words = ("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options)
        said = await asyncio.to_thread(self.testbed.exec, "ctl", *words, "--wrap=sleep 300", user="alice")
        job = said.strip()
        deadline = time.monotonic() + DEADLINE
        while starts and await self.state(job) != "RUNNING":
            assert time.monotonic() < deadline
            await asyncio.sleep(0.1)
        return job

    async def scontrol(self, *words: str) -> None:
        """What an administrator does."""
        await asyncio.to_thread(self.testbed.exec, "ctl", "scontrol", *words)

    async def state(self, job: str) -> str:
        words = ("squeue", "-h", "-j", job, "-o", "%T")
        return (await asyncio.to_thread(self.testbed.exec, "ctl", *words)).strip()

    async def why(self, run_id: str, reason: str) -> WaitReason:
        """Ask once Slurm says this reason."""
        await self.planned(run_id, reason)
        fresh = Hyperpod()  # as a command's: it has seen nothing of the queue yet
        try:
            return await fresh.runs.explain_wait(run_id)
        finally:
            await fresh.close()

    async def planned(self, run_id: str, reason: str) -> None:
        """Wait until the scheduler says this reason: it takes a while to, and to plan."""
        job = (await self.hyperpod.runs.get(run_id)).scheduler_id
        words = ("squeue", "-h", "-j", str(job), "-o", "%r %S")
        deadline = time.monotonic() + DEADLINE
        while True:
            said = (await asyncio.to_thread(self.testbed.exec, "ctl", *words)).strip()
            planned = reason not in {"Resources", "Priority"} or not said.endswith("N/A")
            if said.startswith(f"{reason} ") and planned:
                break
            assert time.monotonic() < deadline, said
            await asyncio.sleep(0.2)

    async def hpj(self, *words: str) -> list[str]:
        """The lines of a command in a terminal."""
        command = [sys.executable, "-m", "hyperpod_jlab.cli.main", *words]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    async def until(self, run_id: str, there: Callable[[Run], bool]) -> Run:
        deadline = time.monotonic() + DEADLINE
        while True:
            run = await self.hyperpod.runs.get(run_id)
            if there(run):
                return run
            assert time.monotonic() < deadline, run.status
            await asyncio.sleep(0.2)

    async def starts(self, run_id: str) -> None:
        await self.until(run_id, lambda run: run.state == "running")


@pytest.fixture(scope="module")
def testbed(slurm_version: str) -> Iterator[SlurmTestbed]:
    with ONE.only(running(*OPTIONS, version=slurm_version, nodes=5)) as cluster:
        yield cluster


@pytest.fixture
async def waiting(testbed: SlurmTestbed, home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Waiting]:
    given = {
        "root": str(testbed.partition),
        "there": str(testbed.partition_on_nodes),
        "python": testbed.python_on_nodes,
    }
    config = home / "config.toml"
    config.write_text(
        "[storage]\npath = {root}\n"
        '[clusters.slurm]\norchestrator = "slurm"\nstorage = {there}\npython = {python}\n'.format(
            **{name: json.dumps(value) for name, value in given.items()}
        )
    )
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    for name, value in testbed.environment.items():
        monkeypatch.setenv(name, value)
    made = Waiting(testbed, home)
    yield made
    await made.hyperpod.close()
    await asyncio.to_thread(testbed.heal)


async def test_all_gpus_are_taken_by_others(waiting: Waiting):
    await waiting.others("-N4", "--gres=gpu:8", "-t10")
    run = await waiting.submit()
    told = await waiting.why(run, "Resources")
    assert told.reason_code == "Resources"
    assert "not enough free nodes" in str(told.reason)
    assert told.position == 1
    assert told.ahead == ()
    assert told.counted == "jobs waiting for nodes in dev, by priority"
    assert told.holders == (Holder("alice", accelerators=32, nodes=4, jobs=1),)
    assert told.expected_start is not None
    assert 400 < told.expected_start - time.time() < 700
    assert tuple(way.text for way in told.would_start_now) == ()
    lines = await waiting.hpj("why", run)
    assert lines[0] == f"{run}: {told.reason}"
    assert "position         1" in lines
    assert "in use by        alice: 32 accelerators, 4 nodes, 1 job" in lines
    assert "would start now  no other request (1 way tried)" in lines


async def test_fewer_nodes_would_start(waiting: Waiting):
    await waiting.others("-N2", "--gres=gpu:8", "-t10")
    run = await waiting.submit(nodes=4)
    told = await waiting.why(run, "Resources")
    assert tuple(way.text for way in told.would_start_now) == ("with 2 nodes instead of 4 (--nodes 2)",)
    assert told.tried == 1
    await waiting.hyperpod.runs.act(run, "cancel")
    await waiting.starts(await waiting.submit(nodes=2))


async def test_fewer_gpus_would_start(waiting: Waiting):
    await waiting.others("-N4", "--gres=gpu:4", "-t10")
    run = await waiting.submit(gpus=8)
    told = await waiting.why(run, "Resources")
    assert tuple(way.text for way in told.would_start_now) == ("with 4 accelerators instead of 8 (--gpus-per-node 4)",)
    await waiting.hyperpod.runs.act(run, "cancel")
    await waiting.starts(await waiting.submit(gpus=4))


async def test_nothing_is_promised_while_others_wait_for_the_same_nodes(waiting: Waiting):
    await waiting.others("-N3", "--gres=gpu:8", "-t20")
    first = await waiting.others("-N4", "--gres=gpu:8", "-t20", starts=False)
    run = await waiting.submit(nodes=2, time_limit="2h")
    told = await waiting.why(run, "Priority")
    assert told.reason_code == "Priority"
    assert told.position == 2
    assert told.ahead == (f"{first} (alice)",)
    assert (told.would_start_now, told.tried) == ((), 0)


async def test_nothing_would_start(waiting: Waiting):
    await waiting.others("-N4", "--gres=gpu:8", "-t10")
    run = await waiting.submit(nodes=2, gpus=4, time_limit="2h")
    await waiting.planned(run, "Resources")
    waiting.testbed.forget_calls()
    told = await waiting.why(run, "Resources")
    assert tuple(way.text for way in told.would_start_now) == ()
    asked = [call for call in waiting.testbed.calls() if "--test-only" in call.args]
    assert (told.tried, len(asked)) == (1, 2)


async def test_before_maintenance_the_reason_says_so(waiting: Waiting):
    words = ("StartTime=now+30minutes", "Duration=60", "Users=alice", "Nodes=ALL", "Flags=MAINT")
    await waiting.scontrol("create", "reservation", "ReservationName=upkeep", *words)
    try:
        run = await waiting.submit(time_limit="2h")
        told = await waiting.why(run, "ReqNodeNotAvail, Reserved for maintenance")
        assert told.reason_code == "ReqNodeNotAvail"
        assert "reserved for maintenance" in str(told.reason)
    finally:
        await waiting.scontrol("delete", "ReservationName=upkeep")


async def test_an_array_waits_as_one(waiting: Waiting):
    await waiting.others("-N4", "--gres=gpu:8", "-t10")
    run = await waiting.submit(array="0-3%2")
    told = await waiting.why(run, "Resources")
    assert told.reason_code == "Resources"
    assert told.position == 1
    assert told.holders == (Holder("alice", accelerators=32, nodes=4, jobs=1),)


async def test_a_held_run_says_so_and_asks_nothing(waiting: Waiting):
    run = await waiting.submit(slurm={"flags": {"hold": True}})
    told = await waiting.why(run, "JobHeldUser")
    assert told.reason_code == "held"
    assert "release it" in str(told.reason)
    assert (told.position, told.counted) == (None, None)
    assert (told.holders, tuple(way.text for way in told.would_start_now), told.tried) == ((), (), 0)


async def test_a_run_that_waits_for_another(waiting: Waiting):
    first = await waiting.others("--gres=gpu:1")
    run = await waiting.submit(gpus=1, slurm={"flags": {"hold": True}})
    job = (await waiting.hyperpod.runs.get(run)).scheduler_id
    await waiting.scontrol("update", f"JobId={job}", f"Dependency=afterok:{first}")
    await waiting.hyperpod.runs.act(run, "release")
    told = await waiting.why(run, "Dependency")
    assert told.reason == "it is waiting for another job to end"
    assert told.reason_code == "Dependency"
    assert told.position is None
    assert told.tried == 0


async def test_a_run_that_begins_later(waiting: Waiting):
    run = await waiting.submit(slurm={"flags": {"begin": "now+1hour"}})
    told = await waiting.why(run, "BeginTime")
    assert "begin time is in the future" in str(told.reason)
    assert told.position is None


async def test_a_run_over_the_queues_limit_of_nodes(waiting: Waiting):
    run = await waiting.submit(nodes=4, gpus=1, slurm={"flags": {"hold": True}})
    await waiting.scontrol("update", "PartitionName=dev", "MaxNodes=3")
    try:
        await waiting.hyperpod.runs.act(run, "release")
        told = await waiting.why(run, "PartitionNodeLimit")
        assert "it requests more (or fewer) nodes" in str(told.reason)
        assert told.position is None
        assert tuple(way.text for way in told.would_start_now) == ("with 2 nodes instead of 4 (--nodes 2)",)
        await waiting.starts(await waiting.submit(nodes=2, gpus=1))
    finally:
        await waiting.scontrol("update", "PartitionName=dev", "MaxNodes=4")


async def test_a_run_over_the_limit_of_its_qos(waiting: Waiting):
    first = await waiting.submit(gpus=1, qos="single")
    await waiting.starts(first)
    second = await waiting.submit(gpus=1, qos="single")
    told = await waiting.why(second, "QOSMaxJobsPerUserLimit")
    assert told.reason == ("your jobs that run have reached the limit of its QoS; wait until some end")
    assert told.position is None
    assert tuple(way.text for way in told.would_start_now) == ()


async def test_one_that_runs_does_not_wait(waiting: Waiting):
    run = await waiting.submit(gpus=1)
    await waiting.starts(run)
    told = await waiting.hyperpod.runs.explain_wait(run)
    assert told.reason == "it is not waiting, it is running"
