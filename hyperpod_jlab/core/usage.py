"""Usage of an ended run: time, accelerators, memory; from the scheduler's accounting or the run's own records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from hyperpod_jlab.core.records import AttemptRecords, NodeRecord, RunRecords
from hyperpod_jlab.core.spec import Accelerators

Source = Literal["accounting", "journal"]

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Usage(BaseModel):
    """Usage of a run in all its attempts together (``status/usage.json``).

    Attributes:
        source: The scheduler's accounting, or the run's own records. Values that the accounting lacks come from the records in either case.
        attempts: Number of attempts in the records; a different number means that the usage is out of date.
        elapsed: Total seconds of the attempts; of an array, of its children.
        nodes: Nodes of the largest attempt.
        cpu_seconds: CPU time of all processes.
        accelerator_seconds: Seconds with accelerators, times their number; 0 without accelerators, None if unknown.
        accelerator_kind: ``gpu`` or ``neuron``.
        max_memory: Bytes: the peak of one process, or of all processes of a node together as the scheduler sampled them. A node's true peak is at least that.
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
    """Usage from a run's records.

    Args:
        runs: Its records; for an array those of its children.
        accelerators: Accelerators per node; None if unknown.
    """
    attempts = [(attempt, attempt_end(run, attempt)) for run in runs for attempt in run.attempts]
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
    """The signal that ended a rank or node of the last attempt, if it matches the exit code."""
    if not records.attempts or exit_code is None:
        return None
    nodes = records.attempts[-1].nodes
    signals = {node.signal for node in nodes} | {rank.signal for node in nodes for rank in node.ranks}
    return exit_code - 128 if exit_code - 128 in signals else None


def attempt_end(run: RunRecords, attempt: AttemptRecords) -> float | None:
    """The end of nodes without a final record: with the last of the others, else the scheduler's time."""
    ends = [node.ended_at for node in attempt.nodes if node.ended_at is not None]
    if ends:
        return max(ends)
    last = attempt is run.attempts[-1]
    end_times = [
        observation.time
        for observation in run.observations
        if observation.attempt == attempt.number or (last and observation.attempt is None)
        if observation.verdict is not None or observation.state == "ended"
    ]
    return min(end_times, default=None)


def _seconds(node: NodeRecord, end: float | None) -> float:
    ended = node.ended_at if node.ended_at is not None else end
    return max(0.0, ended - node.started_at) if ended is not None else 0.0


def _elapsed(nodes: Sequence[NodeRecord], end: float | None) -> float:
    # Each node by its own clock: clocks of two nodes may differ by minutes.
    return max((_seconds(node, end) for node in nodes), default=0.0)


def _sum(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None
