"""Overview of a cluster, from one snapshot of its scheduler: GPUs by node and job, queues, and waiting jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.clusters.service import NodeList
from hyperpod_jlab.core.cache import Snapshot
from hyperpod_jlab.core.cluster import UNUSABLE, GpuTotals, Job, Node, Queue, gpu_totals, notes_of
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.wire import Time

MAX_WAITING = 50
"""Maximum number of waiting jobs in the overview."""

RUNNING = frozenset({"running", "suspended"})
"""States of jobs that have nodes."""


@dataclass(frozen=True)
class GpuShare:
    """A job's share of a node's GPUs.

    Attributes:
        job: The scheduler's id of the job.
        gpus: Number of GPUs.
    """

    job: str
    gpus: int


@dataclass(frozen=True)
class NodeTile:
    """A node of the map.

    Attributes:
        usable: Whether new jobs can start on it.
        gpus: Its GPUs.
        used: GPUs in use by jobs.
        shares: Its jobs. A job without GPUs has 0. The scheduler reports only a job's total GPUs, so on unequal nodes a share is an estimate.
    """

    name: str
    state: str
    reason: str | None
    usable: bool
    instance_group: str | None
    gpu_type: str | None
    gpus: int
    used: int
    shares: tuple[GpuShare, ...]


@dataclass(frozen=True, kw_only=True)
class ClusterOverview:
    """Overview of a cluster.

    Attributes:
        as_of: When the scheduler gave the oldest part of the answer.
        problem: Why there is no newer answer.
        notes: What is hidden from this user, and why.
        running: The running jobs.
        waiting: The first waiting jobs: those with an expected start first, then the oldest.
        waiting_total: Number of waiting jobs.
    """

    as_of: Time
    problem: HyperpodError | None
    notes: tuple[str, ...]
    gpus: tuple[GpuTotals, ...]
    nodes: list[NodeTile]
    queues: list[Queue]
    running: list[Job]
    waiting: list[Job]
    waiting_total: int


def build_overview(nodes: NodeList[Node], queues: Snapshot[list[Queue]], jobs: Snapshot[list[Job]]) -> ClusterOverview:
    """The overview of a cluster. Slow for thousands of jobs: call it in a thread."""
    tiles = tiles_of(nodes.nodes, jobs.value)
    waiting = in_waiting_order(jobs.value)
    times = [queues.as_of, jobs.as_of] + ([] if nodes.as_of is None else [nodes.as_of])
    notes = (*nodes.notes, *notes_of(queues.value), *notes_of(jobs.value))
    return ClusterOverview(
        as_of=min(times),
        problem=jobs.problem or queues.problem or nodes.problem,
        notes=tuple(dict.fromkeys(notes)),
        gpus=gpu_totals(nodes.nodes),
        nodes=tiles,
        queues=list(queues.value),
        running=[job for job in jobs.value if job.state in RUNNING],
        waiting=waiting[:MAX_WAITING],
        waiting_total=len(waiting),
    )


def tiles_of(nodes: Sequence[Node], jobs: Iterable[Job]) -> list[NodeTile]:
    """The nodes with the shares of their jobs."""
    running = [job for job in jobs if job.state in RUNNING]
    by_id = {ident: job for job in running for ident in (job.run_id, job.scheduler_id)}
    on_node: dict[str, dict[str, Job]] = {node.name: {} for node in nodes}
    for job in running:
        for name in job.nodes:
            if name in on_node:
                on_node[name][job.scheduler_id] = job
    for node in nodes:
        # The embedded cluster has one node: this machine.
        found = (by_id[ident] for ident in node.jobs if ident in by_id)
        on_node[node.name].update((job.scheduler_id, job) for job in found)
    spread = Counter(ident for there in on_node.values() for ident in there)
    return [_tile(node, on_node[node.name].values(), spread) for node in nodes]


def _tile(node: Node, jobs: Iterable[Job], spread: Mapping[str, int]) -> NodeTile:
    usable = node.state not in UNUSABLE
    shares, left = [], node.accelerators_used
    for job in jobs:
        gpus = min(left, -(-job.accelerators // spread[job.scheduler_id]))
        left -= gpus
        shares.append(GpuShare(job.scheduler_id, gpus))
    return NodeTile(
        name=node.name,
        state=node.state,
        reason=node.reason,
        usable=usable,
        instance_group=node.instance_group,
        gpu_type=node.accelerator_type,
        gpus=node.accelerators,
        used=node.accelerators_used,
        shares=tuple(shares),
    )


def in_waiting_order(jobs: Iterable[Job]) -> list[Job]:
    """Waiting jobs: those with an expected start first, then the oldest."""
    waiting = [job for job in jobs if job.state in {"waiting", "held"}]
    never = float("inf")
    return sorted(
        waiting,
        key=lambda job: (
            job.expected_start if job.expected_start is not None else never,
            job.submitted_at if job.submitted_at is not None else never,
            job.scheduler_id,
        ),
    )
