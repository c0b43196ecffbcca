"""The log of one container of a pod, each line exactly once, over cut connections and restarts of everything.

    log = PodLog(client, namespace, pod, "pytorch")
    async with aclosing(log.follow(cursor)) as portions:    # a Cursor kept from earlier, or none: from the oldest line there is
        async for portion in portions:
            for item in portion.items:                      # Entry | Started | Ended | Gap | Over
                ...
            keep(portion.cursor.to_dict())                  # JSON; after a crash: Cursor.from_dict(...)

What is written with `portion.items` and kept as `portion.cursor` together makes each line come exactly once over crashes of the reader too.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    nearest_hint,
)
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient
from hyperpod_jlab.engines.kubernetes.api.errors import CUT

# --------------------------------------------------------------------------------------------------
# What of a pod's state matters for its log: which container runs, which ran before, and whether another will.

_FINAL = {"Succeeded", "Failed"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended.

    Attributes:
        container_id: Which container.
        code: Its exit code, None when nobody knows.
        reason: The kubelet's word, such as ``Error`` or ``OOMKilled``.
        at: When (Unix seconds), as far as known.
        message: The runtime's sentence to it.
    """

    container_id: str
    code: int | None
    reason: str | None
    at: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, by name; each restart of it is another container, with its own id and its own log.

    Attributes:
        name: Its name.
        restart: Number of restarts before the newest one that has begun.
        container_id: The newest one that has begun; "" when none has.
        running: Whether that one runs.
        started_at: When it began (Unix seconds), as far as known.
        exit: How that one ended; None while it runs.
        previous: How the one before ended, as long as the kubelet keeps it.
        waiting: The kubelet's word for why none runs, such as ``ImagePullBackOff``.
        message: The kubelet's sentence to it.
    """

    name: str
    restart: int = 0
    container_id: str = ""
    running: bool = False
    started_at: float | None = None
    exit: Exit | None = None
    previous: Exit | None = None
    waiting: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class PodState:
    """A pod.

    Attributes:
        name: Its name.
        uid: Its uid: a pod of the same name with another uid is another pod.
        version: Its resource version.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        node: The node it is bound to, or None.
        deleting: Whether it is being deleted.
        restart_policy: ``Always``, ``OnFailure`` or ``Never``.
        containers: Its containers by name, those that run first (init) too, as far as the kubelet has spoken of them.
        names: The names of all its containers.
    """

    name: str
    uid: str
    version: str
    phase: str
    node: str | None
    deleting: bool
    restart_policy: str
    containers: Mapping[str, ContainerState]
    names: tuple[str, ...] = ()

    def container(self, name: str) -> ContainerState:
        """A container by its name; one of which the kubelet has not spoken yet has not begun."""
        return self.containers.get(name) or ContainerState(name)

    def starts_again(self, name: str) -> bool:
        """Whether another container of that name may follow the newest one; for one that runs: when it ends."""
        if self.phase in _FINAL or self.deleting:
            return False
        exit_ = self.container(name).exit
        if exit_ is None or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and exit_.code != 0


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """A pod object's state; as `reduce` of a `Watch` of pods it makes its rows."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    said = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
        *(status.get("ephemeralContainerStatuses") or []),
    ]
    return PodState(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        phase=str(status.get("phase") or "Pending"),
        node=spec.get("nodeName") or None,
        deleting=bool(metadata.get("deletionTimestamp")),
        restart_policy=str(spec.get("restartPolicy") or "Always"),
        containers={str(one["name"]): _container(one) for one in said},
        names=tuple(str(one["name"]) for key in _CONTAINERS for one in spec.get(key) or []),
    )


