"""Logs of an array: those of its children, merged and followed as one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperpod_jlab.logs import array as array_module
from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.lines import LogLine
from hyperpod_jlab.logs.reader import RECORDS_A_SECOND, IdleTracker, Ring, SourceReader
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.service import LogRequest, LogService
from hyperpod_jlab.logs.stream import START_POSITION, Stream
from tests.logs.client import Client
from tests.logs.writing import Ledger, RunFolder


class ArrayFolder(RunFolder):
    """The records of an array's children."""

    def child(self, index: int) -> RunFolder:
        return RunFolder(self.root / "tasks" / str(index), self.per_node)

    def sources(self, run_id: str) -> ArrayStreams:
        return ArrayStreams(self.root / "tasks", 1, self.per_node)


@pytest.fixture
def array(tmp_path: Path) -> ArrayFolder:
    return ArrayFolder(tmp_path)


@pytest.fixture
async def logs(array: ArrayFolder) -> AsyncIterator[LogService]:
    service = LogService(array, Hub(notifications=False))
    yield service
    await service.close()


async def shown(logs: LogService, **wanted: object) -> list[str]:
    request = LogRequest("run", **wanted)  # type: ignore[arg-type]
    return [str(line) async for batch in logs.lines(request) for line in batch]


def test_a_childs_stream_is_known_in_the_array_and_back() -> None:
    for own in (Stream(1, 0, None), Stream(999_999, 999_999, 7)):
        for index in (0, 99_999, 999_999_999):
            seen = own.in_array(index)
            assert (seen.child, seen.without_child) == (index, own)
            assert seen.rank(8) == own.rank(8)
    assert Stream(2, 3, 4).child is None
    assert Stream(2, 3, 4).without_child == Stream(2, 3, 4)
    assert Stream(1, 2, None).in_array(7).prefix(None) == "7.node2|"


async def test_childrens_lines_are_merged_by_time(array: ArrayFolder, logs: LogService) -> None:
    for number in range(12):
        index, rank = number % 3, number // 3 % 2
        array.child(index).write(rank, f"{number}\n", at=100 + number)
    every = [f"{n % 3}.{n // 3 % 2}|{n}" for n in range(12)]
    assert await shown(logs) == every
    assert await shown(logs, tail=4) == every[-4:]
    assert await shown(logs, since=106.0) == every[6:]
    assert await shown(logs, ranks=(1,)) == [line for line in every if ".1|" in line]
    assert await shown(logs, grep="^1") == [every[1], *every[10:]]
    assert await shown(logs, grep="^1", tail=1) == every[11:]


async def test_every_cursor_goes_on_after_its_line(array: ArrayFolder, logs: LogService) -> None:
    for number in range(20):
        array.child(number % 4 * 1000).write(0, f"{number}\n", at=100 + number)
    ledger = Ledger()
    lines: list[LogLine] = []
    async for batch in logs.lines(LogRequest("run")):
        ledger.take_all(batch)
        lines += batch
    assert [line.index for line in lines[:4]] == [0, 1000, 2000, 3000]
    for at, line in enumerate(lines):
        assert await shown(logs, cursor=line.cursor) == [str(one) for one in lines[at + 1 :]]
    page = await logs.page(LogRequest("run", cursor=lines[10].cursor), "backward", 3)
    assert [str(line) for line in page.lines] == [str(line) for line in lines[8:11]]
    found = await logs.search(LogRequest("run", grep="^7$"))
    assert [(hit.index, hit.attempt, hit.node_rank) for hit in found.hits] == [(3000, 1, 0)]


async def test_attempts_of_a_child_are_its_own(array: ArrayFolder, logs: LogService) -> None:
    array.child(0).write(0, "one\ntorn", at=100)
    array.child(0).write(0, "two\n", at=102, attempt=2)
    array.child(1).write(0, "between\n", at=101)
    assert await shown(logs) == [
        "0.0|one", "0.0|torn", "1.0|between", "--- 0: attempt 2 started ---", "0.0|two",
    ]  # fmt: skip
    assert await shown(logs, attempt=1) == ["0.0|one", "0.0|torn", "1.0|between"]
    assert await shown(logs, attempt=2) == ["0.0|two"]


