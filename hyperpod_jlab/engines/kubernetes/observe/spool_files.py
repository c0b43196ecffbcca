"""What is made in a run's records folder from what its pods print: log files, records, and lines that say what is lost. All of it may block.

Any number of processes may do so at the same time. Each piece of a log says where in the launcher's file it lies, and every process writes it to the same place of the
file here: whatever is written twice is the same. A file never has a hole. Where pieces are lost for good (the kubelet rotated them away), a line says so in their place;
which bytes are lost is claimed by exclusive create of a small file beside, so that all processes agree on what lies where behind it.
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
from hyperpod_jlab.launcher.frames import FILE_FRAME, LARGEST, PATHS
from hyperpod_jlab.launcher.logs import TimeIndex
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.removal import remove_tree

# --------------------------------------------------------------------------------------------------
# Reads the frames in which a launcher without shared storage tells its logs and records (launcher/frames.py is their specification).
#
# Pure: lines go in, in the order in which the pod wrote them. Nothing of a line is trusted: a path that the launcher would not name, an impossible number, or a part that does
# not fit is no frame.

_BYTES = re.compile(
    rb"([1-9][0-9]{0,8})\.([0-9]{1,6})\.(node|[0-9]{1,4})@([0-9]{1,15})([|\\])([ >])"
    rb"([^\x00-\x08\x0a-\x1a\x1c-\x1f\x7f]*)"
)
_ESCAPED = re.compile(rb"\\(?:(\\)|(r)|x([0-9a-f]{2}))")
_MOST_PARTS = 64


@dataclass(frozen=True)
class LogBytes:
    """Bytes of a log.

    Attributes:
        attempt: The attempt, as the launchers count.
        node: The node's rank.
        local_rank: The rank's place on the node; None for the node's own log.
        offset: Where in the file they begin.
        data: The bytes, with the line feed if one follows them.
    """

    attempt: int
    node: int
    local_rank: int | None
    offset: int
    data: bytes

    @property
    def path(self) -> str:
        """The log's file, relative to the records folder."""
        rank = "" if self.local_rank is None else f".rank-{self.local_rank}"
        return f"logs/attempt-{self.attempt}/node-{self.node}{rank}.log"


@dataclass(frozen=True)
class RecordFile:
    """A file of the records folder.

    Attributes:
        path: Where it lies, relative to the records folder.
        time: When the launcher sent it (Unix seconds); of several the latest counts.
        once: Whether a file that is already there stays.
        content: Its bytes.
    """

    path: str
    time: float
    once: bool
    content: bytes


class FrameReader:
    """Reads one container's lines. It holds only the parts of a file that is not complete yet."""

    def __init__(self) -> None:
        self._of: tuple[str, str, int] | None = None
        self._parts: list[bytes] = []

    @property
    def midway(self) -> bool:
        """Whether parts of a file are still to come: a cursor behind this line would lose it."""
        return self._of is not None

    def read(self, line: bytes) -> LogBytes | RecordFile | None:
        """What a line says; None when it is no frame, or not the last part of one.

        Args:
            line: Without its line feed and without the runtime's time stamp.
        """
        if not line.startswith(FILE_FRAME):
            return read_bytes(line)
        try:
            found = json.loads(line[len(FILE_FRAME) :])
            path, time = found["path"], found["time"]
            if not PATHS.fullmatch(path) or not 0 <= time < 253_402_300_000:
                return None
            content = self._content(path, found)
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        once = found.get("once") is True
        return RecordFile(path, float(time), once, content) if content is not None else None

    def _content(self, path: str, found: dict[str, Any]) -> bytes | None:
        if isinstance(found.get("document"), dict):
            return json.dumps(found["document"]).encode() + b"\n"
        data = base64.b64decode(found["base64"], validate=True)
        part, parts, digest = found["part"], found["parts"], found["sha256"]
        if not 0 <= part < parts <= _MOST_PARTS:
            return None
        if part == 0:
            self._of, self._parts = (path, digest, parts), []
        if self._of != (path, digest, parts) or part < len(self._parts):
            return None
        if part > len(self._parts):  # one is missing: only a new beginning helps
            self._of = None
            return None
        self._parts.append(data)
        if part + 1 < parts:
            return None
        self._of = None
        content = b"".join(self._parts)
        fits = len(content) <= LARGEST and hashlib.sha256(content).hexdigest() == digest
        return content if fits else None


