"""Makes ports of runs on this machine's embedded cluster reachable, as those of pods are: the browser meets the real proxy without a Kubernetes.

A Jupyter server reads it as a part of its configuration (see ui-tests/port_lab.py).
"""

from __future__ import annotations

import asyncio

from hyperpod_jlab.core.errors import RefusedError, UnreachableError
from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.storage.records import BundleReader


class HerePort:
    """A TCP connection to a port of this machine (see `engines.protocol.PortStream`)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def alive(self) -> bool:
        """Whether it is still open."""
        return not (self._writer.is_closing() or self._reader.at_eof())

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes."""
        return await self._reader.read(limit)

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise UnreachableError("the connection is closed") from error

    async def end(self) -> None:
        """Say that no more follows."""
        self._writer.write_eof()

    async def close(self) -> None:
        """End it."""
        self._writer.close()


class PortsHere:
    """Ports of this machine."""

    async def open(self, bundle: BundleReader, node: int, port: int) -> HerePort:
        """Connect to a port of this machine."""
        del bundle, node
        try:
            return HerePort(*await asyncio.open_connection("127.0.0.1", port))
        except OSError as error:
            raise RefusedError(
                f"no program listens on port {port}", code="nothing_listens", detail={"port": port}
            ) from error

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """None are known."""
        del bundle
        return []


def install() -> None:
    """Give the embedded cluster ports, for good."""
    LocalOrchestrator.ports = PortsHere()  # type: ignore[assignment]
