"""How often the scheduler is asked: the pace, the bucket, one look for all, the file shared with other processes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.slurm import queue as pace
from hyperpod_jlab.engines.slurm.client import Bucket
from hyperpod_jlab.engines.slurm.queue import (
    SHARED_TTL_S,
    PollInterval,
    SharedQueue,
    Snapshot,
    cache_path,
    controller_query,
)
from hyperpod_jlab.storage import descent
from tests.slurm.clock_fixtures import Clock, clock
from tests.slurm.job_fixtures import job

__all__ = ["clock"]

DOWN = UnreachableError("the controller does not respond", code="controller_down")


class TestPace:
    def test_news_is_followed_closely(self, clock: Clock) -> None:
        found = PollInterval()
        clock.now += 5
        assert found.max_age == pace.MIN_POLL_S

    def test_a_quiet_queue_is_left_alone_more_and_more(self, clock: Clock) -> None:
        found = PollInterval()
        clock.now += 300
        assert found.max_age == 30
        clock.now += 100_000
        assert found.max_age == pace.MAX_POLL_S

    def test_news_makes_it_fast_again(self, clock: Clock) -> None:
        found = PollInterval()
        clock.now += 100_000
        found.on_event()
        assert found.max_age == pace.MIN_POLL_S

    def test_a_command_which_never_says_that_it_looks_is_not_forgotten(self, clock: Clock) -> None:
        found = PollInterval()
        clock.now += 100_000
        assert found.max_age < float("inf")

    def test_once_nobody_looks_any_answer_will_do(self, clock: Clock) -> None:
        found = PollInterval()
        found.mark_active()
        clock.now += 91
        assert found.max_age == float("inf")

    def test_a_panel_that_asks_once_a_minute_is_somebody(self, clock: Clock) -> None:
        found = PollInterval()
        for _ in range(5):
            found.mark_active()
            clock.now += 61
            assert found.max_age < float("inf")

    def test_who_comes_back_is_answered_anew(self, clock: Clock) -> None:
        found = PollInterval()
        found.mark_active()
        clock.now += 1000
        found.mark_active()
        assert found.max_age == pace.MAX_POLL_S


class TestNews:
    BEFORE = Snapshot.build(1.0, [job("1", state="COMPLETED"), job("2", state="RUNNING")])

    @pytest.mark.parametrize(
        ("now", "news"),
        [
            ([("1", "COMPLETED"), ("2", "RUNNING")], False),
            ([("2", "RUNNING")], False),  # the controller has forgotten the ended one
            ([("1", "COMPLETED"), ("2", "COMPLETED")], True),
            ([("1", "COMPLETED"), ("2", "RUNNING"), ("3", "PENDING")], True),
            ([("1", "COMPLETED"), ("2", "RUNNING"), ("3", "FAILED")], True),  # between two looks
            ([("1", "COMPLETED")], True),  # one that ran is gone
        ],
    )
    def test_what_is_news(self, now: list[tuple[str, str]], news: bool) -> None:
        jobs = [job(job_id, state=state) for job_id, state in now]
        assert Snapshot.build(2.0, jobs).has_changed_since(self.BEFORE) is news


class TestBucket:
    @pytest.fixture(autouse=True)
    def _sleep(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(asyncio, "sleep", clock.sleep)

    async def test_a_burst_goes_through_at_once(self, clock: Clock) -> None:
        bucket = Bucket(rate=1, burst=20)
        began = clock.now
        for _ in range(20):
            await bucket.acquire()
        assert clock.now == began

    async def test_what_is_more_waits_for_its_turn(self, clock: Clock) -> None:
        bucket = Bucket(rate=2, burst=20)
        began = clock.now
        for _ in range(30):
            await bucket.acquire()
        assert clock.now - began == pytest.approx(5)

    async def test_many_at_the_same_time_do_not_share_a_token(self, clock: Clock) -> None:
        bucket = Bucket(rate=1, burst=5)
        began = clock.now
        await asyncio.gather(*(bucket.acquire() for _ in range(15)))
        assert clock.now - began >= 10 - 1e-6

    async def test_a_quiet_while_fills_it_to_the_brim_and_no_more(self, clock: Clock) -> None:
        bucket = Bucket(rate=1, burst=3)
        for _ in range(3):
            await bucket.acquire()
        clock.now += 1000
        began = clock.now
        for _ in range(4):
            await bucket.acquire()
        assert clock.now - began == pytest.approx(1)

    async def test_it_counts_the_last_minute(self, clock: Clock) -> None:
        bucket = Bucket()
        await bucket.acquire()
        clock.now += 40
        await bucket.acquire()
        assert bucket.last_minute == 2
        clock.now += 30
        assert bucket.last_minute == 1


class Looked:
    """Looks that are counted, and go as they are told."""

    def __init__(self, clock: Clock) -> None:
        self.count = 0
        self.error: UnreachableError | None = None
        self.gate: asyncio.Event | None = None
        self._clock = clock

    async def __call__(self) -> Snapshot:
        """One look; its only job's id is its number."""
        self.count += 1
        made = Snapshot.build(self._clock.now, [job(str(self.count))])
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return made


