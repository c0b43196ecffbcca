"""The extension application that Jupyter Server loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupyter_server.extension.application import ExtensionApp

import hyperpod_jlab
from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.server import events as admin_events
from hyperpod_jlab.server import events as aws_call_events
from hyperpod_jlab.server import events as doctor_events
from hyperpod_jlab.server.base import API_PREFIX, API_VERSION, HyperPodHandler, guarded
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.endpoint import handlers
from hyperpod_jlab.server.kernels import KernelPythons
from hyperpod_jlab.server.log_socket import LogSocket
from hyperpod_jlab.server.process import ServerProcess
from hyperpod_jlab.server.routes import SOCKET_PATH
from hyperpod_jlab.server.run_events import SCHEMA_FILE

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp


# --------------------------------------------------------------------------------------------------
# ``GET version``.


@dataclass(frozen=True)
class VersionAnswer:
    """Versions of the server."""

    version: str
    api: int


async def version(call: Call) -> VersionAnswer:  # noqa: ARG001 - every endpoint is given its call
    """Get the versions of this package and of its REST API."""
    return VersionAnswer(hyperpod_jlab.__version__, API_VERSION)


# --------------------------------------------------------------------------------------------------
# Unknown paths below ours.


class UnknownPathHandler(HyperPodHandler):
    """Responds with our error shape instead of Jupyter's error page."""

    @guarded("read")
    async def get(self) -> None:
        """Respond with 404."""
        raise NotFoundError("path not found", code="no_such_path", hint="openapi.json lists all paths")

    post = put = patch = delete = get


class HyperPodApp(ExtensionApp):
    """Serves the REST API of hyperpod_jlab; configured as ``c.HyperPodApp`` in Jupyter's own files."""

    name = "hyperpod_jlab"
    description = "Run notebooks, cells and scripts on a SageMaker HyperPod cluster."
    load_other_extensions = True

    def initialize_settings(self) -> None:
        """Create the state that all requests share, and register our event schemas."""
        assert self.serverapp is not None
        bus = self.serverapp.event_logger
        assert bus is not None
        bus.register_event_schema(SCHEMA_FILE)
        bus.register_event_schema(aws_call_events.AWS_CALLS_SCHEMA_FILE)
        bus.register_event_schema(doctor_events.DOCTOR_SCHEMA_FILE)
        bus.register_event_schema(admin_events.ADMIN_SCHEMA_FILE)
        kernel_specs = self.serverapp.kernel_spec_manager
        assert kernel_specs is not None
        self.process = ServerProcess(bus, KernelPythons(kernel_specs))

    def initialize_handlers(self) -> None:
        """Register our routes."""
        self.handlers.extend(handlers())
        self.handlers.append((f"{API_PREFIX}/{SOCKET_PATH}", LogSocket))
        self.handlers.append((f"{API_PREFIX}(?:/.*)?", UnknownPathHandler))

    async def _start_jupyter_server_extension(self, _serverapp: ServerApp) -> None:
        self.process.begin()

    async def stop_extension(self) -> None:
        """Close all resources."""
        await self.process.close()
