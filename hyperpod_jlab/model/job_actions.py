"""What can be done to jobs of a cluster's queue, several at once, and what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.model.quantities import format_duration
from hyperpod_jlab.model.records import ActionKind

MOST_JOBS = 500
"""The most jobs that one request may name."""


ChangeField = Literal["time_limit", "queue"]
"""What of a run or job can be changed."""


@dataclass(frozen=True)
class Change:
    """What is changed about a run or job that waits or runs; None stays as it is.

    Attributes:
        time_limit: Its new time limit in seconds, counted from its start.
        queue: The queue it is moved to.
    """

    time_limit: int | None = None
    queue: str | None = None

    def __str__(self) -> str:
        """In words: ``time limit 2h 00m, queue long``."""
        limit = (
            None if self.time_limit is None else f"time limit {format_duration(self.time_limit)}"
        )
        queue = None if self.queue is None else f"queue {self.queue}"
        return ", ".join(word for word in (limit, queue) if word is not None)


def check_change(action: ActionKind, change: Change | None) -> None:
    """A change must name what it changes, and nothing else may come with one.

    Raises:
        InvalidInputError: It does not, or something does.
    """
    named = change is not None and change != Change()
    if action == "change" and not named:
        raise InvalidInputError(
            "it is not said what to change",
            code="nothing_to_change",
            hint="name a time limit, a queue or both",
            detail={"field": "time_limit"},
        )
    if action != "change" and named:
        raise InvalidInputError(
            f"a time limit or a queue can be changed, not given with {action}",
            detail={"field": "action"},
        )


@dataclass(frozen=True)
class JobResult:
    """What came of an action on one job: no error when it was done."""

    scheduler_id: str
    error: HyperpodError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        error = self.error.to_dict() if self.error is not None else None
        return {"scheduler_id": self.scheduler_id, "ok": error is None, "error": error}
