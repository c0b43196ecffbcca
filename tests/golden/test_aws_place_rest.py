"""REST answers about the storage, the place and the start of the space."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import REGION, endpoint, no_aws
from tests.conftest import home
from tests.golden.aws_golden import OF_THE_MACHINE, no_parents, whose
from tests.golden.aws_rest_golden import FrozenRest, rest
from tests.golden.test_aws_space_cli import CONFIG, GROUPS
from tests.server.conftest import *  # noqa: F403 - the server under test
from tests.server.test_storage_files import ARCHIVED, RELEASED, fsx, root, states

__all__ = ["endpoint", "fsx", "home", "no_aws", "rest", "root", "states"]

LINK = "hyperpod-partition"
LIFECYCLE = {
    "version": 1,
    "app": "jupyterlab",
    "state": "failed",
    "started": "2026-01-06T09:00:00Z",
    "updated": "2026-01-06T09:01:00Z",
    "steps": [
        {"name": "package", "state": "done", "message": "hyperpod_jlab is there"},
        {"name": "client", "state": "failed", "message": "no such file"},
    ],
}


@pytest.fixture
def space(endpoint: Endpoint, no_aws: pytest.MonkeyPatch, tmp_path: Path, cluster: Path) -> SimulatedStudio:
    """A space of Studio, whose partition is the folder /alice of a file system."""
    endpoint.account = example_account(REGION)
    made = SimulatedStudio(tmp_path / "studio", REGION)
    made.write(endpoint.account)
    (made.mount_point / "data").mkdir(parents=True)
    made.mount_point.chmod(0o700)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    (cluster / "config.toml").write_text(CONFIG.format(point=made.mount_point))
    return made


async def test_storage(space: SimulatedStudio, endpoint: Endpoint, rest: FrozenRest) -> None:
    more = {"varying": OF_THE_MACHINE, "also": whose(), "change": no_parents}
    await rest.get("storage", "storage", **more)
    await rest.get("storage-no-aws", "storage", aws="false", **more)
    await rest.get("storage-bad", "storage", aws="perhaps")
    endpoint.faults.deny("fsx:DescribeFileSystems")
    await rest.get("storage-denied", "storage", **more)


def of_aws(told: Any) -> Any:
    """What the doctor says of AWS; how often he has told something is a matter of time."""
    return {
        **told,
        "checks": [one for one in told["checks"] if one["group"] in GROUPS],
        "stages": [one["stage"] for one in told["stages"]],
    }


async def test_doctor(space: SimulatedStudio, rest: FrozenRest) -> None:
    await rest.get("doctor-none", "doctor")
    await rest.get("doctor-no-report", "doctor/report")
    status, answer = await rest.api.request("POST", "doctor", {})
    assert (status, answer["state"]) == (200, "running")
    async with asyncio.timeout(60):
        while (await rest.api.get("doctor"))["state"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await rest.get("doctor", "doctor", change=of_aws, varying=["version"])
    await rest.get("doctor-report", "doctor/report", varying=["text", "name"])
    await rest.post("doctor-cancel", "doctor/cancel", change=of_aws, varying=["version"])
    await rest.post("doctor-unknown-cluster", "doctor", {"cluster": "nowhere"})


async def test_files(endpoint: Endpoint, rest: FrozenRest, states: Any, root: Path, no_aws: pytest.MonkeyPatch) -> None:
    endpoint.account = example_account(REGION)
    states(here=ARCHIVED, gone=RELEASED)
    also = {str(root): "<root>"}
    await rest.post("storage-link", "storage/link", {"name": LINK}, also=also)
    await rest.post("storage-link-again", "storage/link", {"name": LINK}, also=also)
    (root / "mine").write_text("mine")
    await rest.post("storage-link-taken", "storage/link", {"name": "mine"}, also=also)
    await rest.post("storage-link-bad-name", "storage/link", {"name": "../out"})
    await rest.get("storage-paths", "storage/paths", path=f"{LINK}/data", also=also)
    await rest.get("storage-paths-own", "storage/paths", path="mine", also=also)
    await rest.get("storage-paths-out", "storage/paths", path="../out", also=also)
    await rest.post("storage-states-no-lfs", "storage/files/states", {"paths": ["mine"]})
    no_aws.setenv("PATH", f"{root.parent / 'bin'}:/usr/bin:/bin")
    paths = [f"{LINK}/data/{name}" for name in ("here", "gone", "none")]
    await rest.post("storage-states", "storage/files/states", {"paths": paths}, also=also)
    body = {"paths": paths[:2], "action": "hydrate"}
    await rest.post("storage-hydrate", "storage/files/actions", body, also=also)


async def test_lifecycle(endpoint: Endpoint, rest: FrozenRest, tmp_path: Path, no_aws: pytest.MonkeyPatch) -> None:
    no_aws.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    folder = tmp_path / "state" / "hyperpod-jlab"
    folder.mkdir(parents=True, exist_ok=True)
    await rest.get("lifecycle-none", "lifecycle")
    await rest.get("lifecycle-no-log", "lifecycle/log")
    (folder / "lifecycle.json").write_text(json.dumps(LIFECYCLE))
    (folder / "lifecycle.log").write_text("== begin\n")
    await rest.get("lifecycle", "lifecycle")
    await rest.get("lifecycle-log", "lifecycle/log")
    (folder / "lifecycle.json").write_text('{"version": 1, "app"')
    await rest.get("lifecycle-unknown", "lifecycle")
