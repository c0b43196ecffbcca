"""What the golden files of AWS share: the account, and how an answer of ``hpj`` becomes a document."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.engines.kubernetes.kinds.kind import object_name
from hyperpod_jlab.storage.owners import current_user
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.observability import observe_eks, scrapes
from testbed.aws.state import Account, Cluster, Event
from testbed.aws.telemetry import cluster_log_group
from testbed.prometheus import Prometheus
from tests.aws.conftest import REGION, RUN, observed_account
from tests.cli.conftest import Hpj, Result
from tests.golden.frozen import Golden

BEGUN = 1_780_000_000_000
"""Milliseconds of the first line of a log."""

HEX = re.compile(r"\b[0-9a-f]{12,}\b")
"""Ids of what is in an account."""


def ids_of(account: Account) -> frozenset[str]:
    """The ids in an account as it is made, which are the same in every run."""
    known = (account.clusters, account.file_systems, account.networks, account.quotas)
    return frozenset(HEX.findall(repr((known, account.policies))))


def one_point(told: Any) -> Any:
    """The same with one point of each curve: how many there are depends on the minute."""
    if isinstance(told, dict):
        return {key: one[:1] if key == "points" else one_point(one) for key, one in told.items()}
    return [one_point(one) for one in told] if isinstance(told, list) else told


def _documents(text: str) -> Any:
    """Standard output: one document, one on each line, or a text."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text


def _error(text: str) -> Any:
    """The error on standard error, or None."""
    last = (text.splitlines() or [""])[-1]
    return json.loads(last) if last.startswith('{"') else None


@dataclass(frozen=True)
class Frozen:
    """Runs ``hpj`` with ``--json`` and compares what it says with a golden file."""

    hpj: Hpj
    golden: Golden
    endpoint: Endpoint

    def __call__(
        self,
        name: str,
        *words: str,
        varying: Iterable[str] = (),
        also: Mapping[str, str] | None = None,
        change: Callable[[Any], Any] = lambda told: told,
        change_error: Callable[[Any], Any] = lambda told: told,
    ) -> Result:
        """Compare; a command is a process of its own, so nothing of AWS is remembered."""
        forget_session()
        fixed = ids_of(self.endpoint.account)
        done = self.hpj(*words, "--json")
        document = {
            "command": f"hpj {' '.join(words)} --json",
            "exit": done.code,
            "out": change(_documents(done.out)),
            "error": change_error(_error(done.err)),
        }
        self.golden.check(f"aws-cli/{name}", document, varying=varying, also=also, fixed=fixed)
        return done


@pytest.fixture
def frozen(hpj: Hpj, golden: Golden, endpoint: Endpoint, no_aws: pytest.MonkeyPatch) -> Frozen:
    """Compares what ``hpj`` says with golden files; ``PATH`` is empty, so no Slurm client is found."""
    no_aws.setenv("PATH", os.devnull)
    return Frozen(hpj, golden, endpoint)


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """A Prometheus that knows two hours of the cluster `OBSERVED`: each node has values that stay."""
    *_, observed = observed_account().clusters[REGION]
    scraped = scrapes(hours=2)
    pods = {
        node.instance_id: (f"{object_name(RUN)}-worker-{at}", "other") for at, node in enumerate(observed.nodes[:2])
    }
    observe_eks(scraped, observed, lambda node, _at: 20.0 + 10 * node, pods)
    with Prometheus(scraped) as server:
        yield server


@pytest.fixture
def example(endpoint: Endpoint) -> Endpoint:
    """The example's account, with a few logs, measurements and events of known values."""
    endpoint.account = example_account(REGION)
    fill(endpoint.account)
    return endpoint


def fill(account: Account) -> None:
    """Add logs, measurements and events: values that do not go by the clock."""
    slurm, eks = account.clusters[REGION][:2]
    _write(account, slurm, "LifecycleConfig", 0)
    _write(account, slurm, "SagemakerHealthMonitoringAgent", 350)
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    minutes = [now - timedelta(minutes=ago) for ago in range(90, -1, -1)]
    for at, node in enumerate(eks.nodes[:2]):
        on = {"ClusterName": "research"}
        dimensions = {**on, "InstanceId": node.instance_id, "NodeName": f"hyperpod-{node.instance_id}"}
        for name, value in (("node_cpu_utilization", 20.0), ("node_gpu_utilization", 60.0)):
            values = [(minute, value + at) for minute in minutes]
            for where in (on, dimensions):
                account.telemetry.measure(REGION, "ContainerInsights", name, where, values)
    failed: dict[str, Any] = {"level": "Error", "resource": "Instance", "group": "accelerated"}
    why = {"Instance": {"FailureMessage": "Lifecycle script exited with code 1"}}
    grown: dict[str, Any] = {"resource": "InstanceGroup", "group": "general"}
    eks.events = [
        Event(now - timedelta(hours=3), "Scaling up.", **grown),
        Event(
            now - timedelta(hours=2), "Node is unhealthy.", instance=eks.nodes[0].instance_id, metadata=why, **failed
        ),
        Event(now - timedelta(hours=1), "Lost orchestration-ready.", level="Warn"),
    ]


def _write(account: Account, cluster: Cluster, log: str, after: int) -> None:
    """Two lines into a log of each node, and a third into that of the last."""
    group = cluster_log_group(cluster.name, cluster.arn)
    for number, node in enumerate(cluster.nodes):
        begun = BEGUN + number * 10_000 + after
        lines = [(begun, f"{log} begins"), (begun + 700, f"{log} \u00fc ends")]
        account.telemetry.write(REGION, group, f"{log}/{node.group}/{node.instance_id}", lines)


def no_parents(told: Any) -> Any:
    """The answer about the storage, without the parent folders of the test's folder."""
    if "separation" in told:
        told["separation"] = dict.fromkeys(told["separation"])
    return told


OF_THE_MACHINE = ("free", "total", "files_free", "writable")
"""Keys of the storage's state on the machine."""


def whose() -> dict[str, str]:
    """The user, as storage names him."""
    return {f"belongs to {current_user()} (uid {os.getuid()})": "belongs to <user> (uid <uid>)"}


def endpoint_url() -> str:
    """Where the endpoint is."""
    return os.environ["AWS_ENDPOINT_URL"]
