"""A run as every face shows it (the contract of ``--json`` and of REST)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

State = Literal["submitting", "waiting", "running", "succeeded", "failed", "cancelled", "unknown"]

STATES: tuple[State, ...] = (
    "submitting",
    "waiting",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "unknown",
)

ENDED: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})
"""The states after which nothing happens by itself."""


def unix_time(text: str | None) -> float | None:
    """ISO 8601 as Unix seconds, or None."""
    return None if text is None else datetime.fromisoformat(text).timestamp()


def iso_time(moment: float | None) -> str | None:
    """Unix seconds as ISO 8601 UTC with milliseconds, or None."""
    if moment is None:
        return None
    return (
        datetime.fromtimestamp(moment, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


@dataclass(frozen=True)
class FirstError:
    """The error of the rank that failed first: where to look."""

    rank: int
    type: str
    message: str
    time: float
    cell: int | None = None
    line: int | None = None
    traceback: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "rank": self.rank,
            "type": self.type,
            "message": self.message,
            "time": iso_time(self.time),
            "cell": self.cell,
            "line": self.line,
            "traceback": self.traceback,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FirstError:
        """What `to_dict` made."""
        return cls(**{**data, "time": unix_time(data["time"]) or 0.0})


@dataclass(frozen=True)
class Attempt:
    """One execution of a run. Times are Unix seconds."""

    number: int
    state: State
    reason: str | None = None
    reason_code: str | None = None
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    nodes: tuple[str, ...] = ()
    first_error: FirstError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "number": self.number,
            "state": self.state,
            "reason": self.reason,
            "reason_code": self.reason_code,
            "exit_code": self.exit_code,
            "started_at": iso_time(self.started_at),
            "ended_at": iso_time(self.ended_at),
            "nodes": list(self.nodes),
            "first_error": self.first_error.to_dict() if self.first_error else None,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Attempt:
        """What `to_dict` made."""
        error = data["first_error"]
        return cls(
            number=data["number"],
            state=data["state"],
            reason=data["reason"],
            reason_code=data["reason_code"],
            exit_code=data["exit_code"],
            started_at=unix_time(data["started_at"]),
            ended_at=unix_time(data["ended_at"]),
            nodes=tuple(data["nodes"]),
            first_error=FirstError.from_dict(error) if error else None,
        )


@dataclass(frozen=True)
class Status:
    """What the records say of a run: the outcome of `hyperpod_jlab.model.state.derive`."""

    state: State
    reason: str | None = None
    reason_code: str | None = None
    exit_code: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing happens by itself any more."""
        return self.state in ENDED


@dataclass(frozen=True)
class Run:
    """One run, or one child of an array (`parent` is then the array's id).

    `user` is the name of the user with the number `uid`, who owns its folder.
    `kind` is the kind of object that the scheduler has of it, such as ``PyTorchJob``; None where it has one only.
    `space` is the shared space of Studio that it acts as; None elsewhere. `bundle` is its folder on this machine; `children` counts an array's children by state; `created_at` is in Unix seconds.
    """

    run_id: str
    name: str
    cluster: str
    orchestrator: str
    user: str
    queue: str | None
    status: Status
    created_at: float
    submitted_at: float | None
    scheduler_id: str | None
    parent: str | None
    bundle: str
    uid: int
    notebook: str | None = None
    kind: str | None = None
    nodes: int = 1
    processes_per_node: int = 1
    children: dict[str, int] = field(default_factory=dict)
    space: str | None = None

    @property
    def state(self) -> State:
        """The run's state."""
        return self.status.state

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON (the contract of ``--json`` and REST)."""
        status = self.status
        return {
            "run_id": self.run_id,
            "name": self.name,
            "cluster": self.cluster,
            "orchestrator": self.orchestrator,
            "user": self.user,
            "uid": self.uid,
            "space": self.space,
            "queue": self.queue,
            "state": status.state,
            "reason": status.reason,
            "reason_code": status.reason_code,
            "exit_code": status.exit_code,
            "created_at": iso_time(self.created_at),
            "submitted_at": iso_time(self.submitted_at),
            "started_at": iso_time(status.started_at),
            "ended_at": iso_time(status.ended_at),
            "scheduler_id": self.scheduler_id,
            "kind": self.kind,
            "parent": self.parent,
            "bundle": self.bundle,
            "notebook": self.notebook,
            "nodes": self.nodes,
            "processes_per_node": self.processes_per_node,
            "children": dict(self.children) or None,
            "attempts": [attempt.to_dict() for attempt in status.attempts],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Run:
        """What `to_dict` made."""
        status = Status(
            state=data["state"],
            reason=data["reason"],
            reason_code=data["reason_code"],
            exit_code=data["exit_code"],
            started_at=unix_time(data["started_at"]),
            ended_at=unix_time(data["ended_at"]),
            attempts=tuple(Attempt.from_dict(attempt) for attempt in data["attempts"]),
        )
        plain = (
            "run_id",
            "name",
            "cluster",
            "orchestrator",
            "user",
            "uid",
            "queue",
            "scheduler_id",
        )
        rest = ("parent", "bundle", "notebook", "nodes", "processes_per_node")
        return cls(
            **{name: data[name] for name in (*plain, *rest)},
            kind=data.get("kind"),
            space=data.get("space"),
            status=status,
            created_at=unix_time(data["created_at"]) or 0.0,
            submitted_at=unix_time(data["submitted_at"]),
            children=data["children"] or {},
        )
