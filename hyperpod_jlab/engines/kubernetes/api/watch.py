"""One list and watch for each (path, selectors) of a process, shared by all callers, stored as small rows.

    watches = Watches(client)                                     # one for each client
    pods = watches.of(f"/api/v1/namespaces/{ns}/pods", pod_state, labels=RUN_LABEL)
    rows = await pods.rows()                                      # {"name": row}; the first time
    after the list, then at once
    version = await pods.changed(pods.version, timeout=60)        # waits for a change
    pods.row_watch(name)                                          # changes of one row only

Closing is optional: a watch ends after 90 s without a caller, and the next call restarts it.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, InternalError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient, ResponseStream
from hyperpod_jlab.engines.kubernetes.api.errors import STREAM_CUT

# --------------------------------------------------------------------------------------------------
# Lists, then watches, without end: the worker behind an `Informer`.
#
# If a server ends each watch at once, or answers each with 410, the retries slow down, after 10 s
# to at most one a second, and the rows still become current.

RowType = TypeVar("RowType")

_WATCH_SECONDS = (240, 300)
"""Duration of a watch in seconds, randomized so that watches do not end together."""
_RESPONSE_GRACE_S = 30.0
"""Seconds after which a watch that should have ended counts as dead."""
_STABLE = 10.0
"""Seconds that a watch must last for its end to be normal."""
_MIN_BACKOFF_S, _MAX_BACKOFF_S = 0.5, 8.0
_MIN_WATCH_S = 2.5
"""Seconds between retries while a caller waits."""
_DENIED_TTL_S = 30.0
"""Seconds before a denied permission, or a kind that is not served, is tried again."""
_FINAL = (DeniedError, NotFoundError)
_SYNC_S = 0.25
"""Seconds after which a watch has delivered the events from before its start."""
_EMPTY = 3
"""Consecutive watches that ended early and without an event before a list is read instead."""
_STEP = 100
"""Objects that are reduced in one batch."""


class ExpiredError(Exception):
    """The server no longer has the resource version from which the watch was to continue."""


class InformerStore(Generic[RowType]):
    """The rows and their freshness.

    Attributes:
        rows: By name, or namespace and name.
        version: Increases with each change.
        last_error: Why they may be outdated.
        is_synced: Whether they were listed; reset when no callers are left.
        tried_at: When the last refresh ended (time.monotonic).
        resource: The resource version from which a watch continues; "" when a list is needed.
        changed_event: Set briefly at each change.
        wake_event: A caller waits for the next retry.
    """

    def __init__(self, path: str, query: Mapping[str, str], reduce: Callable[[Mapping[str, Any]], RowType]) -> None:
        self.path, self.query, self.reduce = path, dict(query), reduce
        self.rows: dict[str, RowType] = {}
        self.version = 0
        self.last_error: HyperpodError | None = None
        self.is_synced = False
        self.tried_at = 0.0
        self.resource = ""
        self.changed_event = asyncio.Event()
        self.wake_event = asyncio.Event()
        self._last_success_at = 0.0
        self._is_watching = False
        self._newest: dict[str, int] = {}
        self._dirty = False
        self._namespaced = "/namespaces/" in path

    @property
    def age(self) -> float:
        """Seconds since the rows were current."""
        if not self.is_synced:
            return float("inf")
        return 0.0 if self._is_watching else time.monotonic() - self._last_success_at

    def key(self, document: Mapping[str, Any]) -> str:
        metadata = document["metadata"]
        name, namespace = str(metadata["name"]), metadata.get("namespace")
        return f"{namespace}/{name}" if namespace and not self._namespaced else name

    def store(self, document: Mapping[str, Any]) -> str:
        """Store an object unless a newer one is known; returns its key."""
        key, version = self.key(document), _number(document)
        if version and version < self._newest.get(key, 0):
            return key
        row = self.reduce(document)
        self._newest[key] = version
        if key not in self.rows or self.rows[key] != row:
            self.rows[key] = row
            self._dirty = True
        return key

    def drop(self, key: str) -> None:
        """Delete a row."""
        self._newest.pop(key, None)
        if self.rows.pop(key, None) is not None:
            self._dirty = True

    def notify(self) -> None:
        """Wake waiting callers if something has changed."""
        if self._dirty:
            self._dirty = False
            self._wake()

    def replace_keys(self, keys: set[str], resource: str) -> None:
        """Delete the rows that a completed list did not contain."""
        for key in self.rows.keys() - keys:
            self.drop(key)
        first = not self.is_synced
        self.is_synced, self.resource = True, resource
        self._dirty = self._dirty or first
        self.mark_success()
        self.notify()

    def mark_success(self) -> None:
        """Mark the rows as current."""
        self._last_success_at = self.tried_at = time.monotonic()
        if self.last_error is not None:
            self.last_error = None
            self._wake()

    def mark_watching(self) -> None:
        """A watch is active: the rows are current while it lasts."""
        self.mark_success()
        self._is_watching = True

    def fell(self) -> None:
        """The watch has ended."""
        if self._is_watching:
            self._last_success_at = time.monotonic()
        self._is_watching = False

    def failed(self, error: HyperpodError) -> None:
        """Record a failed refresh."""
        self.tried_at = time.monotonic()
        self.last_error = error
        self._wake()

    def mark_disconnected(self) -> None:
        """No callers are left, so the next one needs a list."""
        self.fell()
        self.resource = ""
        self.last_error = None
        self.is_synced = False

    @property
    def denied(self) -> HyperpodError | None:
        """The recent error, if it is one that does not resolve itself soon."""
        is_recent = time.monotonic() - self.tried_at < _DENIED_TTL_S
        return self.last_error if is_recent and isinstance(self.last_error, _FINAL) else None

    def _wake(self) -> None:
        self.version += 1
        self.changed_event.set()
        self.changed_event = asyncio.Event()


async def run_informer(client: KubeClient, table: InformerStore[Any]) -> None:
    """Keep a store's rows current, until cancelled."""
    backoff = Backoff(_MIN_BACKOFF_S, _MAX_BACKOFF_S)
    empty = 0
    while True:
        started_at = time.monotonic()
        has_events = False
        try:
            if not table.resource:
                empty = 0
                await _list(client, table)
            table.wake_event.clear()
            has_events = await _informer(client, table)
        except ExpiredError:
            table.resource = ""
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            table.failed(InternalError(f"the list {table.path} cannot be read: {error!r}"))
        except HyperpodError as error:
            if error.code == "expired":
                table.resource = ""
            elif error.code != STREAM_CUT:
                table.failed(error)
        finally:
            table.fell()
        was_stable = time.monotonic() - started_at > _STABLE
        empty = 0 if has_events or was_stable else empty + 1
        if empty >= _EMPTY:
            table.resource = ""
        if was_stable:
            backoff.reset()
        pause_s = backoff.next_pause()
        await _wait(table, max(pause_s, _DENIED_TTL_S) if table.denied else pause_s)


