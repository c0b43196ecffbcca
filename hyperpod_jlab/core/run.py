"""A run as every interface shows it (the contract of ``--json`` and of REST)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypeAliasType

from hyperpod_jlab.core.wire import Time

State = Literal["submitting", "waiting", "running", "succeeded", "failed", "cancelled", "unknown"]

RunState = TypeAliasType("RunState", State)
"""A run's state, under a name of its own in the schemas."""

STATES: tuple[State, ...] = ("submitting", "waiting", "running", "succeeded", "failed", "cancelled", "unknown")

ENDED: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})
"""Final states."""


@dataclass(frozen=True)
class FirstError:
    """The error of the rank that failed first: the likely cause."""

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
    """A run's status, derived from its records by `hyperpod_jlab.core.state.derive`."""

    state: RunState
    reason: str | None = None
    reason_code: str | None = None
    exit_code: int | None = None
    started_at: Time | None = None
    ended_at: Time | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, kw_only=True)
class Run(Status):
    """One run, or one child of an array.

    Attributes:
        user: The name of the user with the id `uid`, who owns its folder.
        queue: The queue that it was submitted to.
        scheduler_id: The scheduler's id of it.
        kind: The kind of the scheduler's object, such as ``PyTorchJob``; null if the scheduler has one kind only.
        parent: The id of the array that it is a child of.
        bundle: Its folder on this machine.
        notebook: The notebook that it was submitted from.
        children: The number of an array's children in each state; null if it has none.
        space: The shared Studio space that it belongs to; null outside one.
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
    gpus_per_node: int | None = None
    children: dict[RunState, int] | None = None
    space: str | None = None

    @property
    def status(self) -> Status:
        """Its status alone."""
        return Status(**{name: getattr(self, name) for name in Status.__dataclass_fields__})


# --------------------------------------------------------------------------------------------------
# An array's state as the sum of its children's: counts and the worst state.

_BY_SEVERITY: tuple[State, ...] = ("failed", "unknown", "cancelled", "succeeded")


def summarize_children(parent: Status, children: Sequence[tuple[Status, int]]) -> Status:
    """The array's status.

    While a child may still change, the array runs (or waits, if none has started); after that it has the worst of their states.

    Args:
        parent: The array's own records, such as a hold.
        children: The status of every child, with its count; children that never started end with the array.
    """
    counts: Counter[State] = Counter()
    for child, count in children:
        counts[child.state] += count
    summary = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    started = min((child.started_at for child, _ in children if child.started_at), default=None)
    if all(child.ended or child.state == "unknown" for child, _ in children):
        worst = next(state for state in _BY_SEVERITY if counts[state])
        codes = [child.exit_code for child, _ in children if child.state == "failed" and child.exit_code]
        ends = [child.ended_at for child, _ in children if child.ended_at]
        return Status(
            worst,
            reason=None if worst == "succeeded" else summary,
            reason_code=None if worst == "succeeded" else "children",
            exit_code=0 if worst == "succeeded" else next(iter(codes), None),
            started_at=started,
            ended_at=max(ends, default=None),
        )
    if parent.ended:  # live children continue without it; the others get its end
        summary = f"its supervisor is not running; {summary}"
    busy = len(counts) > 1 or counts["running"] > 0
    if busy or parent.ended:
        return Status("running" if busy else "waiting", reason=summary, started_at=started)
    if parent.state == "waiting":  # for example held: the array's own reason
        return Status("waiting", reason=parent.reason or summary, reason_code=parent.reason_code)
    reason_by_code = {child.reason_code: child.reason for child, _ in children if child.reason_code}
    if len(reason_by_code) == 1:  # all known reasons agree
        ((code, reason),) = reason_by_code.items()
        return Status("waiting", reason=f"{summary}: {reason}", reason_code=code)
    return Status("waiting", reason=summary)
