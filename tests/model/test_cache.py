"""Cached queries: how often is loaded, and what is told while nothing newer can be had."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.core.cache import Cache, CachedQuery, CachedValue
from hyperpod_jlab.core.errors import UnreachableError

DOWN = UnreachableError("no answer")


class Source:
    """Loads that are counted: each gives its number, or fails, or waits at a gate."""

    def __init__(self) -> None:
        self.now = 100.0
        self.count = 0
        self.error: Exception | None = None
        self.gate: asyncio.Event | None = None

    def clock(self) -> float:
        return self.now

    async def __call__(self) -> int:
        self.count += 1
        number = self.count
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return number


@pytest.fixture
def source() -> Source:
    """What is asked."""
    return Source()


async def started(source: Source, count: int = 1) -> None:
    """Wait until so many loads have begun."""
    async with asyncio.timeout(5):
        while source.count < count:  # noqa: ASYNC110 - they begin at their turn
            await asyncio.sleep(0)


async def test_an_answer_is_given_for_its_time(source):
    cache: Cache[str, int] = Cache(10, clock=source.clock)
    assert await cache.get("a", source) == 1
    source.now += 9.9
    assert await cache.get("a", source) == 1
    assert await cache.get("b", source) == 2
    source.now += 0.1
    assert await cache.get("a", source) == 3


async def test_the_time_counts_from_the_end_of_a_load_and_the_age_from_its_beginning(source):
    cache: Cache[str, int] = Cache(10, clock=source.clock)
    source.gate = asyncio.Event()
    asked = asyncio.create_task(cache.get("a", source))
    await started(source)
    source.now += 30
    source.gate.set()
    assert await asked == 1
    assert await cache.get("a", source) == 1
    assert cache.last("a") == CachedValue(1, 30)
    assert await cache.get("a", source, max_age=30) == 1
    assert await cache.get("a", source, max_age=29) == 2


async def test_how_long_an_answer_is_kept_may_depend_on_it(source):
    cache: Cache[str, int] = Cache(lambda number: 10 if number > 1 else 0, clock=source.clock)
    assert [await cache.get("a", source) for _ in range(4)] == [1, 2, 2, 2]


async def test_none_is_an_answer_too():
    async def nothing() -> None:
        asked.append(1)

    asked: list[int] = []
    cache: Cache[str, None] = Cache(10)
    for _ in range(3):
        await cache.get("a", nothing)
    assert len(asked) == 1


async def test_all_who_ask_at_once_share_a_load(source):
    cache: Cache[str, int] = Cache(clock=source.clock)
    source.gate = asyncio.Event()
    asked = [asyncio.create_task(cache.get("a", source)) for _ in range(50)]
    await started(source)
    source.gate.set()
    assert await asyncio.gather(*asked) == [1] * 50
    assert source.count == 1


async def test_all_who_ask_at_once_share_an_error_and_the_next_one_loads(source):
    cache: Cache[str, int] = Cache(10, clock=source.clock)
    source.error, source.gate = DOWN, asyncio.Event()
    asked = [asyncio.create_task(cache.get("a", source)) for _ in range(5)]
    await started(source)
    source.gate.set()
    assert await asyncio.gather(*asked, return_exceptions=True) == [DOWN] * 5
    source.error = None
    assert await cache.get("a", source) == 2


async def test_a_caller_who_is_cancelled_cancels_nobody_else(source):
    cache: Cache[str, int] = Cache(clock=source.clock)
    source.gate = asyncio.Event()
    first, second = (asyncio.create_task(cache.get("a", source)) for _ in range(2))
    await started(source)
    first.cancel()
    await asyncio.wait([first])
    source.gate.set()
    assert await second == 1


async def test_after_a_change_a_load_from_before_serves_only_who_asked_then(source):
    cache: Cache[str, int] = Cache(1000, clock=source.clock)
    source.gate = asyncio.Event()
    before = asyncio.create_task(cache.get("a", source))
    await started(source)
    cache.forget("a")
    after = asyncio.create_task(cache.get("a", source))
    await started(source, 2)
    source.gate.set()
    assert [await before, await after] == [1, 2]
    assert await cache.get("a", source) == 2


async def test_an_old_load_that_ends_last_is_not_kept(source):
    cache: Cache[str, int] = Cache(1000, clock=source.clock)
    source.gate = slow = asyncio.Event()
    before = asyncio.create_task(cache.get("a", source))
    await started(source)
    cache.forget("a")
    source.gate = None
    assert await cache.get("a", source) == 2
    slow.set()
    assert await before == 1
    assert await cache.get("a", source) == 2


async def test_the_last_answer_is_told_with_its_age_and_the_error(source):
    cache: Cache[str, int] = Cache(10, clock=source.clock)
    source.error = DOWN
    with pytest.raises(UnreachableError):
        await cache.latest("a", source)
    source.error = None
    assert await cache.latest("a", source) == CachedValue(2, 0)
    source.now += 60
    source.error = DOWN
    assert await cache.latest("a", source) == CachedValue(2, 60, DOWN)
    cache.forget("a")
    assert (await cache.latest("a", source)).value == 2
    source.error = None
    assert await cache.latest("a", source) == CachedValue(5, 0)


async def test_after_an_error_the_source_is_left_alone_longer_and_longer(source):
    cache: Cache[str, int] = Cache(error_ttl=lambda failures: 5 * failures, clock=source.clock)
    source.error = DOWN
    asked = []
    for second in range(40):
        before = source.count
        with pytest.raises(UnreachableError):
            await cache.get("a", source)
        if source.count > before:
            asked.append(second)
        source.now += 1
    assert asked == [0, 5, 15, 30]
    with pytest.raises(UnreachableError):
        await cache.get("a", source, refresh=True)
    assert source.count == 5


async def test_a_fault_of_the_program_is_raised_and_not_kept(source):
    cache: Cache[str, int] = Cache(10, error_ttl=lambda _: 100, clock=source.clock)
    source.error = ZeroDivisionError()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await cache.get("a", source)
    assert source.count == 2


async def test_those_asked_for_last_are_kept(source):
    cache: Cache[str, int] = Cache(1000, limit=2, clock=source.clock)
    for key in ("a", "b", "a", "c"):
        await cache.get(key, source)
    assert [cache.last(key) for key in "abc"] == [CachedValue(1, 0), None, CachedValue(3, 0)]


async def test_an_answer_that_was_found_otherwise_is_kept(source):
    cache: Cache[str, int] = Cache(10, clock=source.clock)
    cache.put("a", 7)
    assert cache.is_fresh("a")
    assert await cache.get("a", source) == 7
    source.now += 10
    assert not cache.is_fresh("a")
    assert await cache.get("a", source) == 1


async def test_closing_ends_what_goes_on(source):
    cache: Cache[str, int] = Cache(clock=source.clock)
    source.gate = asyncio.Event()
    asked = asyncio.create_task(cache.get("a", source))
    await started(source)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert cache.running("a") is None


async def test_nothing_is_loaded_while_nobody_asks(source):
    query = CachedQuery(source)
    assert [await query.get(60), query.last] == [1, 1]
    await asyncio.sleep(0.05)
    assert source.count == 1
    query.forget()
    assert [query.last, await query.get(60), query.last] == [1, 2, 2]


async def test_before_the_first_load_there_is_no_answer(source):
    assert CachedQuery(source).last is None
