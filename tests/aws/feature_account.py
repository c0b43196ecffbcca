"""The account in which features are run (`feature_runs`), seen from a space of Studio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hyperpod_jlab.storage.mounts import own_cache_folder
from testbed.aws.endpoint import Endpoint
from testbed.aws.events import event_id
from testbed.aws.example import example_account
from testbed.aws.example_telemetry import add_telemetry
from testbed.aws.ground import TRUST
from testbed.aws.mlflow import add_mlflow
from testbed.aws.observability import install_addon
from testbed.aws.pricing import add_price_list
from testbed.aws.state import Event, Profile, Space
from testbed.aws.studio import ROOT_MOUNT, SimulatedStudio, whole_file_system
from testbed.aws.timeline import Timeline
from tests.aws.conftest import KEY, REGION, add_observed
from tests.cli.conftest import Home

ON_EKS = """
[clusters.on-eks]
orchestrator = "kubernetes"
eks = "research"
hyperpod = "research-eks"
storage = { claim = "fsx-claim", mount = "/fsx" }
"""


LIFECYCLE = """
cluster = "ml-cluster"
orchestrator = "slurm"
package = "hyperpod-jlab==0.1.0"
login_nodes = ["login.example.com"]
"""


class FeatureAccount:
    """An account with clusters, logs and metrics.

    Args:
        endpoint: Where it is.
        folder: Where files of it may lie.
        studio: The space that sees it.
        prometheus: Address of the Prometheus behind its workspace.
    """

    def __init__(self, endpoint: Endpoint, folder: Path, studio: SimulatedStudio, prometheus: str) -> None:
        self.endpoint = endpoint
        self._disk = folder / "fsx"
        self._disk.mkdir()
        self._studio = studio
        self._prometheus = prometheus
        self.begin()

    def begin(self) -> None:
        """Put all of it as it is at first; the key may do everything, and nothing is remembered here."""
        if (folder := own_cache_folder()) is not None:
            for name in ("instance-types.json", "price-list.json"):
                (folder / name).unlink(missing_ok=True)
            for file in folder.glob("nodes-*.json"):
                file.unlink()
        shutil.rmtree(self._disk)
        self._disk.mkdir()
        self.endpoint.account = account = example_account(REGION)
        account.add_caller(KEY)
        add_telemetry(account, REGION, hours=1)
        account.update_time = timedelta(0)
        account.timeline = Timeline(runs=True)
        account.ground.pace = 0
        account.ground.roles["Narrow"] = TRUST
        account.ground.failing["accelerated"] = "the GPU driver did not load"
        account.profiles["d-example", "bob"] = Profile()
        account.spaces["d-example", "empty"] = Space("alice")
        next(iter(account.networks[REGION].interfaces.values())).groups = []
        add_observed(account)
        where = os.environ["AWS_ENDPOINT_URL"]
        install_addon(account, REGION, "observed", where, self._prometheus)
        self._studio.write(account, others=ROOT_MOUNT + whole_file_system(self._disk))
        add_mlflow(account, REGION)
        add_price_list(account, REGION)
        eks = account.clusters[REGION][1]
        eks.events = [Event(datetime.now(UTC), "Scaling up.")]
        self.endpoint.calls.clear()

    @property
    def names(self) -> Mapping[str, str]:
        """What the command lines name by what the account has."""
        eks = self.endpoint.account.clusters[REGION][1]
        return {
            "event": event_id(eks, eks.events[0]),
            "eks_node": eks.nodes[0].instance_id,
            "linked": str(self._studio.mount_point / "data"),
            "tracking_server": self.endpoint.account.mlflow[REGION][0].arn,
            "mlflow_app": self.endpoint.account.mlflow[REGION][1].arn,
            "lifecycle": str(self._studio.folder / "lifecycle.toml"),
            "disk": str(self._disk),
        }


def space_of(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, folder: Path, home: Home, prometheus: str
) -> FeatureAccount:
    """The account, a space of Studio here, and a cluster of it in the configuration."""
    slurm = folder / "slurm"  # somebody's: a login node of which nobody knows whose
    slurm.mkdir()
    (slurm / "sinfo").write_text("#!/bin/sh\necho ip-10-9-9-9\n")
    (slurm / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slurm}{os.pathsep}{os.environ['PATH']}")
    studio = SimulatedStudio(folder, REGION)
    (studio.mount_point / "data").mkdir(parents=True)
    (folder / "lifecycle.toml").write_text(LIFECYCLE)
    for name, value in studio.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT", os.environ["AWS_ENDPOINT_URL"])
    with home.config.open("a") as config:
        config.write(ON_EKS)
    return FeatureAccount(endpoint, folder, studio, prometheus)
