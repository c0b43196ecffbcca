"""Logs of nodes: which there are, their last lines, going on from a cursor, following, and what is missing."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.features.node_logs.service import NodeLogs, lines_of
from hyperpod_jlab.features.node_logs.spool import Spools
from hyperpod_jlab.logs.service import LogRequest
from testbed.aws.example import example_account
from testbed.aws.telemetry import cluster_log_group
from tests.aws.conftest import REGION

BEGUN = 1_780_000_000_000
"""Milliseconds of the first line."""


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


class Node:
    """A node of the example's cluster, and its logs."""

    def __init__(self, endpoint, number=1) -> None:
        cluster = endpoint.account.clusters[REGION][0]
        self._telemetry = endpoint.account.telemetry
        self.cluster = cluster
        self.node = cluster.nodes[number]
        self.name = self.node.instance_id
        self.group = cluster_log_group(cluster.name, cluster.arn)
        self.lifecycle = f"LifecycleConfig/{self.node.group}/{self.name}"
        self.health = f"SagemakerHealthMonitoringAgent/{self.node.group}/{self.name}"

    def write(self, stream, *lines):
        """Lines as (milliseconds behind the first, text)."""
        timed = [(BEGUN + after, text) for after, text in lines]
        self._telemetry.write(REGION, self.group, stream, timed)

    def count(self, stream, begin, end, step=10):
        self.write(stream, *((n * step, f"line {n}") for n in range(begin, end)))


@pytest.fixture
def node(example):
    return Node(example)


@pytest.fixture
async def logs():
    """The service of one process."""
    spools = Spools()
    yield NodeLogs(Aws(REGION), spools)
    await spools.close()


@pytest.fixture
def read():
    """Reads as a process does that has not read anything before."""

    async def read(*streams, cluster="ml-cluster", **wanted):
        spools = Spools()
        try:
            batches = NodeLogs(Aws(REGION), spools).lines(cluster, streams, LogRequest("", **wanted))
            return [line async for batch in batches for line in lines_of(batch)]
        finally:
            await spools.close()

    return read


def texts(lines):
    return [line.line for line in lines]


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not there():  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.01)


async def test_the_last_lines_of_two_logs_are_merged_by_time(node, read):
    node.write(node.lifecycle, (0, "a"), (20, "c"), (40, "e"))
    node.write(node.health, (10, "b"), (30, "d"))
    both = (node.lifecycle, node.health)
    found = await read(*both)
    assert [(line.log.kind, line.line) for line in found] == [
        *(("lifecycle", "a"), ("health", "b"), ("lifecycle", "c")),
        *(("health", "d"), ("lifecycle", "e")),
    ]
    assert [line.time for line in found] == [(BEGUN + at) / 1000 for at in (0, 10, 20, 30, 40)]
    assert texts(await read(*both, tail=2)) == ["d", "e"]
    assert await read(*both, tail=0) == []
    assert texts(await read(*both, since=(BEGUN + 20) / 1000)) == ["c", "d", "e"]
    # Also of the log of which the last two lines show nothing the rest is not given again.
    last = (await read(*both, tail=1))[0]
    assert texts(await read(*both, cursor=last.cursor)) == []
    node.write(node.health, (50, "f"))
    assert texts(await read(*both, cursor=last.cursor)) == ["f"]


@pytest.mark.parametrize("looked_at", [10_000, 13])
@pytest.mark.parametrize("step", [0, 1, 10], ids=["one millisecond", "few", "many"])
async def test_each_line_once_from_any_cursor(example, node, read, looked_at, step):
    """With all lines in one millisecond only their number tells them apart."""
    example.account.telemetry.looked_at = looked_at
    node.count(node.lifecycle, 0, 30, step)
    for tail in (1, 7, 29, 31):
        found = await read(node.lifecycle, tail=tail)
        assert texts(found) == [f"line {n}" for n in range(30)][-tail:]
    for line in await read(node.lifecycle):
        rest = await read(node.lifecycle, cursor=line.cursor)
        assert texts([line, *rest]) == [f"line {n}" for n in range(int(line.line[5:]), 30)]


