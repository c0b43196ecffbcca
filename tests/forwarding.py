"""``hpj forward`` as a process of its own, on whatever cluster."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Forward:
    """A command that forwards; `port` is this machine's."""

    process: asyncio.subprocess.Process
    port: int

    async def ask(self, data: bytes) -> bytes:
        """What a program answers to these bytes, after which no more follow."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(), 30)
        finally:
            writer.close()

    async def ended(self) -> tuple[int | None, str]:
        """Its exit code and standard error."""
        _, told = await asyncio.wait_for(self.process.communicate(), 60)
        return self.process.returncode, told.decode()

    async def interrupted(self) -> int | None:
        """Its exit code after Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        return (await self.ended())[0]


async def start(*words: str, environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperpod_jlab.cli.main", "forward", *words),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def forward(*words: str, environment: Mapping[str, str] | None = None) -> AsyncIterator[Forward]:
    """Forward within the block."""
    process = await start(*words, "--json", environment=environment or {})
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = await asyncio.wait_for(process.stdout.readline(), 30)
        assert line, (await process.stderr.read()).decode()
        yield Forward(process, json.loads(line)["local_port"])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def refusal(*words: str, environment: Mapping[str, str] | None = None) -> str:
    """The code of the error of a command that forwards nothing."""
    process = await start(*words, "--json", environment=environment or {})
    _, told = await asyncio.wait_for(process.communicate(), 60)
    return str(json.loads(told.decode().strip().splitlines()[-1])["code"])
