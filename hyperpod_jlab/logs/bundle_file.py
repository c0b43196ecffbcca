"""A log file in a bundle: reads at an offset, even if the file is truncated or replaced meanwhile.

Lustre and NFS do not notify about another machine's writes, and NFS shows them reliably only after
the file is reopened. So a read that finds nothing reopens the file: this one step finds late files,
new bytes, truncation and replacement, and costs nothing while bytes arrive.
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
from hyperpod_jlab.logs.stream import CHECK_BYTES, START_POSITION, Position, Stream, build_check, same_source
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.bundle import open_linked

# --------------------------------------------------------------------------------------------------
# The time index beside a log: sparse records (time, offset), see docs/bundle-format.md.
#
# The index is optional: if it is missing, or its last record is incomplete, or a record is out of
# order, less is known.

_RECORD = struct.Struct("<qq")
_WINDOW_BYTES = 4096
_MAX_RECORDS = 1 << 16
"""Records of an index that are read for one answer: another user's index may be of any size."""
_NS = 1_000_000_000
_FLOAT_ERROR = 256
"""Rounding error in nanoseconds of a Unix time that was a float of seconds."""


class TimeIndex:
    """Reads one index file. Keeps nothing open; blocking; a missing file is an empty index."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.reads = 0

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Increasing pairs (offset, Unix time) for the bytes from `begin` to `end`; the first one is at `begin`."""
        with self._open() as fd:
            if fd is None:
                return []
            count = self._count(fd)
            # The record that applies at `begin` is the last one that is not after it.
            first = self._search(fd, count, 1, begin + 1) - 1
            if first < 0:
                return []
            times: list[tuple[int, float]] = []
            for time, offset in self._records(fd, first, min(count, first + _MAX_RECORDS)):
                if offset >= end and times:
                    break
                position = max(offset, begin)
                if times and (position < times[-1][0] or time / _NS < times[-1][1]):
                    continue  # several processes wrote at once
                if times and times[-1][0] == position:
                    times.pop()
                times.append((position, time / _NS))
            return times

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte written at `time` (Unix seconds) or later.

        None without an index; past the end of the log if nothing was written since.
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
            # If the index cannot be opened, the log is still readable.
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
        """The records from `first` up to, but not including, `last`."""
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
        stream: The stream.
        path: The file, which may not exist yet.
        reopen_after: Minimum seconds before an open file is reopened to detect a replacement.
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
        return self._stream

    def open_fd(self) -> int:
        """The open file, for searching; the caller closes it.

        Raises:
            OSError: It cannot be opened.
        """
        return open_linked(self._path)

    def read(self, position: Position, limit: int) -> Chunk:
        """Up to `limit` bytes from a position on; empty when there are none yet."""
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
        """Up to `limit` bytes before a position; empty at the source's start."""
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
        """The file's current size; 0 when it does not exist or is unreadable."""
        state = self._state()
        return 0 if state is None else state.st_size

    def known_end(self) -> Position:
        """The file's known end, without opening the file."""
        return Position(self.size())

    def end(self) -> Position:
        """The file's current end; its start when it does not exist or is unreadable."""
        try:
            size = os.fstat(self._open()).st_size
            _, preceding = self._pread(size, 0)
        except OSError:
            # The same error becomes a mark when the file is read.
            return START_POSITION
        return Position(size, build_check(self._inode, preceding)) if size else START_POSITION

    def stamps(self, begin: int, end: int) -> list[tuple[int, float]]:
        """Increasing pairs (offset, Unix time) for the bytes from `begin` to `end`; empty without an index."""
        try:
            return self.index.stamps(begin, end)
        except OSError:
            # An unreadable index counts as missing.
            return []

    def offset_at(self, time: float) -> int | None:
        """The offset of the first byte written at `time` (Unix seconds) or later; None without an index."""
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
        # A follow may be dropped while a thread still reads: the file is closed when the last
        # reference is gone.
        self.close()

    def _open(self) -> int:
        fd = open_linked(self._path)
        self.close()
        self._fd, self._inode = fd, self._identity(fd)
        self._opened = time.monotonic()
        return fd

    def _identity(self, fd: int) -> int:
        """Identifies this file among others of the same name."""
        return os.fstat(fd).st_ino

    def _state(self) -> os.stat_result | None:
        """The file's state, without opening it unless it is a link."""
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
        # The old file may have grown between the last read and the replacement, so its rest is read
        # first.
        new_inode = self._inode
        self._fd, self._inode = old_fd, old_inode
        remainder = self._read_open(position, limit)
        self._fd, self._inode = (old_fd, old_inode) if remainder.data else (new, new_inode)
        os.close(new if remainder.data else old_fd)
        if remainder.data:
            return remainder
        return self._read_from_start(limit, REPLACED if position.offset else None)

    def _read_open(self, position: Position, limit: int) -> Chunk:
        """Read from the open file; empty when the position is not in it."""
        data, preceding = self._pread(position.offset, limit)
        if data and position.check and build_check(self._inode, preceding) != position.check:
            data = b""
        return Chunk(data, position.offset, preceding, self._inode)

    def _read_checked(self, position: Position, limit: int) -> Chunk:
        """Read from a newly opened file; if the bytes before the position differ, read from the start, with a mark."""
        data, preceding = self._pread(position.offset, limit)
        is_complete = len(preceding) == min(position.offset, CHECK_BYTES)
        if is_complete and (not position.check or build_check(self._inode, preceding) == position.check):
            return Chunk(data, position.offset, preceding, self._inode)
        mark = TRUNCATED if same_source(position.check, self._inode) else REPLACED
        return self._read_from_start(limit, mark)

    def _read_from_start(self, limit: int, mark: Mark | None) -> Chunk:
        data, _ = self._pread(0, limit)
        return Chunk(data, 0, b"", self._inode, mark=mark, restarted=True)

    def _pread(self, offset: int, limit: int) -> tuple[bytes, bytes]:
        """The bytes from `offset` on, and up to `CHECK_BYTES` bytes before it, in one read."""
        assert self._fd is not None
        lead = min(offset, CHECK_BYTES)
        self.reads += 1
        buffer = os.pread(self._fd, lead + limit, offset - lead)
        return buffer[lead:], buffer[:lead]


def _unreadable(error: OSError) -> Mark:
    return Mark("unreadable", f"the log cannot be read: {error.strerror or error}")