def _container(said: Mapping[str, Any]) -> ContainerState:
    state, last = said.get("state") or {}, said.get("lastState") or {}
    restart = int(said.get("restartCount") or 0)
    name = str(said["name"])
    waiting = state.get("waiting")
    previous = _exit(last.get("terminated"))
    if waiting is None:
        running = state.get("running")
        ended = _exit(state.get("terminated"))
        return ContainerState(
            name=name,
            restart=restart,
            container_id=(ended.container_id if ended else "") or str(said.get("containerID", "")),
            running=running is not None,
            started_at=when((running or state.get("terminated") or {}).get("startedAt")),
            exit=ended,
            previous=previous,
        )
    # Between two containers the newest that has begun is the one that ended last.
    return ContainerState(
        name=name,
        restart=restart,
        container_id=previous.container_id if previous else "",
        started_at=when((last.get("terminated") or {}).get("startedAt")),
        exit=previous,
        waiting=str(waiting.get("reason") or "") or None,
        message=str(waiting.get("message") or "")[:600] or None,
    )


def _exit(said: Mapping[str, Any] | None) -> Exit | None:
    if said is None:
        return None
    code = said.get("exitCode")
    return Exit(
        container_id=str(said.get("containerID", "")),
        code=int(code) if code is not None else None,
        reason=str(said.get("reason") or "") or None,
        at=when(said.get("finishedAt")),
        message=str(said.get("message") or "")[:600] or None,
    )


def when(text: Any) -> float | None:
    """A time as the API server writes it, in Unix seconds; None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


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


# --------------------------------------------------------------------------------------------------
# What to do next for a pod's log, from the pod's state and where one stands. Pure.


@dataclass(frozen=True, slots=True)
class Say:
    """Hand out this; then look again at what is next, for which the state need not be asked anew."""

    portion: Portion


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be read until the pod's state changes."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the log of the cursor's container.

    Attributes:
        previous: Whether it is the one before the newest.
        live: Whether it runs.
    """

    previous: bool
    live: bool


Step: TypeAlias = Say | Wait | Read


def next_step(state: PodState | None, name: str, cursor: Cursor, *, doubt: bool) -> Step:
    """What to do next.

    Args:
        state: The pod, or None when there is none of that name.
        name: The container's name.
        cursor: Where one stands.
        doubt: Whether the last answer was cut, so that more may have been written than was read.
    """
    if state is None or (cursor.uid and state.uid != cursor.uid):
        return _gone(cursor, doubt=doubt, replaced=state is not None)
    one = state.container(name)
    if not cursor.container_id or (cursor.finished and cursor.container_id != one.container_id):
        return _begin(state, one, cursor)
    if cursor.finished:
        return Wait() if state.starts_again(name) else _over(cursor)
    if cursor.container_id == one.container_id:
        return Read(previous=False, live=one.running)
    if (before := _before(one)) is not None and cursor.container_id == before.container_id:
        return Read(previous=True, live=False)
    return Say(finished(cursor, one.exit if not one.container_id else None, Gap("restarted")))


def finished(cursor: Cursor, exit_: Exit | None, *first: Item) -> Portion:
    """The cursor's container has ended, and was read to its end."""
    ended = Ended(
        restart=cursor.restart,
        container_id=cursor.container_id,
        exit_code=exit_.code if exit_ else None,
        reason=exit_.reason if exit_ else None,
        at=exit_.at if exit_ else None,
    )
    return Portion((*first, ended), replace(cursor, finished=True))


def exit_of(state: PodState | None, name: str, container_id: str) -> Exit | None:
    """How a container ended, as far as the pod still says it."""
    one = state.container(name) if state is not None else ContainerState(name)
    return next(
        (
            known
            for known in (one.exit, one.previous)
            if known and known.container_id == container_id
        ),
        None,
    )


def _gone(cursor: Cursor, *, doubt: bool, replaced: bool) -> Step:
    items: list[Item] = []
    if cursor.container_id and not cursor.finished:
        gap = (Gap("deleted"),) if doubt else ()
        items += finished(cursor, None, *gap).items
    items.append(Over("replaced" if replaced else "deleted"))
    return Say(Portion(tuple(items), replace(cursor, finished=True, over=True)))


def _over(cursor: Cursor) -> Step:
    return Say(Portion((Over("ended"),), replace(cursor, over=True)))


def _before(one: ContainerState) -> Exit | None:
    """The container before the newest, as long as the kubelet keeps it."""
    before = one.previous
    if before is None or not before.container_id or before.container_id == one.container_id:
        return None
    return before


