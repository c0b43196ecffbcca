"""The load on the controller, counted by a wrapper around Slurm's commands: with pages that are open, hidden, many, and in a hurry."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import combinations

import pytest

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from tests.slurm.cluster import Call
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, make_hyperpod
from tests.slurm.panel_fixtures import POLL, Server

SLURM = "hyperpod_jlab.engines.slurm"
SERVER = "hyperpod_jlab.server"

TIMES = (
    f"{SLURM}.queue.MIN_POLL_S",
    f"{SLURM}.queue.MAX_POLL_S",
    f"{SLURM}.queue._INACTIVE_AFTER_S",
    f"{SLURM}.queue.TABLE_POLL_S",
    f"{SLURM}.tables.NAMES_TTL_S",
    f"{SLURM}.queue.SHARED_TTL_S",
    f"{SERVER}.run_events.MIN_INTERVAL_S",
    f"{SERVER}.run_events.MAX_INTERVAL_S",
)
"""All that says how often somebody looks."""

LIMITER_SIZE, LIMITER_RATE = 30, 2
"""Slurm's own limiter: so many calls of a user at once, so many a second (man slurm.conf, rl_bucket_size and rl_refill_rate)."""


@pytest.fixture
def transport() -> str:
    """Both ways lead through the same bucket."""
    return "here"


@pytest.fixture
async def server(session: SlurmSession) -> AsyncIterator[Server]:
    """A server of this user."""
    made = Server(session.hyperpod)
    yield made
    await made.process.events.close()


