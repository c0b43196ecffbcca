"""Requests about runs: list, show, act."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from hyperpod_jlab.clusters.routes import require_cluster
from hyperpod_jlab.core.cluster import WaitReason
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.fields import Duration
from hyperpod_jlab.core.job_actions import MAX_JOBS, ActionKind, Change, JobResult
from hyperpod_jlab.core.run import Run, RunState
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.run.access import Access, read_access
from hyperpod_jlab.run.files import SentFile, code_text, list_code_files, read_rendered
from hyperpod_jlab.run.listing import RunFilter, RunPage
from hyperpod_jlab.run.overview import RunOverview, read_overview
from hyperpod_jlab.run.resources import RunResources, read_resources
from hyperpod_jlab.server.answers import OwnedRun, RenderedText, to_owned_run
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import CommaSeparated, RequestModel
from hyperpod_jlab.storage.records import BundleReader

MAX_RUNS = 1000


class RunsQuery(RequestModel):
    """Which runs to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_RUNS)] = 100
    """Maximum number of runs."""
    cursor: Annotated[str | None, Field(max_length=1024)] = None
    """Continue after an earlier page: its `next`."""
    cluster: str | None = None
    """Only runs of this cluster."""
    state: Annotated[list[RunState], CommaSeparated] = Field(default_factory=list)
    """Only runs in these states; repeat the parameter or separate values with commas."""
    all_users: bool = False
    """Include the runs of all users of a shared storage partition."""


@dataclass(frozen=True)
class RunList:
    """A page of runs, newest first, and the cursor of the next one."""

    runs: list[OwnedRun]
    next: str | None


async def list_runs(call: Call, query: RunsQuery) -> RunList:
    """List runs, newest first."""
    hyperpod = await call.hyperpod()
    run_filter = RunFilter(
        cluster=query.cluster,
        states=tuple(query.state),
        everyone=query.all_users,
        limit=query.limit,
        cursor=query.cursor,
    )
    listing = await hyperpod.runs.list(run_filter)
    return await asyncio.to_thread(_to_run_list, listing)


async def show_run(call: Call, run_id: str) -> OwnedRun:
    """Get one run in its current state."""
    hyperpod = await call.hyperpod()
    run = await hyperpod.runs.get(run_id)
    call.process.events.note_run(run)
    return to_owned_run(run)


async def cancel_run(call: Call, run_id: str) -> OwnedRun:
    """Cancel a run, or remove it from the queue; an ended run is unchanged."""
    return await _act(call, run_id, "cancel")


async def hold_run(call: Call, run_id: str) -> OwnedRun:
    """Keep a waiting run from starting."""
    return await _act(call, run_id, "hold")


async def release_run(call: Call, run_id: str) -> OwnedRun:
    """Let a held run start."""
    return await _act(call, run_id, "release")


async def requeue_run(call: Call, run_id: str) -> OwnedRun:
    """End a running run's current attempt and put the run back into the queue."""
    return await _act(call, run_id, "requeue")


@dataclass(frozen=True)
class DeletedRun:
    """A run that is gone."""

    run_id: str


async def delete_run(call: Call, run_id: str) -> DeletedRun:
    """Delete a run that has ended: its code, logs and results on the storage partition. 409 if it has not ended or another run waits for it."""
    from hyperpod_jlab.run.clean import Cleaner

    hyperpod = await call.hyperpod()
    await Cleaner(hyperpod.partition, hyperpod.runs).delete(run_id)
    return DeletedRun(run_id)


class ChangeBody(RequestModel):
    """What to change about a waiting or running run; omitted fields are unchanged."""

    time_limit: Duration | None = None
    """The new time limit, counted from the start: seconds, or a text such as 2h."""
    queue: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    """The new queue, while it waits."""


async def change_run(call: Call, run_id: str, body: ChangeBody) -> OwnedRun:
    """Change the time limit or queue of a waiting or running run; its spec is unchanged."""
    return await _act(call, run_id, "change", Change(body.time_limit, body.queue))


async def _act(call: Call, run_id: str, action: ActionKind, change: Change | None = None) -> OwnedRun:
    hyperpod = await call.hyperpod()
    run = await hyperpod.runs.act(run_id, action, change)
    call.process.events.emit_change(run)
    return to_owned_run(run)


def _to_run_list(listing: RunPage) -> RunList:
    return RunList([to_owned_run(run) for run in listing.runs], listing.next)


# --------------------------------------------------------------------------------------------------
# Requests about the parts of a run: its spec, script and code, its children, why it waits, and its
# usage.


@dataclass(frozen=True)
class Code:
    """The files of a run's code and project, as submitted."""

    files: tuple[SentFile, ...]


@dataclass(frozen=True)
class CodeText:
    """The text of one file."""

    path: str
    text: str


@dataclass(frozen=True)
class Children:
    """The children of an array, in the order of their indices."""

    runs: list[OwnedRun]


