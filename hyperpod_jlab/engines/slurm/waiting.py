"""Why a run waits: Slurm's reason as a message, its queue position, the jobs that hold what it waits for, and whether one size less would start now."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hyperpod_jlab.core.cluster import Blocker, Holder, StartNow, WaitReason
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob
from hyperpod_jlab.engines.slurm.observe import observe
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.reasons import is_queued, needs_capacity
from hyperpod_jlab.engines.slurm.render import read_script
from hyperpod_jlab.engines.slurm.rows import ACCELERATORS, FIELD, expand
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# One size less, if that would start now: half the nodes, or half the GPUs of a single node.
#
# Slurm itself is asked through ``sbatch --test-only`` with the run's own script, which submits
# nothing. Its answer needs interpretation (observed on 22.05 and 24.11, _delayed_job_start_time in
# src/slurmctld/job_mgr.c): it is the time when there is capacity, plus, for every waiting job in
# the same queue, the time that this job could take on the whole queue. The waiting run itself is
# one of those jobs. So a job that needs next to nothing is tested as well: a job that could start
# at the same time has capacity now. While other jobs wait for the same nodes, nothing is promised.

_TEST_S = 5.0
"""Timeout of a test."""
_SLACK_S = 30.0
"""Seconds by which two equal answers may differ."""

_MINIMAL_SCRIPT = b"#!/bin/sh\ntrue\n"
_START_TIME = re.compile(r"to start at (\S+) (?:on cluster \S+ )?using")
_NO_VALUE = frozenset({"", "(null)", "N/A"})


@dataclass(frozen=True)
class DryRunRequest:
    """What a waiting run requests: its script, nodes, and accelerators of a type (``gpu:h100``) on each node."""

    script: bytes
    nodes: int
    devices: int
    device: str


async def query_queue_nodes(client: SlurmClient) -> dict[str, frozenset[str]]:
    """The nodes of each queue that this user can see."""
    # Node and partition names contain no control characters.
    command = ["sinfo", "--noheader", "--Node", f"--format=%R{FIELD}%N"]
    nodes: dict[str, set[str]] = {}
    for line in (await client.query(command)).splitlines():
        queue, found, node = line.partition(FIELD)
        if found:
            nodes.setdefault(queue, set()).add(node)
    return {queue: frozenset(names) for queue, names in nodes.items()}


def parse_start(output: str) -> float | None:
    """When a job would start (Unix seconds), from the output of ``sbatch --test-only``; None when it names no time.

    The time has the format of SLURM_TIME_FORMAT; without it, it is local time.
    """
    match = _START_TIME.search(output)
    if match is None:
        return None
    with contextlib.suppress(ValueError):
        text = match[1]
        return float(text) if text.isdecimal() else datetime.fromisoformat(text).timestamp()
    return None


async def find_smaller(client: SlurmClient, job: SlurmJob, request: DryRunRequest) -> tuple[StartNow, ...]:
    """One size less of a waiting job, if it would start now.

    Args:
        client: The commands.
        job: The waiting job.
        request: What it requests.
    """
    if request.nodes > 1:
        nodes = request.nodes // 2
        options = [f"--nodes={nodes}"]
        noun = "node" if nodes == 1 else "nodes"
        text = f"with {nodes} {noun} instead of {request.nodes} (--nodes {nodes})"
        change = StartNow(text, nodes=nodes)
    elif request.devices > 1:
        devices = request.devices // 2
        options = [f"--gres={request.device}:{devices}"]
        noun = "accelerator" if devices == 1 else "accelerators"
        text = f"with {devices} {noun} instead of {request.devices} (--gpus-per-node {devices})"
        change = StartNow(text, gpus_per_node=devices)
    else:
        return ()
    owner = {"partition": job.partition, "account": job.account, "qos": job.qos}
    minimal = [f"--{name}={value}" for name, value in owner.items() if value not in _NO_VALUE]
    start, earliest = await asyncio.gather(
        _test_start(client, request.script, options),
        _test_start(client, _MINIMAL_SCRIPT, ["--time=1", "--nodes=1", "--mem=1M", *minimal]),
    )
    if start is None or earliest is None or abs(start - earliest) > _SLACK_S:
        return ()
    return (change,)


async def _test_start(client: SlurmClient, script: bytes, options: Sequence[str]) -> float | None:
    """When a job would start; None when it is rejected, or Slurm does not answer in time."""
    with contextlib.suppress(HyperpodError):
        argv = ["sbatch", "--test-only", *options]
        output = await client.run(argv, stdin=script, timeout=_TEST_S)
        return parse_start(output.err + output.out) if output.code == 0 else None
    return None


_MAX_NAMES = 20
"""Maximum number of jobs ahead that are listed."""
_FAR_FUTURE_S = 366 * 86400.0
"""Seconds ahead: Slurm gives a later start when it is unknown, because some job has no time limit."""


async def explain(
    client: SlurmClient, snapshot: Snapshot, bundle: BundleReader, observation: Observation
) -> WaitReason:
    """Why a run waits.

    Args:
        client: The commands.
        snapshot: The queue of all users.
        bundle: The run.
        observation: Its observation from the queue.

    Raises:
        UnreachableError: The controller does not answer.
    """
    job = _find_job(observation.scheduler_id, snapshot.jobs)
    if job is None:
        return WaitReason(bundle.run_id, observation.reason, observation.reason_code)
    newest = observe(job, snapshot.time)  # the queue may have been polled since the observation
    wait_reason = WaitReason(bundle.run_id, newest.reason, newest.reason_code)
    if is_job_queued(job):
        jobs_ahead = find_jobs_ahead(job, snapshot.jobs)
        wait_reason = replace(
            wait_reason,
            position=len(jobs_ahead) + 1,
            counted=f"jobs waiting for nodes in {job.partition}, by priority",
            ahead=tuple(_name(other_job) for other_job in jobs_ahead[:_MAX_NAMES]),
            expected_start=_expected(job),
        )
    if job.state != "PENDING" or not needs_capacity(job.reason):
        return wait_reason
    queues = await query_queue_nodes(client)
    nodes = _possible_nodes(job, queues)
    wait_reason = replace(
        wait_reason, holders=find_holders(snapshot.jobs, nodes), blockers=find_blockers(snapshot.jobs, nodes)
    )
    request = await asyncio.to_thread(_read_request, bundle)
    others_wait = any(
        is_job_queued(other) and not nodes.isdisjoint(_possible_nodes(other, queues))
        for other in snapshot.jobs
        if other.job_id != job.job_id
    )
    if request is None or others_wait:
        return wait_reason
    return replace(wait_reason, would_start_now=await find_smaller(client, job, request), tried=1)


def _find_job(scheduler_id: str | None, jobs: Sequence[SlurmJob]) -> SlurmJob | None:
    """The waiting job. For an array also its remainder, when other tasks have started meanwhile."""
    array = (scheduler_id or "").partition("_")[0]
    waiting_jobs = [job for job in jobs if job.array_job_id == array and job.state in WAITING]
    exact = [other for other in waiting_jobs if other.scheduler_id == scheduler_id]
    return next(iter(exact or waiting_jobs), None)


def is_job_queued(job: SlurmJob) -> bool:
    """Whether a job waits for its turn, and not for a release, a time, another job or a limit of its own."""
    return job.state == "PENDING" and job.priority > 0 and is_queued(job.reason)


def find_jobs_ahead(job: SlurmJob, jobs: Sequence[SlurmJob]) -> list[SlurmJob]:
    """The jobs in the same queues that Slurm considers before this one: higher priority, or equal and older; in order.

    An array's pending tasks count as one. Backfill is not predicted.
    """
    queues = set(job.partition.split(","))
    jobs_before = [
        candidate
        for candidate in jobs
        if candidate.job_id != job.job_id
        and is_job_queued(candidate)
        and not queues.isdisjoint(candidate.partition.split(","))
        and _priority_key(candidate) < _priority_key(job)
    ]
    return sorted(jobs_before, key=_priority_key)


def find_holders(jobs: Sequence[SlurmJob], nodes: Collection[str]) -> tuple[Holder, ...]:
    """The jobs that hold accelerators, or at least nodes, of these nodes, largest first; a job counts in full even if it only shares some of them."""
    holders_by_user: dict[str, Holder] = {}
    for job in jobs:
        if job.is_ended or job.state in WAITING:
            continue
        names = expand(job.node_list)
        if not any(name in nodes for name in names):
            continue
        devices = sum(gres.count for gres in job.gres if gres.name in ACCELERATORS)
        known_holder = holders_by_user.get(job.user, Holder(job.user))
        holders_by_user[job.user] = Holder(
            job.user,
            accelerators=known_holder.accelerators + devices,
            nodes=known_holder.nodes + len(names),
            jobs=known_holder.jobs + 1,
        )
    return tuple(
        sorted(holders_by_user.values(), key=lambda holder: (-holder.accelerators, -holder.nodes, holder.user))
    )


def find_blockers(jobs: Sequence[SlurmJob], nodes: Collection[str]) -> tuple[Blocker, ...]:
    """The jobs that run on these nodes, the first to end first."""
    blockers = [
        Blocker(
            job=job.scheduler_id,
            name=job.name,
            user=job.user,
            run_id=job.run_id,
            nodes=job.node_count,
            accelerators=sum(gres.count for gres in job.gres if gres.name in ACCELERATORS),
            ends_at=job.ends_at,
        )
        for job in jobs
        if not (job.is_ended or job.state in WAITING) and any(name in nodes for name in expand(job.node_list))
    ]
    return tuple(sorted(blockers, key=_end_key)[:_MAX_NAMES])


def _end_key(blocker: Blocker) -> tuple[float, str]:
    return (math.inf if blocker.ends_at is None else blocker.ends_at), blocker.job


def _priority_key(job: SlurmJob) -> tuple[int, int]:
    return -job.priority, int(job.job_id)


def _name(job: SlurmJob) -> str:
    """Our name for our own runs, else the scheduler's id and user."""
    return job.run_id or f"{job.scheduler_id} ({job.user})"


def _expected(job: SlurmJob) -> float | None:
    """Slurm's expected start; None when unknown (``squeue --start`` shows the same)."""
    is_known = job.started_at is not None and job.started_at - time.time() < _FAR_FUTURE_S
    return job.started_at if is_known else None


def _possible_nodes(job: SlurmJob, queues: dict[str, frozenset[str]]) -> set[str]:
    return {node for name in job.partition.split(",") for node in queues.get(name, ())}


def _read_request(bundle: BundleReader) -> DryRunRequest | None:
    """What a run requests, or None when its script is not ours, so that smaller variants cannot be derived."""
    if not bundle.is_own:  # another user's script is never passed to sbatch, not even for a test
        return None
    with contextlib.suppress(HyperpodError):
        resources = bundle.spec().resources
        device = resources.accelerator
        return DryRunRequest(
            script=read_script(bundle),
            nodes=resources.nodes,
            devices=device.count,
            device=device.kind if device.type is None else f"{device.kind}:{device.type}",
        )
    return None
