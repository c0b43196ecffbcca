"""This machine as a cluster's tables show it: one node, one queue, and the runs on its board."""

from __future__ import annotations

import platform
from collections.abc import Sequence

from hyperpod_jlab.model.cluster import Job, Node, Queue, Resource
from hyperpod_jlab.orchestrators.local import machine
from hyperpod_jlab.orchestrators.local.board import Entry
from hyperpod_jlab.orchestrators.local.identity import scheduler_id

_RUNNING = frozenset({"running", "array"})


def node_row(entries: Sequence[Entry]) -> Node:
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


def queue_row(name: str, slots: int, entries: Sequence[Entry]) -> Queue:
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


def job_rows(entries: Sequence[Entry]) -> list[Job]:
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


def _wanted(entry: Entry) -> tuple[Resource, ...]:
    count = entry.gpus_wanted
    return (Resource("gpu", None, count, used=count, accelerator=True),) if count else ()
