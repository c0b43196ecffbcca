"""State that all requests to one server share: this process's services, created on first use."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hyperpod_jlab.server.events import AwsCallEvents
from hyperpod_jlab.server.run_events import RunEvents

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jupyter_events import EventLogger

    from hyperpod_jlab.admin.fsx.service import AdminRightsCache, PlanService
    from hyperpod_jlab.features.doctor.service import Examinations
    from hyperpod_jlab.run.service import Runs
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.server.kernels import KernelPythons


class Closable(Protocol):
    """Open until the server stops, such as a socket."""

    def close(self, code: int | None = None, reason: str | None = None) -> None: ...


_CLOSE_GOING_AWAY = 1001


@dataclass(frozen=True)
class Admin:
    """Services of the Admin page."""

    rights: AdminRightsCache
    plans: PlanService


class ServerProcess:
    """The server's `Hyperpod`, open sockets, and event emitters."""

    def __init__(self, bus: EventLogger, kernels: KernelPythons | None = None) -> None:
        self._lock = asyncio.Lock()
        self._hyperpod: Hyperpod | None = None
        self._bus = bus
        self.kernels = kernels
        self._examinations: Examinations | None = None
        self._admin: Admin | None = None
        self.sockets: set[Closable] = set()
        self.events = RunEvents(bus, self._runs, self._refresh)
        self.aws_calls = AwsCallEvents(bus)

    async def hyperpod(self) -> Hyperpod:
        """The services.

        Raises:
            InvalidInputError: The configuration is invalid. The next request after a fix succeeds.
        """
        if self._hyperpod is None:
            async with self._lock:
                if self._hyperpod is None:
                    self._hyperpod = await asyncio.to_thread(_make_services)
        return self._hyperpod

    async def examinations(self) -> Examinations:
        """The doctor's diagnostic runs. They need no valid configuration, since that may be the problem."""
        if self._examinations is None:
            async with self._lock:
                if self._examinations is None:
                    self._examinations = await asyncio.to_thread(_make_examinations, self._bus)
        return self._examinations

    async def admin(self) -> Admin:
        """Admin permissions, and plans for Studio domains."""
        if self._admin is None:
            async with self._lock:
                if self._admin is None:
                    self._admin = await asyncio.to_thread(_make_admin, self._bus, self.hyperpod)
        return self._admin

    def begin(self) -> None:
        """Called when the server has started. In Studio, preloads what the list of clusters needs."""
        asyncio.get_running_loop().run_in_executor(None, _load_aws)

    def mark_active(self) -> None:
        """Mark the server as in use: runs and clusters are polled."""
        self.events.mark_active()
        self.aws_calls.begin()
        if self._hyperpod is not None:
            self._hyperpod.engines.mark_active()

    async def reload(self) -> None:
        """Use the changed configuration from the next request on. Pages that follow logs reconnect."""
        async with self._lock:
            old, self._hyperpod = self._hyperpod, None
        for socket in list(self.sockets):
            socket.close(_CLOSE_GOING_AWAY, "the configuration has changed")
        if old is not None:
            await old.close()

    async def close(self) -> None:
        """Close everything: sockets first, so that their pages reconnect to the next server."""
        for socket in list(self.sockets):
            socket.close(_CLOSE_GOING_AWAY, "the server is stopping")
        await self.events.close()
        await self.aws_calls.close()
        if self._examinations is not None:
            await self._examinations.close()
        if self._admin is not None:
            await self._admin.plans.close()
        if self._hyperpod is not None:
            await self._hyperpod.close()
            self._hyperpod = None

    def _refresh(self, cluster: str) -> None:
        if self._hyperpod is not None:
            self._hyperpod.refresh(cluster)

    async def _runs(self) -> Runs:
        return (await self.hyperpod()).runs


def _make_services() -> Hyperpod:
    # The first import of the services is slow and must not delay the server's start.
    from hyperpod_jlab.run.services import Hyperpod

    hyperpod = Hyperpod(isolate=True)
    hyperpod.engines.load()
    return hyperpod


def _load_aws() -> None:
    # Outside Studio AWS may never be used, and boto3 takes 30 MB.
    from hyperpod_jlab.aws.studio import find_studio

    if find_studio() is not None:
        from hyperpod_jlab.aws.session import load

        load("sagemaker")


def _make_examinations(bus: EventLogger) -> Examinations:
    # As with the services: the imports are slow.
    from hyperpod_jlab.server.events import make_examinations

    return make_examinations(bus)


def _make_admin(bus: EventLogger, services: Callable[[], Awaitable[Hyperpod]]) -> Admin:
    # As above.
    from hyperpod_jlab.admin.fsx.service import AdminRightsCache
    from hyperpod_jlab.server.events import make_plans

    return Admin(AdminRightsCache(), make_plans(bus, services))
