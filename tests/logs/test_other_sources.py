"""A log that is no file in a bundle: what the protocol of sources promises must be enough for everything but searching."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import UnsupportedError
from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.service import LogRequest, LogService
from hyperpod_jlab.logs.source import Activity, Chunk, LogSource, Mark, Origin, SourceSet
from hyperpod_jlab.logs.stream import CHECK_BYTES, Position, Stream, build_check
from tests.logs.writing import RunFolder


class Spool:
    """What was received of a pod's log, from which the kubelet has rotated some away."""

    def __init__(self) -> None:
        self.data = b""
        self.times: list[tuple[int, float]] = []
        self.lost: list[int] = []

    def receive(self, data: bytes, time: float) -> None:
        self.times.append((len(self.data), time))
        self.data += data


class PodSource:
    """A source whose gaps are marks."""

    def __init__(self, stream: Stream, spool: Spool) -> None:
        self._stream = stream
        self._spool = spool

    @property
    def stream(self) -> Stream:
        return self._stream

    def _chunk(self, begin: int, end: int, mark: Mark | None = None) -> Chunk:
        data = self._spool.data
        return Chunk(data[begin:end], begin, data[max(0, begin - CHECK_BYTES) : begin], 7, mark=mark)

    def read(self, place: Position, limit: int) -> Chunk:
        end = min([place.offset + limit, *(gap for gap in self._spool.lost if gap > place.offset)])
        gap = Mark("gap", "some lines were rotated away") if place.offset in self._spool.lost else None
        chunk = self._chunk(place.offset, end, gap)
        return chunk if chunk.data else self._chunk(place.offset, place.offset)

    def read_back(self, place: Position, limit: int) -> Chunk:
        return self._chunk(max(0, place.offset - limit), place.offset)

    def open_fd(self) -> int | None:
        return None

    def size(self) -> int:
        return len(self._spool.data)

    def known_end(self) -> Position:
        return self.end()

    def end(self) -> Position:
        size = self.size()
        return Position(size, build_check(7, self._spool.data[-CHECK_BYTES:])) if size else Position()

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        held = [time for offset, time in self._spool.times if offset <= begin][-1:]
        later = [(offset, time) for offset, time in self._spool.times if begin < offset < end]
        return [(begin, held[0]), *later] if held else later

    def offset_at(self, time: float) -> int | None:
        return next((offset for offset, seen in self._spool.times if seen >= time), 1 << 62)

    def changed(self) -> float | None:
        return self._spool.times[-1][1] if self._spool.times else None

    def close(self) -> None:
        pass


class Pods:
    """Two pods."""

    key = "pods of run"
    processes_per_node = 1

    def __init__(self) -> None:
        self.spools = {Stream(1, node, 0): Spool() for node in range(2)}

    def streams(self, attempt: int | None = None) -> list[Stream]:
        return list(self.spools)

    def attempts(self) -> list[int]:
        return [1]

    def ended_streams(self) -> frozenset[Stream]:
        return frozenset()

    def open(self, stream: Stream) -> LogSource:
        return PodSource(stream, self.spools[stream])

    def folder(self, attempt: int | None) -> Path | None:
        return None

    def origin(self, stream: Stream) -> Origin:
        return Origin(stream, f"pod-{stream.node_rank}", stream.rank(1))

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        return None


class OtherLogs:
    """The pods' logs as those of the run, which tells when it has ended."""

    def __init__(self, run: RunFolder, pods: SourceSet) -> None:
        self._pods = pods
        self.is_ended = run.is_ended

    def sources(self, run_id: str) -> SourceSet:
        return self._pods


async def test_pods(run: RunFolder) -> None:
    pods = Pods()
    logs = LogService(OtherLogs(run, pods), Hub(notifications=False))
    first, second = pods.spools.values()
    for number in range(10):
        first.receive(f"a{number}\n".encode(), 100 + number)
        second.receive(f"b{number}\n".encode(), 100.5 + number)
    expected = [f"{pod}{number}" for number in range(10) for pod in "ab"]

    async def texts(request: LogRequest) -> list[str]:
        return [line.line async for batch in logs.lines(request) for line in batch]

    lines = [line async for batch in logs.lines(LogRequest("run")) for line in batch]
    assert [line.line for line in lines] == expected
    assert (lines[1].node, lines[1].rank, lines[1].time) == ("pod-1", 1, 100.5)
    assert await texts(LogRequest("run", cursor=lines[7].cursor)) == expected[8:]
    assert await texts(LogRequest("run", tail=3)) == expected[-3:]
    assert await texts(LogRequest("run", since=108.0)) == expected[-4:]
    page = await logs.page(LogRequest("run", cursor=lines[9].cursor), "backward", 4)
    assert [line.line for line in page.lines] == expected[6:10]
    with pytest.raises(UnsupportedError):
        await logs.search(LogRequest("run", grep="a"))

    run.ended = False
    seen: list[str] = []
    marks: list[str | None] = []

    async def follow() -> None:
        async for batch in logs.lines(LogRequest("run", tail=1, follow=True)):
            seen.extend(line.line for line in batch)
            marks.extend(line.mark for line in batch)

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.3)
    first.receive(b"live\n", 200)
    await asyncio.sleep(0.3)
    first.lost.append(len(first.data))
    first.receive(b"after a gap\n", 300)
    await asyncio.sleep(0.3)
    run.ended = True
    await asyncio.wait_for(task, 20)
    assert seen == ["b9", "live", "some lines were rotated away", "after a gap"]
    assert marks == [None, None, "gap", None]
    await logs.close()
