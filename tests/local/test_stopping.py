"""A supervisor that is told to stop, is kept out by another job, or fails: what it says, and what it leaves for others."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.local import attempt as word
from hyperpod_jlab.engines.local import supervisor
from hyperpod_jlab.engines.local.attempt import RunningAttempt
from hyperpod_jlab.engines.local.board import Board
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.local.conftest import LocalCluster, alive
from tests.storage.bundles import make_bundle, write_files

pytestmark = pytest.mark.local

TOKEN: dict[str, Any] = {"environment": {"secrets": {"TOKEN": ""}}, "secrets": {"TOKEN": "hush"}}


async def stop(local: LocalCluster, run_id: str) -> None:
    """Tell a run's supervisor to stop, and wait until it has."""
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    os.kill(owner.pid, signal.SIGTERM)
    await local.until(run_id, lambda _: not alive(owner.pid))


async def test_children_that_go_on_without_their_arrays_supervisor_keep_its_secrets(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    gate.touch()
    run_id = await local.submit(
        f'echo on; while [ -e {gate} ]; do sleep 0.05; done; [ "$HYPERPOD_ATTEMPT" = 2 ]',
        array="0-1",
        max_restarts=1,
        **TOKEN,
    )
    for index in (0, 1):
        await local.until(run_id, lambda _, index=index: bool(local.log(f"{run_id}.{index}")))  # type: ignore[misc]
    await stop(local, run_id)
    gate.unlink()
    for index in (0, 1):
        assert (await local.ended(f"{run_id}.{index}")).state == "succeeded"


async def test_a_job_that_another_one_keeps_out_leaves_the_secrets_alone(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    gate.touch()
    first = await local.submit(f"while [ -e {gate} ]; do sleep 0.05; done")
    run_id = await local.submit("echo not here", after=[first], **TOKEN)
    claim = local.records(run_id) / "status/claim.json"
    claim.write_text('{"scheduler_id": "another", "node": "x", "time": 1}')
    owner = BundleReader(local.hyperpod.partition, run_id).read().owner
    assert owner is not None
    gate.unlink()
    await local.until(run_id, lambda _: not alive(owner.pid))
    assert (local.records(run_id) / "secrets/TOKEN").read_text() == "hush"


async def test_one_that_is_stopped_while_it_waits_says_so(local: LocalCluster) -> None:
    first = await local.submit("sleep 300")
    run_id = await local.submit("true", after=[first], **TOKEN)
    await local.until(run_id, lambda run: run.state == "waiting" and bool(run.status.reason))
    await stop(local, run_id)
    run = await local.ended(run_id)
    assert (run.status.reason_code, run.status.reason) == ("lost", "its supervisor was stopped")
    assert not (local.records(run_id) / "secrets").exists()


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    """A run that nobody looks after yet."""
    made = make_bundle(Partition(tmp_path / "fsx"), "run-1", code=None)
    write_files(made.folder, [("launch.json", {"nodes": 1, "stop_grace": 1})])
    return made


def test_a_supervisor_that_fails_says_so_once_the_partition_takes_it(
    bundle: BundleReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    add, tries = BundleReader.add_observation, []

    def full_at_first(reader: BundleReader, observation: Observation) -> None:
        tries.append(observation)
        if len(tries) < 3:
            raise StorageError("the storage partition is full")
        add(reader, observation)

    monkeypatch.setattr(word, "_RETRY", 0.01)
    monkeypatch.setattr(supervisor.Supervisor, "run", fail)
    monkeypatch.setattr(BundleReader, "add_observation", full_at_first)
    arguments = [str(bundle.partition.root), "run-1", f"--folder={tmp_path / 'board'}", "--slots=1"]
    arguments.append("--launcher=0")
    with pytest.raises(RuntimeError, match="a mistake"):
        supervisor.main(arguments)
    (told,) = bundle.read().observations
    assert (told.verdict, told.reason) == ("LOST", "its supervisor failed: RuntimeError: a mistake")


def test_an_attempt_is_ended_when_its_supervisor_fails(
    bundle: BundleReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    done = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process has handlers of its own
    monkeypatch.setattr(RunningAttempt, "start", lambda _: None)
    monkeypatch.setattr(RunningAttempt, "end", lambda attempt: done.append(attempt.plan))
    monkeypatch.setattr(supervisor.Supervisor, "_watch", fail)
    with pytest.raises(RuntimeError, match="a mistake"):
        supervisor.Supervisor(bundle, Board(tmp_path / "board", slots=1, gpus=0), "0").run()
    assert done == [{"nodes": 1, "stop_grace": 1}]
