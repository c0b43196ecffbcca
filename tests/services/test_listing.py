"""Listing runs: filters, pages, damaged ones, other people's, and runs that come and go meanwhile."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import time
from functools import partial
from typing import Any

import pytest

from hyperpod_jlab.core.errors import InvalidInputError, UnreachableError
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.run.listing import RunFilter, check_states
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage import index as index_module
from hyperpod_jlab.storage.index import RunIndex, default_path
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.storage.bundles import make_bundle
from tests.storage.racing import race

DAMAGES = ["empty", "half", "text", "missing", "folder", "pipe", "newer", "odd times"]


def spoil(path: Any, how: str) -> None:
    text = path.read_text()
    if how == "half":
        path.write_text(text[:20])
    elif how == "newer":
        path.write_text(text.replace('"format": 1', '"format": 7'))
    elif how == "odd times":
        path.write_text(text.replace('"created_at": 1', '"created_at": 1e99, "x": 1'))
    elif how in {"empty", "text"}:
        path.write_text("" if how == "empty" else "not JSON")
    else:
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "pipe":
            os.mkfifo(path)


async def ids(hyperpod: Hyperpod, **wanted: Any) -> list[str]:
    return [run.run_id for run in (await hyperpod.runs.list(RunFilter(**wanted))).runs]


async def test_nothing_yet(place):
    assert (await place.hyperpod.runs.list()).runs == ()


async def test_an_index_that_is_in_use_in_between(place, monkeypatch):
    """What was found of a run went into the index in memory, and the next look is into the file again."""
    make_bundle(place.partition, "run-1", code=0)
    monkeypatch.setattr(index_module, "RETRY_S", 0.0)
    use_file, uses = RunIndex._use_file, []

    def second_time_busy(*given: Any) -> Any:
        uses.append(given)
        if len(uses) == 2:
            raise index_module._UnusableError
        return use_file(*given)

    monkeypatch.setattr(RunIndex, "_use_file", second_time_busy)
    assert await ids(place.hyperpod) == ["run-1"]


async def test_newest_first_and_filters(place):
    for number in range(6):
        make_bundle(
            place.partition,
            f"run-{number}",
            created=1e9 + number,
            code=number % 2,
            cluster="far" if number == 4 else "local",
        )
    hyperpod = place.hyperpod
    assert await ids(hyperpod) == [f"run-{number}" for number in range(5, -1, -1)]
    assert await ids(hyperpod, limit=2) == ["run-5", "run-4"]
    assert await ids(hyperpod, everyone=True, limit=1) == ["run-5"]
    assert await ids(hyperpod, cluster="far") == ["run-4"]
    assert await ids(hyperpod, states=("failed",)) == ["run-5", "run-3", "run-1"]
    assert await ids(hyperpod, states=("failed", "succeeded"), cluster="local") == [
        "run-5",
        "run-3",
        "run-2",
        "run-1",
        "run-0",
    ]
    assert await ids(hyperpod, states=("waiting",)) == []
    assert await ids(hyperpod, cluster="' OR 1=1 --") == []


async def test_what_is_listed_is_what_is_told_of_each(place):
    make_bundle(place.partition, "run-1", code=3)
    await place.submit(run_id="run-2")
    await place.ended("run-2")
    for run in (await place.hyperpod.runs.list()).runs:
        one = await place.hyperpod.runs.get(run.run_id)
        assert to_plain(run) == to_plain(one)


@pytest.mark.parametrize("size", [1, 7, 50, 100])
async def test_pages_lose_and_repeat_nothing_while_runs_come_in(place, size):
    for number in range(50):  # ten at the same moment each
        make_bundle(place.partition, f"run-{number:02}", created=1e9 + number // 10)
    seen: list[str] = []
    cursor, turn = None, 0
    while True:
        page = await place.hyperpod.runs.list(RunFilter(limit=size, cursor=cursor))
        assert len(page.runs) <= size
        seen += [run.run_id for run in page.runs]
        make_bundle(place.partition, f"new-{turn:02}", created=2e9 + turn)
        turn, cursor = turn + 1, page.next
        if cursor is None:
            break
    assert seen == [f"run-{number:02}" for number in range(49, -1, -1)]


async def test_pages_while_runs_are_removed(place):
    for number in range(20):
        make_bundle(place.partition, f"run-{number:02}", created=1e9 + number)
    page = await place.hyperpod.runs.list(RunFilter(limit=5))
    for gone in (15, 14, 13, 2):
        shutil.rmtree(place.partition.bundle(f"run-{gone:02}"))
    seen = [run.run_id for run in page.runs]
    while page.next:
        page = await place.hyperpod.runs.list(RunFilter(limit=5, cursor=page.next))
        seen += [run.run_id for run in page.runs]
    left = [number for number in range(19, -1, -1) if number not in {14, 13, 2}]
    assert seen == [f"run-{number:02}" for number in left]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "W10",
        "WzEsMl0",
        "bnVsbA",
        "WzFlOTk5LCJhIl0x" * 9,
        "WyJhIiwiYiJd",
        "ezE",
        "W05hTiwiYSJd",
        pytest.param("W1tb" * 50_000, id="deep"),
    ],
)
async def test_a_cursor_that_is_none(place, cursor):
    make_bundle(place.partition, "run-1")
    with pytest.raises(InvalidInputError) as caught:
        await place.hyperpod.runs.list(RunFilter(cursor=cursor))
    assert (caught.value.code, caught.value.exit_code) == ("invalid_cursor", 2)


def test_states_by_name():
    assert check_states(["failed", "running"]) == ("running", "failed")
    with pytest.raises(InvalidInputError) as caught:
        check_states(["runing"])
    assert caught.value.hint == "did you mean 'running'?"


async def test_damaged_ones_are_shown_as_damaged_and_the_others_are_listed(place):
    me = current_user()
    make_bundle(place.partition, "good", user=me)
    for how in DAMAGES:
        bundle = make_bundle(place.partition, f"bad-{how.replace(' ', '-')}", user=me)
        spoil(bundle.folder / "bundle.json", how)
    place.partition.bundle("hollow").mkdir(parents=True)
    for wanted in (RunFilter(), RunFilter(everyone=True)):
        for _ in range(2):
            listing = await place.hyperpod.runs.list(wanted)
            told = {run.run_id: (run.state, run.status.reason_code) for run in listing.runs}
            assert told.pop("good") == ("succeeded", None)
            assert told.pop("bad-newer") == ("unknown", "newer_format")
            assert set(told.values()) == {("unknown", "damaged")}
            assert len(told) == len(DAMAGES)
            assert all(run.status.reason for run in listing.runs if run.run_id != "good")


async def test_a_damaged_spec_is_shown_in_the_list_too(place):
    """It is `hpj show` that reads a spec, but the list must not call such a run a good one."""
    me = current_user()
    make_bundle(place.partition, "good", user=me)
    for how in DAMAGES[:-1]:
        bundle = make_bundle(place.partition, f"bad-{how}", user=me, cluster="local")
        spoil(bundle.folder / "spec.json", how)
    late = make_bundle(place.partition, "late", user=me)
    for wanted in (RunFilter(), RunFilter(everyone=True, cluster="local")):
        listing = await place.hyperpod.runs.list(wanted)
        told = {run.run_id: (run.state, run.status.reason_code) for run in listing.runs}
        assert told.pop("good") == told.pop("late") == ("succeeded", None)
        assert told.pop("bad-newer") == ("unknown", "newer_format")
        assert set(told.values()) == {("unknown", "damaged")}
        assert len(told) == len(DAMAGES) - 2
        reasons = [run.status.reason for run in listing.runs if run.run_id in told]
        assert all("spec.json" in str(reason) for reason in reasons)
    text = (late.folder / "spec.json").read_text()
    spoil(late.folder / "spec.json", "half")
    assert "late" not in await ids(place.hyperpod, states=("succeeded",))
    (late.folder / "spec.json").write_text(text)
    assert "late" in await ids(place.hyperpod, states=("succeeded",))


async def test_the_spec_of_a_run_that_has_ended_is_read_once(place, monkeypatch):
    for number in range(3):
        make_bundle(place.partition, f"run-{number}")
    make_bundle(place.partition, "open", code=None, created=time.time())
    read: list[str] = []
    before = BundleReader.spec

    def spec(reader: BundleReader) -> Any:
        read.append(reader.run_id)
        return before(reader)

    monkeypatch.setattr(BundleReader, "spec", spec)
    for _ in range(3):
        assert len(await ids(place.hyperpod)) == 4
    assert sorted(set(read)) == ["open", "run-0", "run-1", "run-2"]
    assert [read.count(f"run-{number}") for number in range(3)] == [1, 1, 1]


async def test_a_damaged_one_that_is_mended_is_itself_again(place):
    bundle = make_bundle(place.partition, "run-1")
    text = (bundle.folder / "bundle.json").read_text()
    spoil(bundle.folder / "bundle.json", "half")
    assert (await place.hyperpod.runs.list()).runs[0].state == "unknown"
    (bundle.folder / "bundle.json").write_text(text)
    assert (await place.hyperpod.runs.list()).runs[0].state == "succeeded"


@pytest.mark.parametrize("name", ["submission.json", "status/attempt-1/node-0.json", "status/claim.json"])
async def test_a_damaged_record_makes_an_open_run_unknown(place, name):
    bundle = make_bundle(place.partition, "run-1")
    (bundle.folder / "status/attempt-1/node-0.json").unlink(missing_ok=True)
    (bundle.folder / name).write_text("{")
    (run,) = (await place.hyperpod.runs.list()).runs
    assert (run.state, run.status.reason_code) == ("unknown", "damaged")
    assert name.rsplit("/", maxsplit=1)[-1] in str(run.status.reason)


async def test_what_ended_is_looked_at_again_when_something_is_added(place):
    bundle = make_bundle(place.partition, "run-1")
    assert await ids(place.hyperpod, states=("succeeded",)) == ["run-1"]
    (bundle.folder / "status" / "attempt-2").mkdir()
    assert await ids(place.hyperpod, states=("succeeded",)) == []
    assert await ids(place.hyperpod) == ["run-1"]


async def test_stray_things_among_the_runs(place):
    bundle = make_bundle(place.partition, "run-1")
    shard = bundle.folder.parent
    (shard / "notes.txt").write_text("x")
    (shard / "Not A Run").mkdir()
    (shard / "a.b").mkdir()
    (place.partition.runs / "stray").write_text("x")
    (place.partition.runs / "zz").mkdir()
    make_bundle(place.partition, "run-2").folder.rename(place.partition.runs / "zz" / "run-2")
    assert await ids(place.hyperpod) == ["run-1"]
    assert await ids(place.hyperpod) == ["run-1"]


async def test_whole_shards_and_all_runs_may_vanish(place):
    for number in range(20):
        make_bundle(place.partition, f"run-{number}")
    assert len(await ids(place.hyperpod)) == 20
    shutil.rmtree(place.partition.bundle("run-3").parent)
    left = await asyncio.wait_for(ids(place.hyperpod), 20)
    assert "run-3" not in left
    shutil.rmtree(place.partition.folder)
    assert await asyncio.wait_for(ids(place.hyperpod), 20) == []


async def test_listing_while_runs_come_and_go_all_the_time(place):
    """Some stay; they are in every listing, once each."""
    for number in range(10):
        make_bundle(place.partition, f"stay-{number}")

    def work(number: int) -> Any:
        if number == 0:
            for turn in range(60):
                make_bundle(place.partition, f"go-{turn % 7}-{turn}")
                shutil.rmtree(place.partition.bundle(f"go-{turn % 7}-{turn}"))
            return "done"
        hyperpod = Hyperpod()
        told = [asyncio.run(ids(hyperpod)) for _ in range(15)]
        return all(len([one for one in found if one.startswith("stay")]) == 10 for found in told)

    assert race(work, 4) == ["done", True, True, True]


async def test_the_index_may_be_deleted_at_any_time(place):
    for number in range(30):
        make_bundle(place.partition, f"run-{number:02}")
    wanted = [f"run-{number:02}" for number in range(29, -1, -1)]
    path = default_path(place.partition)
    assert path

    def work(number: int) -> Any:
        hyperpod = Hyperpod()
        told = []
        for turn in range(20):
            told.append(asyncio.run(ids(hyperpod)))
            if number == 0:
                for suffix in [[""], ["", "-wal"], ["", "-wal", "-shm"]][turn % 3]:
                    path.with_name(path.name + suffix).unlink(missing_ok=True)
        return [found for found in told if found != wanted]

    assert race(work, 6) == [[]] * 6


def make_later(partition: Partition, run_id: str, created: float, _: int) -> None:
    make_bundle(partition, run_id, created=created)


async def test_a_run_that_another_process_has_just_made_is_there(place):
    for turn in range(10):
        made = f"run-{turn}"
        race(partial(make_later, place.partition, made, 1e9 + turn), 1)
        assert (await ids(place.hyperpod))[0] == made


async def test_an_index_that_cannot_be_had(place):
    make_bundle(place.partition, "run-1")
    path = default_path(place.partition)
    assert path
    path.mkdir()
    (path / "x").write_text("")
    assert await ids(Hyperpod()) == ["run-1"]
    hyperpod = Hyperpod()
    assert await ids(hyperpod) == ["run-1"]
    make_bundle(place.partition, "run-2")
    assert await ids(hyperpod) == ["run-2", "run-1"]


async def test_an_index_of_another_version_with_rows_of_another_shape(place):
    make_bundle(place.partition, "run-1")
    await ids(place.hyperpod)
    path = default_path(place.partition)
    assert path
    with sqlite3.connect(path) as connection:
        connection.execute("""UPDATE runs SET view = '{"run_id": "run-1"}'""")
    connection.close()
    assert await ids(place.hyperpod) == ["run-1"]


class Deaf(LocalOrchestrator):
    """A cluster that does not answer for a while."""

    deaf = True

    async def runs(self, bundles: Any) -> Any:
        """Say nothing when it is deaf."""
        if self.deaf:
            raise UnreachableError("no route to host")
        return await super().runs(bundles)


async def test_a_cluster_that_does_not_answer_makes_its_open_runs_unknown(place):
    engine = Deaf("local", place.hyperpod.settings.clusters["local"], place.partition)
    place.hyperpod.engines._engines["local"] = engine
    make_bundle(place.partition, "open", code=None, created=time.time())
    make_bundle(place.partition, "ended", code=0)
    listing = await place.hyperpod.runs.list()
    told = {run.run_id: (run.state, run.status.reason_code) for run in listing.runs}
    assert told == {"open": ("unknown", "unreachable"), "ended": ("succeeded", None)}
    one = await place.hyperpod.runs.get("open")
    assert one.status.reason == "local does not answer: no route to host"
    why = await place.hyperpod.runs.explain_wait("open")
    assert why.reason == "whether it is waiting is unknown now: local does not answer: no route to host"
    assert why.reason_code == "unreachable"
    engine.deaf = False
    assert (await place.hyperpod.runs.get("open")).state == "waiting"
    assert (await place.hyperpod.runs.list(RunFilter(states=("waiting",)))).runs[0].run_id == "open"


async def test_runs_of_a_cluster_that_is_not_configured_here(place):
    make_bundle(place.partition, "run-1", cluster="far", code=None)
    (run,) = (await place.hyperpod.runs.list()).runs
    assert (run.cluster, run.state) == ("far", "waiting")
