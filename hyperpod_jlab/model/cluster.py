"""Clusters as the faces show them: nodes, queues, other people's jobs, and why a run waits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from hyperpod_jlab.model.run import iso_time

_TIMES = {"submitted_at", "started_at", "expected_start"}


class _Row:
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; times are ISO 8601, as in a run."""
        plain: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {name: iso_time(value) if name in _TIMES else value for name, value in plain.items()}


@dataclass(frozen=True)
class Cluster(_Row):
    """A cluster of the configuration, and whether it answers."""

    name: str
    orchestrator: str
    default: bool
    state: str
    reason: str | None = None
    nodes: int | None = None
    running: int | None = None
    waiting: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Node(_Row):
    """A node. Memory is in bytes."""

    name: str
    state: str
    reason: str | None = None
    cpus: int | None = None
    cpus_free: int | None = None
    memory: int | None = None
    accelerators: int = 0
    accelerators_free: int = 0
    accelerator_type: str | None = None
    instance_type: str | None = None
    instance_group: str | None = None
    queues: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Queue(_Row):
    """A place where jobs wait. The time limit is in seconds."""

    name: str
    state: str
    default: bool = False
    nodes: int | None = None
    slots: int | None = None
    slots_free: int | None = None
    time_limit: int | None = None
    running: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Job(_Row):
    """One entry of the queue of all users; `run_id` is set when it is a run of ours. Times are Unix seconds."""

    scheduler_id: str
    name: str
    user: str
    state: str
    queue: str | None = None
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    run_id: str | None = None
    submitted_at: float | None = None
    started_at: float | None = None


@dataclass(frozen=True)
class WaitReason(_Row):
    """Why a run waits: a sentence, its place among those that wait, and what would start now."""

    run_id: str
    reason: str | None
    reason_code: str | None
    position: int | None = None
    ahead: tuple[str, ...] = ()
    expected_start: float | None = None
    would_start_now: tuple[str, ...] = ()
