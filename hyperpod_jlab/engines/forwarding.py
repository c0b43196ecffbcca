"""This machine's end of a forwarded port, and forwarding by plain TCP."""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple, NoReturn

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, UnreachableError

LOOPBACK = "127.0.0.1"
CHUNK = 65_536

Join = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class LocalEnd(NamedTuple):
    """This machine's end of a forwarded port, on 127.0.0.1 only. The port 0 is a free one; what is called gets the port, and why a connection failed."""

    port: int
    on_open: Callable[[int], None]
    on_problem: Callable[[str], None]


def bind(port: int) -> socket.socket:
    """Listen on a port of 127.0.0.1; 0 is a free one.

    Raises:
        InvalidInputError: The port is not available.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise InvalidInputError(
            f"port {port} of this machine cannot be used: {error.strerror or error}",
            code="port_taken",
            hint="use another port with --local-port, or leave it out",
            detail={"field": "local_port"},
        ) from error


async def serve(join: Join, end: LocalEnd) -> NoReturn:
    """Join each connection at this machine's end with one to the run's port, until cancelled."""
    connections: set[asyncio.Task[None] | None] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        connections.add(task)
        try:
            await join(reader, writer)
        except HyperpodError as error:
            end.on_problem(str(error))
        except OSError:  # a program has disconnected
            pass
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(take, sock=bind(end.port))
    try:
        end.on_open(int(server.sockets[0].getsockname()[1]))
        await wait_cancelled()
    finally:  # not by `async with`, which would wait for the other side of each connection
        server.close()
        for connection in connections:
            if connection is not None:
                connection.cancel()


async def wait_cancelled() -> NoReturn:
    """Wait until cancelled."""
    while True:
        await asyncio.Event().wait()


async def serve_tcp(host: str, port: int, end: LocalEnd) -> NoReturn:
    """Forward to a port that this machine reaches, until cancelled."""
    await serve(functools.partial(_join_tcp, host, port), end)


async def _join_tcp(host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        far_reader, far_writer = await asyncio.open_connection(host, port)
    except OSError as error:
        why = f"port {port} of {host} does not take connections: {error.strerror or error}"
        raise UnreachableError(why, code="port_unreachable") from error
    try:
        await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
    finally:
        far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
