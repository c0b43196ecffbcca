"""The log of one container of a pod, each line exactly once, over cut connections and restarts.

    log = PodLog(client, namespace, pod, "pytorch")
    async with aclosing(log.follow(cursor)) as portions:    # a saved cursor, or an empty one for
    the oldest line
        async for portion in portions:
            for item in portion.items:                      # PodLogLine | ContainerStarted |
            ContainerEnded | PodLogGap | LogEnded
                ...
            keep(portion.cursor)

Write `portion.items` and `portion.cursor` together; then each line arrives exactly once even if the
reader crashes.

How it resumes (as stern does): the API server returns a log from a whole second on (`sinceTime` has
no fractions). The reader requests it from shortly before its last line and drops all lines up to
that line. If the kubelet has rotated the file meanwhile, that line is missing: all lines are new,
and a `PodLogGap` reports that some may be lost.
"""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias

from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
    nearest_hint,
)
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient
from hyperpod_jlab.engines.kubernetes.api.errors import STREAM_CUT

# --------------------------------------------------------------------------------------------------
# The part of a pod's state that matters for its log: which container runs, which ran before, and
# whether another will follow.

_FINAL = {"Succeeded", "Failed"}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended: `ended_at` is in Unix seconds, `reason` is the kubelet's, such as ``Error`` or ``OOMKilled``."""

    container_id: str
    code: int | None
    reason: str | None
    ended_at: float | None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ContainerState:
    """A container of a pod, by name. Each restart is another container with its own id and log.

    Attributes:
        restart: Number of restarts before the newest started one.
        container_id: The newest started one; "" when none has started.
        started_at: When that one started (Unix seconds).
        exit: How that one ended; None while it runs.
        previous: How the one before ended, while the kubelet keeps it.
        waiting: The kubelet's reason why none runs, such as ``ImagePullBackOff``; `message` is its
            text.
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
        uid: A pod of the same name with another uid is another pod.
        phase: ``Pending``, ``Running``, ``Succeeded``, ``Failed`` or ``Unknown``.
        restart_policy: ``Always``, ``OnFailure`` or ``Never``.
        containers: Those that the kubelet has reported, by name, including init containers.
        names: The names of all containers.
    """

    name: str
    uid: str
    phase: str
    node: str | None
    deleting: bool
    restart_policy: str
    containers: Mapping[str, ContainerState]
    names: tuple[str, ...] = ()

    def container(self, name: str) -> ContainerState:
        """A container by name; one that the kubelet has not reported yet has not started."""
        return self.containers.get(name) or ContainerState(name)

    def is_restartable(self, name: str) -> bool:
        """Whether the container may restart, now or after it ends."""
        if self.phase in _FINAL or self.deleting:
            return False
        exit_ = self.container(name).exit
        if exit_ is None or self.restart_policy == "Always":
            return True
        return self.restart_policy == "OnFailure" and exit_.code != 0


def pod_state(pod: Mapping[str, Any]) -> PodState:
    """Reduce a pod object to its state; usable as `reduce` of an `Informer` of pods."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    entries = [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
        *(status.get("ephemeralContainerStatuses") or []),
    ]
    return PodState(
        name=str(metadata["name"]),
        uid=str(metadata.get("uid", "")),
        phase=str(status.get("phase") or "Pending"),
        node=spec.get("nodeName") or None,
        deleting=bool(metadata.get("deletionTimestamp")),
        restart_policy=str(spec.get("restartPolicy") or "Always"),
        containers={str(container["name"]): _container(container) for container in entries},
        names=tuple(
            str(container["name"]) for key in _CONTAINERS for container in spec.get(key) or []
        ),
    )


def _container(status: Mapping[str, Any]) -> ContainerState:
    state, last = status.get("state") or {}, status.get("lastState") or {}
    restart = int(status.get("restartCount") or 0)
    name = str(status["name"])
    waiting = state.get("waiting")
    previous = _exit(last.get("terminated"))
    if waiting is None:
        running = state.get("running")
        exit_state = _exit(state.get("terminated"))
        return ContainerState(
            name=name,
            restart=restart,
            container_id=(exit_state.container_id if exit_state else "")
            or str(status.get("containerID", "")),
            running=running is not None,
            started_at=parse_timestamp((running or state.get("terminated") or {}).get("startedAt")),
            exit=exit_state,
            previous=previous,
        )
    # Between two containers, the newest started one is the one that ended last.
    return ContainerState(
        name=name,
        restart=restart,
        container_id=previous.container_id if previous else "",
        started_at=parse_timestamp((last.get("terminated") or {}).get("startedAt")),
        exit=previous,
        waiting=str(waiting.get("reason") or "") or None,
        message=str(waiting.get("message") or "")[:600] or None,
    )


def _exit(terminated: Mapping[str, Any] | None) -> Exit | None:
    if terminated is None:
        return None
    code = terminated.get("exitCode")
    return Exit(
        container_id=str(terminated.get("containerID", "")),
        code=int(code) if code is not None else None,
        reason=str(terminated.get("reason") or "") or None,
        ended_at=parse_timestamp(terminated.get("finishedAt")),
        message=str(terminated.get("message") or "")[:600] or None,
    )


def parse_timestamp(text: Any) -> float | None:
    """Parse a time of the API server to Unix seconds; None for anything else."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None


