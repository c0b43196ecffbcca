"""A run's state as a pure function of its records.

The inputs are the launcher's records, the scheduler's latest observation and the journal of user actions. Precedence for the end of an
attempt: the user's cancel, the scheduler's verdict, the ranks' exit codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hyperpod_jlab.core.records import Action, AttemptRecords, NodeRecord, Observation, RunRecords
from hyperpod_jlab.core.repair import mark_under_repair
from hyperpod_jlab.core.run import ENDED, Attempt, FirstError, State, Status

# --------------------------------------------------------------------------------------------------
# A scheduler's verdicts as states, codes and messages.

VERDICTS: dict[str, tuple[State, str, str]] = {
    "TIMEOUT": ("failed", "timeout", "it reached its time limit"),
    "OOM": ("failed", "out_of_memory", "it ran out of memory"),
    "NODE_FAIL": ("failed", "node_fail", "a node failed"),
    "PREEMPTED": ("failed", "preempted", "it was preempted"),
    "LOST": ("failed", "lost", "its processes disappeared without an exit record"),
    "CANCELLED": ("cancelled", "cancelled", "it was cancelled"),
    "REQUEUED": ("failed", "requeued", "it was requeued"),
    "DEPENDENCY": ("failed", "dependency", "a run that it depends on did not succeed"),
    "REFUSED": ("failed", "refused", "the scheduler rejected it"),
    "FAILED": ("failed", "failed", "the scheduler reports that it failed"),
}
"""By the verdict of an observation."""


def after_requeue(last: Attempt, observation: Observation) -> Attempt:
    """The last attempt of a run that ended although a requeue was expected: the reason of the end is more informative."""
    state, code, message = VERDICTS.get(observation.verdict or "", ("", "", ""))
    if last.reason_code != "requeued" or state != "failed" or code == "requeued":
        return last
    reason, exit_code = observation.reason or message, last.exit_code or observation.exit_code
    return replace(last, reason=reason, reason_code=observation.reason_code or code, exit_code=exit_code or None)


Submitter = Literal["alive", "dead", "unknown"]

VERDICT_TIMEOUT = 60.0
"""Seconds to wait for the scheduler's verdict on a failed attempt: it may be a time limit, or a restart may follow."""

RESTARTS_USED_UP = "restarts_used_up"
"""The reason code of a scheduler that ended a restart at once: its exit code belongs to an earlier attempt."""

SUBMIT_TIMEOUT = 120.0
"""Seconds after which a submit on another machine without any trace counts as interrupted."""

_LAST_SIGNAL = 64


@dataclass(frozen=True)
class StateContext:
    """What a state depends on beyond the records.

    Attributes:
        now: The time (Unix seconds).
        submitter: Whether the submitting process is alive.
        unreachable: Why the cluster does not answer, or None if it does.
        heard: Whether all launchers of the newest attempt that have not reported their end have a recent heartbeat,
            which proves that it runs although the cluster does not answer.
    """

    now: float
    submitter: Submitter = "unknown"
    unreachable: str | None = None
    heard: bool = False


def derive(records: RunRecords, context: StateContext) -> Status:
    """The run's current state."""
    observations = _relevant_observations(records)
    observation = max(observations, key=lambda item: item.time, default=None)
    cancel = _first_cancel(records.actions)
    attempts = tuple(
        _attempt(records, attempt, observations, cancel, last=attempt is records.attempts[-1])
        for attempt in records.attempts
    )
    if attempts:
        status = _after_attempts(attempts, observation, cancel, context)
    else:
        status = _before_attempts(records, observation, cancel, context)
    if records.damage and not status.ended:
        damaged = ", ".join(records.damage[:3])
        return replace(status, state="unknown", reason=f"records cannot be read: {damaged}", reason_code="damaged")
    if context.unreachable is not None and status.state in {"waiting", "running"}:
        if status.state == "running" and context.heard:
            reason = status.reason or "its nodes report that it is running"
            return replace(status, reason=f"{reason}; {context.unreachable}")
        return replace(status, state="unknown", reason=context.unreachable, reason_code="unreachable")
    return status


