"""A run as every face shows it (the contract of ``--json`` and of REST)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from hyperpod_jlab.core.records import AttemptRecords, NodeRecord, RunRecords
from hyperpod_jlab.core.spec import Accelerators
from hyperpod_jlab.core.wire import Time

State = Literal["submitting", "waiting", "running", "succeeded", "failed", "cancelled", "unknown"]

RunState = TypeAliasType("RunState", State)
"""A run's state, under a name in the schemas."""

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


@dataclass(frozen=True)
class FirstError:
    """The error of the rank that failed first: where to look."""

    rank: int
    type: str
    message: str
    time: Time
    cell: int | None = None
    line: int | None = None
    traceback: str = ""


@dataclass(frozen=True)
class Attempt:
    """One execution of a run."""

    number: int
    state: RunState
    reason: str | None = None
    reason_code: str | None = None
    exit_code: int | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    nodes: tuple[str, ...] = ()
    first_error: FirstError | None = None


@dataclass(frozen=True)
class Status:
    """What the records say of a run: the outcome of `hyperpod_jlab.core.state.derive`."""

    state: RunState
    reason: str | None = None
    reason_code: str | None = None
    exit_code: int | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing happens by itself any more."""
        return self.state in ENDED


@dataclass(frozen=True, kw_only=True)
class Run(Status):
    """One run, or one child of an array.

    Attributes:
        user: The name of the user with the number `uid`, who owns its folder.
        queue: The queue that it was sent to.
        scheduler_id: What the scheduler calls it.
        kind: The kind of object that the scheduler has of it, such as ``PyTorchJob``; null where it has one only.
        parent: The id of the array that it is a child of.
        bundle: Its folder on this machine.
        notebook: The notebook that it was sent from.
        children: How many children an array has in each state; null without any.
        space: The shared space of Studio that it acts as; null elsewhere.
    """

    run_id: str
    name: str
    cluster: str
    orchestrator: str
    user: str
    uid: int
    queue: str | None
    created_at: Time
    submitted_at: Time | None
    scheduler_id: str | None
    parent: str | None
    bundle: str
    notebook: str | None = None
    kind: str | None = None
    nodes: int = 1
    processes_per_node: int = 1
    children: dict[RunState, int] | None = None
    space: str | None = None

    @property
    def status(self) -> Status:
        """Its outcome alone."""
        return Status(**{name: getattr(self, name) for name in Status.__dataclass_fields__})


# --------------------------------------------------------------------------------------------------
# What an ended run used: time, accelerators, memory; by the scheduler's accounting, or by the run's own records.

Source = Literal["accounting", "journal"]

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Usage(BaseModel):
    """What a run used in all its attempts together (``status/usage.json``).

    Attributes:
        source: Who says it: the scheduler's accounting, or the run's own records. What the accounting leaves out comes from the records even so.
        attempts: How many attempts the records had; with others it is out of date.
        elapsed: Seconds that the attempts took together; of an array, that its children took.
        nodes: Nodes of the largest attempt.
        cpu_seconds: CPU time of all processes.
        accelerator_seconds: Seconds that the run had accelerators, times their number; 0 when it had none, None when it is not known.
        accelerator_kind: What they are: ``gpu`` or ``neuron``.
        max_memory: Bytes: the most that one process had, or all processes of a node together as far as the scheduler sampled them. A node's true peak is at least that.
        exit_code: Of the rank that failed first; 128+N after signal N.
        signal: The signal that ended it.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    source: Source
    attempts: Annotated[int, Field(ge=0)] = 0
    elapsed: Amount | None = None
    nodes: Annotated[int, Field(ge=0)] | None = None
    cpu_seconds: Amount | None = None
    accelerator_seconds: Amount | None = None
    accelerator_kind: Literal["gpu", "neuron"] = "gpu"
    max_memory: Annotated[int, Field(ge=0)] | None = None
    exit_code: int | None = None
    signal: int | None = None


