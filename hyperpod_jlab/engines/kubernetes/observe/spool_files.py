"""Files in a run's records folder, written from pod output: logs, records, and lines that mark losses. Everything may block.

Any number of processes may do so concurrently. Each log segment contains its offset in the
launcher's file, and every process writes it to the same place of the local file, so repeated writes
are identical. A file never has a hole. If segments are lost for good (the kubelet rotated them
away), a line marks the loss. The lost range is claimed by exclusive creation of a small file, so
that all processes agree on the offsets behind it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.launcher.logs import TimeIndex
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader

FOLDER = "spool"
"""In the records folder: the read position of each pod's log, and the lost ranges."""

SETTLE_S = 2.0
"""Seconds after which missing segments, which another process may just be writing, count as lost."""


class Modes:
    """Modes of files and folders below a bundle, determined once."""

    def __init__(self, root: Path, folder_mode: int, file_mode: int) -> None:
        self._root = root
        self.folder = folder_mode
        self.file = file_mode

    @classmethod
    def from_bundle(cls, bundle: BundleReader) -> Modes:
        """For a bundle of this user.

        Raises:
            StorageDeniedError: The bundle is another user's and must not be written to.
        """
        bundle.check_writable(bundle.folder)
        return cls(bundle.folder, bundle.folder_mode, bundle.file_mode)

    def make(self, folder: Path) -> None:
        """Create a folder below the bundle, never the bundle itself: a deleted one must not come back."""
        descent.make_folders(self._root, folder, self.folder)


# ------------------------------------------------------------------------------------------ logs


@dataclass(frozen=True)
class LogSegment:
    """Consecutive bytes of a log: their offset in the launcher's file, and when they were written (Unix nanoseconds, node's clock)."""

    offset: int
    data: bytes
    timestamp_ns: int


@dataclass(frozen=True)
class LostRange:
    """A lost range of a launcher's file, from `start` up to `end`."""

    start: int
    end: int

    @property
    def marker(self) -> bytes:
        """The line that replaces them."""
        return (
            b"hyperpod: %d bytes of this log are lost here: the cluster no longer had them when they were fetched\n"
            % (self.end - self.start)
        )


