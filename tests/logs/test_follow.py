from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from hyperpod_jlab.logs.block import LogBatch, LogLine
from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.hub import Hub
from hyperpod_jlab.model.errors import UnreachableError
from hyperpod_jlab.services.logs import LogRequest, LogService
from tests.logs.writing import Ledger, RunFolder


class Client:
    """Follows in a task of its own, and lets a test wait for what it must see."""

    def __init__(self, logs: LogService, **wanted: object) -> None:
        # Who leaves lines out on purpose keeps no book of them.
        self._book = not wanted
        self.lines: list[LogLine] = []
        self.batches: list[LogBatch] = []
        self.ledger = Ledger()
        self._changed = asyncio.Event()
        self._request = LogRequest("run", follow=True, **wanted)  # type: ignore[arg-type]
        self.task = asyncio.create_task(self._follow(logs))

    async def _follow(self, logs: LogService) -> None:
        async with aclosing(logs.lines(self._request)) as batches:
            async for batch in batches:
                self.batches.append(batch)
                self.lines += batch
                if self._book:
                    self.ledger.take_all(batch)
                self._changed.set()

    @property
    def texts(self) -> list[str]:
        return [line.line for line in self.lines]

    async def until(self, seen: Callable[[Client], bool]) -> None:
        async with asyncio.timeout(20):
            while not seen(self):
                self._changed.clear()
                waiting = asyncio.create_task(self._changed.wait())
                await asyncio.wait([waiting, self.task], return_when="FIRST_COMPLETED")
                waiting.cancel()
                if self.task.done():
                    self.task.result()
                    assert seen(self), self.texts[-5:]

    async def sees(self, text: str) -> None:
        await self.until(lambda client: text in client.texts)

    async def end(self) -> None:
        async with asyncio.timeout(20):
            await self.task


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - looks into what says nothing by itself
            await asyncio.sleep(0.02)


@pytest.fixture
async def follow(run: RunFolder, logs: LogService) -> AsyncIterator[Callable[..., Client]]:
    run.ended = False
    clients: list[Client] = []

    def start(**wanted: object) -> Client:
        clients.append(Client(logs, **wanted))
        return clients[-1]

    yield start
    for client in clients:
        client.task.cancel()
    await asyncio.gather(*(client.task for client in clients), return_exceptions=True)


Start = Callable[..., Client]


async def test_a_log_that_appears_late_and_a_run_that_ends(run: RunFolder, follow: Start) -> None:
    client = follow()
    await asyncio.sleep(0.3)
    run.write(0, "first\n", at=1)
    await client.sees("first")
    run.write(1, "another rank\n", at=2)
    await client.sees("another rank")
    run.write(0, "last words")
    run.ended = True
    await client.end()
    assert client.texts == ["first", "another rank", "last words"]


async def test_what_is_there_comes_in_order_before_what_comes(
    run: RunFolder, follow: Start
) -> None:
    for number in range(50):
        run.write(number % 2, f"{number}\n", at=100 + number)
    client = follow(tail=5)
    await client.sees("49")
    run.write(0, "live\n")
    await client.sees("live")
    assert client.texts == ["45", "46", "47", "48", "49", "live"]
    assert client.lines[-1].time == pytest.approx(time.time(), abs=5)


async def test_attempts_follow_each_other(run: RunFolder, follow: Start) -> None:
    client = follow()
    run.write(0, "one\nunfinished", at=1)
    await client.sees("one")
    await asyncio.sleep(0.25)
    run.write(0, "two\n", attempt=2)
    await client.sees("two")
    run.ended = True
    await client.end()
    assert client.texts == ["one", "unfinished", "attempt 2 started", "two"]
    assert [line.attempt for line in client.lines] == [1, 1, 2, 2]


async def test_one_attempt_ends_where_the_next_begins(run: RunFolder, follow: Start) -> None:
    client = follow(attempt=1)
    run.write(0, "one\n", at=1)
    await client.sees("one")
    run.write(0, "two\n", attempt=2)
    await client.end()
    assert client.texts == ["one"]


async def test_unfinished_lines_are_shown_when_quiet_and_go_on(
    run: RunFolder, follow: Start
) -> None:
    client = follow()
    run.write(0, b"whole\nEpoch 1 ... " + "ä".encode()[:1])
    await client.sees("Epoch 1 ... ")
    run.write(0, "ä".encode()[1:] + b" done\nnext")
    await client.sees("ä done")
    await client.sees("next")
    run.write(0, "\nlast\n")
    await client.sees("last")
    flags = [(line.line, line.continued, line.partial) for line in client.lines]
    assert flags == [
        ("whole", False, False),
        ("Epoch 1 ... ", False, True),
        ("ä done", True, False),
        ("next", False, True),
        ("last", False, False),
    ]


