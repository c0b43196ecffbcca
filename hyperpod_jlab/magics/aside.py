"""Running a command of ``hpj`` in a kernel: in a thread of its own, for the kernel's own event loop is running."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import click

from hyperpod_jlab.cli.invocation import Invocation

T = TypeVar("T")


class _Loop:
    """What a command waits for runs here, and can be broken off from another thread."""

    def __init__(self) -> None:
        self._interrupted = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run it on a new event loop.

        Raises:
            KeyboardInterrupt: It was broken off.
        """
        try:
            return asyncio.run(self._breakable(work))
        except asyncio.CancelledError:
            if self._interrupted:
                raise KeyboardInterrupt from None
            raise

    def interrupt(self) -> None:
        """Break off what runs here, and what comes next."""
        self._interrupted = True
        if self._running is not None:
            loop, task = self._running
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(task.cancel)

    async def _breakable(self, work: Callable[[], Awaitable[T]]) -> T:
        task = asyncio.current_task()
        if task is not None:
            self._running = (asyncio.get_running_loop(), task)
        try:
            if self._interrupted:
                raise asyncio.CancelledError
            return await work()
        finally:
            self._running = None


def run_command(command: click.Command, name: str, words: Sequence[str], call: Invocation) -> None:
    """Run a click command and wait for it; an interrupt breaks off the waiting, never a run.

    Args:
        command: The command.
        name: What the user calls it.
        words: Its arguments.
        call: What is known of this call.

    Raises:
        BaseException: Whatever the command raises; InterruptionError when it has something to say about an interrupt.
    """
    loop = _Loop()
    call.run = loop.run
    done: Future[None] = Future()

    def work() -> None:
        try:
            with command.make_context(name, list(words), obj=call) as context:
                command.invoke(context)
            done.set_result(None)
        except click.exceptions.Exit:
            done.set_result(None)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            done.set_exception(error)

    # The context tells the kernel which cell the output belongs to.
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), name="hyperpod_jlab", daemon=True).start()
    try:
        done.result()
    except KeyboardInterrupt:
        if done.done():
            raise
        loop.interrupt()
        done.result()
