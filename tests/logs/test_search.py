from __future__ import annotations

import asyncio
import random
import re
import tempfile
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.logs.pattern import Matcher, Pattern, is_single_line_pattern, parse_pattern
from hyperpod_jlab.logs.service import LogRequest, LogService, SearchHit
from tests.logs.writing import RunFolder


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        (r"\d+ x", True), ("a.*b", True), ("^a|b$", True), ("[a-z]+", True), (r"\bword\b", True), ("(?:a|b)c", True),
        (r"\s", False), ("[^a]", False), (r"\n", False), (r"\W", False), ("(?!a)b", False), ("(?s:.)", False),
        ("a*+b", False), (r"[\d]", False), (r"a\Z", False), ("a\tb", False),
    ],
)  # fmt: skip
def test_what_stays_in_its_line(text: str, stays: bool) -> None:
    assert is_single_line_pattern(text) is stays


bits = st.sampled_from(
    [*"ab\\dws.*+?()[]|^$-{}12, é", r"\d", r"\w", r"\b", r"\.", "(?:", "[ab]", "a+", "b?", "ab", "{e}", "{s}"]
)
lines = st.lists(st.text("ab1 .-éA", max_size=8), max_size=12)


@settings(max_examples=300, deadline=None)
@given(st.lists(bits, max_size=6).map("".join), lines, st.booleans())
def test_finding_is_matching_line_by_line(text: str, given_lines: list[str], ignore_case: bool) -> None:
    try:
        pattern = parse_pattern(text, ignore_case=ignore_case)
    except InvalidInputError:
        return
    regex = re.compile(text, re.IGNORECASE if ignore_case else 0)
    data = "".join(line + "\n" for line in given_lines).encode()
    expected = [line for line in given_lines if regex.search(line)]
    assert asyncio.run(lines_found(pattern, data)) == expected
    assert asyncio.run(Matcher(pattern).filter(given_lines)) == [
        index for index, line in enumerate(given_lines) if regex.search(line)
    ]


async def lines_found(pattern: Pattern, data: bytes) -> list[str]:
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(data)
        found, reached = await Matcher(pattern).scan(file.fileno(), 0, len(data), 1000)
    assert reached == len(data)
    return [data[one.begin : one.end].decode() for one in found]


BOMBS = [
    "a{4294967294}",
    "[ab]{10000000}",
    "(?:a|b){3000000,}",
    "(?:(?:a{100}){100}){1000}",
    "(?x)(?:a #)\n){1000}{1000}",
]
"""The package `regex` would take gigabytes for these."""


