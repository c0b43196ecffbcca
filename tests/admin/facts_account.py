"""An account for ``hpj doctor --aws`` in which all is as believed, and each fact's way to be false."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.ground import InstanceType
from testbed.aws.observability import install_addon
from testbed.aws.state import Account
from testbed.loopback import Handler, Loopback
from tests.admin.conftest import DOMAIN, domain_account
from tests.aws.conftest import REGION

LABELS = {"Hostname": "hyperpod-i-0123456789abcdef0", "gpu": "0"}


def workspace(labels: Mapping[str, str]) -> Loopback:
    """A Prometheus that knows one GPU, with these labels."""

    class Series(Handler):
        def take(self) -> None:
            self.body()
            series = [{"metric": dict(labels), "values": [[1.0, "50"]]}]
            data = {"resultType": "matrix", "result": series}
            told = json.dumps({"status": "success", "data": data}).encode()
            self.answer(200, told, {"Content-Type": "application/json"})

    return Loopback(Series)


def record(name: str, **given: str) -> dict[str, Any]:
    """A record of CloudTrail."""
    return {
        "eventName": name,
        "eventID": f"00000000-0000-4000-8000-{len(name):012d}",
        "eventTime": "2026-01-06T08:00:00+00:00",
        "eventSource": "sagemaker.amazonaws.com",
        "userIdentity": {"arn": "arn:aws:sts::111122223333:assumed-role/Admin/jane@example.com"},
        "requestParameters": {"domainId": DOMAIN, **given},
    }


def believed_account() -> Account:
    """The account: a domain, a Slurm cluster and one on EKS, with logs, metrics and records of CloudTrail."""
    account = domain_account()
    account.update_time = timedelta(0)
    slurm = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    slurm.add_group("workers", "ml.g5.8xlarge", 2)
    eks = account.add_cluster("on-eks", REGION, orchestrator=account.eks("research", REGION))
    eks.add_group("workers", "ml.g5.8xlarge", 1)
    add_telemetry(account, REGION, hours=1)
    account.ground.add_types(InstanceType("g5.8xlarge"))
    account.trail = [record("CreateUserProfile", userProfileName="alice"), record("CreateSpace", spaceName="work")]
    return account


@pytest.fixture
def labels() -> dict[str, str]:
    """Labels of the GPU that the workspace knows."""
    return dict(LABELS)


@pytest.fixture
def believed(endpoint: Endpoint, labels: dict[str, str]) -> Iterator[Account]:
    """The account at the endpoint, with a workspace of Prometheus."""
    endpoint.account = account = believed_account()
    with workspace(labels) as prometheus:
        where = os.environ["AWS_ENDPOINT_URL"]
        install_addon(account, REGION, "research", where, prometheus.url)
        yield account


def _other_members(account: Account, name: str) -> None:
    for one in account.trail:
        if one["eventName"] == name:
            one["requestParameters"] = {"DomainId": DOMAIN}


def _other_streams(account: Account) -> None:
    for streams in account.telemetry.logs.values():
        lines = [line for some in streams.values() for line in some]
        streams.clear()
        streams["on_create"] = lines


def _other_metrics(account: Account, namespace: str) -> None:
    telemetry = account.telemetry
    some = [metric for metric in telemetry.measured if metric.namespace == namespace]
    for metric in some:
        values = telemetry.measured.pop(metric)
        on = {"ClusterName": "research"} if namespace == "ContainerInsights" else {}
        telemetry.measure(REGION, namespace, f"other_{metric.name}", on, values)


FALSE: Mapping[str, Callable[[Account], None]] = {
    "create-profile-event": lambda account: _other_members(account, "CreateUserProfile"),
    "create-space-event": lambda account: _other_members(account, "CreateSpace"),
    "node-target": lambda account: setattr(account, "nodes_are_connected", False),
    "ec2-knows-types": lambda account: account.ground.types.clear(),
    "node-log-names": _other_streams,
    "slurm-metrics": lambda account: _other_metrics(account, "/aws/sagemaker/Clusters"),
    "eks-node-metrics": lambda account: _other_metrics(account, "ContainerInsights"),
}
"""What makes each fact false, but for the labels of GPUs."""
