"""A HyperPod cluster at AWS' test endpoint that has login nodes."""

from __future__ import annotations

import pytest

from hyperpod_jlab.aws.session import forget_session
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import ACCESS_KEY, client_environment
from testbed.aws.server import AwsServer

REGION = "us-west-2"


@pytest.fixture
def endpoint(monkeypatch, tmp_path):
    """An account with a cluster that has two login nodes, one controller and four workers."""
    with AwsServer(Endpoint()) as server:
        for name, value in client_environment(server.url, REGION).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("RESOURCE_METADATA_FILE", str(tmp_path / "no-metadata.json"))
        account = server.endpoint.account
        account.add_caller(ACCESS_KEY)
        cluster = account.add_cluster("ml", REGION, orchestrator={"Slurm": {}})
        cluster.add_group("doors", "ml.c5.xlarge", 2, slurm_node_type="Login")
        cluster.add_group("head", "ml.c5.xlarge", 1, slurm_node_type="Controller")
        cluster.add_group("workers", "ml.p5.48xlarge", 4, slurm_node_type="Compute")
        forget_session()
        yield server.endpoint
        assert server.endpoint.drift == []
    forget_session()


@pytest.fixture
def cluster(endpoint):
    return endpoint.account.clusters[REGION][0]


def names(cluster, group):
    """The hosts of a group, as AWS calls them."""
    nodes = sorted((one for one in cluster.nodes if one.group == group), key=lambda one: one.instance_id)  # fmt: skip
    return tuple(f"ip-{one.address.replace('.', '-')}.{REGION}.compute.internal" for one in nodes)
