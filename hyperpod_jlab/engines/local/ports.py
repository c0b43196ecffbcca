"""Ports of runs on this machine.

A Jupyter host has services of other users and of the system, and programs of this user that have nothing to do with the run, such as
a database. So only sockets count on which a process of the run itself listens.
"""

from __future__ import annotations

import asyncio
import os

from hyperpod_jlab.core.errors import ConflictError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.engines.local.attempt import find_processes
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.launcher.listeners import (
    Listener,
    PortClosedError,
    find_addresses,
    read_listeners,
    read_open_files,
)
from hyperpod_jlab.storage.records import BundleReader

_CONNECT_S = 10.0


class LocalPort:
    """A connection to a port of this machine (see `engines.protocol.PortStream`)."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._port = port

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""
        return not (self._writer.is_closing() or self._reader.at_eof())

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes; ``b""`` at the end.

        Raises:
            UnreachableError: The connection was cut.
        """
        try:
            return await self._reader.read(limit)
        except OSError as error:
            raise self._cut_error(error) from error

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            UnreachableError: The program has closed the connection.
        """
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._cut_error(error) from error

    async def end(self) -> None:
        """Say that no more bytes follow."""
        if not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        self._writer.close()

    def _cut_error(self, error: OSError) -> UnreachableError:
        return UnreachableError(
            f"the connection to port {self._port} was cut: {error.strerror or error}",
            code="port_closed",
            hint="try again",
            detail={"port": self._port},
        )


class LocalPorts:
    """Ports of this machine's runs. A shell needs no command: this machine is the node."""

    async def open(self, bundle: BundleReader, node: int, port: int) -> LocalPort:
        """Connect to a port on which a process of the run listens. All nodes of a run share this machine's ports.

        Raises:
            ConflictError: The run has no processes.
            NotFoundError: The run does not have the node.
            DeniedError: The run is another user's.
            RefusedError: No process of the run listens there.
        """
        await asyncio.to_thread(bundle.check_own, "open")
        nodes = (await asyncio.to_thread(bundle.head)).nodes
        if node >= nodes:
            raise NotFoundError(
                f"the run has no node {node}; it has {nodes}, and the first is 0",
                code="no_such_node",
                detail={"node": node, "nodes": nodes},
            )
        for address in await asyncio.to_thread(_find_addresses, bundle, port):
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return LocalPort(*await asyncio.open_connection(address, port), port)
            except TimeoutError as error:
                raise UnreachableError(
                    f"the program does not take a connection to port {port}",
                    hint="try again",
                    detail={"port": port},
                ) from error
            except OSError:  # the program has ended, or does not use this address
                continue
        raise _closed_error(port)

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """None."""
        del bundle
        return []


def _find_addresses(bundle: BundleReader, port: int) -> list[str]:
    """The addresses of a port on which a process of the run listens."""
    processes = find_processes(bundle.records)
    if not processes:
        raise ConflictError(
            f"{bundle.run_id} has no processes now",
            code="wrong_state",
            hint="ports are available while a run is running",
            detail={"run_id": bundle.run_id},
        )
    sockets = read_open_files(processes).sockets

    def owner(listener: Listener) -> Listener:
        is_own = listener.inode in sockets and listener.uid == os.getuid()
        return listener._replace(uid=os.getuid() if is_own else -1)

    try:
        return find_addresses(port, os.getuid(), map(owner, read_listeners()))
    except PortClosedError as error:
        raise _closed_error(port, is_taken=error.is_taken) from error


def _closed_error(port: int, *, is_taken: bool = False) -> RefusedError:
    if is_taken:
        return RefusedError(
            f"the program that listens on port {port} does not belong to the run",
            code="other_program",
            hint="let the run's program use another port",
            detail={"port": port},
        )
    return RefusedError(
        f"no program of the run listens on port {port}",
        code="nothing_listens",
        hint="the program may still be starting, or listen on another port",
        detail={"port": port},
    )
