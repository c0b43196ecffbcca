"""That a plan for a Studio domain has something new, on Jupyter's event bus: pages read it then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hyperpod_jlab.server.events import anybody_listens

if TYPE_CHECKING:
    from jupyter_events import EventLogger

    from hyperpod_jlab.services.hyperpod import Hyperpod
    from hyperpod_jlab.services.wirings import Wirings, Work

SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/admin/v1"
SCHEMA_FILE: Final = Path(__file__).with_name("admin_event.yaml")


def make_wirings(bus: EventLogger, services: Callable[[], Awaitable[Hyperpod]]) -> Wirings:
    """The plans of a server, which are told on its event bus. Its first import takes a moment.

    Args:
        bus: The event bus.
        services: Gives the services of the server.
    """
    from hyperpod_jlab.services.wirings import Wirings

    def changed(work: Work) -> None:
        if anybody_listens(bus, SCHEMA_ID):
            names = ("number", "version", "state")
            bus.emit(schema_id=SCHEMA_ID, data={name: getattr(work, name) for name in names})

    return Wirings(services, changed)
