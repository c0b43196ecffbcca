"""``--json`` of the commands that look at AWS."""

from __future__ import annotations

import sys

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.events import event_id
from testbed.aws.observability import install_addon
from testbed.prometheus import Prometheus
from tests.aws.conftest import KEY, OBSERVED, REGION, add_observed, endpoint, home, hpj, no_aws
from tests.cli.conftest import Home
from tests.golden.aws_golden import Frozen, endpoint_url, example, frozen, one_point, prometheus

__all__ = ["endpoint", "example", "frozen", "home", "hpj", "no_aws", "prometheus"]

ON_SLURM = ("--cluster", "ml-cluster")
ON_EKS = ("--cluster", "research-eks")


def test_clusters(example: Endpoint, frozen: Frozen, home: Home) -> None:
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    frozen("clusters", "clusters")
    frozen("clusters-page", "clusters", "--limit", "1", varying=["next"])
    frozen("clusters-elsewhere", "clusters", "--region", "eu-central-1")
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    frozen("clusters-not-described", "clusters")


def test_nodes(example: Endpoint, frozen: Frozen) -> None:
    frozen("nodes-slurm", "nodes", *ON_SLURM)
    frozen("nodes-eks", "nodes", *ON_EKS)
    frozen("nodes-empty", "nodes", "--cluster", "first-try")


@pytest.mark.parametrize("action", ["reboot", "replace"])
def test_node_actions(example: Endpoint, frozen: Frozen, action: str) -> None:
    act = ("node", action, "ip-10-0-0-2", "ip-10-9-9-9", *ON_SLURM)
    frozen(f"node-{action}-preview", *act, "--dry-run")
    frozen(f"node-{action}-not-confirmed", *act)
    frozen(f"node-{action}", *act, "--yes")
    controller = ("node", action, "ip-10-0-0-1", *ON_SLURM)
    frozen(f"node-{action}-controller", *controller, "--yes")
    node = example.account.clusters[REGION][1].nodes[0].instance_id
    frozen(f"node-{action}-eks", "node", action, node, *ON_EKS, "--dry-run")
    example.faults.deny(f"sagemaker:Batch{action.capitalize()}ClusterNodes")
    frozen(f"node-{action}-denied", "node", action, "ip-10-0-0-3", *ON_SLURM, "--yes")


def test_events(example: Endpoint, frozen: Frozen) -> None:
    frozen("events", "events", *ON_EKS)
    frozen("events-page", "events", *ON_EKS, "--limit", "1", varying=["next"])
    frozen("events-errors", "events", *ON_EKS, "--level", "error", "--of", "instance")
    eks = example.account.clusters[REGION][1]
    frozen("event", "events", *ON_EKS, "--event", event_id(eks, eks.events[1]))
    frozen("event-unknown", "events", *ON_EKS, "--event", "00000000-0000-0000-0000-000000000000")
    frozen("events-none-kept", "events", *ON_SLURM)


def test_node_logs(example: Endpoint, frozen: Frozen) -> None:
    frozen("node-logs-list", "node-logs", *ON_SLURM)
    frozen("node-logs", "node-logs", "ip-10-0-0-2", *ON_SLURM)
    frozen("node-logs-health", "node-logs", "ip-10-0-0-2", *ON_SLURM, "--log", "health")
    frozen("node-logs-no-node", "node-logs", "ip-10-9-9-9", *ON_SLURM)
    frozen("node-logs-no-group", "node-logs", *ON_EKS)


def test_metrics(example: Endpoint, frozen: Frozen) -> None:
    frozen("metrics-cluster", "metrics", *ON_EKS, change=one_point)
    frozen("metrics-by-node", "metrics", *ON_EKS, "--by-node", change=one_point)
    node = example.account.clusters[REGION][1].nodes[0].instance_id
    frozen("metrics-node", "metrics", *ON_EKS, "--node", node, change=one_point)
    frozen("metrics-none", "metrics", *ON_SLURM)


def test_metrics_of_prometheus(example: Endpoint, frozen: Frozen, prometheus: Prometheus) -> None:
    add_observed(example.account)
    install_addon(example.account, REGION, "observed", endpoint_url(), prometheus.url)
    frozen("metrics-prometheus", "metrics", "--cluster", OBSERVED, change=one_point)


def test_quotas_and_ways_in(example: Endpoint, frozen: Frozen) -> None:
    frozen("quotas", "quotas", *ON_EKS)
    frozen("quotas-slurm", "quotas", *ON_SLURM)
    frozen("terminal", "terminal", "ip-10-0-0-2", *ON_SLURM)
    frozen("terminal-no-node", "terminal", "ip-10-9-9-9", *ON_SLURM)
    frozen("ssh-config", "ssh-config", *ON_SLURM, "--user", "alice")
    frozen("ssh-config-eks", "ssh-config", *ON_EKS, "--user", "alice")
    frozen("config-add", "config", "add", "ml-cluster", "--dry-run")
    login = ("--login-node", "alice@login.example.com")
    frozen("config-add-login", "config", "add", "ml-cluster", "--dry-run", *login)
    frozen("config-add-eks", "config", "add", "research-eks", "--dry-run")
    frozen("config-add-unknown", "config", "add", "nope", "--dry-run")


ERRORS = (
    (("clusters",), "sagemaker:ListClusters"),
    (("nodes", *ON_SLURM), "sagemaker:ListClusterNodes"),
    (("events", *ON_EKS), "sagemaker:ListClusterEvents"),
    (("node-logs", *ON_SLURM), "logs:DescribeLogStreams"),
    (("metrics", *ON_EKS), "cloudwatch:GetMetricData"),
    (("quotas", *ON_EKS), "sagemaker:ListComputeQuotas"),
    (("terminal", "ip-10-0-0-2", *ON_SLURM), "sagemaker:ListClusterNodes"),
)


@pytest.mark.parametrize(("words", "action"), ERRORS, ids=[words[0] for words, _ in ERRORS])
def test_errors_of_each_command(example: Endpoint, frozen: Frozen, words: tuple[str, ...], action: str) -> None:
    if words[0] != "clusters":
        frozen(f"error-unknown-{words[0]}", *words[:-1], "nope")
        frozen(f"error-no-name-{words[0]}", *words[:-1], "x y")
    example.faults.deny(action)
    frozen(f"error-denied-{words[0]}", *words)


def test_errors_of_the_way_to_aws(example: Endpoint, frozen: Frozen, no_aws: pytest.MonkeyPatch) -> None:
    words = ("nodes", "ml-cluster")
    example.faults.throttled["sagemaker:ListClusterNodes"] = 100
    frozen("error-throttled", *words)
    example.faults.throttled.clear()
    example.faults.broken["sagemaker:ListClusterNodes"] = 100
    frozen("error-broken", *words)
    example.account.add_caller("AKIAEXPIRED", expired=True)
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIAEXPIRED")
    frozen("error-expired", *words)
    no_aws.setenv("AWS_ACCESS_KEY_ID", "AKIANOBODY")
    frozen("error-invalid-credentials", *words)
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    frozen("error-no-credentials", *words)
    no_aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "of-the-testbed")
    no_aws.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    frozen("error-unreachable", *words)
    no_aws.setenv("AWS_PROFILE", "nobody")
    frozen("error-no-profile", *words)
    no_aws.delenv("AWS_PROFILE")
    no_aws.delenv("AWS_REGION")
    frozen("error-no-region", *words)
    frozen("error-bad-region", "clusters", "--region", "../x")
    no_aws.setitem(sys.modules, "boto3", None)
    frozen("error-no-boto3", *words, "--region", REGION)
