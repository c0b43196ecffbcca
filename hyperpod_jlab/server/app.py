"""The extension application that Jupyter Server loads."""

from __future__ import annotations

from typing import Final

from jupyter_server.extension.application import ExtensionApp

from hyperpod_jlab.server.base import API_PREFIX, HyperPodHandler
from hyperpod_jlab.server.version import VersionHandler

ROUTES: Final[list[tuple[str, type[HyperPodHandler]]]] = [
    (f"{API_PREFIX}/version", VersionHandler),
]
"""Every path (under the server's base URL) and who answers it."""


class HyperPodApp(ExtensionApp):
    """Serves the REST API of hyperpod_jlab; configured as ``c.HyperPodApp`` in Jupyter's own files."""

    name = "hyperpod_jlab"
    description = "Run notebooks, cells and scripts on a SageMaker HyperPod cluster."
    load_other_extensions = True

    def initialize_handlers(self) -> None:
        """Register our routes."""
        self.handlers.extend(ROUTES)