@dataclass(frozen=True)
class RunUsage:
    """A run's usage; null until it has ended."""

    usage: Usage | None


_MAX_CHILDREN = 500
"""As many as the run page shows."""


async def show_spec(call: Call, run_id: str) -> JobSpec:
    """Get a run's spec."""
    bundle = await _bundle(call, run_id)
    return await asyncio.to_thread(bundle.spec)


async def show_script(call: Call, run_id: str) -> RenderedText:
    """Get the script or manifest that the scheduler received."""
    return RenderedText(*await asyncio.to_thread(read_rendered, await _bundle(call, run_id)))


async def list_code(call: Call, run_id: str) -> Code:
    """List the files of a run's code and project, as submitted."""
    return Code(await asyncio.to_thread(list_code_files, await _bundle(call, run_id)))


async def show_code(call: Call, run_id: str, path: str) -> CodeText:
    """Get the text of one submitted file."""
    text = await asyncio.to_thread(code_text, await _bundle(call, run_id), path)
    return CodeText(path, text)


async def list_children(call: Call, run_id: str) -> Children:
    """List the children of an array, by index; empty for other runs. Of more than 500, those that have started come first."""
    hyperpod = await call.hyperpod()
    children = await hyperpod.runs.children(run_id, _MAX_CHILDREN)
    return await asyncio.to_thread(_to_children, children)


def _to_children(children: tuple[Run, ...]) -> Children:
    return Children([to_owned_run(run) for run in children])


async def explain_wait(call: Call, run_id: str) -> WaitReason:
    """Explain why a run waits, and what could start now."""
    hyperpod = await call.hyperpod()
    return await hyperpod.runs.explain_wait(run_id)


async def show_access(call: Call, run_id: str) -> Access:
    """List commands that open shells on a run's nodes."""
    hyperpod = await call.hyperpod()
    return await read_access(hyperpod.engines, hyperpod.runs, run_id)


async def show_usage(call: Call, run_id: str) -> RunUsage:
    """Get the usage of an ended run."""
    hyperpod = await call.hyperpod()
    return RunUsage(await hyperpod.runs.usage(run_id))


async def show_run_overview(call: Call, run_id: str) -> RunOverview:
    """Get a run's time limit, the phases of its attempts and the state of each rank. Reads only the run's own records."""
    hyperpod = await call.hyperpod()
    bundle = await asyncio.to_thread(hyperpod.runs.bundle, run_id)
    head = await asyncio.to_thread(bundle.head)
    try:
        paths = hyperpod.engines.get(head.cluster).paths
    except HyperpodError:  # the cluster is not configured any more
        paths = None
    return await asyncio.to_thread(read_overview, bundle, paths)


class ResourcesQuery(RequestModel):
    """Which samples."""

    attempt: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """The attempt; default: the newest one that has samples."""
    node: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    """Only the node of this rank; default: the first 8 nodes."""


async def show_resources(call: Call, run_id: str, query: ResourcesQuery) -> RunResources:
    """Get the CPU, memory and GPU usage of a run's ranks and nodes over time, as the launcher sampled it. Empty if there are no samples."""
    bundle = await _bundle(call, run_id)
    hyperpod = await call.hyperpod()
    return await hyperpod.big_reads.run(lambda deadline: read_resources(bundle, query.attempt, query.node, deadline))


async def _bundle(call: Call, run_id: str) -> BundleReader:
    hyperpod = await call.hyperpod()
    return await asyncio.to_thread(hyperpod.runs.bundle, run_id)


# --------------------------------------------------------------------------------------------------
# Requests that act on jobs of a cluster's queue.

JobAction = TypeAliasType("JobAction", Literal["cancel", "hold", "release", "requeue", "change"])
"""Actions on jobs, under a name of their own in the schemas."""


class JobActionBody(RequestModel):
    """An action and its jobs."""

    action: JobAction
    """The action."""
    jobs: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(min_length=1, max_length=MAX_JOBS)
    ]
    """The scheduler's ids of the jobs, as the list of jobs has them."""
    time_limit: Duration | None = None
    """With the action `change`: the new time limit, counted from the start: seconds, or a text such as 2h."""
    queue: Annotated[str | None, Field(min_length=1, max_length=255)] = None
    """With the action `change`: the new queue, for waiting jobs."""


@dataclass(frozen=True)
class JobResults:
    """One result for each job, in their order."""

    results: tuple[JobResult, ...]


async def act_on_jobs(call: Call, cluster: str, body: JobActionBody) -> JobResults:
    """Act on jobs of any origin; runs are handled as runs. A failure for one job does not stop the others."""
    hyperpod = await require_cluster(call, cluster)
    change = Change(body.time_limit, body.queue)
    try:
        results = await hyperpod.act_on_jobs(cluster, body.action, body.jobs, change)
    finally:
        hyperpod.snapshots.forget()
    return JobResults(tuple(results))
