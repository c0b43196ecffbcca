"""A log file in a bundle: read at an offset, whatever becomes of the file meanwhile.

Lustre and NFS give no notice of another machine's writes, and NFS shows them for sure only to who opens the file anew. So a
read that finds nothing opens the file again: that one step finds late files, new bytes, truncation and replacement alike, and
costs nothing while bytes arrive.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperpod_jlab.logs.source import Chunk, Mark
from hyperpod_jlab.logs.stream import (
    CHECK_BYTES,
    START_POSITION,
    Position,
    Stream,
    build_check,
    same_source,
)
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.bundle import open_linked

# --------------------------------------------------------------------------------------------------
# The time index beside a log: sparse records (time, offset), see docs/bundle-format.md.
#
# The index is a help, never a condition: a missing one, a last record that is half written, or one that falls behind those before it only means that less is known.

_RECORD = struct.Struct("<qq")
_WINDOW_BYTES = 4096
_MAX_INDEX_BYTES = 1 << 20
"""Records that are gone through for one answer: another user's index may have any number."""
_NS = 1_000_000_000
_FLOAT_ERROR = 256
"""Nanoseconds by which a Unix time may be off when it has been a float of seconds."""


class TimeIndex:
    """Reader of one index file. Holds nothing open; blocking; a missing file is an empty index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.reads = 0

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Rising pairs (offset, Unix time) that hold for the bytes from `begin` to `end`; the first is at `begin`."""
        with self._open() as fd:
            if fd is None:
                return []
            count = self._count(fd)
            # The record in force at `begin` is the last one that does not lie behind it.
            first = self._search(fd, count, 1, begin + 1) - 1
            if first < 0:
                return []
            times: list[tuple[int, float]] = []
            for time, offset in self._records(fd, first, min(count, first + _MAX_INDEX_BYTES)):
                if offset >= end and times:
                    break
                position = max(offset, begin)
                if times and (position < times[-1][0] or time / _NS < times[-1][1]):
                    continue  # written by several processes at once
                if times and times[-1][0] == position:
                    times.pop()
                times.append((position, time / _NS))
            return times

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte seen at `time` (Unix seconds) or later.

        None without an index; past the end of the log when nothing was written since.
        """
        with self._open() as fd:
            if fd is None:
                return None
            count = self._count(fd)
            if count == 0:
                return None
            position = self._search(fd, count, 0, int(time * _NS) - _FLOAT_ERROR)
            if position == count:
                return 1 << 62
            return next(self._records(fd, position, position + 1))[1]

    def last_time(self) -> float | None:
        """The time of the newest record, in Unix seconds."""
        with self._open() as fd:
            if fd is None:
                return None
            count = self._count(fd)
            return next(self._records(fd, count - 1, count))[0] / _NS if count else None

    @contextmanager
    def _open(self) -> Iterator[int | None]:
        try:
            fd = descent.open_file(self._path)
        except OSError:
            # Whatever keeps the index from being opened, the log can be read without it.
            yield None
            return
        try:
            yield fd
        finally:
            os.close(fd)

    @staticmethod
    def _count(fd: int) -> int:
        return os.fstat(fd).st_size // _RECORD.size

    def _search(self, fd: int, count: int, column: int, value: int) -> int:
        """The first record whose time (column 0) or offset (column 1) is at least `value`."""
        low, high = 0, count
        per_window = _WINDOW_BYTES // _RECORD.size
        while high - low > per_window:
            middle = (low + high) // 2
            if next(self._records(fd, middle, middle + 1))[column] < value:
                low = middle + 1
            else:
                high = middle
        records = list(self._records(fd, low, high))
        return low + bisect_left(records, value, key=lambda record: record[column])

    def _records(self, fd: int, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The records from `first` up to, not including, `last`."""
        size = _RECORD.size
        position, end = first * size, last * size
        while position < end:
            data = os.pread(fd, min(_WINDOW_BYTES, end - position), position)
            self.reads += 1
            complete_size = len(data) - len(data) % size
            if complete_size == 0:
                return
            yield from _RECORD.iter_unpack(data[:complete_size])
            position += complete_size


TRUNCATED = Mark("truncated", "the log was truncated and starts again")
REPLACED = Mark("replaced", "the log was replaced by a new file")


