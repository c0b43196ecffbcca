"""Why a run waits: Slurm's reason as a message, its queue position, the jobs that hold what it waits for, and what would start now."""

from __future__ import annotations

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from hyperpod_jlab.core.cluster import Blocker, Holder, StartNow, WaitReason
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob, parse_limit
from hyperpod_jlab.engines.slurm.observe import observe
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.reasons import is_queued, needs_capacity
from hyperpod_jlab.engines.slurm.render import read_script
from hyperpod_jlab.engines.slurm.rows import ACCELERATORS, FIELD, expand
from hyperpod_jlab.engines.slurm.tables import COMMAND, SlurmPartition, parse_partitions
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Alternatives that would start now: fewer nodes or GPUs, another queue, a shorter time limit.
#
# Slurm itself is asked through ``sbatch --test-only`` with the run's own script, which submits
# nothing. Its answer needs interpretation (observed on 22.05 and 24.11, _delayed_job_start_time in
# src/slurmctld/job_mgr.c): it is the time when there is capacity, plus, for every waiting job in
# the same queue, the time that this job could take on the whole queue. The waiting run itself is
# one of those jobs. So a job that needs next to nothing is tested as well: a job that could start
# at the same time has capacity now. Whether a job with capacity may pass other waiting jobs is up
# to the backfill scheduler, which allows it if the job ends before they could start; so the test
# uses a time limit that fits.

BUDGET = 5.0
"""Seconds after which no more alternatives are tested."""

_CONCURRENCY = 2
_MAX_TRIES = 3
"""Tests for the largest number of nodes or GPUs with capacity: a binary search finds it exactly up to 8."""
_MAX_OTHER_QUEUES = 2
_SLACK_S = 30.0
"""Seconds by which two equal answers may differ."""
_CLOCKS = 60.0
"""Seconds by which the controller's clock may differ from this machine's."""
_MARGIN = 120.0
"""Seconds that a job must end before another job's expected start: the backfill scheduler counts in minutes (bf_resolution)."""
_SHORT_LIMITS_S = (3600, 600)
"""Time limits in seconds to try if a longer one may be the obstacle, for example before maintenance."""

_MINIMAL_SCRIPT = b"#!/bin/sh\ntrue\n"
_START_TIME = re.compile(r"to start at (\S+) (?:on cluster \S+ )?using")
_NO_VALUE = frozenset({"", "(null)", "N/A"})


@dataclass(frozen=True)
class QueueCapacity:
    """A queue's capacity.

    Attributes:
        nodes: Their names.
        is_open: Whether jobs may start there and at least one CPU is free.
        limit: Its time limit in seconds.
        rules: The partition's rules for users and node counts; None when unknown.
    """

    nodes: frozenset[str]
    is_open: bool
    limit: float | None
    rules: SlurmPartition | None = None

    @property
    def max_nodes(self) -> int | None:
        """The maximum number of nodes of a job there."""
        return self.rules.max_nodes if self.rules is not None else None

    def allows(self, job: SlurmJob) -> bool:
        """Whether a job like this may use the queue.

        ``sbatch --test-only`` does not check that (observed on 22.05 and 24.11); sinfo checks
        groups by hiding the queue.
        """
        rules = self.rules
        if rules is None:
            return True
        is_allowed = (not rules.accounts or job.account in rules.accounts) and (
            not rules.qos or job.qos in rules.qos
        )
        return is_allowed and job.account not in rules.denied and job.qos not in rules.denied


@dataclass(frozen=True)
class DryRunRequest:
    """What a waiting run requests: its script, nodes, and accelerators of a type (``gpu:h100``) on each node."""

    script: bytes
    nodes: int
    devices: int
    device: str


@dataclass(frozen=True)
class Alternative:
    """The changed values; None for unchanged ones. The limit is in seconds."""

    nodes: int | None = None
    devices: int | None = None
    queue: str | None = None
    limit: int | None = None

    def options(self, request: DryRunRequest) -> list[str]:
        """The sbatch options that override those in the script."""
        values = {
            "partition": self.queue,
            "nodes": self.nodes,
            "gres": None if self.devices is None else f"{request.device}:{self.devices}",
            "time": None if self.limit is None else self.limit // 60,
        }
        return [f"--{name}={value}" for name, value in values.items() if value is not None]

    def to_start(self, request: DryRunRequest) -> StartNow:
        """The change as every interface shows it."""
        return StartNow(
            text=self.change_text(request),
            nodes=self.nodes,
            gpus_per_node=self.devices,
            queue=self.queue,
            time_limit=self.limit,
        )

    def change_text(self, request: DryRunRequest) -> str:
        """A sentence with the `hpj submit` options."""
        parts, options = [], []
        if self.nodes is not None:
            parts.append(f"with {_count_text(self.nodes, 'node')} instead of {request.nodes}")
            options.append(f"--nodes {self.nodes}")
        if self.devices is not None:
            parts.append(
                f"with {_count_text(self.devices, 'accelerator')} on each node instead of {request.devices}"
            )
            options.append(f"--gpus-per-node {self.devices}")
        if self.queue is not None:
            parts.append(f"in the queue {self.queue}")
            options.append(f"--queue {self.queue}")
        if self.limit is not None:
            parts.append(f"with a time limit of {self.limit // 60} min")
            options.append(f"--time-limit {self.limit // 60}m")
        return f"{' and '.join(parts)} ({' '.join(options)})"


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


