"""Files in a run's records folder, written from pod output: logs, records, and lines that mark losses. Everything may block.

Any number of processes may do so concurrently. Each log segment contains its offset in the
launcher's file, and every process writes it to the same place of the local file, so repeated writes
are identical. A file never has a hole. If segments are lost for good (the kubelet rotated them
away), a line marks the loss. The lost range is claimed by exclusive creation of a small file, so
that all processes agree on the offsets behind it.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import StorageError
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.engines.native_records import read_record
from hyperpod_jlab.launcher.frames import FILE_FRAME, MAX_DOCUMENT, PATHS
from hyperpod_jlab.launcher.logs import TimeIndex
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.removal import remove_tree

# --------------------------------------------------------------------------------------------------
# Reads the frames in which a launcher without shared storage sends its logs and records
# (launcher/frames.py is their specification).
#
# Pure: lines go in, in the order in which the pod wrote them. Lines are untrusted: a path that the
# launcher would not use, an impossible number, or a part that does not match is not a frame.

_LOG_FRAME = re.compile(
    rb"([1-9][0-9]{0,8})\.([0-9]{1,6})\.(node|metrics|[0-9]{1,4}(?:\.outputs)?)@([0-9]{1,15})([|\\])([ >])"
    rb"([^\x00-\x08\x0a-\x1a\x1c-\x1f\x7f]*)"
)
_ESCAPED = re.compile(rb"\\(?:(\\)|(r)|x([0-9a-f]{2}))")
_MAX_PARTS = 64


@dataclass(frozen=True)
class LogBytes:
    """A segment of a log.

    Attributes:
        attempt: The launchers' attempt number.
        node: The node's rank.
        stream: The local rank; `node` for the node's own log, `metrics` for the numbers that its ranks print, `3.outputs` for the outputs of a
            notebook's cells on a rank.
        offset: Their offset in the file.
        data: The bytes, including a following line feed.
    """

    attempt: int
    node: int
    stream: str
    offset: int
    data: bytes

    @property
    def path(self) -> str:
        """The file's path, relative to the records folder."""
        names = {"node": ".log", "metrics": ".metrics.jsonl"}
        rank, _, kind = self.stream.partition(".")
        end = ".outputs.jsonl" if kind else ".log"
        name = names.get(self.stream) or f".rank-{int(rank)}{end}"
        return f"logs/attempt-{self.attempt}/node-{self.node}{name}"


@dataclass(frozen=True)
class RecordFile:
    """A file of the records folder.

    Attributes:
        path: Its path, relative to the records folder.
        time: When the launcher sent it (Unix seconds); the latest one wins.
        write_once: Whether an existing file stays.
        content: Its bytes.
    """

    path: str
    time: float
    write_once: bool
    content: bytes


class FrameReader:
    """Reads one container's lines. It buffers only the parts of an incomplete file."""

    def __init__(self) -> None:
        self._current: tuple[str, str, int] | None = None
        self._parts: list[bytes] = []

    @property
    def midway(self) -> bool:
        """Whether a file is incomplete: a cursor behind this line would lose it."""
        return self._current is not None

    def read(self, line: bytes) -> LogBytes | RecordFile | None:
        """Decode a line; None when it is not a frame, or not the last part of one.

        Args:
            line: Without its line feed and the runtime's timestamp.
        """
        if not line.startswith(FILE_FRAME):
            return read_bytes(line)
        try:
            header = json.loads(line[len(FILE_FRAME) :])
            path, time = header["path"], header["time"]
            if not PATHS.fullmatch(path) or not 0 <= time < 253_402_300_000:
                return None
            content = self._content(path, header)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        write_once = header.get("once") is True
        return RecordFile(path, float(time), write_once, content) if content is not None else None

    def _content(self, path: str, header: dict[str, Any]) -> bytes | None:
        if isinstance(header.get("document"), dict):
            return json.dumps(header["document"]).encode() + b"\n"
        data = base64.b64decode(header["base64"], validate=True)
        part, parts, digest = header["part"], header["parts"], header["sha256"]
        if not 0 <= part < parts <= _MAX_PARTS:
            return None
        if part == 0:
            self._current, self._parts = (path, digest, parts), []
        if self._current != (path, digest, parts) or part < len(self._parts):
            return None
        if part > len(self._parts):  # a part is missing: wait for a new first part
            self._current = None
            return None
        self._parts.append(data)
        if part + 1 < parts:
            return None
        self._current = None
        content = b"".join(self._parts)
        is_valid = len(content) <= MAX_DOCUMENT and hashlib.sha256(content).hexdigest() == digest
        return content if is_valid else None


def read_bytes(line: bytes) -> LogBytes | None:
    """Decode a line of log bytes, or None for another kind of line."""
    match = _LOG_FRAME.fullmatch(line)
    if match is None:
        return None
    attempt, node, stream, offset, sign, line_end, body = match.groups()
    return LogBytes(
        int(attempt),
        int(node),
        stream.decode(),
        int(offset),
        (body if sign == b"|" else _ESCAPED.sub(_unescape, body)) + b"\n" * (line_end == b" "),
    )


