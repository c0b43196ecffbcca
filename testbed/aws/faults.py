"""What goes wrong on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from testbed.aws.replies import ApiError

ANY = "*"

When = Literal["before", "after"]


class ConnectionCutError(Exception):
    """The connection ends without an answer."""


@dataclass
class Faults:
    """Faults by action, such as ``sagemaker:DescribeCluster``.

    Attributes:
        throttled: How many of the next calls are refused as too many.
        broken: How many of the next calls fail on the service's side.
        denied: Actions that the caller has no right to, each with the names of the clusters that this is so for (``*``: all).
        slow: Seconds that an action takes.
        later: What happens to an answer after it was checked: how a newer AWS than this botocore would answer.
        interrupt: Called with the action before a call is done (``before``), and when it is done and not answered yet (``after``); it may raise
            `ApiError` or `ConnectionCutError`, or do harm to the caller.
        clock: How much the service's clock is ahead of the machine's.
    """

    throttled: dict[str, int] = field(default_factory=dict)
    broken: dict[str, int] = field(default_factory=dict)
    denied: dict[str, set[str]] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    later: dict[str, Callable[[dict[str, Any]], None]] = field(default_factory=dict)
    interrupt: Callable[[str, When], None] | None = None
    clock: timedelta = timedelta()

    def deny(self, action: str, *names: str) -> None:
        """Take a right away; for some clusters only when they are named."""
        self.denied.setdefault(action, set()).update(names or {ANY})

    def before(self, action: str) -> None:
        """Fail a call that is to fail whatever it asks for.

        Raises:
            ApiError: It does.
            ConnectionCutError: It does not get an answer.
        """
        if self.interrupt is not None:
            self.interrupt(action, "before")
        if _counts_down(self.throttled, action):
            raise ApiError("ThrottlingException", "Rate exceeded")
        if _counts_down(self.broken, action):
            raise ApiError("InternalFailure", "The request processing has failed", 500)

    def after(self, action: str) -> None:
        """Lose the answer of a call that was done.

        Raises:
            ApiError: Another answer is given.
            ConnectionCutError: None is given.
        """
        if self.interrupt is not None:
            self.interrupt(action, "after")

    def denies(self, action: str, name: str | None) -> bool:
        """Whether the right to do this to the named thing (None: nothing single) was taken away."""
        names = self.denied.get(action, set())
        return ANY in names or name in names


def _counts_down(left: dict[str, int], action: str) -> bool:
    if left.get(action, 0) <= 0:
        return False
    left[action] -= 1
    return True