async def _wait(table: InformerStore[Any], seconds: float) -> None:
    """Wait, for less time if a caller waits for the result."""
    start = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            await table.wake_event.wait()
    except TimeoutError:
        return
    table.wake_event.clear()
    await asyncio.sleep(max(0.0, min(seconds, _MIN_WATCH_S) - (time.monotonic() - start)))


async def _list(client: KubeClient, table: InformerStore[Any]) -> None:
    keys: set[str] = set()
    resource = ""
    async with aclosing(client.pages(table.path, table.query)) as pages:
        async for page in pages:
            for start in range(0, len(page.items), _STEP):
                keys.update(table.store(document) for document in page.items[start : start + _STEP])
                await asyncio.sleep(0)
            # The first page's version: changes during the later pages are delivered again.
            resource = resource or page.version
    table.replace_keys(keys, resource)


async def _informer(client: KubeClient, table: InformerStore[Any]) -> bool:
    """Watch until the response ends; returns whether any event arrived."""
    timeout_s = random.randint(*_WATCH_SECONDS)  # noqa: S311 - no secret
    query = {
        **table.query,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": table.resource,
        "timeoutSeconds": str(timeout_s),
    }
    try:
        async with asyncio.timeout(timeout_s + _RESPONSE_GRACE_S), client.stream(table.path, **query) as stream:
            # Events since the list arrive at once; after that the rows are current.
            sync_timer = asyncio.get_running_loop().call_later(_SYNC_S, table.mark_watching)
            try:
                return await _events(table, stream)
            finally:
                sync_timer.cancel()
    except TimeoutError as error:
        raise UnreachableError("the API server stopped sending") from error


async def _events(table: InformerStore[Any], stream: ResponseStream) -> bool:
    """Process events until the response ends; returns whether there were any."""
    has_events = False
    buffered: list[bytes] = []
    async with aclosing(stream.chunks()) as chunks:
        async for chunk in chunks:
            *lines, last = chunk.split(b"\n")
            for line in lines:
                _event(table, b"".join([*buffered, line]))
                buffered, has_events = [], True
            buffered.append(last)
            table.notify()
    return has_events


def _event(table: InformerStore[Any], line: bytes) -> None:
    if not line.strip():
        return
    try:
        event = json.loads(line)
        kind, document = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreachableError("the server that answered is not a Kubernetes API server") from error
    if kind == "ERROR":
        if document.get("code") == 410 or document.get("reason") in {"Expired", "Gone"}:
            raise ExpiredError
        raise UnreachableError("the API server ended the watch", detail={"reason": str(document.get("reason"))})
    if kind == "DELETED":
        table.drop(table.key(document))
    elif kind in {"ADDED", "MODIFIED"}:
        table.store(document)
    table.resource = str(document["metadata"].get("resourceVersion") or table.resource)


