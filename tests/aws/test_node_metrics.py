"""Metrics of clusters and nodes: what is asked of CloudWatch, what is said of it, and what is missing."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.cli.numbers import sparkline
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.features.metrics.aws import EKS_METRICS, SLURM_METRICS
from hyperpod_jlab.features.metrics.models import METRICS, last_seconds
from hyperpod_jlab.features.metrics.service import NODE_TABLE_METRICS, NodeMetrics
from testbed.aws.example import example_account
from tests.aws.conftest import REGION

HOUR = 3600
EKS = {"ClusterName": "research"}


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def of_node(endpoint, number=0):
    """A node of the example's cluster on EKS, and the dimensions of its metrics."""
    name = endpoint.account.clusters[REGION][1].nodes[number].instance_id
    return name, {**EKS, "InstanceId": name, "NodeName": f"hyperpod-{name}"}


def measure(endpoint, metric, on, *values, namespace="ContainerInsights", step=60):
    """The last value in the period before this one, the others before it."""
    now = time.time() // step * step
    begin = datetime.fromtimestamp(now, UTC) - timedelta(seconds=step * len(values))
    timed = [(begin + timedelta(seconds=step * at), value) for at, value in enumerate(values)]
    endpoint.account.telemetry.measure(REGION, namespace, metric, on, timed)


def asked(endpoint):
    return [call for call in endpoint.calls if call.action.startswith("cloudwatch:")]


async def test_a_cluster_on_eks(example):
    measure(example, "node_gpu_utilization", EKS, 50.0, 70.0, 90.0)
    measure(example, "hyperpod_node_health_status_schedulable", EKS, 1.0, 0.0)
    measure(example, "cluster_failed_node_count", EKS, 2.0)
    found = await NodeMetrics(Aws(REGION)).read_cluster("research-eks", HOUR)
    assert list(found.courses) == ["gpu-utilization", "healthy", "nodes-failed"]
    assert found.courses["gpu-utilization"].values == (50.0, 70.0, 90.0)
    assert found.courses["healthy"].values == (100.0, 0.0)
    assert found.window.period == 60
    times = [moment for moment, _ in found.courses["gpu-utilization"].points]
    assert times[1] - times[0] == times[2] - times[1] == 60
    assert found.window.begin <= times[0] < times[2] <= found.window.end
    assert "efa-sent" in found.missing
    assert [note.partition(":")[0] for note in found.notes] == ["no EFA metrics"]
    (call,) = asked(example)  # all metrics in one
    assert len(call.given["MetricDataQueries"]) == 14


async def test_a_cluster_with_slurm(example):
    cluster = example.account.clusters[REGION][0]
    on = {"ClusterId": cluster.arn.rpartition("/")[2]}
    slurm = "/aws/sagemaker/Clusters"
    measure(example, "cluster_pending_task_count", on, 3.0, 4.0, namespace=slurm)
    measure(example, "node_gpu_utilization", on, 12.5, namespace=slurm)
    measure(example, "node_gpu_utilization", EKS, 99.0)
    found = await NodeMetrics(Aws(REGION)).read_cluster(cluster.arn, HOUR)
    assert {name: course.values for name, course in found.courses.items()} == {
        "gpu-utilization": (12.5,),
        "jobs-waiting": (3.0, 4.0),
    }
    assert (found.cluster, found.notes) == ("ml-cluster", ())


