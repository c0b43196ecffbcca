"""Looking runs up, acting on them, and arrays with their children."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, NotFoundError
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.engines.local.attempt import end_processes
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.processes import this_process
from hyperpod_jlab.storage.records import DamagedBundleError
from tests.storage.bundles import make_bundle, write_files


def actions(place, run_id: str) -> list[str]:
    return [one.action for one in place.hyperpod.runs.bundle(run_id).actions()]


@pytest.mark.parametrize("run_id", ["none", "none.3", "run-1.3"])
async def test_a_run_that_is_none(place, run_id):
    make_bundle(place.partition, "run-1")
    with pytest.raises(NotFoundError) as caught:
        await place.hyperpod.runs.get(run_id)
    assert (caught.value.code, caught.value.exit_code) == ("no_such_run", 3)


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", "A", "a.b", "a\0"])
async def test_what_is_no_run_id(place, run_id):
    with pytest.raises(InvalidInputError):
        await place.hyperpod.runs.get(run_id)
    with pytest.raises(InvalidInputError):
        await place.hyperpod.runs.act(run_id, "cancel")


async def test_a_damaged_run_is_told_and_nothing_can_be_done_to_it(place):
    bundle = make_bundle(place.partition, "run-1")
    (bundle.folder / "bundle.json").write_text("{")
    for what in (place.hyperpod.runs.get("run-1"), place.hyperpod.runs.act("run-1", "cancel")):
        with pytest.raises(DamagedBundleError):
            await what


async def test_what_has_ended_stays_so_and_its_journal_clean(place):
    make_bundle(place.partition, "run-1", code=3)
    assert (await place.hyperpod.runs.act("run-1", "cancel")).state == "failed"
    for action in ("hold", "release", "requeue"):
        with pytest.raises(ConflictError) as caught:
            await place.hyperpod.runs.act("run-1", action)
        assert (caught.value.code, caught.value.status) == ("wrong_state", 409)
        assert "failed" in caught.value.message
    assert actions(place, "run-1") == []


async def test_hold_release_cancel(place):
    await place.submit("sleep 60", run_id="first", after=[])
    await place.submit("true", run_id="second", after=["first"])
    await place.until("second", lambda run: run.state == "waiting")
    await place.hyperpod.runs.act("second", "hold")
    await place.until("second", lambda run: run.status.reason_code == "held")
    with pytest.raises(ConflictError):
        await place.hyperpod.runs.act("second", "requeue")
    await place.hyperpod.runs.act("second", "release")
    await place.until("second", lambda run: run.status.reason_code == "dependency")
    await place.hyperpod.runs.act("first", "cancel")
    assert (await place.ended("first")).state == "cancelled"
    last = await place.ended("second")
    assert (last.state, last.status.reason_code) == ("failed", "dependency")
    assert actions(place, "second") == ["hold", "release"]


async def test_no_bundle_is_looked_up_on_the_event_loop(place, monkeypatch):
    """A look at the partition may take long, and all answers of the server would wait for it."""
    make_bundle(place.partition, "run-1", code=3)
    has_run, threads = Partition.has_run, []

    def look(*given: Any) -> bool:
        threads.append(threading.current_thread())
        return has_run(*given)

    monkeypatch.setattr(Partition, "has_run", look)
    await place.hyperpod.runs.act("run-1", "cancel")
    await place.submit("sleep 60", run_id="first")
    await place.submit("true", run_id="second", after=["first"])
    await place.until("second", lambda run: run.state == "waiting")
    await place.hyperpod.runs.explain_wait("second")
    assert threads
    assert threading.current_thread() not in threads


async def test_watching_tells_each_change_once_and_ends(place):
    await place.submit("sleep 0.3", run_id="run-1")
    told = [run async for run in place.hyperpod.runs.watch("run-1")]
    statuses = [run.status for run in told]
    assert all(before != after for before, after in pairwise(statuses))
    assert [status.ended for status in statuses] == [False] * (len(told) - 1) + [True]
    assert statuses[-1].state == "succeeded"


async def test_waiting_may_be_broken_off_and_the_run_goes_on(place):
    await place.submit("sleep 1", run_id="run-1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(place.hyperpod.runs.wait("run-1"), 0.2)
    assert (await place.hyperpod.runs.wait("run-1")).state == "succeeded"


async def test_an_array_of_which_some_fail(place):
    await place.submit('test "$HYPERPOD_ARRAY_INDEX" != 1', run_id="run-1", array="0-2")
    run = await place.ended("run-1")
    assert (run.state, run.status.reason_code) == ("failed", "children")
    assert run.children == {"succeeded": 2, "failed": 1}
    children = await place.hyperpod.runs.children("run-1")
    assert [child.run_id for child in children] == ["run-1.0", "run-1.1", "run-1.2"]
    assert [child.state for child in children] == ["succeeded", "failed", "succeeded"]
    assert {child.parent for child in children} == {"run-1"}
    assert await place.listed() == ["run-1"]
    assert await place.hyperpod.runs.children("run-1.0") == ()


async def test_a_cancelled_array_of_which_some_never_started(place):
    await place.submit("sleep 60", run_id="run-1", array="0-9%2")
    await place.until("run-1", lambda run: run.children.get("running", 0) == 2)
    await place.hyperpod.runs.act("run-1", "cancel")
    run = await place.ended("run-1")
    assert (run.state, run.children) == ("cancelled", {"cancelled": 10})
    assert {child.state for child in await place.hyperpod.runs.children("run-1")} == {"cancelled"}


async def test_an_array_that_waits_is_held_released_and_fails_with_what_it_waits_for(place):
    await place.submit("sleep 60", run_id="first")
    await place.submit("true", run_id="run-1", array="0-3", after=["first"])
    await place.until("run-1", lambda run: run.state == "waiting")
    await place.hyperpod.runs.act("run-1", "hold")
    await place.until("run-1", lambda run: run.status.reason_code == "held")
    await place.hyperpod.runs.act("run-1", "release")
    await place.until("run-1", lambda run: run.status.reason_code != "held")
    await place.hyperpod.runs.act("first", "cancel")
    run = await place.ended("run-1")
    assert (run.state, run.children) == ("failed", {"failed": 4})


def kill(records: Path) -> None:
    """Kill whatever looks after a run, and all of its processes, without a word."""
    owner = json.loads((records / "status" / "owner.json").read_text())
    os.kill(owner["pid"], signal.SIGKILL)
    end_processes(records, 0)


@pytest.mark.parametrize("with_child", [False, True], ids=["one child lives on", "all are killed"])
async def test_an_array_whose_supervisor_was_killed(place, with_child):
    """Children that had not begun never will; all faces say the same of them."""
    await place.submit("sleep 3", run_id="run-1", array="0-4%1")
    await place.until("run-1", lambda run: run.children.get("running", 0) == 1)
    bundle = place.partition.bundle("run-1")
    kill(bundle)
    if with_child:
        kill(bundle / "tasks" / "0")
    else:
        told = await place.until("run-1", lambda run: run.children.get("failed") == 4)
        assert (told.state, told.children) == ("running", {"running": 1, "failed": 4})
    run = await place.ended("run-1")
    first = "failed" if with_child else "succeeded"
    assert run.state == "failed"
    assert run.children == {"failed": 5} if with_child else {"succeeded": 1, "failed": 4}
    children = await place.hyperpod.runs.children("run-1")
    assert [child.state for child in children] == [first] + ["failed"] * 4
    assert {child.status.reason_code for child in children[1:]} == {"lost"}
    assert to_plain((await place.hyperpod.runs.list()).runs[0]) == to_plain(run)


OTHER = {"machine": "other", "boot": "b", "pid_namespace": "p", "pid": 1, "start_time": 1}


def running(place, owner: dict[str, Any], now: float) -> None:
    """A run that was last heard of 100 seconds ago."""
    bundle = make_bundle(place.partition, "run-1", code=None, created=now - 500)
    word = {"time": now - 400, "observer": "local", "state": "running"}
    files = {
        "status/owner.json": {**owner, "time": now - 400, "heartbeat": now - 100},
        "status/observations/local.json": word,
    }
    write_files(bundle.folder, files.items())


async def test_a_run_of_another_machine_is_told_with_when_it_was_heard_last(place):
    running(place, {**OTHER, "host": "gpu-7"}, time.time())
    run = await place.hyperpod.runs.get("run-1")
    assert run.state == "running"
    assert "gpu-7, last heartbeat 10" in str(run.status.reason)
    assert (await place.hyperpod.runs.list()).runs[0].state == "running"


async def test_the_end_of_a_lost_run_does_not_wander(place):
    """It is what it was, however late one looks."""
    now = time.time()
    running(place, this_process().model_dump() | {"pid": 2**22, "start_time": 1}, now)
    first = await place.hyperpod.runs.get("run-1")
    assert (first.state, first.status.reason_code) == ("failed", "lost")
    assert first.status.ended_at == pytest.approx(now - 100, abs=1)
    await asyncio.sleep(0.05)
    assert await place.hyperpod.runs.get("run-1") == first
    assert to_plain((await place.hyperpod.runs.list()).runs[0]) == to_plain(first)