def _number(document: Mapping[str, Any]) -> int:
    """An object's resource version as a number; 0 when it is not one."""
    text = str(document["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0


Row = TypeVar("Row")

IDLE = 90.0
"""Seconds without a caller after which a watch ends: a visible panel requests every 60 s."""


class Informer(Generic[Row]):
    """The objects at one path of the API server, always current.

    Attributes:
        path: The list's path.
    """

    def __init__(self, client: KubeClient, path: str, table: InformerStore[Row]) -> None:
        self.path = path
        self._client = client
        self._table = table
        self._task: asyncio.Task[None] | None = None
        self._last_used = 0.0
        self._waiting = 0

    @property
    def version(self) -> int:
        """Increases with each change of the rows and of `last_error`."""
        return self._table.version

    @property
    def last_error(self) -> HyperpodError | None:
        """Why the rows may be outdated; None otherwise."""
        return self._table.last_error

    @property
    def age(self) -> float:
        """Seconds since the rows were known to be current; 0 while the watch is active, infinite before the first list."""
        return self._table.age

    @property
    def rows_now(self) -> Mapping[str, Row]:
        """The known rows, without a request. Not a copy: it changes."""
        return self._table.rows

    async def rows(self, max_age: float | None = None) -> Mapping[str, Row]:
        """The rows by name, or by ``namespace/name`` if the path covers all namespaces. Not a copy: it changes.

        Args:
            max_age: Maximum age in seconds; for older rows, wait for a refresh and raise when it
                fails. None accepts any age.

        Raises:
            HyperpodError: As the client's, if the rows were never listed (`DeniedError`,
                `NotFoundError` for a kind that is not served, `UnreachableError`).
        """
        table = self._attend()
        allowed = float("inf") if max_age is None else max_age
        requested_at = time.monotonic()
        while not table.is_synced or table.age > allowed:
            if table.last_error is not None:
                if table.denied is not None or table.tried_at >= requested_at:
                    raise table.last_error
                table.wake_event.set()
            if not await self._wait_for_version(table.version, 60.0):
                raise UnreachableError("the API server timed out")
        return table.rows

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or until the timeout (seconds); returns `version`."""
        self._attend()
        await self._wait_for_version(since, timeout)
        return self.version

    def row_watch(self, key: str) -> RowChanges:
        """Changes of one row."""
        return RowChanges(cast("Informer[Any]", self), key)

    async def close(self) -> None:
        """End the watch; the next call restarts it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _attend(self) -> InformerStore[Row]:
        """Note a caller."""
        self._last_used = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name=f"watch {self.path}")
        return self._table

    async def _run(self) -> None:
        worker = asyncio.create_task(run_informer(self._client, self._table))
        try:
            while self._waiting or time.monotonic() - self._last_used < IDLE:
                await asyncio.wait({worker}, timeout=IDLE / 6)
                if worker.done():
                    worker.result()  # it never ends by itself, so this raises
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            self._table.mark_disconnected()

    async def _wait_for_version(self, version: int, timeout: float | None) -> bool:
        """Wait for a change; returns False on timeout."""
        self._waiting += 1
        try:
            async with asyncio.timeout(timeout):
                while self._table.version <= version:
                    await self._table.changed_event.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
            self._last_used = time.monotonic()
        return True


class RowChanges:
    """Changes of one row of an informer."""

    def __init__(self, informer: Informer[Any], key: str) -> None:
        self._informer, self._key = informer, key
        self._row: Any = None
        self._version = 0

    @property
    def version(self) -> int:
        """Increases with each change of the row."""
        self._read_row()
        return self._version

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or until the timeout (seconds); returns `version`."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    version = self._informer.version
                    if self.version > since:
                        break
                    await self._informer.changed(version)
        except TimeoutError:
            pass
        return self._version

    def _read_row(self) -> None:
        row = self._informer.rows_now.get(self._key)
        if row is not self._row:
            self._row = row
            self._version += 1


class Informers:
    """The informers of one client."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._all: dict[tuple[str, str, str, Any], Informer[Any]] = {}

    def get(
        self, path: str, reduce: Callable[[Mapping[str, Any]], Row], *, labels: str = "", fields: str = ""
    ) -> Informer[Row]:
        """The informer of a path, shared by all callers with the same path, selectors and function (not a new lambda each time).

        Args:
            path: A list's path, such as ``/api/v1/namespaces/NS/pods``.
            reduce: Converts an object to a row, and must not keep a reference to the object. A row
                equal to the previous one is not a change.
            labels: Label selector.
            fields: Field selector.
        """
        key = (path, labels, fields, reduce)
        if key not in self._all:
            query = {"labelSelector": labels} if labels else {}
            query |= {"fieldSelector": fields} if fields else {}
            self._all[key] = Informer(self._client, path, InformerStore(path, query, reduce))
        return cast("Informer[Row]", self._all[key])

    async def close(self) -> None:
        """End all informers."""
        for watch in self._all.values():
            await watch.close()
