"""Ctrl-C handling: raised anywhere in the main thread, but never between a small action and recording it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class _Interrupts:
    """Whether a deferred block is running, and whether Ctrl-C was pressed during it."""

    busy = False
    pressed = False


def raise_interrupts() -> None:
    """Raise KeyboardInterrupt at once on Ctrl-C, even in a write to a full pipe; asyncio's own handler would wait for it."""
    _Interrupts.busy = _Interrupts.pressed = False
    signal.signal(signal.SIGINT, _on_interrupt)


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer Ctrl-C until the block ends; the block must not wait for anything. A second one is not deferred."""
    _Interrupts.busy = True
    try:
        yield
    finally:
        _Interrupts.busy = False
        if _Interrupts.pressed:
            _Interrupts.pressed = False
            raise KeyboardInterrupt


def _on_interrupt(_: int, __: FrameType | None) -> None:
    if _Interrupts.busy and not _Interrupts.pressed:
        _Interrupts.pressed = True
        return
    raise KeyboardInterrupt
