"""What runs used, by their own records, and that it is remembered."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.core.errors import NotFoundError, UnreachableError
from hyperpod_jlab.core.usage import Usage

MIB = 2**20
TAKES_200_MIB = "import time; taken = bytearray(200 * 2**20); time.sleep(0.5)"


def written(place, run_id):
    """What was remembered, or None."""
    path = place.hyperpod.runs.records_folder(run_id) / "status" / "usage.json"
    return json.loads(path.read_text()) if path.exists() else None


async def used(place, command, **spec) -> Usage:
    """Run a command to its end; what it used."""
    run_id = await place.submit(command, **spec)
    await place.ended(run_id)
    usage = await place.hyperpod.runs.usage(run_id)
    assert usage is not None
    return usage


class TestAmounts:
    async def test_memory_is_that_of_the_largest_process_however_deep(self, place):
        usage = await used(place, f"sh -c 'python3 -c \"{TAKES_200_MIB}\"'; true")
        assert 200 * MIB <= (usage.max_memory or 0) <= 260 * MIB

    async def test_cpu_time_is_that_of_all_processes(self, place):
        busy = "import time\nwhile time.process_time() < 0.6: pass"
        usage = await used(place, f"python3 -c '{busy}' & python3 -c '{busy}'; wait")
        assert 1.2 <= (usage.cpu_seconds or 0) <= 6

    async def test_a_signal_is_told_beside_the_exit_code(self, place):
        usage = await used(place, "kill -SEGV $$")
        assert (usage.exit_code, usage.signal) == (139, 11)

    async def test_an_exit_code_above_128_alone_is_no_signal(self, place):
        usage = await used(place, "exit 139")
        assert (usage.exit_code, usage.signal) == (139, None)

    async def test_the_journal_is_named_as_the_source(self, place):
        assert (await used(place, "true")).source == "journal"

    async def test_an_array_is_the_sum_of_its_children(self, place):
        usage = await used(place, "sleep 0.5", array="0-2")
        assert (usage.elapsed or 0) >= 1.5
        assert usage.attempts == 3


class TestMemory:
    async def test_a_run_that_has_not_ended_has_none(self, place):
        run_id = await place.submit("sleep 60")
        assert await place.hyperpod.runs.usage(run_id) is None
        await place.hyperpod.runs.act(run_id, "cancel")
        await place.ended(run_id)

    async def test_it_is_written_down_once_and_read_from_then_on(self, place):
        run_id = await place.submit("true")
        await place.ended(run_id)
        await place.hyperpod.runs.usage(run_id)
        path = place.hyperpod.runs.records_folder(run_id) / "status" / "usage.json"
        path.write_text(json.dumps({**written(place, run_id), "max_memory": 12345}))
        usage = await place.hyperpod.runs.usage(run_id)
        assert usage.max_memory == 12345

    async def test_what_was_written_of_fewer_attempts_does_not_count(self, place):
        run_id = await place.submit("true")
        await place.ended(run_id)
        await place.hyperpod.runs.usage(run_id)
        path = place.hyperpod.runs.records_folder(run_id) / "status" / "usage.json"
        path.write_text(json.dumps({**written(place, run_id), "attempts": 0, "nodes": 99}))
        usage = await place.hyperpod.runs.usage(run_id)
        assert usage.nodes == 1

    async def test_a_damaged_one_is_made_anew(self, place):
        run_id = await place.submit("true")
        await place.ended(run_id)
        path = place.hyperpod.runs.records_folder(run_id) / "status" / "usage.json"
        path.write_text("{")
        assert (await place.hyperpod.runs.usage(run_id)).nodes == 1
        assert written(place, run_id)["nodes"] == 1

    @pytest.mark.parametrize("answer", [None, UnreachableError("down", code="down")])
    async def test_what_the_cluster_does_not_say_yet_is_not_remembered(self, place, answer, monkeypatch):
        run_id = await place.submit("exit 4")
        await place.ended(run_id)

        async def usage(bundle):
            if answer is None:
                return
            raise answer

        monkeypatch.setattr(place.hyperpod.engines.get("local"), "usage", usage)
        found = await place.hyperpod.runs.usage(run_id)
        assert (found.source, found.exit_code) == ("journal", 4)
        assert written(place, run_id) is None

    async def test_of_a_run_that_is_none(self, place):
        with pytest.raises(NotFoundError):
            await place.hyperpod.runs.usage("none")
