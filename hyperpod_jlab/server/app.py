"""The extension application that Jupyter Server loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_server.extension.application import ExtensionApp

from hyperpod_jlab.server import admin_events, aws_call_events, doctor_events
from hyperpod_jlab.server.base import API_PREFIX
from hyperpod_jlab.server.endpoint import handlers
from hyperpod_jlab.server.events import SCHEMA_FILE
from hyperpod_jlab.server.log_socket import LogSocket
from hyperpod_jlab.server.port_door import DOOR_PATTERN, PortDoor
from hyperpod_jlab.server.port_proxy import KEY_PATTERN, PortProxy
from hyperpod_jlab.server.process import ServerProcess
from hyperpod_jlab.server.routes import SOCKET_PATH
from hyperpod_jlab.server.unknown import UnknownPathHandler

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


class HyperPodApp(ExtensionApp):
    """Serves the REST API of hyperpod_jlab; configured as ``c.HyperPodApp`` in Jupyter's own files."""

    name = "hyperpod_jlab"
    description = "Run notebooks, cells and scripts on a SageMaker HyperPod cluster."
    load_other_extensions = True

    def initialize_settings(self) -> None:
        """Make what all requests share, and tell the event bus what will come."""
        assert self.serverapp is not None
        bus = self.serverapp.event_logger
        assert bus is not None
        bus.register_event_schema(SCHEMA_FILE)
        bus.register_event_schema(aws_call_events.SCHEMA_FILE)
        bus.register_event_schema(doctor_events.SCHEMA_FILE)
        bus.register_event_schema(admin_events.SCHEMA_FILE)
        self.process = ServerProcess(bus)

    def initialize_handlers(self) -> None:
        """Register our routes."""
        self.handlers.extend(handlers())
        self.handlers.append((f"{API_PREFIX}/{SOCKET_PATH}", LogSocket))
        self.handlers.append((KEY_PATTERN, PortProxy))
        self.handlers.append((DOOR_PATTERN, PortDoor))
        self.handlers.append((f"{API_PREFIX}(?:/.*)?", UnknownPathHandler))

    async def _start_jupyter_server_extension(self, _serverapp: ServerApp) -> None:
        self.process.begin()

    async def stop_extension(self) -> None:
        """Give back what is held open."""
        await self.process.close()
