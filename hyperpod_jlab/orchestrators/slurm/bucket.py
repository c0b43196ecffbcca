"""A token bucket: so many scheduler calls a second at the most, below Slurm's own limiter (RPC rate limiting, 2 a second and user by default)."""

from __future__ import annotations

import asyncio
import time
from collections import deque

_WINDOW = 60.0


class Bucket:
    """Lets `rate` calls a second through on average and `burst` at once; counts them.

    Args:
        rate: Calls a second.
        burst: Calls at once after a quiet while.
    """

    def __init__(self, rate: float = 1.0, burst: int = 20) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = time.monotonic()
        self._calls: deque[float] = deque(maxlen=1000)

    async def take(self) -> None:
        """Wait until a call may go out."""
        while True:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            if self._tokens >= 1:
                self._tokens -= 1
                self._calls.append(now)
                return
            await asyncio.sleep((1 - self._tokens) / self._rate)

    @property
    def last_minute(self) -> int:
        """Calls in the last minute."""
        begin = time.monotonic() - _WINDOW
        return sum(call >= begin for call in self._calls)
