"""What the controller said last: one look shared by all who ask."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.orchestrators.slurm.job import SlurmJob

Seen = TypeVar("Seen")

_FAILED_FOR = 5.0
"""Seconds for which a controller that did not answer is left alone; they double with every failure, up to the longest."""
_FAILED_LONGEST = 60.0


@dataclass(frozen=True)
class Snapshot:
    """The queue at one time (Unix seconds)."""

    time: float
    jobs: Sequence[SlurmJob]
    by_run: dict[str, list[SlurmJob]] = field(default_factory=dict)

    @classmethod
    def of(cls, moment: float, jobs: Sequence[SlurmJob]) -> Snapshot:
        """A snapshot with its jobs by run."""
        by_run: dict[str, list[SlurmJob]] = {}
        for job in jobs:
            if job.run_id is not None:
                by_run.setdefault(job.run_id, []).append(job)
        return cls(moment, jobs, by_run)

    @property
    def states(self) -> frozenset[tuple[str, str]]:
        """The jobs and their states: what else is said of a job that waits (priority, expected start) changes all the time."""
        return frozenset((job.job_id, job.state) for job in self.jobs)

    @property
    def age(self) -> float:
        """Seconds since it was taken."""
        return time.time() - self.time


async def queue_snapshot(listing: Awaitable[Sequence[SlurmJob]]) -> Snapshot:
    """A listing of jobs as a snapshot of the time before it was asked for."""
    asked = time.time()
    return await asyncio.to_thread(Snapshot.of, asked, await listing)


class Watch(Generic[Seen]):
    """Looks at one thing: anew when somebody asks and the last look is too old, by one asker at a time.

    Args:
        look: Looks anew.
    """

    def __init__(self, look: Callable[[], Awaitable[Seen]]) -> None:
        self._look = look
        self._last: Seen | None = None
        self._at = float("-inf")
        self._forgotten = self._at
        self._asking: asyncio.Task[Seen] | None = None
        self._failures = 0
        self._failed_at = 0.0
        self._error: HyperpodError | None = None

    @property
    def last(self) -> Seen | None:
        """What was seen last, however old."""
        return self._last

    def forget(self) -> None:
        """Something was changed: whoever asks next is shown a new look."""
        self._at = float("-inf")
        self._forgotten = time.monotonic()
        self._asking = None  # it may have looked before the change
        self._error = None

    async def get(self, max_age: float) -> Seen:
        """What was seen at most `max_age` seconds ago.

        Raises:
            UnreachableError: The controller does not answer, or did not a moment ago.
        """
        if self._last is not None and time.monotonic() - self._at <= max_age:
            return self._last
        if self._asking is None or self._asking.done():
            self._refuse_while_down()
            self._asking = asyncio.ensure_future(self._ask())
        return await asyncio.shield(self._asking)

    def _refuse_while_down(self) -> None:
        pause = min(_FAILED_FOR * 2 ** max(0, self._failures - 1), _FAILED_LONGEST)
        if self._error is not None and time.monotonic() - self._failed_at < pause:
            raise self._error

    async def _ask(self) -> Seen:
        asked = time.monotonic()
        try:
            seen = await self._look()
        except HyperpodError as error:
            self._failures += 1
            self._failed_at = time.monotonic()
            self._error = error
            raise
        self._failures, self._error = 0, None
        if asked >= max(self._forgotten, self._at):
            self._last, self._at = seen, asked
        return seen
