"""A run at a glance: its limits, the phases of its attempts, and how each rank is."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.records import AttemptRecords, NodeRecord, RankRecord, RunRecords
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.run.resources import read_log_folders
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

MAX_RANKS = 4096
"""Ranks in one answer."""

_STOPPED = frozenset({signal.SIGTERM, signal.SIGKILL})


@dataclass(frozen=True)
class AttemptPhases:
    """When an attempt's phases began.

    Attributes:
        number: The attempt.
        started_at: Its first node has started: the setup begins.
        ranks_started_at: The first rank has started; null before.
        ended_at: All nodes have ended; null before.
    """

    number: int
    started_at: Time | None
    ranks_started_at: Time | None
    ended_at: Time | None


@dataclass(frozen=True)
class RankStatus:
    """One rank of an attempt.

    Attributes:
        rank: Its global rank.
        node_rank: Its node.
        node: The node's name.
        state: `stopped` means that the launcher ended it because another rank failed or the run was stopped; ``lost`` that it has no end, but its attempt has.
        exit_code: Its exit code; 128+N for signal N.
        signal: The signal that ended it.
        started_at: When it started.
        ended_at: When it ended.
    """

    rank: int
    node_rank: int
    node: str
    state: Literal["starting", "running", "succeeded", "failed", "stopped", "lost"]
    exit_code: int | None
    signal: int | None
    started_at: Time | None
    ended_at: Time | None


@dataclass(frozen=True)
class RunOverview:
    """A run's limits, phases and ranks.

    Attributes:
        time_limit: The time limit in seconds, as submitted or changed since; null without one.
        queue: The queue, as submitted or changed since.
        attempts: The phases of each attempt.
        attempt: The attempt of `ranks`, the newest; null before the first.
        ranks: Its ranks, by rank, at most 4096.
        log_folders: The folders in which its first 8 nodes write TensorBoard events while it runs.
    """

    time_limit: int | None
    queue: str | None
    attempts: list[AttemptPhases]
    attempt: int | None
    ranks: list[RankStatus]
    log_folders: list[str]


def read_overview(bundle: BundleReader, paths: PathMap | None = None) -> RunOverview:
    """A run at a glance. May block.

    Args:
        bundle: The run.
        paths: The partition's paths on this machine and on the nodes, to translate the log folders.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: Its head or spec cannot be read.
    """
    records, spec = bundle.read(), bundle.spec()
    time_limit, queue = spec.time_limit, records.head.queue
    for action in records.actions:
        if action.action == "change":
            time_limit = action.time_limit or time_limit
            queue = action.queue or queue
    last = records.attempts[-1] if records.attempts else None
    return RunOverview(
        time_limit=None if time_limit is None else int(time_limit),
        queue=queue,
        attempts=[_phases(records, attempt) for attempt in records.attempts],
        attempt=last.number if last else None,
        ranks=_ranks(last)[:MAX_RANKS] if last else [],
        log_folders=_log_folders(bundle, last, paths) if last else [],
    )


def _log_folders(bundle: BundleReader, attempt: AttemptRecords, paths: PathMap | None) -> list[str]:
    """The log folders of the nodes that run, each once."""
    running = {node.node_rank for node in attempt.nodes if node.ended_at is None}
    if not running:
        return []
    found = (
        _local_path(folder, paths)
        for rank, folders in read_log_folders(bundle, attempt.number).items()
        if rank in running
        for folder in folders
    )
    return list(dict.fromkeys(found))


def _local_path(folder: str, paths: PathMap | None) -> str:
    """A folder of a node as this machine sees it; unchanged if it is not on the partition."""
    if paths is None:
        return folder
    try:
        return str(paths.to_local_path(folder))
    except InvalidInputError:
        return folder


def _phases(records: RunRecords, attempt: AttemptRecords) -> AttemptPhases:
    nodes = attempt.nodes
    started = [rank.started_at for node in nodes for rank in node.ranks if rank.started_at]
    ends = [node.ended_at for node in nodes if node.ended_at is not None]
    return AttemptPhases(
        number=attempt.number,
        started_at=min((node.started_at for node in nodes), default=None),
        ranks_started_at=min(started, default=None),
        ended_at=max(ends) if ends and len(ends) >= max(len(nodes), records.head.nodes) else None,
    )


def _ranks(attempt: AttemptRecords) -> list[RankStatus]:
    first_failed = _first_failed(attempt)
    found = [
        RankStatus(
            rank=rank.rank,
            node_rank=node.node_rank,
            node=node.node,
            state=_state(rank, node, first_failed),
            exit_code=rank.exit_code,
            signal=rank.signal,
            started_at=rank.started_at,
            ended_at=rank.ended_at,
        )
        for node in attempt.nodes
        for rank in node.ranks
    ]
    return sorted(found, key=lambda rank: rank.rank)


def _first_failed(attempt: AttemptRecords) -> int | None:
    """The rank that failed first: by its error, else by its end, unless the node was stopped."""
    if attempt.errors:
        return attempt.errors[0].rank
    ended = [
        (rank.ended_at or math.inf, rank.rank)
        for node in attempt.nodes
        for rank in node.ranks
        if rank.exit_code and node.stopped_by is None
    ]
    return min(ended)[1] if ended else None


def _state(
    rank: RankRecord, node: NodeRecord, first_failed: int | None
) -> Literal["starting", "running", "succeeded", "failed", "stopped", "lost"]:
    if rank.exit_code == 0:
        return "succeeded"
    if rank.exit_code is not None:
        is_stopped = rank.signal in _STOPPED or rank.exit_code == 128 + signal.SIGTERM
        return "stopped" if is_stopped and rank.rank != first_failed else "failed"
    if rank.ended_at is not None:
        return "failed" if rank.rank == first_failed else "stopped"
    if node.ended_at is not None:
        return "lost"
    return "running" if rank.started_at is not None else "starting"
