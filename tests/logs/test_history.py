from __future__ import annotations

import random

import pytest

from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError
from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.lines import LogLine
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.writing import Ledger, RunFolder


async def read(logs: LogService, **wanted: object) -> list[LogLine]:
    request = LogRequest("run", **wanted)  # type: ignore[arg-type]
    return [line async for batch in logs.lines(request) for line in batch]


async def texts(logs: LogService, **wanted: object) -> list[str]:
    return [line.line for line in await read(logs, **wanted)]


def two_ranks(run: RunFolder, count: int = 10) -> None:
    for number in range(count):
        for rank in range(2):
            run.write(rank, f"r{rank} {number}\n", at=1000 + 10 * number + rank)


async def test_streams_are_merged_by_time(run: RunFolder, logs: LogService) -> None:
    two_ranks(run)
    lines = await read(logs)
    assert [line.line for line in lines] == [f"r{rank} {number}" for number in range(10) for rank in range(2)]
    assert [line.time for line in lines] == [1000 + 10 * number + rank for number in range(10) for rank in range(2)]
    assert {(line.attempt, line.node, line.node_rank) for line in lines} == {(1, "node-0", 0)}
    assert [line.rank for line in lines[:2]] == [0, 1]


async def test_any_line_s_cursor_goes_on_right_there(run: RunFolder, logs: LogService) -> None:
    two_ranks(run)
    lines = await read(logs)
    expected = [line.line for line in lines]
    for at, line in enumerate(lines):
        assert await texts(logs, cursor=line.cursor) == expected[at + 1 :]


async def test_names_of_nodes_and_global_ranks(run: RunFolder, logs: LogService) -> None:
    run.write(5, "five\n", at=1)
    run.node_name(2, "ip-10-0-0-2")
    line = (await read(logs))[0]
    assert (line.node, line.node_rank, line.rank) == ("ip-10-0-0-2", 2, 5)


async def test_filters(run: RunFolder, logs: LogService) -> None:
    for rank in range(4):
        run.write(rank, f"rank {rank}\n", at=10)
        run.write(rank, f"again {rank}\n", at=20, attempt=2)
    run.write(None, '##hyperpod {"node": "a"}\nsetup says hello\n', at=5)
    assert await texts(logs, ranks=(1, 3), attempt=1) == ["rank 1", "rank 3"]
    assert await texts(logs, node=1, attempt=1) == ["rank 2", "rank 3"]
    assert await texts(logs, attempt=1) == ["setup says hello", *[f"rank {rank}" for rank in range(4)]]
    assert "setup says hello" not in await texts(logs, node_logs=False)
    assert await texts(logs, ranks=(), node_logs=True) == ["setup says hello"]
    everything = await read(logs)
    assert [line.mark for line in everything if line.mark] == ["attempt"]
    assert [line.line for line in everything][5:] == ["attempt 2 started", *[f"again {rank}" for rank in range(4)]]


async def test_tail_and_since(run: RunFolder, logs: LogService) -> None:
    two_ranks(run)
    assert await texts(logs, tail=3) == ["r1 8", "r0 9", "r1 9"]
    assert await texts(logs, tail=0) == []
    assert len(await texts(logs, tail=1000)) == 20
    assert await texts(logs, since=1081) == ["r1 8", "r0 9", "r1 9"]
    assert await texts(logs, since=1080.5) == ["r1 8", "r0 9", "r1 9"]
    assert await texts(logs, since=5000) == []
    assert len(await texts(logs, since=0)) == 20


@pytest.mark.parametrize("count", [5_000, 29_999, 30_000, 40_000])
async def test_a_long_tail(run: RunFolder, logs: LogService, count: int) -> None:
    lines = [f"{number} {'x' * (number % 400)}" for number in range(30_000)]
    run.write(0, "\n".join(lines) + "\n", at=1)
    assert await texts(logs, tail=count) == lines[-count:]


async def test_the_launcher_s_own_lines_are_not_counted(run: RunFolder, logs: LogService) -> None:
    run.write(None, "##hyperpod {}\nsetup\n", at=1)
    run.write(None, "##hyperpod {}\nagain\n", at=2, attempt=2)
    run.write(0, "one\n", at=3, attempt=2)
    assert await texts(logs, tail=3) == ["setup", "attempt 2 started", "again", "one"]


