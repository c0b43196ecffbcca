"""One list and watch for each (path, selectors) of a process, shared by all who ask, kept as small rows.

    watches = Watches(client)                                     # one for each client
    pods = watches.of(f"/api/v1/namespaces/{ns}/pods", pod_state, labels=RUN_LABEL)
    rows = await pods.rows()                                      # {"name": row}; the first time after the list, then at once
    version = await pods.changed(pods.version, timeout=60)        # sleeps until something is new
    PodLog(client, ns, name, "pytorch", news=pods.one(name))      # what concerns one row alone

Nobody need close it: a watch that nobody has asked for 90 s ends by itself, and the next who asks starts it anew.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Generic, TypeVar, cast

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InternalError,
    NotFoundError,
    UnreachableError,
)
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient, ResponseStream
from hyperpod_jlab.engines.kubernetes.api.errors import CUT

# --------------------------------------------------------------------------------------------------
# Lists, then watches, for ever: the work behind a `Informer`.
#
# A server that ends each watch at once, or says 410 to each, is asked less and less often: after 10 s at most once a second, and still the rows become right.

RowType = TypeVar("RowType")

_LASTS = (240, 300)
"""Seconds for which a watch is asked; a different number for each, so that they do not end together."""
_SILENT = 30.0
"""Seconds after which a watch that should have ended is taken to be dead."""
_STABLE = 10.0
"""Seconds that a watch must have stood for its end to be nothing special."""
_FIRST, _MOST = 0.5, 8.0
_SHORTEST = 2.5
"""Seconds between tries while somebody waits."""
_REFUSED = 30.0
"""Seconds for which a right that lacks, or a kind that is not served, is not asked for again."""
_FINAL = (DeniedError, NotFoundError)
_CAUGHT_UP = 0.25
"""Seconds after which a watch has told what happened before it began."""
_EMPTY = 3
"""Watches one after the other that ended soon and without an event, before a list is read instead."""
_STEP = 100
"""Objects that are reduced in one go."""


class ExpiredError(Exception):
    """The server no longer knows the state from which the watch was to go on."""


class WatchedTable(Generic[RowType]):
    """The rows, and what is known of their truth.

    Attributes:
        rows: By name, or namespace and name.
        version: Grows with each change.
        trouble: Why they may be old.
        seen: Whether they were ever listed.
        tried: When the last try to make them new ended (time.monotonic).
        resource: The resource version from which a watch goes on; "" when a list is needed.
        news: Set for a moment at each change.
        hurry: Somebody waits for the next try.
    """

    def __init__(
        self, path: str, query: Mapping[str, str], reduce: Callable[[Mapping[str, Any]], RowType]
    ) -> None:
        self.path, self.query, self.reduce = path, dict(query), reduce
        self.rows: dict[str, RowType] = {}
        self.version = 0
        self.trouble: HyperpodError | None = None
        self.seen = False
        self.tried = 0.0
        self.resource = ""
        self.news = asyncio.Event()
        self.hurry = asyncio.Event()
        self._right = 0.0
        self._standing = False
        self._newest: dict[str, int] = {}
        self._dirty = False
        self._namespaced = "/namespaces/" in path

    @property
    def age(self) -> float:
        """Seconds since the rows were right."""
        if not self.seen:
            return float("inf")
        return 0.0 if self._standing else time.monotonic() - self._right

    def key(self, found: Mapping[str, Any]) -> str:
        """The key of an object."""
        metadata = found["metadata"]
        name, namespace = str(metadata["name"]), metadata.get("namespace")
        return f"{namespace}/{name}" if namespace and not self._namespaced else name

    def put(self, found: Mapping[str, Any]) -> str:
        """Take in an object, unless a newer one is known; returns its key."""
        key, version = self.key(found), _number(found)
        if version and version < self._newest.get(key, 0):
            return key
        row = self.reduce(found)
        self._newest[key] = version
        if key not in self.rows or self.rows[key] != row:
            self.rows[key] = row
            self._dirty = True
        return key

    def drop(self, key: str) -> None:
        """Take out a row."""
        self._newest.pop(key, None)
        if self.rows.pop(key, None) is not None:
            self._dirty = True

    def tell(self) -> None:
        """Wake who waits, if something has changed."""
        if self._dirty:
            self._dirty = False
            self._wake()

    def listed(self, keys: set[str], resource: str) -> None:
        """A list is complete: what was not in it is no more."""
        for key in self.rows.keys() - keys:
            self.drop(key)
        first = not self.seen
        self.seen, self.resource = True, resource
        self._dirty = self._dirty or first
        self.right()
        self.tell()

    def right(self) -> None:
        """The rows are right now."""
        self._right = self.tried = time.monotonic()
        if self.trouble is not None:
            self.trouble = None
            self._wake()

    def stands(self) -> None:
        """A watch stands: the rows are right as long as it does."""
        self.right()
        self._standing = True

    def fell(self) -> None:
        """No watch stands any more."""
        if self._standing:
            self._right = time.monotonic()
        self._standing = False

    def failed(self, error: HyperpodError) -> None:
        """A try has failed."""
        self.tried = time.monotonic()
        self.trouble = error
        self._wake()

    def left(self) -> None:
        """Nobody looks any more, so that the next who does needs a list."""
        self.fell()
        self.resource = ""
        self.trouble = None
        self.seen = False

    @property
    def refused(self) -> HyperpodError | None:
        """The trouble, when it is one that does not mend itself soon and was found a moment ago."""
        lately = time.monotonic() - self.tried < _REFUSED
        return self.trouble if lately and isinstance(self.trouble, _FINAL) else None

    def _wake(self) -> None:
        self.version += 1
        self.news.set()
        self.news = asyncio.Event()


async def keep(client: KubeClient, table: WatchedTable[Any]) -> None:
    """Keep a table's rows right, until cancelled."""
    backoff = Backoff(_FIRST, _MOST)
    empty = 0
    while True:
        began = time.monotonic()
        came = False
        try:
            if not table.resource:
                empty = 0
                await _list(client, table)
            table.hurry.clear()
            came = await _watch(client, table)
        except ExpiredError:
            table.resource = ""
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            table.failed(InternalError(f"the list {table.path} cannot be read: {error!r}"))
        except HyperpodError as error:
            if error.code == "expired":
                table.resource = ""
            elif error.code != CUT:
                table.failed(error)
        finally:
            table.fell()
        lasted = time.monotonic() - began > _STABLE
        empty = 0 if came or lasted else empty + 1
        if empty >= _EMPTY:
            table.resource = ""
        if lasted:
            backoff.reset()
        pause = backoff.pause()
        await _pause(table, max(pause, _REFUSED) if table.refused else pause)