async def test_a_node_has_its_own_metrics_only(example):
    name, on = of_node(example)
    other, elsewhere = of_node(example, 1)
    measure(example, "node_gpu_utilization", on, 10.0)
    measure(example, "node_gpu_utilization", {**on, "GpuDevice": "nvidia0"}, 99.0)
    measure(example, "node_gpu_utilization", elsewhere, 77.0)
    # Metrics of health may call the instance otherwise.
    by_node_name = {**on, "InstanceId": on["NodeName"]}
    measure(example, "hyperpod_node_health_status_unschedulable", by_node_name, 1.0)
    measure(example, "pod_cpu_utilization", on, 5.0)
    service = NodeMetrics(Aws(REGION))
    for spoken in (name, f"hyperpod-{name}"):
        found = await service.read_node("research-eks", spoken, HOUR)
        assert {one: course.values for one, course in found.courses.items()} == {
            "gpu-utilization": (10.0,),
            "deep-health-check": (100.0,),
        }
        assert found.node == name
        assert "cpu" in found.missing
    assert (await service.read_node("research-eks", other, HOUR)).courses.keys() == {"gpu-utilization"}
    nothing = await service.read_node("research-eks", of_node(example, 2)[0], HOUR)
    assert nothing.courses == {}
    assert "amazon-cloudwatch-observability" in nothing.notes[0]


async def test_each_node_over_many_calls_and_pages(example, monkeypatch):
    """Three nodes with five metrics each, four metrics a call, seven points a page."""
    monkeypatch.setattr("hyperpod_jlab.features.metrics.aws.MAX_QUERIES", 4)
    example.account.telemetry.points = 7
    sources = ("node_cpu_utilization", "node_gpu_utilization", "node_efa_rx_bytes")
    for number in range(3):
        _, on = of_node(example, number)
        for at, source in enumerate(sources):
            measure(example, source, on, *(float(number * 100 + at * 10 + n) for n in range(6)))
    found = await NodeMetrics(Aws(REGION)).read_nodes("research-eks", HOUR)
    nodes = {of_node(example, number)[0]: number for number in range(3)}
    assert [one.node for one in found] == sorted(nodes)
    for one in found:
        assert {name: course.values for name, course in one.courses.items()} == {
            name: tuple(float(nodes[one.node] * 100 + at * 10 + n) for n in range(6))
            for at, name in ((0, "cpu"), (1, "gpu-utilization"), (2, "efa-received"))
        }
    data = [call for call in asked(example) if call.action == "cloudwatch:GetMetricData"]
    assert len(data) > 4
    assert example.most_at_once <= 4
    (first,) = await NodeMetrics(Aws(REGION)).read_nodes("research-eks", HOUR, limit=1)
    assert first.node == min(nodes)


@pytest.mark.parametrize(
    ("seconds", "period"),
    [
        *((60, 60), (HOUR, 60), (HOUR + 1, 120), (6 * HOUR, 360), (24 * HOUR, 1440)),
        *((15 * 86400, 21600), (15 * 86400 + 1, 21900), (63 * 86400, 90900)),
    ],
)
def test_periods_that_cloudwatch_keeps(seconds, period):
    window = last_seconds(seconds)
    assert window.period == period
    assert window.begin % period == 0
    assert seconds <= window.end - window.begin < seconds + period
    assert seconds / period <= 60


@pytest.mark.parametrize("seconds", [0, 59, 63 * 86400 + 1, float("nan")])
def test_times_that_cannot_be_shown(seconds):
    with pytest.raises(InvalidInputError, match="one minute and 63 days"):
        last_seconds(seconds)


async def test_what_is_not_there(example):
    service = NodeMetrics(Aws(REGION))
    with pytest.raises(UnsupportedError, match="not on EKS"):
        await service.read_node("ml-cluster", "i-1", HOUR)
    with pytest.raises(UnsupportedError, match="not on EKS"):
        await service.read_nodes("ml-cluster", HOUR)
    with pytest.raises(NotFoundError, match="has no node i-1"):
        await service.read_node("research-eks", "i-1", HOUR)
    with pytest.raises(NotFoundError):
        await service.read_cluster("no-such-cluster", HOUR)
    assert await service.read_nodes("research-eks", HOUR) == []
    note = (await service.read_cluster("research-eks", HOUR)).notes[0]
    assert f"--cluster-name research --addon-name amazon-cloudwatch-observability --region {REGION}" in note
    note = (await service.read_cluster("ml-cluster", HOUR)).notes[0]
    assert "Amazon Managed Service for Prometheus" in note


