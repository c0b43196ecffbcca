"""Only the launcher that was submitted runs, in a bundle that is this user's own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from hyperpod_jlab.engines.local.board import default_folder
from hyperpod_jlab.engines.local.machine import UntrustedBundleError
from hyperpod_jlab.engines.local.spawn import spawn_supervisor
from hyperpod_jlab.launcher import launcher_source
from hyperpod_jlab.storage.records import BundleReader
from tests.launcher.conftest import until
from tests.local.conftest import LocalCluster

OTHER = 43002

as_root = pytest.mark.skipif(os.getuid() != 0, reason="gives files to another user")


@pytest.fixture
def slots() -> int:
    return 1


async def waiting_run(local: LocalCluster, gate: Path) -> str:
    """A run that waits for its slot until the gate, a file, is gone."""
    await asyncio.to_thread(gate.touch)
    await local.submit(f"while [ -e {gate} ]; do sleep 0.05; done")
    run_id = await local.submit("echo ran > ran.txt", max_restarts=2)
    await local.until(run_id, lambda run: run.state == "waiting")
    return run_id


async def test_a_launcher_that_was_changed_while_the_run_waited_is_not_run(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    run_id = await waiting_run(local, gate)
    marker = local.folder / "marker"
    launcher = local.records(run_id) / "launcher.py"
    launcher.unlink()
    launcher.write_text(f"open({str(marker)!r}, 'w')")
    gate.unlink()
    run = await local.ended(run_id)
    assert not marker.exists()
    assert (run.state, run.status.attempts) == ("failed", ())
    assert run.status.reason == (f"the bundle of {run_id} was changed or belongs to another user; no code was run")


@as_root
async def test_in_a_bundle_of_another_user_nothing_is_run_or_written(local: LocalCluster) -> None:
    gate = local.folder / "gate"
    run_id = await waiting_run(local, gate)
    bundle = local.records(run_id)
    kept = bundle.rename(bundle.with_name(".kept"))
    bundle.mkdir()
    os.chown(bundle, OTHER, OTHER)
    (bundle / "launcher.py").write_bytes(launcher_source())
    gate.unlink()
    log = kept / "logs" / "supervisor.log"
    await asyncio.to_thread(until, lambda: "no code was run" in log.read_text(), "the refusal")
    assert not list(kept.glob("work/ran.txt"))
    assert not (kept / "status" / "attempts").exists()


@as_root
async def test_no_supervisor_is_started_for_a_bundle_of_another_user(local: LocalCluster) -> None:
    run_id = await local.submit("true")
    await local.ended(run_id)
    reader = BundleReader(local.hyperpod.partition, run_id)
    os.chown(reader.folder, OTHER, OTHER)
    with pytest.raises(UntrustedBundleError) as caught:
        spawn_supervisor(reader, folder=default_folder(), slots=1)
    assert (caught.value.code, run_id in caught.value.message) == ("untrusted_bundle", True)
    os.chown(reader.folder, 0, 0)
    reader.folder.chmod(0o777)
    with pytest.raises(UntrustedBundleError, match="other users may write"):
        spawn_supervisor(reader, folder=default_folder(), slots=1)