def _begin(state: PodState, one: ContainerState, cursor: Cursor) -> Step:
    """The oldest container after the cursor's that can still be read."""
    before = _before(one)
    next_restart = cursor.restart + 1 if cursor.container_id else 0
    if before is not None and before.container_id != cursor.container_id:
        return _started(state, before.container_id, one.restart - 1, None, next_restart)
    if one.container_id:
        return _started(state, one.container_id, one.restart, one.started_at, next_restart)
    if state.starts_again(one.name):
        return Wait()
    return _over(replace(cursor, uid=state.uid))


def _started(
    state: PodState,
    container_id: str,
    restart: int,
    at: float | None,
    expected: int,
) -> Step:
    gap = (Gap("restarted"),) if restart > expected else ()
    return Say(
        Portion(
            (*gap, Started(restart, container_id, at)),
            Cursor(uid=state.uid, restart=restart, container_id=container_id),
        )
    )


# --------------------------------------------------------------------------------------------------
# The bytes of a log answer as pieces of lines, and which of them one has already had.
#
# Asked for time stamps, the kubelet begins each line with one (RFC 3339 with nine digits, a space). containerd keeps long lines in pieces of 16 KiB; the answer joins
# them, and only the first has a stamp (seen on containerd 1.6 with a line of 4 MiB). What begins without a stamp is no line but a text of the kubelet's, such as
# ``unable to retrieve container logs for containerd://...``, which comes with status 200.

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


# --------------------------------------------------------------------------------------------------
# One answer of a pod's log, from a cursor on.

LOG_GONE = "log_gone"
"""Code of an `UnreachableError`: the node's container runtime does not give the log, now or ever again."""
_FIRST_LINE = 120
"""Bytes in which a line's stamp lies."""


class LogAnswer:
    """Asks once for a log and gives what is new in the answer.

    Attributes:
        cursor: Where one stands after what was given.
        new: Whether anything was given.
        reached: Whether the answer came to where the cursor stood.
        moved: Whether the pod had another container by then, so that nothing was read.
        found: When the last line was searched: whether it was there; None when the answer was too short to tell.
    """

    def __init__(
        self, client: KubeClient, path: str, container: str, cursor: Cursor, *, search: bool = False
    ) -> None:
        self.cursor = cursor
        self.new = self.reached = self.moved = False
        self.found: bool | None = None
        self._client, self._path, self._container = client, path, container
        self._search = search and cursor.last is not None

    async def portions(
        self, *, previous: bool, live: bool, right: Callable[[], Awaitable[bool]]
    ) -> AsyncGenerator[Portion, None]:
        """What is new.

        Args:
            previous: Read the container before the newest.
            live: Go on until the container or the connection ends.
            right: Says, after the answer has begun, whether it is of the cursor's container.

        Raises:
            RotatedError: The log does not begin as it did.
            UnreachableError: As of the client; with the code ``log_gone`` when a text of the kubelet's came instead of lines.
        """
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"previous": "true"} if previous else {}
        query |= {"follow": "true"} if live else {}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        count, lines = Count(since), Lines()
        gate = Search(self.cursor, count) if self._search else Resume(self.cursor, count)
        async with self._client.stream(self._path, **query) as stream:
            if not await right():
                self.moved = True
                return
            async with aclosing(stream.chunks()) as chunks:
                async for chunk in chunks:
                    if (portion := self._portion(gate, count, lines.feed(chunk))) is not None:
                        yield portion
        entries = lines.close()
        if (portion := self._portion(gate, count, entries, end=True)) is not None:
            yield portion
        if lines.foreign:
            raise _no_log()

    async def first_stamp(self) -> int | None:
        """The stamp of the first line (Unix nanoseconds) since the cursor's anchor, of whatever container is the newest."""
        since = self._since()
        query = {"container": self._container, "timestamps": "true"}
        query |= {"sinceTime": since_time(since)} if since is not None else {}
        lines = Lines()
        async with self._client.stream(self._path, limitBytes=str(_FIRST_LINE), **query) as stream:
            found = [entry async for chunk in stream.chunks() for entry in lines.feed(chunk)]
        found += lines.close()
        if lines.foreign and not found:
            raise _no_log()
        return found[0].stamp if found else None

    def _since(self) -> int | None:
        if self.cursor.last is None:
            return None
        if self.cursor.anchor is not None:
            return self.cursor.anchor.second
        return self.cursor.last.stamp // SECOND - 2

    def _portion(
        self, gate: Search | Resume, count: Count, entries: list[Entry], *, end: bool = False
    ) -> Portion | None:
        found: list[Item] = [*gate.take(entries)]
        if isinstance(gate, Search):
            undecided = self.found is None
            if end:
                found += gate.close()
            self.found = gate.found
            self.reached = gate.found is not None
            if undecided and self.found is False and found:
                found.insert(0, Gap("rotated"))
        else:
            self.reached = gate.reached
        if not found:
            return None
        self.new = True
        self.cursor = replace(self.cursor, anchor=count.anchor, last=count.last)
        return Portion(tuple(found), self.cursor)


