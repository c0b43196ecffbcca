"""Examinations for all who look: one at a time in this process, its checks shown as they come, the last one kept."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from hyperpod_jlab.model.check import Check, Step
from hyperpod_jlab.model.errors import ConflictError, HyperpodError, InternalError
from hyperpod_jlab.services.doctor.examination import Asked, examine

State = Literal["running", "done", "cancelled", "failed"]
"""It goes on; it came to its end, whatever it found; somebody ended it; it broke."""

Examine = Callable[[Asked, Callable[[Step], None]], AsyncIterator[Check]]
"""Examines what is asked; tells of each step that begins."""

_LOG = logging.getLogger(__name__)


@dataclass
class Examination:
    """One examination.

    Attributes:
        number: Its number in this process, from 1.
        asked: What is examined.
        begun_at: When it began (Unix seconds).
        state: How it is.
        checks: The checks so far, in their order.
        step: The step that is looked at now.
        ended_at: When it ended (Unix seconds).
        problem: Why it broke.
        version: Grows with each change.
    """

    number: int
    asked: Asked
    begun_at: float
    state: State = "running"
    checks: list[Check] = field(default_factory=list)
    step: Step | None = None
    ended_at: float | None = None
    problem: HyperpodError | None = None
    version: int = 0


class Examinations:
    """The examinations of this process; they need no configuration that can be read.

    Args:
        changed: Told of each change.
        make: Examines.
    """

    def __init__(self, changed: Callable[[Examination], None], make: Examine = examine) -> None:
        self._changed = changed
        self._make = make
        self._last: Examination | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def last(self) -> Examination | None:
        """The newest examination; None before the first."""
        return self._last

    def begin(self, asked: Asked) -> Examination:
        """Begin an examination; while the same goes on that one is meant.

        Raises:
            ConflictError: Another one goes on.
        """
        if self._last is not None and self._last.state == "running":
            if self._last.asked != asked:
                raise ConflictError(
                    "another examination goes on",
                    code="examination_running",
                    hint="wait for its end, or stop it",
                )
            return self._last
        number = self._last.number + 1 if self._last else 1
        self._last = Examination(number, asked, time.time())
        self._task = asyncio.create_task(self._run(self._last), name="hyperpod-doctor")
        self._tell(self._last)
        return self._last

    async def cancel(self) -> Examination | None:
        """End the examination that goes on, if one does; what it found stays."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        return self._last

    async def close(self) -> None:
        """End what goes on."""
        await self.cancel()

    async def _run(self, examination: Examination) -> None:
        def begun(step: Step) -> None:
            examination.step = step
            self._tell(examination)

        state: State = "cancelled"
        try:
            checks = self._make(examination.asked, begun)
            async with aclosing(checks):  # type: ignore[type-var]
                async for check in checks:
                    examination.checks.append(check)
                    self._tell(examination)
            state = "done"
        except Exception as error:  # noqa: BLE001 - whoever looks is told, whatever it was
            state = "failed"
            _LOG.exception("the examination broke")
            examination.problem = (
                error
                if isinstance(error, HyperpodError)
                else InternalError("the examination broke", hint="the server's log has the details")
            )
        finally:
            examination.state, examination.step = state, None
            examination.ended_at = time.time()
            self._tell(examination)

    def _tell(self, examination: Examination) -> None:
        examination.version += 1
        self._changed(examination)
