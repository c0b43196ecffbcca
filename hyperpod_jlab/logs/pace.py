"""How often to look: fast while bytes arrive, slowly when quiet, and never more often in all than the budget allows."""

from __future__ import annotations

FAST = 0.05
"""Seconds between looks while bytes arrive."""

WARM = 0.08
"""Seconds between looks for `LINGER` seconds after that: a line every few seconds is still seen at once."""

SLOW = 1.0
"""The longest time between looks, in seconds."""

GROWTH = 1.5
"""By what the time between looks grows when there was nothing to see."""

LINGER = 30.0
"""Seconds for which a stream stays warm after its last byte."""

SWEEP = 30.0
"""A stream that sleeps, because a record tells when it grows, is looked at this often all the same (seconds)."""

_HOT = 1.0


def pause(quiet: float, last: float) -> float:
    """Seconds until the next look.

    Args:
        quiet: Seconds since bytes last arrived.
        last: The pause before this look, in seconds.
    """
    if quiet < _HOT:
        return FAST
    if quiet < LINGER:
        return WARM
    return min(SLOW, max(WARM, last) * GROWTH)


class Budget:
    """A number of looks a second that all readers share: looks saved are kept for a tenth of a second.

    Args:
        rate: Looks a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._most = max(1.0, rate / 10)
        self._left = self._most
        self._filled = 0.0

    def take(self, wanted: int, now: float) -> int:
        """How many of so many looks may be done now (`now` in monotonic seconds)."""
        self._left = min(self._most, self._left + (now - self._filled) * self._rate)
        self._filled = now
        granted = min(wanted, int(self._left))
        self._left -= granted
        return granted

    def wait(self) -> float:
        """Seconds until a look is allowed."""
        return max(0.0, (1.0 - self._left) / self._rate)
