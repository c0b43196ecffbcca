"""Access to the nodes of a running run: its shells and ports, and connections to a port."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    UnsupportedError,
)
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.engines.protocol import Orchestrator, Ports, PortStream, Shell
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.run.service import Runs
from hyperpod_jlab.storage.owners import is_own

MAX_PORT = 65_535


@dataclass(frozen=True)
class Access:
    """Ways to access a run's nodes.

    Attributes:
        run_id: The run.
        ports: Whether ports of its nodes can be reached now.
        reason: Why they cannot, or why shells are unknown; None if all is well.
        shells: Commands that open a shell on its nodes, by rank.
    """

    run_id: str
    ports: bool
    reason: str | None
    shells: tuple[Shell, ...] = ()


async def read_access(engines: Engines, runs: Runs, run_id: str) -> Access:
    """The ways to access a run's nodes now.

    Raises:
        NotFoundError: The run does not exist.
    """
    run = await runs.get(run_id)
    try:
        engine = engines.get(run.cluster)
        ports = _ports_of(run, engine)
        bundle = await asyncio.to_thread(runs.bundle, run_id)
        return Access(run_id, True, None, tuple(await ports.shells(bundle)))
    except HyperpodError as error:
        return Access(run_id, False, error.message)


async def open_port(engines: Engines, runs: Runs, run_id: str, node: int, port: int) -> PortStream:
    """Connect to a port of a running run's node.

    Args:
        engines: The engines.
        runs: The runs.
        run_id: The run.
        node: The node's rank.
        port: The port, 1 to 65535.

    Raises:
        InvalidInputError: The port or the node's rank is invalid.
        NotFoundError: The run or the node does not exist.
        UnsupportedError: The cluster does not support it.
        ConflictError: The run is not running.
        DeniedError: It is another user's run, or the cluster denies permission.
        RefusedError: Connection refused; may also be raised by the connection's first read.
        UnreachableError: The cluster does not answer.
    """
    if not 1 <= port <= MAX_PORT:
        raise InvalidInputError(
            f"{port} is not a port number (1 to {MAX_PORT})", detail={"field": "port"}
        )
    if node < 0:
        raise InvalidInputError(
            f"{node} is not a node rank; ranks start at 0", detail={"field": "node"}
        )
    run = await runs.get(run_id)
    ports = _ports_of(run, engines.get(run.cluster))
    return await ports.open(await asyncio.to_thread(runs.bundle, run_id), node, port)


def _ports_of(run: Run, engine: Orchestrator) -> Ports:
    if not is_own(run):  # another user's program would run with this user's Jupyter session
        raise DeniedError(
            f"{run.run_id} belongs to {run.user}; only {run.user} may open its ports and shells",
            code="foreign_run",
            detail={"run_id": run.run_id, "user": run.user, "uid": run.uid},
        )
    if engine.ports is None:
        raise UnsupportedError(
            f"port forwarding is not supported on {engine.kind} clusters",
            detail={"run_id": run.run_id, "cluster": engine.name},
        )
    if run.status.ended:
        raise ConflictError(
            f"{run.run_id} has ended ({run.state}); ports are available while a run is running",
            code="wrong_state",
            detail={"run_id": run.run_id, "state": run.state},
        )
    if run.state == "waiting":
        raise ConflictError(
            f"{run.run_id} is waiting; its ports are available when it is running",
            code="wrong_state",
            hint=f"see: hpj why {run.run_id}",
            detail={"run_id": run.run_id, "state": run.state},
        )
    return engine.ports


# --------------------------------------------------------------------------------------------------
# Port forwarding: joins connections to a local port with connections to a port of a run's node.

_LOOPBACK = "127.0.0.1"
_CHUNK = 65_536


@contextlib.asynccontextmanager
async def forward_port(
    connect: Callable[[], Awaitable[PortStream]],
    local_port: int,
    on_error: Callable[[HyperpodError], None],
) -> AsyncIterator[int]:
    """Listen on the loopback address within the block; yields the port.

    Args:
        connect: Opens a connection to the run's port.
        local_port: The local port; 0 for a free one.
        on_error: Called for each connection that failed or was reset.

    Raises:
        InvalidInputError: The local port is not available.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _join(reader, writer, connect)
        except HyperpodError as error:
            on_error(error)
        except OSError:  # the local program has disconnected
            return
        finally:
            writer.close()

    try:
        server = await asyncio.start_server(serve, _LOOPBACK, local_port)
    except OSError as error:
        raise InvalidInputError(
            f"port {local_port} of this machine cannot be used: {error.strerror or error}",
            code="port_taken",
            hint="use another port with --local-port, or leave it out",
            detail={"field": "local_port"},
        ) from error
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    connect: Callable[[], Awaitable[PortStream]],
) -> None:
    stream = await connect()

    async def up() -> None:
        while data := await reader.read(_CHUNK):
            await stream.write(data)
        await stream.end()
        await asyncio.Event().wait()  # half-closed: the other direction continues

    async def down() -> None:
        while data := await stream.read(_CHUNK):
            writer.write(data)
            await writer.drain()

    sending, receiving = asyncio.ensure_future(up()), asyncio.ensure_future(down())
    try:
        await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
        if sending.done():  # connection reset; earlier data may contain the reason
            await receiving
        receiving.result()
    finally:
        sending.cancel()
        receiving.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
        await stream.close()