def _is_accepted(records: RunRecords) -> bool:
    """Whether anything proves that the engine has the run, even if the submit was interrupted before recording it."""
    return bool(records.submission or records.claim or records.attempts or records.owner)


def _relevant_observations(records: RunRecords) -> tuple[Observation, ...]:
    """The relevant observations: a submit's report of its interruption only counts until the run is accepted, or submitted again."""
    is_accepted = _is_accepted(records)
    sent_at = max((intent.time for intent in records.intents), default=0.0)
    return tuple(
        observation
        for observation in records.observations
        if observation.reason_code != "submit_interrupted" or not (is_accepted or sent_at > observation.time)
    )


def _first_cancel(actions: tuple[Action, ...]) -> Action | None:
    """The first cancel; later ones change nothing."""
    cancels = [action for action in actions if action.action == "cancel"]
    return min(cancels, key=lambda action: action.time, default=None)


def _before_attempts(
    records: RunRecords, observation: Observation | None, cancel: Action | None, context: StateContext
) -> Status:
    if observation is not None and observation.state == "ended":
        if observation.verdict == "COMPLETED" and observation.exit_code == 0:
            return Status("succeeded", exit_code=0, ended_at=observation.time)
        state, code, message = VERDICTS.get(observation.verdict or "", VERDICTS["LOST"])
        if _was_cancelled_in_time(cancel, observation.time, observation):
            state, code, message = VERDICTS["CANCELLED"]
        # The scheduler's own reason, such as why it refused the run, is better than ours.
        cancelled = state == "cancelled"
        return Status(
            state,
            reason=None if cancelled else observation.reason or message,
            reason_code=None if cancelled else observation.reason_code or code,
            exit_code=observation.exit_code or None,  # a scheduler may report 0 for what it ended itself
            ended_at=observation.time,
        )
    if observation is not None and observation.state == "running":
        if cancel is not None:
            return Status("running", reason="being cancelled", reason_code="cancelling")
        return Status("running", reason=observation.reason or "starting", reason_code="starting")
    if observation is not None or _is_accepted(records):
        if cancel is not None:
            return Status("waiting", reason="being cancelled", reason_code="cancelling")
        return Status(
            "waiting",
            reason=observation.reason if observation else None,
            reason_code=observation.reason_code if observation else None,
        )
    return _before_acceptance(records, cancel, context)


def _before_acceptance(records: RunRecords, cancel: Action | None, context: StateContext) -> Status:
    submitted_at = max((intent.time for intent in records.intents), default=records.head.created_at)
    interrupted = context.submitter == "dead" or (
        context.submitter == "unknown" and context.now - submitted_at > SUBMIT_TIMEOUT
    )
    if not interrupted:
        return Status("submitting")
    if cancel is not None:
        return Status("cancelled", ended_at=cancel.time)
    return Status(
        "failed",
        reason="the submit was interrupted; submit it again with the same run id",
        reason_code="submit_interrupted",
        ended_at=submitted_at,
    )


def _after_attempts(
    attempts: tuple[Attempt, ...], observation: Observation | None, cancel: Action | None, context: StateContext
) -> Status:
    last = attempts[-1]
    started = attempts[0].started_at
    if last.state in ENDED and _is_verdict_pending(last, observation, context):
        reason, code = ("being cancelled", "cancelling") if cancel else ("ending", "ending")
        last = replace(last, state="running", reason=reason, reason_code=code)
        attempts = (*attempts[:-1], last)
    if last.state not in ENDED:
        last = mark_under_repair(last, observation)
        return Status(
            last.state, reason=last.reason, reason_code=last.reason_code, started_at=started, attempts=attempts
        )
    if observation is not None and _waits_for_next(observation, last):
        return _next_attempt(observation, cancel, attempts)
    if observation is not None and observation.state == "ended":
        last = after_requeue(last, observation)
    # Cancelled while waiting for its next attempt: the attempt failed, the run was cancelled.
    cancelled = (
        cancel is not None
        and observation is not None
        and observation.verdict == "CANCELLED"
        and last.state != "succeeded"
    )
    exit_code = observation.exit_code or None if observation is not None else None
    return Status(
        "cancelled" if cancelled else last.state,
        reason=None if cancelled else last.reason,
        reason_code=None if cancelled else last.reason_code,
        exit_code=last.exit_code if last.exit_code is not None else exit_code,
        started_at=started,
        ended_at=last.ended_at,
        attempts=attempts,
    )


