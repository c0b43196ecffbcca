"""Runs and other users' jobs in the accounting of a real cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from hyperpod_jlab.core.cluster import Job
from hyperpod_jlab.core.cost import Execution
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from hyperpod_jlab.engines.slurm.history import SlurmHistory
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import start_now
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, make_hyperpod


@pytest.fixture
def transport() -> str:
    """That the commands come through is tested elsewhere, but for one test here."""
    return "here"


def history_of(session: SlurmSession) -> SlurmHistory:
    """The history of the session's cluster."""
    engine = session.hyperpod.engines.get(CLUSTER)
    assert isinstance(engine, SlurmOrchestrator)
    assert engine.history is not None
    return engine.history


async def executions(session: SlurmSession, run_id: str, there: Callable[[list[Execution]], bool]) -> list[Execution]:
    """The executions of a run, once the accounting has them: it hears of them a moment later."""
    bundle = await asyncio.to_thread(session.hyperpod.runs.bundle, run_id)
    for _ in range(60):
        found = await history_of(session).executions(bundle)
        if found is not None and there(found):
            return found
        await asyncio.sleep(0.5)
    raise AssertionError("the accounting does not know the run")


async def jobs(session: SlurmSession, there: Callable[[list[Job]], bool]) -> list[Job]:
    """The jobs of the last hour, once the accounting has them; none of an earlier controller, which may have had the same ids."""
    now = time.time()
    for _ in range(60):
        parts = history_of(session).jobs_between(now - 3600, now + 600)
        found = [job async for part in parts for job in part if (job.submitted_at or 0) >= now - 300]
        if there(found):
            return found
        await asyncio.sleep(1)
    raise AssertionError("the accounting does not know the jobs")


async def test_a_requeued_run_has_two_executions_and_the_first_is_repeated(session: SlurmSession) -> None:
    run_id = await session.submit("[ $HYPERPOD_ATTEMPT = 2 ] || sleep 600", resources={"nodes": 2, "gpus_per_node": 3})
    run = await session.running(run_id)
    [running] = await executions(session, run_id, lambda found: len(found) == 1)
    assert (running.ended_at, running.accelerators, running.node_count) == (None, 6, 2)
    assert len(running.nodes) == 2
    await session.hyperpod.runs.act(run_id, "requeue")
    await session.until(run_id, lambda run: run.state == "waiting")
    job = session.job_of(run)
    start_now(session.cluster, job)
    await session.ended(run_id)
    first, second = await executions(session, run_id, lambda found: len(found) == 2 and found[1].ended_at is not None)
    assert (first.repeated, second.repeated) == (True, False)
    assert first.started_at == running.started_at
    assert (first.ended_at or 0) <= second.started_at
    found = await jobs(session, lambda rows: sum(row.scheduler_id == job for row in rows) == 2)
    rows = [row for row in found if row.scheduler_id == job]
    assert [row.run_id for row in rows] == [run_id, run_id]
    assert [(row.state, row.reason_code) for row in rows] == [("succeeded", None), ("cancelled", "requeued")]


async def test_an_array_has_the_executions_of_all_its_tasks_and_a_child_its_own(session: SlurmSession) -> None:
    run_id = await session.submit("sleep 1", array="0-2", resources={"gpus_per_node": 1})
    await session.ended(run_id)

    def ended(found: list[Execution]) -> bool:
        return all(one.ended_at is not None for one in found)

    assert len(await executions(session, run_id, lambda f: len(f) == 3 and ended(f))) == 3
    [child] = await executions(session, f"{run_id}.1", lambda f: len(f) == 1 and ended(f))
    assert (child.accelerators, child.repeated) == (1, False)


async def test_another_users_jobs_are_there_suspended_ones_too(session: SlurmSession) -> None:
    cluster = session.cluster
    submit = 'sbatch --parsable --chdir=/tmp --output=/dev/null --gpus-per-node=2 --wrap="sleep 600"'
    first, second, third = (
        cluster.exec("ctl", "sh", "-c", line, user="alice").strip()
        for line in (submit, submit, submit.replace("sbatch", "sbatch --hold"))
    )
    await jobs(session, lambda rows: {first, second} <= {row.scheduler_id for row in rows})
    cluster.exec("ctl", "scontrol", "suspend", first)
    cluster.exec("ctl", "scancel", second, third)
    found = await jobs(
        session,
        lambda rows: (
            {(second, "cancelled"), (third, "cancelled"), (first, "suspended")}
            <= {(row.scheduler_id, row.state) for row in rows}
        ),
    )
    ours = [row for row in found if row.scheduler_id in {first, second, third}]
    rows = {row.scheduler_id: row for row in ours}
    assert len(rows) == len(ours)
    assert rows[third].started_at is None
    for job in (rows[first], rows[second]):
        assert (job.user, job.account, job.qos, job.queue) == ("alice", "research", "normal", "dev")
        assert (job.accelerators, job.mine, job.run_id) == (2, False, None)
        assert job.started_at is not None


async def test_over_ssh_the_same_jobs_are_there(session: SlurmSession) -> None:
    run_id = await session.submit("true")
    await session.ended(run_id)
    [job] = [
        row
        for row in await jobs(session, lambda rows: any(row.run_id == run_id for row in rows))
        if row.run_id == run_id
    ]
    over_ssh = SlurmSession(session.cluster, make_hyperpod(session.cluster, "ssh"), session.folder)
    assert job in await jobs(over_ssh, lambda rows: job in rows)
    await over_ssh.hyperpod.close()


async def test_a_cluster_without_accounting_has_no_history_once_that_is_known(
    slurm_start: Callable[..., SlurmTestbed], tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    hyperpod = make_hyperpod(slurm_start(nodes=1))
    engine = hyperpod.engines.get(CLUSTER)
    assert engine.history is not None
    with pytest.raises(UnreachableError) as caught:
        async for _ in engine.history.jobs_between(0, time.time()):
            pass
    assert caught.value.code == "no_accounting"
    known = hyperpod.engines.get(CLUSTER)
    assert known.history is None
    await hyperpod.close()