# ------------------------------------------------------------------------------------------ what
# comes out
# output items


@dataclass(frozen=True, slots=True)
class LastLine:
    """The last returned line, whole or in part.

    Attributes:
        stamp: Its time stamp (Unix nanoseconds).
        same: How many consecutive lines have this stamp, including this one.
        taken: Returned bytes of it.
        digest: CRC-32 of those bytes.
        ended: Whether its newline was returned.
        newest: The newest stamp so far: lines of stdout and stderr may be out of order.
    """

    stamp: int
    same: int
    taken: int
    digest: int
    ended: bool
    newest: int


@dataclass(frozen=True, slots=True)
class PodLogCursor:
    """A position in a pod's log; `PodLogCursor()` is before the first line of the oldest readable container.

    Attributes:
        uid: The pod's uid; a pod of the same name with another uid is another pod. "" before a pod
            was seen.
        restart: Number of restarts before the container that is read.
        container_id: The id of the container that is read; "" before it has started.
        finished: Whether this container's log was read to its end.
        last: The last line, or None before the first.
        over: Whether the log is complete.
    """

    uid: str = ""
    restart: int = 0
    container_id: str = ""
    finished: bool = False
    last: LastLine | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class PodLogLine:
    """A line, or a piece of a long one: the container's own bytes, except a carriage return before a newline, which containerd drops.

    Lines are whole except those over 64 KiB, those cut by the end of a connection (the rest follows
    later), and a last line without newline.

    Attributes:
        stamp: When the line started (Unix nanoseconds, node's clock).
        data: Its bytes, without the newline.
        starts: Whether a line starts here.
        ends: Whether it ends here, with a newline.
    """

    stamp: int
    data: bytes
    starts: bool = True
    ends: bool = True


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    """A container's log starts here; `restart` counts its restarts before it."""

    restart: int


@dataclass(frozen=True, slots=True)
class ContainerEnded:
    """A container has ended and its log was read completely; `exit_code` is None when unknown."""

    restart: int
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class PodLogGap:
    """Lines are, or may be, missing here because the cluster no longer has them.

    Attributes:
        reason: ``rotated``: the kubelet started a new file. ``restarted``: more than one container
            ended. ``deleted``: the pod or an ended container was deleted. All of them happened
            before the lines were read.
    """

    reason: Literal["rotated", "restarted", "deleted"]


@dataclass(frozen=True, slots=True)
class LogEnded:
    """The log is complete: the container has ended for good, its pod was deleted, or another pod has its name."""

    reason: Literal["ended", "deleted", "replaced"]


Item: TypeAlias = PodLogLine | ContainerStarted | ContainerEnded | PodLogGap | LogEnded


@dataclass(frozen=True, slots=True)
class Portion:
    """Some items in order, and the position after the last of them."""

    items: tuple[Item, ...]
    cursor: PodLogCursor


# ------------------------------------------------------------------------------------------ lines
# and resuming
# lines and resuming

