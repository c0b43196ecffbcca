"""Metrics of runs over REST: a real server, real boto3, the testbed's AWS and a real Prometheus."""

from __future__ import annotations

import asyncio
import os

import pytest

from hyperpod_jlab.clusters.configuration import find_partition, load_settings
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.observability import host_of, install_addon
from tests.aws.conftest import OBSERVED, REGION, RUN, observed_account
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403
from tests.storage.forged_runs import forge_run

ASK = "aps:QueryMetrics"
CONFIG = f"""
[clusters.eks]
orchestrator = "kubernetes"
hyperpod = "{OBSERVED}"
[clusters.ml]
orchestrator = "slurm"
hyperpod = "ml-cluster"
"""


@pytest.fixture
def runs(endpoint, prometheus, cluster):
    """A run on each cluster: one with a workspace, one without, and this machine."""
    endpoint.account = observed_account()
    install_addon(
        *(endpoint.account, REGION, "observed"), os.environ["AWS_ENDPOINT_URL"], prometheus.url
    )
    with (cluster / "config.toml").open("a") as config:
        config.write(CONFIG)
    partition = find_partition(load_settings())
    clusters = {one.name: one for one in endpoint.account.clusters[REGION]}
    names = [f"hyperpod-{node.instance_id}" for node in clusters[OBSERVED].nodes]
    forge_run(partition, RUN, "eks", "kubernetes", (names[:2], -60, -40), (names[1:], -30, -20))
    hosts = [host_of(clusters["ml-cluster"].nodes[1])]
    forge_run(partition, "on-slurm", "ml", "slurm", (hosts, -60, -40))
    forge_run(partition, "here", "local", "local", (["n0"], -60, -40))
    return endpoint


def asked(endpoint, action=ASK):
    return [call.action for call in endpoint.calls].count(action)


async def test_the_mean_and_each_node_are_asked_for_once_a_minute(runs, api):
    path = f"runs/{RUN}/metrics"
    answers = await asyncio.gather(*(api.get(path) for _ in range(5)))
    assert all(answer == answers[0] for answer in answers)
    found = answers[0]
    assert (found["run_id"], len(found["nodes"])) == (RUN, 3)
    assert (found["whole"]["source"], found["whole"]["cluster"]) == ("Prometheus", OBSERVED)
    assert found["whole"]["metrics"][0]["name"] == "gpu-utilization"
    assert asked(runs) == 8
    second = await api.get(path, attempt="2")
    assert [one["node"] for one in second["nodes"]] == [one["node"] for one in found["nodes"][1:]]
    assert second["whole"]["begin"] > found["whole"]["begin"]
    assert asked(runs) == 16
    assert asked(runs, "eks:DescribeAddon") == 1


@pytest.mark.parametrize(
    ("path", "query", "status", "code"),
    [
        (RUN, {"attempt": "0"}, 400, "invalid_input"),
        (RUN, {"attempt": "3"}, 404, "not_found"),
        (RUN, {"seconds": "60"}, 400, "invalid_input"),
        ("20260101-000000-gone", {}, 404, "no_such_run"),
        ("here", {}, 422, "unsupported"),
        ("on-slurm", {}, 422, "unsupported"),
    ],
)
async def test_what_is_refused(runs, api, path, query, status, code):
    found, error = await api.request("GET", f"runs/{path}/metrics", query=query)
    assert (found, error["code"]) == (status, code)


async def test_a_missing_right_is_named(runs, api):
    runs.faults.deny("sagemaker:DescribeCluster")
    status, error = await api.request("GET", f"runs/{RUN}/metrics")
    assert (status, error["detail"]["right"]) == (403, {"action": "sagemaker:DescribeCluster"})
    runs.faults.denied.clear()
    runs.faults.deny(ASK)
    status, error = await api.request("GET", f"runs/{RUN}/metrics")
    assert (status, error["detail"]["right"]) == (403, {"action": ASK})
    add_telemetry(runs.account, REGION, hours=2)
    found = await api.get(f"runs/{RUN}/metrics")
    assert (found["whole"]["source"], len(found["nodes"])) == ("CloudWatch", 3)
    assert f"you do not have the permission {ASK}" in found["whole"]["notes"][0]


async def test_who_may_not_read_runs_sees_none(runs, api, authorizer):
    authorizer.answer = False
    status, _ = await api.request("GET", f"runs/{RUN}/metrics")
    assert status == 403
    assert asked(runs) == 0
    assert ("read", "hyperpod") in {
        (action, name.partition("_")[0]) for action, name in authorizer.asked
    }
