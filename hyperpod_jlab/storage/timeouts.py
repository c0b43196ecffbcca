"""File system calls with a timeout: a dead NFS or Lustre mount blocks forever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from hyperpod_jlab.core.errors import StorageError

T = TypeVar("T")

TIMEOUT_S = 5.0
"""Timeout of a file system, in seconds."""


async def run_with_timeout(path: Path, work: Callable[[], T], seconds: float = TIMEOUT_S) -> T:
    """The result of `work`, run in a thread that is abandoned on timeout.

    Raises:
        StorageError: With code ``storage_no_answer``: the timeout; besides what `work` raises.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        problem: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            problem = error
        try:
            loop.call_soon_threadsafe(finish, result, problem)
        except RuntimeError:  # the caller is gone: the loop is closed
            return

    # Not a thread of the loop's executor: a hanging one would block the process's exit.
    threading.Thread(target=run, name=f"read {path}", daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await future
    except TimeoutError:
        raise StorageError(
            f"the file system of {path} did not answer within {seconds:g} s",
            code="storage_no_answer",
            hint="its servers or the network may be down: run 'hpj doctor', or restart the space",
            detail={"path": str(path)},
        ) from None
