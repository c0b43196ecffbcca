"""What can be done to jobs of a cluster's queue, several at once, and what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.quantities import format_duration
from hyperpod_jlab.core.wire import Wire, wire_property

ActionKind = Literal["cancel", "hold", "release", "requeue", "change"]


MAX_JOBS = 500
"""The most jobs that one request may name."""


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
        return ", ".join(change for change in (limit, queue) if change is not None)


def check_change(action: ActionKind, change: Change | None) -> None:
    """A change must name what it changes, and nothing else may come with one.

    Raises:
        InvalidInputError: It does not, or something does.
    """
    has_change = change is not None and change != Change()
    if action == "change" and not has_change:
        raise InvalidInputError(
            "there is nothing to change",
            code="nothing_to_change",
            hint="give a time limit, a queue or both",
            detail={"field": "time_limit"},
        )
    if action != "change" and has_change:
        raise InvalidInputError(
            f"a time limit or a queue can be given only with change, not with {action}",
            detail={"field": "action"},
        )


@dataclass(frozen=True)
class JobResult(Wire):
    """What came of an action on one job: no error when it was done."""

    scheduler_id: str
    error: HyperpodError | None = None

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether it was done."""
        return self.error is None
