"""The bytes of a log answer as pieces of lines, and which of them one has already had.

Asked for time stamps, the kubelet begins each line with one (RFC 3339 with nine digits, a space). containerd keeps long lines in pieces of 16 KiB; the answer joins
them, and only the first has a stamp (seen on containerd 1.6 with a line of 4 MiB). What begins without a stamp is no line but a text of the kubelet's, such as
``unable to retrieve container logs for containerd://...``, which comes with status 200.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from datetime import datetime

from hyperpod_jlab.orchestrators.kubernetes.api.log_cursor import SECOND, Count, Cursor
from hyperpod_jlab.orchestrators.kubernetes.api.log_items import Entry

_WHOLE = 65536
"""Bytes up to which a line is held back until it is whole."""
_STAMP = 40
"""Characters that a time stamp has at most."""
_LATE = 2 * SECOND
"""By how much a line may have an older stamp than one before it: two streams are written side by side."""


class Lines:
    """Cuts an answer into pieces of lines."""

    def __init__(self) -> None:
        self.foreign = b""
        """The last text that was no line."""
        self._rest = b""
        self._stamp: int | None = None
        self._second = b""
        self._nanos = 0

    def feed(self, chunk: bytes) -> list[Entry]:
        """The lines that are whole with this chunk, and the beginning of a long one."""
        *whole, rest = (self._rest + chunk).split(b"\n")
        found = [entry for line in whole if (entry := self._line(line, ends=True)) is not None]
        if len(rest) > _WHOLE:
            if (entry := self._line(rest, ends=False)) is not None:
                found.append(entry)
            rest = b""
        self._rest = rest
        return found

    def close(self) -> list[Entry]:
        """What was left when the answer ended: a line without newline, or a part of one."""
        rest, self._rest = self._rest, b""
        entry = self._line(rest, ends=False) if rest else None
        return [entry] if entry is not None and entry.data else []

    def _line(self, line: bytes, *, ends: bool) -> Entry | None:
        if self._stamp is not None:  # it goes on with what was handed out before
            stamp, starts, data = self._stamp, False, line
        else:
            at = line.find(b" ", 0, _STAMP)
            found = self._parse(line[:at]) if at > 0 else None
            if found is None:
                self.foreign = line[:300]
                return None
            stamp, starts, data = found, True, line[at + 1 :]
        self._stamp = None if ends else stamp
        return Entry(stamp, data, starts, ends)

    def _parse(self, text: bytes) -> int | None:
        """Unix nanoseconds."""
        if len(text) == 30 and text[:20] == self._second and text[29:] == b"Z":
            digits = text[20:29]
            return self._nanos + int(digits) if digits.isdigit() else None
        second, _, rest = text.partition(b".")
        digits = rest.rstrip(b"Z").partition(b"+")[0].partition(b"-")[0]
        if len(second) < 19 or (rest and not digits.isdigit()) or len(digits) > 9:
            return None
        zone = rest[len(digits) :] if rest else second[19:]
        try:
            at = datetime.fromisoformat((second[:19] + zone).decode("ascii"))
            nanos = int(at.timestamp()) * SECOND
        except ValueError:
            return None
        if zone == b"Z":
            self._second, self._nanos = second + b".", nanos
        return nanos + int(digits.ljust(9, b"0")) if digits else nanos


class RotatedError(Exception):
    """The log does not begin where it did: the kubelet has begun a new file."""


class Resume:
    """Lets through what comes after a cursor.

    Args:
        cursor: Where to go on.
        count: Counts all lines of this answer.
    """

    def __init__(self, cursor: Cursor, count: Count) -> None:
        self._anchor, self._last = cursor.anchor, cursor.last
        self._count = count
        self._seen = 0
        self._digest = 0
        self._line = 0
        self.reached = cursor.last is None

    def take(self, entries: list[Entry]) -> list[Entry]:
        """What is new of these.

        Raises:
            RotatedError: The lines are not those from which the cursor was counted.
        """
        found = []
        for entry in entries:
            self._count.take(entry.stamp, entry.data, starts=entry.starts, ends=entry.ends)
            if self.reached:
                found.append(entry)
            elif (new := self._skip(entry)) is not None:
                found.append(new)
        return found

    def _skip(self, entry: Entry) -> Entry | None:
        anchor, last = self._anchor, self._last
        assert anchor is not None
        assert last is not None
        if entry.starts:
            self._seen += 1
            self._digest = self._line = 0
            if self._seen == 1 and entry.stamp != anchor.stamp:
                raise RotatedError
        if self._seen < anchor.count:
            return None
        if entry.stamp != last.stamp:
            raise RotatedError
        had = entry.data[: max(0, last.taken - self._line)]
        self._digest = zlib.crc32(had, self._digest)
        self._line += len(had)
        if self._line < last.taken:
            if entry.ends:
                raise RotatedError
            return None
        if self._digest != last.digest:
            raise RotatedError
        self.reached = True
        rest = entry.data[len(had) :]
        if last.ended:
            if rest or not entry.ends:
                raise RotatedError
            return None
        if not rest and not entry.ends:
            return None
        return Entry(entry.stamp, rest, starts=False, ends=entry.ends)


@dataclass
class Search:
    """Looks for a cursor's last line in a log whose beginning has gone; holds back what may be new until it is known.

    Attributes:
        cursor: Where to go on.
        count: Counts all lines of this answer.
        found: True: the last line is there, and what comes after it is new. False: it is not there. None: not yet known.
    """

    cursor: Cursor
    count: Count
    found: bool | None = None
    _held: list[Entry] = field(default_factory=list)
    _line: list[Entry] = field(default_factory=list)
    _same: int = 0

    def take(self, entries: list[Entry]) -> list[Entry]:
        """What is new of these, as far as that is known."""
        new = []
        for entry in entries:
            self.count.take(entry.stamp, entry.data, starts=entry.starts, ends=entry.ends)
            if self.found is None:
                new += self._look(entry)
            else:
                new.append(entry)
        return new

    def close(self) -> list[Entry]:
        """The answer has ended: what was held back is new when the last line was not among it."""
        held = self._held + self._line
        self._held, self._line = [], []
        if self.found is None:
            self.found = False
        return held

    def _look(self, entry: Entry) -> list[Entry]:
        last = self.cursor.last
        assert last is not None
        if entry.starts:
            self._held += self._line
            self._line = []
            if entry.stamp == last.stamp:
                self._same += 1
        self._line.append(entry)
        orderly = self.cursor.anchor is not None
        if orderly and entry.stamp < last.stamp - _LATE:
            self._held, self._line = [], []
        elif orderly and entry.stamp > last.stamp + _LATE:
            return self.close()
        elif entry.stamp == last.stamp and (rest := self._after(self._line)) is not None:
            self.found = True
            self._held, self._line = [], []
            return rest
        return []

    def _after(self, line: list[Entry]) -> list[Entry] | None:
        """What is new of a line when it is the last one, else None."""
        last = self.cursor.last
        assert last is not None
        data = b"".join(entry.data for entry in line)
        if self._same < last.same or len(data) < last.taken:
            return None
        if zlib.crc32(data[: last.taken]) != last.digest:
            return None
        rest, ends = data[last.taken :], line[-1].ends
        if last.ended:
            return [] if ends and not rest else None
        return [Entry(last.stamp, rest, starts=False, ends=ends)] if rest or ends else []
