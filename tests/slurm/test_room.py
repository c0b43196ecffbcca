"""Whether one size less would start now, as far as it is worked out here: times, the queue, and how few questions are asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Holder
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import SlurmJob
from hyperpod_jlab.engines.slurm.rows import Gres
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from hyperpod_jlab.engines.slurm.waiting import DryRunRequest, find_holders, find_jobs_ahead, find_smaller, parse_start
from tests.slurm.job_fixtures import job as waiting_job

GPU = Gres("gpu", "h100", 8)
FAR = 4e9
"""What Slurm adds for a job without a time limit that waits."""


def job(number: int, **parts: Any) -> SlurmJob:
    """A job that waits for nodes of the queue dev."""
    return waiting_job(str(number), **({"partition": "dev", "limit": 600.0, "node_count": 4} | parts))


class Slurm:
    """A transport that answers ``sbatch --test-only`` by a rule; nothing of Slurm is behind it."""

    notes: tuple[str, ...] = ()

    def __init__(self, free_nodes: int = 8, free_gpus: int = 8) -> None:
        self.free = {"nodes": free_nodes, "gres": free_gpus}
        self.asked: list[list[str]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 1.0) -> CommandOutput:
        self.asked.append(list(argv))
        options = dict(word.removeprefix("--").partition("=")[::2] for word in argv[1:])
        fits = all(int(options[name].rpartition(":")[2]) <= free for name, free in self.free.items() if name in options)
        start = time.time() + FAR + (0 if fits else 600)
        return CommandOutput(0, "", f"sbatch: Job 7 to start at {start:.0f} using 1 processors on x\n")

    async def close(self) -> None: ...


async def ask(slurm: Slurm, nodes: int, gpus: int = 8) -> tuple[str, ...]:
    wanted = DryRunRequest(b"#!/bin/sh\n", nodes, gpus, "gpu:h100")
    found = await find_smaller(SlurmClient(slurm), job(9, node_count=nodes), wanted)
    return tuple(one.text for one in found)


@pytest.mark.parametrize(
    ("nodes", "free", "said"),
    [
        (2, 1, ("with 1 node instead of 2 (--nodes 1)",)),
        (4, 3, ("with 2 nodes instead of 4 (--nodes 2)",)),
        (7, 3, ("with 3 nodes instead of 7 (--nodes 3)",)),
        (8, 3, ()),
    ],
)
async def test_half_the_nodes_are_tried(nodes: int, free: int, said: tuple[str, ...]):
    slurm = Slurm(free)
    assert await ask(slurm, nodes) == said
    assert len(slurm.asked) == 2


@pytest.mark.parametrize(
    ("gpus", "free", "said"),
    [
        (8, 5, ("with 4 accelerators instead of 8 (--gpus-per-node 4)",)),
        (8, 3, ()),
        (2, 1, ("with 1 accelerator instead of 2 (--gpus-per-node 1)",)),
    ],
)
async def test_half_the_gpus_of_a_single_node_are_tried(gpus: int, free: int, said: tuple[str, ...]):
    assert await ask(Slurm(free_gpus=free), 1, gpus) == said


async def test_nothing_is_asked_of_what_cannot_be_smaller():
    slurm = Slurm()
    assert await ask(slurm, 1, 1) == ()
    assert slurm.asked == []


@pytest.mark.parametrize(
    ("said", "start"),
    [
        ("sbatch: Job 5 to start at 1795287777 using 2 processors on nodes node[1-2] in partition dev\n", 1795287777.0),
        (
            "sbatch: Job 5 to start at 1795287777 on cluster c1 using 2 processors on nodes n in partition dev",
            1795287777.0,
        ),
        ("sbatch: Job 5 to start at soon using 2 processors on n", None),
        ("allocation failure: Requested node configuration is not available", None),
    ],
)
def test_the_time_is_read(said: str, start: float | None):
    assert parse_start(said) == start


def test_a_written_time_is_local(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert parse_start("Job 6 to start at 2026-11-21T19:02:57 using 2 processors") == 1795287777.0


def test_those_ahead_have_a_higher_priority_or_came_first():
    mine = job(5)
    others = [
        job(1, priority=50),
        job(4),
        job(6),
        job(7, priority=200),
        job(8, priority=300, reason="Dependency"),
        job(9, priority=0, reason="JobHeldUser"),
        job(10, priority=300, partition="spare"),
        job(11, priority=300, partition="spare,dev"),
        job(12, priority=300, state="RUNNING"),
        job(13, priority=300, reason="QOSMaxJobsPerUserLimit"),
    ]
    assert [one.job_id for one in find_jobs_ahead(mine, [mine, *others])] == ["11", "7", "4"]


def test_holders_are_those_on_the_nodes():
    running = {"state": "RUNNING", "node_list": "node[1-2]", "gres": (GPU,)}
    jobs = [
        job(1, **running),
        job(2, **running),
        job(3, **(running | {"user": "bob", "node_list": "node3", "gres": ()})),
        job(4, **(running | {"user": "eve", "node_list": "other1"})),
        job(5, user="dan"),
        job(6, **(running | {"user": "old", "state": "COMPLETED"})),
    ]
    assert find_holders(jobs, {"node1", "node2", "node3"}) == (
        Holder("alice", accelerators=16, nodes=4, jobs=2),
        Holder("bob", accelerators=0, nodes=1, jobs=1),
    )
