"""What is known of jobs that the controller forgot, with accounting, without, and while it does not answer."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperpod_jlab.engines.slurm import observe as slurm_runs
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import sessions, until
from tests.slurm.hyperpod_fixtures import SlurmSession
from tests.slurm.native_fixtures import log, send

__all__ = ["sessions"]

PEOPLE = ("--users", "alice:20001 bob:20002")
WITH = ("--dbd", "--accounts", "research:alice,bob")


class Slurmdbd:
    """The daemon of a cluster's accounting, which is killed and started again as it was."""

    def __init__(self, cluster: SlurmTestbed) -> None:
        self._cluster = cluster
        self._path = cluster.folder / "run" / "slurmdbd.pid"
        process = Path("/proc", self._path.read_text().strip())
        assert (process / "comm").read_text() == "slurmdbd\n"

    def kill(self) -> None:
        """No answers from now on."""
        os.kill(int(self._path.read_text()), signal.SIGKILL)

    def start(self) -> None:
        """It answers again."""
        socket = self._cluster.folder / "run" / "mysql.sock"
        # On the controller's host, as the testbed does: this machine's own slurmdbd is of another version than 24.11.
        self._cluster.exec("ctl", "env", f"MYSQL_UNIX_PORT={socket}", "slurmdbd")


def purged(cluster: SlurmTestbed, *jobs: str) -> Callable[[], bool]:
    """Whether the controller has forgotten these jobs; it does so once a minute."""

    def look() -> bool:
        told = cluster.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A").split()
        return not set(jobs) & set(told)

    return look


@pytest.mark.full
@pytest.mark.timeout(400)
@pytest.mark.parametrize("accounting", [True, False])
async def test_ends_that_nobody_saw(
    slurm_start: Callable[..., SlurmTestbed],
    sessions: Callable[..., SlurmSession],
    accounting: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slurm_runs, "_SETTLE_S", 5.0)
    more = WITH if accounting else ()
    cluster = slurm_start(*PEOPLE, *more, "--min-job-age", "2", nodes=2)
    session = sessions(cluster)
    done = await session.submit("true")
    broken = await session.submit("exit 3")
    script = await send(session, "#!/bin/bash\n#SBATCH -o out-%j\necho late; exit 4\n")
    waits = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
    runs = [await session.hyperpod.runs.get(run_id) for run_id in (done, broken, script, waits)]
    lost = session.job_of(runs[3])
    cluster.exec("ctl", "scancel", lost)
    await until(purged(cluster, *map(session.job_of, runs)), 200)
    assert (await session.hyperpod.runs.get(done)).state == "succeeded"
    run = await session.ended(broken)
    assert (run.state, run.status.exit_code) == ("failed", 3)
    run = await session.ended(script)
    assert run.status.reason_code == ("exit_code" if accounting else "lost")
    assert run.status.exit_code == (4 if accounting else None)
    assert len(run.status.attempts) == (1 if accounting else 0)
    assert await log(session, script) == "late"
    run = await session.ended(waits)
    if accounting:
        assert (run.state, run.status.reason_code) == ("cancelled", None)
    else:
        assert (run.state, run.status.reason_code) == ("failed", "lost")
        assert run.status.reason == ("Slurm no longer has its job, and the cluster has no accounting")


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_accounting_that_does_not_answer_makes_no_verdict(
    slurm_start: Callable[..., SlurmTestbed], sessions: Callable[..., SlurmSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_runs, "_SETTLE_S", 5.0)
    cluster = slurm_start(*PEOPLE, *WITH, "--min-job-age", "2", nodes=2)
    session = sessions(cluster)
    waits = await session.submit("true", slurm={"flags": {"begin": "now+1hour"}})
    job = session.job_of(await session.hyperpod.runs.get(waits))
    cluster.exec("ctl", "scancel", job)
    await asyncio.sleep(2)  # it is told to slurmdbd
    accounting = Slurmdbd(cluster)
    accounting.kill()
    await until(purged(cluster, job), 200)
    run = await session.until(waits, lambda run: run.status.reason_code == "accounting_down", 100)
    assert run.state == "waiting"
    sent = await session.submit("true")
    assert (await session.ended(sent)).state == "succeeded"
    accounting.start()
    run = await session.ended(waits, 100)
    assert (run.state, run.status.reason_code) == ("cancelled", None)


@pytest.mark.full
async def test_a_controller_that_was_started_again_keeps_what_runs(
    slurm_start: Callable[..., SlurmTestbed], sessions: Callable[..., SlurmSession]
) -> None:
    cluster = slurm_start(*PEOPLE, nodes=1)
    session = sessions(cluster)
    run_id = await session.submit("sleep 8; echo done")
    ended = await session.submit("sleep 600")
    await session.running(run_id)
    await session.running(ended)
    cluster.controller_stop()
    cluster.controller_start()
    begin = time.monotonic()
    while time.monotonic() < begin + 3:
        assert (await session.hyperpod.runs.get(ended)).state == "running"
        await asyncio.sleep(0.1)
    run = await session.ended(run_id)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    await session.hyperpod.runs.act(ended, "cancel")
    assert (await session.ended(ended)).state == "cancelled"