async def _pause(table: WatchedTable[Any], seconds: float) -> None:
    """Wait; shorter when somebody waits for the outcome."""
    begin = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            await table.hurry.wait()
    except TimeoutError:
        return
    table.hurry.clear()
    await asyncio.sleep(max(0.0, min(seconds, _SHORTEST) - (time.monotonic() - begin)))


async def _list(client: KubeClient, table: WatchedTable[Any]) -> None:
    keys: set[str] = set()
    resource = ""
    async with aclosing(client.pages(table.path, table.query)) as pages:
        async for page in pages:
            for begin in range(0, len(page.items), _STEP):
                keys.update(table.put(found) for found in page.items[begin : begin + _STEP])
                await asyncio.sleep(0)
            # The first page's: what changed while the others came is told again.
            resource = resource or page.version
    table.listed(keys, resource)


async def _watch(client: KubeClient, table: WatchedTable[Any]) -> bool:
    """Watch until the answer ends; whether anything came."""
    lasts = random.randint(*_LASTS)  # noqa: S311 - no secret
    query = {
        **table.query,
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": table.resource,
        "timeoutSeconds": str(lasts),
    }
    try:
        async with asyncio.timeout(lasts + _SILENT), client.stream(table.path, **query) as stream:
            # What happened since the list comes at once; after that the rows are right.
            soon = asyncio.get_running_loop().call_later(_CAUGHT_UP, table.stands)
            try:
                return await _events(table, stream)
            finally:
                soon.cancel()
    except TimeoutError as error:
        raise UnreachableError("the API server stopped sending") from error


async def _events(table: WatchedTable[Any], stream: ResponseStream) -> bool:
    """Take in events until the answer ends; whether there was any."""
    any_ = False
    rest: list[bytes] = []
    async with aclosing(stream.chunks()) as chunks:
        async for chunk in chunks:
            *lines, last = chunk.split(b"\n")
            for line in lines:
                _event(table, b"".join([*rest, line]))
                rest, any_ = [], True
            rest.append(last)
            table.tell()
    return any_


def _event(table: WatchedTable[Any], line: bytes) -> None:
    if not line.strip():
        return
    try:
        event = json.loads(line)
        kind, found = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreachableError("the server that answered is not a Kubernetes API server") from error
    if kind == "ERROR":
        if found.get("code") == 410 or found.get("reason") in {"Expired", "Gone"}:
            raise ExpiredError
        raise UnreachableError(
            "the API server ended the watch", detail={"reason": str(found.get("reason"))}
        )
    if kind == "DELETED":
        table.drop(table.key(found))
    elif kind in {"ADDED", "MODIFIED"}:
        table.put(found)
    table.resource = str(found["metadata"].get("resourceVersion") or table.resource)


