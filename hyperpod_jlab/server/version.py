"""``GET version``: who answers."""

from __future__ import annotations

import hyperpod_jlab
from hyperpod_jlab.server.base import API_VERSION, HyperPodHandler, guarded


class VersionHandler(HyperPodHandler):
    """The versions of this package and of its REST API."""

    @guarded("read")
    async def get(self) -> None:
        """Answer ``{version, api}``."""
        self.finish({"version": hyperpod_jlab.__version__, "api": API_VERSION})
