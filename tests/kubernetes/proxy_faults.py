"""The faults that the proxy can make; `proxy.py` says what each does."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

from tests.kubernetes.proxy_exchange import CutError, Exchange

Pipe = Callable[[Exchange], Awaitable[None]]
"""What is done to a request."""


def refuse(
    status: int,
    message: str = "made by the proxy",
    reason: str = "",
    retry_after: float | None = None,
    details: dict[str, Any] | None = None,
) -> Pipe:
    """The API server's refusal, not forwarded."""
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    said |= {"message": message, "reason": reason, "details": details or {}, "metadata": {}}
    headers = {"Retry-After": f"{retry_after:g}"} if retry_after is not None else {}

    async def pipe(exchange: Exchange) -> None:
        await exchange.answer(status, json.dumps(said).encode(), "application/json", headers)

    return pipe


def page(status: int, text: str = "<html><h1>Bad Gateway</h1>secret-in-a-page</html>") -> Pipe:
    """HTML, as proxies give it, not forwarded."""

    async def pipe(exchange: Exchange) -> None:
        await exchange.answer(status, text.encode(), "text/html")

    return pipe


def replace(body: Any, status: int = 200, kind: str = "application/json") -> Pipe:
    """This body as the answer, not forwarded."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()

    async def pipe(exchange: Exchange) -> None:
        await exchange.answer(status, data, kind)

    return pipe


def expire() -> Pipe:
    """A watch's end because it began too long ago."""
    status = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
    event = {"type": "ERROR", "object": {**status, "message": "too old resource version"}}
    return replace(json.dumps(event).encode() + b"\n")


def delay(seconds: float) -> Pipe:
    """Forwarded later."""

    async def pipe(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await exchange.forward()

    return pipe


def lose_answer() -> Pipe:
    """Done by the API server, but its answer is lost."""

    async def pipe(exchange: Exchange) -> None:
        await exchange.ask()
        raise CutError

    return pipe


def drop() -> Pipe:
    """The connection is closed."""

    async def pipe(exchange: Exchange) -> None:
        del exchange
        raise CutError

    return pipe


def hang() -> Pipe:
    """No answer."""

    async def pipe(exchange: Exchange) -> None:
        del exchange
        await asyncio.Event().wait()

    return pipe


def cut(after: float = 3.0) -> Pipe:
    """Cut after a time."""

    async def pipe(exchange: Exchange) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(after):
                await exchange.forward()
                return
        raise CutError

    return pipe


def cut_bytes(count: int) -> Pipe:
    """Cut after some bytes of the answer."""

    async def pipe(exchange: Exchange) -> None:
        await exchange.forward(limit=count)

    return pipe


def end(after: float = 3.0) -> Pipe:
    """Ended cleanly after a time, whatever comes."""

    async def pipe(exchange: Exchange) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(after):
                await exchange.forward()
                return
        await exchange.finish()

    return pipe


def append(text: bytes) -> Pipe:
    """A text before the end."""

    async def pipe(exchange: Exchange) -> None:
        await exchange.forward(tail=text)

    return pipe
