"""The time index beside a log: sparse records (time, offset), see docs/bundle-format.md.

The index is a help, never a condition: a missing one, a last record that is half written, or one that falls behind those before it only means that less is known.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hyperpod_jlab.storage import descent

_RECORD = struct.Struct("<qq")
_WINDOW = 4096
_MOST = 1 << 20
"""Records that are gone through for one answer: another user's index may have any number."""
_NS = 1e9
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
            found: list[tuple[int, float]] = []
            for time, offset in self._records(fd, first, min(count, first + _MOST)):
                if offset >= end and found:
                    break
                place = max(offset, begin)
                if found and (place < found[-1][0] or time / _NS < found[-1][1]):
                    continue  # written by several processes at once
                if found and found[-1][0] == place:
                    found.pop()
                found.append((place, time / _NS))
            return found

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
            at = self._search(fd, count, 0, int(time * _NS) - _FLOAT_ERROR)
            if at == count:
                return 1 << 62
            return next(self._records(fd, at, at + 1))[1]

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
        per_window = _WINDOW // _RECORD.size
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
        at, end = first * size, last * size
        while at < end:
            data = os.pread(fd, min(_WINDOW, end - at), at)
            self.reads += 1
            whole = len(data) - len(data) % size
            if whole == 0:
                return
            yield from _RECORD.iter_unpack(data[:whole])
            at += whole
