"""What any process on this machine can see of runs whose supervisors have gone.

Nothing is changed here: another machine that sees the bundle, or another container, says what it last heard and leaves it at that.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import Callable, Sequence

from hyperpod_jlab.core.cluster import Job, Node, Queue, Resource
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.engines.local import machine
from hyperpod_jlab.engines.local.board import Board, BoardEntry
from hyperpod_jlab.engines.local.machine import scheduler_id
from hyperpod_jlab.storage.processes import life
from hyperpod_jlab.storage.records import BundleReader

_SILENCE = 30.0  # seconds without a heartbeat before it is mentioned


def observe(bundles: Sequence[BundleReader], now: float) -> dict[str, Observation]:
    """A word on each run that has one, by run id; `now` in Unix seconds."""
    words = {}
    for bundle in bundles:
        with contextlib.suppress(HyperpodError):  # a damaged bundle is told by whoever reads it
            word = observe_one(bundle.run_id, bundle.read(), now)
            if word is not None:
                words[bundle.run_id] = word
    return words


def observe_one(run_id: str, records: RunRecords, now: float) -> Observation | None:
    """A word on one run, or None when its own records say all."""
    owner = records.owner
    told = [word for word in records.observations if word.reason_code != "submit_interrupted"]
    if owner is None or any(word.state == "ended" for word in told):
        return None
    seen = life(owner)
    if seen == "alive":
        return None
    newest = max(told, key=lambda word: word.time, default=None)
    heard = owner.heartbeat or owner.time
    if seen == "dead":
        return Observation(
            # It ended when it was heard last, whenever one looks; and this is the last word.
            time=max(heard, newest.time + 0.001 if newest else 0.0),
            observer="watch",
            scheduler_id=scheduler_id(run_id),
            state="ended",
            verdict="LOST",
            reason="its supervisor was killed",
            reason_code="lost",
        )
    if newest is None or now - heard < _SILENCE:
        return None
    return newest.model_copy(
        update={
            "time": now,
            "reason": f"running on {owner.host}, last heartbeat {now - heard:.0f} s ago",
        }
    )


# --------------------------------------------------------------------------------------------------
# Why a run waits on this machine, in words.


def ahead_of(entries: list[BoardEntry], run_id: str) -> list[BoardEntry]:
    """The waiting runs that come before this one."""
    waiting = [entry for entry in entries if entry.state == "waiting"]
    names = [entry.run_id for entry in waiting]
    return waiting[: names.index(run_id)] if run_id in names else []


def why_waiting(board: Board, entries: list[BoardEntry], run_id: str) -> tuple[str, str]:
    """The reason and its code: no slot, no GPUs, or others before it."""
    running = [entry for entry in entries if entry.state == "running"]
    ahead = ahead_of(entries, run_id)
    mine = next((entry for entry in entries if entry.run_id == run_id), None)
    before = f"; {len(ahead)} before it" if ahead else ""
    if len(running) >= board.slots:
        slots = (
            "the only slot of this machine is"
            if board.slots == 1
            else f"all {board.slots} slots of this machine are"
        )
        names = ", ".join(entry.name for entry in running[:3])
        return f"{slots} in use by {names}{before}", "slots"
    held = sum(len(entry.gpus) for entry in running)
    if mine is not None and mine.gpus_wanted > board.gpus - held:
        return f"it needs {mine.gpus_wanted} GPUs, but {board.gpus - held} are free{before}", "gpus"
    return f"about to start{before}", "starting"


# --------------------------------------------------------------------------------------------------
# This machine as a cluster's tables show it: one node, one queue, and the runs on its board.

_RUNNING = frozenset({"running", "array"})


class LocalTables:
    """This machine as tables.

    Args:
        name: The cluster's name.
        board: Gives the board of its runs.
    """

    def __init__(self, name: str, board: Callable[[], Board]) -> None:
        self._name = name
        self._board = board

    async def nodes(self) -> list[Node]:
        """This machine as a node."""
        return [await asyncio.to_thread(lambda: node_row(self._board().entries()))]

    async def queues(self) -> list[Queue]:
        """The one line in which runs wait for a slot."""
        board = self._board()
        return [queue_row(self._name, board.slots, await asyncio.to_thread(board.entries))]

    async def jobs(self) -> list[Job]:
        """All runs on this machine's board."""
        return job_rows(await asyncio.to_thread(self._board().entries))


def node_row(entries: Sequence[BoardEntry]) -> Node:
    """This machine. Asks it for its GPUs."""
    running = [entry for entry in entries if entry.state == "running"]
    names = machine.gpus()
    devices = gpu_resources(names, {at for entry in running for at in entry.gpus})
    return Node(
        name=platform.node(),
        state="up",
        cpus=machine.cpus(),
        memory=machine.memory(),
        accelerators=len(names),
        accelerators_free=sum(one.free for one in devices),
        accelerator_type=names[0] if names else None,
        resources=devices,
        jobs=tuple(entry.run_id for entry in running),
    )


def gpu_resources(names: Sequence[str], used: set[int]) -> tuple[Resource, ...]:
    """The GPUs by model; those of one model are taken to follow each other, as nvidia-smi lists them.

    Args:
        names: The models of the GPUs, in the machine's order.
        used: Numbers of those that runs have.
    """
    found = []
    for model in dict.fromkeys(names):
        numbers = [at for at, name in enumerate(names) if name == model]
        taken = tuple(at for at in numbers if at in used)
        together = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        found.append(
            Resource(
                "gpu",
                model,
                len(numbers),
                used=len(taken),
                free=len(numbers) - len(taken),
                used_at=taken,
                first=numbers[0] if together else None,
                accelerator=True,
            )
        )
    return tuple(found)


def queue_row(name: str, slots: int, entries: Sequence[BoardEntry]) -> Queue:
    """The one line in which runs wait for a slot."""
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
    """All runs on the board, which is this user's alone."""
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
            resources=_wanted(entry),
            run_id=entry.run_id,
            submitted_at=entry.order,
        )
        for entry in entries
    ]


def _wanted(entry: BoardEntry) -> tuple[Resource, ...]:
    count = entry.gpus_wanted
    return (Resource("gpu", None, count, used=count, accelerator=True),) if count else ()