class SpooledLog:
    """One log file with its time index.

    Args:
        path: The file.
        claims: The folder for the claims of lost ranges.
        modes: Modes of new files.
        sleep: Waits (seconds); for tests.
    """

    def __init__(
        self, path: Path, claims: Path, modes: Modes, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._claim_names = f"{path.parent.name}.{path.stem}.lost-%d.json"
        self._claims = claims
        self._modes = modes
        self._sleep = sleep
        self._lost_ranges: list[LostRange] = []
        modes.make(path.parent)
        self._fd = descent.open_file(path, os.O_RDWR | os.O_CREAT, modes.file)
        self._index = SpooledIndex(path.with_suffix(".idx"), modes.file)
        self._read_claims()

    def write(self, segments: Sequence[LogSegment]) -> None:
        """Write segments at their offsets; existing bytes stay the same."""
        start, pending = 0, bytearray()
        for segment in segments:
            if segment.offset != start + len(pending):
                self._write_range(start, pending)
                start, pending = segment.offset, bytearray()
            if not pending and self._file_offset(segment.offset) > self._size():
                self._record_gap(segment.offset)
            pending += segment.data
        self._write_range(start, pending)
        for segment in segments:
            self._index.add(self._file_offset(segment.offset), segment.timestamp_ns)

    def close(self) -> None:
        """Close the files."""
        os.close(self._fd)
        self._index.close()

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def _file_offset(self, offset: int) -> int:
        """The local file's offset for an offset of the launcher's file; inside a lost range, the offset of its marker line."""
        shifted = offset
        for lost_range in self._lost_ranges:
            if offset < lost_range.start:
                break
            if offset < lost_range.end:
                return shifted - (offset - lost_range.start)
            shifted += len(lost_range.marker) - (lost_range.end - lost_range.start)
        return shifted

    def _write_range(self, offset: int, data: bytes | bytearray) -> None:
        """Write bytes of the launcher's file, except claimed lost ranges."""
        buffer, end = memoryview(data), offset + len(data)
        position = offset
        for lost_range in [*self._lost_ranges, LostRange(end, end)]:
            stop = min(lost_range.start, end)
            if position < stop:
                self._pwrite(self._file_offset(position), buffer[position - offset : stop - offset])
            position = max(position, min(lost_range.end, end))

    def _pwrite(self, file_offset: int, buffer: memoryview) -> None:
        while buffer:
            written = os.pwrite(self._fd, buffer, file_offset)
            buffer, file_offset = buffer[written:], file_offset + written

    def _record_gap(self, offset: int) -> None:
        """Segments before this offset are missing. Another process may have them, or claim the loss first."""
        size = -1
        while self._reload_lost() < self._file_offset(offset):
            previous_size, size = size, self._size()
            if size > previous_size:  # another process may still be writing
                self._sleep(SETTLE_S)
                continue
            # The launcher's offset at which the local file ends, after all known lost ranges.
            start = size + sum(
                lost_range.end - lost_range.start - len(lost_range.marker)
                for lost_range in self._lost_ranges
            )
            self._modes.make(self._claims)
            descent.create(
                self._claims / (self._claim_names % len(self._lost_ranges)),
                atomic.to_json([start, offset]),
                mode=self._modes.file,
            )

    def _reload_lost(self) -> int:
        """Load the claimed lost ranges and ensure that their marker lines exist; returns the file's size."""
        self._read_claims()
        for lost_range in self._lost_ranges:
            file_offset = self._file_offset(lost_range.start)
            if file_offset <= self._size() < file_offset + len(lost_range.marker):
                self._pwrite(file_offset, memoryview(lost_range.marker))
        return self._size()

    def _read_claims(self) -> None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            while True:
                claim = self._claims / (self._claim_names % len(self._lost_ranges))
                start, end = json.loads(descent.read(claim))
                self._lost_ranges.append(LostRange(int(start), int(end)))


class SpooledIndex:
    """The sparse time index beside a log (docs/bundle-format.md), with the kubelet's timestamps.

    The index depends only on its last record and the segments, so processes that write the same
    segments write the same index.
    """

    def __init__(self, path: Path, mode: int) -> None:
        self._fd = descent.open_file(path, os.O_RDWR | os.O_CREAT, mode)
        self._count = 0
        self._time, self._offset = 0, -1
        self._reload_index()

    def add(self, offset: int, timestamp_ns: int) -> None:
        """Add the write time of the bytes from `offset` on (Unix nanoseconds)."""
        if not self._is_due(offset, timestamp_ns):
            return
        self._reload_index()
        if self._is_due(offset, timestamp_ns):
            record = TimeIndex.RECORD.pack(timestamp_ns, offset)
            os.pwrite(self._fd, record, self._count * TimeIndex.RECORD.size)
            self._count += 1
            self._time, self._offset = timestamp_ns, offset

    def _is_due(self, offset: int, timestamp_ns: int) -> bool:
        interval = next(
            (gap for limit, gap in TimeIndex.INDEX_SPACING if self._count < limit), None
        )
        interval = TimeIndex.WIDEST if interval is None else interval
        return offset > self._offset and timestamp_ns - self._time > interval * 1e9

    def _reload_index(self) -> None:
        """Load what other processes wrote."""
        size = TimeIndex.RECORD.size
        count = os.fstat(self._fd).st_size // size
        if count > self._count:
            last = os.pread(self._fd, size, (count - 1) * size)
            self._count = count
            self._time, self._offset = TimeIndex.RECORD.unpack(last)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


# ------------------------------------------------------------------------------------------ records

_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


def attempt_folders(status: Path) -> list[tuple[int, Path]]:
    """The folders of a run's attempts by number, oldest first."""
    try:
        folders = [(_ATTEMPT.fullmatch(name), status / name) for name in descent.list_names(status)]
    except OSError:
        return []
    return sorted((int(match[1]), folder) for match, folder in folders if match is not None)


def append_note(
    bundle: BundleReader, attempt: int, rank: int, text: str, label: str = "cut-off"
) -> None:
    """Append a line to a node's own log; once for each `label`, by whichever process is first."""
    modes = Modes(bundle.folder, bundle.folder_mode, bundle.file_mode)
    marker_path = bundle.records / FOLDER / f"attempt-{attempt}.node-{rank}.{label}.json"
    log = bundle.records / "logs" / f"attempt-{attempt}" / f"node-{rank}.log"
    modes.make(marker_path.parent)
    if not descent.create(marker_path, b"{}\n", mode=modes.file):
        return
    modes.make(log.parent)
    descriptor = descent.open_file(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, modes.file)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
