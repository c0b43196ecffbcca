"""A request that goes through the fault-making proxy, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

HOP_BY_HOP = {"connection", "content-length", "host", "transfer-encoding"}


class CutError(Exception):
    """The connection to the client is to be cut."""


@dataclass
class Seen:
    """A request, as the proxy saw it."""

    verb: str
    path: str
    query: dict[str, str]
    at: float
    """When it came (time.monotonic)."""
    status: int | None = None
    """Of the answer that was given, None as long as there is none."""


@dataclass
class Exchange:
    """One request and its answer."""

    upstream: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
    seen: Seen
    head: bytes
    body: bytes
    writer: asyncio.StreamWriter
    opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def forward(self, *, limit: int | None = None, tail: bytes = b"") -> None:
        """Give it to the API server and its answer to the client, as it comes: so many bytes of it and a cut, or all and a tail."""
        reader, status, headers = await self.ask()
        chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        # Always in chunks to the client, so that a clean end can be told from a cut.
        kept = [f"{name}: {value}" for name, value in headers.items() if name not in HOP_BY_HOP]
        bodiless = status in {101, 204, 304}
        lines = [f"HTTP/1.1 {status} OK", *kept, "Connection: close"]
        if not bodiless:
            lines.append("Transfer-Encoding: chunked")
        self.seen.status = status
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        await self.writer.drain()
        if bodiless:
            return
        length = int(headers.get("content-length", -1))
        async for chunk in _chunks(reader) if chunked else _plain(reader, length):
            await self.send(chunk if limit is None else chunk[:limit])
            if limit is not None and (limit := limit - len(chunk)) <= 0:
                raise CutError
        await self.send(tail)
        await self.finish()

    async def ask(self) -> tuple[asyncio.StreamReader, int, dict[str, str]]:
        """Give it to the API server; its answer's begin."""
        reader, writer = await self.upstream()
        self.opened.append(writer)
        writer.write(self.head + self.body)
        await writer.drain()
        status, headers = await read_head(reader)
        return reader, int(status.split()[1]), headers

    async def send(self, chunk: bytes) -> None:
        """A piece of the answer to the client."""
        if chunk:
            self.writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await self.writer.drain()

    async def finish(self) -> None:
        """A clean end."""
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def answer(self, status: int, body: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        """An answer of the proxy's own."""
        self.seen.status = status
        lines = [f"HTTP/1.1 {status} Fault", f"Content-Type: {kind}"]
        lines += [f"Content-Length: {len(body)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await self.writer.drain()


async def read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    data = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = data.split("\r\n")
    pairs = (one.split(":", 1) for one in rest if one)
    return line, {name.strip().lower(): value.strip() for name, value in pairs}


async def _chunks(reader: asyncio.StreamReader) -> Any:
    while size := int((await reader.readline()).split(b";")[0], 16):
        left = size
        while left:
            data = await reader.read(min(left, 65536))
            if not data:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(data)
            yield data
        await reader.readexactly(2)


async def _plain(reader: asyncio.StreamReader, length: int) -> Any:
    left = length
    while left and (data := await reader.read(65536 if left < 0 else min(left, 65536))):
        left -= len(data)
        yield data
