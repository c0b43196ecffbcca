"""The account's clock, and what is to happen on it. Tests move the clock; a demo lets it run."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2026, 1, 6, 9, 0, tzinfo=UTC)
"""When a clock that tests move begins: a day after the first cluster was made."""


class Timeline:
    """A clock that stands still until `advance`, or one that runs.

    Args:
        runs: Whether it is the machine's clock.
    """

    def __init__(self, *, runs: bool = False) -> None:
        self._runs = runs
        self._now = BEGIN
        self._due: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._watchers: list[Callable[[], None]] = []

    def now(self) -> datetime:
        """What time it is there."""
        return datetime.now(UTC) if self._runs else self._now

    def after(self, delay: timedelta, what: Callable[[], None]) -> None:
        """Let something happen when that much time has gone by."""
        heapq.heappush(self._due, (self.now() + delay, next(self._numbers), what))

    def watch(self, look: Callable[[], None]) -> None:
        """Call this whenever something happened or may have been changed from outside; it may let more happen `after` a time."""
        self._watchers.append(look)

    def advance(self, by: timedelta) -> None:
        """Move a clock that stands still, and let happen what was due meanwhile, each thing at its time.

        Raises:
            RuntimeError: The clock runs by itself.
        """
        if self._runs:
            raise RuntimeError("this clock runs by itself")
        until = self._now + by
        self._look()
        while self._due and self._due[0][0] <= until:
            self._now = max(self._now, self._due[0][0])
            self._happen()
        self._now = until

    def settle(self) -> None:
        """Let happen what is due by now."""
        self._look()
        while self._due and self._due[0][0] <= self.now():
            self._happen()

    def _happen(self) -> None:
        heapq.heappop(self._due)[2]()
        self._look()

    def _look(self) -> None:
        for look in self._watchers:
            look()
