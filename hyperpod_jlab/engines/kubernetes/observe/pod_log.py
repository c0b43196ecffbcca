"""The log of a pod without our launcher, copied into the log of its node in the run's bundle.

As stern does it: a log is requested from a whole second on (``sinceTime`` has no fractions), and as
many lines as are stored since then are skipped. The last of them must be the same line; else the
kubelet has rotated the file meanwhile. The log then has a line that says so, and all lines since
that second again: a line may be there twice, but none is missing unsaid.

The position is stored beside the log, after the lines. Each line is written to an offset that
follows from the lines before it, so several processes that follow a pod write the same bytes.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
import zlib
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_state import PodChanges, PodState, pod_state
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import ContainerStart, PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod
from hyperpod_jlab.launcher.logs import TimeIndex
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

FOLDER = "spool"
"""In the records folder: how far each pod's log is stored."""

_ROTATED = "lines are missing here: the node had begun a new file before they were read; the lines from {since} on follow, some of them again"
_RESTARTED = "lines are missing here: the container was started again before they were read"
_GONE = "the pod is gone; what it said after this line is lost"
_REMOVED = "the node no longer has the log of this container; what it said after this line is lost"

_OVERLAP_S = 2
"""Seconds by which a line may be older than the line before it: lines of stdout and stderr are out of order."""
_LONG_LINE = 1 << 16
"""Bytes of an unfinished line from which on it is written."""
_SAVE_INTERVAL_S = 0.5
_RETRY_S = 0.5
_CHANGE_TIMEOUT_S = 10.0
"""Seconds after which a pod is polled although a watch reported nothing."""
_REMOVED_AFTER_S = 60.0
"""Seconds for which a node may return nothing for an ended container before its log counts as removed."""
_TIMESTAMP = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")


class LogRemovedError(UnreachableError):
    """The node returned a message instead of the log: its runtime does not answer, or has removed the container."""


@dataclass
class LogPosition:
    """How far a pod's log is stored.

    Attributes:
        restart: The container: number of restarts before it; -1 before the first.
        attempt: Its attempt, which is in the path of its log.
        size: Stored bytes of that log.
        counts: Stored lines by second (Unix seconds), for the last seconds.
        digest: CRC-32 of the last line.
        finished: Whether the container's log is complete.
        over: Whether the pod's log is complete.
    """

    restart: int = -1
    attempt: int = 0
    size: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    digest: int = 0
    finished: bool = True
    over: bool = False

    @property
    def since(self) -> int | None:
        """The second from which on the log is requested; None: from the beginning."""
        return max(self.counts) - _OVERLAP_S if self.counts else None

    def count(self, second: int, digest: int) -> None:
        """Take a line into account that is stored, with its CRC-32."""
        self.counts[second] = self.counts.get(second, 0) + 1
        self.digest = digest
        if len(self.counts) > 2 * _OVERLAP_S:
            newest = max(self.counts)
            self.counts = {at: count for at, count in self.counts.items() if at >= newest - _OVERLAP_S}


_ADAPTER = TypeAdapter(LogPosition)


def read_position(path: Path) -> LogPosition:
    """A stored position; one that cannot be read, such as an older version's, is the beginning."""
    try:
        return _ADAPTER.validate_json(descent.read(path))
    except (OSError, ValidationError):
        return LogPosition()


@dataclass(frozen=True)
class LogPiece:
    """Bytes of the log at their offset, and when their line was written (Unix nanoseconds)."""

    offset: int
    data: bytes
    timestamp_ns: int