def read_bytes(line: bytes) -> LogBytes | None:
    """A line as a log's bytes, or None when it is something else."""
    found = _BYTES.fullmatch(line)
    if found is None:
        return None
    attempt, node, stream, offset, sign, whole, body = found.groups()
    return LogBytes(
        int(attempt),
        int(node),
        None if stream == b"node" else int(stream),
        int(offset),
        (body if sign == b"|" else _ESCAPED.sub(_unescaped, body)) + b"\n" * (whole == b" "),
    )


def _unescaped(found: re.Match[bytes]) -> bytes:
    backslash, carriage_return, code = found.groups()
    if backslash:
        return b"\\"
    return b"\r" if carriage_return else bytes([int(code, 16)])


FOLDER = "spool"
"""In the records folder: how far each pod's log was read, and what of logs is lost."""

SETTLES = 2.0
"""Seconds after which pieces that another process may just be writing count as lost."""


class Modes:
    """Modes of files and folders below a bundle; asked once."""

    def __init__(self, root: Path, folder_mode: int, file_mode: int) -> None:
        self._root = root
        self.folder = folder_mode
        self.file = file_mode

    @classmethod
    def of(cls, bundle: BundleReader) -> Modes:
        """For a bundle of this user's.

        Raises:
            StorageDeniedError: It is another user's: nothing is written there.
        """
        bundle.check_writable(bundle.folder)
        return cls(bundle.folder, bundle.folder_mode, bundle.file_mode)

    def make(self, folder: Path) -> None:
        """Make a folder below the bundle, never the bundle itself: one that was cleaned away must not come back."""
        descent.make_folders(self._root, folder, self.folder)


# ------------------------------------------------------------------------------------------ logs


@dataclass(frozen=True)
class Piece:
    """Consecutive bytes of a log: their offset in the launcher's file, and when they were written (Unix nanoseconds, by the node's clock)."""

    offset: int
    data: bytes
    stamp: int


@dataclass(frozen=True)
class Lost:
    """Bytes of a launcher's file that are lost: from `begin` up to `end`."""

    begin: int
    end: int

    @property
    def words(self) -> bytes:
        """The line that stands in their place."""
        return (
            b"hyperpod: %d bytes of this log are lost here: the cluster no longer had them when they were fetched\n"
            % (self.end - self.begin)
        )