_SECOND = 1_000_000_000
_TRUNCATED_LINE = 65536
"""Bytes up to which a line is buffered until it is complete."""
_OVERLAP_S = 2
"""Seconds by which a line's timestamp may be older than that of the line before."""
_TIMESTAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")


class Lines:
    """Splits a log response into lines.

    The kubelet starts each line with a timestamp (RFC 3339) and a space. Runtimes store long lines
    in pieces; the response joins them. Text without a timestamp is a message of the kubelet, such
    as ``unable to retrieve container logs for containerd://...``, which has status 200.
    """

    def __init__(self) -> None:
        self.foreign = False
        """Whether a kubelet message came instead of a line."""
        self._buffered = b""
        self._timestamp_ns: int | None = None
        self._second = (b"", 0)

    def feed(self, chunk: bytes) -> list[PodLogLine]:
        """The lines completed by this chunk, and the start of a long one."""
        *complete_lines, remainder = (self._buffered + chunk).split(b"\n")
        entries = [
            entry for line in complete_lines if (entry := self._entry(line, ends=True)) is not None
        ]
        if len(remainder) > _TRUNCATED_LINE:
            if (entry := self._entry(remainder, ends=False)) is not None:
                entries.append(entry)
            remainder = b""
        self._buffered = remainder
        return entries

    def close(self) -> list[PodLogLine]:
        """The rest at the end of the response: a line without newline, or a part of one."""
        entry = self._entry(self._buffered, ends=False) if self._buffered else None
        return [entry] if entry is not None and entry.data else []

    def _entry(self, line: bytes, *, ends: bool) -> PodLogLine | None:
        if self._timestamp_ns is not None:  # the line continues
            stamp, starts = self._timestamp_ns, False
        elif (match := _TIMESTAMP.match(line)) is not None:
            stamp, starts, line = self._to_nanoseconds(match), True, line[match.end() :]
        else:
            self.foreign = True
            return None
        self._timestamp_ns = None if ends else stamp
        return PodLogLine(stamp, line, starts, ends)

    def _to_nanoseconds(self, match: re.Match[bytes]) -> int:
        second, digits, zone = match.groups()
        if self._second[0] != second + zone:
            at = datetime.fromisoformat((second + zone).decode())
            self._second = (second + zone, int(at.timestamp()) * _SECOND)
        return self._second[1] + int((digits or b"0").ljust(9, b"0"))


class Resume:
    """Passes on what follows a cursor's last line; buffers possibly new lines until that line is found."""

    def __init__(self, last: LastLine | None) -> None:
        self.is_found = last is None
        """Whether the response reached the last line."""
        self.missing = False
        """Whether the last line is no longer in the log, so that all lines are new."""
        self._last_line = last
        self._held_lines: list[PodLogLine] = []
        self._known_length = (0, 0)
        self._newest = last.newest if last is not None else 0
        self._timestamp_ns = self._same_count = self._taken_bytes = self._digest = 0
        self._has_ended = True

    @property
    def decided(self) -> bool:
        """Whether it is known which lines are new."""
        return self.is_found or self.missing

    @property
    def last(self) -> LastLine:
        """The last line that was passed on."""
        return LastLine(
            self._timestamp_ns,
            self._same_count,
            self._taken_bytes,
            self._digest,
            self._has_ended,
            self._newest,
        )

    def consume(self, entries: Iterable[PodLogLine]) -> list[Item]:
        """The new ones among the next entries, as far as known."""
        has_items: list[Item] = []
        for entry in entries:
            self._count(entry)
            if self.is_found or self.missing:
                has_items.append(entry)
            else:
                has_items += self._process(entry)
        return has_items

    def give_up(self) -> list[Item]:
        """The last line is missing: the buffered lines are new."""
        self.missing = bool(self._held_lines)
        held_lines, self._held_lines = self._held_lines, []
        return [PodLogGap("rotated"), *held_lines] if held_lines else []

    def _count(self, entry: PodLogLine) -> None:
        if entry.starts:
            self._same_count = self._same_count + 1 if entry.stamp == self._timestamp_ns else 1
            self._timestamp_ns = entry.stamp
            self._newest = max(self._newest, entry.stamp)
            self._taken_bytes = self._digest = 0
            self._known_length = (0, 0)
        self._taken_bytes += len(entry.data)
        self._digest = zlib.crc32(entry.data, self._digest)
        self._has_ended = entry.ends

    def _process(self, entry: PodLogLine) -> list[Item]:
        last = self._last_line
        assert last is not None
        if (self._timestamp_ns, self._same_count) == (last.stamp, last.same):
            length, digest = self._known_length
            known_bytes = entry.data[: last.taken - length]
            new_bytes = entry.data[len(known_bytes) :]
            self._known_length = (length + len(known_bytes), zlib.crc32(known_bytes, digest))
            ends_here = entry.ends and not new_bytes
            if self._known_length == (last.taken, last.digest) and (ends_here or not last.ended):
                self.is_found = True
                self._held_lines = []
                if last.ended or not (new_bytes or entry.ends):
                    return []
                return [PodLogLine(last.stamp, new_bytes, starts=False, ends=entry.ends)]
        self._held_lines.append(entry)
        return self.give_up() if entry.stamp > last.newest + _OVERLAP_S * _SECOND else []


