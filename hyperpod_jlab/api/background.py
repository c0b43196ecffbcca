"""An event loop in a thread of its own, so that the API works in a plain script, in a kernel whose loop is running, and in threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()


class Background:
    """The loop and its thread, made at first use and anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there; returns at once."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def call(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine there and wait for it; an interrupt or the timeout (seconds) ends the coroutine, not what it waits for.

        Raises:
            TimeoutError: It took longer.
        """
        future = self.start(work)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Go through an asynchronous iterator from a thread without a loop."""

        async def following() -> Any:
            return await anext(source, _END)

        async def close() -> None:
            closing = getattr(source, "aclose", None)
            if closing is not None:
                await closing()

        try:
            while (item := self.call(following())) is not _END:
                yield item
        finally:
            self.call(close())

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                thread = threading.Thread(
                    target=self._loop.run_forever, name="hyperpod_jlab", daemon=True
                )
                thread.start()
            return self._loop


background = Background()
"""The one loop of this process."""
