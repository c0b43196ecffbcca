"""Whoever breaks off anywhere and comes back with the cursor of the last line it took sees each byte exactly once."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.lines import MAX_LINE_BYTES
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.writing import Ledger, RunFolder

PRODUCER = Path(__file__).with_name("producer.py")

data = st.lists(
    st.sampled_from([b"\n", b"one\n", b"t", b"\xe2\x82\xac", b"\xf0\x9f", b"\x9a\x80", b"\r", b"\r\n", b"5%\r6%", b"\0", b"LONG"]),
    min_size=1,
    max_size=5,
).map(b"".join)  # fmt: skip
rank = st.integers(0, 2)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("write"), rank, data),
        st.tuples(st.just("write"), rank, data),
        st.tuples(st.just("truncate"), rank, data),
        st.tuples(st.just("replace"), rank, data),
        st.tuples(st.just("attempt"), rank, data),
        st.tuples(st.just("stop early"), st.integers(0, 6), st.just(b"")),
    ),
    max_size=20,
)


@settings(max_examples=80, deadline=None)
@given(steps)
def test_resuming_after_anything(done: list[tuple[str, int, bytes]]) -> None:
    asyncio.run(_resume_after_each(done))


async def _resume_after_each(done: list[tuple[str, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolder(Path(folder))
        logs = LogService(run, Hub(notifications=False))
        ledger = Ledger()
        attempt = 1
        for serial, (what, number, raw) in enumerate(done):
            moment = 100.0 + serial
            stop = None
            # Bytes that are the same before the same place in two lives of a file cannot be told apart.
            opening = b"life %d\n" % serial
            long = b"".join(b"%d-%d " % (serial, word) for word in range(MAX_LINE_BYTES // 5))
            content = raw.replace(b"LONG", long)
            path = run.path(number % 3, attempt)
            if what == "write":
                run.write(number, content, at=moment, attempt=attempt)
            elif what == "truncate" and path.exists():
                path.write_bytes(opening + content)
            elif what == "replace" and path.exists():
                path.with_suffix(".new").write_bytes(opening + content)
                path.with_suffix(".new").replace(path)
            elif what == "attempt":
                attempt += 1
                run.write(number, content, at=moment, attempt=attempt)
            elif what == "stop early":
                stop = number
            await _take(logs, ledger, stop)
        await _take(logs, ledger, None)
        for number in range(attempt):
            for each in range(3):
                path = run.path(each, number + 1)
                if path.exists():
                    stream = run.stream(each, number + 1)
                    taken = bytes(ledger.taken.get(stream, b""))
                    assert _same(taken, path.read_bytes()), (stream, len(taken))
        await logs.close()


def _same(taken: bytes, written: bytes) -> bool:
    # The ledger cannot tell a newline from a carriage return and a newline where a line's end was all there was to take.
    return taken == written or taken.replace(b"\r\n", b"\n") == written.replace(b"\r\n", b"\n")


async def _take(logs: LogService, ledger: Ledger, stop: int | None) -> None:
    async with aclosing(logs.lines(LogRequest("run", cursor=ledger.cursor, collapse=False))) as batches:
        async for batch in batches:
            if stop is None:
                ledger.take_all(batch)
                continue
            for line in batch:
                if stop == 0:
                    return
                stop -= 1
                ledger.take(line)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_following_a_real_writer_with_breaks(run: RunFolder, seed: int) -> None:
    """A process writes, truncates, replaces and opens attempts, while a client follows, breaks off and resumes."""
    run.per_node, run.ended = 8, False
    logs = LogService(run, Hub(notifications=seed != 1))
    ledger = Ledger()
    rng = random.Random(seed)
    producer = await asyncio.create_subprocess_exec(
        sys.executable, "-S", str(PRODUCER), str(run.root), str(seed), "8", "700", "3"
    )
    finishing = asyncio.create_task(producer.wait())
    finishing.add_done_callback(lambda _: setattr(run, "ended", True))
    resumed = 0
    while not run.ended or resumed < 5:
        resumed += 1
        patience = rng.randrange(1, 400)
        async with aclosing(
            logs.lines(LogRequest("run", cursor=ledger.cursor, follow=True, collapse=False))
        ) as batches:
            async for batch in batches:
                if rng.random() < 0.5:
                    ledger.take_all(batch)
                    patience -= len(batch)
                    if patience <= 0:
                        break
                    continue
                for line in batch:
                    ledger.take(line)
                    patience -= 1
                    if patience <= 0:
                        break
                if patience <= 0:
                    break
    # What is left, once the writer has ended.
    async for batch in logs.lines(LogRequest("run", cursor=ledger.cursor, follow=True, collapse=False)):
        ledger.take_all(batch)
    assert finishing.result() == 0
    assert resumed > 5
    for attempt in (1, 2, 3):
        for rank_number in range(8):
            path = run.path(rank_number, attempt)
            taken = bytes(ledger.taken.get(run.stream(rank_number, attempt), b""))
            assert _same(taken, path.read_bytes() if path.exists() else b""), (attempt, rank_number)
    assert {kind for _, kind in ledger.marks} >= {"attempt"}
    await logs.close()
