"""Logs."""

from __future__ import annotations

import bisect
import contextlib
import os
import select
import struct
import time
from collections import deque
from typing import Deque, List, Optional, Tuple

from .bundle_files import BundleFiles


class NodeLog:
    """The launcher's own log; a disk that fails must not end anything here."""

    def __init__(self, files: BundleFiles, path: str) -> None:
        self.descriptor = files.open(path, os.O_WRONLY | os.O_APPEND)

    def write_line(self, text: str) -> None:
        """Write one line as it is."""
        with contextlib.suppress(OSError):
            os.write(self.descriptor, text.encode("utf-8", "backslashreplace") + b"\n")

    def note(self, text: str) -> None:
        """Say something to the people who read the log."""
        self.write_line("hyperpod: " + text)


class TimeIndex:
    """The sparse time index beside a log: from which offset on the bytes were first seen at which time.

    The more records it has, the farther apart they get, so that a rank that never stops talking costs about a
    megabyte a day. After a pause there always is a record.
    """

    RECORD = struct.Struct("<qq")
    INDEX_SPACING = ((4096, 0.0), (16384, 0.25), (65536, 1.0))
    WIDEST = 5.0

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._count = 0
        self._time = 0
        self.add(0)

    def add(self, offset: int) -> None:
        """The bytes from `offset` on are seen now."""
        now = max(time.time_ns(), self._time)
        if self._count and now - self._time < self._spacing() * 1e9:
            return
        record = self.RECORD.pack(now, offset)
        # It is sparse anyway: a record that a full disk refuses is left out.
        with contextlib.suppress(OSError):
            if os.pwrite(self._descriptor, record, self._count * self.RECORD.size) == len(record):
                self._count += 1
                self._time = now

    def _spacing(self) -> float:
        return next((gap for count, gap in self.INDEX_SPACING if self._count < count), self.WIDEST)

    def time_of(self, offset: int) -> float:
        """When the byte at `offset` was first seen (Unix time)."""
        try:
            data = os.pread(self._descriptor, self._count * self.RECORD.size, 0)
        except OSError:
            return time.time()
        records = list(self.RECORD.iter_unpack(data[: len(data) - len(data) % self.RECORD.size]))
        index = bisect.bisect_right([record[1] for record in records], offset)
        return records[index - 1][0] / 1e9 if index else time.time()


