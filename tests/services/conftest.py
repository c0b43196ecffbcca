"""The services over a real local cluster in folders of the test's own."""

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
from hyperpod_jlab.orchestrators.local.sweep import end_processes
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.submission import Request

DEADLINE = 60.0


class Place:
    """A user's folders, and the services as one process holds them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hyperpod = Hyperpod()
        self.partition = self.hyperpod.partition

    def request(self, command: str = "true", *, run_id: str | None = None, **spec: Any) -> Request:
        """What to submit: a shell command."""
        data = {"source": {"kind": "command", "command": command}, "stop_grace": 2, **spec}
        return Request(parse(JobSpec, data), run_id=run_id, base=self.folder)

    async def submit(self, command: str = "true", *, run_id: str | None = None, **spec: Any) -> str:
        """Submit a shell command; returns the run id."""
        request = self.request(command, run_id=run_id, **spec)
        return await self.hyperpod.submitter.submit(request)

    async def until(self, run_id: str, there: Callable[[Run], bool]) -> Run:
        """Wait until a run looks as wanted."""
        deadline = time.monotonic() + DEADLINE
        while True:
            run = await self.hyperpod.runs.get(run_id)
            if there(run):
                return run
            assert time.monotonic() < deadline, f"never so in {DEADLINE} s; last: {run.status}"
            await asyncio.sleep(0.03)

    async def ended(self, run_id: str) -> Run:
        """Wait for a run's end."""
        return await self.until(run_id, lambda run: run.status.ended)

    async def listed(self) -> list[str]:
        """The ids of all runs, newest first."""
        return [run.run_id for run in (await self.hyperpod.runs.list()).runs]

    def left(self) -> list[str]:
        """Everything in the shards, staging folders too."""
        return sorted(path.name for path in self.partition.runs.glob("*/*"))


@pytest.fixture
async def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """Eight slots, nothing submitted yet; what a test leaves running is ended."""
    config = home / "config.toml"
    config.write_text("[clusters.local]\nslots = 8\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    work = home / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    made = Place(work)
    yield made
    for run in (await made.hyperpod.runs.list()).runs:
        if not run.status.ended and run.state != "unknown" and run.cluster == "local":
            await made.hyperpod.runs.act(run.run_id, "cancel")
            end_processes(made.partition.bundle(run.run_id), 2)
    await made.hyperpod.close()
