"""State changes of runs on Jupyter's event bus: one poll for all tabs, and none without listeners."""

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

MIN_INTERVAL_S = 1.0
"""Poll interval, in seconds, while runs are open and a client was active within the last minute."""

MAX_INTERVAL_S = 15.0
"""Maximum poll interval, in seconds."""

LOOK_S = 2.0
"""Poll interval, in seconds, while no run is open and a panel is visible. Such a poll calls no scheduler."""

IDLE_TIMEOUT_S = 600.0
"""Without open runs, polling stops after this many seconds without client activity."""

_MAX_RUNS = 100
_OPEN_STATES: Final = ("submitting", "waiting", "running")
_GROWTH_S = 60.0
_COST_FACTOR = 10.0

_LOG = logging.getLogger(__name__)
_StateKey = tuple[str, str | None]


def next_interval(*, anything_open: bool, idle: float, cost: float = 0.0) -> float | None:
    """Seconds until the next poll; None: no poll until a client is active.

    Args:
        anything_open: Whether a run has not ended.
        idle: Seconds since the last client activity.
        cost: Duration of a poll in seconds; slow polls are less frequent.
    """
    if anything_open:
        return min(MAX_INTERVAL_S, max(MIN_INTERVAL_S, idle / _GROWTH_S, cost * _COST_FACTOR))
    if idle >= IDLE_TIMEOUT_S:
        return None
    # Runs that a terminal or a kernel submits must appear too, as soon as the panel's clusters count them.
    return min(MAX_INTERVAL_S, max(LOOK_S, idle, cost * _COST_FACTOR))


class RunEvents:
    """Polls the user's runs and emits their changes.

    Args:
        bus: Jupyter's event logger.
        runs: Returns the runs service.
        on_change: Called with a run's cluster before a change of the run is emitted, so that clients then read new data of the cluster.
    """

    def __init__(
        self, bus: EventLogger, runs: Callable[[], Awaitable[Runs]], on_change: Callable[[str], None] = lambda _: None
    ) -> None:
        self._bus = bus
        self._runs = runs
        self._on_change = on_change
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._last_active = time.monotonic()
        self._open: set[str] = set()
        self._states: dict[str, _StateKey] = {}
        self._late: set[str] = set()
        self._begun: float | None = None
        self.looks = 0

    def mark_active(self) -> None:
        """Mark that a client is active."""
        self._last_active = time.monotonic()
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="hyperpod-run-events")
        self._wake.set()

    def emit_change(self, run: Run) -> None:
        """Emit a run's state if it changed."""
        state = (run.state, run.status.reason_code)
        self._late.add(run.run_id)
        if _is_open(run):
            self._follow(run)
        else:
            self._open.discard(run.run_id)
        if self._states.get(run.run_id) != state:
            self._states[run.run_id] = state
            self._emit(run)

    def note_run(self, run: Run) -> None:
        """Emit a run that was just read: other clients may have an older state. Follows it from now on."""
        if run.run_id in self._states:
            self.emit_change(run)
        elif _is_open(run):
            self._late.add(run.run_id)
            self._states[run.run_id] = (run.state, run.status.reason_code)
            self._follow(run)

    async def close(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _watch(self) -> None:
        last = cost = spent = 0.0
        while True:
            self._wake.clear()
            now = time.monotonic()
            if not self._has_listeners():
                # A new client first fetches the current state, so there is nothing to replay.
                self._begun = None
                rest = None
            else:
                rest = next_interval(anything_open=bool(self._open), idle=now - self._last_active, cost=cost)
            if rest is not None and (self._begun is None or now - last >= rest):
                await self._poll()
                last = time.monotonic()
                # A single slow poll, such as the first, does not delay the next ones.
                cost, spent = min(spent, last - now), last - now
                continue
            remaining = None if rest is None else rest - (now - last)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(remaining):
                    await self._wake.wait()

    async def _poll(self) -> None:
        self.looks += 1
        self._late.clear()
        try:
            runs = await self._runs()
            if self._begun is None:
                await self._start(runs)
            else:
                await self._compare(runs)
        except Exception as error:  # noqa: BLE001 - the next look may well succeed
            _LOG.warning("the runs cannot be read: %s", error)
            self._begun = self._begun or time.time()

    async def _start(self, runs: Runs) -> None:
        """Record the current states without emitting events."""
        from hyperpod_jlab.run.listing import RunFilter

        started_at = time.time()
        open_runs = await runs.list(RunFilter(states=_OPEN_STATES))
        recent = await runs.list(RunFilter(limit=_MAX_RUNS))
        self._replace_states((*recent.runs, *open_runs.runs))
        self._begun = started_at

    async def _compare(self, runs: Runs) -> None:
        from hyperpod_jlab.core.errors import HyperpodError
        from hyperpod_jlab.run.listing import RunFilter

        recent = (await runs.list(RunFilter(limit=_MAX_RUNS))).runs
        for run in recent:
            if run.run_id in self._late:  # an event emitted during this poll is newer
                continue
            is_known = run.run_id in self._states
            # A run that ended long ago becomes one of the newest when others are removed: not a
            # change.
            if is_known or not run.status.ended or run.created_at >= (self._begun or 0.0):
                self.emit_change(run)
        older_runs = []
        for run_id in self._open - {run.run_id for run in recent}:
            try:
                older_runs.append(await runs.get(run_id))
            except HyperpodError:  # removed or damaged; the list shows that
                continue
            if run_id not in self._late:
                self.emit_change(older_runs[-1])
        self._replace_states((*recent, *older_runs))

    def _replace_states(self, runs: Sequence[Run]) -> None:
        """Keep only the states of these runs, and of those emitted in the meantime."""
        states = {run.run_id: (run.state, run.status.reason_code) for run in runs}
        late_states = {run_id: self._states[run_id] for run_id in self._late if run_id in self._states}
        self._states = {**states, **late_states}
        open_ids = {run.run_id for run in runs if _is_open(run)}
        self._open = (open_ids - self._late) | (self._open & self._late)

    def _follow(self, run: Run) -> None:
        if run.run_id not in self._open:
            self._open.add(run.run_id)
            self._wake.set()

    def _emit(self, run: Run) -> None:
        self._on_change(run.cluster)
        data: dict[str, Any] = {
            "run_id": run.run_id,
            "name": run.name,
            "cluster": run.cluster,
            "state": run.state,
            "reason_code": run.status.reason_code,
            "parent": run.parent,
        }
        self._bus.emit(schema_id=SCHEMA_ID, data=data)

    def _has_listeners(self) -> bool:
        return has_listeners(self._bus, SCHEMA_ID)


def has_listeners(bus: EventLogger, schema_id: str) -> bool:
    """Whether a schema has listeners."""
    if bus.handlers:
        return True
    # The bus has no public API for this; if these names disappear, assume a listener.
    names = ("_modified_listeners", "_unmodified_listeners")
    tables = [getattr(bus, name, {schema_id: True}) for name in names]
    return any(table.get(schema_id) for table in tables)


def _is_open(run: Run) -> bool:
    """Whether a run may still change; a damaged run does not."""
    return run.state in _OPEN_STATES or (run.status.reason_code == "unreachable")