class LineEcho:
    """Makes a rank's bytes into prefixed lines for the launcher's stdout.

    A line longer than `MAX_LINE`, and one that stays unfinished for a while, comes in pieces: those after the first
    have ``+`` in place of the prefix's blank. Of a progress bar (carriage returns, no line feed) one state a second
    is shown.
    """

    MAX_LINE = 16384
    BAR_EVERY = 1.0
    FLUSH_AFTER_S = 2.0

    def __init__(self, label: str) -> None:
        self._line_prefix = label.encode() + b"| "
        self._continuation_prefix = label.encode() + b"|+"
        self._partial_line = b""
        self._is_continued = False  # a piece of the held line is out already
        self._bar_written_at = float("-inf")
        self._fed_at = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Take bytes of the rank; what is to be written for them."""
        self._fed_at = now
        text = self._partial_line + data
        lines = text.split(b"\n")
        self._partial_line = lines.pop()
        output_parts: List[bytes] = []
        if lines and not self._is_continued and b"\r" not in text and max(map(len, lines)) <= self.MAX_LINE:
            output_parts = [self._line_prefix, (b"\n" + self._line_prefix).join(lines), b"\n"]
        else:
            for line in lines:
                self._append_line(line, output_parts)
        self._limit_bar_updates(now, output_parts)
        return b"".join(output_parts)

    def idle(self, now: float) -> bytes:
        """What is to be written because a line has waited for its end long enough."""
        if not self._partial_line or now - self._fed_at < self.FLUSH_AFTER_S:
            return b""
        return self.close()

    def close(self) -> bytes:
        """What is left, when no end of line will come."""
        output_parts: List[bytes] = []
        partial_line = self._partial_line.rstrip(b"\r")
        if partial_line:
            self._append_chunk(partial_line, output_parts)
        self._is_continued = self._partial_line == partial_line and bool(partial_line)
        self._partial_line = b""
        return b"".join(output_parts)

    def _append_chunk(self, chunk: bytes, output_parts: List[bytes]) -> None:
        output_parts += (self._continuation_prefix if self._is_continued else self._line_prefix, chunk, b"\n")
        self._is_continued = True

    def _append_line(self, line: bytes, output_parts: List[bytes]) -> None:
        line = line.rstrip(b"\r")
        if b"\r" in line:
            line = line.rpartition(b"\r")[2]
            self._is_continued = False
        for start in range(0, len(line), self.MAX_LINE):
            self._append_chunk(line[start : start + self.MAX_LINE], output_parts)
        if not line and not self._is_continued:
            self._append_chunk(b"", output_parts)
        self._is_continued = False

    def _limit_bar_updates(self, now: float, output_parts: List[bytes]) -> None:
        """Keep of the unfinished line only what may still matter."""
        body = self._partial_line[:-1] if self._partial_line.endswith(b"\r") else self._partial_line
        if b"\r" in body:
            earlier, _, tail = body.rpartition(b"\r")
            latest_text = earlier.rpartition(b"\r")[2]
            self._is_continued = False
            if latest_text and now - self._bar_written_at >= self.BAR_EVERY:
                self._bar_written_at = now
                self._append_chunk(latest_text, output_parts)
                self._is_continued = False
            self._partial_line = tail + self._partial_line[len(body) :]
        while len(self._partial_line) > self.MAX_LINE:
            self._append_chunk(self._partial_line[: self.MAX_LINE], output_parts)
            self._partial_line = self._partial_line[self.MAX_LINE :]


class Outlet:
    """Writes to the launcher's stdout from a thread of its own, so that a slow, stuck or closed one holds nothing up."""

    MAX_BUFFERED = 1 << 20

    def __init__(self, descriptor: int) -> None:
        import threading

        self._descriptor = descriptor
        self._queue: Deque[bytes] = deque()
        self._size = 0
        self._change = threading.Condition()
        self.broken: Optional[str] = None
        try:
            threading.Thread(target=self._run, name="stdout", daemon=True).start()
        except RuntimeError as error:  # no more threads for this user; the ranks need them more
            self.broken = str(error)

    @property
    def waiting(self) -> int:
        """Bytes that stdout has not taken yet."""
        return self._size

    @property
    def has_capacity(self) -> bool:
        """Whether more may be put in; else the log files keep it for us."""
        return self._size < self.MAX_BUFFERED

    def put(self, data: bytes) -> None:
        """Have something written."""
        if data and self.broken is None:
            with self._change:
                self._queue.append(data)
                self._size += len(data)
                self._change.notify()

    def _run(self) -> None:
        while self.broken is None:
            with self._change:
                while not self._queue:
                    self._change.wait()
                data = self._queue.popleft()
            self._write(memoryview(data))

    def _write(self, data: memoryview) -> None:
        while len(data):
            try:
                written = os.write(self._descriptor, data[:65536])
            except BlockingIOError:  # somebody who shares it made it non-blocking
                select.select([], [self._descriptor], [], 1.0)
                continue
            except OSError as error:
                self.broken = error.strerror or str(error)
                return
            data = data[written:]
            with self._change:
                self._size -= written

    def flush(self, seconds: float) -> None:
        """Wait until stdout has taken everything, but no longer than that."""
        deadline = time.monotonic() + seconds
        while self._size and self.broken is None and time.monotonic() < deadline:
            time.sleep(0.005)


class Stream:
    """One log file as the launcher sees it: its size, since when, its time index, and how much of it was echoed."""

    CHUNK = 1 << 18

    def __init__(self, files: BundleFiles, path: str, echo: Optional[LineEcho]) -> None:
        self.descriptor = files.open(path, os.O_RDONLY)
        index = os.path.splitext(path)[0] + ".idx"
        self.index = TimeIndex(files.open(index, os.O_RDWR | os.O_TRUNC))
        self.size = 0
        self.changed = time.time()
        self._echo = echo
        self._echoed = 0

    def poll(self) -> bool:
        """See whether the file grew."""
        size = os.fstat(self.descriptor).st_size
        if size <= self.size:
            return False
        self.index.add(self.size)
        self.size = size
        self.changed = time.time()
        return True

    @property
    def backlog(self) -> int:
        """Bytes that were not echoed yet."""
        return self.size - self._echoed if self._echo else 0

    def skip_echo(self) -> None:
        """Leave out of the echo what is there now."""
        self._echoed = os.fstat(self.descriptor).st_size

    def echo(self, now: float) -> bytes:
        """The next part for the launcher's stdout."""
        if self._echo is None:
            return b""
        if not self.backlog:
            return self._echo.idle(now)
        try:
            data = os.pread(self.descriptor, min(self.CHUNK, self.backlog), self._echoed)
        except OSError:
            data = b""
        if not data:  # somebody cut the file short
            self._echoed = self.size
        self._echoed += len(data)
        return self._echo.feed(data, now)

    def end_echo(self) -> bytes:
        """The unfinished line, if there is one."""
        return self._echo.close() if self._echo else b""

    def tail(self, limit: int) -> Tuple[bytes, int]:
        """The last bytes and the offset at which they begin."""
        start = max(0, self.size - limit)
        try:
            return os.pread(self.descriptor, self.size - start, start), start
        except OSError:
            return b"", start
