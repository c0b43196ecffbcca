"""Why a run waits: Slurm's reason in words, its place in the line, who holds what it waits for, and what would start now."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from hyperpod_jlab.core.cluster import Holder, WaitReason
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import WAITING, SlurmJob, to_limit
from hyperpod_jlab.engines.slurm.observe import observe
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.reasons import is_in_line, wants_room
from hyperpod_jlab.engines.slurm.render import read_script
from hyperpod_jlab.engines.slurm.rows import ACCELERATORS, FIELD, expand
from hyperpod_jlab.engines.slurm.tables import COMMAND, SlurmPartition, parse_partitions
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# What would start now in a waiting run's place: fewer nodes or GPUs, another queue, a shorter time limit.
#
# Slurm itself is asked, by ``sbatch --test-only`` with the run's own script, which sends nothing. What it answers is read with care (seen on 22.05 and 24.11,
# _delayed_job_start_time in src/slurmctld/job_mgr.c): it tells when there is room, plus, for every job that waits in the same queue, as long as that job
# could take on the whole queue. The waiting run itself is one of those. So a job that needs next to nothing is asked for as well: what could start when that
# could, has room now. Whether a job that has room may pass others that wait is up to the backfill scheduler, which lets it if it ends before they could start;
# so it is asked for with a time limit that fits.

BUDGET = 5.0
"""Seconds after which no more is asked."""

_AT_ONCE = 2
_TRIES = 3
"""Questions for the largest number of nodes, or of GPUs, that has room: halving finds it exactly up to 8."""
_OTHER_QUEUES = 2
_SLACK = 30.0
"""Seconds by which two answers may differ that mean the same."""
_CLOCKS = 60.0
"""Seconds by which the controller's clock may differ from this one's."""
_MARGIN = 120.0
"""Seconds that a job must end before another one's expected start: the backfill scheduler counts in minutes (bf_resolution)."""
_SHORT = (3600, 600)
"""Time limits in seconds that are tried when a longer one may be what is in the way, as before maintenance."""

_TINY = b"#!/bin/sh\ntrue\n"
_START = re.compile(r"to start at (\S+) (?:on cluster \S+ )?using")
_NO_NAME = frozenset({"", "(null)", "N/A"})


@dataclass(frozen=True)
class QueueCapacity:
    """A queue.

    Attributes:
        nodes: Their names.
        open: Whether jobs may start there and one CPU at least is free.
        limit: Its time limit in seconds.
        rules: Who may use it, and for how many nodes; None when they are not known.
    """

    nodes: frozenset[str]
    open: bool
    limit: float | None
    rules: SlurmPartition | None = None

    @property
    def most_nodes(self) -> int | None:
        """The largest number of nodes that a job may have there."""
        return self.rules.max_nodes if self.rules is not None else None

    def allows(self, job: SlurmJob) -> bool:
        """Whether a job like this may use it. ``sbatch --test-only`` does not ask that (seen on 22.05 and 24.11); groups are seen to by sinfo, which hides it."""
        rules = self.rules
        if rules is None:
            return True
        known = (not rules.accounts or job.account in rules.accounts) and (
            not rules.qos or job.qos in rules.qos
        )
        return known and job.account not in rules.denied and job.qos not in rules.denied


@dataclass(frozen=True)
class WhatIfRequest:
    """What a waiting run asks for: its script, nodes, and on each node accelerators of a kind (``gpu:h100``)."""

    script: bytes
    nodes: int
    devices: int
    device: str


@dataclass(frozen=True)
class Alternative:
    """What would be different; None for what stays. The limit is in seconds."""

    nodes: int | None = None
    devices: int | None = None
    queue: str | None = None
    limit: int | None = None

    def options(self, wanted: WhatIfRequest) -> list[str]:
        """The options of sbatch that win over those in the script."""
        given = {
            "partition": self.queue,
            "nodes": self.nodes,
            "gres": None if self.devices is None else f"{wanted.device}:{self.devices}",
            "time": None if self.limit is None else self.limit // 60,
        }
        return [f"--{name}={value}" for name, value in given.items() if value is not None]

    def words(self, wanted: WhatIfRequest) -> str:
        """A sentence, with the options of `hpj submit`."""
        parts, options = [], []
        if self.nodes is not None:
            parts.append(f"with {_count(self.nodes, 'node')} instead of {wanted.nodes}")
            options.append(f"--nodes {self.nodes}")
        if self.devices is not None:
            parts.append(
                f"with {_count(self.devices, 'accelerator')} on each node instead of {wanted.devices}"
            )
            options.append(f"--gpus-per-node {self.devices}")
        if self.queue is not None:
            parts.append(f"in the queue {self.queue}")
            options.append(f"--queue {self.queue}")
        if self.limit is not None:
            parts.append(f"with a time limit of {self.limit // 60} min")
            options.append(f"--time-limit {self.limit // 60}m")
        return f"{' and '.join(parts)} ({' '.join(options)})"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


