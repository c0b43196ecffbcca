"""Requests about runs: listing them, looking at one, acting on one."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from hyperpod_jlab.model.job_actions import Change
from hyperpod_jlab.model.quantities import Duration
from hyperpod_jlab.model.records import ActionKind
from hyperpod_jlab.server.answers import Run, RunList, RunState, run_answer
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel, Several
from hyperpod_jlab.services.listing import Listing, Wanted

MOST_RUNS = 1000


class RunsQuery(RequestModel):
    """Which runs to list."""

    limit: Annotated[int, Field(ge=1, le=MOST_RUNS)] = 100
    """At most this many."""
    cursor: Annotated[str | None, Field(max_length=1024)] = None
    """Go on after an earlier page: its `next`."""
    cluster: str | None = None
    """Only runs of this cluster."""
    state: Annotated[list[RunState], Several] = Field(default_factory=list)
    """Only runs in these states; may be given several times, or once with commas."""
    all_users: bool = False
    """The runs of all users of a shared storage partition, not only your own."""


async def list_runs(call: Call, query: RunsQuery) -> RunList:
    """List runs, newest first."""
    hyperpod = await call.hyperpod()
    wanted = Wanted(
        cluster=query.cluster,
        states=tuple(query.state),
        everyone=query.all_users,
        limit=query.limit,
        cursor=query.cursor,
    )
    listing = await hyperpod.runs.list(wanted)
    return await asyncio.to_thread(_list_answer, listing)


async def show_run(call: Call, run_id: str) -> Run:
    """One run as it is now."""
    hyperpod = await call.hyperpod()
    run = await hyperpod.runs.get(run_id)
    call.process.events.seen(run)
    return run_answer(run)


async def cancel_run(call: Call, run_id: str) -> Run:
    """End a run, or take it out of the queue; one that has ended stays as it is."""
    return await _act(call, run_id, "cancel")


async def hold_run(call: Call, run_id: str) -> Run:
    """Keep a waiting run from starting."""
    return await _act(call, run_id, "hold")


async def release_run(call: Call, run_id: str) -> Run:
    """Let a held run start."""
    return await _act(call, run_id, "release")


async def requeue_run(call: Call, run_id: str) -> Run:
    """End a running run's attempt and let it wait for another one."""
    return await _act(call, run_id, "requeue")


class ChangeBody(RequestModel):
    """What is changed about a run that waits or runs; what is left out stays."""

    time_limit: Duration | None = None
    """The new time limit, counted from the start: seconds, or a text such as 2h."""
    queue: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    """The queue that it is moved to, while it waits."""


async def change_run(call: Call, run_id: str, body: ChangeBody) -> Run:
    """Give a waiting or running run another time limit or queue; its spec stays as it was sent."""
    return await _act(call, run_id, "change", Change(body.time_limit, body.queue))


async def _act(call: Call, run_id: str, action: ActionKind, change: Change | None = None) -> Run:
    hyperpod = await call.hyperpod()
    run = await hyperpod.runs.act(run_id, action, change)
    call.process.events.tell(run)
    return run_answer(run)


def _list_answer(listing: Listing) -> RunList:
    return {"runs": [run_answer(run) for run in listing.runs], "next": listing.next}
