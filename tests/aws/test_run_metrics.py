"""Metrics of runs: of the nodes they were on, while they were; a real Prometheus, CloudWatch by the testbed's AWS."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import pytest

from hyperpod_jlab.core.wire import to_plain, unix_time
from hyperpod_jlab.engines.kubernetes.kinds.kind import object_name
from hyperpod_jlab.features.metrics.models import METRICS, TimeSeries, clip, mean_series
from hyperpod_jlab.storage.partition import Partition
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.observability import WORKSPACE, host_of, install_addon
from tests.aws.conftest import OBSERVED, REGION, RUN, observed_account
from tests.storage.forged_runs import forge_run

MINUTE = 60
GPU = METRICS["gpu-utilization"]


@pytest.fixture
def example(endpoint, prometheus):
    endpoint.account = observed_account()
    install_addon(
        *(endpoint.account, REGION, "observed"), os.environ["AWS_ENDPOINT_URL"], prometheus.url
    )
    return endpoint


@pytest.fixture
def clusters(example, home):
    """A configuration with clusters on EKS with and without the add-on, and one with Slurm whose workspace is named."""
    workspace = f"{os.environ['AWS_ENDPOINT_URL']}/workspaces/{WORKSPACE}"
    with home.config.open("a") as config:
        config.write(
            f'[clusters.eks]\norchestrator = "kubernetes"\nhyperpod = "{OBSERVED}"\n'
            '[clusters.plain]\norchestrator = "kubernetes"\nhyperpod = "research-eks"\n'
            '[clusters.unknown]\norchestrator = "kubernetes"\n'
            f'[clusters.ml]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\nprometheus = "{workspace}"\n'
            '[clusters.ml-plain]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
        )
    return {one.name: one for one in example.account.clusters[REGION]}


def run_of(home, cluster, orchestrator, *attempts, run_id=RUN, ended=True):
    """A run with attempts, each with its nodes, its begin and its end in minutes from now."""
    forge_run(Partition(home.partition), run_id, cluster, orchestrator, *attempts, ended=ended)


def moment(told: dict[str, str], name: str = "time") -> float:
    """A time in an answer, as Unix seconds."""
    found = unix_time(told[name])
    assert found is not None
    return found


def means(measured):
    return {one["name"]: round(one["mean"], 1) for one in measured["metrics"]}


def test_on_eks_gpus_are_those_of_the_run_s_pods(clusters, example, home, hpj):
    first, second, _ = (f"hyperpod-{node.instance_id}" for node in clusters[OBSERVED].nodes)
    run_of(home, "eks", "kubernetes", ([first, second], -60, -40))
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    assert found["run_id"] == RUN
    whole, nodes = found["whole"], found["nodes"]
    assert (whole["source"], whole["node"], whole["notes"]) == ("Prometheus", None, [])
    # The first GPU of each node is the run's: it has a quarter of its memory in use, the other one a half.
    assert means(whole) == {
        "gpu-utilization": 25.0,
        "gpu-memory": 25.0,
        "gpu-temperature": 40.5,
        "efa-received": 3e9,
        "efa-sent": 1.5e9,
        "efa-dropped": 0.0,
        "cpu": 25.0,
        "memory": 25.0,
    }
    assert {one["node"]: means(one)["gpu-utilization"] for one in nodes} == {
        first: 20.0,
        second: 30.0,
    }
    points = whole["metrics"][0]["points"]
    assert 20 <= len(points) <= 22
    assert moment(points[0]) > time.time() - 62 * MINUTE
    assert moment(points[-1]) < time.time() - 39 * MINUTE
    table = hpj("metrics", RUN, "--by-node").ok().out.splitlines()
    assert [line.split()[:3] for line in table[1:]] == [[first, "20", "%"], [second, "30", "%"]]
    assert f"{RUN} on {OBSERVED}: 2" in hpj("metrics", RUN).ok().out
    asked = {call.action for call in example.calls}
    assert "sagemaker:ListClusterNodes" not in asked


def test_pods_of_another_name_are_counted_by_whole_nodes_and_that_is_said(clusters, home, hpj):
    name = f"hyperpod-{clusters[OBSERVED].nodes[0].instance_id}"
    run_of(home, "eks", "kubernetes", ([name], -60, -40), run_id="other-run")
    whole = hpj("metrics", "other-run", "--json").ok().json["hardware"]["whole"]
    assert means(whole)["gpu-memory"] == 37.5
    assert "including other jobs on them" in whole["notes"][0]


def test_with_slurm_by_the_hosts_and_only_while_the_run_was_there(clusters, home, hpj):
    hosts = [host_of(node) for node in clusters["ml-cluster"].nodes]
    run_of(home, "ml", "slurm", (hosts[1:3], -60, -45), (hosts[2:4], -30, -10))
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    by_node = {one["node"]: one["metrics"][0]["points"] for one in found["nodes"]}
    assert by_node.keys() == set(hosts[1:4])
    first, both, second = (by_node[name] for name in hosts[1:4])
    assert moment(first[-1]) < time.time() - 44 * MINUTE
    assert moment(second[0]) > time.time() - 32 * MINUTE
    assert len(both) == len(first) + len(second)
    assert {point["value"] for point in first} == {30.0}
    whole = {point["time"]: point["value"] for point in found["whole"]["metrics"][0]["points"]}
    assert whole[first[0]["time"]] == 35.0
    assert whole[second[-1]["time"]] == 45.0
    one = hpj("metrics", RUN, "--attempt", "2", "--json").ok().json["hardware"]
    assert {node["node"] for node in one["nodes"]} == set(hosts[2:4])
    assert moment(one["whole"], "begin") > time.time() - 32 * MINUTE


def test_a_run_that_runs_is_shown_up_to_now(clusters, home, hpj):
    hosts = [host_of(node) for node in clusters["ml-cluster"].nodes]
    run_of(home, "ml", "slurm", (hosts[1:2], -20, 0), ended=False)
    whole = hpj("metrics", RUN, "--json").ok().json["hardware"]["whole"]
    assert abs(moment(whole, "end") - time.time()) < 20
    assert 17 <= len(whole["metrics"][0]["points"]) <= 21


def test_in_cloudwatch_by_the_nodes_of_eks(clusters, example, home, hpj):
    add_telemetry(example.account, REGION, hours=2)
    names = [f"hyperpod-{node.instance_id}" for node in clusters["research-eks"].nodes[:2]]
    run_of(home, "plain", "kubernetes", (names, -60, -30))
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    assert found["whole"]["source"] == "CloudWatch"
    assert {one["node"] for one in found["nodes"]} == set(names)
    assert len(found["whole"]["metrics"]) == 8
    assert found["whole"]["missing"] == []
    assert "including other jobs on them" in found["whole"]["notes"][0]
    (call,) = [call for call in example.calls if call.action == "cloudwatch:GetMetricData"]
    assert len(call.given["MetricDataQueries"]) == 16  # of these nodes only


def test_a_cluster_by_its_arn_is_asked_for_in_its_own_region(clusters, example, home, hpj):
    far = example.account.add_cluster(
        "far", "eu-west-1", orchestrator=example.account.eks("far", "eu-west-1")
    )
    far.add_group("accelerated", "ml.p5.48xlarge", 2)
    add_telemetry(example.account, "eu-west-1", hours=2)
    with home.config.open("a") as config:
        config.write(f'[clusters.far]\norchestrator = "kubernetes"\nhyperpod = "{far.arn}"\n')
    names = [f"hyperpod-{node.instance_id}" for node in far.nodes]
    run_of(home, "far", "kubernetes", (names, -60, -30))
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    assert found["whole"]["cluster"] == "far"
    assert {one["node"] for one in found["nodes"]} == set(names)
    assert {call.region for call in example.calls} == {"eu-west-1"}


def test_in_cloudwatch_the_gpus_of_the_run_are_those_of_its_pods(clusters, example, home, hpj):
    add_telemetry(example.account, REGION, hours=2)
    names = [f"hyperpod-{node.instance_id}" for node in clusters["research-eks"].nodes[:2]]
    run_of(home, "plain", "kubernetes", (names, -60, -30))
    minutes = [datetime.now(UTC) - timedelta(minutes=ago) for ago in range(50, 40, -1)]
    own = object_name(RUN)
    for pod, use in (
        (f"{own}-master-0", 10.0),
        (f"{own}-worker-0", 30.0),
        (f"{own}0-worker-0", 90.0),
    ):
        on = {"ClusterName": "research", "Namespace": "default", "PodName": own, "FullPodName": pod}
        for dimensions in (on, {**on, "GpuDevice": "nvidia0"}):
            example.account.telemetry.measure(
                *(REGION, "ContainerInsights", "pod_gpu_utilization", dimensions),
                [(minute, use) for minute in minutes],
            )
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    by_name = {one["name"]: one for one in found["whole"]["metrics"]}
    assert by_name["gpu-utilization"]["mean"] == 20.0
    assert len(by_name["gpu-utilization"]["points"]) == 10
    # What CloudWatch does not have of pods is that of the nodes.
    assert len(by_name["gpu-temperature"]["points"]) > 25
    assert found["whole"]["notes"] == [
        "GPU values of the run cover its own pods; those of a single node cover all its GPUs, including other jobs'"
    ]
    assert means(found["nodes"][0])["gpu-utilization"] != 20.0


def test_nodes_of_which_nobody_knows_anything(clusters, example, home, hpj):
    run_of(home, "plain", "kubernetes", (["hyperpod-i-gone"], -60, -30))
    found = hpj("metrics", RUN, "--json").ok().json["hardware"]
    assert (found["nodes"], found["whole"]["metrics"]) == ([], [])
    assert "has metrics of the run's nodes" in found["whole"]["notes"][0]
    assert [call for call in example.calls if call.action == "cloudwatch:GetMetricData"] == []


def test_a_node_s_name_never_becomes_part_of_a_query(clusters, example, home, hpj):
    """Records lie in the run's folder, which its own code can write."""
    evil = 'x"} or vector(1) or up{a="'
    run_of(home, "eks", "kubernetes", ([evil], -60, -30))
    done = hpj("metrics", RUN, "--json").ok().json["hardware"]
    assert done["whole"]["metrics"] == []
    assert not any(call.action == "aps:QueryMetrics" for call in example.calls)


