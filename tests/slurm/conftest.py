"""Real Slurm clusters for tests. When Slurm is not there it is installed; when that cannot be, the tests fail."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.slurm.cluster import ONE, SlurmTestbed, running, standard_options
from tests.slurm.hyperpod_fixtures import SlurmSession, make_hyperpod


@pytest.fixture(scope="session")
def slurm_version(request: pytest.FixtureRequest) -> str:
    """22.05, or the one of ``--slurm``: `make test-full` runs all tests on 24.11 too."""
    return str(request.config.getoption("--slurm"))


@pytest.fixture(scope="session")
def slurm_cluster(slurm_version: str) -> Iterator[SlurmTestbed]:
    """One for all tests, which leave it as they found it (or take ``slurm``)."""
    with ONE.only(running(*standard_options(), version=slurm_version)) as cluster:
        yield cluster


@pytest.fixture
def slurm(slurm_cluster: SlurmTestbed) -> Iterator[SlurmTestbed]:
    """The same, made whole again after the test: what was killed or drained runs, jobs are cancelled, calls forgotten."""
    slurm_cluster.forget_calls()
    yield slurm_cluster
    slurm_cluster.heal()


@pytest.fixture
def slurm_start(slurm_version: str) -> Iterator[Callable[..., SlurmTestbed]]:
    """Starts clusters of the test's own: ``slurm_start("--preempt", "--min-job-age", "2", on_nodes=["node1"])``."""
    with ExitStack() as stack:
        yield lambda *options, **more: stack.enter_context(ONE.only(running(*options, version=slurm_version, **more)))


@pytest.fixture(params=["here", "ssh"])
def transport(request: pytest.FixtureRequest) -> str:
    """Here and over ssh; over ssh in `make test-full` only, unless the test is marked ``both_transports``."""
    return str(request.param)


@pytest.fixture
async def session(
    slurm: SlurmTestbed, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[SlurmSession]:
    """A user's services over the shared cluster, with a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    hyperpod = make_hyperpod(slurm, transport)
    folder = tmp_path / "project"
    folder.mkdir()
    yield SlurmSession(slurm, hyperpod, folder)
    await hyperpod.close()
