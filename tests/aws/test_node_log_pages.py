"""What the log viewer asks for: pages of nodes' logs in both directions and a search, over REST, with real boto3 and the testbed's AWS."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.features.node_logs.service import NodeLogs
from hyperpod_jlab.features.node_logs.spool import Spools
from testbed.aws.example import example_account
from testbed.aws.telemetry import cluster_log_group
from tests.aws.conftest import REGION
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

GET, LIST = "logs:GetLogEvents", "sagemaker:ListClusterNodes"
DESCRIBE = "sagemaker:DescribeCluster"
BEGUN = 1_780_000_000_000
PATH = "clusters/ml-cluster/logs"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def node(example):
    """The first worker of the example's cluster with Slurm."""
    return example.account.clusters[REGION][0].nodes[1]


@pytest.fixture
def both(node):
    """Its logs of life cycle and of health."""
    rest = f"{node.group}/{node.instance_id}"
    return (f"LifecycleConfig/{rest}", f"SagemakerHealthMonitoringAgent/{rest}")


def write(endpoint, stream, lines):
    """Lines as (milliseconds behind the first, text)."""
    cluster = endpoint.account.clusters[REGION][0]
    group = cluster_log_group(cluster.name, cluster.arn)
    timed = [(BEGUN + after, text) for after, text in lines]
    endpoint.account.telemetry.write(REGION, group, stream, timed)


def fill(endpoint, both, step):
    """Forty lines of life cycle and fifteen of health among them; returns all in their order."""
    first = [(n * step, f"life {n}") for n in range(40)]
    second = [(n * 3 * step, f"health {n}") for n in range(15)]
    write(endpoint, both[0], first)
    write(endpoint, both[1], second)
    order = [(at, 0, text) for at, text in first] + [(at, 1, text) for at, text in second]
    return [text for _, _, text in sorted(order, key=lambda one: one[:2])]


def asked(endpoint, action):
    return [call.action for call in endpoint.calls].count(action)


def lines_of(page):
    """The lines of an answer, each with its log's number."""
    return [
        (block["node_rank"], line)
        for frame in page["frames"]
        for block in frame["blocks"]
        for line in block["lines"].split("\n")
    ]


