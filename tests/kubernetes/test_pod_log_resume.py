"""The log of a container over broken answers: each line exactly once, against a stand-in for the API server and the kubelet."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest
from pydantic import TypeAdapter

from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    ContainerEnded,
    ContainerStarted,
    Item,
    LogEnded,
    PodLog,
    PodLogCursor,
    PodLogGap,
    Portion,
)
from tests.kubernetes.kubelet import (
    BEGIN,
    SECOND,
    Container,
    Fault,
    Kubelet,
    log_of,
    quick,
    stamped,
)
from tests.kubernetes.pod_log_fixtures import all_of, data, rest

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")

CURSOR = TypeAdapter(PodLogCursor)

LINES = (
    b"plain\n",
    b"\n",
    b"\r 10%\r 20%\n",
    b"torn \xe2\x82\n",
    b"2026-01-01T00:00:00.000000000Z looks like a stamp\n",
    b"unable to retrieve container logs for containerd://x\n",
    b"x" * 70_000 + b"\n",
    b"\xff" * 200_000 + b"\n",
)


def written(chance: random.Random) -> Container:
    """Lines of two streams, whose stamps are not quite in order and sometimes the same."""
    container, at = Container(), BEGIN
    for _ in range(chance.randint(1, 400)):
        at += chance.choice([0, 0, 1, 1000, SECOND // 50, SECOND // 3])
        late = chance.choice([0, 0, 0, chance.randrange(SECOND // 10)])
        few = chance.random() < 0.05
        container.write(at - late, chance.choice(LINES if few else LINES[:4]))
    if chance.random() < 0.5:
        container.write(at, b"no newline")
    return container


@pytest.mark.parametrize("seed", range(40))
async def test_each_byte_comes_once_whatever_breaks_off(seed: int) -> None:
    chance = random.Random(seed)
    kubelet = Kubelet()
    kubelet.chance, kubelet.faulty = chance, True
    whole = written(chance)

    async def write() -> None:
        for stamp, line in whole.lines:
            kubelet.now.write(stamp, line)
            if chance.random() < 0.1:
                await asyncio.sleep(0.001)
        kubelet.now.code = 0

    writing = asyncio.create_task(write())
    items = await all_of(log_of(kubelet).follow())
    await writing
    assert data(items) == whole.text
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]


@pytest.mark.parametrize("seed", range(20))
async def test_a_reader_that_dies_goes_on_where_its_cursor_stands(seed: int) -> None:
    chance = random.Random(seed)
    kubelet = Kubelet()
    kubelet.chance, kubelet.containers = chance, [written(chance)]
    kubelet.now.code = 0
    cursor, items = PodLogCursor(), list[Item]()
    while not cursor.over:
        async for portion in log_of(kubelet).follow(cursor):
            items += portion.items
            cursor = CURSOR.validate_python(json.loads(CURSOR.dump_json(portion.cursor)))
            if chance.random() < 0.3:
                break
    assert data(items) == kubelet.now.text
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]
    assert await all_of(log_of(kubelet).follow(cursor)) == []


async def first(log: PodLog, cursor: PodLogCursor | None = None) -> tuple[list[Item], PodLogCursor]:
    """What is there now."""
    items, at = list[Item](), cursor or PodLogCursor()
    async for portion in log.read(cursor):
        items += portion.items
        at = portion.cursor
    return items, at


@pytest.mark.parametrize("later", [1, 5], ids=["at once", "later"])
async def test_what_was_rotated_away_is_a_gap(later: int) -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\nb\n")
    _, cursor = await first(log_of(kubelet))
    kubelet.now.write(BEGIN + 1, b"lost\n")
    kubelet.now.kept_from = 3
    for number in range(1000):
        kubelet.now.write(BEGIN + later * SECOND + number, b"%d\n" % number)
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow(cursor))
    assert data(items) == b"".join(b"%d\n" % number for number in range(1000))
    assert rest(items) == ["PodLogGap", "ContainerEnded", "LogEnded"]
    assert items[0] == PodLogGap("rotated")


async def test_a_rotated_file_that_still_has_the_last_line_has_no_gap() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\nb\n")
    kubelet.now.write(BEGIN + 1, b"c\n")
    _, cursor = await first(log_of(kubelet))
    kubelet.now.kept_from = 2
    kubelet.now.write(BEGIN + SECOND, b"d\n")
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow(cursor))
    assert (data(items), rest(items)) == (b"d\n", ["ContainerEnded", "LogEnded"])


async def test_a_log_that_was_rotated_to_nothing_ends_with_a_gap() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\n")
    _, cursor = await first(log_of(kubelet))
    kubelet.now.kept_from = 1
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow(cursor))
    assert items[0] == PodLogGap("rotated")
    assert rest(items) == ["PodLogGap", "ContainerEnded", "LogEnded"]


async def test_a_kubelet_that_dies_over_its_answers_loses_nothing() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\nb\nc\n")
    _, cursor = await first(log_of(kubelet))
    kubelet.now.write(BEGIN + 1, b"d\n")
    kubelet.now.code = 0
    kubelet.faults = [Fault(40), Fault(0), Fault(0, cut=True), Fault(40), Fault(70)]
    items = await all_of(log_of(kubelet).follow(cursor))
    assert (data(items), rest(items)) == (b"d\n", ["ContainerEnded", "LogEnded"])


async def test_a_clock_that_is_set_back_loses_nothing() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN + 3600 * SECOND, b"a\nb\n")
    kubelet.now.write(BEGIN, b"c\n")
    _, cursor = await first(log_of(kubelet))
    kubelet.now.write(BEGIN + SECOND, b"d\n")
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow(cursor))
    assert (data(items), rest(items)) == (b"d\n", ["ContainerEnded", "LogEnded"])


async def test_a_message_in_place_of_a_log_is_no_line() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\n")
    kubelet.now.code = 3
    gone = b"unable to retrieve container logs for containerd://x"
    kubelet.faults = [Fault(text=gone), Fault(text=stamped(BEGIN) + b"a\n" + gone)]
    items = await all_of(log_of(kubelet).follow())
    assert (data(items), rest(items)) == (
        b"a\n",
        ["ContainerStarted", "ContainerEnded", "LogEnded"],
    )
    assert items[-2] == ContainerEnded(0, 3)


async def test_each_restart_is_a_container_of_its_own() -> None:
    kubelet = Kubelet("OnFailure")
    kubelet.now.write(BEGIN, b"one\n")
    items, cursor = await first(log_of(kubelet))
    kubelet.now.write(BEGIN + 1, b"one ends\n")
    kubelet.now.code = 3
    kubelet.restart().write(BEGIN + 2, b"two\n")
    kubelet.now.code = 0
    items += await all_of(log_of(kubelet).follow(cursor))
    assert data(items) == b"one\none ends\ntwo\n"
    assert rest(items) == [
        "ContainerStarted",
        "ContainerEnded",
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]
    assert [one for one in items if isinstance(one, ContainerEnded)] == [
        ContainerEnded(0, 3),
        ContainerEnded(1, 0),
    ]


async def test_a_restart_of_which_the_api_server_does_not_know_yet() -> None:
    kubelet = Kubelet("OnFailure")
    kubelet.now.write(BEGIN, b"one\n")
    kubelet.now.code = 3
    kubelet.restart(seen=False).write(BEGIN + 2, b"two\n")
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow())
    assert data(items) == b"one\ntwo\n"
    assert rest(items) == [
        "ContainerStarted",
        "ContainerEnded",
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]


async def test_containers_that_nobody_can_read_any_more_are_a_gap() -> None:
    kubelet = Kubelet("OnFailure")
    _, cursor = await first(log_of(kubelet))
    for _ in range(3):
        kubelet.now.code = 3
        kubelet.restart()
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow(cursor))
    assert items[0] == PodLogGap("restarted")
    assert items[2:4] == [PodLogGap("restarted"), ContainerStarted(2)]
    assert rest(items)[-3:] == ["ContainerStarted", "ContainerEnded", "LogEnded"]


async def test_a_previous_container_whose_log_was_removed_is_a_gap() -> None:
    kubelet = Kubelet("OnFailure")
    kubelet.now.code, kubelet.now.removed = 3, True
    kubelet.restart().write(BEGIN, b"two\n")
    kubelet.now.code = 0
    items = await all_of(log_of(kubelet).follow())
    assert items[:4] == [
        ContainerStarted(0),
        PodLogGap("deleted"),
        ContainerEnded(0, 3),
        ContainerStarted(1),
    ]
    assert data(items) == b"two\n"


async def test_a_previous_container_that_was_read_whole_before_its_log_was_removed() -> None:
    kubelet = Kubelet("OnFailure")
    kubelet.now.write(BEGIN, b"one" * 100 + b"\n")
    kubelet.now.code = 3
    items = list[Item]()
    async for portion in log_of(kubelet).follow():
        items += portion.items
        if data(items) and len(kubelet.containers) == 1:
            kubelet.now.removed = True
            kubelet.restart().write(BEGIN, b"two\n")
            kubelet.now.code = 0
    assert data(items) == b"one" * 100 + b"\ntwo\n"
    assert rest(items) == [
        "ContainerStarted",
        "ContainerEnded",
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_pod_that_is_gone_is_over(replaced: bool) -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\n")
    log = log_of(kubelet)
    following = asyncio.create_task(all_of(log.follow()))
    while not kubelet.opened:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    kubelet.faults = [Fault(0, cut=True)]
    kubelet.gone = not replaced
    kubelet.now.code = 0
    if replaced:
        kubelet.uid = "another"
        kubelet.containers = [Container([(BEGIN, b"not mine\n")], 0)]
    items = await asyncio.wait_for(following, 20)
    assert data(items) == b"a\n"
    assert items[-1] == LogEnded("replaced" if replaced else "deleted")


async def test_an_answer_that_is_cut_when_the_pod_goes_is_a_gap() -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"a\nb\n")
    kubelet.faults = [Fault(40, cut=True)]
    items = list[Item]()
    portions: AsyncIterator[Portion] = log_of(kubelet).follow()
    async for portion in portions:
        items += portion.items
        kubelet.gone = bool(data(items))
    assert data(items) == b"a\n"
    assert rest(items) == ["ContainerStarted", "PodLogGap", "ContainerEnded", "LogEnded"]