def _number(found: Mapping[str, Any]) -> int:
    """An object's resource version as a number; 0 when it is none."""
    text = str(found["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdigit() else 0


Row = TypeVar("Row")

IDLE = 90.0
"""Seconds without anybody's asking after which a watch ends: a panel that is shown asks every 60 s."""


class Informer(Generic[Row]):
    """What the API server has at one path, always new.

    Attributes:
        path: Of the list.
    """

    def __init__(self, client: KubeClient, path: str, table: WatchedTable[Row]) -> None:
        self.path = path
        self._client = client
        self._table = table
        self._task: asyncio.Task[None] | None = None
        self._asked = 0.0
        self._waiting = 0

    @property
    def version(self) -> int:
        """Grows with each change of the rows, and of `trouble`."""
        return self._table.version

    @property
    def trouble(self) -> HyperpodError | None:
        """Why the knowledge may be old; None when all is well."""
        return self._table.trouble

    @property
    def age(self) -> float:
        """Seconds since the rows were known to be right; 0 while the watch stands, infinite before the first list."""
        return self._table.age

    @property
    def known(self) -> Mapping[str, Row]:
        """The rows as far as they are known; does not ask. Not a copy: it changes."""
        return self._table.rows

    async def rows(self, max_age: float | None = None) -> Mapping[str, Row]:
        """The rows by name, or by ``namespace/name`` where the path is of all namespaces. Not a copy: it changes.

        Args:
            max_age: When the knowledge is older (seconds), wait for it to be made new, and raise when that cannot be. None: what was last known will do.

        Raises:
            HyperpodError: As the client's, when nothing was ever seen (`DeniedError`, `NotFoundError` for a kind that is not served, `UnreachableError`).
        """
        table = self._attend()
        allowed = float("inf") if max_age is None else max_age
        asked = time.monotonic()
        while not table.seen or table.age > allowed:
            if table.trouble is not None:
                if table.refused is not None or table.tried >= asked:
                    raise table.trouble
                table.hurry.set()
            if not await self._until(table.version, 60.0):
                raise UnreachableError("the API server timed out")
        return table.rows

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        self._attend()
        await self._until(since, timeout)
        return self.version

    def one(self, key: str) -> RowNews:
        """News of one row."""
        return RowNews(cast("Informer[Any]", self), key)

    async def close(self) -> None:
        """End it; the next who asks starts it anew."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _attend(self) -> WatchedTable[Row]:
        """Somebody asks."""
        self._asked = time.monotonic()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name=f"watch {self.path}")
        return self._table

    async def _keep(self) -> None:
        worker = asyncio.create_task(keep(self._client, self._table))
        try:
            while self._waiting or time.monotonic() - self._asked < IDLE:
                await asyncio.wait({worker}, timeout=IDLE / 6)
                if worker.done():
                    worker.result()  # never ends by itself, so that this raises
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            self._table.left()

    async def _until(self, version: int, timeout: float | None) -> bool:
        """Wait for a change; whether there was one in time."""
        self._waiting += 1
        try:
            async with asyncio.timeout(timeout):
                while self._table.version <= version:
                    await self._table.news.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
            self._asked = time.monotonic()
        return True


class RowNews:
    """News of one row of a watch."""

    def __init__(self, watch: Informer[Any], key: str) -> None:
        self._watch, self._key = watch, key
        self._row: Any = None
        self._version = 0

    @property
    def version(self) -> int:
        """Grows when the row was seen to have changed."""
        self._look()
        return self._version

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    seen = self._watch.version
                    if self.version > since:
                        break
                    await self._watch.changed(seen)
        except TimeoutError:
            pass
        return self._version

    def _look(self) -> None:
        row = self._watch.known.get(self._key)
        if row is not self._row:
            self._row = row
            self._version += 1


class Watches:
    """The watches of one client."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._all: dict[tuple[str, str, str, Any], Informer[Any]] = {}

    def of(
        self,
        path: str,
        reduce: Callable[[Mapping[str, Any]], Row],
        *,
        labels: str = "",
        fields: str = "",
    ) -> Informer[Row]:
        """The watch of a path, one for all who give the same path, selectors and function (not a new lambda each time).

        Args:
            path: Of a list, such as ``/api/v1/namespaces/NS/pods``.
            reduce: Makes a row of an object; what it leaves out is not kept. Must not keep the object. A row equal to the one before is no change.
            labels: Label selector.
            fields: Field selector.
        """
        key = (path, labels, fields, reduce)
        if key not in self._all:
            query = {"labelSelector": labels} if labels else {}
            query |= {"fieldSelector": fields} if fields else {}
            self._all[key] = Informer(self._client, path, WatchedTable(path, query, reduce))
        return cast("Informer[Row]", self._all[key])

    async def close(self) -> None:
        """End all of them."""
        for watch in self._all.values():
            await watch.close()
