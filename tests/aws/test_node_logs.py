"""Logs of nodes: which there are, their last lines, going on from a cursor, following, and what is missing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.features.node_logs.models import NodeLogPosition, decode_cursor, encode_cursor
from hyperpod_jlab.features.node_logs.service import NodeLogRequest, NodeLogs
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


async def read(request, *, cluster="ml-cluster"):
    batches = NodeLogs(Aws(REGION)).lines(cluster, request)
    return [line async for batch in batches for line in batch]


def texts(lines):
    return [line.line for line in lines]


async def until(there: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not there():  # noqa: ASYNC110 - what is waited for happens in threads
            await asyncio.sleep(0.01)


async def test_the_last_lines_of_two_logs_are_merged_by_time(node):
    node.write(node.lifecycle, (0, "a"), (20, "c"), (40, "e"))
    node.write(node.health, (10, "b"), (30, "d"))
    both = (node.lifecycle, node.health)
    found = await read(NodeLogRequest(both))
    assert [(line.log.kind, line.line) for line in found] == [
        *(("lifecycle", "a"), ("health", "b"), ("lifecycle", "c")),
        *(("health", "d"), ("lifecycle", "e")),
    ]
    assert texts(await read(NodeLogRequest(both, tail=2))) == ["d", "e"]
    assert await read(NodeLogRequest(both, tail=0)) == []
    assert texts(await read(NodeLogRequest(both, since=(BEGUN + 20) / 1000))) == ["c", "d", "e"]
    # Also of the log of which the last two lines show nothing the rest is not given again.
    last = (await read(NodeLogRequest(both, tail=1)))[0]
    assert texts(await read(NodeLogRequest(both, cursor=last.cursor))) == []
    node.write(node.health, (50, "f"))
    assert texts(await read(NodeLogRequest(both, cursor=last.cursor))) == ["f"]


@pytest.mark.parametrize("looked_at", [10_000, 13])
@pytest.mark.parametrize("step", [0, 1, 10], ids=["one millisecond", "few", "many"])
async def test_each_line_once_from_any_cursor(example, node, looked_at, step):
    """With all lines in one millisecond only their number tells them apart."""
    example.account.telemetry.looked_at = looked_at
    node.count(node.lifecycle, 0, 30, step)
    for tail in (1, 7, 29, 31):
        found = await read(NodeLogRequest((node.lifecycle,), tail=tail))
        assert texts(found) == [f"line {n}" for n in range(30)][-tail:]
    for line in await read(NodeLogRequest((node.lifecycle,))):
        rest = await read(NodeLogRequest((node.lifecycle,), cursor=line.cursor))
        assert texts([line, *rest]) == [f"line {n}" for n in range(int(line.line[5:]), 30)]


async def test_thousands_of_lines_come_page_by_page(example, node):
    node.count(node.lifecycle, 0, 25_000, 1)
    node.count(node.health, 0, 500, 50)
    request = NodeLogRequest((node.lifecycle, node.health), since=BEGUN / 1000)
    batches = [b async for b in NodeLogs(Aws(REGION)).lines("ml-cluster", request)]
    lines = [line for batch in batches for line in batch]
    assert len(lines) == 25_500
    assert max(map(len, batches)) <= 20_000
    assert [line.time for line in lines] == sorted(line.time for line in lines)
    whole = [int(line.line[5:]) for line in lines if line.log.kind == "lifecycle"]
    assert whole == list(range(25_000))


async def test_following_gives_each_new_line_once(example, node, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.service._SOON", 0.02)
    node.write(node.lifecycle, (0, "old"))
    found = list[str]()

    async def follow():
        request = NodeLogRequest((node.lifecycle, node.health), tail=0)
        async for batch in NodeLogs(Aws(REGION)).lines("ml-cluster", request, follow=True):
            found.extend(line.line for line in batch)

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
    assert found == [
        *(f"same millisecond {number}" for number in range(5)),
        *("a log that was not there before", "after a failure"),
    ]


async def test_following_ends_when_aws_fails_for_long(example, node, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.service._SOON", 0.01)
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.service._LATE", 0.01)
    monkeypatch.setattr("hyperpod_jlab.aws.session._ATTEMPTS", 1)
    node.write(node.lifecycle, (0, "old"))
    request = NodeLogRequest((node.lifecycle,))
    batches = NodeLogs(Aws(REGION)).lines("ml-cluster", request, follow=True)
    assert texts(await anext(batches)) == ["old"]
    example.faults.broken["logs:GetLogEvents"] = 100
    with pytest.raises(UnreachableError):
        await anext(batches)
    assert example.faults.broken["logs:GetLogEvents"] == 89


@pytest.mark.parametrize("name", ["{id}", "hyperpod-{id}", "ip-10-0-0-2", "{host}"])
async def test_a_node_by_each_of_its_names(node, name):
    host = "ip-10-0-0-2.us-west-2.compute.internal"
    found = await NodeLogs(Aws(REGION)).streams_of(
        "ml-cluster", name.format(id=node.name, host=host)
    )
    assert found == (node.lifecycle, node.health)


async def test_a_node_that_was_replaced_is_found_by_its_logs(node):
    node.count(node.lifecycle, 0, 3)
    node.cluster.nodes.remove(node.node)
    logs = NodeLogs(Aws(REGION))
    assert await logs.streams_of("ml-cluster", node.name) == (node.lifecycle,)
    assert await logs.streams_of("ml-cluster", node.name, "health") == ()
    for unknown in ("i-00000000000000000", "ip-10-0-0-99"):
        with pytest.raises(NotFoundError, match=f"has no node {unknown}"):
            await logs.streams_of("ml-cluster", unknown)


async def test_what_is_not_there(example, node):
    with pytest.raises(NotFoundError) as caught:
        await read(NodeLogRequest((node.lifecycle,)))
    assert caught.value.code == "no_log_group"
    assert node.group in caught.value.message
    node.count(node.health, 0, 1)
    assert texts(await read(NodeLogRequest((node.lifecycle, node.health)))) == ["line 0"]
    with pytest.raises(NotFoundError, match="none of these logs has been written") as caught:
        await read(NodeLogRequest((node.lifecycle,)))
    assert caught.value.code == "no_log"
    with pytest.raises(NotFoundError, match="no-such-cluster"):
        await read(NodeLogRequest((node.lifecycle,)), cluster="no-such-cluster")


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "x", "{}", "W10", "eyJhIjogMX0", "eyJhIjogWzEsMl19", "ä"),
        encode_cursor({"LifecycleConfig/other/i-1": NodeLogPosition(1, 1)}),
    ],
)
async def test_cursors_that_are_none_of_these_logs(node, cursor):
    node.count(node.lifecycle, 0, 1)
    with pytest.raises(InvalidInputError, match="no cursor of these logs"):
        await read(NodeLogRequest((node.lifecycle,), cursor=cursor))


def test_a_cursor_is_a_value():
    places = {"a/b/i-1": NodeLogPosition(1_780_000_000_000, 3), "ü": NodeLogPosition(0, 0)}
    assert decode_cursor(encode_cursor(places)) == places


def test_the_list_of_logs(node, hpj):
    for number in range(60):
        node.write(f"DeepHealthCheckResults/{number}", (number, "well"))
    node.write(node.lifecycle, (1000, "x"))
    lines = hpj("node-logs", "--hyperpod", "ml-cluster").ok().out.splitlines()
    assert len(lines) == 62
    first = ["lifecycle", "worker-group-1", node.name, "2026-05-28T20:26:41.000Z", node.lifecycle]
    assert lines[1].split() == first
    assert lines[2].split()[::4] == ["deep-health-check", "DeepHealthCheckResults/59"]
    found = hpj("node-logs", "--hyperpod", "ml-cluster", "--json").ok().json["logs"]
    assert (found[1]["kind"], found[1]["instance"]) == ("deep-health-check", None)
    few = hpj("node-logs", "--hyperpod", "ml-cluster", "--json", "--limit", "2").ok().json["logs"]
    assert few == found[:2]


def test_lines_on_the_command_line(node, hpj):
    node.write(node.lifecycle, (0, "one\tand\x1b[31m\nmore\r\n"), (2, "three"))
    node.write(node.health, (1, "two"))
    done = hpj("node-logs", "ip-10-0-0-2", "--hyperpod", "ml-cluster").ok()
    assert done.out.splitlines() == [
        *(r"lifecycle|one     and\x1b[31m", "lifecycle|more", "health|two", "lifecycle|three"),
    ]
    done = hpj("node-logs", node.name, "--hyperpod", "ml-cluster", "--log", "health").ok()
    assert done.out == "health|two\n"
    done = hpj("node-logs", "--hyperpod", "ml-cluster", "--stream", node.health, "--json").ok()
    assert done.json["line"] == "two"
    assert done.json["time"] == "2026-05-28T20:26:40.001Z"
    node.write(node.health, (3, "four"))
    again = ("node-logs", "--hyperpod", "ml-cluster", "--stream", node.health)
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
    done = hpj("node-logs", *words, "--hyperpod", "ml-cluster", "--json")
    assert (done.code, done.error["detail"]["right"]) == (4, {"action": denied})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Missing option '--hyperpod'"),
        (("n", "--hyperpod", "c", "--stream", "s"), "not both"),
        (("n", "--hyperpod", "c", "--tail", "1", "--since", "1h"), "--tail and --since"),
        (("--hyperpod", "c", "--tail", "1"), "--tail needs a node"),
        (("n", "--hyperpod", "c", "--limit", "1"), "--limit is for the list"),
        (("--hyperpod", "c", "--log", "health"), "--log needs a node"),
        (("--hyperpod", "c", "--follow"), "--follow needs a node"),
    ],
)
def test_options_that_do_not_fit(hpj, words, message):
    done = hpj("node-logs", *words, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert message in done.error["message"]


def test_an_interrupted_reader_is_told_how_to_come_back(node, home):
    node.count(node.lifecycle, 0, 3)
    words = ("node-logs", "-f", node.name, "--hyperpod", "ml-cluster")
    reader = home.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert [reader.stdout.readline() for _ in range(3)] == [
        f"lifecycle|line {n}\n".encode() for n in range(3)
    ]
    time.sleep(0.5)
    os.kill(reader.pid, signal.SIGINT)
    out, err = reader.communicate(timeout=30)
    assert (reader.returncode, out) == (130, b"")
    command = err.decode().rpartition("continue with: hpj ")[2].split()
    node.count(node.lifecycle, 3, 5)
    command.remove("-f")
    assert home.process(*command).ok().out == "lifecycle|line 3\nlifecycle|line 4\n"
