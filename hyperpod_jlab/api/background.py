"""An event loop in its own thread, so that the API works in a script, in a kernel with a running loop, and in threads."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()
_EXIT_TIMEOUT_S = 2.0


class Background:
    """The loop and its thread, created on first use and again after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop; returns at once."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def call(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run a coroutine in the loop and wait for it; an interrupt or the timeout (seconds) cancels the coroutine, not what it waits for.

        Raises:
            TimeoutError: It timed out.
        """
        future = self.start(work)
        try:
            return future.result(timeout)
        except BaseException as error:
            future.cancel()
            _block_at_exit(error)
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator from a thread without a loop."""
        reading: asyncio.Task[Any] | None = None

        async def following() -> Any:
            nonlocal reading
            reading = asyncio.current_task()
            return await anext(source, _END)

        async def close() -> None:
            if reading is not None:  # an interrupt cancels it, but not immediately
                await asyncio.wait([reading])
            closing = getattr(source, "aclose", None)
            if closing is not None:
                await closing()

        loop = self._running()
        try:
            while (item := self.call(following())) is not _END:
                yield item
        finally:
            # An iterator that lives until the process exits is closed after the loop has stopped.
            if self._is_own_loop(loop):
                self.call(close())

    def stop(self) -> None:
        """Cancel everything and stop the thread, silently: the process exits."""
        with self._lock:
            loop, thread = self._loop, self._thread
            if loop is None or thread is None or not self._is_own_loop(loop):
                return
            self._loop = None
        asyncio.run_coroutine_threadsafe(_end_all(), loop)
        thread.join(_EXIT_TIMEOUT_S)

    def _is_own_loop(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether it is our loop, and of this process."""
        return loop is self._loop and self._pid == os.getpid()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                self._thread = threading.Thread(target=loop.run_forever, name="hyperpod_jlab", daemon=True)
                self._thread.start()
                atexit.register(self.stop)
            return self._loop


def _block_at_exit(error: BaseException) -> None:
    """Block a daemon thread when the process exits, as Python does, instead of reporting its errors."""
    if not threading.current_thread().daemon or not isinstance(error, (RuntimeError, CancelledError)):
        return
    main = threading.main_thread()
    main.join(_EXIT_TIMEOUT_S)  # Python stops the threads that the loop needs just before
    if not main.is_alive():
        threading.Event().wait()


async def _end_all() -> None:
    """Cancel the loop's tasks, close its iterators, and stop it."""
    loop = asyncio.get_running_loop()
    # The threads that it needs are gone by now; their absence is not worth reporting.
    loop.set_exception_handler(lambda *_: None)
    other_tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in other_tasks:
        task.cancel()
    await asyncio.gather(*other_tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    loop.stop()


background = Background()
"""The one loop of this process."""
