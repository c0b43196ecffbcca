"""A real local cluster in folders of the test's own, with eight slots unless a test asks otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from hyperpod_jlab.core.run import Run
from hyperpod_jlab.engines.local.attempt import find_processes
from hyperpod_jlab.run.services import Hyperpod
from tests.session import Session


class LocalCluster(Session):
    """What the tests do with the cluster."""

    defaults: ClassVar = {"stop_grace": 2}
    deadline = 40.0
    pace = 0.03

    def __init__(self, folder: Path) -> None:
        super().__init__(Hyperpod(), folder)

    async def running(self, run_id: str, attempt: int = 1) -> Run:
        """Wait until a run has started and written something."""
        return await self.until(run_id, lambda run: bool(self.log(run_id, attempt=attempt)) and run.state == "running")

    def processes(self, run_id: str) -> list[int]:
        """Processes of a run that live."""
        return find_processes(self.records(run_id))


@pytest.fixture
def slots() -> int:
    """Slots of the cluster."""
    return 8


@pytest.fixture
async def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int) -> AsyncIterator[LocalCluster]:
    """The cluster; runs that a test leaves behind are cancelled."""
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    config = tmp_path / "config.toml"
    config.write_text(f"[clusters.local]\nslots = {slots}\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    project = tmp_path / "project"
    project.mkdir()
    cluster = LocalCluster(project)
    yield cluster
    runs = (await cluster.hyperpod.runs.list()).runs
    for run in runs:
        if not run.status.ended and run.state != "unknown":
            await cluster.hyperpod.runs.act(run.run_id, "cancel")
            await cluster.ended(run.run_id)
    await cluster.hyperpod.close()


def alive(pid: int) -> bool:
    """Whether a process lives (a zombie does not)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def descriptors(pid: int) -> list[str]:
    """What a process has open."""
    return [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
