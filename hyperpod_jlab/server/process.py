"""What all requests to one server share: the services of this process, made when they are first needed."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hyperpod_jlab.server.tables import Snapshots
    from hyperpod_jlab.services.hyperpod import Hyperpod


class Closable(Protocol):
    """Something that is open until the server stops, such as a socket."""

    def close(self, code: int | None = None, reason: str | None = None) -> None:
        """End it."""
        ...


_GOING_AWAY = 1001


class ServerProcess:
    """The one `Hyperpod` of this server, and the sockets that it serves."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._hyperpod: Hyperpod | None = None
        self.sockets: set[Closable] = set()

    async def hyperpod(self) -> Hyperpod:
        """The services.

        Raises:
            InvalidInputError: The configuration is wrong. Once it is right the next request finds it so.
        """
        if self._hyperpod is None:
            async with self._lock:
                if self._hyperpod is None:
                    self._hyperpod = await asyncio.to_thread(_make_services)
        return self._hyperpod

    @cached_property
    def snapshots(self) -> Snapshots:
        """What clusters said a moment ago."""
        from hyperpod_jlab.server.tables import Snapshots

        return Snapshots()

    async def close(self) -> None:
        """End what is open: sockets first, so that their pages come back to the next server."""
        for socket in list(self.sockets):
            socket.close(_GOING_AWAY, "the server stops")
        if self._hyperpod is not None:
            await self._hyperpod.close()
            self._hyperpod = None


def _make_services() -> Hyperpod:
    # The first import of the services takes a moment, which the server's start must not wait for.
    from hyperpod_jlab.services.hyperpod import Hyperpod

    return Hyperpod()
