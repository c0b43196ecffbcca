"""Log files of a records folder, made from the pieces that pods print; any number of processes may do so at the same time.

Each piece says where in the launcher's file it lies, and every process writes it to the same place of the file here: whatever was written twice is the same. A
file never has a hole. Where pieces are lost for good (the kubelet rotated them away), a line of ours says so in their place; which bytes are lost is claimed by
exclusive create of a small file beside, so that all processes agree on what lies where behind it.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import re
import secrets
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.removal import remove_tree

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


# --------------------------------------------------------------------------------------------------
# Reads the frames in which a launcher without shared storage tells its logs and records (launcher/frames.py is their specification).
#
# Pure: lines go in, in the order in which the pod wrote them; what they say comes out. Nothing of a line is trusted: a path that the launcher would
# not name, a number that cannot be, or a part that does not fit is no frame.

FILE_FRAME = b"##hyperpod-file "

LARGEST = 1 << 18
"""The most bytes that a file may have; the launcher sends none that is larger."""

_BYTES = re.compile(
    rb"([1-9][0-9]{0,8})\.([0-9]{1,6})\.(node|[0-9]{1,4})@([0-9]{1,15})([|\\])([ >])"
    rb"([^\x00-\x08\x0a-\x1a\x1c-\x1f\x7f]*)"
)
_ESCAPED = re.compile(rb"\\(?:(\\)|(r)|x([0-9a-f]{2}))")
_PATH = re.compile(
    r"status/(?:claim|attempt-[1-9][0-9]{0,8}/(?:claim|failed|node-[0-9]{1,6}|rank-[0-9]{1,9}\.error)"
    r"|(?:unstarted|over)/node-[0-9]{1,6}|observations/launcher(?:\.attempt-[1-9][0-9]{0,8})?)\.json"
    r"|result\.(?:json|npy|pkl)|exception\.(?:json|pkl)"
)
_MOST_PARTS = 64


@dataclass(frozen=True)
class LogBytes:
    """Bytes of a log.

    Attributes:
        attempt: The attempt, as the launchers count.
        node: The node's rank.
        local_rank: The rank's place on the node; None of the node's own log.
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
        once: Whether one that is there already stays.
        content: Its bytes; None when it was too large to be sent.
        size: How many bytes it has on the node.
    """

    path: str
    time: float
    once: bool
    content: bytes | None
    size: int


Frame = LogBytes | RecordFile


@dataclass
class _Pieces:
    path: str
    digest: str
    count: int
    data: list[bytes]


class FrameReader:
    """Reads one container's lines. It holds only the parts of a file that is not complete yet."""

    def __init__(self) -> None:
        self._pieces: _Pieces | None = None

    @property
    def midway(self) -> bool:
        """Whether a file has begun whose last part is to come: a cursor behind this line would lose it."""
        return self._pieces is not None

    def read(self, line: bytes) -> Frame | None:
        """What a line says.

        Args:
            line: Without its line feed and without the runtime's time stamp.

        Returns:
            None when it is no frame, or not the last part of one.
        """
        if line.startswith(FILE_FRAME):
            return self._read_file(line[len(FILE_FRAME) :])
        return read_bytes(line)

    def _read_file(self, text: bytes) -> RecordFile | None:
        try:
            found = json.loads(text)
        except ValueError:
            return None
        if not isinstance(found, dict):
            return None
        path, time = found.get("path"), found.get("time")
        if not isinstance(path, str) or not isinstance(time, int | float):
            return None
        if not _PATH.fullmatch(path) or not 0 <= time < 253_402_300_000:
            return None
        once, size = found.get("once") is True, found.get("left_out")
        if isinstance(size, int) and size >= 0:
            return RecordFile(path, float(time), once, None, size)
        content = self._content(path, found)
        if content is None:
            return None
        return RecordFile(path, float(time), once, content, len(content))

    def _content(self, path: str, found: dict[str, Any]) -> bytes | None:
        if isinstance(found.get("document"), dict):
            return json.dumps(found["document"]).encode() + b"\n"
        part, parts, digest = found.get("part"), found.get("parts"), found.get("sha256")
        data = _decode(found.get("base64"))
        if not isinstance(part, int) or not isinstance(parts, int) or not isinstance(digest, str):
            return None
        if data is None or not 0 <= part < parts <= _MOST_PARTS:
            return None
        if part == 0:
            self._pieces = _Pieces(path, digest, parts, [])
        held = self._pieces
        if held is None or (held.path, held.digest, held.count) != (path, digest, parts):
            return None
        if part != len(held.data):
            if part > len(held.data):  # one is missing: only a new beginning helps
                self._pieces = None
            return None
        held.data.append(data)
        if part + 1 < parts:
            return None
        self._pieces = None
        content = b"".join(held.data)
        fits = len(content) <= LARGEST and hashlib.sha256(content).hexdigest() == digest
        return content if fits else None


