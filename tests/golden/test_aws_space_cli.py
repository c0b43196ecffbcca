"""``--json`` of the commands that look at the storage and the place, in a space of Studio."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.state import DataRepositoryTask, Profile
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import REGION, endpoint, home, hpj, no_aws
from tests.cli.conftest import Home
from tests.golden.aws_golden import Frozen, example, frozen

__all__ = ["endpoint", "example", "frozen", "home", "hpj", "no_aws"]

OF_AWS = ("studio", "aws", "space", "HyperPod", "FSx for Lustre", "security groups", "names at AWS")

CONFIG = """
[storage]
path = "{point}"
[clusters.train]
orchestrator = "slurm"
hyperpod = "ml-cluster"
storage = "/fsx/alice"
"""


@pytest.fixture
def studio(
    example: Endpoint, no_aws: pytest.MonkeyPatch, tmp_path: Path, home: Home
) -> SimulatedStudio:
    """A space whose partition is the folder /alice of a file system, of which /alice/data is linked to S3; no lfs."""
    made = SimulatedStudio(tmp_path / "studio", REGION)
    made.write(example.account)
    (made.mount_point / "data").mkdir(parents=True)
    made.mount_point.chmod(0o700)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    no_aws.setenv("PATH", os.devnull)
    home.config.write_text(CONFIG.format(point=made.mount_point))
    example.account.profiles["d-example", "alice"] = Profile(uid=12001)
    example.account.tasks[REGION] = [
        DataRepositoryTask(f"task-{1:017x}", "fs-0aaaaaaaaaaaaaaaa", "EXPORT_TO_REPOSITORY")
    ]
    return made


def test_storage(studio: SimulatedStudio, example: Endpoint, frozen: Frozen) -> None:
    frozen("storage", "storage")
    frozen("storage-no-aws", "storage", "--no-aws")
    frozen("storage-path", "storage", str(studio.mount_point / "data"))
    example.faults.deny("fsx:DescribeFileSystems")
    frozen("storage-denied", "storage")


def test_storage_tasks(studio: SimulatedStudio, example: Endpoint, frozen: Frozen) -> None:
    data = str(studio.mount_point / "data")
    frozen("storage-export", "storage", "export", data, "--by", "aws")
    frozen("storage-import", "storage", "import", data)
    release = ("storage", "release", data, "--by", "aws", "--unused-for", "30")
    frozen("storage-release", *release)
    frozen("storage-hydrate", "storage", "hydrate", data, "--by", "aws")
    frozen("storage-state", "storage", "state", data)
    frozen("storage-tasks", "storage", "tasks")
    task = example.account.tasks[REGION][-1].task_id
    frozen("storage-cancel", "storage", "cancel", task)
    frozen("storage-cancel-unknown", "storage", "cancel", f"task-{9:017x}")
    frozen("storage-export-outside", "storage", "export", str(studio.folder), "--by", "aws")
    example.faults.deny("fsx:CreateDataRepositoryTask")
    frozen("storage-export-denied", "storage", "export", data, "--by", "aws")


def test_doctor(studio: SimulatedStudio, example: Endpoint, frozen: Frozen) -> None:
    frozen("doctor", "doctor")
