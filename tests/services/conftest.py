"""The services over a real local cluster in folders of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest

from hyperpod_jlab.engines.local.attempt import end_processes
from hyperpod_jlab.run.services import Hyperpod
from tests.session import Session


class Place(Session):
    """A user's folders, and the services as one process holds them."""

    defaults: ClassVar = {"stop_grace": 2}
    pace = 0.03

    def __init__(self, folder: Path) -> None:
        super().__init__(Hyperpod(), folder)
        self.partition = self.hyperpod.partition

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
