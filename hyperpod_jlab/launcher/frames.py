r"""Frames: a node's logs and records as lines on stdout, where no shared storage takes them.

With ``node --frames`` (``pod --frames``) each line of the launcher's stdout is a frame, and the records folder can be made from them byte by byte; a person
can read them too, as ``kubectl logs`` shows them. stderr has only what the launcher says to people (``hyperpod: ...``). The reader is
``hyperpod_jlab/engines/kubernetes/observe/spool_files.py``; the two are tested together. Lines that are neither of the following are no frames; nor is
one with a raw control character in it (other than tab and escape): when the node's program was killed in the midst of a line, the pod's ends it so.

**A log's bytes**: ``ATTEMPT.NODE.STREAM@OFFSET`` and two more characters, then the bytes::

    1.0.3@4096| epoch 1, loss 0.3
    1.0.node@0| ##hyperpod {"run_id": ...}
    1.0.3@4114\ 10%\r20%\r30%
    1.0.3@4126|> Continue? [y]

``STREAM`` is the local rank (the file ``logs/attempt-1/node-0.rank-3.log``), ``node`` (``logs/attempt-1/node-0.log``) ``metrics`` (``logs/attempt-1/node-0.metrics.jsonl``)
or a local rank and ``.outputs`` (``logs/attempt-1/node-0.rank-3.outputs.jsonl``, of notebooks). ``OFFSET`` is the first byte's
place in that file, so each frame stands for itself: what was lost before it shows as a gap, what is read twice lies where it lay. Those of one
stream come in order. The first character after the offset is ``|`` when the bytes stand as they are, or a backslash when they are escaped: then a
carriage return is ``\r``, a backslash ``\\`` and any other byte that may not arrive as it was (control characters other than tab and escape, torn UTF-8)
``\xNN``. (Runtimes drop a carriage return before a line's end, and some replace what is no UTF-8.) The second is a blank when a line feed follows
the bytes in the file, or ``>`` when none does: the line goes on in the stream's next frame, because it is long (more than `LONGEST` bytes, `LONGEST_ESCAPED`
of escaped ones) or was unfinished for `FrameEcho.FLUSH_AFTER_S` seconds. A stream's first frame is one without bytes, so that an empty log is there too. No frame is longer than 12 KiB, so that runtimes, which split at 16, leave it whole.

**A file of the records folder**: ``##hyperpod-file`` and one JSON object: ``path`` (relative to the records folder), ``time`` (Unix seconds; of several frames for
one path the latest counts) and one of

- ``document``: the file's content is ``json.dumps(document)`` and a line feed, as all records are written;
- ``base64`` with ``part`` (from 0), ``parts`` and ``sha256`` (hex, of the whole content): the parts of one content come one after the other;
- ``left_out``: the file has so many bytes, too many (over `LARGEST`) to be sent.

``once: true`` says that a file which is there already stays. Sent are: the claims, the nodes' records, ``failed.json``, the ranks' errors,
``status/unstarted/``, the observations of the launcher and, at the end of node 0, ``result.*`` and ``exception.*``. The frame of a node's last record comes after
all bytes of its logs. The attempt's number is what the launchers count: when all pods of a run were made anew and so nobody remembers, it begins at 1
again, with another ``incarnation`` in ``status/attempt-1/claim.json``, which every node sends first of all in an attempt.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Set, Tuple

FILE_FRAME = b"##hyperpod-file "

CUT_MARK = b"\x18\n"
"""What ends a line that was left unfinished, so that it is no frame."""

PATHS = re.compile(
    r"status/(?:claim|attempt-[1-9][0-9]{0,8}/(?:claim|failed|node-[0-9]{1,6}|rank-[0-9]{1,9}\.error)"
    r"|(?:unstarted|over)/node-[0-9]{1,6}|observations/launcher(?:\.attempt-[1-9][0-9]{0,8})?)\.json"
    r"|result\.(?:json|npy|pkl)|exception\.(?:json|pkl)"
)
"""The files of the records folder that are sent."""

MAX_FRAME = 8192
MAX_ESCAPED_FRAME = 2048
MAX_DOCUMENT = 1 << 18
"""The most bytes of a file that are sent."""

_PART = 6144
_UNCLEAN = re.compile(rb"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f]")
_ESCAPED_BYTES = re.compile(rb"[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f\\]")
_TORN = re.compile(rb"[\x00-\x08\x0a-\x1a\x1c-\x1f\x7f-\xff\\]")


def is_clean(lines: bytes) -> bool:
    """Whether lines arrive as they are."""
    return not _UNCLEAN.search(lines) and is_utf8(lines)


def is_utf8(data: bytes) -> bool:
    """Whether bytes are whole characters."""
    if data.isascii():
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def escape_bytes(data: bytes) -> bytes:
    """Bytes with everything escaped that may not arrive as it is; of torn text all that is not ASCII."""

    def escape_match(match: "re.Match[bytes]") -> bytes:
        byte = match.group()
        if byte == b"\\":
            return b"\\\\"
        return b"\\r" if byte == b"\r" else b"\\x%02x" % ord(byte)

    return (_ESCAPED_BYTES if is_utf8(data) else _TORN).sub(escape_match, data)


class FrameEcho:
    """Makes one stream's bytes into frames."""

    FLUSH_AFTER_S = 0.5
    """Seconds that an unfinished line waits for its end."""

    def __init__(self, label: str) -> None:
        self._label = label.encode() + b"@%d"
        self._plain_format = self._label + b"| %b\n"
        self._offset = 0
        self._partial_line = b""
        self._partial_since = 0.0

    @property
    def opening(self) -> bytes:
        """A frame without bytes: the stream is there."""
        return self._label % 0 + b"|>\n"

    def feed(self, data: bytes, now: float) -> bytes:
        """Take the stream's next bytes; the frames to be written for them."""
        if not self._partial_line:
            self._partial_since = now
        text = self._partial_line + data
        lines = text.split(b"\n")
        self._partial_line = lines.pop()
        frames: List[bytes] = []
        is_plain = is_clean(text[: len(text) - len(self._partial_line)])
        for line in lines:
            if is_plain and len(line) <= MAX_FRAME:  # nearly all of what ranks write
                frames.append(self._plain_format % (self._offset, line))
                self._offset += len(line) + 1
            else:
                self._append_frames(line, True, frames)
        if lines:
            self._partial_since = now
        if len(self._partial_line) > MAX_FRAME:
            self._partial_line = self._append_frames(self._partial_line, False, frames, MAX_FRAME)
        return b"".join(frames) + self.idle(now)

    def idle(self, now: float) -> bytes:
        """The frames to be written because a line has waited for its end long enough."""
        return (
            self.close()
            if self._partial_line and now - self._partial_since >= self.FLUSH_AFTER_S
            else b""
        )

    def close(self) -> bytes:
        """The frames of what is held, when no end of line will come soon."""
        frames: List[bytes] = []
        if self._partial_line:
            self._partial_line = self._append_frames(self._partial_line, False, frames)
        return b"".join(frames)

    def skip(self, count: int) -> None:
        """Leave out bytes that cannot be read."""
        self._offset += count

    def _append_frames(
        self, line: bytes, ends: bool, frames: List[bytes], keep_bytes: int = 0
    ) -> bytes:
        """Put a line into frames, all of it or down to so many bytes; what is left."""
        while True:
            chunk, marker = _split_at(line, MAX_FRAME), b"|"
            if not is_clean(chunk):
                chunk = _split_at(line, MAX_ESCAPED_FRAME)
                if not is_clean(chunk):
                    marker = b"\\"
            line = line[len(chunk) :]
            line_end = b" " if ends and not line else b">"
            body = chunk if marker == b"|" else escape_bytes(chunk)
            frames += (self._label % self._offset, marker, line_end, body, b"\n")
            self._offset += len(chunk)
            if len(line) <= keep_bytes:
                self._offset += ends
                return line


