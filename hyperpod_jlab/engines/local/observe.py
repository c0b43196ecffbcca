"""Observations of runs without a live supervisor, from any process on this machine.

This module changes nothing: another machine or container that sees the bundle only reports the last
heartbeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.engines.local import machine
from hyperpod_jlab.engines.local.attempt import RESERVED_BYTES
from hyperpod_jlab.engines.local.board import Board, BoardEntry
from hyperpod_jlab.engines.local.machine import scheduler_id
from hyperpod_jlab.storage.processes import liveness
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from hyperpod_jlab.core.cluster import Job, Node, Queue, Resource

_HEARTBEAT_TIMEOUT_S = 30.0  # seconds without a heartbeat before it is reported


def observe(bundles: Sequence[BundleReader], now: float) -> dict[str, Observation]:
    """Observations of runs, by run id; `now` in Unix seconds."""
    observations = {}
    for bundle in bundles:
        with contextlib.suppress(HyperpodError, OSError):  # its readers report a damaged bundle
            records = bundle.read()
            observation = observe_one(bundle.run_id, records, now)
            if observation is None and lacks_space(bundle, records) and is_full(bundle):
                observation = Observation(
                    time=now,
                    observer="watch",
                    scheduler_id=scheduler_id(bundle.run_id),
                    state="waiting",
                    reason=FULL,
                    reason_code="storage_full",
                )
            if observation is not None:
                observations[bundle.run_id] = observation
    return observations


def observe_one(run_id: str, records: RunRecords, now: float) -> Observation | None:
    """The observation of one run, or None when its own records are complete."""
    owner = records.owner
    candidates = [
        observation for observation in records.observations if observation.reason_code != "submit_interrupted"
    ]
    if owner is None or any(observation.state == "ended" for observation in candidates):
        return None
    state = liveness(owner)
    if state == "alive":
        return None
    newest = max(candidates, key=lambda observation: observation.time, default=None)
    heartbeat = owner.heartbeat or owner.time
    if state == "dead":
        return Observation(
            # It ended at its last heartbeat, whenever this is called; and this is the final
            # observation.
            time=max(heartbeat, newest.time + 0.001 if newest else 0.0),
            observer="watch",
            scheduler_id=scheduler_id(run_id),
            state="ended",
            verdict="LOST",
            reason="its supervisor was killed",
            reason_code="lost",
        )
    if newest is None or now - heartbeat < _HEARTBEAT_TIMEOUT_S:
        return None
    return newest.model_copy(
        update={"time": now, "reason": f"running on {owner.host}, last heartbeat {now - heartbeat:.0f} s ago"}
    )


# --------------------------------------------------------------------------------------------------
# Why a run waits on this machine, as messages.

FULL = "the storage partition is full, so it cannot start"


def lacks_space(bundle: BundleReader, records: RunRecords) -> bool:
    """Whether an accepted run waits to start, so that a full partition is the reason, which its supervisor cannot record there."""
    newest = max(records.observations, key=lambda observation: observation.time, default=None)
    if newest is None:
        return bool(records.submission or records.owner) and not records.attempts
    if records.head.array is not None and bundle.index is None:  # its children wait
        return newest.state == "running"
    return newest.state == "waiting" and newest.reason_code in {"slots", "gpus", "starting"}


def is_full(bundle: BundleReader) -> bool:
    """Whether the partition has less space than an attempt reserves."""
    free = os.statvfs(bundle.partition.root)
    return free.f_bavail * free.f_frsize < RESERVED_BYTES


def entries_ahead(entries: list[BoardEntry], run_id: str) -> list[BoardEntry]:
    """The waiting runs ahead of this one."""
    waiting = [entry for entry in entries if entry.state == "waiting"]
    names = [entry.run_id for entry in waiting]
    return waiting[: names.index(run_id)] if run_id in names else []


def waiting_reason(board: Board, entries: list[BoardEntry], run_id: str) -> tuple[str, str]:
    """The reason and its code: no slot, no GPUs, or others ahead."""
    running = [entry for entry in entries if entry.state == "running"]
    earlier = entries_ahead(entries, run_id)
    own_entry = next((entry for entry in entries if entry.run_id == run_id), None)
    runs = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
    suffix = f" · {runs} ahead" if earlier else ""
    if len(running) >= board.slots:
        names = ", ".join(entry.name for entry in running[:3])
        return f"waiting for {names}{suffix}", "slots"
    used_gpus = sum(len(entry.gpus) for entry in running)
    if own_entry is not None and own_entry.gpus_wanted > board.gpus - used_gpus:
        return (f"it needs {own_entry.gpus_wanted} GPUs, but {board.gpus - used_gpus} are free{suffix}", "gpus")
    return f"about to start{suffix}", "starting"


# --------------------------------------------------------------------------------------------------
# This machine's tables: one node, one queue, and the runs on its board.

_RUNNING = frozenset({"running", "array"})


class LocalTables:
    """This machine as tables.

    Args:
        name: The cluster's name.
        board: Returns the board of its runs.
    """

    def __init__(self, name: str, board: Callable[[], Board]) -> None:
        self._name = name
        self._board = board

    async def nodes(self) -> list[Node]:
        """This machine as a node."""
        return [await asyncio.to_thread(lambda: node_row(self._board().entries()))]

    async def queues(self) -> list[Queue]:
        """The one queue, in which runs wait for a slot."""
        board = self._board()
        return [queue_row(self._name, board.slots, await asyncio.to_thread(board.entries))]

    async def jobs(self) -> list[Job]:
        """All runs on this machine's board."""
        return job_rows(await asyncio.to_thread(self._board().entries))


