"""Actions on jobs of a cluster's queue, several at once, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.quantities import format_duration
from hyperpod_jlab.core.wire import Wire, wire_property

ActionKind = Literal["cancel", "hold", "release", "requeue", "change"]


MAX_JOBS = 500
"""Maximum number of jobs per request."""


@dataclass(frozen=True)
class Change:
    """A change to a waiting or running run or job; None leaves a value unchanged.

    Attributes:
        time_limit: Its new time limit in seconds, counted from its start.
        queue: Its new queue.
    """

    time_limit: int | None = None
    queue: str | None = None

    def __str__(self) -> str:
        """For example ``time limit 2h 00m, queue long``."""
        limit = None if self.time_limit is None else f"time limit {format_duration(self.time_limit)}"
        queue = None if self.queue is None else f"queue {self.queue}"
        return ", ".join(change for change in (limit, queue) if change is not None)


def check_change(action: ActionKind, change: Change | None) -> None:
    """Check that a change names what to change, and that no other action has one.

    Raises:
        InvalidInputError: It does not, or another action has one.
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
            f"a time limit or a queue can be given only with change, not with {action}", detail={"field": "action"}
        )


@dataclass(frozen=True)
class JobResult(Wire):
    """The result of an action on one job; no error if it succeeded."""

    scheduler_id: str
    error: HyperpodError | None = None

    @property
    @wire_property
    def ok(self) -> bool:
        return self.error is None
