"""A port of a run's node at a port of this machine: whoever connects to one is connected to the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.orchestrators.ports import PortStream

_HERE = "127.0.0.1"
_CHUNK = 65_536


@contextlib.asynccontextmanager
async def forwarded(
    connect: Callable[[], Awaitable[PortStream]],
    local_port: int,
    on_error: Callable[[HyperpodError], None],
) -> AsyncIterator[int]:
    """Listen on this machine's own address as long as the block lasts; gives the port.

    Args:
        connect: Makes a connection to the run's port.
        local_port: The port here; 0 for a free one.
        on_error: Told of each connection that could not be made or was cut.

    Raises:
        InvalidInputError: The port here cannot be had.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _join(reader, writer, connect)
        except HyperpodError as error:
            on_error(error)
        except OSError:  # the program here has gone
            return
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, _HERE, local_port)
    except OSError as error:
        raise InvalidInputError(
            f"port {local_port} of this machine cannot be had: {error.strerror or error}",
            code="port_taken",
            hint="choose another one with --local-port, or leave it out",
            detail={"field": "local_port"},
        ) from error
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connect: Callable[[], Awaitable[PortStream]],
) -> None:
    far = await connect()

    async def up() -> None:
        while data := await reader.read(_CHUNK):
            await far.write(data)
        await asyncio.Event().wait()  # half of it is closed: what comes back still counts

    async def down() -> None:
        while data := await far.read(_CHUNK):
            writer.write(data)
            await writer.drain()

    sending, receiving = asyncio.ensure_future(up()), asyncio.ensure_future(down())
    try:
        await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():  # it was cut; what came before it was says why, if anything does
            await receiving
        receiving.result()
    finally:
        sending.cancel()
        receiving.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
        await far.close()