@pytest.mark.parametrize("text", ["(", "*", "[", "a" * 2001, "(?P<x", "\\", *BOMBS])
def test_bad_patterns(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_pattern(text)
    assert caught.value.code == "invalid_pattern"


@pytest.mark.parametrize(
    "text", ["a{0,65535}", "[{30000}]", r"\{30000}", r"(?x) \d{4} - \d{2} # year", r"(?:[0-9a-f]{8}-){400}"]
)
def test_long_repetitions_are_patterns(text: str) -> None:
    assert parse_pattern(text).text == text


@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(a?){50}a{50}b", "(?=.*(?=.*(?=.*z)))"])
async def test_a_pattern_that_explodes_freezes_nobody(text: str) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    wanted, hostile = "a" * 50 + "bz", "a" * 1_000_000 + "!"
    if text.endswith("$"):
        wanted = "aaa"
    async with Matcher(parse_pattern(text), timeout=0.6) as matcher:
        assert await matcher.filter([wanted, "c"]) == [0]
        begun = time.monotonic()
        with pytest.raises(InvalidInputError) as caught:
            await matcher.filter([hostile])
        assert caught.value.code == "slow_pattern"
        assert time.monotonic() - begun < 10
        # The next request starts anew.
        assert await matcher.filter(["c", wanted]) == [1]
    ticking.cancel()
    assert ticks >= 20


async def search(logs: LogService, grep: str, **wanted: object) -> list[SearchHit]:
    direction = wanted.pop("direction", "forward")
    limit = wanted.pop("limit", 200)
    hits: list[SearchHit] = []
    cursor = wanted.pop("cursor", None)
    while True:
        request = LogRequest("run", grep=grep, cursor=cursor, **wanted)  # type: ignore[arg-type]
        found = await logs.search(request, direction, limit)  # type: ignore[arg-type]
        assert len(found.hits) <= limit  # type: ignore[operator]
        hits += found.hits
        cursor = found.next
        if cursor is None:
            return hits


@pytest.fixture
async def searched(run: RunFolder) -> list[str]:
    """Four ranks' merged lines, of which every seventh is looked for."""
    rng = random.Random(7)
    moment = 1000.0
    expected = []
    for number in range(700):
        moment += rng.choice([0.0, 0.25, 1.0])
        hit = number % 7 == 0
        text = f"needle {number}" if hit else f"hay {number} é"
        run.write(rng.randrange(4), text + "\n", at=moment)
        if hit:
            expected.append(text)
    return expected


@pytest.mark.parametrize("limit", [3, 200])
async def test_hits_come_in_the_order_of_the_lines_both_ways(
    run: RunFolder, logs: LogService, searched: list[str], limit: int
) -> None:
    everything = [line.line async for batch in logs.lines(LogRequest("run")) for line in batch]
    expected = [line for line in everything if line.startswith("needle")]
    assert sorted(expected) == sorted(searched)
    forward = await search(logs, "needle", limit=limit)
    assert [hit.line for hit in forward] == expected
    assert [(hit.match, hit.line[slice(*hit.match)]) for hit in forward[:1]] == [((0, 6), "needle")]
    backward = await search(logs, r"needle \d+", limit=limit, direction="backward")
    assert [hit.line for hit in backward] == expected[::-1]
    for hit in (forward[0], forward[30], forward[-1]):
        page = await logs.page(LogRequest("run", cursor=hit.cursor), "forward", 5)
        assert page.lines[0].line == hit.line
        assert [line.line for line in page.lines] == everything[everything.index(hit.line) :][:5]
        after = await search(logs, "needle", cursor=hit.cursor)
        assert [other.line for other in after] == expected[expected.index(hit.line) :]


async def test_search_respects_what_is_asked_for(run: RunFolder, logs: LogService, searched: list[str]) -> None:
    of_rank_2 = await search(logs, "needle", ranks=(2,))
    assert {hit.rank for hit in of_rank_2} == {2}
    assert 0 < len(of_rank_2) < len(searched)
    assert len(await search(logs, "NEEDLE", ignore_case=True)) == len(searched)
    assert await search(logs, "NEEDLE") == []
    assert len(await search(logs, "(?i)NEEDLE")) == len(searched)
    with pytest.raises(InvalidInputError):
        await logs.search(LogRequest("run"))


async def test_search_in_awkward_logs(run: RunFolder, logs: LogService) -> None:
    run.write(
        0, b"\xff\xfe torn \xc3\n\x00nul\x00 needle\n\n" + b"x" * 100_000 + b"needle" + b"y" * 50_000 + b"\nneedle"
    )
    hits = await search(logs, "needle")
    assert [len(hit.line) for hit in hits] == [12, 16384, 6]
    assert all(hit.line[slice(*hit.match)] == "needle" for hit in hits)
    page = await logs.page(LogRequest("run", cursor=hits[1].cursor), "forward", 1)
    assert page.lines[0].line == hits[1].line
    assert [hit.line for hit in await search(logs, "torn .$")] == ["\ufffd\ufffd torn \ufffd"]
    assert [hit.line for hit in await search(logs, "^$")] == [""]
    assert len(await search(logs, "")) == 5


async def test_searching_nothing(logs: LogService) -> None:
    assert await search(logs, "x") == []
