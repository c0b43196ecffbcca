"""One answer of a pod's log, from a cursor on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime

from hyperpod_jlab.model.errors import UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.api.log_bytes import Lines, Resume, Search
from hyperpod_jlab.orchestrators.kubernetes.api.log_cursor import SECOND, Count, Cursor
from hyperpod_jlab.orchestrators.kubernetes.api.log_items import Entry, Gap, Item, Portion

LOG_GONE = "log_gone"
"""Code of an `UnreachableError`: the node's container runtime does not give the log, now or ever again."""
_FIRST_LINE = 120
"""Bytes in which a line's stamp lies."""


class LogAnswer:
    """Asks once for a log and gives what is new in the answer.

    Attributes:
        cursor: Where one stands after what was given.
        new: Whether anything was given.
        reached: Whether the answer came to where the cursor stood.
        moved: Whether the pod had another container by then, so that nothing was read.
        found: When the last line was searched: whether it was there; None when the answer was too short to tell.
    """

    def __init__(
        self, client: KubeClient, path: str, container: str, cursor: Cursor, *, search: bool = False
    ) -> None:
        self.cursor = cursor
        self.new = self.reached = self.moved = False
        self.found: bool | None = None
        self._client, self._path, self._container = client, path, container
        self._search = search and cursor.last is not None

    async def portions(
        self, *, previous: bool, live: bool, right: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[Portion, None]:
        """What is new.

        Args:
            previous: Read the container before the newest.
            live: Go on until the container or the connection ends.
            right: Says, after the answer has begun, whether it is of the cursor's container.

        Raises:
            RotatedError: The log does not begin as it did.
            UnreachableError: As of the client; with the code ``log_gone`` when a text of the kubelet's came instead of lines.
        """
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"previous": "true"} if previous else {}
        query |= {"follow": "true"} if live else {}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        count, lines = Count(since), Lines()
        gate = Search(self.cursor, count) if self._search else Resume(self.cursor, count)
        async with self._client.stream(self._path, **query) as stream:
            if not await right():
                self.moved = True
                return
            async with aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    if (portion := self._portion(gate, count, lines.feed(chunk))) is not None:
                        yield portion
        entries = lines.close()
        if (portion := self._portion(gate, count, entries, end=True)) is not None:
            yield portion
        if lines.foreign:
            raise _no_log()

    async def first_stamp(self) -> int | None:
        """The stamp of the first line (Unix nanoseconds) since the cursor's anchor, of whatever container is the newest."""
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        lines = Lines()
        async with self._client.stream(self._path, limitBytes=str(_FIRST_LINE), **query) as stream:
            found = [entry async for chunk in stream.chunks() for entry in lines.feed(chunk)]
        found += lines.close()
        if lines.foreign and not found:
            raise _no_log()
        return found[0].stamp if found else None

    def _since(self) -> int | None:
        if self.cursor.last is None:
            return None
        if self.cursor.anchor is not None:
            return self.cursor.anchor.second
        return self.cursor.last.stamp // SECOND - 2

    def _portion(
        self, gate: Search | Resume, count: Count, entries: list[Entry], *, end: bool = False
    ) -> Portion | None:
        found: list[Item] = [*gate.take(entries)]
        if isinstance(gate, Search):
            undecided = self.found is None
            if end:
                found += gate.close()
            self.found = gate.found
            self.reached = gate.found is not None
            if undecided and self.found is False and found:
                found.insert(0, Gap("rotated"))
        else:
            self.reached = gate.reached
        if not found:
            return None
        self.new = True
        self.cursor = replace(self.cursor, anchor=count.anchor, last=count.last)
        return Portion(tuple(found), self.cursor)


def _no_log() -> UnreachableError:
    return UnreachableError(
        "the node does not give the log",
        code=LOG_GONE,
        hint="its container runtime does not answer, or has removed the container",
    )


def since_time(second: int) -> str:
    """A whole second as the API server takes it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
