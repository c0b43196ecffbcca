"""Cached queries: one load at a time for each key. A value is kept for a while, and with its age as long as there is no newer one.

Nothing is loaded without a caller. Cancelling one caller does not cancel a load that other callers wait for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar

from hyperpod_jlab.core.errors import HyperpodError, InternalError, InvalidInputError, NotFoundError, UnreachableError

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _monotonic() -> float:
    return time.monotonic()


@dataclass(frozen=True)
class CachedValue(Generic[Value]):
    """A cached value.

    Attributes:
        value: The value.
        age: Seconds since its load began.
        error: Why there is no newer one; None where it is fresh.
    """

    value: Value
    age: float
    error: HyperpodError | None = None


class _Entry(Generic[Value]):
    """The cache entry of one key. The result of a load from an earlier `generation` is discarded."""

    def __init__(self) -> None:
        self.generation = 0
        self.task: asyncio.Task[Value] | None = None
        self.values: list[Value] = []
        """The last value; empty if there is none, because the value itself may be None."""
        self.started = self.began = self.ended = 0.0
        self.outdated = False
        """Whether the value was invalidated since."""
        self.error: HyperpodError | None = None
        self.failures = 0
        self.failed_at = 0.0


class Cache(Generic[Key, Value]):
    """Values by key.

    Args:
        ttl: Seconds for which a value is fresh, counted from the end of its load; may depend on the value.
        error_ttl: Seconds for which an error is returned again; depends on the number of failures in a row.
        limit: Maximum number of entries; the least recently used ones are dropped.
        clock: Returns seconds.
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
        self._tasks: set[asyncio.Task[Value]] = set()  # also of forgotten keys

    async def get(
        self, key: Key, load: Callable[[], Awaitable[Value]], *, max_age: float | None = None, refresh: bool = False
    ) -> Value:
        """Return a fresh cached value, or load it. Concurrent callers share one load.

        Args:
            key: The key.
            load: Loads the value.
            max_age: Instead of `ttl`: maximum age in seconds, counted from the beginning of the load.
            refresh: Load even if the cached value is fresh.

        Raises:
            HyperpodError: The load failed, now or in the last `error_ttl` seconds.
        """
        entry = self._entry(key)
        if not refresh and self._is_fresh(entry, max_age):
            return entry.values[0]
        if entry.task is None:
            if not refresh:
                self._raise_cached_error(entry)
            self.start(key, load)
        assert entry.task is not None  # it was just started
        return await asyncio.shield(entry.task)

    async def latest(
        self, key: Key, load: Callable[[], Awaitable[Value]], *, refresh: bool = False
    ) -> CachedValue[Value]:
        """Like `get`. If the load fails, return the last value with the error.

        Raises:
            HyperpodError: The load failed and there is no earlier value.
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
        """Start a load unless one is running; return its task."""
        entry = self._entry(key)
        if entry.task is None:
            entry.started = self._clock()
            entry.task = asyncio.ensure_future(self._load(entry, load))
            # Callers may be gone when it fails; the entry has the error, so asyncio need not report it.
            entry.task.add_done_callback(_read_error)
            self._tasks.add(entry.task)
            entry.task.add_done_callback(self._tasks.discard)
        return entry.task

    def running(self, key: Key) -> asyncio.Task[Value] | None:
        """The running load, or None."""
        entry = self._entries.get(key)
        return entry.task if entry is not None else None

    def last(self, key: Key) -> CachedValue[Value] | None:
        """The last value, of any age."""
        entry = self._entries.get(key)
        if entry is None or not entry.values:
            return None
        return CachedValue(entry.values[0], self._clock() - entry.began, entry.error)

    def is_fresh(self, key: Key, max_age: float | None = None) -> bool:
        """Whether `get` would return without a load."""
        entry = self._entries.get(key)
        return entry is not None and self._is_fresh(entry, max_age)

    def load_seconds(self, key: Key) -> float:
        """Seconds since the running load, or else the last one, was started."""
        entry = self._entries.get(key)
        return self._clock() - entry.started if entry is not None else 0.0

    def put(self, key: Key, value: Value) -> None:
        """Store a value that was obtained elsewhere."""
        now = self._clock()
        self._keep(self._entry(key), value, now)
        self._evict()

    def forget(self, key: Key) -> None:
        """Invalidate a key: the next `get` loads again. `last` still has the old value, and so has `latest` if its load fails."""
        entry = self._entries.get(key)
        if entry is None:
            return
        entry.generation += 1
        entry.task = None  # it may have read the old value
        entry.outdated = True
        entry.error = None

    def clear(self) -> None:
        """Invalidate all keys."""
        for key in self._entries:
            self.forget(key)

    async def close(self) -> None:
        """Cancel all running loads."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, key: Key) -> _Entry[Value]:
        entry = self._entries.pop(key, None) or _Entry()
        self._entries[key] = entry  # the most recently used entry is last
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