async def query_capacities(client: SlurmClient) -> dict[str, QueueCapacity]:
    """All queues that this user can see, by name."""
    # None of these fields is free text: node and partition names contain no control characters.
    letters = FIELD.join(["%R", "%N", "%a", "%C", "%l"])
    output, rules = await asyncio.gather(
        client.query(["sinfo", "--noheader", "--Node", f"--format={letters}"]),
        client.query(COMMAND),
    )
    return await asyncio.to_thread(parse_capacities, output, rules)


def parse_capacities(output: str, rules: str = "") -> dict[str, QueueCapacity]:
    """Parse the output of `query_capacities`.

    It has a row for each node in each queue, with its CPUs (allocated/idle/other/all), and a line
    with each queue's rules.
    """
    partitions = {partition.name: partition for partition in parse_partitions(rules)}
    nodes: dict[str, set[str]] = {}
    free: dict[str, bool] = {}
    limits: dict[str, float | None] = {}
    for line in output.splitlines():
        values = line.split(FIELD)
        if len(values) != 5:
            continue
        queue, node, available, cpus, limit = values
        nodes.setdefault(queue, set()).add(node)
        idle = cpus.split("/")[1:2]
        free[queue] = free.get(queue, False) or (available == "up" and idle not in ([], ["0"]))
        limits[queue] = parse_limit(limit)
    return {
        queue: QueueCapacity(
            frozenset(nodes[queue]), free[queue], limits[queue], partitions.get(queue)
        )
        for queue in nodes
    }


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


