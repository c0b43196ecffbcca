"""An event loop in a thread of its own, so that the API works in a plain script, in a kernel whose loop is running, and in threads."""

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
    """The loop and its thread, made at first use and anew after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
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
        except BaseException as error:
            future.cancel()
            _block_at_exit(error)
            raise

    def iterate(self, source: AsyncIterator[T]) -> Iterator[T]:
        """Go through an asynchronous iterator from a thread without a loop."""
        reading: asyncio.Task[Any] | None = None

        async def following() -> Any:
            nonlocal reading
            reading = asyncio.current_task()
            return await anext(source, _END)

        async def close() -> None:
            if reading is not None:  # an interrupt ends it, but not at once
                await asyncio.wait([reading])
            closing = getattr(source, "aclose", None)
            if closing is not None:
                await closing()

        loop = self._running()
        try:
            while (item := self.call(following())) is not _END:
                yield item
        finally:
            # An iterator that is kept to the end of the process is closed when nothing runs there any more.
            if self._is_own_loop(loop):
                self.call(close())

    def stop(self) -> None:
        """End all that runs there, and the thread, without a word: the process ends."""
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
                self._thread = threading.Thread(
                    target=loop.run_forever, name="hyperpod_jlab", daemon=True
                )
                self._thread.start()
                atexit.register(self.stop)
            return self._loop


def _block_at_exit(error: BaseException) -> None:
    """Stop a daemon thread here when the process ends, as Python does: it has nobody to tell what it misses."""
    if not threading.current_thread().daemon or not isinstance(
        error, (RuntimeError, CancelledError)
    ):
        return
    main = threading.main_thread()
    main.join(_EXIT_TIMEOUT_S)  # Python ends the threads that the loop needs just before
    if not main.is_alive():
        threading.Event().wait()


async def _end_all() -> None:
    """Cancel what the loop does, close what it reads, and stop it."""
    loop = asyncio.get_running_loop()
    # The threads that it would need are gone by now; what misses them has nobody to tell it.
    loop.set_exception_handler(lambda *_: None)
    other_tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in other_tasks:
        task.cancel()
    await asyncio.gather(*other_tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    loop.stop()


background = Background()
"""The one loop of this process."""
