"""One look at a time at each thing, kept with its age: what holds whatever is looked at."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.core import cache as looks
from hyperpod_jlab.core.cache import RowCache
from hyperpod_jlab.core.errors import DeniedError, InternalError, NotFoundError, UnreachableError


class Source:
    """A list that is told in parts, each when the test says so."""

    def __init__(self) -> None:
        self.parts: asyncio.Queue[str | Exception | None] = asyncio.Queue()
        self.looks = 0

    async def read(self, look) -> None:
        self.looks += 1
        while (part := await self.parts.get()) is not None:
            if isinstance(part, Exception):
                raise part
            await look.put({part: part})

    def tell(self, *parts: str | Exception | None) -> None:
        for part in parts:
            self.parts.put_nowait(part)


@pytest.fixture
def source(monkeypatch):
    monkeypatch.setattr(looks, "GRACE_S", 0.05)
    return Source()


async def shown(known, source, **given):
    found = await known.get("x", source.read, **given)
    return found.rows, found.loading, found.problem and found.problem.code


async def test_the_first_rows_are_shown_while_the_rest_is_on_its_way(source):
    known = RowCache()
    source.tell("a")
    assert await shown(known, source) == (["a"], True, None)
    source.tell("b", None)
    assert await shown(known, source) == (["a", "b"], False, None)
    assert source.looks == 1


async def test_rows_that_come_late_are_shown_at_once(source, monkeypatch):
    monkeypatch.setattr(looks, "GRACE_S", 1.0)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    loop.call_later(1.2, source.tell, "a")
    assert await shown(RowCache(), source) == (["a"], True, None)
    assert loop.time() - begin < 2.0


async def test_a_second_look_hides_nothing_of_the_first_before_it_is_whole(source):
    known = RowCache()
    source.tell("a", "b", None)
    await shown(known, source)
    source.tell("c")
    assert await shown(known, source, refresh=True) == (["a", "b"], True, None)
    source.tell(None)
    assert await shown(known, source) == (["c"], False, None)


async def test_a_failure_is_kept_for_a_while_and_then_tried_again(source, monkeypatch):
    known = RowCache()
    source.tell(UnreachableError("no"))
    for _ in range(2):
        with pytest.raises(UnreachableError):
            await shown(known, source)
    assert source.looks == 1
    monkeypatch.setattr(looks, "RETRY_S", 0.0)
    source.tell("a", None)
    assert await shown(known, source) == (["a"], False, None)


async def test_what_was_seen_stays_when_a_look_fails_but_not_when_it_is_gone(source):
    known = RowCache()
    source.tell("a", None)
    await shown(known, source)
    source.tell("b", DeniedError("no more"))
    assert await shown(known, source, refresh=True) == (["a"], False, "denied")
    source.tell(NotFoundError("gone"))
    with pytest.raises(NotFoundError):
        await shown(known, source, refresh=True)


async def test_a_fault_of_ours_is_no_silence(source, caplog):
    known = RowCache()
    source.tell(RuntimeError("a fault"))
    with pytest.raises(InternalError):
        await shown(known, source)


async def test_one_who_goes_away_takes_the_look_from_nobody_else(source):
    known = RowCache()
    first = asyncio.ensure_future(shown(known, source))
    second = asyncio.ensure_future(shown(known, source))
    await asyncio.sleep(0.01)
    first.cancel()
    source.tell("a", None)
    assert await second == (["a"], False, None)
    assert source.looks == 1


async def test_what_was_changed_is_looked_at_again_also_when_a_look_was_under_way(source):
    known = RowCache()
    source.tell("a", None)
    await shown(known, source)
    known.forget("x")
    source.tell("b")
    assert await shown(known, source) == (["a"], True, None)
    known.forget("x")
    source.tell(None)
    assert await shown(known, source) == (["b"], False, None)
    source.tell("c", None)
    assert await shown(known, source) == (["c"], False, None)
    assert source.looks == 3


async def test_a_look_of_many_calls_is_fresh_for_longer(source, monkeypatch):
    monkeypatch.setattr(looks, "FRESH_S", 0.05)
    known = RowCache()
    source.tell(*map(str, range(100)), None)
    await shown(known, source)
    await asyncio.sleep(0.1)
    await shown(known, source)
    assert source.looks == 1
    await asyncio.sleep(0.5)
    source.tell(None)
    await shown(known, source)
    assert source.looks == 2


async def test_no_more_is_kept_than_some_and_the_youngest_stay(source):
    known = RowCache()
    for number in range(100):
        source.tell("a", None)
        await known.get(number, source.read)
    assert known.last(99) == ["a"]
    assert known.last(0) == []


async def test_closing_breaks_off_what_goes_on(source):
    known = RowCache()
    source.tell("a")
    await shown(known, source)
    await known.close()
    assert await shown(known, source, refresh=False) == (["a"], False, "internal")
