"""What would start now, as far as it is worked out here: rooms, times, the line, and how few questions are asked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Holder, StartNow
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import SlurmJob
from hyperpod_jlab.engines.slurm.rows import Gres
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from hyperpod_jlab.engines.slurm.waiting import (
    Alternative,
    AlternativeSearch,
    DryRunRequest,
    QueueCapacity,
    find_holders,
    find_jobs_ahead,
    parse_capacities,
    parse_start,
)
from tests.slurm.job_fixtures import job as waiting_job

GPU = Gres("gpu", "h100", 8)
FAR = 4e9
"""What Slurm adds for a job without a time limit that waits."""


def job(number: int, **parts: Any) -> SlurmJob:
    """A job that waits for nodes of the queue dev."""
    return waiting_job(
        str(number), **({"partition": "dev", "limit": 600.0, "node_count": 4} | parts)
    )


class Slurm:
    """A transport that answers ``sbatch --test-only`` by a rule; nothing of Slurm is behind it."""

    notes: tuple[str, ...] = ()

    def __init__(self, room: int) -> None:
        self.room = room
        self.asked: list[list[str]] = []

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 1.0
    ) -> CommandOutput:
        options = dict(word.removeprefix("--").partition("=")[::2] for word in argv[1:])
        self.asked.append(list(argv))
        nodes = int(options.get("nodes", "64"))
        now = time.time() + FAR
        start = now if nodes <= self.room else now + 600
        return CommandOutput(
            0, "", f"sbatch: Job 7 to start at {start:.0f} using 1 processors on x\n"
        )

    async def close(self) -> None: ...


async def ask(
    slurm: Slurm, nodes: int, *others: SlurmJob
) -> tuple[tuple[StartNow, ...], AlternativeSearch]:
    mine = job(9, limit=1200.0, node_count=nodes)
    queues = {"dev": QueueCapacity(frozenset({"node1"}), True, None)}
    tries = AlternativeSearch(
        SlurmClient(slurm),
        mine,
        DryRunRequest(b"#!/bin/sh\n", nodes, 8, "gpu"),
        [mine, *others],
        queues,
    )
    return await tries.search(), tries


@pytest.mark.parametrize(("nodes", "room"), [(2, 1), (4, 3), (8, 5), (8, 1), (7, 6)])
async def test_the_most_nodes_are_found(nodes: int, room: int):
    said, _ = await ask(Slurm(room), nodes)
    words = "1 node" if room == 1 else f"{room} nodes"
    assert said == (f"with {words} instead of {nodes} (--nodes {room})",)


async def test_few_questions_are_asked_of_many_nodes():
    slurm = Slurm(40)
    said, tries = await ask(slurm, 64)
    assert said == ("with 40 nodes instead of 64 (--nodes 40)",)
    assert len(slurm.asked) <= 8
    assert tries.try_count == len(slurm.asked) - 1, "the tiny one is no other way"


async def test_nobody_is_held_up():
    """Who waits already is expected to start in 10 minutes: what is let past ends before."""
    first = job(8, started_at=time.time() + 600)
    said, _ = await ask(Slurm(1), 2, first)
    assert said == (
        "with 1 node instead of 2 and with a time limit of 7 min (--nodes 1 --time-limit 7m)",
    ) or said == (
        "with 1 node instead of 2 and with a time limit of 8 min (--nodes 1 --time-limit 8m)",
    )


async def test_nothing_is_promised_while_nobody_knows_when_others_start():
    slurm = Slurm(64)
    said, tries = await ask(slurm, 2, job(8))
    assert said == ()
    assert (tries.try_count, slurm.asked) == (0, [])


def test_rooms_are_read():
    rows = [
        "dev\x1fnode1\x1fup\x1f16/0/0/16\x1f1-00:00:00",
        "dev\x1fnode2\x1fup\x1f1/15/0/16\x1f1-00:00:00",
    ]
    rows += [
        "old\x1fnode3\x1fdown\x1f0/16/0/16\x1finfinite",
        "full\x1fnode1\x1fup\x1f16/0/0/16\x1fx",
        "cut",
    ]
    rooms = parse_capacities("\n".join(rows))
    assert rooms["dev"] == QueueCapacity(frozenset({"node1", "node2"}), True, 86400.0)
    assert rooms["old"] == QueueCapacity(frozenset({"node3"}), False, None)
    assert rooms["full"].is_open is False
    assert len(rooms) == 3


@pytest.mark.parametrize(
    ("said", "start"),
    [
        (
            "sbatch: Job 5 to start at 1795287777 using 2 processors on nodes node[1-2] in partition dev\n",
            1795287777.0,
        ),
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


def test_a_change_is_given_to_sbatch_and_to_people():
    change = Alternative(nodes=1, devices=2, queue="spare", limit=300)
    wanted = DryRunRequest(b"", 4, 8, "gpu:h100")
    assert change.options(wanted) == [
        "--partition=spare",
        "--nodes=1",
        "--gres=gpu:h100:2",
        "--time=5",
    ]
    assert "--nodes 1 --gpus-per-node 2 --queue spare --time-limit 5m" in change.change_text(wanted)


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