@pytest.mark.parametrize("looked_at", [10_000, 7])
@pytest.mark.parametrize("step", [0, 1, 10], ids=["one millisecond", "few", "many"])
@pytest.mark.parametrize("limit", [3, 17, 100])
async def test_backward_and_forward_give_each_line_once(example, both, step, limit, looked_at):
    whole = fill(example, both, step)
    example.account.telemetry.looked_at = looked_at

    spools = Spools()
    logs = NodeLogs(Aws(REGION), spools)

    async def page_of(cursor, direction, limit):
        return await logs.page("ml-cluster", both, cursor, direction, limit)

    found: list[str] = []
    cursors: list[tuple[int, str, str]] = []
    cursor = None
    while True:
        page = await page_of(cursor, "backward", limit)
        found[:0] = [line.line for line in page.lines]
        cursor = page.before
        cursors.append((len(found), page.before, page.after))
        if page.at_start:
            break
    assert found == whole
    for behind, before, after in cursors[:: max(1, len(cursors) // 6)]:
        forward = await page_of(before, "forward", 1000)
        assert forward.at_end
        assert [line.line for line in forward.lines] == whole[len(whole) - behind :]
        rest = await page_of(after, "forward", 1000)
        shown = len(forward.lines) - len(rest.lines)
        assert shown == min(limit, len(whole) - behind + shown) or behind == len(whole)
        assert [line.line for line in rest.lines] == whole[len(whole) - behind + shown :]
    start, forward = [], await page_of(None, "forward", limit)
    assert forward.at_start
    while True:
        start += [line.line for line in forward.lines]
        if forward.at_end:
            break
        forward = await page_of(forward.after, "forward", limit)
    assert start == whole
    await spools.close()


async def test_a_page_is_that_of_a_run_and_goes_on(example, both, api):
    write(example, both[0], [(0, "first"), (10, "of two\nrows\r\n"), (30, "third")])
    write(example, both[1], [(20, "health")])
    page = await api.get(f"{PATH}/page", streams=",".join(both), limit="4")
    assert lines_of(page) == [(0, "of two"), (0, "rows"), (1, "health"), (0, "third")]
    block = page["frames"][0]["blocks"][0]
    assert block["times"] == (BEGUN + 10) / 1000
    assert (block["node"], block["rank"], block["flags"]) == (both[0], None, None)
    assert (page["at_start"], page["at_end"], page["calls"]) == (False, True, 4)
    earlier = await api.get(f"{PATH}/page", streams=",".join(both), cursor=page["before"], limit="3")
    assert (lines_of(earlier), earlier["at_start"]) == ([(0, "first")], True)
    nothing = await api.get(f"{PATH}/page", streams=",".join(both), cursor=page["after"], direction="forward")
    assert (nothing["frames"], nothing["at_end"], nothing["after"]) == ([], True, page["after"])
    write(example, both[1], [(40, "and more")])
    more = await api.get(f"{PATH}/page", streams=",".join(both), cursor=page["after"], direction="forward")
    assert lines_of(more) == [(1, "and more")]


async def test_a_look_costs_no_other_calls_than_those_of_cloudwatch(example, both, api):
    write(example, both[0], [(0, "a")])
    for _ in range(4):
        await api.get(f"{PATH}/page", streams=",".join(both))
    assert asked(example, DESCRIBE) == 1
    assert asked(example, LIST) == 0
    page = await api.get(f"{PATH}/page", streams=both[0], limit="1")
    before = asked(example, GET)
    answer = await api.get(f"{PATH}/page", streams=both[0], cursor=page["after"], direction="forward")
    assert asked(example, GET) - before == answer["calls"] == 2


async def test_a_log_is_read_once_for_all_pages_and_searches(example, both, api):
    write(example, both[0], [(n, f"line {n}") for n in range(5000)])
    page = await api.get(f"{PATH}/page", streams=both[0], limit="100")
    assert page["calls"] == 2  # its one page, and that there is no earlier one
    before = asked(example, GET)
    for _ in range(3):
        page = await api.get(f"{PATH}/page", streams=both[0], limit="100", cursor=page["before"])
        assert page["calls"] == 0
    found = await api.get(f"{PATH}/search", streams=both[0], grep="line 4", cursor=page["before"], limit="5")
    assert (len(found["hits"]), found["calls"]) == (5, 0)
    assert asked(example, GET) == before
    # Who asks what is new gets no more than that.
    await api.get(f"{PATH}/page", streams=both[0], limit="100")
    given = [call.given for call in example.calls if call.action == GET][before:]
    assert [one["startTime"] for one in given] == [BEGUN + 4999] * 2


async def test_the_logs_of_a_node_and_of_one_that_was_replaced(example, node, both, api):
    answer = await api.get("clusters/ml-cluster/nodes/ip-10-0-0-2/logs")
    assert [one["stream"] for one in answer["logs"]] == list(both)
    assert [one["kind"] for one in answer["logs"]] == ["lifecycle", "health"]
    write(example, both[0], [(0, "why it went")])
    cluster = example.account.clusters[REGION][0]
    cluster.nodes.remove(node)
    gone = await api.get(f"clusters/ml-cluster/nodes/{node.instance_id}/logs")
    assert [one["stream"] for one in gone["logs"]] == [both[0]]
    page = await api.get(f"{PATH}/page", streams=both[0])
    assert lines_of(page) == [(0, "why it went")]


async def test_known_instances_are_not_listed_again(example, node, api):
    await api.get("clusters/ml-cluster/nodes")
    before = asked(example, LIST)
    await api.get(f"clusters/ml-cluster/nodes/{node.instance_id}/logs")
    assert asked(example, LIST) == before


async def test_the_list_of_deep_health_checks(example, both, api):
    write(example, both[0], [(0, "a")])
    for number in range(60):
        write(example, f"DeepHealthCheckResults/{number:02d}", [(number * 7 % 60, "passed")])
    answer = await api.get(PATH, kind="deep-health-check", limit="3")
    assert [one["stream"][-2:] for one in answer["logs"]] == ["17", "34", "51"]
    assert answer["more"]
    assert asked(example, "logs:DescribeLogStreams") == 2


async def test_a_search_steps_through_all_hits(example, both, api):
    fill(example, both, 1)
    write(example, both[0], [(900, "Error: one\nno\nERROR: two"), (901, "error: three")])
    first = await api.get(f"{PATH}/search", streams=",".join(both), grep="life 1[0-2]", limit="2")
    assert [hit["line"] for hit in first["hits"]] == ["life 10", "life 11"]
    assert first["hits"][0]["match"] == [0, 7]
    rest = await api.get(*(f"{PATH}/search",), streams=",".join(both), grep="life 1[0-2]", cursor=first["next"])
    assert [hit["line"] for hit in rest["hits"]] == ["life 12"]
    assert rest["next"] is None
    found = await api.get(f"{PATH}/search", streams=",".join(both), grep="error", ignore_case="true")
    assert [hit["line"] for hit in found["hits"]] == ["Error: one", "ERROR: two", "error: three"]
    # The page from a hit's cursor begins with its line.
    page = await api.get(f"{PATH}/page", streams=",".join(both), cursor=found["hits"][2]["cursor"], direction="forward")
    assert lines_of(page)[0] == (0, "error: three")
    none = await api.get(f"{PATH}/search", streams=",".join(both), grep="not there")
    assert (none["hits"], none["next"]) == ([], None)


async def test_a_long_search_goes_on(example, both, api):
    write(example, both[0], [(n, f"line {n}") for n in range(25_000)])
    hits, cursor, rounds = [], None, 0
    while True:
        more: dict[str, str] = {} if cursor is None else {"cursor": cursor}
        found = await api.get(f"{PATH}/search", streams=both[0], grep="line .*77$", limit="100", **more)
        hits += [hit["line"] for hit in found["hits"]]
        cursor = found["next"]
        rounds += 1
        if cursor is None:
            break
    assert hits == [f"line {n}" for n in range(77, 25_000, 100)]
    assert rounds == 3


async def test_the_socket_follows_and_asks_no_more_when_nobody_looks(example, both, api, log_page, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MIN_INTERVAL_S", 0.1)
    monkeypatch.setattr("hyperpod_jlab.features.node_logs.spool.MAX_INTERVAL_S", 0.1)
    write(example, both[0], [(0, "a")])
    shown = await api.get(f"{PATH}/page", streams=",".join(both))
    page = await log_page()
    follow = {"type": "subscribe", "cluster": "ml-cluster", "streams": list(both)}
    await page.send(**follow, id=1, cursor=shown["after"])
    assert (await page.next())["type"] == "subscribed"
    write(example, both[1], [(1, "b")])
    frame = await page.next()
    block = frame["blocks"][0]
    assert (frame["type"], block["lines"], block["node_rank"]) == ("frame", "b", 1)
    assert block["times"] == (BEGUN + 1) / 1000
    await page.send(type="ack", id=1, seq=frame["seq"])
    await page.send(type="unsubscribe", id=1)
    await asyncio.sleep(0.5)
    before = asked(example, GET)
    write(example, both[0], [(2, "c")])
    await asyncio.sleep(0.5)
    assert asked(example, GET) == before
    # From the last frame on it goes on, on another connection too.
    other = await log_page()
    await other.send(**follow, id=2, cursor=frame["after"])
    assert (await other.next())["type"] == "subscribed"
    assert (await other.next())["blocks"][0]["lines"] == "c"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"cluster": "ml-cluster"}, "invalid_input"),
        ({"cluster": "ml-cluster", "streams": ["a"], "run_id": "x"}, "invalid_message"),
        ({"cluster": "ml-cluster", "streams": ["a"]}, "no_log_group"),
        ({"cluster": "none", "streams": ["a"]}, "not_found"),
    ],
)
async def test_what_the_socket_refuses(example, log_page, message, code):
    page = await log_page()
    await page.send(type="subscribe", id=1, **message)
    told = await page.next()
    while told["type"] != "error":
        told = await page.next()
    assert (told["id"], told["error"]["code"]) == (1, code)


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("ml-cluster/logs/page", {}, 400, "invalid_input"),
        ("ml-cluster/logs/page", {"streams": "a", "cursor": "x"}, 400, "invalid_cursor"),
        ("ml-cluster/logs/page", {"streams": "a", "limit": "2001"}, 400, "invalid_input"),
        ("ml-cluster/logs/page", {"streams": "a"}, 404, "no_log_group"),
        ("ml-cluster/logs/search", {"streams": "a"}, 400, "invalid_input"),
        ("ml-cluster/logs/search", {"streams": "a", "grep": "("}, 400, "invalid_pattern"),
        ("ml-cluster/nodes/nobody/logs", {}, 404, "no_such_node"),
        ("none/logs/page", {"streams": "a"}, 404, "not_found"),
    ],
)
async def test_what_is_refused(example, api, path, query, status, code):
    found, error = await api.request("GET", f"clusters/{path}", query=query)
    assert (found, error["code"]) == (status, code)


async def test_a_log_that_is_not_there_has_no_lines_and_a_cursor_of_others_is_refused(example, both, api):
    write(example, both[0], [(0, "a")])
    empty = await api.get(f"{PATH}/page", streams=both[1])
    assert (empty["frames"], empty["at_start"], empty["at_end"]) == ([], True, True)
    other = await api.get(f"{PATH}/page", streams=both[0])
    status, error = await api.request("GET", f"{PATH}/page", query={"streams": both[1], "cursor": other["after"]})
    assert (status, error["code"]) == (400, "invalid_cursor")


async def test_a_right_that_is_missing_and_too_many_calls_are_said(example, both, api):
    write(example, both[0], [(0, "a")])
    example.faults.deny(GET)
    status, error = await api.request("GET", f"{PATH}/page", query={"streams": both[0]})
    assert (status, error["detail"]["right"]) == (403, {"action": GET})
    example.faults.denied.clear()
    example.faults.throttled[GET] = 20
    status, error = await api.request("GET", f"{PATH}/page", query={"streams": both[0]})
    assert error["code"] == "aws_throttled"
    assert status == 502
