"""The services and the command line over clusters with faults: what several modules of tests share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.session import Answer, run_hpj, write_config
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod, settings_for


async def hpj(session: SlurmSession, *words: str, transport: str = "here") -> Answer:
    """Run our command line against the session's cluster."""
    config = session.folder / "config.toml"
    write_config(settings_for(session.cluster, transport), config)
    return await run_hpj(*words, config=config, folder=session.folder)


async def until(there: Callable[[], bool], deadline: float = 60.0) -> None:
    """Wait until something that can only be looked at from outside is so."""
    end = time.monotonic() + deadline
    while not await asyncio.to_thread(there):
        assert time.monotonic() < end, f"never so in {deadline} s"
        await asyncio.sleep(0.1)


def jobs_of(cluster: SlurmTestbed, run_id: str) -> list[str]:
    """The ids of a run's jobs that the controller knows."""
    told = cluster.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A %k")
    return [line.split()[0] for line in told.splitlines() if line.endswith(f"hyperpod:{run_id}")]


def start_now(cluster: SlurmTestbed, job: str) -> None:
    """Let a requeued job start soon: Slurm makes it wait two minutes.

    Not in the second in which it was requeued: a node refuses a job whose credential is not newer, in whole seconds, than the
    moment at which the job's last one was revoked ("Job credential revoked"), and then the job fails.
    """
    cluster.run("ctl", "scontrol", "update", f"jobid={job}", "StartTime=now+2")


@pytest.fixture
async def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., SlurmSession]]:
    """Makes sessions on clusters, closed after the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made: list[SlurmSession] = []

    def make(cluster: SlurmTestbed, transport: str = "here", **more: Any) -> SlurmSession:
        folder = tmp_path / f"project-{len(made)}"
        folder.mkdir()
        made.append(SlurmSession(cluster, make_hyperpod(cluster, transport, **more), folder))
        return made[-1]

    yield make
    for session in made:
        await session.hyperpod.close()


@pytest.fixture
def here(slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]) -> SlurmSession:
    """A session on the shared cluster, by the commands of this machine."""
    return sessions(slurm)
