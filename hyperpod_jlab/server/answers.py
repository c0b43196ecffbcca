"""What the requests about runs answer, as types: the OpenAPI document and the front end's types are made from them."""

from __future__ import annotations

from typing import Any, Literal, cast

from typing_extensions import TypeAliasType, TypedDict

from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.run import Run as RunRecord
from hyperpod_jlab.core.run import State
from hyperpod_jlab.storage.owners import is_own

RunState = TypeAliasType("RunState", State)
"""A run's state, under a name in the schemas."""


class VersionAnswer(TypedDict):
    """Who answers."""

    version: str
    api: int


class Error(TypedDict):
    """The one shape of an error."""

    code: str
    message: str
    hint: str | None
    detail: dict[str, Any]


class FirstError(TypedDict):
    """The error of the rank that failed first."""

    rank: int
    type: str
    message: str
    time: str | None
    cell: int | None
    line: int | None
    traceback: str


class Attempt(TypedDict):
    """One execution of a run."""

    number: int
    state: RunState
    reason: str | None
    reason_code: str | None
    exit_code: int | None
    started_at: str | None
    ended_at: str | None
    nodes: list[str]
    first_error: FirstError | None


class Run(TypedDict):
    """One run, or a child of an array. `user` is the name of the user with the number `uid`, who owns its folder; `own` says whether that is the server's own user. `space` is the shared space of Studio that it acts as, null elsewhere."""

    run_id: str
    name: str
    cluster: str
    orchestrator: str
    user: str
    uid: int
    own: bool
    space: str | None
    queue: str | None
    state: RunState
    reason: str | None
    reason_code: str | None
    exit_code: int | None
    created_at: str | None
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    scheduler_id: str | None
    kind: str | None
    parent: str | None
    bundle: str
    notebook: str | None
    nodes: int
    processes_per_node: int
    children: dict[RunState, int] | None
    attempts: list[Attempt]


class RunList(TypedDict):
    """A page of runs, newest first, and the cursor of the next one."""

    runs: list[Run]
    next: str | None


class Children(TypedDict):
    """The children of an array, in the order of their indices."""

    runs: list[Run]


class RenderedText(TypedDict):
    """The script or manifest that the scheduler is given."""

    name: str
    text: str


class PreviewPart(TypedDict):
    """One part of the code, as it will run."""

    title: str
    language: str
    text: str
    notes: list[str]


class FoundThing(TypedDict):
    """What was found wrong or worth saying; one of level ``error`` refuses the run. `field` is a path in the spec."""

    level: Literal["error", "warning", "info"]
    code: str
    message: str
    hint: str | None
    field: str | None


class Preview(TypedDict):
    """Exactly what would run."""

    run_id: str
    name: str
    rendered: RenderedText
    command: list[str]
    files: list[str]
    parts: list[PreviewPart]
    findings: list[FoundThing]


class Holder(TypedDict):
    """A user who holds what a run waits for."""

    user: str
    accelerators: int
    nodes: int
    jobs: int


class WaitReason(TypedDict):
    """Why a run waits."""

    run_id: str
    reason: str | None
    reason_code: str | None
    position: int | None
    counted: str | None
    ahead: list[str]
    expected_start: str | None
    holders: list[Holder]
    would_start_now: list[str]
    tried: int


class Shell(TypedDict):
    """How to open a shell on one of a run's nodes: a command to copy. The node is null while it has no name."""

    node_rank: int
    node: str | None
    command: str


class RunAccess(TypedDict):
    """What of a run's nodes can be reached now; when their ports cannot, `reason` says why."""

    run_id: str
    ports: bool
    reason: str | None
    shells: list[Shell]


class Usage(TypedDict):
    """What a run used in all its attempts together; times are in seconds, memory in bytes.

    `source` says who says so: the scheduler's accounting, or the run's own records. `accelerator_seconds` is seconds times accelerators, null when that is
    not known. `max_memory` is the most that one process had, or all of a node together as far as the scheduler sampled them.
    """

    source: Literal["accounting", "journal"]
    attempts: int
    elapsed: float | None
    nodes: int | None
    cpu_seconds: float | None
    accelerator_seconds: float | None
    accelerator_kind: Literal["gpu", "neuron"]
    max_memory: int | None
    exit_code: int | None
    signal: int | None


class RunUsage(TypedDict):
    """What a run used; null while it has not ended."""

    usage: Usage | None


def run_answer(run: RunRecord) -> Run:
    """A run as it is answered."""
    return cast("Run", {**run.to_dict(), "own": is_own(run)})


def finding_answer(finding: Finding) -> FoundThing:
    """A finding as it is answered."""
    return cast("FoundThing", finding.model_dump())