def _read_error(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()


class CachedQuery(Generic[Value]):
    """A cache of one value.

    Args:
        load: Loads the value.
        error_ttl: See `Cache`.
    """

    def __init__(
        self, load: Callable[[], Awaitable[Value]], *, error_ttl: Callable[[int], float] = lambda _: 0.0
    ) -> None:
        self._load = load
        self._cache: Cache[None, Value] = Cache(error_ttl=error_ttl)

    @property
    def last(self) -> Value | None:
        """The last value, of any age."""
        answer = self._cache.last(None)
        return answer.value if answer is not None else None

    @property
    def age(self) -> float:
        """Seconds since the load of the last value began; infinite without one."""
        answer = self._cache.last(None)
        return answer.age if answer is not None else float("inf")

    async def get(self, max_age: float) -> Value:
        """Return a value that is at most `max_age` seconds old (see `Cache.get`)."""
        return await self._cache.get(None, self._load, max_age=max_age)

    def forget(self) -> None:
        """Invalidate the value: the next `get` loads again."""
        self._cache.forget(None)


SNAPSHOT_TTL_S = 1.0
"""Seconds for which a snapshot is shared by all callers."""


@dataclass(frozen=True)
class Snapshot(Generic[Value]):
    """A value from a cluster.

    Attributes:
        value: The value; the last one, if the cluster does not answer now.
        as_of: When the cluster was asked for it (Unix seconds).
        problem: Why the cluster does not answer now.
    """

    value: Value
    as_of: float
    problem: UnreachableError | None = None


class Snapshots:
    """The last values from clusters. Requests within a short time share one call to the cluster."""

    def __init__(self) -> None:
        self._cache: Cache[Hashable, Any] = Cache(lambda _: SNAPSHOT_TTL_S)

    async def last(self, key: Hashable, load: Callable[[], Awaitable[Value]]) -> Snapshot[Value]:
        """Like `get`, with its age. While the cluster does not answer, return the last value.

        Raises:
            UnreachableError: The cluster does not answer and there is no earlier value.
        """
        asked_at, problem = time.time(), None
        try:
            value = await self.get(key, load)
        except UnreachableError as error:
            cached = self._cache.last(key)
            if cached is None:
                raise
            value, problem = cached.value, error
            asked_at -= cached.age
        return Snapshot(value, getattr(value, "as_of", None) or asked_at, problem)

    async def get(self, key: Hashable, load: Callable[[], Awaitable[Value]]) -> Value:
        """Return a value whose load ended less than `SNAPSHOT_TTL_S` ago, or load it."""
        value: Value = await self._cache.get(key, load)
        return value

    def forget(self) -> None:
        """Invalidate all keys: the next `get` of each loads again."""
        self._cache.clear()


# --------------------------------------------------------------------------------------------------
# Cached lists: one load at a time for each key. Rows are visible as they arrive, and the last ones are kept with their age.
#
# A load continues only while clients ask for it. Without clients it pauses, and resumes where it was.

Item = TypeVar("Item")

FRESH_S = 50.0
"""Seconds for which rows are fresh: a page that refreshes each minute gets new ones each time."""

RETRY_S = 5.0
"""Seconds until a failed load is tried again."""

GRACE_S = 0.3
"""Seconds that a caller waits for the end of a load; after that, only for its first rows, and only if there are no earlier ones."""

_FINISH_WAIT_S = 0.05
"""Seconds that a caller waits for a load to end once its first rows have arrived."""

IDLE_TIMEOUT_S = 20.0
"""Seconds without a request after which a load pauses; a visible page asks about each second while it is loading."""

_CALLS_PER_PERIOD = 10
"""Maximum calls for each `FRESH_S`: rows of a load with more calls stay fresh for longer."""

_MAX_ENTRIES = 64
"""Maximum number of keys."""


class RowLoad(Generic[Item]):
    """A running or finished load: the items so far, by key and in order."""

    def __init__(self, activity: _ClientActivity) -> None:
        self.began_at = time.time()
        self.items: dict[Hashable, Item] = {}
        self.is_complete = False
        """Whether all items are listed, although details may follow."""
        self.calls = 0
        """Number of calls so far."""
        self.changed = asyncio.Event()
        """Set once a call has returned, the list is complete or the load has ended."""
        self._activity = activity

    async def put(self, items: dict[Hashable, Item]) -> None:
        """Add the items of a call, and pause while there are no clients."""
        self.calls += 1
        self.items |= items
        self.changed.set()
        await self.wait_for_clients()

    async def wait_for_clients(self) -> None:
        """Pause while there are no clients."""
        await self._activity.wait_for_clients()

    def end_of_list(self) -> None:
        """Mark the list as complete."""
        self.is_complete = True
        self.changed.set()


@dataclass(frozen=True)
class CachedRows(Generic[Item]):
    """The cached rows of a key.

    Attributes:
        rows: The items.
        as_of: When their load began (Unix seconds).
        loading: Whether a load is running, so that asking again soon gives more.
        problem: Why there are no newer rows, or not all of them.
    """

    rows: list[Item]
    as_of: float
    loading: bool = False
    problem: HyperpodError | None = None


LoadRows = Callable[[RowLoad[Item]], Awaitable[None]]
"""Loads rows and puts them into the `RowLoad`."""


class RowCache:
    """Cached rows by key."""

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
        """Return the cached rows, and start a load if they are too old and none is running.

        Args:
            key: The key.
            read: Loads the rows.
            refresh: Load even if the rows are fresh.
            fresh: Seconds for which the rows are fresh; default: `FRESH_S`.
            wait: Seconds to wait for the end of a running load; default: `GRACE_S`. Then, if there are no earlier rows, for its first rows.

        Raises:
            HyperpodError: The load failed and there are no earlier rows, or the thing does not exist any longer.
        """
        entry = self._entries.pop(key, None) or _RowEntry()
        self._entries[key] = entry  # the most recently used entry is last
        entry.activity.touch()
        if entry.task is None and (refresh or entry.is_due(FRESH_S if fresh is None else fresh)):
            self._begin(key, entry, read)
        if entry.task is not None:
            await self._wait(entry, entry.task, GRACE_S if wait is None else wait)
        return entry.to_rows()

    def last(self, key: Hashable) -> list[Any]:
        """The cached rows, without a load."""
        entry = self._entries.get(key)
        load = entry.visible_load() if entry else None
        return list(load.items.values()) if load else []

    def forget(self, key: Hashable) -> None:
        """Invalidate a key: the next `get` loads again, and returns the old rows until then."""
        if key in self._entries:
            self._entries[key].ended = None

    async def close(self) -> None:
        """Cancel all running loads."""
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, entry: _RowEntry, read: LoadRows[Any]) -> None:
        entry.running = RowLoad(entry.activity)
        entry.task = asyncio.ensure_future(self._load(key, entry, entry.running, read))

    async def _load(self, key: Hashable, entry: _RowEntry, load: RowLoad[Any], read: LoadRows[Any]) -> None:
        entry.ended = time.monotonic()  # unless something is changed meanwhile
        # Any other exception ends the task, and asyncio reports it.
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
        """Wait for the end of the load; then, if there are no earlier rows, for its first ones."""
        deadline = time.monotonic() + seconds
        while not task.done() and (remaining := deadline - time.monotonic()) > 0:
            entry.activity.touch()
            # Cancelling this caller does not cancel the load.
            await asyncio.wait({task}, timeout=min(remaining, IDLE_TIMEOUT_S / 2))
        if entry.latest_load is None and entry.running is not None:
            await entry.running.changed.wait()
            await asyncio.wait({task}, timeout=_FINISH_WAIT_S)

    def _evict(self) -> None:
        idle = [key for key, entry in self._entries.items() if entry.task is None]
        for key in idle[: max(0, len(self._entries) - _MAX_ENTRIES)]:
            del self._entries[key]


