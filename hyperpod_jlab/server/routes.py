"""All routes of the REST API, collected from the packages. Endpoints are imported at the first request."""

from __future__ import annotations

from typing import Final

from hyperpod_jlab.contributions import Route, routes

ROUTES: Final[tuple[Route, ...]] = routes()

SOCKET_PATH: Final = "logs"
"""The path of the log socket."""
