"""That an examination has something new, on Jupyter's event bus: pages read it then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from hyperpod_jlab.server.events import anybody_listens

if TYPE_CHECKING:
    from jupyter_events import EventLogger

    from hyperpod_jlab.services.examinations import Examination, Examinations

SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/doctor/v1"
SCHEMA_FILE: Final = Path(__file__).with_name("doctor_event.yaml")


def make_examinations(bus: EventLogger) -> Examinations:
    """The examinations of a server, which are told on its event bus. Its first import takes a moment."""
    from hyperpod_jlab.services.examinations import Examinations

    def changed(examination: Examination) -> None:
        if anybody_listens(bus, SCHEMA_ID):
            names = ("number", "version", "state")
            data = {name: getattr(examination, name) for name in names}
            bus.emit(schema_id=SCHEMA_ID, data=data)

    return Examinations(changed)
