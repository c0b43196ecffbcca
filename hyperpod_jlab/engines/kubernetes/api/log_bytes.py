"""The bytes of a log answer as pieces of lines, and which of them one has already had.

Asked for time stamps, the kubelet begins each line with one (RFC 3339 with nine digits, a space). containerd keeps long lines in pieces of 16 KiB; the answer joins
them, and only the first has a stamp (seen on containerd 1.6 with a line of 4 MiB). What begins without a stamp is no line but a text of the kubelet's, such as
``unable to retrieve container logs for containerd://...``, which comes with status 200.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias

# --------------------------------------------------------------------------------------------------
# Where one stands in the log of a container in a pod: a value that outlives connections, processes and the API server.
#
# The API server gives a log from a whole second on (`sinceTime` has no fractions), so a cursor counts the lines since the beginning of a second; a log from that
# second on must begin with the same line and hold the last line at that place. Where it does not, the kubelet has rotated the file, and the last line is searched.

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place in a log file from which lines are counted.

    Attributes:
        second: The log is asked for from here on (Unix seconds).
        stamp: Of the first line in it (Unix nanoseconds).
        count: Lines from that one to the last, both included.
    """

    second: int
    stamp: int
    count: int


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last line that was handed out, whole or in part.

    Attributes:
        stamp: Its time stamp (Unix nanoseconds).
        same: Lines with this stamp so far.
        taken: Bytes of it that were handed out.
        digest: CRC-32 of those bytes.
        ended: Whether its newline was seen.
    """

    stamp: int
    same: int
    taken: int
    digest: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where one stands in a pod's log; `Cursor()` is before the first line of the oldest container that can still be read.

    Attributes:
        uid: Of the pod; a pod of the same name with another uid is another pod. "" as long as none was seen.
        restart: Number of the container's restarts before the one that is read.
        container_id: Of the container that is read; "" as long as it has not started.
        finished: Whether this container's log was read to its end.
        anchor: From where lines are counted; None before the first line, or when the node's clock was set back.
        last: The last line, or None before the first.
        over: Whether nothing more can come.
    """

    uid: str = ""
    restart: int = 0
    container_id: str = ""
    finished: bool = False
    anchor: Anchor | None = None
    last: LastLine | None = None
    over: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        anchor, last = self.anchor, self.last
        return {
            "uid": self.uid,
            "restart": self.restart,
            "container_id": self.container_id,
            "finished": self.finished,
            "anchor": [anchor.second, anchor.stamp, anchor.count] if anchor else None,
            "last": [last.stamp, last.same, last.taken, last.digest, last.ended] if last else None,
            "over": self.over,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Cursor:
        """What `to_dict` gave. Raises KeyError, TypeError or ValueError for anything else."""
        anchor, last = data["anchor"], data["last"]
        return Cursor(
            uid=str(data["uid"]),
            restart=int(data["restart"]),
            container_id=str(data["container_id"]),
            finished=bool(data["finished"]),
            anchor=Anchor(*(int(one) for one in anchor)) if anchor is not None else None,
            last=_last_line(*last) if last is not None else None,
            over=bool(data["over"]),
        )


def _last_line(stamp: Any, same: Any, taken: Any, digest: Any, ended: Any) -> LastLine:
    return LastLine(int(stamp), int(same), int(taken), int(digest), bool(ended))


class Count:
    """Counts the lines of a log as they are read, and so makes the cursor of the place that was reached.

    Two anchors are kept, so that the one in use always lies a second or more behind: stdout's and stderr's lines may have been written in another order than
    they were stamped.
    """

    def __init__(self, since: int | None = None) -> None:
        """Begin at the first line that is read: of the file, or of what was written since then (Unix seconds)."""
        self._since = since
        self._orderly = True
        self._old = [0, 0, 0]
        self._new = [0, 0, 0]
        self._stamp = 0
        self._same = 0
        self._taken = 0
        self._digest = 0
        self._ended = True

    def take(self, stamp: int, data: bytes, *, starts: bool, ends: bool) -> None:
        """A line, or a part of one."""
        if starts:
            self._line(stamp)
            self._taken = len(data)
            self._digest = zlib.crc32(data)
        else:
            self._taken += len(data)
            self._digest = zlib.crc32(data, self._digest)
        self._ended = ends

    @property
    def anchor(self) -> Anchor | None:
        """From where a log is best asked for to go on here."""
        return Anchor(*self._old) if self._orderly and self._old[2] else None

    @property
    def last(self) -> LastLine | None:
        """The last line."""
        if not self._same:
            return None
        return LastLine(self._stamp, self._same, self._taken, self._digest, self._ended)

    def _line(self, stamp: int) -> None:
        self._same = self._same + 1 if stamp == self._stamp else 1
        self._stamp = stamp
        second = stamp // SECOND
        old, new = self._old, self._new
        if not old[2]:
            since = second if self._since is None else self._since
            self._old = [since, stamp, 1]
            self._new = [second, stamp, 1]
        elif second < old[0]:  # the node's clock was set back
            self._orderly = False
        elif second > new[0]:
            self._old = new
            self._new = [second, stamp, 1]
            new[2] += 1
        else:
            old[2] += 1
            if second == new[0]:
                new[2] += 1


# --------------------------------------------------------------------------------------------------
# What comes out of a pod's log: pieces of lines, and what happened to their container.


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, or a piece of a long one. The bytes are `data`, and a newline after it where `ends` is true.

    They are the container's own, but for a carriage return just before a newline, which containerd drops.

    Lines come whole, but for those of more than 64 KiB, those cut by the end of a connection (what is left of one comes later), and a last line without newline.

    Attributes:
        stamp: When the line began (Unix nanoseconds, by the node's clock).
        data: Its bytes, without the newline.
        starts: Whether a line begins here.
        ends: Whether it ends here, with a newline; the last line of a container may have none.
    """

    stamp: int
    data: bytes
    starts: bool = True
    ends: bool = True


@dataclass(frozen=True, slots=True)
class Started:
    """A container's log begins here.

    Attributes:
        restart: Number of restarts before it.
        container_id: Which container.
        at: When it began (Unix seconds), as far as known.
    """

    restart: int
    container_id: str
    at: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A container has ended, and its log was read to its end.

    Attributes:
        restart: Number of restarts before it.
        container_id: Which container.
        exit_code: Its exit code, None when nobody knows.
        reason: The kubelet's word, such as ``Error`` or ``OOMKilled``.
        at: When it ended (Unix seconds), as far as known.
    """

    restart: int
    container_id: str
    exit_code: int | None
    reason: str | None
    at: float | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines are, or may be, missing here: the cluster has them no more.

    Attributes:
        reason: ``rotated``: the kubelet began a new file while nobody read. ``restarted``: more than one container ended while nobody read.
            ``deleted``: the pod, or what was left of an ended container, was removed while nobody read.
    """

    reason: Literal["rotated", "restarted", "deleted"]


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing more can come.

    Attributes:
        reason: ``ended``: the container has ended for good. ``deleted``: there is no such pod any more. ``replaced``: a pod of the same name has taken its place.
    """

    reason: Literal["ended", "deleted", "replaced"]


Item: TypeAlias = Entry | Started | Ended | Gap | Over


@dataclass(frozen=True, slots=True)
class Portion:
    """Some items in their order (there may be none), and where one stands after the last of them."""

    items: tuple[Item, ...]
    cursor: Cursor


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
