"""Where one stands in the log of a container in a pod: a value that outlives connections, processes and the API server.

The API server gives a log from a whole second on (`sinceTime` has no fractions), so a cursor counts the lines since the beginning of a second; a log from that
second on must begin with the same line and hold the last line at that place. Where it does not, the kubelet has rotated the file, and the last line is searched.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