def _unescape(match: re.Match[bytes]) -> bytes:
    backslash, carriage_return, code = match.groups()
    if backslash:
        return b"\\"
    return b"\r" if carriage_return else bytes([int(code, 16)])


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

_ATTEMPT_PATH = re.compile(r"(status/(?:observations/launcher\.)?attempt-)([0-9]+)((?:/|\.).*)")
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


class SpooledRecords:
    """The records of a run: attempts are numbered here, and files are stored where the launcher would have written them.

    Args:
        records: The run's records folder.
        modes: Modes of new files.
    """

    def __init__(self, records: Path, modes: Modes) -> None:
        self._records = records
        self._status = records / "status"
        self._modes = modes

    def attempt(self, printed_attempt: int, claim: bytes) -> int:
        """Our number of an attempt, which is created if needed.

        Args:
            printed_attempt: The launchers' number; they restart at 1 when no pod of the run is
                left.
            claim: Its claim; the incarnation in it identifies the attempt.
        """
        incarnation = _document(claim).get("incarnation")
        while True:
            claims = {
                number: read_record(folder / "claim.json").get("incarnation")
                for number, folder in attempt_folders(self._status)
            }
            for number, claimed in claims.items():
                if claimed == incarnation:
                    return number
            number = printed_attempt if printed_attempt not in claims else max(claims) + 1
            if self._open(number, claim):
                return number

    def store(self, file: RecordFile, number: int | None) -> None:
        """Store a file, unless a later one of the same path exists.

        Args:
            file: The file.
            number: Our attempt number; None for a file outside of attempts.
        """
        path, content = file.path, file.content
        match = _ATTEMPT_PATH.fullmatch(path)
        if match is not None and number is not None:
            path = f"{match[1]}{number}{match[3]}"
            if "observations" in path and (document := _document(content)):
                content = atomic.to_json({**document, "attempt": number})
        target = self._records / path
        self._modes.make(target.parent)
        if file.write_once:
            if not descent.is_file(target):
                descent.create(target, content, mode=self._modes.file)
            return
        # The modification time is when the launcher sent the file, so that all processes see which
        # one is later.
        timestamp_ns = int(file.time * 1e9)
        with contextlib.suppress(FileNotFoundError):
            if descent.state(target).st_mtime_ns >= timestamp_ns:
                return
        descent.replace(target, content, mode=self._modes.file, stamp=timestamp_ns)

    def _open(self, number: int, claim: bytes) -> bool:
        """Create an attempt's folder with its claim; False when another process did."""
        self._modes.make(self._status)
        staging = self._status / f".attempt-{secrets.token_hex(6)}"
        descent.make_folder(staging, self._modes.folder)
        try:
            descent.create(staging / "claim.json", claim, mode=self._modes.file)
            with contextlib.suppress(OSError):  # it exists and is not empty
                descent.rename(staging, self._status / f"attempt-{number}")
                return True
            return False
        finally:
            with contextlib.suppress(OSError):
                remove_tree(staging)


def parse_attempt(path: str) -> int | None:
    """The launcher's attempt number of a file in the records folder; None for a file outside of attempts."""
    match = _ATTEMPT_PATH.fullmatch(path)
    return int(match[2]) if match is not None else None


def attempt_folders(status: Path) -> list[tuple[int, Path]]:
    """The folders of a run's attempts by number, oldest first."""
    try:
        folders = [(_ATTEMPT.fullmatch(name), status / name) for name in descent.list_names(status)]
    except OSError:
        return []
    return sorted((int(match[1]), folder) for match, folder in folders if match is not None)


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


# ------------------------------------------------------------------------------------------ what a
# node's log lacks
# gaps in a node's log

_CUT_OFF_TEXT = "hyperpod: this node ended without a final record (it was killed, or its pod was removed); its last lines may be lost\n"
_LOST_TEXT = "hyperpod: the log of this node is lost: the cluster keeps little pod output, and it was not fetched in time\n"


def mark_cut_off(bundle: BundleReader, records: RunRecords, started_ranks: Iterable[int]) -> None:
    """Note for each node without a recorded end that its logs may be truncated or missing; once, by whichever process is first.

    Args:
        bundle: The run.
        records: Its records.
        started_ranks: Ranks of the nodes whose containers have started.
    """
    last = records.attempts[-1] if records.attempts else None
    with contextlib.suppress(OSError, StorageError):
        for attempt in records.attempts:
            recorded_ranks = {node.node_rank for node in attempt.nodes}
            for node in attempt.nodes:
                if node.ended_at is None:
                    append_note(bundle, attempt.number, node.node_rank, _CUT_OFF_TEXT)
            started = started_ranks if attempt is last else range(records.head.nodes)
            for rank in sorted({*started} - recorded_ranks):
                mark_lost(bundle, attempt.number, rank)
        for rank in sorted({*started_ranks}) if last is None else ():
            mark_lost(bundle, 1, rank)


def mark_lost(bundle: BundleReader, attempt: int, rank: int) -> None:
    """Note in a node's log of an attempt that the log is lost; once, by whichever process is first."""
    append_note(bundle, attempt, rank, _LOST_TEXT)


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
