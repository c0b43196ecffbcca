"""``--json`` of the commands that look at AWS."""

from __future__ import annotations

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.events import event_id
from tests.aws.conftest import REGION, endpoint, home, hpj, no_aws
from tests.cli.conftest import Home
from tests.golden.aws_golden import Frozen, example, frozen

__all__ = ["endpoint", "example", "frozen", "home", "hpj", "no_aws"]

ON_SLURM = ("--hyperpod", "ml-cluster")
ON_EKS = ("--hyperpod", "research-eks")


def test_clusters(example: Endpoint, frozen: Frozen, home: Home) -> None:
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    frozen("clusters", "clusters", "--hyperpod")
    frozen("clusters-page", "clusters", "--hyperpod", "--limit", "1", varying=["next"])
    frozen("clusters-elsewhere", "clusters", "--hyperpod", "--region", "eu-central-1")
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    frozen("clusters-not-described", "clusters", "--hyperpod")


def test_nodes(example: Endpoint, frozen: Frozen) -> None:
    frozen("nodes-slurm", "nodes", *ON_SLURM)
    frozen("nodes-eks", "nodes", *ON_EKS)
    frozen("nodes-empty", "nodes", "--hyperpod", "first-try")


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
    frozen("metrics-cluster", "metrics", *ON_EKS)
    frozen("metrics-by-node", "metrics", *ON_EKS, "--by-node")
    node = example.account.clusters[REGION][1].nodes[0].instance_id
    frozen("metrics-node", "metrics", *ON_EKS, "--node", node)
    frozen("metrics-none", "metrics", *ON_SLURM)


def test_quotas_and_ways_in(example: Endpoint, frozen: Frozen) -> None:
    frozen("quotas", "quotas", *ON_EKS)
    frozen("quotas-slurm", "quotas", *ON_SLURM)
    frozen("terminal", "terminal", "ip-10-0-0-2", *ON_SLURM)
    frozen("terminal-no-node", "terminal", "ip-10-9-9-9", *ON_SLURM)
    frozen("ssh-config", "ssh-config", *ON_SLURM, "--user", "alice")
    frozen("ssh-config-eks", "ssh-config", *ON_EKS, "--user", "alice")