async def rooms(client: SlurmClient) -> dict[str, QueueCapacity]:
    """All queues that this user sees, by name."""
    # No field of these is free text: names of nodes and partitions have no control characters.
    letters = FIELD.join(["%R", "%N", "%a", "%C", "%l"])
    said, rules = await asyncio.gather(
        client.ask(["sinfo", "--noheader", "--Node", f"--format={letters}"]),
        client.ask(COMMAND),
    )
    return await asyncio.to_thread(parse_rooms, said, rules)


def parse_rooms(said: str, rules: str = "") -> dict[str, QueueCapacity]:
    """What `rooms` was answered: a row for each node in each queue, with its CPUs (allocated/idle/other/all), and a line for each queue's rules."""
    known = {one.name: one for one in parse_partitions(rules)}
    nodes: dict[str, set[str]] = {}
    free: dict[str, bool] = {}
    limits: dict[str, float | None] = {}
    for line in said.splitlines():
        values = line.split(FIELD)
        if len(values) != 5:
            continue
        queue, node, available, cpus, limit = values
        nodes.setdefault(queue, set()).add(node)
        idle = cpus.split("/")[1:2]
        free[queue] = free.get(queue, False) or (available == "up" and idle not in ([], ["0"]))
        limits[queue] = to_limit(limit)
    return {
        queue: QueueCapacity(frozenset(nodes[queue]), free[queue], limits[queue], known.get(queue))
        for queue in nodes
    }


def start_of(said: str) -> float | None:
    """When a job would start (Unix seconds), from what ``sbatch --test-only`` wrote; None when it says no time.

    The time is written as SLURM_TIME_FORMAT says; without it as local time.
    """
    found = _START.search(said)
    if found is None:
        return None
    with contextlib.suppress(ValueError):
        text = found[1]
        return float(text) if text.isdecimal() else datetime.fromisoformat(text).timestamp()
    return None