@pytest.mark.parametrize(
    ("cluster", "orchestrator", "message", "hint"),
    [
        ("local", "local", "ran on this machine", None),
        ("unknown", "kubernetes", "does not name the HyperPod cluster", 'hyperpod = "NAME"'),
        ("removed", "slurm", "does not name the HyperPod cluster", "[clusters.removed]"),
        ("ml-plain", "slurm", "no metrics of single nodes", "prometheus"),
    ],
)
def test_runs_of_which_there_are_none(clusters, home, hpj, cluster, orchestrator, message, hint):
    run_of(home, cluster, orchestrator, (["n0"], -60, -30))
    found = hpj("metrics", RUN, "--json").ok().json
    problem = found["hardware_problem"]
    assert (found["hardware"], problem["code"]) == (None, "unsupported")
    assert message in problem["message"]
    assert (hint or "") in (problem["hint"] or "")
    assert (hint is None) == (problem["hint"] is None)


def test_a_run_or_an_attempt_that_is_not_there_or_has_not_begun(clusters, home, hpj):
    assert hpj("metrics", "20260101-000000-abc", "--json").code == 3
    run_of(home, "ml", "slurm", run_id="not-begun")
    found = hpj("metrics", "not-begun", "--json").ok().json
    assert found["hardware_problem"]["code"] == "wrong_state"
    host = host_of(clusters["ml-cluster"].nodes[1])
    run_of(home, "ml", "slurm", ([host], -60, -30))
    done = hpj("metrics", RUN, "--attempt", "7", "--json")
    assert (done.code, done.error["detail"]["field"]) == (3, "attempt")


def test_the_mean_of_courses_and_what_lies_within():
    one = TimeSeries(GPU, ((0.0, 10.0), (60.0, 20.0)))
    other = TimeSeries(GPU, ((60.0, 40.0), (120.0, 6.0)))
    assert mean_series([one, other]).points == ((0.0, 10.0), (60.0, 30.0), (120.0, 6.0))
    assert clip(other, [(0.0, 61.0)], 60).points == ((60.0, 40.0),)
    assert clip(other, [(125.0, float("inf"))], 60).points == ((120.0, 6.0),)
    assert clip(other, [(180.0, 200.0)], 60).points == ()
    assert clip(other, [], 60).points == ()


def test_noise_in_the_last_digits_of_a_rate_is_not_told():
    told = to_plain(TimeSeries(GPU, ((0.0, 1999999999.9999995), (60.0, 2000000000.0))))
    assert {told[name] for name in ("last", "mean", "lowest", "highest")} == {2e9}
    assert [point["value"] for point in told["points"]] == [2e9, 2e9]
    assert to_plain(TimeSeries(GPU, ((0.0, 12.3456789),)))["last"] == 12.3456789
