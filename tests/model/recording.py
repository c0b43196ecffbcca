"""Records as a run would have left them, in few words. All times are seconds after the run was made."""

from __future__ import annotations

from typing import Any

from hyperpod_jlab.core.records import (
    Action,
    AttemptClaim,
    AttemptRecords,
    Head,
    NodeRecord,
    Observation,
    ProcessRecord,
    RankError,
    RankRecord,
    RunRecords,
    Submission,
)


def head(nodes: int = 1, **more: Any) -> Head:
    """The head of a bundle made at time 0."""
    known: dict[str, Any] = {
        "run_id": "run",
        "name": "run",
        "user": "ada",
        "host": "studio",
        "created_at": 0.0,
        "cluster": "local",
        "orchestrator": "local",
        "spec_digest": "0",
        "nodes": nodes,
    }
    return Head(**{**known, **more})


def records(*attempts: AttemptRecords, nodes: int = 1, taken: bool = True, **more: Any) -> RunRecords:
    """A run's records; `taken` when the engine has it."""
    submission = Submission(scheduler_id="17", submitted_at=1.0) if taken else None
    return RunRecords(head=head(nodes), submission=submission, attempts=attempts, **more)


def attempt(*nodes: NodeRecord, number: int = 1, errors: tuple[RankError, ...] = ()) -> AttemptRecords:
    """An attempt that was claimed a second before its first node started."""
    began = min((node.started_at for node in nodes), default=11.0) - 1
    claim = AttemptClaim(scheduler_id="17", incarnation=f"17.{number}", time=began)
    return AttemptRecords(number=number, claim=claim, nodes=nodes, errors=errors)


def node(rank: int = 0, *, start: float = 10.0, end: float | None = None, **more: Any) -> NodeRecord:
    """The record of a node."""
    return NodeRecord(node_rank=rank, node=f"n{rank}", started_at=start, ended_at=end, **more)


def rank(number: int, *, end: float | None = None, **more: Any) -> RankRecord:
    """A rank in a node's record."""
    return RankRecord(rank=number, local_rank=0, ended_at=end, **more)


def word(time: float, state: Any, **more: Any) -> Observation:
    """What the scheduler says at a time."""
    return Observation(time=time, observer=more.pop("observer", "local"), state=state, **more)


def act(time: float, action: Any = "cancel") -> Action:
    """What a user asked for at a time."""
    return Action(time=time, action=action, user="ada")


def intent(time: float = 0.0) -> ProcessRecord:
    """A process that was about to call the engine."""
    return ProcessRecord(time=time, machine="m", boot="b", pid_namespace="p", pid=1, start_time=1, host="studio")


def error(time: float, number: int, text: str = "boom", **more: Any) -> RankError:
    """The exception of a rank."""
    return RankError(time=time, rank=number, type="ValueError", message=text, **more)