class SpooledLog:
    """One log file with its time index.

    Args:
        path: The file.
        claims: The folder in which it is claimed which bytes are lost.
        modes: For what is made.
        sleep: Waits (seconds); for tests.
    """

    def __init__(
        self, path: Path, claims: Path, modes: Modes, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._claim_names = f"{path.parent.name}.{path.stem}.lost-%d.json"
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
        begin, run = 0, bytearray()
        for piece in pieces:
            if piece.offset != begin + len(run):
                self._put(begin, run)
                begin, run = piece.offset, bytearray()
            if not run and self._place(piece.offset) > self._size():
                self._miss(piece.offset)
            run += piece.data
        self._put(begin, run)
        for piece in pieces:
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

    def _put(self, offset: int, data: bytes | bytearray) -> None:
        """Write bytes of the launcher's file, but for what is lost by claim."""
        view, end = memoryview(data), offset + len(data)
        at = offset
        for lost in [*self._lost, Lost(end, end)]:
            until = min(lost.begin, end)
            if at < until:
                self._write(self._place(at), view[at - offset : until - offset])
            at = max(at, min(lost.end, end))

    def _write(self, place: int, view: memoryview) -> None:
        while view:
            done = os.pwrite(self._fd, view, place)
            view, place = view[done:], place + done

    def _miss(self, offset: int) -> None:
        """Pieces before this offset did not come. Another process may have them, or say first that they are lost."""
        size = -1
        while self._see_lost() < self._place(offset):
            before, size = size, self._size()
            if size > before:  # another process may go on writing
                self._sleep(SETTLES)
                continue
            # The offset at which the file here ends, behind all that is known to be lost.
            begin = size + sum(one.end - one.begin - len(one.words) for one in self._lost)
            self._modes.make(self._claims)
            descent.create(
                self._claims / (self._claim_names % len(self._lost)),
                atomic.to_json([begin, offset]),
                mode=self._modes.file,
            )

    def _see_lost(self) -> int:
        """Take in what was claimed to be lost, and see that the lines that say so are there; the file's size then."""
        self._read_claims()
        for lost in self._lost:
            place = self._place(lost.begin)
            if place <= self._size() < place + len(lost.words):
                self._write(place, memoryview(lost.words))
        return self._size()

    def _read_claims(self) -> None:
        with contextlib.suppress(OSError, ValueError, TypeError):
            while True:
                claim = self._claims / (self._claim_names % len(self._lost))
                begin, end = json.loads(descent.read(claim))
                self._lost.append(Lost(int(begin), int(end)))


class SpooledIndex:
    """The sparse time index beside a log (docs/bundle-format.md), with the kubelet's times.

    What is to be written follows from the last record and the pieces alone, so that processes which write the same pieces write the same index.
    """

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
            record = TimeIndex.RECORD.pack(stamp, offset)
            os.pwrite(self._fd, record, self._count * TimeIndex.RECORD.size)
            self._count += 1
            self._time, self._offset = stamp, offset

    def _is_due(self, offset: int, stamp: int) -> bool:
        spacing = next((gap for most, gap in TimeIndex.SPACING if self._count < most), None)
        spacing = TimeIndex.WIDEST if spacing is None else spacing
        return offset > self._offset and stamp - self._time > spacing * 1e9

    def _see_others(self) -> None:
        """Take in what other processes wrote."""
        size = TimeIndex.RECORD.size
        count = os.fstat(self._fd).st_size // size
        if count > self._count:
            last = os.pread(self._fd, size, (count - 1) * size)
            self._count = count
            self._time, self._offset = TimeIndex.RECORD.unpack(last)

    def close(self) -> None:
        """Give the file back."""
        os.close(self._fd)


# ------------------------------------------------------------------------------------------ records

_IN_ATTEMPT = re.compile(r"(status/(?:observations/launcher\.)?attempt-)([0-9]+)((?:/|\.).*)")
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


class SpooledRecords:
    """The records of a run: attempts are numbered here, files put where the launcher would have written them.

    Args:
        records: The run's records folder.
        modes: For what is made.
    """

    def __init__(self, records: Path, modes: Modes) -> None:
        self._records = records
        self._status = records / "status"
        self._modes = modes

    def attempt(self, told: int, claim: bytes) -> int:
        """The number of an attempt here, which is opened if need be.

        Args:
            told: Its number as its launchers count: they begin anew when none of the run's pods is left that remembers.
            claim: Its claim. By the incarnation in it an attempt is known.
        """
        wanted = _document(claim).get("incarnation")
        while True:
            claims = {
                number: read_record(folder / "claim.json").get("incarnation")
                for number, folder in attempt_folders(self._status)
            }
            for number, found in claims.items():
                if found == wanted:
                    return number
            number = told if told not in claims else max(claims) + 1
            if self._open(number, claim):
                return number

    def put(self, file: RecordFile, number: int | None) -> None:
        """Write a file, unless a later one of the same path is there.

        Args:
            file: The file.
            number: Of its attempt here; None for one that belongs to no attempt.
        """
        path, content = file.path, file.content
        found = _IN_ATTEMPT.fullmatch(path)
        if found is not None and number is not None:
            path = f"{found[1]}{number}{found[3]}"
            if "observations" in path and (document := _document(content)):
                content = atomic.to_json({**document, "attempt": number})
        target = self._records / path
        self._modes.make(target.parent)
        if file.once:
            if not descent.is_file(target):
                descent.create(target, content, mode=self._modes.file)
            return
        # The time of change is when the launcher sent it, so that all processes see which one is later.
        stamp = int(file.time * 1e9)
        with contextlib.suppress(FileNotFoundError):
            if descent.state(target).st_mtime_ns >= stamp:
                return
        descent.replace(target, content, mode=self._modes.file, stamp=stamp)

    def _open(self, number: int, claim: bytes) -> bool:
        """Make an attempt's folder with its claim in it; False when another process did."""
        self._modes.make(self._status)
        staging = self._status / f".attempt-{secrets.token_hex(6)}"
        descent.make_folder(staging, self._modes.folder)
        try:
            descent.create(staging / "claim.json", claim, mode=self._modes.file)
            with contextlib.suppress(OSError):  # it is there, and not empty
                descent.rename(staging, self._status / f"attempt-{number}")
                return True
            return False
        finally:
            with contextlib.suppress(OSError):
                remove_tree(staging)


def attempt_of(path: str) -> int | None:
    """The attempt to which a file of the records folder belongs, as its launcher counts; None for one that belongs to none."""
    found = _IN_ATTEMPT.fullmatch(path)
    return int(found[2]) if found is not None else None


def attempt_folders(status: Path) -> list[tuple[int, Path]]:
    """The folders of a run's attempts by number, the oldest first."""
    try:
        found = [(_ATTEMPT.fullmatch(name), status / name) for name in descent.list_names(status)]
    except OSError:
        return []
    return sorted((int(match[1]), folder) for match, folder in found if match is not None)


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# ------------------------------------------------------------------------------------------ what a node's log lacks

_CUT_OFF = "hyperpod: this node ended without a final record (it was killed, or its pod was removed); its last lines may be lost\n"
_LOST = "hyperpod: the log of this node is lost: the cluster keeps little pod output, and it was not fetched in time\n"


def note_cut_off(bundle: BundleReader, records: RunRecords, begun: Iterable[int]) -> None:
    """Say of each node that never told its end that its logs may lack their end, or that there are none; once, whichever process comes.

    Args:
        bundle: The run.
        records: Its records.
        begun: Ranks of the nodes whose containers have begun.
    """
    last = records.attempts[-1] if records.attempts else None
    with contextlib.suppress(OSError, StorageError):
        for attempt in records.attempts:
            told = {node.node_rank for node in attempt.nodes}
            for node in attempt.nodes:
                if node.ended_at is None:
                    note_in_log(bundle, attempt.number, node.node_rank, _CUT_OFF)
            ran = begun if attempt is last else range(records.head.nodes)
            for rank in sorted({*ran} - told):
                note_lost(bundle, attempt.number, rank)
        for rank in sorted({*begun}) if last is None else ():
            note_lost(bundle, 1, rank)


def note_lost(bundle: BundleReader, attempt: int, rank: int) -> None:
    """Say in a node's log of an attempt that it is lost; once, whichever process comes."""
    note_in_log(bundle, attempt, rank, _LOST)


def note_in_log(
    bundle: BundleReader, attempt: int, rank: int, words: str, what: str = "cut-off"
) -> None:
    """Add a line to a node's own log; once for each `what`, whichever process comes."""
    modes = Modes(bundle.folder, bundle.folder_mode, bundle.file_mode)
    mark = bundle.records / FOLDER / f"attempt-{attempt}.node-{rank}.{what}.json"
    log = bundle.records / "logs" / f"attempt-{attempt}" / f"node-{rank}.log"
    modes.make(mark.parent)
    if not descent.create(mark, b"{}\n", mode=modes.file):
        return
    modes.make(log.parent)
    descriptor = descent.open_file(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, modes.file)
    try:
        os.write(descriptor, words.encode())
    finally:
        os.close(descriptor)