class BundleFile:
    """One log file as a `LogSource`. Attribute `reads` counts the reads, for budgets and tests.

    Args:
        stream: Which stream it is.
        path: The file, which need not exist yet.
        reopen_after: An open file is opened anew, to look what is under its name now, only after so many seconds.
    """

    def __init__(self, stream: Stream, path: Path, reopen_after: float = 0.0) -> None:
        self._stream = stream
        self._reopen_after = reopen_after
        self._opened = 0.0
        self._path = path
        self.index = TimeIndex(path.with_suffix(".idx"))
        self.reads = 0
        self._fd: int | None = None
        self._inode = 0

    @property
    def stream(self) -> Stream:
        """Which stream this is."""
        return self._stream

    def open_fd(self) -> int:
        """The file, opened for searching; the caller closes it.

        Raises:
            OSError: It cannot be opened.
        """
        return open_linked(self._path)

    def read(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes from a place on; none when there are none yet."""
        try:
            if self._fd is not None:
                chunk = self._read_open(position, limit)
                if chunk.data or time.monotonic() - self._opened < self._reopen_after:
                    return chunk
            return self._reopen_and_read(position, limit)
        except FileNotFoundError:
            return Chunk(b"", position.offset, start=position)
        except OSError as error:
            self.close()
            return Chunk(b"", position.offset, mark=_unreadable(error), start=position)

    def read_back(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes that end at a place; none at the source's start."""
        begin = max(0, position.offset - limit)
        try:
            if self._fd is None:
                self._open()
            data, preceding = self._pread(begin, position.offset - begin)
            return Chunk(data, begin, preceding, self._inode)
        except FileNotFoundError:
            return Chunk(b"", 0)
        except OSError as error:
            self.close()
            return Chunk(b"", 0, mark=_unreadable(error))

    def size(self) -> int:
        """How many bytes the file has now; none when it does not exist or cannot be looked at."""
        state = self._state()
        return 0 if state is None else state.st_size

    def known_end(self) -> Position:
        """Where the file ends now, without a check: it is not opened."""
        return Position(self.size())

    def end(self) -> Position:
        """Where the file ends now; its start when it does not exist or cannot be read."""
        try:
            size = os.fstat(self._open()).st_size
            _, preceding = self._pread(size, 0)
        except OSError:
            # The same trouble comes as a mark when the file is read.
            return START_POSITION
        return Position(size, build_check(self._inode, preceding)) if size else START_POSITION

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Rising pairs (offset, Unix time) for the bytes from `begin` to `end`; none without an index."""
        try:
            return self.index.stamps(begin, end)
        except OSError:
            # An index that cannot be read is as good as none.
            return []

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte seen at `time` (Unix seconds) or later; None without an index."""
        try:
            return self.index.offset_at(time)
        except OSError:
            return None

    def changed(self) -> float | None:
        """When the file was last written, in Unix seconds."""
        state = self._state()
        return None if state is None else state.st_mtime

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        # A follow may be dropped while a thread still reads: the file is closed once nobody holds this object.
        self.close()

    def _open(self) -> int:
        fd = open_linked(self._path)
        self.close()
        self._fd, self._inode = fd, self._identity(fd)
        self._opened = time.monotonic()
        return fd

    def _identity(self, fd: int) -> int:
        """What tells this file from another under the same name."""
        return os.fstat(fd).st_ino

    def _state(self) -> os.stat_result | None:
        """What the file looks like, without opening it unless it is a link."""
        try:
            state = descent.state(self._path)
            if not stat.S_ISLNK(state.st_mode):
                return state if stat.S_ISREG(state.st_mode) else None
            fd = open_linked(self._path)
            try:
                return os.fstat(fd)
            finally:
                os.close(fd)
        except OSError:
            return None

    def _reopen_and_read(self, position: Position, limit: int) -> Chunk:
        old_fd, old_inode = self._fd, self._inode
        self._fd = None
        try:
            new = self._open()
        except OSError:
            self._fd = old_fd
            raise
        if old_fd is None:
            return self._read_checked(position, limit)
        if old_inode == self._inode:
            os.close(old_fd)
            return self._read_checked(position, limit)
        # Between the last look and the replacement the old file may have grown: what it has comes first.
        new_inode = self._inode
        self._fd, self._inode = old_fd, old_inode
        remainder = self._read_open(position, limit)
        self._fd, self._inode = (old_fd, old_inode) if remainder.data else (new, new_inode)
        os.close(new if remainder.data else old_fd)
        if remainder.data:
            return remainder
        return self._read_from_start(limit, REPLACED if position.offset else None)

    def _read_open(self, position: Position, limit: int) -> Chunk:
        """Read from the open file; nothing when the place is not in it."""
        data, preceding = self._pread(position.offset, limit)
        if data and position.check and build_check(self._inode, preceding) != position.check:
            data = b""
        return Chunk(data, position.offset, preceding, self._inode)

    def _read_checked(self, position: Position, limit: int) -> Chunk:
        """Read from a file just opened, or from its start, with a mark, when other bytes lie before the place."""
        data, preceding = self._pread(position.offset, limit)
        is_complete = len(preceding) == min(position.offset, CHECK_BYTES)
        if is_complete and (
            not position.check or build_check(self._inode, preceding) == position.check
        ):
            return Chunk(data, position.offset, preceding, self._inode)
        mark = TRUNCATED if same_source(position.check, self._inode) else REPLACED
        return self._read_from_start(limit, mark)

    def _read_from_start(self, limit: int, mark: Mark | None) -> Chunk:
        data, _ = self._pread(0, limit)
        return Chunk(data, 0, b"", self._inode, mark=mark, restarted=True)

    def _pread(self, offset: int, limit: int) -> tuple[bytes, bytes]:
        """The bytes from `offset` on, and the up to `TAIL` bytes before it, in one read."""
        assert self._fd is not None
        lead = min(offset, CHECK_BYTES)
        self.reads += 1
        buffer = os.pread(self._fd, lead + limit, offset - lead)
        return buffer[lead:], buffer[:lead]


def _unreadable(error: OSError) -> Mark:
    return Mark("unreadable", f"the log cannot be read: {error.strerror or error}")
