"""Requests that do something to jobs of a cluster's queue."""

from __future__ import annotations

from typing import Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypeAliasType, TypedDict

from hyperpod_jlab.model.job_actions import MOST_JOBS, Change
from hyperpod_jlab.model.quantities import Duration
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.clusters import with_cluster
from hyperpod_jlab.server.requests import RequestModel

JobAction = TypeAliasType("JobAction", Literal["cancel", "hold", "release", "requeue", "change"])
"""What can be done to a job, under a name in the schemas."""


class JobActionBody(RequestModel):
    """What to do to which jobs."""

    action: JobAction
    """What to do."""
    jobs: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]],
        Field(min_length=1, max_length=MOST_JOBS),
    ]
    """The scheduler's ids of the jobs, as the list of jobs has them."""
    time_limit: Duration | None = None
    """With the action `change`: the new time limit, counted from the start: seconds, or a text such as 2h."""
    queue: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    """With the action `change`: the queue that they are moved to, while they wait."""


class JobResult(TypedDict):
    """What came of it for one job."""

    scheduler_id: str
    ok: bool
    error: Error | None


class JobResults(TypedDict):
    """One result for each job, in their order."""

    results: list[JobResult]


async def act_on_jobs(call: Call, cluster: str, body: JobActionBody) -> JobResults:
    """Do something to jobs, whoever sent them and however; those that are runs get it as runs. One that cannot be done stops no other."""
    hyperpod = await with_cluster(call, cluster)
    change = Change(body.time_limit, body.queue)
    try:
        results = await hyperpod.act_on_jobs(cluster, body.action, body.jobs, change)
    finally:
        call.process.snapshots.forget(("jobs", cluster))
    return {"results": [cast("JobResult", result.to_dict()) for result in results]}
