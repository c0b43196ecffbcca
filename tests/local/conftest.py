"""A real local cluster in folders of the test's own, with eight slots unless a test asks otherwise."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.model.run import Run
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.model.validation import parse
from hyperpod_jlab.orchestrators.local.sweep import processes_of
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.submission import Request

DEADLINE = 40.0


class LocalCluster:
    """What the tests do with the cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hyperpod = Hyperpod()

    async def submit(
        self,
        command: str,
        *,
        run_id: str | None = None,
        secrets: dict[str, str] | None = None,
        **spec: Any,
    ) -> str:
        """Submit a shell command; returns the run id."""
        data = {"source": {"kind": "command", "command": command}, "stop_grace": 2, **spec}
        request = Request(
            parse(JobSpec, data), run_id=run_id, base=self.folder, secrets=secrets or {}
        )
        return await self.hyperpod.submitter.submit(request)

    async def until(self, run_id: str, there: Callable[[Run], bool]) -> Run:
        """Wait until a run looks as wanted."""
        deadline = time.monotonic() + DEADLINE
        while not there(run := await self.hyperpod.runs.get(run_id)):
            assert time.monotonic() < deadline, f"never so in {DEADLINE} s; last: {run.status}"
            await asyncio.sleep(0.03)
        return run

    async def ended(self, run_id: str) -> Run:
        """Wait for a run's end."""
        return await self.until(run_id, lambda run: run.status.ended)

    async def running(self, run_id: str) -> Run:
        """Wait until all nodes of a run have started."""
        return await self.until(
            run_id, lambda run: bool(self.log(run_id)) and run.state == "running"
        )

    def records(self, run_id: str) -> Path:
        """The run's records."""
        return self.hyperpod.partition.records(run_id)

    def log(self, run_id: str, node: int = 0, rank: int = 0, attempt: int = 1) -> str:
        """What one rank wrote."""
        path = self.records(run_id) / f"logs/attempt-{attempt}/node-{node}.rank-{rank}.log"
        return path.read_text() if path.exists() else ""

    def processes(self, run_id: str) -> list[int]:
        """Processes of a run that live."""
        return processes_of(self.records(run_id))


@pytest.fixture
def slots() -> int:
    """Slots of the cluster."""
    return 8


@pytest.fixture
async def local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int
) -> AsyncIterator[LocalCluster]:
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