def read_bytes(line: bytes) -> LogBytes | None:
    """A line as a log's bytes, or None when it is something else."""
    found = _BYTES.fullmatch(line)
    if found is None:
        return None
    attempt, node, stream, offset, sign, whole, body = found.groups()
    data = body if sign == b"|" else _ESCAPED.sub(_unescaped, body)
    return LogBytes(
        int(attempt),
        int(node),
        None if stream == b"node" else int(stream),
        int(offset),
        data + (b"\n" if whole == b" " else b""),
    )


def _unescaped(found: re.Match[bytes]) -> bytes:
    backslash, carriage_return, code = found.groups()
    if backslash:
        return b"\\"
    return b"\r" if carriage_return else bytes([int(code, 16)])


def _decode(text: Any) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (ValueError, binascii.Error):
        return None


# --------------------------------------------------------------------------------------------------
# Records made from the frames of pods: attempts numbered, files put where the launcher would have written them. Any number of processes may do so at once.

_IN_ATTEMPT = re.compile(r"(status/(?:observations/launcher\.)?attempt-)([0-9]+)((?:/|\.).*)")
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


class SpooledRecords:
    """The records of a run. All methods may block.

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
        wanted = _incarnation(claim)
        while True:
            claims = self._claims()
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
        if file.content is None:
            return
        path, content = file.path, file.content
        found = _IN_ATTEMPT.fullmatch(path)
        if found is not None and number is not None:
            path = f"{found[1]}{number}{found[3]}"
            if "observations" in path:
                content = _renumbered(content, number)
        target = self._records / path
        self._modes.make(target.parent)
        if file.once:
            if not descent.is_file(target):
                descent.create(target, content, mode=self._modes.file)
        else:
            self._replace(target, content, int(file.time * 1e9))

    def _replace(self, target: Path, content: bytes, stamp: int) -> None:
        """Write a file whose time of change is when its launcher sent it, so that everybody sees which one is later."""
        try:
            if descent.state(target).st_mtime_ns >= stamp:
                return
        except FileNotFoundError:
            pass
        descent.replace(target, content, mode=self._modes.file, stamp=stamp)

    def _open(self, number: int, claim: bytes) -> bool:
        """Make an attempt's folder with its claim in it; False when somebody else did."""
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

    def _claims(self) -> dict[int, str | None]:
        """The incarnations of the attempts that are there."""
        found: dict[int, str | None] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in descent.names(self._status):
                number = _ATTEMPT.fullmatch(name)
                if number is not None:
                    path = self._status / name / "claim.json"
                    with contextlib.suppress(OSError):
                        found[int(number[1])] = _incarnation(descent.read(path))
        return found


def attempt_of(path: str) -> int | None:
    """The attempt to which a file of the records folder belongs, as its launcher counts; None for one that belongs to none."""
    found = _IN_ATTEMPT.fullmatch(path)
    return int(found[2]) if found is not None else None


def is_claim(path: str) -> bool:
    """Whether a file is an attempt's claim."""
    return path.endswith("/claim.json") and attempt_of(path) is not None


def _incarnation(claim: bytes) -> str | None:
    found = _document(claim).get("incarnation")
    return str(found) if found is not None else None


def _renumbered(content: bytes, number: int) -> bytes:
    document = _document(content)
    return atomic.to_json({**document, "attempt": number}) if document else content


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
