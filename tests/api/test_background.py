"""The loop in a thread of its own."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator

import pytest

from hyperpod_jlab.api.background import Background


def test_an_interrupt_while_it_reads_closes_what_is_read_once() -> None:
    closed = threading.Event()

    async def lines() -> AsyncGenerator[int, None]:
        try:
            yield 1
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0.1)
            closed.set()

    background = Background()
    reading = background.iterate(lines())
    assert next(reading) == 1
    me = threading.get_ident()
    threading.Timer(0.2, lambda: signal.pthread_kill(me, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        next(reading)
    assert closed.is_set()
    background.stop()
