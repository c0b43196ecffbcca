"""Why a run waits: Slurm's reason in words, its place in the line, who holds what it waits for, and what would start now."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import replace

from hyperpod_jlab.model.cluster import Holder, WaitReason
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.job import WAITING, SlurmJob
from hyperpod_jlab.orchestrators.slurm.sending.script import read_script
from hyperpod_jlab.orchestrators.slurm.tables.gres import ACCELERATORS
from hyperpod_jlab.orchestrators.slurm.tables.hostlist import expand
from hyperpod_jlab.orchestrators.slurm.waiting.reasons import is_in_line, wants_room
from hyperpod_jlab.orchestrators.slurm.waiting.room import Room, Tries, Wanted, rooms
from hyperpod_jlab.orchestrators.slurm.watch import Snapshot
from hyperpod_jlab.orchestrators.slurm.watching.observe import observe
from hyperpod_jlab.storage.records import BundleReader

_NAMED = 20
"""How many of those before it are named."""
_FAR = 366 * 86400.0
"""Seconds ahead: a start later than this is Slurm's word for not known, since somebody has no time limit."""


async def explain(
    client: SlurmClient, snapshot: Snapshot, bundle: BundleReader, word: Observation
) -> WaitReason:
    """Why a run waits.

    Args:
        client: The commands.
        snapshot: The queue of all users.
        bundle: The run.
        word: What the queue says of it.

    Raises:
        UnreachableError: The controller does not answer.
    """
    job = _job_of(word.scheduler_id, snapshot.jobs)
    if job is None:
        return WaitReason(bundle.run_id, word.reason, word.reason_code)
    newest = observe(job, snapshot.time)  # the queue may have been looked at since the word
    told = WaitReason(bundle.run_id, newest.reason, newest.reason_code)
    if stands_in_line(job):
        ahead = ahead_of(job, snapshot.jobs)
        told = replace(
            told,
            position=len(ahead) + 1,
            counted=f"jobs that wait for nodes in {job.partition}, by priority",
            ahead=tuple(_name(one) for one in ahead[:_NAMED]),
            expected_start=_expected(job),
        )
    if job.state != "PENDING" or not wants_room(job.reason):
        return told
    queues = await rooms(client)
    told = replace(told, holders=holders(snapshot.jobs, _nodes_of(job, queues)))
    wanted = await asyncio.to_thread(_wanted, bundle)
    if wanted is None:
        return told
    tries = Tries(client, job, wanted, snapshot.jobs, queues)
    return replace(told, would_start_now=await tries.ask(), tried=tries.tried)


def _job_of(scheduler_id: str | None, jobs: Sequence[SlurmJob]) -> SlurmJob | None:
    """The waiting job; of an array also what is left of it, when others of its tasks have begun meanwhile."""
    array = (scheduler_id or "").partition("_")[0]
    found = [one for one in jobs if one.array_job_id == array and one.state in WAITING]
    exact = [one for one in found if one.scheduler_id == scheduler_id]
    return next(iter(exact or found), None)


def stands_in_line(job: SlurmJob) -> bool:
    """Whether a job waits for its turn, and not for a release, a time, another job or a limit of its own."""
    return job.state == "PENDING" and job.priority > 0 and is_in_line(job.reason)


def ahead_of(job: SlurmJob, jobs: Sequence[SlurmJob]) -> list[SlurmJob]:
    """Those in line for one of the same queues that Slurm looks at before this one: of higher priority, or of the same and older; first come first.

    An array's tasks that have not begun are one. What backfill lets past is not foreseen.
    """
    queues = set(job.partition.split(","))
    before = [
        one
        for one in jobs
        if one.job_id != job.job_id
        and stands_in_line(one)
        and not queues.isdisjoint(one.partition.split(","))
        and _order(one) < _order(job)
    ]
    return sorted(before, key=_order)


def holders(jobs: Sequence[SlurmJob], nodes: Collection[str]) -> tuple[Holder, ...]:
    """Who holds accelerators, or at least nodes, of these, most first; jobs that only touch the nodes count whole."""
    found: dict[str, Holder] = {}
    for job in jobs:
        if job.ended or job.state in WAITING:
            continue
        names = expand(job.node_list)
        if not any(name in nodes for name in names):
            continue
        devices = sum(one.count for one in job.gres if one.name in ACCELERATORS)
        known = found.get(job.user, Holder(job.user))
        found[job.user] = Holder(
            job.user,
            accelerators=known.accelerators + devices,
            nodes=known.nodes + len(names),
            jobs=known.jobs + 1,
        )
    return tuple(sorted(found.values(), key=lambda one: (-one.accelerators, -one.nodes, one.user)))


def _order(job: SlurmJob) -> tuple[int, int]:
    return -job.priority, int(job.job_id)


def _name(job: SlurmJob) -> str:
    """Our name of a run of ours, else the scheduler's with its user."""
    return job.run_id or f"{job.scheduler_id} ({job.user})"


def _expected(job: SlurmJob) -> float | None:
    """When Slurm expects to start it; None when it does not know (``squeue --start`` shows the same)."""
    known = job.started is not None and job.started - time.time() < _FAR
    return job.started if known else None


def _nodes_of(job: SlurmJob, queues: dict[str, Room]) -> set[str]:
    return {
        node for name in job.partition.split(",") if name in queues for node in queues[name].nodes
    }


def _wanted(bundle: BundleReader) -> Wanted | None:
    """What a run asks for, or None when it is not a script of ours that smaller ones can be made of."""
    if not bundle.is_own:  # nothing of another user's is given to sbatch, not even to try it
        return None
    with contextlib.suppress(HyperpodError):
        resources = bundle.spec().resources
        device = resources.accelerator
        return Wanted(
            script=read_script(bundle),
            nodes=resources.nodes,
            devices=device.count,
            device=device.kind if device.type is None else f"{device.kind}:{device.type}",
        )
    return None
