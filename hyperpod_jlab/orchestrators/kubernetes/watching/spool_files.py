"""Log files of a records folder, made from the pieces that pods print; any number of processes may do so at the same time.

Each piece says where in the launcher's file it lies, and every process writes it to the same place of the file here: whatever was written twice is the same. A
file never has a hole. Where pieces are lost for good (the kubelet rotated them away), a line of ours says so in their place; which bytes are lost is claimed by
exclusive create of a small file beside, so that all processes agree on what lies where behind it.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.storage import atomic, descent

SETTLES = 2.0
"""Seconds after which pieces that another process may just be writing count as lost."""


@dataclass(frozen=True)
class Lost:
    """Bytes of a launcher's file that nobody has: from `begin` up to `end`."""

    begin: int
    end: int

    @property
    def words(self) -> bytes:
        """The line that stands in their place."""
        return (
            b"hyperpod: %d bytes of this log are lost here: the cluster no longer had them when they were fetched\n"
            % (self.end - self.begin)
        )


@dataclass(frozen=True)
class Piece:
    """Consecutive bytes of a log: their offset in the launcher's file, and when they were written (Unix nanoseconds, by the node's clock)."""

    offset: int
    data: bytes
    stamp: int


class Modes:
    """Modes of files and folders below a bundle; asked once."""

    def __init__(self, root: Path, folder_mode: int, file_mode: int) -> None:
        self._root = root
        self.folder = folder_mode
        self.file = file_mode

    def make(self, folder: Path) -> None:
        """Make a folder below the bundle, never the bundle itself: one that was cleaned away must not come back."""
        descent.make_folders(self._root, folder, self.folder)


class SpooledLog:
    """One log file with its time index. All methods may block.

    Args:
        path: The file.
        claims: The folder in which it is claimed which bytes are lost.
        modes: For what is made.
        sleep: Waits (seconds); for tests.
    """

    def __init__(
        self, path: Path, claims: Path, modes: Modes, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._path = path
        self._claims = claims
        self._modes = modes
        self._sleep = sleep
        self._lost: list[Lost] = []
        modes.make(path.parent)
        self._fd = descent.open_file(path, os.O_RDWR | os.O_CREAT, modes.file)
        self._index = SpooledIndex(path.with_suffix(".idx"), modes.file)
        self._read_claims()

    def write(self, pieces: Sequence[Piece]) -> None:
        """Put pieces where they belong; what is there already stays the same."""
        for run in _runs(pieces):
            if self._place(run[0].offset) > self._size():
                self._miss(run[0].offset)
            self._put(run[0].offset, b"".join([piece.data for piece in run]))
            for piece in run:
                self._index.add(self._place(piece.offset), piece.stamp)

    def close(self) -> None:
        """Give the files back."""
        os.close(self._fd)
        self._index.close()

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _place(self, offset: int) -> int:
        """Where in the file here an offset of the launcher's file lies; inside of what is lost: where the line that says so lies."""
        moved = offset
        for lost in self._lost:
            if offset < lost.begin:
                break
            if offset < lost.end:
                return moved - (offset - lost.begin)
            moved += len(lost.words) - (lost.end - lost.begin)
        return moved

    def _put(self, offset: int, data: bytes) -> None:
        """Write bytes of the launcher's file, but for what is lost by claim."""
        for lost in self._lost:
            if offset < lost.begin < offset + len(data):
                self._write(self._place(offset), data[: lost.begin - offset])
                data, offset = data[lost.begin - offset :], lost.begin
            if lost.begin <= offset < lost.end:
                data, offset = data[lost.end - offset :], lost.end
        if data:
            self._write(self._place(offset), data)

    def _write(self, place: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            done = os.pwrite(self._fd, view, place)
            view, place = view[done:], place + done

    def _miss(self, offset: int) -> None:
        """Pieces before this offset did not come. Another process may have them, or say first that they are lost."""
        size = -1
        while self._see_lost() < self._place(offset):
            before, size = size, self._size()
            if size > before:  # somebody may go on writing
                self._sleep(SETTLES)
                continue
            self._modes.make(self._claims)
            lost = atomic.to_json([self._offset_at(size), offset])
            descent.create(self._claim(len(self._lost)), lost, mode=self._modes.file)

    def _see_lost(self) -> int:
        """Take in what was claimed to be lost, and see that the lines that say so are there; the file's size then."""
        self._read_claims()
        for lost in self._lost:
            place = self._place(lost.begin)
            if place <= self._size() < place + len(lost.words):
                self._write(place, lost.words)
        return self._size()

    def _offset_at(self, place: int) -> int:
        """The offset in the launcher's file of a place in the file here that lies behind all that is known to be lost."""
        moved = place
        for lost in self._lost:
            moved += (lost.end - lost.begin) - len(lost.words)
        return moved

    def _read_claims(self) -> None:
        while True:
            try:
                begin, end = json.loads(descent.read(self._claim(len(self._lost))))
            except (OSError, ValueError, TypeError):
                return
            self._lost.append(Lost(int(begin), int(end)))

    def _claim(self, number: int) -> Path:
        name = f"{self._path.parent.name}.{self._path.stem}.lost-{number}.json"
        return self._claims / name


class SpooledIndex:
    """The sparse time index beside a log (docs/bundle-format.md), with the kubelet's times.

    What is to be written follows from the last record and the pieces alone, so that processes which write the same pieces write the same index.
    """

    _RECORD = struct.Struct("<qq")
    _SPACING = ((4096, 0.0), (16384, 0.25), (65536, 1.0))
    _WIDEST = 5.0

    def __init__(self, path: Path, mode: int) -> None:
        self._fd = descent.open_file(path, os.O_RDWR | os.O_CREAT, mode)
        self._count = 0
        self._time, self._offset = 0, -1
        self._see_others()

    def add(self, offset: int, stamp: int) -> None:
        """The bytes from `offset` on were written at that time (Unix nanoseconds)."""
        if not self._is_due(offset, stamp):
            return
        self._see_others()
        if self._is_due(offset, stamp):
            record = self._RECORD.pack(stamp, offset)
            os.pwrite(self._fd, record, self._count * self._RECORD.size)
            self._count += 1
            self._time, self._offset = stamp, offset

    def _is_due(self, offset: int, stamp: int) -> bool:
        return offset > self._offset and stamp - self._time > self._spacing() * 1e9

    def _see_others(self) -> None:
        """Take in what other processes wrote."""
        count = os.fstat(self._fd).st_size // self._RECORD.size
        if count > self._count:
            last = os.pread(self._fd, self._RECORD.size, (count - 1) * self._RECORD.size)
            self._count = count
            self._time, self._offset = self._RECORD.unpack(last)

    def close(self) -> None:
        """Give the file back."""
        os.close(self._fd)

    def _spacing(self) -> float:
        return next((gap for count, gap in self._SPACING if self._count < count), self._WIDEST)


def _runs(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Pieces that follow each other without a gap, together."""
    run: list[Piece] = []
    end = -1
    for piece in pieces:
        if run and piece.offset != end:
            yield run
            run = []
        run.append(piece)
        end = piece.offset + len(piece.data)
    if run:
        yield run
