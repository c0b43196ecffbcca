"""Events on Jupyter's event bus: storage plans, the doctor, and calls to AWS. Run events are in `run_events`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hyperpod_jlab.aws.signed import METER, CallMeter, OperationCalls
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.server.run_events import has_listeners

if TYPE_CHECKING:
    from jupyter_events import EventLogger

    from hyperpod_jlab.admin.fsx.service import PlanService, PlanWork
    from hyperpod_jlab.features.doctor.service import Examination, Examinations
    from hyperpod_jlab.run.services import Hyperpod

ADMIN_SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/admin/v1"
ADMIN_SCHEMA_FILE: Final = Path(__file__).with_name("admin_event.yaml")


def make_plans(bus: EventLogger, services: Callable[[], Awaitable[Hyperpod]]) -> PlanService:
    """The plans of a server, which emit events. The first import is slow.

    Args:
        bus: The event bus.
        services: Returns the server's services.
    """
    from hyperpod_jlab.admin.fsx.service import PlanService

    def changed(work: PlanWork) -> None:
        if has_listeners(bus, ADMIN_SCHEMA_ID):
            names = ("number", "version", "state")
            bus.emit(schema_id=ADMIN_SCHEMA_ID, data={name: getattr(work, name) for name in names})

    return PlanService(services, changed)


# --------------------------------------------------------------------------------------------------
# Emits an event when a diagnostic run changes; pages then fetch it.

DOCTOR_SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/doctor/v1"
DOCTOR_SCHEMA_FILE: Final = Path(__file__).with_name("doctor_event.yaml")


def make_examinations(bus: EventLogger) -> Examinations:
    """The diagnostic runs of a server, which emit events. The first import is slow."""
    from hyperpod_jlab.features.doctor.service import Examinations

    def changed(examination: Examination) -> None:
        if has_listeners(bus, DOCTOR_SCHEMA_ID):
            names = ("number", "version", "state")
            data = {name: getattr(examination, name) for name in names}
            bus.emit(schema_id=DOCTOR_SCHEMA_ID, data=data)

    return Examinations(changed)


# --------------------------------------------------------------------------------------------------
# Emits the number of calls to AWS, so that tabs need not poll it.

AWS_CALLS_SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/aws-calls/v1"
AWS_CALLS_SCHEMA_FILE: Final = Path(__file__).with_name("aws_calls_event.yaml")

INTERVAL_S = 2.0
"""Minimum seconds between two events."""


@dataclass(frozen=True)
class AwsCalls:
    """This server's calls to AWS in the last minute, including retries and pages, most frequent operation first; `total` counts from the server's start."""

    calls: int
    total: int
    operations: tuple[OperationCalls, ...]


def count_calls(meter: CallMeter = METER) -> AwsCalls:
    """Calls of the last minute."""
    operations = meter.last_minute()
    return AwsCalls(sum(row.calls for row in operations), meter.total, tuple(operations))


class AwsCallEvents:
    """Emits the number of calls to AWS in the last minute when it changes; idle without calls.

    Args:
        bus: Jupyter's event logger.
        meter: The counter.
    """

    def __init__(self, bus: EventLogger, meter: CallMeter = METER) -> None:
        self._bus = bus
        self._meter = meter
        self._task: asyncio.Task[None] | None = None
        self._end: Callable[[], None] | None = None

    def begin(self) -> None:
        """Subscribe to the meter. Call it in the server's event loop."""
        if self._end is None:
            loop = asyncio.get_running_loop()
            self._end = self._meter.listen(lambda: _in_loop(loop, self._on_call))

    async def close(self) -> None:
        """Stop emitting."""
        if self._end is not None:
            self._end()
            self._end = None
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _on_call(self) -> None:
        if self._end is not None and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._emit_changes(), name="hyperpod-aws-calls")

    async def _emit_changes(self) -> None:
        """Runs until the last minute has no calls, and emits that too."""
        last_sent: AwsCalls | None = None
        while True:
            calls_now = count_calls(self._meter)
            if calls_now != last_sent:
                last_sent = calls_now
                if has_listeners(self._bus, AWS_CALLS_SCHEMA_ID):
                    self._bus.emit(schema_id=AWS_CALLS_SCHEMA_ID, data=to_plain(calls_now))
            if not calls_now.calls:
                return
            await asyncio.sleep(INTERVAL_S)


def _in_loop(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    # a call after shutdown has no listeners
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(work)