# ------------------------------------------------------------------------------------------ what to
# do next
# the next step


@dataclass(frozen=True, slots=True)
class Read:
    """Read the log of the cursor's container: the one before the newest (`previous`), or a running one (`live`)."""

    previous: bool
    live: bool


def next_step(
    state: PodState | None, name: str, cursor: PodLogCursor, *, may_be_incomplete: bool
) -> Portion | Read | None:
    """The next item to return or log to read; None: wait for a change of the pod's state. Pure.

    Args:
        state: The pod, or None if it does not exist.
        name: The container's name.
        cursor: The position.
        may_be_incomplete: Whether the log may have more lines than were read.
    """
    if state is None or (cursor.uid and state.uid != cursor.uid):
        end_item = LogEnded("replaced" if state is not None else "deleted")
        if not cursor.container_id or cursor.finished:
            return Portion((end_item,), replace(cursor, over=True))
        end_items = finished(cursor, None, *([PodLogGap("deleted")] if may_be_incomplete else []))
        return Portion((*end_items.items, end_item), replace(end_items.cursor, over=True))
    container = state.container(name)
    previous_id = container.previous.container_id if container.previous is not None else ""
    previous_id = previous_id if previous_id != container.container_id else ""
    if cursor.container_id and not cursor.finished:
        if cursor.container_id == container.container_id:
            return Read(previous=False, live=container.running)
        if cursor.container_id == previous_id:
            return Read(previous=True, live=False)
        return finished(cursor, None, PodLogGap("restarted"))
    if not cursor.container_id or cursor.container_id != container.container_id:
        # The oldest readable container after the cursor's.
        is_older = bool(previous_id) and previous_id != cursor.container_id
        container_id = previous_id if is_older else container.container_id
        if container_id:
            restart = container.restart - 1 if is_older else container.restart
            expected = cursor.restart + 1 if cursor.container_id else 0
            gap = [PodLogGap("restarted")] if restart > expected else []
            new_cursor = PodLogCursor(uid=state.uid, restart=restart, container_id=container_id)
            return Portion((*gap, ContainerStarted(restart)), new_cursor)
    if state.is_restartable(name):
        return None
    return Portion((LogEnded("ended"),), replace(cursor, uid=state.uid, over=True))


def finished(cursor: PodLogCursor, exit_: Exit | None, *first: Item) -> Portion:
    """The cursor after its container has ended and its log was read completely."""
    end_item = ContainerEnded(cursor.restart, exit_.code if exit_ is not None else None)
    return Portion((*first, end_item), replace(cursor, finished=True))


# ------------------------------------------------------------------------------------------
# following
# following

LOG_GONE = "log_gone"
"""Code of an `UnreachableError`: the node's container runtime does not return the log, and never will."""

