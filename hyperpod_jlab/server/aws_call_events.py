"""How often AWS was asked, on Jupyter's event bus: so that tabs show it without asking."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hyperpod_jlab.aws.call_meter import METER, CallMeter
from hyperpod_jlab.server.events import anybody_listens

if TYPE_CHECKING:
    from jupyter_events import EventLogger

SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/aws-calls/v1"
SCHEMA_FILE: Final = Path(__file__).with_name("aws_calls_event.yaml")

EVERY = 2.0
"""Seconds between two events."""


def calls_now(meter: CallMeter = METER) -> dict[str, Any]:
    """The requests of the last minute: ``{calls, total, operations: [{service, operation, calls}]}``."""
    operations = meter.last_minute()
    return {
        "calls": sum(one.calls for one in operations),
        "total": meter.total,
        "operations": [asdict(one) for one in operations],
    }


class AwsCallEvents:
    """Tells how often AWS was asked in the last minute, whenever that changes; a process that asks for nothing does nothing.

    Args:
        bus: Jupyter's event logger.
        meter: What counts.
    """

    def __init__(self, bus: EventLogger, meter: CallMeter = METER) -> None:
        self._bus = bus
        self._meter = meter
        self._task: asyncio.Task[None] | None = None
        self._end: Callable[[], None] | None = None

    def begin(self) -> None:
        """Listen to the meter from now on. In the server's event loop."""
        if self._end is None:
            loop = asyncio.get_running_loop()
            self._end = self._meter.listen(lambda: _in_loop(loop, self._asked))

    async def close(self) -> None:
        """Tell nothing more."""
        if self._end is not None:
            self._end()
            self._end = None
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _asked(self) -> None:
        if self._end is not None and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._tell(), name="hyperpod-aws-calls")

    async def _tell(self) -> None:
        """Until the last minute has no request any more, which is told too."""
        told: dict[str, Any] = {}
        while True:
            now = calls_now(self._meter)
            if now != told:
                told = now
                if anybody_listens(self._bus, SCHEMA_ID):
                    self._bus.emit(schema_id=SCHEMA_ID, data=now)
            if not now["calls"]:
                return
            await asyncio.sleep(EVERY)


def _in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    # A request that outlives the server has nobody left to tell.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(work)
