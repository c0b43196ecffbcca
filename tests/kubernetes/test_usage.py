"""Who used a cluster that keeps no accounting: runs by their records, jobs of others as they were seen in the queue."""

from __future__ import annotations

import time

from hyperpod_jlab.core.cluster import Job
from hyperpod_jlab.features.cost.service import read_usage
from hyperpod_jlab.run.cost import read_run_cost
from hyperpod_jlab.run.history import read_ended_jobs
from tests.kubernetes.session_fixtures import CLUSTER, KubernetesSession
from tests.kubernetes.table_fixtures import create, kubectl, pod, pytorch_job, until


async def test_runs_and_the_jobs_that_were_seen(session: KubernetesSession) -> None:
    clusters = session.hyperpod.settings.clusters
    clusters["again"] = clusters[CLUSTER].model_copy(update={"namespace": "default"})
    others = pytorch_job("others", pod("x", session.cluster.image, {}))
    await create(session, others)
    await until(
        session.hyperpod.jobs, lambda rows: any("others" in row.name and row.state == "running" for row in rows)
    )
    run_id = await session.submit("sleep 1")
    assert (await session.ended(run_id)).state == "succeeded"
    await session.hyperpod.jobs("again")  # as another name sees them
    await kubectl(session, "delete", "pytorchjob", "others", "--wait=false")
    await until(session.hyperpod.jobs, lambda rows: not any("others" in row.name for row in rows))
    usage = await read_usage(session.hyperpod, "cluster", time.time() - 3600, None, [CLUSTER])
    cost = await read_run_cost(session.hyperpod, run_id)
    (row,) = usage.rows
    assert (row.key, cost.source) == (CLUSTER, "records")
    assert row.runs >= 2  # other tests have jobs on this cluster, too
    assert row.node_hours > cost.node_hours > 0
    assert "has no accounting: shown are the jobs that were seen" in " ".join(usage.notes)
    names = [CLUSTER, "again"]
    both = await read_usage(session.hyperpod, "cluster", time.time() - 3600, None, names)
    assert [(one.key, one.runs) for one in both.rows] == [(CLUSTER, row.runs)]
    assert f"{CLUSTER} and again are the same cluster" in " ".join(both.notes)
    # The cluster does not tell the run of another user's job; its records do.
    job_id = (await session.hyperpod.runs.get(run_id)).scheduler_id
    seen = Job(f"pytorchjob/{job_id}", "x", "bob", "running", started_at=time.time() - 60)
    session.hyperpod.job_log(CLUSTER).note([seen])
    again = await read_usage(session.hyperpod, "cluster", time.time() - 3600, None, [CLUSTER])
    assert [one.runs for one in again.rows] == [row.runs]
    page = await read_ended_jobs(session.hyperpod, CLUSTER)
    gone = next(job for job in page.jobs if "others" in job.name)
    assert (gone.state, gone.reason) == ("unknown", "its end was not seen")
