"""The services over the shared cluster, for tests that send no runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import make_hyperpod
from tests.slurm.jobs_fixtures import all_answer


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other processes, or tests, saw of the queue is not known."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
async def services(slurm: SlurmTestbed, fresh_cache: None) -> AsyncIterator[Hyperpod]:
    """The services of a user of the shared cluster."""
    del fresh_cache
    all_answer(slurm)
    hyperpod = make_hyperpod(slurm)
    yield hyperpod
    await hyperpod.close()
