"""Starting a child process so that the start can be cancelled, and ending it with its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import IO

_CANCEL_INTERVAL_S = 0.05


async def start_child(
    *argv: str,
    env: Mapping[str, str] | None = None,
    stdin: int | IO[bytes] = asyncio.subprocess.PIPE,
    stdout: int | IO[bytes] = asyncio.subprocess.PIPE,
    stderr: int | IO[bytes] = asyncio.subprocess.PIPE,
    cwd: str | None = None,
) -> asyncio.subprocess.Process:
    """Start a command, with pipes unless others are given, in a session of its own: Ctrl-C in a terminal must not interrupt it.

    Until the end of 2025, Python's `asyncio.create_subprocess_exec` hung if it was cancelled before the pipes were connected (CPython
    issue 103847). It kills the child and then waits for ever; a second cancel ends the wait.

    Raises:
        FileNotFoundError: The program does not exist.
        PermissionError: The program cannot be run.
        NotADirectoryError: Part of its path is a file.
    """
    start = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=cwd, start_new_session=True
        )
    )
    try:
        return await asyncio.shield(start)
    except asyncio.CancelledError:
        while not start.done():
            start.cancel()
            await asyncio.wait({start}, timeout=_CANCEL_INTERVAL_S)
        if not start.cancelled() and start.exception() is None:
            with contextlib.suppress(ProcessLookupError):  # it may have ended
                start.result().kill()
        raise


async def end_child(process: asyncio.subprocess.Process) -> None:
    """End a process of `start_child` and its children, such as a ProxyCommand of ssh."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # Others may hold the pipes open, such as the connection's ssh while the remote command runs,
    # and wait() waits for pipes.
    pipes = [process._transport.get_pipe_transport(number) for number in range(3)]  # type: ignore[attr-defined]  # noqa: SLF001
    if pipes[0] and (not pipes[0].is_closing() or pipes[0].get_write_buffer_size()):
        pipes[0].abort()  # close() would flush the buffer first
    for pipe in filter(None, pipes[1:]):
        pipe.close()
    await process.wait()
