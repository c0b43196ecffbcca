from __future__ import annotations

import asyncio
import sys
import time

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.logs.cursor import Cursor
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.client import Start
from tests.logs.writing import RunFolder


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


async def test_what_is_there_comes_in_order_before_what_comes(run: RunFolder, follow: Start) -> None:
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


async def test_an_attempts_torn_end_comes_before_the_next_attempt_in_a_pipe_too(run: RunFolder, follow: Start) -> None:
    client = follow(partial=False)
    run.write(0, "one\n", at=1)
    await client.sees("one")
    run.write(0, b"torn \xc3")
    run.write(0, "two\nopen", attempt=2)
    run.write(1, "late\n", attempt=2)
    await client.sees("late")
    await client.sees("two")
    run.ended = True
    await client.end()
    assert client.texts[:3] == ["one", "torn \ufffd", "attempt 2 started"]
    assert sorted(client.texts[3:]) == ["late", "open", "two"]
    assert client.texts[-1] == "open"


async def test_much_of_an_earlier_attempt_comes_first(run: RunFolder, follow: Start) -> None:
    client = follow(partial=False)
    run.write(0, "begin\n")
    await client.sees("begin")
    for rank in (0, 1):
        run.write(rank, b"x" * 100 + b"\n" + b"much\n" * 700_000)
    run.write(0, "two\n", attempt=2)
    run.ended = True
    await client.end()
    attempts = [line.attempt for line in client.lines]
    assert attempts == sorted(attempts)
    assert len(attempts) == 1 + 2 * 700_001 + 2


async def test_attempts_long_over_are_left_off(
    run: RunFolder, logs: LogService, follow: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperpod_jlab.logs.follow.SETTLED_S", 0.2)
    client = follow()
    for attempt in range(1, 6):
        run.write(0, f"attempt {attempt}\n", attempt=attempt)
        await client.sees(f"attempt {attempt}")
        await asyncio.sleep(0.3)
    feed = next(iter(logs.hub._feeds.values()))
    assert {stream.attempt for stream in feed.readers} == {4, 5}
    assert Cursor.parse(client.lines[-1].cursor).first_attempt >= 3
    run.ended = True
    await client.end()
    shown = [line.line for line in client.lines if not line.mark]
    assert shown == [f"attempt {attempt}" for attempt in range(1, 6)]
    # Paging back still goes through all of them.
    page = await logs.page(LogRequest("run", cursor=client.lines[-1].cursor), "backward", 100)
    assert [line.line for line in page.lines if not line.mark] == shown
    page = await logs.page(LogRequest("run", cursor=page.after), "backward", 2)
    assert [line.line for line in page.lines if not line.mark] == shown[-2:]
    found = await logs.search(LogRequest("run", grep="attempt", cursor=page.after), "backward")
    assert [hit.line for hit in found.hits] == shown[::-1]


async def test_one_attempt_ends_where_the_next_begins(run: RunFolder, follow: Start) -> None:
    client = follow(attempt=1)
    run.write(0, "one\n", at=1)
    await client.sees("one")
    run.write(0, "two\n", attempt=2)
    await client.end()
    assert client.texts == ["one"]


async def test_unfinished_lines_are_shown_when_quiet_and_go_on(run: RunFolder, follow: Start) -> None:
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
    writer = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", program, str(run.path(0).parent))
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
    marks = [(line.mark, client.lines[at + 1].line) for at, line in enumerate(client.lines) if line.mark]
    assert marks == [("truncated", "cut 1"), ("replaced", "new 1")]
    assert client.texts.count("cut 2") == 1


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


async def test_whether_it_has_ended_is_not_asked_while_lines_come(run: RunFolder, follow: Start) -> None:
    client = follow()
    run.write(0, "begins\n")
    await client.sees("begins")
    asked = run.asked
    for number in range(40):
        run.write(0, f"line {number}\n")
        await asyncio.sleep(0.05)
    await client.sees("line 39")
    assert run.asked <= asked + 1  # as it begins to follow
    run.ended = True
    await client.end()
