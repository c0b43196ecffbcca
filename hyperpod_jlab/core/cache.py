"""Cached queries: one load at a time for each key, its answer kept for a while, and kept with its age while there is no newer one.

Nothing is loaded while nobody asks. A caller who is cancelled cancels no load that others wait for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from hyperpod_jlab.core.errors import (
    HyperpodError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
)

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _monotonic() -> float:
    return time.monotonic()


@dataclass(frozen=True)
class CachedValue(Generic[Value]):
    """An answer.

    Attributes:
        value: The answer.
        age: Seconds since it was asked for.
        error: Why there is no newer one; None where it is fresh.
    """

    value: Value
    age: float
    error: HyperpodError | None = None


class _Entry(Generic[Value]):
    """What is kept of one key. A load that began in an earlier `generation` is not kept."""

    def __init__(self) -> None:
        self.generation = 0
        self.task: asyncio.Task[Value] | None = None
        self.values: list[Value] = []
        """The last answer; empty where there is none, for it may be None."""
        self.started = self.began = self.ended = 0.0
        self.outdated = False
        """Whether something was changed since."""
        self.error: HyperpodError | None = None
        self.failures = 0
        self.failed_at = 0.0


class Cache(Generic[Key, Value]):
    """Answers by key.

    Args:
        ttl: Seconds for which an answer is given to all who ask, counted from the end of its load; by the answer where that differs.
        error_ttl: Seconds for which an error is given to all who ask; by the number of failures in a row.
        limit: Answers that are kept, those that were asked for last.
        clock: Tells seconds.
    """

    def __init__(
        self,
        ttl: float | Callable[[Value], float] = 0.0,
        *,
        error_ttl: Callable[[int], float] = lambda _: 0.0,
        limit: int | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._ttl = ttl
        self._error_ttl = error_ttl
        self._limit = limit
        self._clock = clock or _monotonic
        self._entries: dict[Key, _Entry[Value]] = {}

    async def get(
        self,
        key: Key,
        load: Callable[[], Awaitable[Value]],
        *,
        max_age: float | None = None,
        refresh: bool = False,
    ) -> Value:
        """The answer: a kept one, or that of a load, which is shared by all who ask meanwhile.

        Args:
            key: What is asked for.
            load: Asks for it.
            max_age: Instead of `ttl`: seconds that the answer may be old, counted from the beginning of its load.
            refresh: Load, whatever is kept.

        Raises:
            HyperpodError: Of the load, or of one in the last `error_ttl` seconds.
        """
        entry = self._entry(key)
        if not refresh and self._is_fresh(entry, max_age):
            return entry.values[0]
        if entry.task is None:
            if not refresh:
                self._raise_cached_error(entry)
            self.start(key, load)
        assert entry.task is not None  # it has just been started
        return await asyncio.shield(entry.task)

    async def latest(
        self, key: Key, load: Callable[[], Awaitable[Value]], *, refresh: bool = False
    ) -> CachedValue[Value]:
        """As `get`; where that fails, the last answer with the error.

        Raises:
            HyperpodError: There is no answer yet.
        """
        entry = self._entry(key)
        try:
            value = await self.get(key, load, refresh=refresh)
        except HyperpodError as error:
            if not entry.values:
                raise
            return CachedValue(entry.values[0], self._clock() - entry.began, error)
        return CachedValue(value, self._clock() - entry.began)

    def start(self, key: Key, load: Callable[[], Awaitable[Value]]) -> asyncio.Task[Value]:
        """Load now, unless a load is under way; its task."""
        entry = self._entry(key)
        if entry.task is None:
            entry.started = self._clock()
            entry.task = asyncio.ensure_future(self._load(entry, load))
        return entry.task

    def running(self, key: Key) -> asyncio.Task[Value] | None:
        """The load that is under way."""
        entry = self._entries.get(key)
        return entry.task if entry is not None else None

    def last(self, key: Key) -> CachedValue[Value] | None:
        """The last answer, however old."""
        entry = self._entries.get(key)
        if entry is None or not entry.values:
            return None
        return CachedValue(entry.values[0], self._clock() - entry.began, entry.error)

    def is_fresh(self, key: Key, max_age: float | None = None) -> bool:
        """Whether there is an answer that `get` would give without a load."""
        entry = self._entries.get(key)
        return entry is not None and self._is_fresh(entry, max_age)

    def load_seconds(self, key: Key) -> float:
        """Seconds for which the load has gone on that is under way, or that was the last one."""
        entry = self._entries.get(key)
        return self._clock() - entry.started if entry is not None else 0.0

    def put(self, key: Key, value: Value) -> None:
        """Keep an answer that was found otherwise."""
        now = self._clock()
        self._keep(self._entry(key), value, now)
        self._evict()

    def forget(self, key: Key) -> None:
        """Something was changed: who asks next gets a new load. `latest` and `last` still have the old answer."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.generation += 1
        entry.task = None  # it may have looked before the change
        entry.outdated = True
        entry.error = None

    def clear(self) -> None:
        """Forget all."""
        for key in self._entries:
            self.forget(key)

    async def close(self) -> None:
        """Cancel the loads that are under way."""
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, key: Key) -> _Entry[Value]:
        entry = self._entries.pop(key, None) or _Entry()
        self._entries[key] = entry  # the youngest last
        return entry

    def _is_fresh(self, entry: _Entry[Value], max_age: float | None) -> bool:
        if not entry.values or entry.outdated:
            return False
        if max_age is not None:
            return self._clock() - entry.began <= max_age
        ttl = self._ttl if isinstance(self._ttl, float | int) else self._ttl(entry.values[0])
        return self._clock() - entry.ended < ttl

    def _raise_cached_error(self, entry: _Entry[Value]) -> None:
        ttl = self._error_ttl(entry.failures)
        if entry.error is not None and self._clock() - entry.failed_at < ttl:
            raise entry.error

    async def _load(self, entry: _Entry[Value], load: Callable[[], Awaitable[Value]]) -> Value:
        generation, began = entry.generation, entry.started
        try:
            value = await load()
        except HyperpodError as error:
            if generation == entry.generation:
                entry.error, entry.failed_at = error, self._clock()
                entry.failures += 1
            raise
        else:
            if generation == entry.generation:
                self._keep(entry, value, began)
            return value
        finally:
            if generation == entry.generation:
                entry.task = None
            self._evict()

    def _keep(self, entry: _Entry[Value], value: Value, began: float) -> None:
        entry.values = [value]
        entry.began, entry.ended = began, self._clock()
        entry.error, entry.failures, entry.outdated = None, 0, False

    def _evict(self) -> None:
        excess = 0 if self._limit is None else len(self._entries) - self._limit
        if excess > 0:
            idle = (key for key, entry in self._entries.items() if entry.task is None)
            for key in list(islice(idle, excess)):
                del self._entries[key]


