from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.client import Client, Start, eventually
from tests.logs.writing import Ledger, RunFolder


async def test_a_slow_reader_holds_up_nobody_and_little_memory(run: RunFolder, logs: LogService) -> None:
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
    monkeypatch.setattr("hyperpod_jlab.logs.reader._QUIET_S", 0.3)
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


async def test_a_fault_in_the_feed_reaches_who_follows(
    run: RunFolder, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("hyperpod_jlab.logs.reader.SourceReader.read_source", broken)
    client = follow()
    run.write(0, "never seen\n")
    with pytest.raises(RuntimeError, match="a fault of ours"):
        await client.end()


async def test_nothing_blocks_the_event_loop(run: RunFolder, logs: LogService, tmp_path: Path) -> None:
    """While 100 MB of history stream by, the loop is never held for long."""
    run.write(0, b"".join(b"line %09d of many many lines\n" % number for number in range(100_000)) * 25)
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