def _no_log() -> UnreachableError:
    return UnreachableError(
        "the node does not give the log",
        code=LOG_GONE,
        hint="its container runtime does not answer, or has removed the container",
    )


def since_time(second: int) -> str:
    """A whole second as the API server takes it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


__all__ = [
    "Cursor",
    "Ended",
    "Entry",
    "Gap",
    "Item",
    "Over",
    "PodLog",
    "PodNews",
    "Portion",
    "Started",
]


_LONG = 10.0
"""Seconds that a stream must have lasted for the next try to come soon."""
_AGAIN = 0.5
_RESTARTING = (0.5, 1.0, 1.5)
"""Seconds between looks in which a restart that the kubelet knows of should have come to the API server."""
_UNKNOWN = 30.0
"""Seconds for which a 401 is not believed."""
_GONE = 60.0
"""Seconds for which a runtime may be silent about an ended container, before its log is taken to be removed."""
_FRESH = 2.0
"""Seconds for which a pod's state is believed when its log is opened. A container that ended in them is found out when its log is read to the end (`_swapped`)."""
_WAITING = 0.1
_NEWS = 10.0
"""Seconds after which a pod is looked at although nothing was heard of it."""


_MENDED = (UnreachableError, NotFoundError, InvalidInputError)
"""Errors that another try may mend: a pod's state is older than what its kubelet does."""


