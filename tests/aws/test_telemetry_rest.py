"""Logs and metrics of HyperPod's nodes over REST: a real server, real boto3, the testbed's AWS."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.features.metrics import service as metric_looks
from testbed.aws.example import example_account
from testbed.aws.telemetry import cluster_log_group
from tests.aws.conftest import REGION
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

DATA = "cloudwatch:GetMetricData"
BEGUN = 1_780_000_000_000


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def node(example):
    """The first worker of the example's cluster with Slurm."""
    return example.account.clusters[REGION][0].nodes[1]


def write(endpoint, stream, count, begin=0):
    cluster = endpoint.account.clusters[REGION][0]
    lines = [(BEGUN + n, f"line {n}") for n in range(begin, begin + count)]
    group = cluster_log_group(cluster.name, cluster.arn)
    endpoint.account.telemetry.write(REGION, group, stream, lines)


def measure(endpoint, name, value, **dimensions):
    now = datetime.now(UTC) - timedelta(minutes=2)
    on = {"ClusterName": "research", **dimensions}
    endpoint.account.telemetry.measure(REGION, "ContainerInsights", name, on, [(now, value)])


def asked(endpoint, action=DATA):
    return [call.action for call in endpoint.calls].count(action)


async def test_the_list_of_logs(example, node, api):
    for number in range(60):
        write(example, f"DeepHealthCheckResults/{number}", 1, begin=number)
    answer = await api.get("clusters/ml-cluster/logs", limit="55")
    assert (len(answer["logs"]), answer["more"]) == (55, True)
    assert answer["logs"][0]["stream"] == "DeepHealthCheckResults/59"
    assert asked(example, "logs:DescribeLogStreams") == 2
    assert not (await api.get("clusters/ml-cluster/logs"))["more"]


async def test_lines_and_going_on_behind_them(example, node, api):
    stream = f"LifecycleConfig/{node.group}/{node.instance_id}"
    path = "clusters/ml-cluster/logs/lines"
    write(example, stream, 5)
    first = await api.get(path, node="ip-10-0-0-2", limit="3")
    assert [line["line"] for line in first["lines"]] == ["line 2", "line 3", "line 4"]
    assert first["lines"][0]["kind"] == "lifecycle"
    nothing = await api.get(path, node="ip-10-0-0-2", cursor=first["cursor"])
    assert nothing == {"lines": [], "cursor": first["cursor"], "more": False}
    write(example, stream, 5, begin=5)
    found, cursor = [], first["cursor"]
    for more in (True, True, False):
        page = await api.get(path, node="ip-10-0-0-2", cursor=cursor, limit="2")
        found += [line["line"] for line in page["lines"]]
        cursor = page["cursor"]
        assert page["more"] == more
    assert found == [f"line {n}" for n in range(5, 10)]
    since = "2026-05-28T20:26:40.008Z"
    late = await api.get(path, streams=stream, since=since)
    assert [line["line"] for line in late["lines"]] == ["line 8", "line 9"]


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        ("ml-cluster/logs/lines", {}, 400, "invalid_input"),
        ("ml-cluster/logs/lines", {"node": "a", "streams": "b"}, 400, "invalid_input"),
        ("ml-cluster/logs/lines", {"streams": "b", "cursor": "x"}, 400, "invalid_cursor"),
        ("ml-cluster/logs/lines", {"node": "a", "limit": "2001"}, 400, "invalid_input"),
        ("ml-cluster/logs/lines", {"node": "a"}, 404, "no_such_node"),
        ("ml-cluster/logs", {}, 404, "no_log_group"),
        ("no-such-cluster/logs", {}, 404, "not_found"),
        ("no-such-cluster/metrics", {}, 404, "not_found"),
        ("research-eks/metrics", {"seconds": "59"}, 400, "invalid_input"),
        ("research-eks/metrics", {"node": "a"}, 404, "no_such_node"),
        ("ml-cluster/metrics/nodes", {}, 422, "unsupported"),
    ],
)
async def test_what_is_refused(example, api, path, query, status, code):
    found, error = await api.request("GET", f"clusters/{path}", query=query)
    assert (found, error["code"]) == (status, code)


async def test_metrics_are_asked_for_once_a_minute(example, api, monkeypatch):
    measure(example, "node_gpu_utilization", 40.0)
    example.faults.slow[DATA] = 0.2
    path = "clusters/research-eks/metrics"
    answers = await asyncio.gather(*(api.get(path) for _ in range(6)))
    assert asked(example) == 1
    (metric,) = answers[0]["metrics"]
    assert (metric["name"], metric["last"], len(metric["points"])) == ("gpu-utilization", 40.0, 1)
    assert all(answer == answers[0] for answer in answers)
    await api.get(path, seconds="7200")
    await api.get(path)
    assert asked(example) == 2
    monkeypatch.setattr(metric_looks, "TTL_S", 0.0)
    measure(example, "node_cpu_utilization", 5.0)
    again = await api.get(path)
    assert [metric["name"] for metric in again["metrics"]] == ["gpu-utilization", "cpu"]


async def test_a_failure_is_not_kept(example, api):
    example.faults.deny(DATA)
    status, error = await api.request("GET", "clusters/research-eks/metrics")
    assert (status, error["detail"]["right"]) == (403, {"action": DATA})
    example.faults.denied.clear()
    answer = await api.get("clusters/research-eks/metrics")
    assert "amazon-cloudwatch-observability" in answer["notes"][0]


async def test_metrics_of_nodes(example, api):
    for number, one in enumerate(example.account.clusters[REGION][1].nodes):
        on = {"InstanceId": one.instance_id, "NodeName": f"hyperpod-{one.instance_id}"}
        measure(example, "node_cpu_utilization", float(number), **on)
    answer = await api.get("clusters/research-eks/metrics/nodes", limit="4")
    assert len(answer["nodes"]) == 4
    name = answer["nodes"][1]["node"]
    alone = await api.get("clusters/research-eks/metrics", node=name)
    assert alone["metrics"] == answer["nodes"][1]["metrics"]


async def test_no_more_answers_are_kept_than_some(example, api, monkeypatch):
    monkeypatch.setattr(metric_looks, "_MAX_ENTRIES", 2)
    for seconds in ("60", "120", "180", "60"):
        await api.get("clusters/research-eks/metrics", seconds=seconds)
    assert asked(example) == 4
    await api.get("clusters/research-eks/metrics", seconds="180")
    assert asked(example) == 4
