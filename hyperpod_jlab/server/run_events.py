"""State changes of runs on Jupyter's event bus: one look at the runs for all tabs, and none when it is of use to nobody."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jupyter_events import EventLogger

    from hyperpod_jlab.core.run import Run
    from hyperpod_jlab.run.service import Runs

SCHEMA_ID: Final = "https://hyperpod-jlab.dev/events/run/v1"
SCHEMA_FILE: Final = Path(__file__).with_name("run_event.yaml")

FAST = 1.0
"""Seconds between looks while runs are open and somebody has asked for something within the last minute."""

SLOW = 15.0
"""The longest time between looks (seconds)."""

AWAY = 600.0
"""With nothing open, one who has asked for nothing for so long (seconds) is taken to be away."""

_NEWEST = 100
_OPEN: Final = ("submitting", "waiting", "running")
_GROWTH = 60.0
_SHARE = 10.0

_LOG = logging.getLogger(__name__)
_Told = tuple[str, str | None]


def pause(*, anything_open: bool, idle: float, cost: float = 0.0) -> float | None:
    """Seconds until the next look while somebody listens; None when none is needed until somebody asks for something.

    Args:
        anything_open: Whether there is a run that has not ended.
        idle: Seconds since somebody asked for something.
        cost: Seconds that the last look took: with very many runs looks are to be no burden.
    """
    if anything_open:
        return min(SLOW, max(FAST, idle / _GROWTH, cost * _SHARE))
    # Runs that are sent elsewhere, from a terminal or a kernel, are to be seen too.
    return SLOW if idle < AWAY else None


class RunEvents:
    """Looks at the user's runs and tells what changed.

    Args:
        bus: Jupyter's event logger.
        runs: Gives the service that knows the runs.
    """

    def __init__(self, bus: EventLogger, runs: Callable[[], Awaitable[Runs]]) -> None:
        self._bus = bus
        self._runs = runs
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._asked = time.monotonic()
        self._open: set[str] = set()
        self._told: dict[str, _Told] = {}
        self._lately: set[str] = set()
        self._begun: float | None = None
        self.looks = 0

    def asked(self) -> None:
        """Somebody has asked for something: there is somebody."""
        self._asked = time.monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="hyperpod-run-events")
        self._woken.set()

    def tell(self, run: Run) -> None:
        """Tell a run's state, if it is news."""
        told = (run.state, run.status.reason_code)
        self._lately.add(run.run_id)
        if _is_open(run):
            self._follow(run)
        else:
            self._open.discard(run.run_id)
        if self._told.get(run.run_id) != told:
            self._told[run.run_id] = told
            self._emit(run)

    def seen(self, run: Run) -> None:
        """Somebody was shown a run as it is now: others may not know it yet, and it is followed from now on."""
        if run.run_id in self._told:
            self.tell(run)
        elif _is_open(run):
            self._lately.add(run.run_id)
            self._told[run.run_id] = (run.state, run.status.reason_code)
            self._follow(run)

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _watch(self) -> None:
        last = cost = 0.0
        while True:
            self._woken.clear()
            now = time.monotonic()
            if not self._anybody_listens():
                # Whoever comes next asks for the state of things first: there is nothing to catch up with.
                self._begun = None
                rest = None
            else:
                rest = pause(anything_open=bool(self._open), idle=now - self._asked, cost=cost)
            if rest is not None and (self._begun is None or now - last >= rest):
                await self._look()
                last = time.monotonic()
                cost = last - now
                continue
            left = None if rest is None else rest - (now - last)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._woken.wait()

    async def _look(self) -> None:
        self.looks += 1
        self._lately.clear()
        try:
            runs = await self._runs()
            if self._begun is None:
                await self._begin(runs)
            else:
                await self._compare(runs)
        except Exception as error:  # noqa: BLE001 - the next look may well succeed
            _LOG.warning("the runs cannot be read: %s", error)
            self._begun = self._begun or time.time()

    async def _begin(self, runs: Runs) -> None:
        """Take in how things are, without a word."""
        from hyperpod_jlab.run.listing import RunFilter

        begun = time.time()
        found = await runs.list(RunFilter(states=_OPEN))
        newest = await runs.list(RunFilter(limit=_NEWEST))
        self._take((*newest.runs, *found.runs))
        self._begun = begun

    async def _compare(self, runs: Runs) -> None:
        from hyperpod_jlab.core.errors import HyperpodError
        from hyperpod_jlab.run.listing import RunFilter

        newest = (await runs.list(RunFilter(limit=_NEWEST))).runs
        for run in newest:
            if run.run_id in self._lately:  # what was told meanwhile is newer than this look
                continue
            known = run.run_id in self._told
            # One that ended long ago is among the newest again when others were removed: no news.
            if known or not run.status.ended or run.created_at >= (self._begun or 0.0):
                self.tell(run)
        older = []
        for run_id in self._open - {run.run_id for run in newest}:
            try:
                older.append(await runs.get(run_id))
            except HyperpodError:  # removed, or damaged, which the list says
                continue
            if run_id not in self._lately:
                self.tell(older[-1])
        self._take((*newest, *older))

    def _take(self, runs: Sequence[Run]) -> None:
        """Forget all runs but these, and those that were told meanwhile."""
        told = {run.run_id: (run.state, run.status.reason_code) for run in runs}
        lately = {run_id: self._told[run_id] for run_id in self._lately if run_id in self._told}
        self._told = {**told, **lately}
        now_open = {run.run_id for run in runs if _is_open(run)}
        self._open = (now_open - self._lately) | (self._open & self._lately)

    def _follow(self, run: Run) -> None:
        if run.run_id not in self._open:
            self._open.add(run.run_id)
            self._woken.set()

    def _emit(self, run: Run) -> None:
        data: dict[str, Any] = {
            "run_id": run.run_id,
            "name": run.name,
            "cluster": run.cluster,
            "state": run.state,
            "reason_code": run.status.reason_code,
            "parent": run.parent,
        }
        self._bus.emit(schema_id=SCHEMA_ID, data=data)

    def _anybody_listens(self) -> bool:
        return anybody_listens(self._bus, SCHEMA_ID)


def anybody_listens(bus: EventLogger, schema_id: str) -> bool:
    """Whether somebody hears events of a schema."""
    if bus.handlers:
        return True
    # The bus has no public word for it; should these names go, somebody is taken to be there.
    names = ("_modified_listeners", "_unmodified_listeners")
    tables = [getattr(bus, name, {schema_id: True}) for name in names]
    return any(table.get(schema_id) for table in tables)


def _is_open(run: Run) -> bool:
    """Whether a run is going to change; a damaged one is not."""
    return run.state in _OPEN or (run.status.reason_code == "unreachable")
