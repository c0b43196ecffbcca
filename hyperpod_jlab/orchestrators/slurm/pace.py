"""How old an answer of the scheduler may be: news is followed closely, a quiet queue is left alone, and nobody asks for nobody."""

from __future__ import annotations

import time

SHORTEST = 1.0
"""Seconds between looks just after something happened."""
LONGEST = 75.0
"""Seconds between looks when nothing has happened for long; with what the panel asks besides it makes two calls a minute at most."""
_GROWTH = 10.0
_AWAY = 90.0
"""Seconds without anybody's look after which nobody is taken to be there: a panel that is shown asks every 60 s."""


class Pace:
    """The pace of one cluster in one process. A submit, an action or a change of the queue is news."""

    def __init__(self) -> None:
        self._news = time.monotonic()
        self._looked: float | None = None

    def news(self) -> None:
        """Something happened, so that more is to be expected soon."""
        self._news = time.monotonic()

    def attend(self) -> None:
        """Somebody looks. A process that never says so, such as a command, is taken to look all the time."""
        self._looked = time.monotonic()

    @property
    def max_age(self) -> float:
        """Seconds that an answer may be old; without end while nobody looks."""
        now = time.monotonic()
        if self._looked is not None and now - self._looked > _AWAY:
            return float("inf")
        return min(LONGEST, max(SHORTEST, (now - self._news) / _GROWTH))