class CachedQuery(Generic[Value]):
    """A cache of one thing.

    Args:
        load: Asks for it.
        error_ttl: As of `Cache`.
    """

    def __init__(
        self,
        load: Callable[[], Awaitable[Value]],
        *,
        error_ttl: Callable[[int], float] = lambda _: 0.0,
    ) -> None:
        self._load = load
        self._cache: Cache[None, Value] = Cache(error_ttl=error_ttl)

    @property
    def last(self) -> Value | None:
        """The last answer, however old."""
        answer = self._cache.last(None)
        return answer.value if answer is not None else None

    async def get(self, max_age: float) -> Value:
        """An answer that was asked for at most `max_age` seconds ago (see `Cache.get`)."""
        return await self._cache.get(None, self._load, max_age=max_age)

    def forget(self) -> None:
        """Something was changed: who asks next gets a new load."""
        self._cache.forget(None)


SNAPSHOT_TTL_S = 1.0
"""Seconds for which all who ask are shown the same look."""


@dataclass(frozen=True)
class Snapshot(Generic[Value]):
    """What a cluster says; when it does not answer, what it said last: then (Unix seconds), and why there is nothing newer."""

    value: Value
    as_of: float | None = None
    problem: UnreachableError | None = None


class Snapshots:
    """What clusters said last: however many ask within a moment, the cluster is asked once."""

    def __init__(self) -> None:
        self._cache: Cache[Hashable, Any] = Cache(lambda _: SNAPSHOT_TTL_S)

    async def last(self, key: Hashable, load: Callable[[], Awaitable[Value]]) -> Snapshot[Value]:
        """What `get` gives; while the cluster does not answer, what it said last.

        Raises:
            UnreachableError: It has not said anything yet.
        """
        try:
            return Snapshot(await self.get(key, load))
        except UnreachableError as error:
            cached = self._cache.last(key)
            if cached is None:
                raise
            return Snapshot(cached.value, time.time() - cached.age, error)

    async def get(self, key: Hashable, load: Callable[[], Awaitable[Value]]) -> Value:
        """What was seen a moment ago, or what a new look shows."""
        value: Value = await self._cache.get(key, load)
        return value

    def forget(self, key: Hashable) -> None:
        """Something was changed there: whoever asks next is shown a new look."""
        self._cache.forget(key)