_RETRYABLE = (UnreachableError, NotFoundError, InvalidInputError)
"""Errors that a retry may fix: the API server's pod state lags behind its kubelet."""
_LONG_READ_S = 10.0
"""Minimum duration in seconds of a stream for an immediate retry."""
_RETRY_S = 0.5
_MAX_FAILURES = 2
"""Complete responses without the last line after which it counts as lost. A dying kubelet ends its responses as if they were complete."""
_UNKNOWN_TIMEOUT_S = 30.0
"""Seconds for which a 401 is retried: a starting cluster, or one with a token that is just being renewed, may reject a request briefly."""
_DELETED_TIMEOUT_S = 60.0
"""Seconds for which a runtime may return nothing for an ended container before its log counts as deleted."""
_STATE_TTL_S = 2.0
"""Seconds for which a pod's state is cached when its log is opened: no other pod of the same name starts within them."""
_SETTLE_S = 0.5
"""Seconds within which a restart known to the kubelet reaches the API server."""
_CHANGE_TIMEOUT_S = 10.0
"""Seconds after which a pod is polled although a watch reported nothing."""


class PodChanges(Protocol):
    """Reports changes of a pod's state, so that a follower need not poll: backed by an `Informer` of pods."""

    @property
    def version(self) -> int:
        """Increases with each change."""
        ...

    async def changed(self, since_time: int, timeout: float | None = None) -> int:
        """Wait until `version` is greater than `since_time`, or until the timeout (seconds); returns `version`."""
        ...


