"""REST answers about HyperPod clusters."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from hyperpod_jlab.aws.signed import CallMeter
from testbed.aws.endpoint import Endpoint
from testbed.aws.events import event_id
from testbed.aws.observability import install_addon
from testbed.prometheus import Prometheus
from tests.aws.conftest import OBSERVED, REGION, add_observed, endpoint, no_aws
from tests.aws.test_call_meter import meter
from tests.conftest import home
from tests.golden.aws_golden import endpoint_url, example, one_point, prometheus
from tests.golden.aws_rest_golden import FrozenRest, rest
from tests.server.conftest import *  # noqa: F403 - the server under test

__all__ = ["endpoint", "example", "home", "meter", "no_aws", "prometheus", "rest"]

SLURM, EKS = "clusters/ml-cluster", "clusters/research-eks"


async def test_clusters(example: Endpoint, rest: FrozenRest) -> None:
    await rest.get("clusters", "clusters")
    await rest.get("clusters-sorted", "clusters", filter="KUBERNETES", sort="-nodes", limit="1")
    await rest.get("clusters-page", "clusters", limit="1", varying=["next"])
    await rest.get("clusters-elsewhere", "clusters", region="eu-central-1")
    await rest.get("cluster-slurm", SLURM)
    await rest.get("cluster-eks", EKS)
    await rest.get("cluster-failed", "clusters/first-try")
    await rest.get("cluster-arn", f"clusters/{example.account.clusters[REGION][2].arn}")
    await rest.get("nodes-slurm", f"{SLURM}/nodes")
    await rest.get("nodes-eks", f"{EKS}/nodes", limit="2", varying=["next"])
    await rest.get("governance", f"{EKS}/governance")
    await rest.get("governance-none", f"{SLURM}/governance")
    await rest.get("error-unknown-cluster", "clusters/nope")
    await rest.get("error-unknown-cluster-nodes", "clusters/nope/nodes")
    await rest.get("error-sort", "clusters", sort="colour")
    for action in ("ListClusters", "ListClusterNodes"):
        example.faults.deny(f"sagemaker:{action}")
    await rest.get("clusters-denied", "clusters", refresh="true")
    await rest.get("nodes-denied", f"{SLURM}/nodes", refresh="true")


async def test_without_the_right_to_look(example: Endpoint, rest: FrozenRest) -> None:
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    await rest.get("clusters-not-described", "clusters", filter="ml-cluster")
    example.faults.deny("sagemaker:ListClusters")
    await rest.get("error-denied", "clusters", region="us-east-1")


async def test_without_credentials(example: Endpoint, rest: FrozenRest, no_aws: pytest.MonkeyPatch) -> None:
    example.account.add_caller("AKIAEXPIRED", expired=True)
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAEXPIRED")
    await rest.get("error-expired", "clusters")
    no_aws.delenv("AWS_REGION")
    await rest.get("error-no-region", SLURM)


async def test_node_actions(example: Endpoint, rest: FrozenRest) -> None:
    await rest.get("node-actions", f"{SLURM}/nodes/actions")
    await rest.get("node-actions-eks", f"{EKS}/nodes/actions")
    await rest.get("node-actions-local", "clusters/local/nodes/actions")
    path = f"{SLURM}/nodes/actions"
    for action in ("reboot", "replace"):
        body = {"action": action, "nodes": ["ip-10-0-0-2", "ip-10-9-9-9", "ip-10-0-0-1"]}
        await rest.post(f"node-{action}-preview", f"{path}/preview", body)
        await rest.post(f"node-{action}", path, body)
    drain = {"action": "drain", "nodes": ["a"], "reason": "hot"}
    await rest.post("node-drain-preview", f"{path}/preview", drain)
    await rest.post("node-drain", path, drain)
    await rest.post("node-local", "clusters/local/nodes/actions", drain)
    await rest.post("node-local-preview", "clusters/local/nodes/actions/preview", drain)
    await rest.post("node-bad-action", path, {"action": "explode", "nodes": ["a"]})
    await rest.post("terminal", f"{SLURM}/nodes/ip-10-0-0-2/terminal", {})
    await rest.post("terminal-no-node", f"{SLURM}/nodes/ip-10-9-9-9/terminal", {})


async def test_events(example: Endpoint, rest: FrozenRest) -> None:
    path = f"{EKS}/events"
    await rest.get("events", path)
    await rest.get("events-page", path, level="warn", sort="time", limit="1", varying=["next"])
    eks = example.account.clusters[REGION][1]
    await rest.get("event", f"{path}/{event_id(eks, eks.events[1])}")
    await rest.get("event-unknown", f"{path}/00000000-0000-0000-0000-000000000000")
    await rest.get("events-none-kept", f"{SLURM}/events")
    await rest.get("events-bad-level", path, level="bad")
    example.faults.deny("sagemaker:ListClusterEvents")
    await rest.get("events-denied", path, refresh="true")


async def test_logs(example: Endpoint, rest: FrozenRest) -> None:
    await rest.get("logs", f"{SLURM}/logs", limit="3")
    await rest.get("logs-of-node", f"{SLURM}/nodes/ip-10-0-0-2/logs")
    await rest.get("log-lines", f"{SLURM}/logs/lines", node="ip-10-0-0-2", limit="3")
    node = example.account.clusters[REGION][0].nodes[1]
    kinds = ("LifecycleConfig", "SagemakerHealthMonitoringAgent")
    streams = ",".join(f"{kind}/{node.group}/{node.instance_id}" for kind in kinds)
    await rest.get("log-page", f"{SLURM}/logs/page", streams=streams)
    await rest.get("log-page-forward", f"{SLURM}/logs/page", streams=streams, direction="forward", limit="1")
    await rest.get("log-search", f"{SLURM}/logs/search", streams=streams, grep="ENDS$")
    found = {"streams": streams, "grep": "ENDS$", "ignore_case": "true"}
    await rest.get("log-search-any-case", f"{SLURM}/logs/search", **found)
    await rest.get("log-search-bad", f"{SLURM}/logs/search", streams=streams, grep="(")
    await rest.get("log-lines-no-node", f"{SLURM}/logs/lines", node="a")
    await rest.get("log-lines-what", f"{SLURM}/logs/lines")
    await rest.get("logs-no-group", f"{EKS}/logs")
    example.faults.deny("logs:DescribeLogStreams")
    await rest.get("logs-denied", f"{SLURM}/logs")


async def test_metrics(example: Endpoint, rest: FrozenRest) -> None:
    await rest.get("metrics", f"{EKS}/metrics", change=one_point)
    await rest.get("metrics-nodes", f"{EKS}/metrics/nodes", limit="2", change=one_point)
    await rest.get("metrics-none", f"{SLURM}/metrics")
    await rest.get("metrics-nodes-none", f"{SLURM}/metrics/nodes")
    await rest.get("metrics-no-node", f"{EKS}/metrics", node="a")
    await rest.get("metrics-bad-time", f"{EKS}/metrics", seconds="59")
    example.faults.deny("cloudwatch:GetMetricData")
    await rest.get("metrics-denied", f"{EKS}/metrics", seconds="7200")


async def test_metrics_of_prometheus_denied(example: Endpoint, rest: FrozenRest, prometheus: Prometheus) -> None:
    add_observed(example.account)
    install_addon(example.account, REGION, "observed", endpoint_url(), prometheus.url)
    example.faults.deny("aps:QueryMetrics")
    await rest.get("metrics-prometheus-denied", f"clusters/{OBSERVED}/metrics")


def by_name(told: dict[str, Any]) -> dict[str, Any]:
    """The operations in an order of their own."""
    names = itemgetter("service", "operation")
    return {**told, "operations": sorted(told["operations"], key=names)}


async def test_calls_and_regions(example: Endpoint, meter: CallMeter, rest: FrozenRest) -> None:
    await rest.get("aws-calls-none", "aws/calls")
    await rest.get("clusters-first", "clusters", limit="1", varying=["next"])
    await rest.get("aws-calls", "aws/calls", change=by_name)

    def two(told: dict[str, list[str]]) -> dict[str, list[str]]:
        some = [one for one in told["regions"] if one in (REGION, "us-east-1")]
        return {**told, "regions": some}  # the others go by boto3's version

    await rest.get("aws-regions", "aws/regions", change=two)
