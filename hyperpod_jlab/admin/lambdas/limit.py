"""The time that a function has, and what of it is kept for the answer."""

from __future__ import annotations

import time
from typing import Protocol

_ANSWER, _LAST = (30.0, 0.2), (10.0, 0.1)
"""Seconds, and at most which part of the time, before the end: from then on nothing is begun, and somebody else answers."""


class Context(Protocol):
    """What Lambda hands a handler besides the event (AWS Lambda's documentation of Python's context object)."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the function."""


class Limit:
    """Counts from when it is made.

    Args:
        context: Lambda's.
    """

    def __init__(self, context: Context) -> None:
        self.whole = context.get_remaining_time_in_millis() / 1000
        self._end = time.monotonic() + self.whole

    def to_work(self) -> float:
        """Seconds in which work may go on; never less than nothing."""
        return self._until(_ANSWER)

    def to_watchdog(self) -> float:
        """Seconds until there has to be an answer, whatever the work does."""
        return self._until(_LAST)

    def to_end(self) -> float:
        """Seconds until Lambda ends the function."""
        return max(0.0, self._end - time.monotonic())

    def _until(self, kept: tuple[float, float]) -> float:
        seconds, part = kept
        return max(0.0, self._end - min(seconds, part * self.whole) - time.monotonic())