def _next_attempt(observation: Observation, cancel: Action | None, attempts: tuple[Attempt, ...]) -> Status:
    reason, code = observation.reason or "waiting for its next attempt", observation.reason_code
    return Status(
        "waiting",
        reason="being cancelled" if cancel else reason,
        reason_code="cancelling" if cancel else code or "recovering",
        started_at=attempts[0].started_at,
        attempts=attempts,
    )


def _waits_for_next(observation: Observation, last: Attempt) -> bool:
    """Whether the scheduler reports that the run waits for the attempt after this one.

    It may name the attempt; comparing times is only as good as the clocks of the nodes and the observer.
    """
    if observation.state != "waiting":
        return False
    return observation.attempt == last.number or observation.time >= (last.ended_at or 0.0)


def _is_verdict_pending(attempt: Attempt, observation: Observation | None, context: StateContext) -> bool:
    """Whether an attempt failed and the verdict is pending: the scheduler last saw it running, or starting the next one."""
    if attempt.state == "succeeded" or observation is None or attempt.ended_at is None:
        return False
    if observation.state == "ended" or _waits_for_next(observation, attempt):
        return False
    return context.now - max(attempt.ended_at, observation.time) < VERDICT_TIMEOUT


def _attempt(
    records: RunRecords,
    attempt: AttemptRecords,
    observations: tuple[Observation, ...],
    cancel: Action | None,
    *,
    last: bool,
) -> Attempt:
    started = min((node.started_at for node in attempt.nodes), default=None)
    if started is None and attempt.claim is not None:
        started = attempt.claim.time
    base = Attempt(
        number=attempt.number,
        state="running",
        started_at=started,
        nodes=tuple(node.node for node in attempt.nodes),
        first_error=_first_error(attempt),
    )
    final = _final_observation(attempt.number, observations, last=last)
    complete = len(attempt.nodes) >= records.head.nodes and all(node.ended_at is not None for node in attempt.nodes)
    if complete or final is not None or not last:
        return _ended(base, attempt, final, cancel, complete=complete)
    if cancel is not None:
        return replace(base, reason="being cancelled", reason_code="cancelling")
    if any(node.exit_code for node in attempt.nodes if node.ended_at is not None):
        return replace(base, reason="a node failed; the other nodes are being stopped", reason_code="ending")
    step = next((node.step for node in attempt.nodes if node.step and node.ended_at is None), None)
    return base if step is None else replace(base, reason=step, reason_code="setup")


def _final_observation(number: int, observations: tuple[Observation, ...], *, last: bool) -> Observation | None:
    """The scheduler's observation that this attempt ended: the first verdict on it, else the latest observation."""
    verdicts = [item for item in observations if item.attempt == number and item.verdict is not None]
    if verdicts:  # LOST gives way to a better verdict
        return min(verdicts, key=lambda item: (item.verdict == "LOST", item.time))
    newest = max(observations, key=lambda item: item.time, default=None)
    if newest is None or newest.attempt not in {None, number}:
        return None
    if newest.state == "ended" and (last or newest.attempt == number):
        return newest
    # Waiting again: a reason about this attempt is the reason for the next one.
    if newest.state == "waiting" and newest.attempt == number:
        return newest
    return None