class LogAnswer:
    """One answer with a log: splits it into lines, skips those that are stored, and moves the position past the others.

    The kubelet begins each line with a time and a blank. A line without one is a message of its own,
    such as ``unable to retrieve container logs for containerd://...``, with status 200.
    """

    def __init__(self, position: LogPosition) -> None:
        since = position.since
        self._position = position
        self.skip = sum(count for at, count in position.counts.items() if at >= (since or 0))
        """Stored lines that are still to come."""
        self.has_rotated = False
        """Whether the last of the skipped lines is not the last stored one."""
        self._buffer = b""
        self._flushed = 0
        self._digest = 0
        self._timestamp_ns: int | None = None

    def feed(self, chunk: bytes) -> list[LogPiece]:
        """The pieces to write.

        Raises:
            LogRemovedError: The node does not return the log.
        """
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        pieces: list[LogPiece] = []
        for line in lines:
            if self.has_rotated:
                return []
            pieces += self._end_line(line)
        if len(self._buffer) > _LONG_LINE and not self.skip:
            pieces += self._flush(self._take_time(self._buffer))
            self._buffer = b""
        return pieces

    def close(self) -> list[LogPiece]:
        """The last line, if it has no newline."""
        if not self._buffer or self.skip or self.has_rotated:
            return []
        return self._flush(self._take_time(self._buffer))

    def _end_line(self, line: bytes) -> list[LogPiece]:
        data = self._take_time(line)
        timestamp_ns, self._timestamp_ns = self._timestamp_ns or 0, None
        if self.skip:
            self.skip -= 1
            self.has_rotated = not self.skip and zlib.crc32(data) != self._position.digest
            return []
        digest = zlib.crc32(data, self._digest)
        piece = LogPiece(self._position.size + self._flushed, data + b"\n", timestamp_ns)
        self._position.size = piece.offset + len(piece.data)
        self._position.count(timestamp_ns // 1_000_000_000, digest)
        self._flushed = self._digest = 0
        return [piece]

    def _flush(self, data: bytes) -> list[LogPiece]:
        """A part of a line; the position stays at the line's beginning, so that it is read again with the rest."""
        piece = LogPiece(self._position.size + self._flushed, data, self._timestamp_ns or 0)
        self._flushed += len(data)
        self._digest = zlib.crc32(data, self._digest)
        return [piece]

    def _take_time(self, line: bytes) -> bytes:
        """A line, or a part of one, without its time."""
        if self._timestamp_ns is not None:  # the line goes on
            return line
        match = _TIMESTAMP.match(line)
        if match is None:
            raise LogRemovedError(
                "the node does not provide the log",
                code="log_gone",
                hint="its container runtime did not answer, or has removed the container",
            )
        second, digits, zone = match.groups()
        seconds = int(datetime.fromisoformat((second + zone).decode()).timestamp())
        self._timestamp_ns = seconds * 1_000_000_000 + int((digits or b"0").ljust(9, b"0"))
        return line[match.end() :]


class LogFile:
    """A log in the bundle with its time index (docs/bundle-format.md). May block."""

    def __init__(self, bundle: BundleReader, path: Path) -> None:
        make_folder(bundle, path.parent)
        mode, flags = bundle.file_mode, os.O_RDWR | os.O_CREAT
        self._descriptor = descent.open_file(path, flags, mode)
        self._index = descent.open_file(path.with_suffix(".idx"), flags, mode)
        self._count = os.fstat(self._index).st_size // TimeIndex.RECORD.size
        self._time, self._offset = 0, -1
        if self._count:
            size = TimeIndex.RECORD.size
            last = os.pread(self._index, size, (self._count - 1) * size)
            self._time, self._offset = TimeIndex.RECORD.unpack(last)

    def write(self, offset: int, data: bytes, timestamp_ns: int) -> None:
        """Write bytes at an offset; those that are there are the same."""
        at, left = offset, memoryview(data)
        while left:
            written = os.pwrite(self._descriptor, left, at)
            left, at = left[written:], at + written
        spacings = (gap for limit, gap in TimeIndex.INDEX_SPACING if self._count < limit)
        spacing = next(spacings, TimeIndex.WIDEST)
        if offset > self._offset and timestamp_ns - self._time > spacing * 1e9:
            record = TimeIndex.RECORD.pack(timestamp_ns, offset)
            os.pwrite(self._index, record, self._count * TimeIndex.RECORD.size)
            self._count += 1
            self._time, self._offset = timestamp_ns, offset

    def close(self) -> None:
        """Close the files."""
        os.close(self._descriptor)
        os.close(self._index)


def make_folder(bundle: BundleReader, folder: Path) -> None:
    """Create a folder below a bundle of this user, never the bundle itself: a deleted one must not come back.

    Raises:
        StorageDeniedError: The bundle is another user's.
    """
    bundle.check_writable(bundle.folder)
    descent.make_folders(bundle.folder, folder, bundle.folder_mode)


class PodLog:
    """Copies the output of one pod. Each container of it is an attempt.

    Args:
        bundle: The run.
        pod: The pod.
        rank: Its rank among the run's nodes.
        recorder: Numbers the attempts.
        client: The cluster.
        namespace: The pod's namespace.
        changes: Reports changes of the pod.
    """

    def __init__(
        self,
        bundle: BundleReader,
        pod: RunPod,
        rank: int,
        recorder: PodRecorder,
        client: KubeClient,
        namespace: str,
        changes: PodChanges | None = None,
    ) -> None:
        self._bundle, self._pod, self._rank = bundle, pod, rank
        self._recorder, self._client, self._changes = recorder, client, changes
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/pods/{pod.name}"
        self._position_path = bundle.records / FOLDER / f"{pod.name}.{pod.uid[:8]}.json"
        self._position = read_position(self._position_path)
        self._log: LogFile | None = None
        self._lock = threading.Lock()  # a cancelled task's thread may still write
        self._is_running = False
        self._version = 0
        self._saved_at = 0.0
        self._short_answers = 0

    @property
    def is_complete(self) -> bool:
        """Whether the pod's output is stored to its end."""
        return self._position.over

    async def copy(self, *, follow: bool) -> None:
        """Store the current output; with `follow` until it is complete.

        Raises:
            UnreachableError: The cluster or the node does not answer; with `follow` this is retried.
            DeniedError: This user may not read the pod or its log.
        """
        self._position = read_position(self._position_path)
        backoff = Backoff(0.1, 5.0)
        failing_since: float | None = None
        try:
            while not self._position.over:
                try:
                    state = await self._state()
                    if not await self._step(state, follow=follow):
                        if not follow:
                            return
                        await self._wait()
                    failing_since = None
                    backoff.reset()
                except (UnreachableError, InvalidInputError, NotFoundError) as error:
                    if not follow:
                        raise
                    failing_since = failing_since or time.monotonic()
                    is_removed = isinstance(error, LogRemovedError) and not self._is_running
                    if is_removed and time.monotonic() - failing_since > _REMOVED_AFTER_S:
                        self._note(_REMOVED)
                        self._position.finished = True
                    await asyncio.sleep(backoff.next_pause())
        finally:
            await asyncio.to_thread(self._close)

    async def _state(self) -> PodState | None:
        self._version = self._changes.version if self._changes is not None else 0
        try:
            state = pod_state(await self._client.get(self._path))
        except NotFoundError as error:
            if error.code != NotFoundError.default_code:
                raise
            return None
        return state if state.uid == self._pod.uid else None

    async def _step(self, state: PodState | None, *, follow: bool) -> bool:
        """Read once, or go on to the next container; False if there is nothing to do until the pod changes."""
        position = self._position
        if state is None:
            if not position.finished:
                self._note(_GONE)
            position.over = True
            return True
        container = state.container(self._pod.container)
        self._is_running = container.running and container.restart == position.restart
        has_previous = container.previous is not None and (container.previous.container_id != container.container_id)
        newest = container.restart if container.container_id else -1
        readable = [*([newest - 1] if has_previous else []), newest]
        if position.finished:
            following = [restart for restart in readable if restart > position.restart]
            if following:
                is_gap = following[0] > position.restart + 1
                await asyncio.to_thread(self._start, following[0])
                if is_gap:
                    self._note(_RESTARTED)
                return True
            position.over = not state.is_restartable(self._pod.container)
            return position.over
        if position.restart not in readable:
            self._note(_RESTARTED)
            position.finished = True
            return True
        previous = position.restart < newest
        has_news = await self._read(previous=previous, follow=False)
        if self._short_answers:
            await asyncio.sleep(_RETRY_S)
        elif not self._is_running and not has_news:  # a dying kubelet ends answers too early
            position.finished = True
        elif self._is_running:
            if not follow:
                return False
            await self._read(previous=False, follow=True)
        return True

    def _start(self, restart: int) -> None:
        """Begin the log of a container. Blocking."""
        self._close()
        number = self._recorder.find_number(ContainerStart.from_pod(self._pod, self._rank, restart))
        self._position = LogPosition(restart=restart, attempt=number, finished=False)
        pod = self._pod
        if pod.other_containers:
            names = ", ".join(pod.other_containers)
            text = f"hyperpod: the log of this node is the output of the container {pod.container}; for the other containers ({names}) use: kubectl logs -n {self._namespace} {pod.name} -c {pod.other_containers[0]}\n"
            path = self._bundle.records / f"logs/attempt-{number}/node-{self._rank}.log"
            log = LogFile(self._bundle, path)
            log.write(0, text.encode(), time.time_ns())
            log.close()

    async def _read(self, *, previous: bool, follow: bool) -> bool:
        """Request the log once and store what is new; whether something was."""
        since = self._position.since
        query = {"container": self._pod.container, "timestamps": "true"}
        query |= {"previous": "true"} if previous else {}
        query |= {"follow": "true"} if follow else {}
        if since is not None:
            query["sinceTime"] = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        answer = LogAnswer(self._position)
        size = self._position.size
        async with self._client.stream(f"{self._path}/log", **query) as log, aclosing(log.chunks()) as chunks:
            async for chunk in chunks:
                await asyncio.to_thread(self._store, answer, chunk)
                if answer.has_rotated:
                    break
        if answer.has_rotated or (not follow and answer.skip > 0):
            self._short_answers += 1
            if self._short_answers > 1:
                self._short_answers = 0
                stored = await asyncio.to_thread(read_position, self._position_path)
                if stored.restart == self._position.restart and stored.size > self._position.size:
                    # Another process has read what the node no longer has.
                    self._position = stored
                    return True
                self._note(_ROTATED.format(since=query.get("sinceTime", "the beginning")))
                self._position.counts = {since + _OVERLAP_S: 0} if since is not None else {}
                return True
            return False
        self._short_answers = 0
        if not self._is_running:
            await asyncio.to_thread(self._store, answer)
        return self._position.size > size

    def _store(self, answer: LogAnswer, chunk: bytes | None = None) -> None:
        """Write a part of an answer, None for its end, and from time to time the position. Blocking."""
        with self._lock:
            for piece in answer.feed(chunk) if chunk is not None else answer.close():
                self._file().write(piece.offset, piece.data, piece.timestamp_ns)
            if time.monotonic() - self._saved_at > _SAVE_INTERVAL_S:
                self._save()

    def _note(self, text: str) -> None:
        """Write a line of ours into the log."""
        line = f"hyperpod: {text}\n".encode()
        with self._lock:
            self._file().write(self._position.size, line, time.time_ns())
            self._position.size += len(line)

    def _file(self) -> LogFile:
        if self._log is None:
            position = self._position
            name = f"logs/attempt-{position.attempt}/node-{self._rank}.rank-0.log"
            self._log = LogFile(self._bundle, self._bundle.records / name)
        return self._log

    async def _wait(self) -> None:
        """Wait for a change of the pod."""
        if self._changes is not None:
            await self._changes.changed(self._version, _CHANGE_TIMEOUT_S)
        else:
            await asyncio.sleep(_RETRY_S)

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        make_folder(self._bundle, self._position_path.parent)
        text = _ADAPTER.dump_json(self._position) + b"\n"
        descent.replace(self._position_path, text, mode=self._bundle.file_mode)

    def _close(self) -> None:
        with self._lock:
            if self._position.restart >= 0 or self._position.over:
                self._save()
            if self._log is not None:
                self._log.close()
                self._log = None
