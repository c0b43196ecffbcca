"""The fence: a run is executed once, however many supervisors and jobs are started for it."""

from __future__ import annotations

import asyncio

from hyperpod_jlab.engines.local.board import default_folder
from hyperpod_jlab.engines.local.spawn import spawn_supervisor
from hyperpod_jlab.storage.records import BundleReader
from tests.local.conftest import LocalCluster


async def test_a_second_supervisor_ends_by_itself(local: LocalCluster) -> None:
    run_id = await local.submit("echo once; sleep 1")
    bundle = BundleReader(local.hyperpod.partition, run_id)
    for _ in range(3):
        await asyncio.to_thread(spawn_supervisor, bundle, folder=default_folder(), slots=8)
    run = await local.ended(run_id)
    await asyncio.to_thread(spawn_supervisor, bundle, folder=default_folder(), slots=8)
    await asyncio.sleep(1)
    assert run.state == "succeeded"
    assert len((await local.hyperpod.runs.get(run_id)).status.attempts) == 1
    assert local.log(run_id) == "once\n"


async def test_another_jobs_claim_keeps_this_one_out(local: LocalCluster) -> None:
    """As after a submit whose answer was lost: two jobs of one run in the scheduler, and the other one came first."""
    gate = local.folder / "gate"
    gate.touch()
    first = await local.submit(f"while [ -e {gate} ]; do sleep 0.05; done")
    run_id = await local.submit("echo not here", after=[first])
    claim = local.records(run_id) / "status/claim.json"
    claim.write_text('{"scheduler_id": "another", "node": "x", "time": 1}')
    gate.unlink()
    await local.ended(first)
    await local.until(run_id, lambda _: not _on_board(local, run_id))
    assert local.log(run_id) == ""
    assert (await local.hyperpod.runs.get(run_id)).status.attempts == ()


def _on_board(local: LocalCluster, run_id: str) -> bool:
    engine = local.hyperpod.engines.get("local")
    entries = engine._board().entries()  # type: ignore[attr-defined]
    return any(entry.run_id == run_id for entry in entries)
