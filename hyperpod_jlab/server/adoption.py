"""Taking jobs that were sent elsewhere into the list of runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hyperpod_jlab.model.validation import NAME
from hyperpod_jlab.server.answers import Run, run_answer
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.clusters import with_cluster
from hyperpod_jlab.server.requests import RequestModel


class AdoptBody(RequestModel):
    """How to call it."""

    name: Annotated[str | None, Field(pattern=NAME)] = None
    """A name for the run; default: the job's own."""


async def adopt_job(call: Call, cluster: str, job: str, body: AdoptBody) -> Run:
    """Take a job that was sent elsewhere, such as with sbatch, into the list of runs. 409 when it is a run already, which the detail names."""
    hyperpod = await with_cluster(call, cluster)
    run_id = await hyperpod.adopt(job, cluster, body.name)
    call.process.snapshots.forget(("jobs", cluster))
    call.status = 201
    run = await hyperpod.runs.get(run_id)
    call.process.events.tell(run)
    return run_answer(run)
