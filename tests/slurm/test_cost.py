"""Cost, usage and the jobs that have ended, by the accounting of a real slurmdbd."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.features.cost.models import UsageRow
from hyperpod_jlab.features.cost.service import read_usage
from hyperpod_jlab.run.cost import estimate, read_run_cost
from hyperpod_jlab.run.history import read_ended_jobs
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.fault_fixtures import sessions, start_now
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, settings_for

__all__ = ["sessions"]

PRICE = {"cost": {"node_price": 3600.0}}


async def test_a_requeued_run_costs_both_executions(slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]) -> None:
    session = sessions(slurm, **PRICE)
    gpus = {"nodes": 2, "gpus_per_node": 4}
    run_id = await session.submit("[ $HYPERPOD_ATTEMPT = 2 ] && sleep 2 || sleep 600", resources=gpus)
    run = await session.running(run_id)
    await asyncio.sleep(1.5)  # the accounting has whole seconds
    slurm.exec("ctl", "scontrol", "requeue", session.job_of(run))
    await session.until(run_id, lambda run: run.state == "waiting", 40)
    start_now(slurm, session.job_of(run))
    await session.ended(run_id)
    cost = await read_run_cost(session.hyperpod, run_id)
    for _ in range(100):
        if cost.source == "accounting":
            break
        await asyncio.sleep(0.1)
        cost = await read_run_cost(session.hyperpod, run_id)
    assert cost.source == "accounting"
    assert 0 < cost.wasted_node_hours < cost.node_hours
    assert cost.gpu_hours == pytest.approx(4 * cost.node_hours)
    # Half of the GPUs of each node.
    assert cost.amount == pytest.approx(3600 * cost.node_hours / 2, rel=1e-6)
    usage = await read_usage(session.hyperpod, "user", time.time() - 3600, None, [CLUSTER])
    mine = next(row for row in usage.rows if row.gpu_hours > 0.99 * cost.gpu_hours)
    assert mine.node_hours > 0.99 * cost.node_hours


async def test_ended_jobs_of_everybody_page_by_page(slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]) -> None:
    session = sessions(slurm)
    for name in ("first", "second", "third"):
        words = ("sbatch", "--wait", "--chdir=/tmp", "--output=/dev/null", f"-J{name}", "--wrap=true")
        slurm.exec("ctl", *words, user="bob")
    newest = list[str]()
    async with asyncio.timeout(60):  # the accounting has a job a moment after its end
        while newest != ["third", "second", "first"]:
            page = await read_ended_jobs(session.hyperpod, CLUSTER, 3, user="bob")
            newest = [job.name for job in page.jobs]
    names, cursor = list[str](), None
    for _ in range(3):
        page = await read_ended_jobs(session.hyperpod, CLUSTER, 1, cursor, user="bob")
        names += [job.name for job in page.jobs]
        cursor = page.next
    assert names == ["third", "second", "first"]
    bobs = await read_ended_jobs(session.hyperpod, CLUSTER, user="bob")
    assert {job.user for job in bobs.jobs} == {"bob"}
    assert [job.name for job in bobs.jobs[:3]] == names
    unknown = await read_ended_jobs(session.hyperpod, CLUSTER, user="zoe")
    assert (unknown.jobs, unknown.notes) == ((), ("The cluster does not know the user zoe.",))


async def test_usage_by_account_is_what_sreport_says(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]
) -> None:
    session = sessions(slurm, **PRICE)
    words = ("srun", "-Aresearch", "-N2", "--gpus-per-node=2", "sleep", "2")
    slurm.exec("ctl", *words, user="alice")
    usage = await read_usage(session.hyperpod, "account", time.time() - 3600, None, [CLUSTER])
    rows = {row.key: row for row in usage.rows}
    assert rows["research"].node_hours * 3600 >= 4
    assert rows["research"].gpu_hours >= 2 * 2 * 2 / 3600
    days = [day for day in usage.days if day.key == "research"]
    assert sum(day.node_hours for day in days) == pytest.approx(rows["research"].node_hours)


async def test_a_cluster_with_two_names_is_counted_once(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]
) -> None:
    session = sessions(slurm)
    clusters = session.hyperpod.settings.clusters
    clusters["far"] = settings_for(slurm, "ssh").clusters[CLUSTER]
    run_id = await session.submit("sleep 1")
    await session.ended(run_id)
    history = session.hyperpod.engines.get(CLUSTER).history
    assert history is not None
    bundle = session.hyperpod.runs.bundle(run_id)
    async with asyncio.timeout(60):  # the accounting learns of it a moment later
        while True:
            executions = await history.executions(bundle)
            if executions and executions[0].ended_at is not None:
                break
            await asyncio.sleep(0.2)
    begin, end = time.time() - 3600, executions[0].ended_at

    async def rows_of(*names: str) -> tuple[list[UsageRow], str]:
        usage = await read_usage(session.hyperpod, "user", begin, end, names)
        return list(usage.rows), " ".join(usage.notes)

    alone, far = await rows_of(CLUSTER), await rows_of("far")
    both, notes = await rows_of(CLUSTER, "far")
    assert alone[0]
    assert both == far[0] == alone[0]
    assert f"{CLUSTER} and far are the same cluster, which is counted once" in notes
    assert "same cluster" not in alone[1] + far[1]


async def test_an_estimate_takes_the_share_of_the_gpus(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession]
) -> None:
    session = sessions(slurm, **PRICE)
    spec = JobSpec.model_validate(
        {
            "source": {"kind": "command", "command": "true"},
            "queue": "dev",
            "resources": {"nodes": 2, "gpus_per_node": 2},
        }
    )
    found = await estimate(session.hyperpod, spec, CLUSTER, 7200)
    assert (found.per_hour, found.at_most, found.gpu_hours) == (1800, 3600, 8)


@pytest.mark.usefixtures("slurm_version")
async def test_without_accounting_the_runs_are_counted(
    slurm_start: Callable[..., SlurmTestbed], sessions: Callable[..., SlurmSession]
) -> None:
    cluster = slurm_start(nodes=1)
    session = sessions(cluster, **PRICE)
    run_id = await session.submit("sleep 1")
    await session.ended(run_id)
    cost = await read_run_cost(session.hyperpod, run_id)
    assert cost.source == "records"
    assert (cost.amount or 0) > 0
    usage = await read_usage(session.hyperpod, "cluster", time.time() - 3600, None, [CLUSTER])
    assert [(row.key, row.runs) for row in usage.rows] == [(CLUSTER, 1)]
    assert "no accounting" in " ".join(usage.notes)


async def test_an_estimate_takes_the_share_of_the_accounts_hours(
    slurm: SlurmTestbed, sessions: Callable[..., SlurmSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hyperpod_jlab.run.cost._QUOTAS_WAIT_S", 60.0)
    limit = ("account", "name=root", "set", "GrpTRESMins=gres/gpu=")
    slurm.exec("ctl", "sacctmgr", "--immediate", "modify", *limit[:-1], f"{limit[-1]}6000")
    try:
        session = sessions(slurm)
        spec = JobSpec.model_validate(
            {"source": {"kind": "command", "command": "true"}, "resources": {"gpus_per_node": 5}}
        )
        found = await estimate(session.hyperpod, spec, CLUSTER, 7200)
        assert [(one.quota, one.nominal, one.share) for one in found.shares] == [("account root", 100, 0.1)]
    finally:
        slurm.exec("ctl", "sacctmgr", "--immediate", "modify", *limit[:-1], f"{limit[-1]}-1")