def test_the_table(example, hpj):
    measure(example, "node_gpu_utilization", EKS, 0.0, 25.0, 50.0, 100.0)
    measure(example, "node_efa_rx_bytes", EKS, 1024.0**3, 2 * 1024.0**3)
    done = hpj("metrics", "--cluster", "research-eks").ok()
    lines = done.out.splitlines()
    assert lines[0].startswith("research-eks: 1h ")
    assert lines[2].split()[:9] == [*("gpu-utilization", "100", "%", "43.8", "%", "0", "%", "100", "%")]
    assert "▁▃▅█" in lines[2]
    assert "2.0 GiB/s  1.5 GiB/s  1.0 GiB/s  2.0 GiB/s" in lines[3]
    assert "▅█" in lines[3]
    assert "note: no health metrics" in done.err


def test_json_and_a_table_by_node(example, hpj):
    name, on = of_node(example)
    measure(example, "node_cpu_utilization", on, 10.0, 20.0)
    measure(example, "node_gpu_utilization", on, 30.0, 40.0)
    rows = hpj("metrics", "--cluster", "research-eks", "--by-node").ok().out.splitlines()
    assert rows[1].split()[:8] == [name, "40", "%", "-", "-", "-", "20", "%"]
    words = ("metrics", "--cluster", "research-eks", "--json", "--since", "2h")
    one = hpj(*words, "--node", name).ok().json
    assert (one["node"], one["period_s"]) == (name, 120)
    (gpu, _) = one["metrics"]
    assert (gpu["name"], gpu["unit"], gpu["last"]) == ("gpu-utilization", "percent", pytest.approx(35, abs=5))
    assert gpu["points"][-1]["time"].endswith("Z")
    assert [row["node"] for row in hpj(*words, "--by-node").ok().json["nodes"]] == [name]


@pytest.mark.parametrize(
    ("denied", "words"),
    [("sagemaker:DescribeCluster", ()), ("cloudwatch:GetMetricData", ()), ("cloudwatch:ListMetrics", ("--by-node",))],
)
def test_a_missing_right_is_named(example, hpj, denied, words):
    example.faults.deny(denied)
    done = hpj("metrics", "--cluster", "research-eks", *words, "--json")
    assert (done.code, done.error["detail"]["right"]) == (4, {"action": denied})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give a run, or a HyperPod cluster with --cluster"),
        (("run", "--cluster", "c"), "--cluster cannot be used with a run"),
        (("run", "--since", "1h"), "--since cannot be used with a run"),
        (("--cluster", "c", "--attempt", "1"), "--attempt can be used only with a run"),
        (("--cluster", "c", "--node", "n", "--by-node"), "not both"),
        (("--cluster", "c", "--limit", "3"), "--limit can be used only with --by-node"),
        (("--cluster", "c", "--since", "soon"), "is not a duration"),
    ],
)
def test_options_that_do_not_fit(hpj, words, message):
    done = hpj("metrics", *words, "--json")
    assert (done.code, done.error["code"]) == (2, "usage")
    assert message in done.error["message"]


@pytest.mark.parametrize(
    ("values", "highest", "width", "line"),
    [
        ((0, 50, 100), 100, 60, "▁▅█"),
        ((0, None, 100), 100, 60, "▁ █"),
        ((1, 2, 3, 4, 5, 6), 6, 3, "▃▆█"),
        ((0, 0), 0, 60, "▁▁"),
        ((), 100, 60, ""),
        ((200, -5), 100, 60, "█▁"),
    ],
)
def test_sparklines(values, highest, width, line):
    assert sparkline(values, 0.0, highest, width) == line


def test_every_metric_has_its_words():
    assert {*EKS_METRICS, *SLURM_METRICS, *NODE_TABLE_METRICS} == set(METRICS)