class Tries:
    """Asks what would start now in the place of one waiting job.

    Args:
        client: The commands.
        job: The waiting job.
        wanted: What it asks for.
        jobs: All jobs.
        queues: All queues.
    """

    def __init__(
        self,
        client: SlurmClient,
        job: SlurmJob,
        wanted: WhatIfRequest,
        jobs: Sequence[SlurmJob],
        queues: dict[str, QueueCapacity],
    ) -> None:
        self._client = client
        self._job = job
        self._wanted = wanted
        self._queues = queues
        self._lined = [
            one
            for one in jobs
            if one.state == "PENDING"
            and is_in_line(one.reason)
            and one.job_id != job.job_id
            and one.priority > 0
        ]
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._found: list[tuple[int, Alternative]] = []
        self.tried = 0

    async def ask(self) -> tuple[str, ...]:
        """What would start now, as sentences: those found before time ran out, the mildest changes first."""
        with contextlib.suppress(TimeoutError, HyperpodError):
            async with asyncio.timeout(BUDGET):
                await asyncio.gather(self._here(), *self._elsewhere())
        return tuple(change.words(self._wanted) for _, change in sorted(self._found, key=_rank))

    async def _here(self) -> None:
        """Less, in the same queue."""
        limit = self._limit(self._job.partition)
        if limit == 0 or not self._open(self._job.partition):
            return
        tiny = await self._start(_TINY, ["--time=1", "--nodes=1", "--mem=1M", *self._whose()])
        if tiny is None:
            return

        async def fits(change: Alternative) -> bool:
            start = await self._start(self._wanted.script, change.options(self._wanted))
            return start is not None and abs(start - tiny) <= _SLACK

        await asyncio.gather(self._shorter(limit, fits), self._smaller(limit, fits))

    async def _shorter(
        self, limit: int | None, fits: Callable[[Alternative], Awaitable[bool]]
    ) -> None:
        own = self._job.limit
        shorter = [limit] if limit is not None else [t for t in _SHORT if own is None or own > t]
        for seconds in shorter:
            if await fits(Alternative(limit=seconds)):
                self._found.append((0, Alternative(limit=seconds)))
                return

    async def _smaller(
        self, limit: int | None, fits: Callable[[Alternative], Awaitable[bool]]
    ) -> None:
        wanted = self._wanted
        room = self._queues.get(self._job.partition)
        most = min(wanted.nodes - 1, (room and room.most_nodes) or wanted.nodes)
        nodes = await _most(most, lambda n: fits(Alternative(nodes=n, limit=limit)))
        if nodes:
            self._found.append((1, Alternative(nodes=nodes, limit=limit)))
            return
        one = 1 if wanted.nodes > 1 else None
        devices = await _most(
            wanted.devices - 1, lambda n: fits(Alternative(nodes=one, devices=n, limit=limit))
        )
        if devices:
            self._found.append((2, Alternative(nodes=one, devices=devices, limit=limit)))

    def _elsewhere(self) -> list[Awaitable[None]]:
        """The same in other queues, the largest first."""
        mine = set(self._job.partition.split(","))
        others = [
            name
            for name, room in self._queues.items()
            if name not in mine
            and room.open
            and room.allows(self._job)
            and self._wanted.nodes <= (room.most_nodes or self._wanted.nodes)
        ]
        others.sort(key=lambda name: -len(self._queues[name].nodes))
        return [self._in_queue(name) for name in others[:_OTHER_QUEUES]]

    async def _in_queue(self, name: str) -> None:
        limit = self._limit(name)
        if limit == 0:
            return
        change = Alternative(queue=name, limit=limit)
        start = await self._start(self._wanted.script, change.options(self._wanted))
        if start is not None and start <= time.time() + _CLOCKS:
            self._found.append((1, change))

    async def _start(self, script: bytes, options: Sequence[str]) -> float | None:
        """When a job would start, or None when it is refused."""
        async with self._gate:
            self.tried += script is not _TINY
            argv = ["sbatch", "--test-only", *options]
            said = await self._client.run(argv, stdin=script, timeout=BUDGET)
        return start_of(said.err + said.out) if said.code == 0 else None

    def _whose(self) -> list[str]:
        """The job's queue, account and QoS, as options."""
        job = self._job
        given = {"partition": job.partition, "account": job.account, "qos": job.qos}
        return [f"--{name}={value}" for name, value in given.items() if value not in _NO_NAME]

    def _open(self, queue: str) -> bool:
        return any(self._queues[name].open for name in queue.split(",") if name in self._queues)

    def _limit(self, queue: str) -> int | None:
        """Seconds that a job of this queue may take so that it holds up nobody and the queue allows it: None when its own limit will do, 0 when none would.

        All who wait count, not only those before it: a job that is sent anew comes last among its like.
        """
        now = time.time()
        own = self._job.limit
        most = min(
            (room.limit for name, room in self._queues.items()
             if name in queue.split(",") and room.limit is not None),
            default=None,
        )  # fmt: skip
        others = [job for job in self._lined if self._share(queue, job.partition)]
        if others:
            starts = [job.started for job in others if job.started is not None]
            if not starts:
                return 0
            window = min(starts) - now - _MARGIN
            most = window if most is None else min(most, window)
        if most is None or (own is not None and own <= most):
            return None
        return max(0, int(most) // 60 * 60)

    def _share(self, one: str, other: str) -> bool:
        """Whether two queues, or lists of queues, have nodes in common."""
        return not self._nodes(one).isdisjoint(self._nodes(other))

    def _nodes(self, queue: str) -> set[str]:
        found: set[str] = set()
        for name in queue.split(","):
            room = self._queues.get(name)
            found |= room.nodes if room is not None else {f"all of {name}"}
        return found


def _rank(found: tuple[int, Alternative]) -> tuple[int, str]:
    return found[0], found[1].queue or ""


async def _most(high: int, fits: Callable[[int], Awaitable[bool]]) -> int:
    """The largest number up to `high` that fits, found by halving in a few questions; 0 when none does."""
    low, best = 1, 0
    for _ in range(_TRIES):
        if low > high:
            break
        middle = (low + high + 1) // 2 if best else (low + high) // 2
        if await fits(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


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
            counted=f"jobs waiting for nodes in {job.partition}, by priority",
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


def _nodes_of(job: SlurmJob, queues: dict[str, QueueCapacity]) -> set[str]:
    return {
        node for name in job.partition.split(",") if name in queues for node in queues[name].nodes
    }


def _wanted(bundle: BundleReader) -> WhatIfRequest | None:
    """What a run asks for, or None when it is not a script of ours that smaller ones can be made of."""
    if not bundle.is_own:  # nothing of another user's is given to sbatch, not even to try it
        return None
    with contextlib.suppress(HyperpodError):
        resources = bundle.spec().resources
        device = resources.accelerator
        return WhatIfRequest(
            script=read_script(bundle),
            nodes=resources.nodes,
            devices=device.count,
            device=device.kind if device.type is None else f"{device.kind}:{device.type}",
        )
    return None
