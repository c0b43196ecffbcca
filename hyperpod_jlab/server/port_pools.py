"""HTTP over connections to ports of runs' nodes: a few connections for each port, kept for the next requests."""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import httpcore

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.engines.protocol import PortStream
from hyperpod_jlab.features.ports.service import open_port
from hyperpod_jlab.run.services import Hyperpod

_MAX_PORTS = 32
_MAX_CONNECTIONS = 64
_KEEPALIVE_S = 20.0

_Key = tuple[str, int, int]


class PortPools:
    """Connections by run, node's rank and port; of the ports that were asked last."""

    def __init__(self) -> None:
        self._pools: OrderedDict[_Key, httpcore.AsyncConnectionPool] = OrderedDict()

    def get(
        self, hyperpod: Hyperpod, run_id: str, node: int, port: int
    ) -> httpcore.AsyncConnectionPool:
        """The connections to one port."""
        key = (run_id, node, port)
        if key not in self._pools:
            self._pools[key] = httpcore.AsyncConnectionPool(
                max_connections=_MAX_CONNECTIONS,
                keepalive_expiry=_KEEPALIVE_S,
                network_backend=_Backend(hyperpod, key),
            )
        self._pools.move_to_end(key)
        return self._pools[key]

    async def trim(self) -> None:
        """Give up ports that nobody asks for any more; those in use stay."""
        for key, pool in list(self._pools.items())[:-_MAX_PORTS]:
            if all(connection.is_idle() for connection in pool.connections):
                del self._pools[key]
                await pool.aclose()

    async def close(self) -> None:
        """Close all connections."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.aclose()


class _Backend(httpcore.AsyncNetworkBackend):
    """Connects to a port of a run's node, whatever host it is asked for."""

    def __init__(self, hyperpod: Hyperpod, key: _Key) -> None:
        self._hyperpod = hyperpod
        self._key = key

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect."""
        del host, port, timeout, local_address, socket_options
        return _Stream(await open_port(self._hyperpod.engines, self._hyperpod.runs, *self._key))


class _Stream(httpcore.AsyncNetworkStream):
    """A port's connection as httpcore wants it."""

    def __init__(self, stream: PortStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes."""
        del timeout
        return await self._stream.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes. That the other side has closed is no error yet: what it said before is to be read."""
        del timeout
        try:
            await self._stream.write(buffer)
        except HyperpodError as error:
            raise httpcore.WriteError(error.message) from error

    async def aclose(self) -> None:
        """End it."""
        await self._stream.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Not needed: what a run serves to its own user is plain HTTP."""
        raise NotImplementedError

    def get_extra_info(self, info: str) -> Any:
        """Whether a kept connection has been closed meanwhile."""
        return not self._stream.alive if info == "is_readable" else None
