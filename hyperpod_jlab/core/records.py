"""The records in a bundle, as data (docs/bundle-format.md describes the files).

Unknown fields are ignored, so that a reader can read records of a later version of the same format.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hyperpod_jlab.core.fields import ArrayText
from hyperpod_jlab.core.job_actions import ActionKind

ObservedState = Literal["waiting", "running", "ended"]


UnixTime = Annotated[float, Field(ge=0, lt=253_402_300_000, allow_inf_nan=False)]
"""Unix seconds before the year 10000; anything else in a record is damage."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


ENVIRONMENT_FILE = "code/hyperpod_environment.json"
"""In a bundle: the packages that travel with the run, if the spec asks for that; clones find them there like all other code."""

MAX_NODES = 1_000_000
"""Upper limit for nodes and processes: a bundle's numbers may come from another user."""

MAX_OBSERVED_NODES = 256
"""Upper limit for the nodes that an observation names."""

Text = Annotated[str, Field(max_length=8192)]


class Head(_Record):
    """``bundle.json``: who created the bundle, when, for which cluster.

    `host` is the submitter's machine, `created_at` Unix seconds, `spec_digest` the digest that identifies equal submits of one id.
    `kind` is the kind of the scheduler's object, such as ``PyTorchJob``, if there are several kinds.
    `gpus_per_node` is null for a native script or manifest, and in bundles of older versions.
    `space` is the shared Studio space of the run; all its members are `user`.
    """

    format: Annotated[int, Field(ge=1)] = 1
    run_id: Text
    name: Text
    user: Text
    host: Text
    created_at: UnixTime
    cluster: Text
    orchestrator: Text
    spec_digest: Text
    parent: Text | None = None
    notebook: Text | None = None
    queue: Text | None = None
    kind: Text | None = None
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    processes_per_node: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    gpus_per_node: Annotated[int, Field(ge=0, le=MAX_NODES)] | None = None
    array: ArrayText | None = None
    space: Text | None = None


class Submission(_Record):
    """``submission.json``: the engine has accepted the run."""

    scheduler_id: str
    submitted_at: UnixTime


class Claim(_Record):
    """``status/claim.json``: the fence."""

    scheduler_id: str
    node: str | None = None
    time: UnixTime


class AttemptClaim(_Record):
    """``status/attempt-N/claim.json``."""

    scheduler_id: str
    incarnation: str
    time: UnixTime


class RankRecord(_Record):
    """One rank in a node's record."""

    rank: int
    local_rank: int
    pid: int | None = None
    started_at: UnixTime | None = None
    ended_at: UnixTime | None = None
    exit_code: int | None = None
    signal: int | None = None


class NodeRecord(_Record):
    """``status/attempt-N/node-R.json``. Memory is that of the largest process so far, in bytes."""

    format: int = 1
    node_rank: int
    node: str
    host: str | None = None
    pid: int | None = None
    started_at: UnixTime
    ended_at: UnixTime | None = None
    exit_code: int | None = None
    signal: int | None = None
    step: str | None = None
    ranks: list[RankRecord] = []
    max_memory: Annotated[int, Field(ge=0)] | None = None
    cpu_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    stopped_by: str | None = None
    error: dict[str, Any] | None = None


class RankError(_Record):
    """``status/attempt-N/rank-G.error.json``: the exception that ended a rank."""

    time: UnixTime
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
    """``status/observations/<observer>.json``: the scheduler's latest observation; `detail` is its own message if we rephrase the reason.

    `started_at` and `nodes` are set for a run without our launcher, of whose start only the scheduler knows.
    """

    time: UnixTime
    observer: str
    scheduler_id: str | None = None
    attempt: int | None = None
    state: ObservedState
    reason: str | None = None
    reason_code: str | None = None
    detail: str | None = None
    verdict: str | None = None
    exit_code: int | None = None
    started_at: UnixTime | None = None
    nodes: Annotated[tuple[Text, ...], Field(max_length=MAX_OBSERVED_NODES)] | None = None


class Action(_Record):
    """``status/actions/*.json``: a user's action, with the changes (time limit in seconds), if any."""

    time: UnixTime
    action: ActionKind
    user: str
    time_limit: int | None = None
    queue: str | None = None


class ProcessRecord(_Record):
    """A process on a machine, distinguishable from later processes with the same pid."""

    time: UnixTime
    machine: str
    boot: str
    pid_namespace: str
    pid: int
    start_time: int
    host: str
    heartbeat: UnixTime | None = None


@dataclass(frozen=True)
class AttemptRecords:
    """The records of one attempt."""

    number: int
    claim: AttemptClaim | None = None
    nodes: tuple[NodeRecord, ...] = ()
    errors: tuple[RankError, ...] = ()


@dataclass(frozen=True)
class RunRecords:
    """A snapshot of all records of a run (or of an array's child)."""

    head: Head
    submission: Submission | None = None
    claim: Claim | None = None
    attempts: tuple[AttemptRecords, ...] = ()
    observations: tuple[Observation, ...] = ()
    actions: tuple[Action, ...] = ()
    intents: tuple[ProcessRecord, ...] = ()
    owner: ProcessRecord | None = None
    damage: tuple[str, ...] = field(default=())


def with_observed_attempt(records: RunRecords) -> RunRecords:
    """The records; for a run without our launcher with the attempt that the scheduler's latest observation tells of."""
    latest = max(records.observations, key=lambda item: item.time, default=None)
    if records.attempts or latest is None or latest.started_at is None:
        return records
    nodes = tuple(
        NodeRecord(node_rank=rank, node=node, started_at=latest.started_at)
        for rank, node in enumerate(latest.nodes or ())
    )
    return replace(records, attempts=(AttemptRecords(1, nodes=nodes),))