# --------------------------------------------------------------------------------------------------
# What was looked at, for all who ask: one look at a time at each thing, its rows shown as they come, the last ones kept with their age.
#
# A look goes on only while somebody asks for it: it waits when nobody has for a while, and goes on where it was.

Item = TypeVar("Item")

FRESH_S = 50.0
"""Seconds for which a look is shown to all who ask: a page that asks each minute has a new one each time."""

RETRY_S = 5.0
"""Seconds until a look that failed is tried again."""

GRACE_S = 0.3
"""Seconds for which somebody who asks waits for the end of a look; after them for what it tells first only."""

_FINISH_WAIT_S = 0.05
"""Seconds in which a look has ended that had no more to tell than that."""

IDLE_TIMEOUT_S = 20.0
"""Seconds after which nobody is there any more; a page that is shown asks each second or so while a look goes on."""

_CALLS_PER_PERIOD = 10
"""Calls of a look up to which it is fresh for `FRESH`; one of more calls for longer, so that a minute has no more of them."""

_MAX_ENTRIES = 64
"""Things of which the last look is kept."""


class RowLoad(Generic[Item]):
    """One look, as far as it has come: its items by a key, in their order."""

    def __init__(self, activity: _ClientActivity) -> None:
        self.began_at = time.time()
        self.items: dict[Hashable, Item] = {}
        self.is_complete = False
        """Whether all items are there, though more may become known of each."""
        self.calls = 0
        """How many calls brought items so far."""
        self.changed = asyncio.Event()
        """Set once there is something to show, or will be nothing."""
        self._activity = activity

    async def put(self, items: dict[Hashable, Item]) -> None:
        """Add what a call has told, and wait while nobody wants to know more."""
        self.calls += 1
        self.items |= items
        self.changed.set()
        await self.wait_for_clients()

    async def wait_for_clients(self) -> None:
        """Wait while nobody asks."""
        await self._activity.wait_for_clients()

    def end_of_list(self) -> None:
        """All items are there."""
        self.is_complete = True
        self.changed.set()


@dataclass(frozen=True)
class CachedRows(Generic[Item]):
    """What is known now.

    Attributes:
        rows: The items.
        as_of: When the question was put that they answer (Unix seconds).
        loading: Whether more is on its way: then it is worth asking again in a moment.
        problem: Why there is nothing newer, or not all.
    """

    rows: list[Item]
    as_of: float
    loading: bool = False
    problem: HyperpodError | None = None


LoadRows = Callable[[RowLoad[Item]], Awaitable[None]]
"""Looks: puts what it finds into the look."""