def _ended(
    base: Attempt, attempt: AttemptRecords, final: Observation | None, cancel: Action | None, *, complete: bool
) -> Attempt:
    ends = [node.ended_at for node in attempt.nodes if node.ended_at is not None]
    ended_at = max(ends) if ends else (final.time if final else base.started_at)
    # Nodes' final records may be missing if the partition was full; the scheduler's verdict is
    # better.
    is_completed = final is not None and final.verdict == "COMPLETED" and final.exit_code == 0
    clean = (complete or is_completed) and all(node.exit_code in {0, None} for node in attempt.nodes)
    exit_code = 0 if clean else _exit_code(attempt.nodes)
    if exit_code is None and final is not None and final.reason_code != RESTARTS_USED_UP:
        exit_code = final.exit_code or None
    base = replace(base, ended_at=ended_at, exit_code=exit_code)
    if clean:
        return replace(base, state="succeeded")
    if _was_cancelled_in_time(cancel, ended_at, final) and _was_stopped(attempt, complete):
        return replace(base, state="cancelled")
    if final is not None and final.verdict in VERDICTS:
        state, code, message = VERDICTS[final.verdict]
        # LOST and FAILED only mean that there is no better verdict; the exit code of a rank that
        # ended by itself is one.
        ended_by_itself = complete and not (final.verdict == "LOST" and _was_stopped(attempt, complete))
        if final.verdict not in {"LOST", "FAILED"} or not ended_by_itself:
            # Else its reason is why the run waits now; verdicts from launchers and events only
            # concern the attempt.
            if final.state == "ended" or final.observer in {"launcher", "events"}:
                message, code = final.reason or message, final.reason_code or code
            return replace(base, state=state, reason=message, reason_code=code)
    reason, code = _failure_reason(base, attempt)
    return replace(base, state="failed", reason=reason, reason_code=code)


def _was_cancelled_in_time(cancel: Action | None, ended_at: float | None, final: Observation | None) -> bool:
    """Whether a cancel came before the end; a lost attempt ended some time after its last heartbeat."""
    if cancel is None:
        return False
    is_inferred = final is not None and final.verdict == "LOST" and final.attempt is None
    return is_inferred or ended_at is None or cancel.time <= ended_at


def _was_stopped(attempt: AttemptRecords, complete: bool) -> bool:
    return not complete or any(node.stopped_by not in {None, "peer"} for node in attempt.nodes)


def _exit_code(nodes: tuple[NodeRecord, ...]) -> int | None:
    """The exit code of the rank that failed first, else of the first node that failed by itself."""
    ranks = [
        (rank.ended_at or node.ended_at or 0.0, 128 + rank.signal if rank.signal else rank.exit_code)
        for node in nodes
        if node.stopped_by is None
        for rank in node.ranks
        if rank.exit_code or rank.signal
    ]
    if ranks:
        return min(ranks)[1]
    failed = [node for node in nodes if node.exit_code]
    failed.sort(key=lambda node: (node.stopped_by is not None, node.ended_at or 0.0))
    return failed[0].exit_code if failed else None


def _first_error(attempt: AttemptRecords) -> FirstError | None:
    if not attempt.errors:
        return None
    first = min(attempt.errors, key=lambda error: error.time)
    return FirstError(
        rank=first.rank,
        type=first.type,
        message=first.message,
        time=first.time,
        cell=first.cell,
        line=first.line,
        traceback=first.traceback,
    )


def _failure_reason(base: Attempt, attempt: AttemptRecords) -> tuple[str, str]:
    """The reason of a failure and its code."""
    error = base.first_error
    if error is not None:
        location = f" in cell {error.cell}" if error.cell is not None else ""
        location += f" line {error.line}" if error.cell is not None and error.line is not None else ""
        name = error.type.rpartition(".")[2]
        text = f"rank {error.rank} raised {name}{location}: {error.message}"
        return text.strip().rstrip(":")[:500], "exception"
    for node in attempt.nodes:
        if node.error:
            message = str(node.error.get("message", "the launcher failed"))
            return message, str(node.error.get("code", "launcher"))
    if base.exit_code is None:
        return "its processes disappeared without an exit record", "lost"
    if 128 < base.exit_code <= 128 + _LAST_SIGNAL:
        return f"ended by signal {base.exit_code - 128}", "signal"
    return f"exit code {base.exit_code}", "exit_code"