@pytest.fixture
def look(clock: Clock) -> Looked:
    """A look at a queue."""
    return Looked(clock)


class TestAskedOfController:
    async def test_all_who_ask_at_the_same_time_share_one_look(self, look: Looked) -> None:
        watch = controller_query(look)
        look.gate = asyncio.Event()
        asked = [asyncio.create_task(watch.get(0)) for _ in range(50)]
        await asyncio.sleep(0)
        look.gate.set()
        seen = await asyncio.gather(*asked)
        assert look.count == 1
        assert len({id(one) for one in seen}) == 1

    async def test_one_who_gives_up_takes_nothing_from_the_others(self, look: Looked) -> None:
        watch = controller_query(look)
        look.gate = asyncio.Event()
        first, second = (asyncio.create_task(watch.get(0)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        look.gate.set()
        assert (await second).jobs[0].job_id == "1"

    async def test_what_is_young_enough_is_not_asked_again(self, look: Looked, clock: Clock) -> None:
        watch = controller_query(look)
        await watch.get(10)
        clock.now += 9
        await watch.get(10)
        assert look.count == 1
        clock.now += 2
        await watch.get(10)
        assert look.count == 2

    async def test_after_a_change_nothing_seen_before_counts(self, look: Looked) -> None:
        watch = controller_query(look)
        await watch.get(1000)
        watch.forget()
        await watch.get(1000)
        assert look.count == 2

    async def test_a_look_that_began_before_a_change_is_for_those_who_asked_then(
        self, look: Looked, clock: Clock
    ) -> None:
        watch = controller_query(look)
        look.gate = asyncio.Event()
        before = asyncio.create_task(watch.get(0))
        while look.count == 0:  # noqa: ASYNC110 - it begins at its turn
            await asyncio.sleep(0)
        clock.now += 1
        watch.forget()
        after = asyncio.create_task(watch.get(1000))
        await asyncio.sleep(0)
        look.gate.set()
        assert (await before).jobs[0].job_id == "1"
        assert (await after).jobs[0].job_id == "2"
        assert watch.last is await after

    async def test_a_controller_that_is_down_is_left_alone_longer_and_longer(self, look: Looked, clock: Clock) -> None:
        watch = controller_query(look)
        look.error = DOWN
        asked_at = []
        began = clock.now
        for _ in range(400):  # somebody asks each second
            before = look.count
            with pytest.raises(UnreachableError):
                await watch.get(1)
            if look.count > before:
                asked_at.append(clock.now - began)
            clock.now += 1
        assert asked_at == [0, 5, 15, 35, 75, 135, 195, 255, 315, 375]

    async def test_once_it_answers_it_is_asked_as_before(self, look: Looked, clock: Clock) -> None:
        watch = controller_query(look)
        look.error = DOWN
        for _ in range(3):
            with pytest.raises(UnreachableError):
                await watch.get(1)
            clock.now += 100
        look.error = None
        await watch.get(1)
        clock.now += 2
        await watch.get(1)
        assert look.count == 5

    async def test_what_was_seen_last_stays_to_be_shown(self, look: Looked, clock: Clock) -> None:
        watch = controller_query(look)
        seen = await watch.get(1)
        look.error = DOWN
        clock.now += 100
        with pytest.raises(UnreachableError):
            await watch.get(1)
        assert watch.last is seen


class TestSharedQueue:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """The cache file."""
        return tmp_path / "cache" / "queue.json"

    @pytest.fixture(autouse=True)
    def _file_times(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files are as old as the clock says."""
        replace = descent.replace

        def dated(path: Path, data: bytes, *, mode: int) -> None:
            replace(path, data, mode=mode)
            os.utime(path, (clock.now, clock.now))

        monkeypatch.setattr(descent, "replace", dated)

    async def test_two_processes_share_a_look(self, look: Looked, path: Path) -> None:
        one, other = SharedQueue(look, path), SharedQueue(look, path)
        seen = await one.get(1)
        assert (await other.get(1)).jobs == seen.jobs
        assert look.count == 1

    async def test_an_old_look_of_another_process_is_no_answer(self, look: Looked, path: Path, clock: Clock) -> None:
        await SharedQueue(look, path).get(1)
        clock.now += SHARED_TTL_S + 1
        await SharedQueue(look, path).get(1)
        assert look.count == 2

    async def test_who_may_take_an_old_answer_takes_it_from_the_file(
        self, look: Looked, path: Path, clock: Clock
    ) -> None:
        await SharedQueue(look, path).get(1)
        clock.now += 50
        await SharedQueue(look, path).get(75)
        assert look.count == 1

    async def test_a_change_in_one_process_makes_the_other_look_too(
        self, look: Looked, path: Path, clock: Clock
    ) -> None:
        one, other = SharedQueue(look, path), SharedQueue(look, path)
        await one.get(1)
        clock.now += 1
        one.forget()
        clock.now += 1
        assert (await other.get(1)).jobs[0].job_id == "2"

    async def test_after_ones_own_change_a_look_from_before_does_not_count(
        self, look: Looked, path: Path, clock: Clock
    ) -> None:
        one, other = SharedQueue(look, path), SharedQueue(look, path)
        await other.get(1)
        kept = descent.read(path)
        clock.now += 1
        one.forget()
        descent.replace(path, kept, mode=0o600)  # as by a process that was just about to write it
        clock.now += 1
        assert (await one.get(100)).jobs[0].job_id == "2"

    @pytest.mark.parametrize("data", [b"", b"{", b'{"format": 2}', b"\xff" * 100])
    async def test_a_file_that_cannot_be_read_only_costs_a_look(self, look: Looked, path: Path, data: bytes) -> None:
        path.parent.mkdir()
        descent.replace(path, data, mode=0o600)
        await SharedQueue(look, path).get(1)
        assert look.count == 1

    async def test_a_folder_that_cannot_be_written_only_costs_looks(self, look: Looked, path: Path) -> None:
        path.parent.write_text("no folder")
        await SharedQueue(look, path).get(1)
        await SharedQueue(look, path).get(1)
        assert look.count == 2

    async def test_a_clock_that_was_set_back_is_not_believed(self, look: Looked, path: Path, clock: Clock) -> None:
        await SharedQueue(look, path).get(1)
        clock.now -= 3600
        await SharedQueue(look, path).get(1)
        assert look.count == 2

    async def test_the_file_is_for_its_user_only(self, look: Looked, path: Path) -> None:
        await SharedQueue(look, path).get(1)
        assert os.stat(path).st_mode & 0o777 == 0o600  # noqa: PTH116 - nothing waits for it

    def test_each_cluster_has_a_file_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ways: list[dict[str, Any]] = [
            {},
            {"commands": "/opt/other/bin"},
            {"slurm_conf": "/etc/other.conf"},
            {"transport": "ssh", "login_nodes": ["a"]},
            {"transport": "ssh", "login_nodes": ["b"]},
            {"transport": "ssh", "login_nodes": ["a"], "user": "bob"},
            {"transport": "ssh", "login_nodes": ["a"], "ssh_config": "/etc/other_ssh"},
        ]
        configs = [parse(SlurmCluster, {"orchestrator": "slurm", **way}) for way in ways]
        files = {cache_path(what, config) for what in ("mine", "all") for config in configs}
        assert len(files) == 2 * len(ways)
        monkeypatch.setenv("SLURM_CONF", "/etc/named/by/the/environment.conf")
        assert cache_path("mine", configs[0]) not in files
        assert cache_path("mine", configs[3]) in files