async def test_progress_bars_of_64_ranks_are_thinned(run: RunFolder, follow: Start) -> None:
    run.per_node = 64
    program = (
        "import os, sys, time\n"
        "folder = sys.argv[1]\n"
        "files = [os.open(f'{folder}/node-0.rank-{r}.log', os.O_WRONLY | os.O_CREAT | os.O_APPEND) for r in range(64)]\n"
        "begun = time.monotonic()\n"
        "for step in range(250):\n"
        "    for file in files:\n"
        "        os.write(file, b'\\r%3d%%|' % (step % 100) + '█'.encode() * 10)\n"
        "    time.sleep(max(0, begun + step / 100 - time.monotonic()))\n"
        "for file in files:\n"
        "    os.write(file, b'\\nend\\n')\n"
    )
    client = follow()
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-c", program, str(run.path(0).parent)
    )
    assert await writer.wait() == 0
    await client.until(lambda client: client.texts.count("end") == 64)
    for rank in range(64):
        bars = [line for line in client.lines if line.rank == rank and line.partial]
        assert 1 <= len(bars) <= 5
        assert all("\r" not in bar.line and "%|" in bar.line for bar in bars)
        assert all(bar.redraws for bar in bars[1:])
        assert bytes(client.ledger.taken[run.stream(rank)]).count(b"\r") == 250
    # Nothing of it waits long: each rank was shown at least every second and a half.
    assert len([line for line in client.lines if line.partial]) >= 64


async def test_truncation_and_replacement_are_marked(run: RunFolder, follow: Start) -> None:
    client = follow()
    run.write(0, "old 1\nold 2\n")
    await client.sees("old 2")
    run.path(0).write_text("cut 1\ncut 2\ncut 3\n")
    await client.sees("cut 3")
    fresh = run.path(0).with_suffix(".new")
    fresh.write_text("new 1\n")
    fresh.replace(run.path(0))
    await client.sees("new 1")
    marks = [
        (line.mark, client.lines[at + 1].line) for at, line in enumerate(client.lines) if line.mark
    ]
    assert marks == [("truncated", "cut 1"), ("replaced", "new 1")]
    assert client.texts.count("cut 2") == 1


async def test_a_slow_reader_holds_up_nobody_and_little_memory(
    run: RunFolder, logs: LogService
) -> None:
    run.ended = False
    block = b"".join(b"line %09d of a fast writer\n" % number for number in range(40_000))
    begin = b"begin\n"
    run.write(0, begin)
    fast = logs.lines(LogRequest("run", follow=True))
    slow = logs.lines(LogRequest("run", follow=True))
    ledger = Ledger()
    await anext(fast)
    ledger.take_all(await anext(slow))
    taken = len(begin)
    async with asyncio.timeout(30):
        for number in range(16):
            run.write(0, block)
            while taken < len(begin) + (number + 1) * len(block):
                taken += sum(each.size for each in (await anext(fast)).blocks)
    feed = next(iter(logs.hub._feeds.values()))
    assert sum(reader.ring.size for reader in feed.readers.values()) <= 5 << 20
    # The slow one comes back after 18 MB and still gets each byte once.
    run.ended = True
    async for batch in slow:
        for each in batch.blocks:
            data = each.chunk.data[each.begin : each.end]
            ledger._book(each.origin.stream, each.chunk.offset + each.begin, data)
    await fast.aclose()
    assert bytes(ledger.taken[run.stream(0)]) == begin + 16 * block