async def test_tail_does_not_open_streams_that_are_known_to_be_older(
    run: RunFolder, logs: LogService, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.per_node = 64
    for rank in range(64):
        run.write(rank, f"rank {rank}\n", at=1000 + rank)
    run.activity(0, {str(rank): (8, 1000.0 + rank) for rank in range(64)})
    opened: set[str] = set()
    original = BundleFile._open

    def spy(self: BundleFile) -> int:
        opened.add(self._path.name)
        return original(self)

    monkeypatch.setattr(BundleFile, "_open", spy)
    assert await texts(logs, tail=2) == ["rank 62", "rank 63"]
    assert len(opened) <= 5


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pages_backward_and_forward_show_everything_once(run: RunFolder, logs: LogService, limit: int) -> None:
    rng = random.Random(limit)
    moment = 1000.0
    for number in range(120):
        moment += rng.choice([0, 0, 1.5])
        run.write(rng.randrange(3), f"{number}\n" if rng.random() < 0.9 else "\n", at=moment)
    everything = await texts(logs)
    pages = [await logs.page(LogRequest("run"), "backward", limit)]
    assert pages[0].at_end
    while not pages[0].at_start:
        pages.insert(0, await logs.page(LogRequest("run", cursor=pages[0].before), "backward", limit))
        assert not pages[0].at_end
    assert [line.line for page in pages for line in page.lines] == everything
    forward = [await logs.page(LogRequest("run"), "forward", limit)]
    while not forward[-1].at_end:
        assert len(forward[-1].lines) == limit
        forward.append(await logs.page(LogRequest("run", cursor=forward[-1].after), "forward", limit))
    assert [line.line for page in forward for line in page.lines] == everything
    # A page's end is where the rest goes on.
    assert await texts(logs, cursor=pages[0].after) == everything[len(pages[0].lines) :]


async def test_without_an_index_the_files_come_whole(run: RunFolder, logs: LogService) -> None:
    run.write(0, "a\nb\n")
    run.write(1, "c\nd\n")
    lines = await read(logs)
    assert sorted(line.line for line in lines) == ["a", "b", "c", "d"]
    assert {line.time for line in lines} == {None}
    assert len(await texts(logs, tail=3)) == 3
    assert len(await texts(logs, since=1.0)) == 4


async def test_awkward_bytes(run: RunFolder, logs: LogService) -> None:
    run.write(0, b'\n\n\x00\n{"a": 1}\n7\n\xff\xc3\n10%\r20%\rdone\n' + b"x" * (4 << 20) + b"\nlast", at=1)
    lines = await read(logs)
    shown = [line.line for line in lines]
    assert shown[:7] == ["", "", "\x00", '{"a": 1}', "7", "\ufffd\ufffd", "done"]
    long = lines[7:-1]
    assert len(long) == 256
    assert "".join(line.line for line in long) == "x" * (4 << 20)
    assert [line.continued for line in long] == [False] + [True] * 255
    assert [line.partial for line in long] == [True] * 255 + [False]
    assert (shown[-1], lines[-1].partial) == ("last", True)
    # Every cursor within the long line works.
    for at in (7, 100, 200, 262):
        assert await texts(logs, cursor=lines[at].cursor) == shown[at + 1 :]
    assert await texts(logs, tail=1) == ["last"]
    assert len(await texts(logs, tail=2)) == 257
    ledger = Ledger()
    async for batch in logs.lines(LogRequest("run", collapse=False)):
        ledger.take_all(batch)
    assert bytes(ledger.taken[run.stream(0)]) == run.path(0).read_bytes()


async def test_raw_is_the_file(run: RunFolder, logs: LogService) -> None:
    content = random.Random(1).randbytes(3 << 20)
    run.write(1, content)
    run.write(None, b"##hyperpod {}\n")
    assert b"".join([part async for part in logs.raw("run", rank=1)]) == content
    assert b"".join([part async for part in logs.raw("run", node=0)]) == b"##hyperpod {}\n"
    with pytest.raises(NotFoundError):
        [part async for part in logs.raw("run")]
    with pytest.raises(NotFoundError):
        [part async for part in logs.raw("run", rank=99)]


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("grep", {"grep": "("}),
        ("grep", {"grep": "x" * 3000}),
        ("cursor", {"cursor": "abc"}),
        ("tail", {"tail": -1}),
        ("attempt", {"attempt": 0}),
        ("rank", {"ranks": (-1,)}),
    ],
)
async def test_senseless_requests_name_their_field(logs: LogService, field: str, wanted: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await texts(logs, **wanted)
    assert caught.value.detail == {"field": field}


async def test_no_logs_yet(logs: LogService) -> None:
    assert await texts(logs) == []
    assert await texts(logs, tail=5) == []
    page = await logs.page(LogRequest("run"))
    assert (list(page.lines), page.at_start, page.at_end) == ([], True, True)


async def test_grep_filters_lines(run: RunFolder, logs: LogService) -> None:
    two_ranks(run, 100)
    assert await texts(logs, grep="r1 9[0-2]") == ["r1 90", "r1 91", "r1 92"]
    assert await texts(logs, grep="R1 42") == []
    assert await texts(logs, grep="R1 42", ignore_case=True) == ["r1 42"]
    assert await texts(logs, grep=r"^r\d 7$") == ["r0 7", "r1 7"]
    assert await texts(logs, grep="r0", tail=2) == ["r0 98", "r0 99"]
    assert await texts(logs, grep="none of it", tail=2) == []
    page = await logs.page(LogRequest("run", grep="r0 [0-9]*5$"), "backward", 3)
    assert [line.line for line in page.lines] == ["r0 75", "r0 85", "r0 95"]
    page = await logs.page(LogRequest("run", grep="r0 [0-9]*5$", cursor=page.before), "backward", 3)
    assert [line.line for line in page.lines] == ["r0 45", "r0 55", "r0 65"]