@pytest.fixture
def faster(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> float:
    """How many times faster everything goes than it really does."""
    factor = float(request.param)
    for name in TIMES:
        module, _, constant = name.rpartition(".")
        found = getattr(__import__(module, fromlist=[constant]), constant)
        monkeypatch.setattr(name, found / factor)
    return factor


def an_hour_passes(session: SlurmSession) -> None:
    """Nothing has happened for long."""
    engine = session.hyperpod.engines.get(CLUSTER)
    assert isinstance(engine, SlurmOrchestrator)
    engine._pace._last_event_at -= 3600


async def one_runs_one_waits(session: SlurmSession) -> str:
    """A run that writes all the time, whose id this is, and one that wants what it has."""
    running = await session.submit("while :; do date; sleep 0.1; done", resources={"gpus_per_node": 1})
    await session.running(running)
    waiting = await session.submit("true", resources={"nodes": 4, "gpus_per_node": 8})
    await session.until(waiting, lambda run: run.status.reason_code is not None, 20)
    return running


async def no_call_is_under_way(session: SlurmSession) -> None:
    """Wait for calls that were made before and are counted late: a busy machine takes its time to start a program."""
    before = None
    end = time.monotonic() + 20
    while (calls := len(session.cluster.calls())) != before:
        assert time.monotonic() < end, session.cluster.calls()
        before = calls
        await asyncio.sleep(1)


class TestIdle:
    async def calls_of(self, session: SlurmSession, server: Server, faster: float, minutes: float) -> list[Call]:
        """What ten tabs and ten streams of a log cost in so many minutes in which nothing happens."""
        session.cluster.heal()  # of what others left running too
        run_id = await one_runs_one_waits(session)
        engine = session.hyperpod.engines.get(CLUSTER)
        assert isinstance(engine, SlurmOrchestrator)
        engine._queue.changed()  # so that all looks below are of the same age
        an_hour_passes(session)
        await server.look()
        async with server.pages(10, every=POLL / faster), server.logs(run_id, 10) as got:
            await asyncio.sleep(10 / faster)
            session.cluster.forget_calls()
            before = list(got)
            await asyncio.sleep(60 * minutes / faster)
            calls = session.cluster.calls()
            assert all(now > then + 5 for now, then in zip(got, before, strict=True))
        line = server.line
        queue = session.cluster.exec("ctl", "squeue", "--all", "--format=%i %T %u %j %V %k")
        assert (line.running, line.waiting) == (1, 1), queue
        return calls

    @pytest.mark.parametrize(
        "faster",
        [8, pytest.param(1, marks=[pytest.mark.full, pytest.mark.timeout(400)], id="real-time")],
        indirect=True,
    )
    async def test_two_calls_a_minute_whatever_the_number_of_tabs_and_logs(
        self, session: SlurmSession, server: Server, faster: float
    ) -> None:
        calls = await self.calls_of(session, server, faster, 2)
        assert 1 <= len(calls) <= 4, calls

    @pytest.mark.parametrize("faster", [16], indirect=True)
    async def test_none_once_nobody_looks_although_logs_are_followed(
        self, session: SlurmSession, server: Server, faster: float
    ) -> None:
        run_id = await one_runs_one_waits(session)
        await server.look()
        async with server.logs(run_id, 5) as got:
            await asyncio.sleep(95 / faster)
            await no_call_is_under_way(session)
            session.cluster.forget_calls()
            before = list(got)
            await asyncio.sleep(80 / faster)
            assert session.cluster.calls() == []
            assert all(now > then + 5 for now, then in zip(got, before, strict=True))
        await server.look()
        # One for all users' jobs, of which this user's are a part; a second one only if the first is already old by then.
        assert 1 <= [call.name for call in session.cluster.calls()].count("squeue") <= 2

    async def test_the_clusters_line_tells_the_calls(self, session: SlurmSession, server: Server) -> None:
        await one_runs_one_waits(session)
        await server.look()
        line = server.line
        assert 0 < line.detail["scheduler_calls"] <= len(session.cluster.calls())


class TestNews:
    async def test_a_run_that_ends_is_seen_soon_after_a_submit(self, session: SlurmSession, server: Server) -> None:
        an_hour_passes(session)
        await server.look()
        run_id = await session.submit("sleep 1")
        end = time.monotonic() + 15
        while await server.show(run_id) != "succeeded":
            assert time.monotonic() < end
            await asyncio.sleep(0.2)

    async def test_a_priority_that_rises_is_no_news(self, session: SlurmSession) -> None:
        await one_runs_one_waits(session)
        engine = session.hyperpod.engines.get(CLUSTER)
        assert isinstance(engine, SlurmOrchestrator)
        (job,) = [job for job in (await engine._queue.own_jobs()).jobs if job.state == "PENDING"]
        an_hour_passes(session)
        session.cluster.run("ctl", "scontrol", "update", f"jobid={job.job_id}", "priority=12345")
        engine._queue.user_queue.forget()
        seen = await engine._queue.own_jobs()
        assert next(one for one in seen.jobs if one.job_id == job.job_id).priority == 12345
        assert engine._pace.max_age > 60


class TestHurry:
    @pytest.mark.parametrize("count", [15, pytest.param(30, marks=pytest.mark.full)])
    async def test_submits_at_once_stay_below_slurms_own_limiter(self, session: SlurmSession, count: int) -> None:
        runs = await asyncio.gather(*(session.submit("true") for _ in range(count)))
        calls = session.cluster.calls()
        sent = [call for call in calls if call.name == "sbatch" and "--test-only" not in call.args]
        assert len(sent) == count
        assert len({(await session.hyperpod.runs.get(run)).scheduler_id for run in runs}) == count
        for first, last in combinations(range(len(calls)), 2):
            seconds = calls[last].at - calls[first].at
            assert last - first + 1 <= LIMITER_SIZE + LIMITER_RATE * seconds

    async def test_fifty_who_ask_at_once_cost_one_look(self, session: SlurmSession) -> None:
        run_id = await one_runs_one_waits(session)
        engine = session.hyperpod.engines.get(CLUSTER)
        assert isinstance(engine, SlurmOrchestrator)
        engine._queue.changed()
        session.cluster.forget_calls()
        await asyncio.gather(*(session.hyperpod.runs.get(run_id) for _ in range(50)))
        assert len(session.cluster.calls()) == 1

    async def test_processes_share_their_looks(self, session: SlurmSession) -> None:
        run_id = await one_runs_one_waits(session)
        engine = session.hyperpod.engines.get(CLUSTER)
        assert isinstance(engine, SlurmOrchestrator)
        engine._queue.changed()
        session.cluster.forget_calls()
        others = [make_hyperpod(session.cluster) for _ in range(5)]
        for other in others:  # each knows nothing but what is in the file
            assert (await other.runs.get(run_id)).state == "running"
            await other.close()
        assert len(session.cluster.calls()) == 1


class TestDown:
    @pytest.mark.full
    async def test_a_controller_that_is_down_is_asked_less_and_less(
        self, session: SlurmSession, server: Server
    ) -> None:
        await one_runs_one_waits(session)
        await server.look()
        session.cluster.controller_stop()
        session.cluster.forget_calls()
        began = time.monotonic()
        while time.monotonic() - began < 40:
            with suppress(HyperpodError):
                await session.hyperpod.jobs(CLUSTER)
            await asyncio.sleep(0.2)
        assert len(session.cluster.calls()) >= 2
        # Two looks are wanted: at this user's jobs and at everybody's. Each takes 9 s to give up; then 5, 10 and 20 s pass.
        assert len(session.cluster.calls()) <= 2 * 3
        session.cluster.controller_start()
        await asyncio.sleep(20)
        jobs = await session.hyperpod.jobs(CLUSTER)
        assert len([job for job in jobs if job.state in {"waiting", "running"}]) == 2
