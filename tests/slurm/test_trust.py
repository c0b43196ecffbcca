"""A bundle that was changed between submit and start: the job looks before it runs anything, and the run says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.slurm.cluster import USERS
from tests.slurm.hyperpod_fixtures import SlurmSession


def swap_launcher(bundle: Path) -> str:
    (bundle / "launcher.py").unlink()
    (bundle / "launcher.py").write_text("open('work/evil', 'w')")
    return "launcher.py is not the one that was submitted"


def swap_bundle(bundle: Path) -> str:
    """As one does who owns the folder above: the same files, but the folder is his."""
    kept = bundle.rename(bundle.with_name(f".{bundle.name}"))
    shutil.copytree(kept, bundle)
    os.chown(bundle, USERS["bob"], USERS["bob"])
    return f"/{bundle.name} belongs to another user (uid {USERS['bob']})"


def open_bundle(bundle: Path) -> str:
    bundle.chmod(0o777)
    return f"/{bundle.name}"


@pytest.mark.parametrize("change", [swap_launcher, swap_bundle, open_bundle])
async def test_nothing_of_it_is_run(session: SlurmSession, change: Callable[[Path], str]) -> None:
    run_id = await session.submit(
        "touch ran", slurm={"flags": {"hold": True}}, max_restarts=3, resources={"nodes": 2}
    )
    await session.until(run_id, lambda run: run.status.reason_code == "held")
    bundle = session.hyperpod.partition.bundle(run_id)
    why = change(bundle)
    await session.hyperpod.runs.act(run_id, "release")
    run = await session.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "untrusted_bundle")
    assert run.status.reason is not None
    assert run.status.reason.startswith(
        f"The bundle of {run_id} was changed or belongs to another user; nothing was run: "
    )
    assert run.status.reason.endswith(why)
    assert run.status.attempts == ()
    assert list((bundle / "work").iterdir()) == []
    job = run.scheduler_id
    assert session.cluster.exec("ctl", "sacct", "-nXPo", "exitcode", "-j", str(job)) == "84:0\n"