class RowCache:
    """The last look at each thing, by a key."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, _RowEntry] = {}

    async def get(
        self,
        key: Hashable,
        read: LoadRows[Item],
        *,
        refresh: bool = False,
        fresh: float | None = None,
        wait: float | None = None,
    ) -> CachedRows[Item]:
        """What is known of a thing; it is looked at when that is too old, and by one at a time however many ask.

        Args:
            key: The thing.
            read: Looks at it.
            refresh: Look at it now, however young the last look is.
            fresh: Seconds for which the last look is good enough; default: `FRESH`.
            wait: Seconds to wait for the end of a look that goes on; default: `GRACE`, and then for its first rows.

        Raises:
            HyperpodError: It could not be looked at, and nothing is known from before; or it is gone.
        """
        entry = self._entries.pop(key, None) or _RowEntry()
        self._entries[key] = entry  # the youngest last
        entry.activity.touch()
        if entry.task is None and (refresh or entry.is_due(FRESH_S if fresh is None else fresh)):
            self._begin(key, entry, read)
        if entry.task is not None:
            await self._wait(entry, entry.task, GRACE_S if wait is None else wait)
        return entry.to_rows()

    def last(self, key: Hashable) -> list[Any]:
        """The rows that would be shown now, without looking."""
        entry = self._entries.get(key)
        load = entry.look() if entry else None
        return list(load.items.values()) if load else []

    def forget(self, key: Hashable) -> None:
        """Something was changed there: whoever asks next has it looked at again, and sees the old rows until then."""
        if key in self._entries:
            self._entries[key].ended = None

    async def close(self) -> None:
        """Break off what goes on."""
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, entry: _RowEntry, read: LoadRows[Any]) -> None:
        entry.running = RowLoad(entry.activity)
        entry.task = asyncio.ensure_future(self._look(key, entry, entry.running, read))

    async def _look(
        self, key: Hashable, entry: _RowEntry, load: RowLoad[Any], read: LoadRows[Any]
    ) -> None:
        entry.ended = time.monotonic()  # unless something is changed meanwhile
        # What is no error of ours ends the task, and asyncio tells it.
        problem: HyperpodError | None = InternalError(f"reading {key} failed")
        try:
            await read(load)
            problem = None
        except HyperpodError as error:
            problem = error
        finally:
            entry.finish(load, problem)
            self._evict()

    async def _wait(self, entry: _RowEntry, task: asyncio.Task[None], seconds: float) -> None:
        """Wait for the end, then until there is something to show."""
        deadline = time.monotonic() + seconds
        while not task.done() and (remaining := deadline - time.monotonic()) > 0:
            entry.activity.touch()
            # A caller who goes away takes the look from nobody else.
            await asyncio.wait({task}, timeout=min(remaining, IDLE_TIMEOUT_S / 2))
        if entry.latest_load is None and entry.running is not None:
            await entry.running.changed.wait()
            await asyncio.wait({task}, timeout=_FINISH_WAIT_S)

    def _evict(self) -> None:
        idle = [key for key, entry in self._entries.items() if entry.task is None]
        for key in idle[: max(0, len(self._entries) - _MAX_ENTRIES)]:
            del self._entries[key]


class _ClientActivity:
    """Whether somebody asks."""

    def __init__(self) -> None:
        self._last_active = time.monotonic()
        self._event = asyncio.Event()

    def touch(self) -> None:
        self._last_active = time.monotonic()
        self._event.set()

    async def wait_for_clients(self) -> None:
        while time.monotonic() - self._last_active > IDLE_TIMEOUT_S:
            self._event.clear()
            await self._event.wait()


@dataclass
class _RowEntry:
    """What is kept of one thing: the look that is shown, the one that goes on, and how that before it ended."""

    activity: _ClientActivity = field(default_factory=_ClientActivity)
    latest_load: RowLoad[Any] | None = None
    running: RowLoad[Any] | None = None
    task: asyncio.Task[None] | None = None
    problem: HyperpodError | None = None
    ended: float | None = None

    def is_due(self, fresh: float) -> bool:
        if self.ended is None:
            return True
        age = time.monotonic() - self.ended
        if self.problem is not None:
            return age > RETRY_S
        return self.latest_load is None or age > max(
            fresh, FRESH_S * self.latest_load.calls / _CALLS_PER_PERIOD
        )

    def finish(self, load: RowLoad[Any], problem: HyperpodError | None) -> None:
        """A look has ended: keep what it found; where it failed what there was, unless this one found more."""
        self.running = self.task = None
        self.problem = problem
        if self.ended is not None:
            self.ended = time.monotonic()
        if isinstance(problem, NotFoundError | InvalidInputError):
            self.latest_load = None
        elif problem is None or load.is_complete or (self.latest_load is None and load.items):
            self.latest_load = load
        load.changed.set()

    def look(self) -> RowLoad[Any] | None:
        """The look to show: the one that goes on as soon as it hides nothing of the one before."""
        running = self.running
        if running is not None and (running.is_complete or self.latest_load is None):
            return running
        return self.latest_load

    def to_rows(self) -> CachedRows[Any]:
        load = self.look()
        if load is None or (self.running is None and self.latest_load is None):
            raise self.problem or InternalError("the refresh was cancelled")
        return CachedRows(
            list(load.items.values()),
            load.began_at,
            loading=self.running is not None,
            problem=self.problem if self.running is not load else None,
        )
