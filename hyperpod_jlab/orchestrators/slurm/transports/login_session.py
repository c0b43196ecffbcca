"""One ssh process that runs a command on a login node: started, fed, read, and ended whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence

CHUNK = 65536


@contextlib.asynccontextmanager
async def ssh_process(argv: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """An ssh that lives no longer than the block.

    Raises:
        FileNotFoundError: There is no ssh.
    """
    process = await start_ssh(argv)
    try:
        yield process
    finally:
        await end_ssh(process)


async def start_ssh(argv: Sequence[str]) -> asyncio.subprocess.Process:
    """Start ssh with pipes, away from the terminal: Ctrl-C is for us, not for a command half-way."""
    return await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={
            **os.environ,
            "SSH_ASKPASS_REQUIRE": "never",
        },  # nor is there anyone to answer a jump host's question
    )


async def end_ssh(process: asyncio.subprocess.Process) -> None:
    """End it and what it started, such as a ProxyCommand."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # The connection's ssh has the other ends of the pipes as well, as long as the command over there runs, and wait() waits for pipes.
    pipes = [process._transport.get_pipe_transport(number) for number in range(3)]  # type: ignore[attr-defined]  # noqa: SLF001
    if not pipes[0].is_closing() or pipes[0].get_write_buffer_size():
        pipes[0].abort()  # close() would first write what is left
    pipes[1].close()
    pipes[2].close()
    await process.wait()


class Exchange:
    """What goes into a process and comes out of it, at the same time.

    Args:
        process: The process, with pipes.
        has_begun: Told all the output so far: whether the other side is there.
        stdin: Its input.
        at_once: Whether the input is written from the start; else when the other side is there.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        has_begun: Callable[[bytes], bool],
        stdin: bytes,
        *,
        at_once: bool,
    ) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.told = at_once
        """Whether the other side may have all the input."""
        self.begun = asyncio.Event()
        self._process = process
        self._has_begun = has_begun
        self._stdin = stdin
        self._tasks = [asyncio.create_task(self._feed()), asyncio.create_task(self._read())]

    async def wait_begin(self, seconds: float) -> bool:
        """Wait until the other side is there or all is over; whether that was in time."""
        begun = asyncio.create_task(self.begun.wait())
        try:
            done, _ = await asyncio.wait(
                {begun, self._tasks[1]}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            begun.cancel()
        return bool(done)

    async def wait_end(self, seconds: float) -> bool:
        """Wait until the process has ended and all is read; whether that was in time."""
        done, _ = await asyncio.wait({self._tasks[1]}, timeout=seconds)
        return bool(done)

    async def close(self) -> None:
        """Stop reading and writing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _feed(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        if not self.told:
            await self.begun.wait()
            self.told = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(self._stdin)
            await pipe.drain()
        pipe.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        await asyncio.gather(
            self._pour(self._process.stdout, self.out), self._pour(self._process.stderr, self.err)
        )
        await self._process.wait()

    async def _pour(self, pipe: asyncio.StreamReader, into: bytearray) -> None:
        while chunk := await pipe.read(CHUNK):
            into += chunk
            if into is self.out and not self.begun.is_set() and self._has_begun(bytes(into)):
                self.begun.set()