def _split_at(line: bytes, length: int) -> bytes:
    """At most so many first bytes, not ending inside of a character if that can be."""
    if len(line) <= length:
        return line
    end = length
    while end > length - 4 and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[: end if line[end] & 0xC0 != 0x80 else length]


def document_frames(path: str, document: Mapping[str, Any], write_once: bool) -> bytes:
    """The frames of a record."""
    text = json.dumps(document)
    if len(text) > MAX_FRAME:
        return content_frames(path, text.encode("utf-8") + b"\n", write_once)
    return _file_frame(path, write_once, document=document)


def content_frames(path: str, content: bytes, write_once: bool) -> bytes:
    """The frames of any file."""
    import base64
    import hashlib

    digest = hashlib.sha256(content).hexdigest()
    parts = [content[offset : offset + _PART] for offset in range(0, len(content), _PART)] or [b""]
    frames = []
    for number, part in enumerate(parts):
        text = base64.b64encode(part).decode()
        frames.append(
            _file_frame(path, write_once, base64=text, part=number, parts=len(parts), sha256=digest)
        )
    return b"".join(frames)


def _file_frame(path: str, write_once: bool, **content: Any) -> bytes:
    document: Dict[str, Any] = {"path": path, "time": time.time()}
    if write_once:
        document["once"] = True
    document.update(content)
    return FILE_FRAME + json.dumps(document).encode("utf-8") + b"\n"


class FileFrames:
    """Sends the files of the records folder as frames: records when they are written, others when they are there."""

    def __init__(self, records: str, put: Callable[[bytes], None]) -> None:
        self._records = records
        self._append_frames = put
        self._sent: Set[str] = set()

    def on_record(self, path: str, document: Mapping[str, Any], write_once: bool) -> None:
        """A record is being written."""
        name = os.path.relpath(path, self._records)
        if PATHS.fullmatch(name):
            self._sent.add(name)
            self._append_frames(document_frames(name, document, write_once))

    def send_errors(self, folder: str) -> None:
        """Send what the ranks themselves wrote down of their errors."""
        for name, path in self._files_in(folder):
            if ".error." in name and name not in self._sent:
                self._sent.add(name)
                self._send(name, path, True)

    def send_results(self, modified_since: float) -> None:
        """Send the results that were written since then (Unix time)."""
        for name, path in self._files_in(self._records):
            if os.stat(path).st_mtime >= modified_since:
                self._send(name, path, False)

    def _files_in(self, folder: str) -> Iterator[Tuple[str, str]]:
        for entry in sorted(os.listdir(folder)):
            path = os.path.join(folder, entry)
            name = os.path.relpath(path, self._records)
            if PATHS.fullmatch(name):
                yield name, path

    def _send(self, name: str, path: str, write_once: bool) -> None:
        with open(path, "rb") as file:
            content = file.read(MAX_DOCUMENT + 1)
        if len(content) > MAX_DOCUMENT:
            self._append_frames(_file_frame(name, False, left_out=os.stat(path).st_size))
        else:
            self._append_frames(content_frames(name, content, write_once))