async def test_children_that_come_late_and_end_without_a_newline(array: ArrayFolder, logs: LogService) -> None:
    array.ended = False
    client = Client(logs, partial=False)
    await asyncio.sleep(0.3)
    array.child(3).write(0, "hello\n")
    await client.sees("hello")
    array.child(3).write(0, "no end")
    array.child(3).activity(0, {"0": (12, 1.0)}, ended=True)
    array.child(8).write(1, "later\n")
    await client.sees("later")
    await client.sees("no end")  # although the array goes on
    assert [str(line) for line in client.lines[:1]] == ["3.0|hello"]
    array.child(3).write(0, "again\n", attempt=2)
    await client.sees("again")
    array.ended = True
    await client.end()
    assert sorted(map(str, client.lines)) == [
        "--- 3: attempt 2 started ---", "3.0|again", "3.0|hello", "3.0|no end", "8.1|later",
    ]  # fmt: skip


def test_records_of_very_many_nodes_leave_looks_for_the_logs(array: ArrayFolder) -> None:
    dormancy, readers = IdleTracker(), dict[Stream, SourceReader]()
    for index in range(600):
        stream = Stream(1, 0, 0).in_array(index)
        source = array.sources("run").open(stream)
        readers[stream] = SourceReader(source, START_POSITION, Ring(1000), next_read_at=0.0, grown=-100.0)
    nodes = dormancy.due_nodes(readers, 1.0)
    assert len(nodes) == 600
    for node in nodes:
        dormancy.on_activity(node, None, readers, 1.0)
    assert dormancy.due_nodes(readers, 1.9) == []
    assert dormancy.next_due() == 1.0 + 600 / RECORDS_A_SECOND


async def test_of_hundreds_of_children_those_that_have_ended_rest(
    array: ArrayFolder, logs: LogService, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 300
    for index in range(count):
        array.child(index).write(0, f"{index}\n", at=100 + index)
        array.child(index).activity(0, {"0": (4, 1.0)}, ended=index % 2 == 0)
    sources = array.sources("run")
    assert len(sources.streams()) == count
    assert len(sources.ended_streams()) == count // 2
    looked: list[Path] = []
    listed = RecordStreams.streams

    def listing(self: RecordStreams, attempt: int | None = None) -> list[Stream]:
        looked.append(self.records)
        return listed(self, attempt)

    monkeypatch.setattr(RecordStreams, "streams", listing)
    assert len(sources.streams()) == count
    assert len(looked) == count // 2
    assert await shown(logs, tail=2) == ["298.0|298", "299.0|299"]
    assert len(await shown(logs)) == count


def test_a_further_attempt_of_a_child_that_rested_is_found_in_its_turn(
    array: ArrayFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_module, "_RESTING", 3)
    for index in range(10):
        array.child(index).write(0, "x\n")
        array.child(index).activity(0, {"0": (2, 1.0)}, ended=True)
    (array.root / "tasks" / "10").mkdir()  # one that never began
    sources = array.sources("run")
    for _ in range(20):
        assert len(sources.streams()) == 10
    for index in (0, 9, 10):
        array.child(index).write(0, "again\n", attempt=2)
    array.child(11).write(0, "new\n")
    assert Stream(1, 0, 0).in_array(11) in sources.streams(), "a new folder is looked at at once"
    for _ in range(4):
        sources.streams()
    found = set(sources.streams())
    assert {Stream(2, 0, 0).in_array(index) for index in (0, 9, 10)} < found
    assert len(found) == 14


def test_a_child_that_is_gone_is_forgotten(array: ArrayFolder) -> None:
    for index in range(3):
        array.child(index).write(0, "x\n")
    sources = array.sources("run")
    assert len(sources.streams()) == 3
    shutil.rmtree(array.root / "tasks" / "1")
    assert {stream.child for stream in sources.streams()} == {0, 2}
