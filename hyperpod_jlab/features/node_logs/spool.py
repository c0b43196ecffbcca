"""CloudWatch's logs as sources of the log service: each is read once into a file on this machine, shared by all clients.

Reads the newest lines page by page, at most `MAX_PAGES`; from then on appends new ones. The files' bytes are the same in every process, so a cursor
is valid in any process. CloudWatch is queried when a page is opened and while a client follows, never otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, StorageError, UnreachableError
from hyperpod_jlab.features.node_logs.aws import Event, events
from hyperpod_jlab.logs.bundle_file import BundleFile
from hyperpod_jlab.logs.service import LogService
from hyperpod_jlab.logs.source import Activity, Chunk, Mark, Origin
from hyperpod_jlab.logs.stream import Position, Stream

MAX_PAGES = 32
"""Pages of a log, each up to a megabyte or 10,000 lines, that are read when it is first opened."""

MAX_LOGS = 64
"""Maximum number of cached logs without followers."""

MIN_INTERVAL_S, MAX_INTERVAL_S, ERROR_INTERVAL_S = 2.0, 30.0, 60.0
"""Poll intervals of a followed log, in seconds: after new lines, after long silence, and after an error."""

MAX_FAILURES = 10
"""Consecutive timeouts after which following a log fails."""

_GAP_MARK = Mark("gap", "earlier lines are not shown")
_INDEX_RECORD = struct.Struct("<qq")
_NS = 1_000_000


class LogSpool:
    """One log and its file.

    Attributes:
        name: The log's name.
        path: The file.
        there: Whether CloudWatch has the log.
        cut: Whether it has more lines before those in the file.
        error: Why new lines are delayed.
        failure: Why following it has failed.
    """

    def __init__(self, group: str, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.there = self.cut = False
        self.error: HyperpodError | None = None
        self.failure: HyperpodError | None = None
        self._group = group
        self._size = self._index_size = 0
        self._last = (-1, 0)
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._followers = 0
        self._task: asyncio.Task[None] | None = None
        path.touch()
        path.with_suffix(".idx").touch()

    @property
    def is_followed(self) -> bool:
        """Whether it has followers."""
        return self._followers > 0

    async def refresh(self, aws: Aws, age: float = 0.0) -> bool:
        """Append new lines, unless CloudWatch was queried within the last `age` seconds; returns whether there were any.

        Raises:
            NotFoundError: The group does not exist (``no_log_group``).
            HyperpodError: See `aws.errors`.
        """
        async with self._reading:
            if time.monotonic() - self._read_at < age:
                return False
            size_before = self._size
            try:
                await (self._fill(aws) if self._size == 0 else self._extend(aws))
                self.there = True
            except NotFoundError as error:
                if error.code != "no_log":
                    raise
            self._read_at = time.monotonic()
            self.error = None
            return self._size > size_before

    @contextlib.asynccontextmanager
    async def follow(self, aws: Aws) -> AsyncIterator[None]:
        """Poll for new lines while this context is open."""
        if self._task is None or self._task.done():
            self.failure = None
            self._task = asyncio.create_task(self._poll(aws), name="hyperpod-node-log")
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _poll(self, aws: Aws) -> None:
        wait, failures = MIN_INTERVAL_S, 0
        while True:
            await asyncio.sleep(wait)
            try:
                wait = MIN_INTERVAL_S if await self.refresh(aws) else min(wait * 1.5, MAX_INTERVAL_S)
                failures = 0
            except HyperpodError as error:
                failures += 1
                if not isinstance(error, UnreachableError) or failures > MAX_FAILURES:
                    self.error, self.failure = None, error
                    return
                self.error = error
                wait = min(wait * 2, ERROR_INTERVAL_S)

    async def _fill(self, aws: Aws) -> None:
        pages: list[list[Event]] = []
        async for page in events(aws, self._group, self.name):
            if len(pages) == MAX_PAGES:
                self.cut = True
                break
            pages.insert(0, page)
        for page in pages:
            self._append(page)
            await asyncio.sleep(0)

    async def _extend(self, aws: Aws) -> None:
        """CloudWatch does not number lines but keeps their order: known lines of the last millisecond are skipped."""
        last, last_texts = self._last
        async for page in events(aws, self._group, self.name, since=last):
            new_events: list[Event] = []
            for event in page:
                if event[0] == last and last_texts:
                    last_texts -= 1
                else:
                    new_events.append(event)
            self._append(new_events)

    def _append(self, events: Sequence[Event]) -> None:
        """Write lines and their times, in one go, so that a cancelled read leaves no half of it."""
        data, index = bytearray(), bytearray()
        last, count = self._last
        for milliseconds, text in events:
            if milliseconds != last:
                index += _INDEX_RECORD.pack(milliseconds * _NS, self._size + len(data))
                last, count = milliseconds, 0
            count += 1
            data += text.rstrip("\r\n").encode("utf-8", "replace") + b"\n"
        try:
            # The times first: a reader of a line needs its time.
            _write(self.path.with_suffix(".idx"), self._index_size, index)
            _write(self.path, self._size, data)
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.path.parent}: {error.strerror}",
                hint="free some space there, or set TMPDIR to another folder",
            ) from error
        self._size += len(data)
        self._index_size += len(index)
        self._last = (last, count)


def _write(path: Path, offset: int, data: bytearray) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


class SpooledLog(BundleFile):
    """A spooled log as a `LogSource`. Its times are CloudWatch's, also for new lines."""

    def __init__(self, stream: Stream, spool: LogSpool) -> None:
        super().__init__(stream, spool.path)
        self._spool = spool

    def read(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes from a position on; empty at the end."""
        chunk = super().read(position, limit)
        if not chunk.data:
            error = self._spool.error
            if error is None or chunk.mark is not None:
                return chunk
            return replace(chunk, mark=Mark("unreadable", f"cannot load new lines: {error.message}"))
        base = chunk.offset
        stamps = self.stamps(base, base + len(chunk.data))
        gap = _GAP_MARK if base == 0 and self._spool.cut else None
        return replace(chunk, stamps=tuple((offset - base, time) for offset, time in stamps), mark=chunk.mark or gap)

    def known_end(self) -> Position:
        """The current end of the file: a cursor is valid only for the same bytes."""
        return self.end()

    def _identity(self, fd: int) -> int:
        # The same bytes in another process's file are the same log.
        del fd
        return crc32(self._spool.name.encode())


class SpooledLogs:
    """Several logs of a cluster. A `SourceSet`: their indices are the nodes' ranks."""

    processes_per_node = 1

    def __init__(self, key: str, spools: Sequence[LogSpool]) -> None:
        self.key = key
        self.spools = spools

    def streams(self, attempt: int | None = None) -> list[Stream]:
        """All of them, including unwritten ones."""
        del attempt
        return [Stream(1, number, None) for number in range(len(self.spools))]

    def attempts(self) -> list[int]:
        """Node logs have no attempts."""
        return [1]

    def ended_streams(self) -> frozenset[Stream]:
        """Empty: a node may always write more."""
        return frozenset()

    def open(self, stream: Stream) -> SpooledLog:
        """A separate source for a log."""
        return SpooledLog(stream, self.spools[stream.node_rank])

    def folder(self, attempt: int | None) -> None:
        """None: new logs do not appear as files."""
        del attempt

    def origin(self, stream: Stream) -> Origin:
        """The log's name."""
        return Origin(stream, self.spools[stream.node_rank].name, None)

    def activity(self, attempt: int, node_rank: int) -> Activity | None:
        """Always None: the files are local, and few."""
        del attempt, node_rank
        return None


class Spools:
    """The logs that this process reads, and their log service. `LogCatalog`: a set of logs is identified by its group and names.

    The files are in a folder that is removed with this object.
    """

    def __init__(self) -> None:
        self.service = LogService(self)
        self._folder: TemporaryDirectory[str] | None = None
        self._spools: OrderedDict[tuple[str, str], LogSpool] = OrderedDict()
        self._opened: dict[str, SpooledLogs] = {}
        self._count = 0

    def opened(self, group: str, streams: Sequence[str]) -> SpooledLogs:
        """Logs of a group; does not query CloudWatch."""
        self._forget()
        key = ":".join((group, *streams))
        spools = [self._spool(group, stream) for stream in streams]
        self._opened[key] = SpooledLogs(key, spools)
        return self._opened[key]

    def sources(self, run_id: str) -> SpooledLogs:
        """The logs with this identifier."""
        return self._opened[run_id]

    async def is_ended(self, run_id: str) -> bool:
        """Whether following one of them has failed."""
        return any(spool.failure for spool in self.sources(run_id).spools)

    async def close(self) -> None:
        """Stop following, and remove the files."""
        await self.service.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _spool(self, group: str, stream: str) -> LogSpool:
        key = (group, stream)
        if key not in self._spools:
            if self._folder is None:
                self._folder = TemporaryDirectory(prefix="hyperpod-node-logs-")
            self._count += 1
            path = Path(self._folder.name) / f"{self._count}.log"
            self._spools[key] = LogSpool(group, stream, path)
        self._spools.move_to_end(key)
        return self._spools[key]

    def _forget(self) -> None:
        """Drop the least recently used logs."""
        idle = [key for key, spool in self._spools.items() if not spool.is_followed]
        for key in idle[:-MAX_LOGS]:
            removed = self._spools.pop(key)
            self._opened = {key: logs for key, logs in self._opened.items() if removed not in logs.spools}
            removed.path.unlink(missing_ok=True)
            removed.path.with_suffix(".idx").unlink(missing_ok=True)
