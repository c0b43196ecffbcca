"""An AWS account on loopback, credentials that are good for nothing else, and no other AWS configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.engines.kubernetes.kinds.kind import object_name
from hyperpod_jlab.features.mlflow import service
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.observability import observe_eks, observe_slurm, scrapes
from testbed.aws.server import AwsServer
from testbed.aws.state import Account, Cluster
from testbed.prometheus import Prometheus
from tests.cli.conftest import home, hpj

__all__ = ["home", "hpj"]

REGION = "us-west-2"
KEY = "AKIATESTBEDEXAMPLE01"


OBSERVED = "observed-eks"
"""A HyperPod cluster whose EKS cluster (``observed``) may have the observability add-on; the other ones have none."""

RUN = "train-20261122-1600"
"""A run, pods of which have one GPU of each of the first two nodes of the cluster `OBSERVED`."""


def observed_account() -> Account:
    """The example's account, and a cluster more."""
    account = example_account(REGION)
    add_observed(account)
    return account


def add_observed(account: Account) -> Cluster:
    """Add the cluster `OBSERVED`."""
    cluster = account.add_cluster(OBSERVED, REGION, orchestrator=account.eks("observed", REGION))
    cluster.add_group("accelerated", "ml.p5.48xlarge", 3)
    for at, node in enumerate(cluster.nodes):
        node.address = f"10.9.0.{at + 1}"
    return cluster


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """A Prometheus that knows two hours of the example's two clusters on EKS and of its one with Slurm.

    GPUs of node N of the cluster `OBSERVED` are used to 10 * N + 20 percent, in the last half hour 5 more; of the others to 99.
    """
    account = observed_account()
    slurm, eks, *_, observed = account.clusters[REGION]
    scraped = scrapes(hours=2)
    late = len(scraped.times) - 60
    pods = {
        node.instance_id: (f"{object_name(RUN)}-worker-{at}", "other") for at, node in enumerate(observed.nodes[:2])
    }
    observe_eks(scraped, observed, lambda node, at: 20 + 10 * node + 5 * (at >= late), pods)
    observe_eks(scraped, eks, lambda _node, _at: 99.0)
    observe_slurm(scraped, slurm, lambda node, _at: 30.0 + 10 * node)
    with Prometheus(scraped) as server:
        yield server


_load_file = JSONFileLoader.load_file


@cache
def load_once(path: str) -> Any:
    """A file of botocore's models. Every session reads those of its services (EC2: half a second), and tests make a thousand sessions."""
    return _load_file(JSONFileLoader(), path)


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Nothing of AWS is configured, no EC2 metadata are asked for, this is not Studio."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-aws-credentials"))
    monkeypatch.setenv("RESOURCE_METADATA_FILE", str(tmp_path / "no-metadata.json"))
    monkeypatch.setattr(JSONFileLoader, "load_file", lambda _loader, path: load_once(path))
    forget_session()
    yield monkeypatch
    forget_session()


@pytest.fixture
def patient_mlflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads a run in MLflow waits for the answer, as long as that takes on a busy machine."""
    monkeypatch.setattr(service, "TIMEOUT_S", 30.0)


@pytest.fixture
def endpoint(no_aws: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An account without clusters, in which our key may do everything; no answer of it may leave botocore's model."""
    made = Endpoint()
    made.account.add_caller(KEY)
    no_aws.setenv("AWS_REGION", REGION)
    no_aws.setenv("AWS_ACCESS_KEY_ID", KEY)
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "of-the-testbed")
    with AwsServer(made) as server:
        no_aws.setenv("AWS_ENDPOINT_URL", server.url)
        yield made
    assert made.drift == []