@pytest.mark.parametrize("step", [0, 1], ids=["one millisecond", "many"])
async def test_what_is_new_is_appended_once(example, node, logs, step):
    """As many lines of the last millisecond as were read are left out, also where AWS gives them on several pages."""
    example.account.telemetry.looked_at = 7
    for count in range(0, 40, 5):
        node.count(node.lifecycle, count, count + 5, step)
        batches = logs.lines("ml-cluster", (node.lifecycle,), LogRequest(""))
        found = [line.line async for batch in batches for line in batch]
        assert found == [f"line {n}" for n in range(count + 5)]


async def test_thousands_of_lines_come_page_by_page(example, node, read):
    node.count(node.lifecycle, 0, 25_000, 1)
    node.count(node.health, 0, 500, 50)
    lines = await read(node.lifecycle, node.health, since=BEGUN / 1000)
    assert len(lines) == 25_500
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    whole = [int(line.line[5:]) for line in lines if line.log.kind == "lifecycle"]
    assert whole == list(range(25_000))
    given = [call.given for call in example.calls if call.action == "logs:GetLogEvents"]
    assert len(given) == 4 + 2  # the pages of each log, and that there are no more


async def test_of_a_very_long_log_the_newest_pages_are_read(example, node, logs, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MAX_PAGES", 2)
    node.count(node.lifecycle, 0, 35_000, 1)
    batches = logs.lines("ml-cluster", (node.lifecycle,), LogRequest(""))
    found = [(line.mark, line.line) async for batch in batches for line in batch]
    assert found[0] == ("gap", "earlier lines are not shown")
    assert [line for _, line in found[1:]] == [f"line {n}" for n in range(15_000, 35_000)]
    assert sum(call.action == "logs:GetLogEvents" for call in example.calls) == 3


async def test_a_cursor_that_fits_no_more_is_refused(node, read):
    """CloudWatch has got a line late, with an earlier time: what was given is not given again."""
    node.count(node.lifecycle, 0, 30)
    last = (await read(node.lifecycle))[-1]
    node.write(node.lifecycle, (5, "late"))
    with pytest.raises(InvalidInputError) as caught:
        await read(node.lifecycle, cursor=last.cursor)
    assert caught.value.code == "invalid_cursor"


async def test_so_is_one_that_fits_a_log_no_more_of_which_it_shows_no_line(node, read):
    node.write(node.lifecycle, (0, "a"), (40, "b"))
    node.write(node.health, (10, "c"), (20, "d"))
    last = (await read(node.lifecycle, node.health, tail=1))[-1]
    node.write(node.health, (15, "late"))
    with pytest.raises(InvalidInputError) as caught:
        await read(node.lifecycle, node.health, cursor=last.cursor)
    assert caught.value.code == "invalid_cursor"


async def test_following_gives_each_new_line_once(example, node, logs, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MIN_INTERVAL_S", 0.02)
    node.write(node.lifecycle, (0, "old"))
    found = list[str]()
    times = set[float]()

    async def follow():
        request = LogRequest("", tail=0, follow=True)
        async for batch in logs.lines("ml-cluster", (node.lifecycle, node.health), request):
            found.extend(line.line for line in batch if line.mark is None)
            times.update(line.time for line in batch if line.mark is None)

    def asked():
        return sum(call.action == "logs:GetLogEvents" for call in example.calls)

    def have(count: int) -> Callable[[], bool]:
        return lambda: len(found) >= count

    task = asyncio.create_task(follow())
    try:
        await until(lambda: asked() >= 4)  # it is at the end of both logs
        for number in range(5):
            node.write(node.lifecycle, (10, f"same millisecond {number}"))
            await until(have(number + 1))
        node.write(node.health, (5, "a log that was not there before"))
        await until(have(6))
        example.faults.broken["logs:GetLogEvents"] = 4  # as often as a call is tried
        node.write(node.lifecycle, (20, "after a failure"))
        await until(have(7))
        await asyncio.sleep(0.3)
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert found == [
        *(f"same millisecond {number}" for number in range(5)),
        *("a log that was not there before", "after a failure"),
    ]
    assert times == {(BEGUN + at) / 1000 for at in (5, 10, 20)}  # CloudWatch's, not ours
    await asyncio.sleep(0.1)
    before = asked()
    await asyncio.sleep(0.3)
    assert asked() == before  # nobody looks


async def test_all_who_follow_share_the_calls(example, node, logs, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MIN_INTERVAL_S", 3600)
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.service.MIN_INTERVAL_S", 3600)
    node.write(node.lifecycle, (0, "old"))
    seen = [list[str]() for _ in range(5)]

    async def follow(found):
        request = LogRequest("", follow=True)
        async for batch in logs.lines("ml-cluster", (node.lifecycle,), request):
            found.extend(line.line for line in batch)

    def polls():
        return sum(task.get_name() == "hyperpod-node-log" for task in asyncio.all_tasks())

    tasks = [asyncio.create_task(follow(found)) for found in seen]
    try:
        await until(lambda: all(found == ["old"] for found in seen))
        assert sum(call.action == "logs:GetLogEvents" for call in example.calls) == 2
        assert polls() == 1
        for task in tasks[1:]:
            task.cancel()
        await asyncio.wait(tasks[1:])
        assert polls() == 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await asyncio.sleep(0)
    assert polls() == 0


async def test_only_so_many_logs_are_kept(example, node, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MAX_LOGS", 2)
    spools = Spools()
    logs = NodeLogs(Aws(REGION), spools)
    names = [f"DeepHealthCheckResults/{number}" for number in range(5)]

    async def shown(name):
        batches = logs.lines("ml-cluster", (name,), LogRequest(""))
        return [line.line async for batch in batches for line in batch]

    for name in names:
        node.write(name, (0, name))
    for name in (*names, *names):
        assert await shown(name) == [name]
    folder = spools.opened(node.group, names[:1]).spools[0].path.parent
    assert len(list(folder.glob("*.log"))) == 3
    await spools.close()
    assert not folder.exists()


async def test_following_ends_when_aws_fails_for_long(example, node, logs, monkeypatch):
    for name in ("MIN_INTERVAL_S", "MAX_INTERVAL_S", "ERROR_INTERVAL_S"):
        monkeypatch.setattr(f"hyperpod_jlab.features.node_logs.spool.{name}", 0.01)
    monkeypatch.setattr("hyperpod_jlab.aws.session._ATTEMPTS", 1)
    node.write(node.lifecycle, (0, "old"))
    batches = logs.lines("ml-cluster", (node.lifecycle,), LogRequest("", follow=True))
    assert texts(await anext(batches)) == ["old"]
    example.faults.broken["logs:GetLogEvents"] = 100
    marks = list[str | None]()

    async def follow():
        async for batch in batches:
            marks.extend(line.mark for line in batch)

    with pytest.raises(UnreachableError):
        await follow()
    assert example.faults.broken["logs:GetLogEvents"] == 89
    assert marks == ["unreadable"]


@pytest.mark.parametrize("name", ["{id}", "hyperpod-{id}", "ip-10-0-0-2", "{host}"])
async def test_a_node_by_each_of_its_names(node, logs, name):
    host = "ip-10-0-0-2.us-west-2.compute.internal"
    found = await logs.streams_of("ml-cluster", name.format(id=node.name, host=host))
    assert found == (node.lifecycle, node.health)


async def test_a_node_that_was_replaced_is_found_by_its_logs(node, logs):
    node.count(node.lifecycle, 0, 3)
    node.cluster.nodes.remove(node.node)
    assert await logs.streams_of("ml-cluster", node.name) == (node.lifecycle,)
    assert await logs.streams_of("ml-cluster", node.name, "health") == ()
    for unknown in ("i-00000000000000000", "ip-10-0-0-99"):
        with pytest.raises(NotFoundError, match=f"has no node {unknown}"):
            await logs.streams_of("ml-cluster", unknown)


async def test_what_is_not_there(example, node, read):
    with pytest.raises(NotFoundError) as caught:
        await read(node.lifecycle)
    assert caught.value.code == "no_log_group"
    assert node.group in caught.value.message
    node.count(node.health, 0, 1)
    assert texts(await read(node.lifecycle, node.health)) == ["line 0"]
    with pytest.raises(NotFoundError, match="these logs do not exist") as caught:
        await read(node.lifecycle)
    assert caught.value.code == "no_log"
    with pytest.raises(NotFoundError, match="no-such-cluster"):
        await read(node.lifecycle, cluster="no-such-cluster")


@pytest.mark.parametrize("cursor", ["", "x", "{}", "W10", "eyJhIjogMX0", "ä", "1~1.00000000~1.0_n-5-"])
async def test_cursors_that_are_none_of_these_logs(node, read, cursor):
    node.count(node.lifecycle, 0, 1)
    with pytest.raises(InvalidInputError) as caught:
        await read(node.lifecycle, cursor=cursor)
    assert caught.value.code == "invalid_cursor"


async def test_a_cursor_of_other_logs_is_refused(node, read):
    node.count(node.lifecycle, 0, 1)
    cursor = (await read(node.lifecycle))[0].cursor
    with pytest.raises(InvalidInputError, match="another log"):
        await read(node.health, node.lifecycle, cursor=cursor)


def test_the_list_of_logs(node, hpj):
    for number in range(60):
        node.write(f"DeepHealthCheckResults/{number}", (number, "well"))
    node.write(node.lifecycle, (1000, "x"))
    lines = hpj("node-logs", "--cluster", "ml-cluster").ok().out.splitlines()
    assert len(lines) == 62
    first = ["lifecycle", "worker-group-1", node.name, "2026-05-28T20:26:41.000Z", node.lifecycle]
    assert lines[1].split() == first
    assert lines[2].split()[::4] == ["deep-health-check", "DeepHealthCheckResults/59"]
    found = hpj("node-logs", "--cluster", "ml-cluster", "--json").ok().json["logs"]
    assert (found[1]["kind"], found[1]["instance"]) == ("deep-health-check", None)
    few = hpj("node-logs", "--cluster", "ml-cluster", "--json", "--limit", "2").ok().json["logs"]
    assert few == found[:2]


def test_lines_on_the_command_line(node, hpj):
    node.write(node.lifecycle, (0, "one\tand\x1b[31m\nmore\r\n"), (2, "three"))
    node.write(node.health, (1, "two"))
    done = hpj("node-logs", "ip-10-0-0-2", "--cluster", "ml-cluster").ok()
    assert done.out.splitlines() == [
        *(r"lifecycle|one     and\x1b[31m", "lifecycle|more", "health|two", "lifecycle|three")
    ]
    done = hpj("node-logs", node.name, "--cluster", "ml-cluster", "--log", "health").ok()
    assert done.out == "health|two\n"
    done = hpj("node-logs", "--cluster", "ml-cluster", "--stream", node.health, "--json").ok()
    assert done.json["line"] == "two"
    assert done.json["time"] == "2026-05-28T20:26:40.001Z"
    node.write(node.health, (3, "four"))
    again = ("node-logs", "--cluster", "ml-cluster", "--stream", node.health)
    assert hpj(*again, "--cursor", done.json["cursor"]).ok().out == "health|four\n"


@pytest.mark.parametrize(
    ("denied", "words"),
    [
        ("sagemaker:DescribeCluster", ("ip-10-0-0-2",)),
        ("sagemaker:ListClusterNodes", ("i-1",)),
        ("logs:GetLogEvents", ("ip-10-0-0-2",)),
        ("logs:DescribeLogStreams", ()),
    ],
)
def test_a_missing_right_is_named(example, node, hpj, denied, words):
    node.count(node.lifecycle, 0, 1)
    example.faults.deny(denied)
    done = hpj("node-logs", *words, "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["detail"]["right"]) == (4, {"action": denied})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("n", "--cluster", "c", "--stream", "s"), "not both"),
        (("n", "--cluster", "c", "--tail", "1", "--since", "1h"), "--tail and --since"),
        (("--cluster", "c", "--tail", "1"), "--tail needs a node"),
        (("n", "--cluster", "c", "--limit", "1"), "--limit limits the list"),
        (("--cluster", "c", "--log", "health"), "--log needs a node"),
        (("--cluster", "c", "--follow"), "--follow needs a node"),
    ],
)
def test_options_that_do_not_fit(hpj, words, message):
    done = hpj("node-logs", *words, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert message in done.error["message"]


def test_an_interrupted_reader_is_told_how_to_come_back(node, home):
    node.count(node.lifecycle, 0, 3)
    words = ("node-logs", "-f", node.name, "--cluster", "ml-cluster")
    reader = home.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert [reader.stdout.readline() for _ in range(3)] == [f"lifecycle|line {n}\n".encode() for n in range(3)]
    time.sleep(0.5)
    os.kill(reader.pid, signal.SIGINT)
    out, err = reader.communicate(timeout=30)
    assert (reader.returncode, out) == (130, b"")
    command = err.decode().rpartition("continue with: hpj ")[2]
    command = shlex.split(command)
    node.count(node.lifecycle, 3, 5)
    command.remove("-f")
    assert home.process(*command).ok().out == "lifecycle|line 3\nlifecycle|line 4\n"
