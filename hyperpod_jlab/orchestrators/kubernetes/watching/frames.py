"""Reads the frames in which a launcher without shared storage tells its logs and records (launcher/frames.py is their specification).

Pure: lines go in, in the order in which the pod wrote them; what they say comes out. Nothing of a line is trusted: a path that the launcher would
not name, a number that cannot be, or a part that does not fit is no frame.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

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
