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
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.api.watch_loop import Table, keep

Row = TypeVar("Row")

IDLE = 90.0
"""Seconds without anybody's asking after which a watch ends: a panel that is shown asks every 60 s."""


class Watch(Generic[Row]):
    """What the API server has at one path, always new.

    Attributes:
        path: Of the list.
    """

    def __init__(self, client: KubeClient, path: str, table: Table[Row]) -> None:
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
                raise UnreachableError("the API server does not answer in time")
        return table.rows

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        self._attend()
        await self._until(since, timeout)
        return self.version

    def one(self, key: str) -> RowNews:
        """News of one row."""
        return RowNews(cast("Watch[Any]", self), key)

    async def close(self) -> None:
        """End it; the next who asks starts it anew."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _attend(self) -> Table[Row]:
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

    def __init__(self, watch: Watch[Any], key: str) -> None:
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
        self._all: dict[tuple[str, str, str, Any], Watch[Any]] = {}

    def of(
        self,
        path: str,
        reduce: Callable[[Mapping[str, Any]], Row],
        *,
        labels: str = "",
        fields: str = "",
    ) -> Watch[Row]:
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
            self._all[key] = Watch(self._client, path, Table(path, query, reduce))
        return cast("Watch[Row]", self._all[key])

    async def close(self) -> None:
        """End all of them."""
        for watch in self._all.values():
            await watch.close()