class _ClientActivity:
    """When a client last asked."""

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
    """The cache entry of one key: the last load, the running one, and how the last one ended."""

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
        return self.latest_load is None or age > max(fresh, FRESH_S * self.latest_load.calls / _CALLS_PER_PERIOD)

    def finish(self, load: RowLoad[Any], problem: HyperpodError | None) -> None:
        """End a load: keep its rows. If it failed, keep the earlier rows unless this load listed all; none if the thing does not exist."""
        self.running = self.task = None
        self.problem = problem
        if self.ended is not None:
            self.ended = time.monotonic()
        if isinstance(problem, NotFoundError | InvalidInputError):
            self.latest_load = None
        elif problem is None or load.is_complete or (self.latest_load is None and load.items):
            self.latest_load = load
        load.changed.set()

    def visible_load(self) -> RowLoad[Any] | None:
        """The load whose rows are visible: the running one if its list is complete or there is no other, else the last one."""
        running = self.running
        if running is not None and (running.is_complete or self.latest_load is None):
            return running
        return self.latest_load

    def to_rows(self) -> CachedRows[Any]:
        load = self.visible_load()
        if load is None or (self.running is None and self.latest_load is None):
            raise self.problem or InternalError("the refresh was cancelled")
        return CachedRows(
            list(load.items.values()),
            load.began_at,
            loading=self.running is not None,
            problem=self.problem if self.running is not load else None,
        )