class PodLog:
    """Follows one container of one pod, including its restarts.

    Args:
        client: The cluster's client.
        namespace: The pod's namespace.
        pod: The pod's name.
        container: The container's name.
        news: Reports changes of the pod.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        pod: str,
        container: str,
        *,
        news: PodChanges | None = None,
    ) -> None:
        self.last_error: HyperpodError | None = None
        """Why the log is unreadable at the moment (a node that does not answer); None otherwise, also while a container waits to start: see `state`."""
        self.state: PodState | None = None
        """The pod's last known state."""
        self._client, self._changes = client, news
        self._pod, self._container = pod, container
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod}"
        self._cursor = PodLogCursor()
        self._backoff = Backoff(0.1, 5.0)
        self._state_read_at = 0.0
        self._failing: dict[str, float] = {}
        self._reset()

    def follow(self, cursor: PodLogCursor | None = None) -> AsyncGenerator[Portion, None]:
        """The container's output from a cursor on, until the log is complete (the last item is then `LogEnded`).

        Waits for a container that has not started yet. While the cluster or the node does not
        answer, it retries without limit, and `last_error` has the cause.

        Raises:
            NotFoundError: The pod does not exist, and the cursor has none.
            InvalidInputError: The pod does not have the container.
            DeniedError: The user may not read this pod or its log.
        """
        return self._run(cursor or PodLogCursor(), follow=True)

    def read(self, cursor: PodLogCursor | None = None) -> AsyncGenerator[Portion, None]:
        """The current output from a cursor on, without waiting for more. Ends with `LogEnded` if `follow` would.

        Raises:
            UnreachableError: The cluster or the node does not answer; also raises what `follow`
                raises.
        """
        return self._run(cursor or PodLogCursor(), follow=False)

    def _reset(self) -> None:
        """Nothing of the cursor's container has been read yet."""
        self._may_be_incomplete = True
        self._failures = 0

    async def _run(self, cursor: PodLogCursor, *, follow: bool) -> AsyncGenerator[Portion, None]:
        self._cursor = cursor
        self._reset()
        if cursor.over:
            return
        if self.state is None:
            await self._process(patient=follow)
        if self.state is None and not cursor.uid:
            raise NotFoundError(f"pod {self._pod} not found", code="no_pod")
        if self.state is not None and self._container not in self.state.names:
            raise InvalidInputError(
                f"the pod {self._pod} has no container {self._container}",
                code="no_container",
                hint=nearest_hint(self._container, self.state.names),
            )
        while not self._cursor.over:
            step = next_step(
                self.state, self._container, self._cursor, may_be_incomplete=self._may_be_incomplete
            )
            if isinstance(step, Portion):
                self._cursor = step.cursor
                self._reset()
                yield step
            elif isinstance(step, Read):
                async with aclosing(self._read(step, follow=follow)) as portions:
                    async for portion in portions:
                        self._cursor = portion.cursor
                        yield portion
                if step.live and not follow:
                    return
            elif follow:
                await self._wait_for_change()
            else:
                return

    async def _read(self, step: Read, *, follow: bool) -> AsyncGenerator[Portion, None]:
        """Request the log once and evaluate the result."""
        started_at = time.monotonic()
        resume = Resume(self._cursor.last)
        is_last_try = self._failures >= _MAX_FAILURES
        live = follow and step.live and not is_last_try
        has_items = self._has_moved = False
        try:
            async with aclosing(
                self._open_log(step, resume, live=live, last=is_last_try)
            ) as response:
                async for items in response:
                    has_items = True
                    self._mark_success()
                    yield Portion(tuple(items), replace(self._cursor, last=resume.last))
        except HyperpodError as error:
            if (end := await self._failed(error, step, follow=follow)) is not None:
                yield end
                return
            # A container that ended during a read with a clean end is complete, even if its log
            # cannot be requested again.
            self._may_be_incomplete = (
                self._may_be_incomplete or step.live or error.code == STREAM_CUT
            )
            self._failures = 0
        else:
            if self._has_moved:
                return
            self._mark_success()
            self._may_be_incomplete = not resume.decided
            self._failures = 0 if resume.decided or is_last_try else self._failures + 1
            if not step.live:
                if has_items:
                    return
                if resume.decided or is_last_try:
                    yield self._finished(*([] if resume.decided else [PodLogGap("rotated")]))
                else:
                    await asyncio.sleep(_RETRY_S)
                return
        if follow:
            if has_items or time.monotonic() - started_at > _LONG_READ_S:
                self._backoff.reset()
            await asyncio.sleep(self._backoff.next_pause())
            await self._process(patient=True)

    async def _open_log(
        self, step: Read, resume: Resume, *, live: bool, last: bool
    ) -> AsyncGenerator[list[Item], None]:
        """The new lines of one response.

        Args:
            step: The read to do.
            resume: Selects the new lines.
            live: Continue until the container or the connection ends.
            last: If the cursor's last line is missing, treat all lines as new.
        """
        lines = Lines()
        query = self._query(step, live)
        async with (
            self._client.stream(f"{self._path}/log", **query) as log,
            aclosing(log.chunks()) as chunks,
        ):
            # The kubelet deletes an ended container's log soon after the next one has ended, so it
            # is read before the wait.
            early = [] if live or not self._restarts() else [chunk async for chunk in chunks]
            entries = [entry for chunk in early for entry in lines.feed(chunk)]
            if not await self._matches_cursor(step, entries):
                self._has_moved = True
                return
            if items := resume.consume(entries):
                yield items
            async for chunk in chunks:
                if items := resume.consume(lines.feed(chunk)):
                    yield items
        items = resume.consume(lines.close())
        if last and not resume.decided and not lines.foreign:
            items = resume.give_up()
        if items:
            yield items
        if lines.foreign:
            raise UnreachableError(
                "the node does not provide the log",
                code=LOG_GONE,
                hint="its container runtime did not answer, or has removed the container",
            )

    def _query(self, step: Read, live: bool) -> dict[str, str]:
        query = {"container": self._container, "timestamps": "true"}
        query |= {"previous": "true"} if step.previous else {}
        query |= {"follow": "true"} if live else {}
        if self._cursor.last is not None:
            since_time = datetime.fromtimestamp(
                self._cursor.last.stamp // _SECOND - _OVERLAP_S, UTC
            )
            query["sinceTime"] = since_time.strftime("%Y-%m-%dT%H:%M:%SZ")
        return query

    def _restarts(self) -> bool:
        """Whether the container may restart in place."""
        return (
            self.state is not None
            and self.state.is_restartable(self._container)
            and self.state.restart_policy != "Never"
        )

    async def _matches_cursor(self, step: Read, entries: Sequence[PodLogLine]) -> bool:
        """Whether a started response belongs to the cursor's container. A kubelet knows of restarts before the API server does.

        Args:
            step: The read that was requested.
            entries: The entries read so far.
        """
        if self._restarts():
            await asyncio.sleep(_SETTLE_S)
            await self._process(patient=False)
        elif time.monotonic() - self._state_read_at > _STATE_TTL_S:
            await self._process(patient=False)
        if self.state is None or self.state.uid != self._cursor.uid:
            return False
        container = self.state.container(self._container)
        previous_id = container.previous.container_id if container.previous is not None else ""
        if not step.previous and self._cursor.container_id == previous_id and entries:
            # The next container has started since: the entries belong to the one before, unless the
            # next one's log starts with them.
            return await self._first_timestamp() != entries[0].stamp
        return self._cursor.container_id == (
            previous_id if step.previous else container.container_id
        )

    def _finished(self, *first: Item) -> Portion:
        container = self.state.container(self._container) if self.state is not None else None
        exits = (container.exit, container.previous) if container is not None else ()
        container_id = self._cursor.container_id
        return finished(
            self._cursor,
            next(
                (
                    exit_state
                    for exit_state in exits
                    if exit_state and exit_state.container_id == container_id
                ),
                None,
            ),
            *first,
        )

    def _mark_success(self) -> None:
        self.last_error = None
        self._failing.clear()

    async def _failed(self, error: HyperpodError, step: Read, *, follow: bool) -> Portion | None:
        """The item for a log that is lost for good, or None to retry. Raises errors that a retry cannot fix."""
        gaps = [PodLogGap("deleted")] if self._may_be_incomplete else []
        if step.previous and await self._is_removed(error):
            return self._finished(*gaps)
        if not follow:
            raise error
        self.last_error = error
        seconds = time.monotonic() - self._failing.setdefault(error.code, time.monotonic())
        if error.code == LOG_GONE:
            is_removed = not step.live and seconds > _DELETED_TIMEOUT_S
            return self._finished(*gaps) if is_removed else None
        is_temporary = error.code == "unauthorized" and seconds <= _UNKNOWN_TIMEOUT_S
        if not is_temporary and not isinstance(error, _RETRYABLE):
            raise error
        return None

    async def _is_removed(self, error: HyperpodError) -> bool:
        """Whether the previous container's log has been deleted: the newest one's is readable."""
        if error.code != LOG_GONE:
            return "previous terminated container" in error.message
        try:
            lines, _ = await self._read_beginning()
        except HyperpodError:
            return False
        return not lines.foreign

    async def _first_timestamp(self) -> int | None:
        """The first timestamp of the newest container's log; None if it is empty or unreadable."""
        try:
            _, entries = await self._read_beginning()
        except HyperpodError:
            return None
        return entries[0].stamp if entries else None

    async def _read_beginning(self) -> tuple[Lines, list[PodLogLine]]:
        """The start of the newest container's log."""
        lines, entries = Lines(), list[PodLogLine]()
        query = {"container": self._container, "timestamps": "true", "limitBytes": "120"}
        async with self._client.stream(f"{self._path}/log", **query) as log:
            async for chunk in log.chunks():
                entries += lines.feed(chunk)
        return lines, [*entries, *lines.close()]

    async def _process(self, *, patient: bool) -> None:
        """Query the pod's state."""
        backoff = Backoff(0.2, 5.0)
        while True:
            try:
                self._state_read_at = time.monotonic()
                self.state = pod_state(await self._client.get(self._path))
            except NotFoundError as error:
                if error.code != NotFoundError.default_code:
                    raise
                self.state = None
            except UnreachableError as error:
                if not patient:
                    raise
                self.last_error = error
                await asyncio.sleep(backoff.next_pause())
                continue
            return

    async def _wait_for_change(self) -> None:
        """Wait for a change of the pod's state."""
        previous_state = self.state
        backoff = Backoff(0.1, 2.0)
        while self.state == previous_state:
            version = self._changes.version if self._changes is not None else 0
            await self._process(patient=True)
            if self.state != previous_state:
                break
            if self._changes is not None:
                await self._changes.changed(version, _CHANGE_TIMEOUT_S)
            else:
                await asyncio.sleep(backoff.next_pause())
        self._mark_success()
