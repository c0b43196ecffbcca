"""Ctrl-C: raised wherever the main thread is, but never between the doing of a small thing and the noting that it is done."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class _Interrupts:
    """Whether something small is under way, and whether Ctrl-C was pressed meanwhile."""

    busy = False
    pressed = False


def raise_interrupts() -> None:
    """Raise KeyboardInterrupt at once on Ctrl-C, even in a write to a pipe that nobody empties; asyncio's own handler would wait for it."""
    _Interrupts.busy = _Interrupts.pressed = False
    signal.signal(signal.SIGINT, _on_interrupt)


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Put a Ctrl-C off until the block is done; it must not wait for anything. A second one is not put off."""
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
