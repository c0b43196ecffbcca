"""HTTP connection pools for ports of runs' nodes: a few connections per port, kept alive for later requests."""

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
    """Pools by run, node rank and port; keeps the most recently used ports."""

    def __init__(self) -> None:
        self._pools: OrderedDict[_Key, httpcore.AsyncConnectionPool] = OrderedDict()

    def get(
        self, hyperpod: Hyperpod, run_id: str, node: int, port: int
    ) -> httpcore.AsyncConnectionPool:
        """The pool of one port."""
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
        """Close the pools of unused ports; busy ones stay."""
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
    """Connects to a port of a run's node, ignoring the requested host."""

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
        del host, port, timeout, local_address, socket_options
        return _Stream(await open_port(self._hyperpod.engines, self._hyperpod.runs, *self._key))


class _Stream(httpcore.AsyncNetworkStream):
    """Adapts a port's connection to httpcore."""

    def __init__(self, stream: PortStream) -> None:
        self._stream = stream

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes."""
        del timeout
        return await self._stream.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes. A peer that has closed is not an error yet: its earlier response still has to be read."""
        del timeout
        try:
            await self._stream.write(buffer)
        except HyperpodError as error:
            raise httpcore.WriteError(error.message) from error

    async def aclose(self) -> None:
        await self._stream.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Unused: a run serves plain HTTP to its own user."""
        raise NotImplementedError

    def get_extra_info(self, info: str) -> Any:
        """Whether an idle connection was closed."""
        return not self._stream.alive if info == "is_readable" else None