class PodNews(Protocol):
    """Who knows when a pod's state changes, so that a follower need not ask: a `Watch` of pods with `pod_state` rows."""

    @property
    def version(self) -> int:
        """Grows with each change."""
        ...

    async def changed(self, since: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since`, or for the time (seconds); returns `version`."""
        ...


class PodLog:
    """Follows one container (all its restarts) of one pod."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        pod: str,
        container: str,
        *,
        news: PodNews | None = None,
    ) -> None:
        """Follow a container.

        Args:
            client: Of the cluster.
            namespace: Of the pod.
            pod: Its name.
            container: The container's name.
            news: Tells when the pod may have changed.
        """
        self.trouble: HyperpodError | None = None
        """Why nothing can be read at the moment (a node that does not answer); None when all is well, also while a container waits to start: see `state`."""
        self.state: PodState | None = None
        """The pod as it was last seen."""
        self._client, self._news = client, news
        self._pod, self._container = pod, container
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._at = Cursor()
        self._backoff = Backoff(0.1, 5.0)
        self._doubt = False
        self._lost = False
        self._short = 0
        self._looked = 0.0
        self._since: dict[str, float] = {}

    async def follow(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What the container writes, from a cursor on, until nothing more can come (`Over` is the last item then).

        Waits for a container that has yet to start. While the cluster or the node does not answer it tries again, for ever, and `trouble` says so.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=True)) as portions:
            async for portion in portions:
                yield portion

    async def read(self, cursor: Cursor | None = None) -> AsyncGenerator[Portion, None]:
        """What is there now, from a cursor on; does not wait for more. `Over` comes where `follow` would give it.

        Raises:
            NotFoundError: There is no such pod, and the cursor knows of none.
            InvalidInputError: The pod has no such container.
            DeniedError: The user may not read this pod or its log.
            UnreachableError: The cluster or the node does not answer.
        """
        async with aclosing(self._run(cursor or Cursor(), follow=False)) as portions:
            async for portion in portions:
                yield portion

    # ------------------------------------------------------------------------------------------ step by step

    async def _run(self, cursor: Cursor, *, follow: bool) -> AsyncGenerator[Portion, None]:
        self._at, self._doubt = cursor, True
        if cursor.over:
            return
        if self.state is None:
            await self._look(patient=follow)
        if self.state is None and not cursor.uid:
            raise NotFoundError(f"there is no pod {self._pod}", code="no_pod")
        if self.state is not None and self._container not in self.state.names:
            raise InvalidInputError(
                f"the pod {self._pod} has no container {self._container}",
                code="no_container",
                hint=nearest_hint(self._container, self.state.names),
            )
        while not self._at.over:
            step = next_step(self.state, self._container, self._at, doubt=self._doubt)
            if isinstance(step, Say):
                self._at = step.portion.cursor
                # Of a container that was just found nothing was read yet.
                self._doubt, self._lost, self._short = True, False, 0
                yield step.portion
            elif isinstance(step, Read):
                async with aclosing(self._reading(step, follow=follow)) as portions:
                    async for portion in portions:
                        self._at = portion.cursor
                        yield portion
                if step.live and not follow:
                    return
            elif follow:
                await self._wait()
            else:
                return

    async def _reading(self, step: Read, *, follow: bool) -> AsyncGenerator[Portion, None]:
        """Asks for the log once, and sees what became of it."""
        began, lost = time.monotonic(), self._lost
        answer = self._answer(search=lost or self._at.anchor is None)
        try:
            if lost and (aside := await self._other_log(step)) is not None:
                self._lost = False
                yield aside
                return
            live = follow and step.live and not lost
            async with aclosing(self._portions(answer, step, live=live)) as portions:
                async for portion in portions:
                    self._well()
                    yield portion
        except RotatedError:
            self._lost = True
            return
        except HyperpodError as error:
            if (given_up := await self._give_up(error, step, follow=follow)) is not None:
                yield given_up
                return
            # What ended while it was read to a clean end has said all, even if it cannot be asked again.
            self._doubt = self._doubt or step.live or error.code == CUT
        else:
            self._well()
            self._lost = False
            if (end := await self._ended(answer, step, searched=lost)) is not None:
                yield end
            if answer.moved or not step.live:
                return
        if not follow:
            return
        if answer.new or time.monotonic() - began > _LONG:
            self._backoff.reset()
        await asyncio.sleep(self._backoff.pause())
        await self._look(patient=True)

    async def _ended(self, answer: LogAnswer, step: Read, *, searched: bool) -> Portion | None:
        """An answer has ended cleanly: that was all of a container that runs no more, if nothing new came."""
        if answer.moved:
            return None
        if not searched:
            self._doubt = not answer.reached
        if step.live:
            return None
        if answer.new:
            self._short = 0
        elif searched:
            return self._finished(*((Gap("rotated"),) if self._doubt else ()))
        elif answer.reached:
            return self._finished()
        elif self._short:
            self._lost = True
        else:
            self._short += 1  # the kubelet may have died over it, whose answers end cleanly then
            await asyncio.sleep(_AGAIN)
        return None

    async def _other_log(self, step: Read) -> Portion | None:
        """The log is not the one that was read: has the kubelet begun a new file (None), or is it another container's?"""
        if step.live:
            for pause in _RESTARTING:
                await asyncio.sleep(pause)
                await self._look(patient=True)
                if not self._is_newest():
                    return Portion((), self._at)
        return await self._swapped() if step.previous else None

    async def _swapped(self) -> Portion | None:
        """What was read as the previous container's may have been the newest one's already: the kubelet knows of a restart before the API server does.

        Then the previous one's log comes now, late but whole, and the newest one's goes on.
        """
        at, state = self._at, self.state
        if at.last is None or at.anchor is None or state is None:
            return None
        newest = state.container(self._container)
        if await self._answer().first_stamp() != at.anchor.stamp:
            return None
        bare = Cursor(uid=at.uid, restart=at.restart, container_id=at.container_id)
        answer = LogAnswer(self._client, f"{self._path}/log", self._container, bare)
        items: list[Item] = []
        step = Read(previous=True, live=False)
        async with aclosing(self._portions(answer, step, live=False)) as portions:
            async for portion in portions:
                items += portion.items
        if answer.moved:
            return None
        ended = finished(bare, exit_of(state, self._container, at.container_id), *items)
        started = Started(newest.restart, newest.container_id, newest.started_at)
        cursor = replace(at, container_id=newest.container_id, restart=newest.restart)
        return Portion((*ended.items, started), cursor)

    # ------------------------------------------------------------------------------------------ parts

    def _answer(self, *, search: bool = False) -> LogAnswer:
        return LogAnswer(
            self._client, f"{self._path}/log", self._container, self._at, search=search
        )

    def _portions(
        self, answer: LogAnswer, step: Read, *, live: bool
    ) -> AsyncGenerator[Portion, None]:
        wanted = self._at.container_id

        async def right() -> bool:
            if time.monotonic() - self._looked > _FRESH:
                await self._look(patient=False)
            state = self.state
            if state is None or state.uid != self._at.uid:
                return False
            one = state.container(self._container)
            before = one.previous.container_id if one.previous else ""
            return wanted == (before if step.previous else one.container_id)

        return answer.portions(previous=step.previous, live=live, right=right)

    def _finished(self, *first: Item) -> Portion:
        exit_ = exit_of(self.state, self._container, self._at.container_id)
        self._at = replace(self._at, finished=True)
        return finished(self._at, exit_, *first)

    def _is_newest(self) -> bool:
        state, at = self.state, self._at
        return (
            state is not None
            and state.uid == at.uid
            and state.container(self._container).container_id == at.container_id
            and state.container(self._container).running
        )

    def _well(self) -> None:
        self.trouble = None
        self._since.clear()

    async def _give_up(self, error: HyperpodError, step: Read, *, follow: bool) -> Portion | None:
        """What to say instead of trying for ever; None: try again. Raises what no further try can mend."""
        if step.previous and await self._removed(error):
            return self._finished(Gap("deleted"))
        if not follow:
            raise error
        self.trouble = error
        first = self._since.setdefault(error.code, time.monotonic())
        if isinstance(error, DeniedError):
            # A cluster that is being started, or a token just being renewed, may refuse for a moment.
            if error.code != "unauthorized" or time.monotonic() - first > _UNKNOWN:
                raise error
        elif error.code == LOG_GONE:
            if not step.live and time.monotonic() - first > _GONE:
                return self._finished(Gap("deleted"))
        elif not isinstance(error, _MENDED):
            raise error
        return None

    async def _removed(self, error: HyperpodError) -> bool:
        """Whether the log of the previous container has been removed: nothing is wrong with the newest one's."""
        if "previous terminated container" in error.message:
            return True
        if error.code != LOG_GONE:
            return False
        try:
            await self._answer().first_stamp()
        except HyperpodError:
            return False
        return True

    async def _look(self, *, patient: bool) -> None:
        """Ask for the pod's state."""
        backoff = Backoff(0.2, 5.0)
        while True:
            try:
                self._looked = time.monotonic()
                self.state = pod_state(await self._client.get(self._path))
            except NotFoundError as error:
                if error.code != NotFoundError.default_code:
                    raise
                self.state = None
            except UnreachableError as error:
                if not patient:
                    raise
                self.trouble = error
                await asyncio.sleep(backoff.pause())
                continue
            return

    async def _wait(self) -> None:
        """Wait for a change of the pod's state."""
        before = self.state
        pause = Backoff(_WAITING, 2.0)
        while self.state == before:
            if self._news is not None:
                version = self._news.version
                await self._look(patient=True)
                if self.state == before:
                    await self._news.changed(version, _NEWS)
            else:
                await asyncio.sleep(pause.pause())
                await self._look(patient=True)
        self._well()
