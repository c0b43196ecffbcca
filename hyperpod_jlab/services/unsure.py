"""A submit of which nobody can say whether the scheduler has it."""

from __future__ import annotations

from hyperpod_jlab.model.errors import UnreachableError


def maybe_sent(error: UnreachableError, run_id: str) -> UnreachableError:
    """The error of a cluster that fell silent while it was given a run: what it was, and how to go on without a second execution."""
    return UnreachableError(
        f"{error.message}; it may have taken the run {run_id} all the same",
        code=error.code,
        hint=f"see: hpj show {run_id}; to send it again give --run-id {run_id}, then it is executed once at the most",
        detail={**error.detail, "run_id": run_id, "maybe_sent": True},
    )