async def test_one_reader_for_many_and_none_for_nobody(
    run: RunFolder, logs: LogService, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    original = BundleFile.read

    def counting(self: BundleFile, place: object, limit: int) -> object:
        nonlocal looks
        looks += 1
        return original(self, place, limit)  # type: ignore[arg-type]

    run.write(0, "ready\n")
    clients = [follow() for _ in range(10)]
    for client in clients:
        await client.sees("ready")
    await asyncio.sleep(0.3)
    monkeypatch.setattr(BundleFile, "read", counting)
    begun = time.monotonic()
    for number in range(20):
        run.write(0, f"{number}\n")
        await asyncio.sleep(0.05)
    for client in clients:
        await client.sees("19")
    # One reader looks at most every 50 ms; ten of them would have looked ten times as often.
    assert looks <= 2 * (time.monotonic() - begun) / 0.05
    for client in clients:
        client.task.cancel()
    await asyncio.gather(*(client.task for client in clients), return_exceptions=True)
    assert not logs.hub._feeds
    await asyncio.sleep(0.2)
    looks = 0
    await asyncio.sleep(0.5)
    assert looks == 0


async def test_inotify_is_only_an_extra(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    run.ended = False
    with_it, without_it = LogService(run, Hub()), LogService(run, Hub())
    run.write(0, "there\n")
    clients = [Client(with_it)]
    await clients[0].sees("there")
    monkeypatch.setitem(sys.modules, "asyncinotify", None)
    clients.append(Client(without_it))
    await clients[1].sees("there")
    for number in range(5):
        run.write(0, f"line {number}\n")
        for client in clients:
            await client.sees(f"line {number}")
    run.ended = True
    for client in clients:
        await client.end()
        assert client.texts == ["there", *[f"line {number}" for number in range(5)]]
    await with_it.close()
    await without_it.close()


async def test_of_many_streams_only_those_that_grow_are_looked_at(
    run: RunFolder, logs: LogService, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.per_node = 100
    monkeypatch.setattr("hyperpod_jlab.logs.dormancy._QUIET", 0.3)
    for rank in range(100):
        run.write(rank, f"rank {rank} is up\n", at=10)

    def report() -> None:
        sizes = {str(rank): (run.path(rank).stat().st_size, 10.0) for rank in range(100)}
        run.activity(0, sizes)

    report()
    client = follow()
    await client.until(lambda client: len(client.texts) == 100)
    await eventually(lambda: bool(logs.hub._feeds))
    feed = next(iter(logs.hub._feeds.values()))
    await eventually(lambda: sum(reader.asleep for reader in feed.readers.values()) == 100)
    before = logs.hub.reads
    await asyncio.sleep(1)
    assert logs.hub.reads - before <= 10
    run.write(42, "awake\n")
    report()
    await client.sees("awake")
    assert sum(reader.asleep for reader in feed.readers.values()) >= 95


async def test_grep_shows_whole_lines_only(run: RunFolder, follow: Start) -> None:
    client = follow(grep="a.*z$")
    run.write(0, "abc\na")
    await asyncio.sleep(0.8)
    run.write(0, "xyz\nnothing\na to z\n")
    await client.sees("a to z")
    assert client.texts == ["axyz", "a to z"]


async def test_an_unreadable_log_is_a_mark_and_heals(run: RunFolder, follow: Start) -> None:
    path = run.path(0)
    path.symlink_to(path)
    client = follow()
    await client.until(lambda client: any(line.mark == "unreadable" for line in client.lines))
    path.unlink()
    path.write_text("well again\n")
    await client.sees("well again")
    assert [line.mark for line in client.lines].count("unreadable") <= 2


async def test_raw_follows_exact_bytes(run: RunFolder, logs: LogService) -> None:
    run.ended = False
    expected = bytes(range(256)) * 50
    taken = bytearray()

    async def take() -> None:
        async for part in logs.raw("run", rank=1, follow=True):
            taken.extend(part)

    task = asyncio.create_task(take())
    for at in range(0, len(expected), 1000):
        run.write(1, expected[at : at + 1000])
        await asyncio.sleep(0.02)
    run.ended = True
    await asyncio.wait_for(task, 20)
    assert bytes(taken) == expected


async def test_an_unreachable_cluster_does_not_end_a_follow(
    run: RunFolder, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 1

    async def is_ended(run_id: str) -> bool:
        nonlocal failures
        if failures:
            failures -= 1
            raise UnreachableError("no route to host")
        return run.ended

    monkeypatch.setattr(run, "is_ended", is_ended)
    client = follow()
    run.write(0, "goes on\n")
    await client.sees("goes on")
    run.ended = True
    await client.end()


async def test_a_fault_in_the_feed_reaches_who_follows(
    run: RunFolder, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("hyperpod_jlab.logs.reader.Reader.look", broken)
    client = follow()
    run.write(0, "never seen\n")
    with pytest.raises(RuntimeError, match="a fault of ours"):
        await client.end()


async def test_nothing_blocks_the_event_loop(
    run: RunFolder, logs: LogService, tmp_path: Path
) -> None:
    """While 100 MB of history stream by, the loop is never held for long."""
    run.write(
        0, b"".join(b"line %09d of many many lines\n" % number for number in range(100_000)) * 25
    )
    longest = 0.0
    size = 0

    async def heartbeat() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.001)
            longest = max(longest, time.monotonic() - before)

    task = asyncio.create_task(heartbeat())
    async for batch in logs.lines(LogRequest("run")):
        size += sum(block.size for block in batch.blocks)
    task.cancel()
    assert size == run.path(0).stat().st_size
    assert longest < 0.5