def node_row(entries: Sequence[BoardEntry]) -> Node:
    """This machine's row, with a query for its GPUs."""
    from hyperpod_jlab.core.cluster import Node

    running = [entry for entry in entries if entry.state == "running"]
    names = machine.gpus()
    devices = gpu_resources(names, {gpu for entry in running for gpu in entry.gpus})
    return Node(
        name=platform.node(),
        state="up",
        cpus=machine.cpus(),
        memory=machine.memory(),
        accelerators=len(names),
        accelerators_free=sum(device.free for device in devices),
        accelerator_type=names[0] if names else None,
        resources=devices,
        jobs=tuple(entry.run_id for entry in running),
    )


def gpu_resources(names: Sequence[str], used_gpus: set[int]) -> tuple[Resource, ...]:
    """The GPUs by model; GPUs of one model are assumed to be consecutive, as nvidia-smi lists them.

    Args:
        names: The models of the GPUs, in the machine's order.
        used_gpus: Indices of the GPUs in use.
    """
    from hyperpod_jlab.core.cluster import Resource

    resources = []
    for model in dict.fromkeys(names):
        indices = [index for index, name in enumerate(names) if name == model]
        used_indices = tuple(index for index in indices if index in used_gpus)
        contiguous = indices == list(range(indices[0], indices[0] + len(indices)))
        resources.append(
            Resource(
                "gpu",
                model,
                len(indices),
                used=len(used_indices),
                free=len(indices) - len(used_indices),
                used_at=used_indices,
                first=indices[0] if contiguous else None,
                accelerator=True,
            )
        )
    return tuple(resources)


def queue_row(name: str, slots: int, entries: Sequence[BoardEntry]) -> Queue:
    """The one queue, in which runs wait for a slot."""
    from hyperpod_jlab.core.cluster import Queue

    running = sum(entry.state == "running" for entry in entries)
    return Queue(
        name=name,
        state="up",
        default=True,
        usable=True,
        nodes=1,
        slots=slots,
        slots_free=max(0, slots - running),
        running=running,
        waiting=sum(entry.state in {"waiting", "held"} for entry in entries),
    )


def job_rows(entries: Sequence[BoardEntry]) -> list[Job]:
    """All runs on the board, which belongs to this user alone."""
    from hyperpod_jlab.core.cluster import Job

    return [
        Job(
            scheduler_id=scheduler_id(entry.run_id),
            name=entry.name,
            user=entry.user,
            state="running" if entry.state in _RUNNING else entry.state,
            mine=True,
            nodes=tuple(f"local-{rank}" for rank in range(entry.nodes)),
            node_count=entry.nodes,
            accelerators=entry.gpus_wanted,
            resources=_requested_gpus(entry),
            run_id=entry.run_id,
            submitted_at=entry.order,
        )
        for entry in entries
    ]


def _requested_gpus(entry: BoardEntry) -> tuple[Resource, ...]:
    from hyperpod_jlab.core.cluster import Resource

    count = entry.gpus_wanted
    return (Resource("gpu", None, count, used=count, accelerator=True),) if count else ()
