"""A clock that tests set, in place of the modules' own."""

from __future__ import annotations

import asyncio

import pytest

_SLURM = "hyperpod_jlab.engines.slurm"
_MODULES = ("hyperpod_jlab.core.cache", *(f"{_SLURM}.{one}" for one in ("queue", "client")))


class Clock:
    """Stands for the module ``time``: both its clocks are this one, which moves when it is told to or somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def time(self) -> float:
        """Seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Moves it; others have their turn."""
        self.now += seconds
        await _SLEEP(0)


_SLEEP = asyncio.sleep


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of those modules that say how often the scheduler is asked."""
    made = Clock()
    for name in _MODULES:
        monkeypatch.setattr(f"{name}.time", made)
    return made
