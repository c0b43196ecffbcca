"""Progress on stderr for steps that take longer than a second."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator

from hyperpod_jlab.cli.terminal import is_terminal

_TIMEOUT = 1.0
_PERIOD = 0.2


class Steps:
    """The current step."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin = time.monotonic()
        self.drawn = False

    def clear(self) -> None:
        """Clear the progress line before other output."""
        if self.drawn:
            self.drawn = False
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def next(self, text: str) -> None:
        """Start the next step."""
        self.text = text
        self.begin = time.monotonic()


@contextlib.asynccontextmanager
async def slow_steps(first: str) -> AsyncIterator[Steps]:
    """Show the current step on a terminal while it takes longer than a second."""
    steps = Steps(first)
    task = asyncio.create_task(_show(steps)) if is_terminal(sys.stderr) else None
    try:
        yield steps
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _show(steps: Steps) -> None:
    try:
        while True:
            await asyncio.sleep(_PERIOD)
            elapsed = time.monotonic() - steps.begin
            if elapsed > _TIMEOUT:
                steps.drawn = True
                print(f"\r\x1b[K{steps.text} ({elapsed:.0f} s)", end="", file=sys.stderr, flush=True)
    finally:
        steps.clear()
