"""``--json`` of the commands that look at the storage and the place, in a space of Studio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.state import Profile
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import KEY, REGION, endpoint, home, hpj, no_aws
from tests.cli.conftest import Home
from tests.golden.aws_golden import OF_THE_MACHINE, Frozen, example, frozen, no_parents, whose

__all__ = ["endpoint", "example", "frozen", "home", "hpj", "no_aws"]

GROUPS = {"metadata", "role", "domain", "security-groups", "interfaces", "mount"}
"""Groups of the doctor's checks that look at AWS; the others look at the machine."""

CONFIG = """
[storage]
path = "{point}"
[clusters.train]
orchestrator = "slurm"
hyperpod = "ml-cluster"
storage = "/fsx/alice"
"""


@pytest.fixture
def studio(example: Endpoint, no_aws: pytest.MonkeyPatch, tmp_path: Path, home: Home) -> SimulatedStudio:
    """A space whose partition is the folder /alice of a file system, of which /alice/data is linked to S3; no lfs."""
    made = SimulatedStudio(tmp_path / "studio", REGION)
    made.write(example.account)
    (made.mount_point / "data").mkdir(parents=True)
    made.mount_point.chmod(0o700)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    home.config.write_text(CONFIG.format(point=made.mount_point))
    example.account.profiles["d-example", "alice"] = Profile(uid=12001)
    return made


def of_aws(told: Any) -> Any:
    """What the doctor says of AWS."""
    return {"checks": [one for one in told["checks"] if one["group"] in GROUPS]}


def error_of_aws(told: Any) -> Any:
    """The doctor's error without what goes by the machine: its words are those of the first that failed."""
    failed = [one for one in told["detail"]["failed"] if one["group"] in GROUPS]
    return {**told, "detail": {"failed": failed}, "message": "<text>", "hint": "<text>"}


def test_storage(studio: SimulatedStudio, example: Endpoint, frozen: Frozen) -> None:
    def storage(name: str, *words: str) -> None:
        frozen(name, "storage", *words, varying=OF_THE_MACHINE, also=whose(), change=no_parents)

    storage("storage")
    storage("storage-no-aws", "--no-aws")
    storage("storage-path", str(studio.mount_point / "data"))
    example.faults.deny("fsx:DescribeFileSystems")
    storage("storage-denied")


def test_storage_without_lfs(studio: SimulatedStudio, frozen: Frozen) -> None:
    data = str(studio.mount_point / "data")
    frozen("storage-hydrate", "storage", "hydrate", data)
    frozen("storage-state", "storage", "state", data)


def test_doctor(studio: SimulatedStudio, example: Endpoint, frozen: Frozen) -> None:
    def doctor(name: str) -> None:
        frozen(name, "doctor", change=of_aws, change_error=error_of_aws)

    doctor("doctor")
    example.faults.deny("sagemaker:DescribeSpace")
    example.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    example.faults.deny("fsx:DescribeFileSystems")
    studio.mount(None)
    doctor("doctor-denied")
    example.account.add_caller(KEY, expired=True)
    doctor("doctor-expired")