class AlternativeSearch:
    """Tests which alternatives of one waiting job would start now.

    Args:
        client: The commands.
        job: The waiting job.
        request: What the job requests.
        jobs: All jobs.
        queues: All queues.
    """

    def __init__(
        self,
        client: SlurmClient,
        job: SlurmJob,
        request: DryRunRequest,
        jobs: Sequence[SlurmJob],
        queues: dict[str, QueueCapacity],
    ) -> None:
        self._client = client
        self._job = job
        self._request = request
        self._queues = queues
        self._queued_jobs = [
            queued_job
            for queued_job in jobs
            if queued_job.state == "PENDING"
            and is_queued(queued_job.reason)
            and queued_job.job_id != job.job_id
            and queued_job.priority > 0
        ]
        self._gate = asyncio.Semaphore(_CONCURRENCY)
        self._alternatives: list[tuple[int, Alternative]] = []
        self.try_count = 0

    async def search(self) -> tuple[StartNow, ...]:
        """What would start now: those found in time, the smallest changes first."""
        with contextlib.suppress(TimeoutError, HyperpodError):
            async with asyncio.timeout(BUDGET):
                await asyncio.gather(self._search_this_queue(), *self._other_queues())
        return tuple(
            change.to_start(self._request) for _, change in sorted(self._alternatives, key=_rank)
        )

    async def _search_this_queue(self) -> None:
        """Fewer resources in the same queue."""
        limit = self._limit(self._job.partition)
        if limit == 0 or not self._is_open(self._job.partition):
            return
        minimal_start = await self._test_start(
            _MINIMAL_SCRIPT, ["--time=1", "--nodes=1", "--mem=1M", *self._owner_options()]
        )
        if minimal_start is None:
            return

        async def starts_with(change: Alternative) -> bool:
            start = await self._test_start(self._request.script, change.options(self._request))
            return start is not None and abs(start - minimal_start) <= _SLACK_S

        await asyncio.gather(self._shorter(limit, starts_with), self._smaller(limit, starts_with))

    async def _shorter(
        self, limit: int | None, starts_with: Callable[[Alternative], Awaitable[bool]]
    ) -> None:
        own_limit = self._job.limit
        shorter = (
            [limit]
            if limit is not None
            else [t for t in _SHORT_LIMITS_S if own_limit is None or own_limit > t]
        )
        for seconds in shorter:
            if await starts_with(Alternative(limit=seconds)):
                self._alternatives.append((0, Alternative(limit=seconds)))
                return

    async def _smaller(
        self, limit: int | None, starts_with: Callable[[Alternative], Awaitable[bool]]
    ) -> None:
        request = self._request
        capacity = self._queues.get(self._job.partition)
        max_value = min(request.nodes - 1, (capacity and capacity.max_nodes) or request.nodes)
        nodes = await _binary_search(
            max_value, lambda n: starts_with(Alternative(nodes=n, limit=limit))
        )
        if nodes:
            self._alternatives.append((1, Alternative(nodes=nodes, limit=limit)))
            return
        # What does not fit on one node fits on no more of them.
        high = request.devices - 1
        found: Alternative | None = None
        for node_count in [None] if request.nodes == 1 else [1, None]:
            base = Alternative(nodes=node_count, limit=limit)
            high = await _binary_search(high, partial(_starts_with_devices, starts_with, base))
            if not high:
                break
            found = replace(base, devices=high)
        if found is not None:
            self._alternatives.append((2, found))

    def _other_queues(self) -> list[Awaitable[None]]:
        """The same resources in other queues, the largest first."""
        own_queues = set(self._job.partition.split(","))
        candidates = [
            name
            for name, capacity in self._queues.items()
            if name not in own_queues
            and capacity.is_open
            and capacity.allows(self._job)
            and self._request.nodes <= (capacity.max_nodes or self._request.nodes)
        ]
        candidates.sort(key=lambda name: -len(self._queues[name].nodes))
        return [self._try_queue(name) for name in candidates[:_MAX_OTHER_QUEUES]]

    async def _try_queue(self, name: str) -> None:
        limit = self._limit(name)
        if limit == 0:
            return
        change = Alternative(queue=name, limit=limit)
        start = await self._test_start(self._request.script, change.options(self._request))
        if start is not None and start <= time.time() + _CLOCKS:
            self._alternatives.append((1, change))

    async def _test_start(self, script: bytes, options: Sequence[str]) -> float | None:
        """When a job would start, or None when it is rejected."""
        async with self._gate:
            self.try_count += script is not _MINIMAL_SCRIPT
            argv = ["sbatch", "--test-only", *options]
            output = await self._client.run(argv, stdin=script, timeout=BUDGET)
        return parse_start(output.err + output.out) if output.code == 0 else None

    def _owner_options(self) -> list[str]:
        """The job's queue, account and QoS, as options."""
        job = self._job
        values = {"partition": job.partition, "account": job.account, "qos": job.qos}
        return [f"--{name}={value}" for name, value in values.items() if value not in _NO_VALUE]

    def _is_open(self, queue: str) -> bool:
        return any(self._queues[name].is_open for name in queue.split(",") if name in self._queues)

    def _limit(self, queue: str) -> int | None:
        """Time limit in seconds with which a job of this queue delays no other job and which the queue allows: None if its own limit works, 0 if none would.

        All waiting jobs count, not only those ahead: a resubmitted job is last among its equals.
        """
        now = time.time()
        own_limit = self._job.limit
        max_value = min(
            (capacity.limit for name, capacity in self._queues.items()
             if name in queue.split(",") and capacity.limit is not None),
            default=None,
        )  # fmt: skip
        candidates = [job for job in self._queued_jobs if self._share_nodes(queue, job.partition)]
        if candidates:
            starts = [job.started_at for job in candidates if job.started_at is not None]
            if not starts:
                return 0
            window = min(starts) - now - _MARGIN
            max_value = window if max_value is None else min(max_value, window)
        if max_value is None or (own_limit is not None and own_limit <= max_value):
            return None
        return max(0, int(max_value) // 60 * 60)

    def _share_nodes(self, left_queue: str, right_queue: str) -> bool:
        """Whether two queues, or lists of queues, share nodes."""
        return not self._nodes(left_queue).isdisjoint(self._nodes(right_queue))

    def _nodes(self, queue: str) -> set[str]:
        nodes: set[str] = set()
        for name in queue.split(","):
            capacity = self._queues.get(name)
            nodes |= capacity.nodes if capacity is not None else {f"all of {name}"}
        return nodes


async def _starts_with_devices(
    starts_with: Callable[[Alternative], Awaitable[bool]], base: Alternative, devices: int
) -> bool:
    return await starts_with(replace(base, devices=devices))


def _rank(alternative: tuple[int, Alternative]) -> tuple[int, str]:
    return alternative[0], alternative[1].queue or ""


async def _binary_search(high: int, starts_with: Callable[[int], Awaitable[bool]]) -> int:
    """The largest number up to `high` that fits, found by a short binary search; 0 when none does."""
    low, best = 1, 0
    for _ in range(_MAX_TRIES):
        if low > high:
            break
        middle = (low + high + 1) // 2 if best else (low + high) // 2
        if await starts_with(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


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
    queues = await query_capacities(client)
    nodes = _possible_nodes(job, queues)
    wait_reason = replace(
        wait_reason,
        holders=find_holders(snapshot.jobs, nodes),
        blockers=find_blockers(snapshot.jobs, nodes),
    )
    request = await asyncio.to_thread(_read_request, bundle)
    if request is None:
        return wait_reason
    search = AlternativeSearch(client, job, request, snapshot.jobs, queues)
    return replace(wait_reason, would_start_now=await search.search(), tried=search.try_count)


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
        sorted(
            holders_by_user.values(),
            key=lambda holder: (-holder.accelerators, -holder.nodes, holder.user),
        )
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
        if not (job.is_ended or job.state in WAITING)
        and any(name in nodes for name in expand(job.node_list))
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


def _possible_nodes(job: SlurmJob, queues: dict[str, QueueCapacity]) -> set[str]:
    return {
        node for name in job.partition.split(",") if name in queues for node in queues[name].nodes
    }


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
