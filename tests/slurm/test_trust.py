"""A bundle that was changed between submit and start: the job looks before it runs anything, and the run says so."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launcher.conftest import until
from tests.slurm.cluster import USERS
from tests.slurm.hyperpod_fixtures import SlurmSession


def swap_launcher(bundle: Path) -> str:
    (bundle / "launcher.py").unlink()
    (bundle / "launcher.py").write_text("open('work/evil', 'w')")
    return "launcher.py was changed after the submit"


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
    run_id = await session.submit("touch ran", slurm={"flags": {"hold": True}}, max_restarts=3, resources={"nodes": 2})
    await session.until(run_id, lambda run: run.status.reason_code == "held")
    job = (await session.hyperpod.runs.get(run_id)).scheduler_id
    assert job is not None
    bundle = session.hyperpod.partition.bundle(run_id)
    why = change(bundle)
    await asyncio.to_thread(session.cluster.exec, "ctl", "scontrol", "release", job)
    assert await asyncio.to_thread(_end_of, session, job) == "84:0"
    assert list((bundle / "work").iterdir()) == []
    if change is swap_bundle:
        return  # nothing that it says is believed any more
    run = await session.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "untrusted_bundle")
    assert run.status.reason is not None
    assert run.status.reason.startswith(
        f"the bundle of {run_id} was changed or belongs to another user; no code was run: "
    )
    assert run.status.reason.endswith(why)
    assert run.status.attempts == ()


def _end_of(session: SlurmSession, job: str) -> str:
    """The exit code and signal of a job, once it has ended."""
    words = ("sacct", "-nXPo", "end,exitcode", "-j", job)

    def ended() -> str:
        end, _, code = session.cluster.exec("ctl", *words).strip().partition("|")
        return "" if end in {"", "Unknown"} else code

    return until(ended, "the end of the job")