def usage_of_records(runs: Sequence[RunRecords], accelerators: Accelerators | None) -> Usage:
    """What the records of a run say.

    Args:
        runs: Its records; an array's are those of its children.
        accelerators: What it has on each node; None when that is not known.
    """
    attempts = [(attempt, _end(run, attempt)) for run in runs for attempt in run.attempts]
    nodes = [node for attempt, _ in attempts for node in attempt.nodes]
    node_seconds = sum(_seconds(node, end) for attempt, end in attempts for node in attempt.nodes)
    return Usage(
        source="journal",
        attempts=len(attempts),
        elapsed=sum(_elapsed(attempt.nodes, end) for attempt, end in attempts),
        nodes=max((len(attempt.nodes) for attempt, _ in attempts), default=None),
        cpu_seconds=_sum(node.cpu_seconds for node in nodes),
        accelerator_seconds=node_seconds * accelerators.count if accelerators else None,
        accelerator_kind=accelerators.kind if accelerators else "gpu",
        max_memory=max((node.max_memory for node in nodes if node.max_memory), default=None),
    )


def signal_of(records: RunRecords, exit_code: int | None) -> int | None:
    """The signal that a rank or node of the last attempt ended with, if it is the one that the exit code tells of."""
    if not records.attempts or exit_code is None:
        return None
    nodes = records.attempts[-1].nodes
    signals = {node.signal for node in nodes} | {
        rank.signal for node in nodes for rank in node.ranks
    }
    return exit_code - 128 if exit_code - 128 in signals else None


def _end(run: RunRecords, attempt: AttemptRecords) -> float | None:
    """When an attempt's nodes ended that left no last word: with the last of the others, else when the scheduler said so."""
    ends = [node.ended_at for node in attempt.nodes if node.ended_at is not None]
    if ends:
        return max(ends)
    last = attempt is run.attempts[-1]
    said = [
        seen.time
        for seen in run.observations
        if seen.attempt == attempt.number or (last and seen.attempt is None)
        if seen.verdict is not None or seen.state == "ended"
    ]
    return min(said, default=None)


def _seconds(node: NodeRecord, end: float | None) -> float:
    ended = node.ended_at if node.ended_at is not None else end
    return max(0.0, ended - node.started_at) if ended is not None else 0.0


def _elapsed(nodes: Sequence[NodeRecord], end: float | None) -> float:
    # Each node by its own clock: those of two nodes may differ by minutes.
    return max((_seconds(node, end) for node in nodes), default=0.0)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# --------------------------------------------------------------------------------------------------
# The state of an array as the sum of its children's: counts and the worst state.

_WORST_FIRST: tuple[State, ...] = ("failed", "unknown", "cancelled", "succeeded")


def sum_up_children(parent: Status, children: Sequence[tuple[Status, int]]) -> Status:
    """The array's status.

    While a child may still change the array runs (or waits, when none has started); after that it has the worst of their states.

    Args:
        parent: What the array's own records say, such as being held.
        children: The status of every child, with how many have it; one that never began ends with the array.
    """
    counts: Counter[State] = Counter()
    for child, count in children:
        counts[child.state] += count
    words = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    started = min((child.started_at for child, _ in children if child.started_at), default=None)
    if all(child.ended or child.state == "unknown" for child, _ in children):
        worst = next(state for state in _WORST_FIRST if counts[state])
        codes = [
            child.exit_code for child, _ in children if child.state == "failed" and child.exit_code
        ]
        ends = [child.ended_at for child, _ in children if child.ended_at]
        return Status(
            worst,
            reason=None if worst == "succeeded" else words,
            reason_code=None if worst == "succeeded" else "children",
            exit_code=0 if worst == "succeeded" else next(iter(codes), None),
            started_at=started,
            ended_at=max(ends, default=None),
        )
    if parent.ended:  # children that live go on without it; the others were told of its end
        words = f"its supervisor is gone; {words}"
    busy = len(counts) > 1 or counts["running"] > 0
    if busy or parent.ended:
        return Status("running" if busy else "waiting", reason=words, started_at=started)
    if parent.state == "waiting":  # such as held: the array's own word says why
        return Status("waiting", reason=parent.reason or words, reason_code=parent.reason_code)
    said = {child.reason_code: child.reason for child, _ in children if child.reason_code}
    if len(said) == 1:  # all that know why say the same
        ((code, reason),) = said.items()
        return Status("waiting", reason=f"{words}: {reason}", reason_code=code)
    return Status("waiting", reason=words)
