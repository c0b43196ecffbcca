"""The records in a bundle, as data (docs/bundle-format.md describes the files).

Unknown fields are ignored, so that a reader gets on with the records of a later version of the same format.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

ActionKind = Literal["cancel", "hold", "release", "requeue"]
ObservedState = Literal["waiting", "running", "ended"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Head(_Record):
    """``bundle.json``: who made the bundle, when, for which cluster.

    `host` is the submitter's machine, `created_at` Unix seconds, `spec_digest` the digest that tells whether two submits of one id mean the same.
    """

    format: int = 1
    run_id: str
    name: str
    user: str
    host: str
    created_at: float
    cluster: str
    orchestrator: str
    spec_digest: str
    parent: str | None = None
    notebook: str | None = None
    queue: str | None = None
    nodes: int = 1
    processes_per_node: int = 1
    array: str | None = None


class Submission(_Record):
    """``submission.json``: the engine has taken the run."""

    scheduler_id: str
    submitted_at: float


class Claim(_Record):
    """``status/claim.json``: the fence."""

    scheduler_id: str
    node: str | None = None
    time: float


class AttemptClaim(_Record):
    """``status/attempt-N/claim.json``."""

    scheduler_id: str
    incarnation: str
    time: float


class RankRecord(_Record):
    """One rank in a node's record."""

    rank: int
    local_rank: int
    pid: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None


class NodeRecord(_Record):
    """``status/attempt-N/node-R.json``."""

    format: int = 1
    node_rank: int
    node: str
    host: str | None = None
    pid: int | None = None
    started_at: float
    ended_at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    ranks: list[RankRecord] = []
    stopped_by: str | None = None
    error: dict[str, Any] | None = None


class RankError(_Record):
    """``status/attempt-N/rank-G.error.json``: the exception that ended a rank."""

    time: float
    rank: int
    node_rank: int | None = None
    local_rank: int | None = None
    type: str
    message: str
    traceback: str = ""
    cell: int | None = None
    line: int | None = None
    file: str | None = None


class Observation(_Record):
    """``status/observations/<observer>.json``: what the scheduler said last."""

    time: float
    observer: str
    scheduler_id: str | None = None
    attempt: int | None = None
    state: ObservedState
    reason: str | None = None
    reason_code: str | None = None
    verdict: str | None = None
    exit_code: int | None = None


class Action(_Record):
    """``status/actions/*.json``: what a user asked for."""

    time: float
    action: ActionKind
    user: str


class ProcessRecord(_Record):
    """A process on some machine, told apart from any later one with the same number."""

    time: float
    machine: str
    boot: str
    pid_namespace: str
    pid: int
    start_time: int
    host: str
    heartbeat: float | None = None


@dataclass(frozen=True)
class AttemptRecords:
    """The records of one attempt."""

    number: int
    claim: AttemptClaim | None = None
    nodes: tuple[NodeRecord, ...] = ()
    errors: tuple[RankError, ...] = ()


@dataclass(frozen=True)
class RunRecords:
    """All records of a run (or of an array's child) at one moment."""

    head: Head
    submission: Submission | None = None
    claim: Claim | None = None
    attempts: tuple[AttemptRecords, ...] = ()
    observations: tuple[Observation, ...] = ()
    actions: tuple[Action, ...] = ()
    intents: tuple[ProcessRecord, ...] = ()
    owner: ProcessRecord | None = None
    damage: tuple[str, ...] = field(default=())
