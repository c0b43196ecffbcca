"""Pauses between tries that grow, differently for each who tries."""

from __future__ import annotations

import random


class Backoff:
    """Doubles from `first` to `most` seconds, give or take a quarter, so that many who failed together do not come back together."""

    def __init__(self, first: float, most: float) -> None:
        self._first, self._most = first, most
        self._next = first

    def pause(self) -> float:
        """Seconds to wait now."""
        found = self._next
        self._next = min(self._most, found * 2)
        return found * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    def reset(self) -> None:
        """All is well again."""
        self._next = self._first
