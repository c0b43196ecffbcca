"""Logs of a user's own manifest: fetched from its pods into the records folder by each process that polls the run.

Any number of processes may do so concurrently (see `spool_files`). A one-time command (``hpj
show``, ``hpj logs``) gets the pods' output so far; for a continuous one (a server, ``hpj logs
-f``), the pods are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hyperpod_jlab.core.errors import (
    HyperpodError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    ContainerStarted,
    Item,
    PodLog,
    PodLogCursor,
    PodLogGap,
    PodLogLine,
    Portion,
)
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import ContainerStart, PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunPoller
from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    FOLDER,
    LogSegment,
    Modes,
    SpooledLog,
    append_note,
)
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Copies one pod's output into the run's records folder.
#
# The read position is stored beside it. It is written after everything before it, so interrupted
# work, by any process, is repeated with the same result.

_SAVE_INTERVAL_S = 0.5
_MAX_LINE = 1 << 20


def spool_path(pod: str, uid: str) -> str:
    """The path in the records folder of a pod's read position."""
    return f"{FOLDER}/{pod}.{uid[:8]}.json"


@dataclass(frozen=True)
class SpoolPosition:
    """The position up to which a pod's log was copied into the records folder.

    Attributes:
        cursor: The log cursor.
        attempts: Our attempt numbers by the pod's own.
        said: Size in bytes of the file for lines without a destination.
    """

    cursor: PodLogCursor = field(default_factory=PodLogCursor)
    attempts: dict[int, int] = field(default_factory=dict)
    said: int = 0


_POSITION_ADAPTER = TypeAdapter(SpoolPosition)


class PodSpool(ABC):
    """One pod of a run."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        self.pod = pod
        self._bundle = bundle
        self._modes = modes
        self._path = bundle.records / spool_path(pod.name, pod.uid)
        self._files: dict[Path, SpooledLog] = {}
        self._pending_segments: dict[Path, list[LogSegment]] = {}
        self._saved_at = 0.0
        try:
            self._saved = _POSITION_ADAPTER.validate_json(descent.read(self._path))
        except (OSError, ValidationError):  # everything is repeated
            self._saved = SpoolPosition()
        self._position = self._saved

    @property
    def is_complete(self) -> bool:
        """Whether the pod's output is complete."""
        return self._saved.cursor.over

    async def catch_up(self, log: PodLog) -> None:
        """Store the current output."""
        await self._consume(log.read(self._saved.cursor))

    async def follow(self, log: PodLog) -> None:
        """Store output until it is complete."""
        await self._consume(log.follow(self._saved.cursor))

    @abstractmethod
    def _reset(self) -> None:
        """Reading starts at the saved position."""

    @abstractmethod
    def _store(self, items: Iterable[Item]) -> bool:
        """Store items; returns whether the position may advance past them, because no part is buffered. Blocking."""

    def _add_segment(self, path: str, offset: int, data: bytes, timestamp_ns: int) -> None:
        """Buffer log bytes for the next `_write`."""
        segment = LogSegment(offset, data, timestamp_ns)
        self._pending_segments.setdefault(self._bundle.records / path, []).append(segment)

    def _append(self, path: str, data: bytes, timestamp_ns: int) -> None:
        """Buffer bytes without a destination, to be appended."""
        self._add_segment(path, self._position.said, data, timestamp_ns)
        self._position = replace(self._position, said=self._position.said + len(data))

    def _set_attempt_number(self, printed_attempt: int, number: int) -> None:
        """Map the pod's attempt number `printed_attempt` to ours."""
        self._position = replace(
            self._position, attempts={**self._position.attempts, printed_attempt: number}
        )

    def _write(self) -> None:
        for path, segments in self._pending_segments.items():
            if path not in self._files:
                claims = self._bundle.records / FOLDER
                self._files[path] = SpooledLog(path, claims, self._modes)
            self._files[path].write(segments)
        self._pending_segments.clear()

    async def _consume(self, portions: AsyncGenerator[Portion, None]) -> None:
        self._position = self._saved
        self._pending_segments.clear()
        self._reset()
        try:
            async with aclosing(portions):
                async for portion in portions:
                    await asyncio.to_thread(self._step, portion)
        finally:
            await asyncio.to_thread(self._close)

    def _step(self, portion: Portion) -> None:
        clean = self._store(portion.items)
        self._write()
        self._position = replace(self._position, cursor=portion.cursor)
        if clean or portion.cursor.over:
            self._saved = self._position
            if self.is_complete or time.monotonic() - self._saved_at > _SAVE_INTERVAL_S:
                self._save()

    def _save(self) -> None:
        self._saved_at = time.monotonic()
        self._modes.make(self._path.parent)
        descent.replace(
            self._path, _POSITION_ADAPTER.dump_json(self._saved) + b"\n", mode=self._modes.file
        )

    def _close(self) -> None:
        if self._saved != SpoolPosition():
            self._save()
        for file in self._files.values():
            file.close()
        self._files.clear()


_GAPS = {
    "rotated": b"hyperpod: lines are missing here: the node had begun a new file before they were fetched\n",
    "restarted": b"hyperpod: lines are missing here: the container was started again before they were fetched\n",
    "deleted": b"hyperpod: lines may be missing here: the pod was removed before they were fetched\n",
}


class RawPod(PodSpool):
    """A pod without our launcher: its output is the log of its node, with one attempt per container.

    Args:
        bundle: The run.
        pod: The pod.
        rank: Its rank among the run's nodes.
        modes: Modes of new files in the bundle.
        pod_recorder: Numbers the attempts.
        namespace: The pod's namespace.
    """

    def __init__(
        self,
        bundle: BundleReader,
        pod: RunPod,
        rank: int,
        modes: Modes,
        pod_recorder: PodRecorder,
        namespace: str,
    ) -> None:
        super().__init__(bundle, pod, modes)
        self._rank = rank
        self._pod_recorder = pod_recorder
        self._namespace = namespace

    def _reset(self) -> None:
        self._restart = self._position.cursor.restart
        self._timestamp_ns = 0

    def _store(self, items: Iterable[Item]) -> bool:
        for item in items:
            if isinstance(item, ContainerStarted):
                self._restart = item.restart
                self._position = replace(self._position, said=0)
                self._log()
            elif isinstance(item, PodLogLine):
                self._timestamp_ns = item.stamp
                self._append(self._log(), item.data + b"\n" * item.ends, item.stamp)
            elif isinstance(item, PodLogGap):
                self._append(self._log(), _GAPS[item.reason], self._timestamp_ns)
        return True

    def _log(self) -> str:
        """The log of the current container, in its attempt."""
        number = self._position.attempts.get(self._restart)
        if number is None:
            number = self._pod_recorder.find_number(
                ContainerStart.from_pod(self.pod, self._rank, self._restart)
            )
            self._set_attempt_number(self._restart, number)
            self._note_other_containers(number)
        return f"logs/attempt-{number}/node-{self._rank}.rank-0.log"

    def _note_other_containers(self, attempt: int) -> None:
        """Write to the node's own log which containers of the pod are not shown."""
        pod = self.pod
        if not pod.other_containers:
            return
        text = f"hyperpod: the log of this node is the output of the container {pod.container}; for the other containers ({', '.join(pod.other_containers)}) use: kubectl logs -n {self._namespace} {pod.name} -c {pod.other_containers[0]}\n"
        with contextlib.suppress(OSError, StorageError):
            append_note(self._bundle, attempt, self._rank, text, "others")


_LOG = logging.getLogger(__name__)

STREAMS = 512
"""Maximum number of pods that one process follows."""

_ACTIVE_S = 90.0
"""Seconds for which a run is followed after the last call."""
_POLL_S = 1.0
_RETRY_S = 5.0
"""Seconds before a pod that could not be read or stored is retried."""
_DONE_FILE = f"{FOLDER}/done.json"


@dataclass
class _Followed:
    """A followed pod: whether its initial output is stored, its task, and the start time."""

    spool: PodSpool
    caught_up: asyncio.Event
    task: asyncio.Task[None]
    started_at: float


class RunSpool:
    """One run; `semaphore` limits the number of followed pods."""

    def __init__(
        self,
        bundle: BundleReader,
        location: RunLocation,
        connection: ClusterConnection,
        poller: RunPoller,
        semaphore: asyncio.Semaphore,
    ) -> None:
        self._bundle = bundle
        self._location = location
        self._connection = connection
        self._poller = poller
        self._semaphore = semaphore
        self._modes: Modes | None = None
        self._followed_by_uid: dict[str, _Followed] = {}
        self._task: asyncio.Task[None] | None = None
        self._active_until = 0.0
        self.problem: HyperpodError | OSError | None = None
        """Why something could not be fetched; None otherwise."""

    @property
    def idle(self) -> bool:
        """Whether nothing is in progress for it."""
        return self._task is None or self._task.done()

    def mark_active(self) -> None:
        """Note use of the run: follow its pods for a while."""
        self._active_until = time.monotonic() + _ACTIVE_S
        if self.idle:
            self._task = asyncio.create_task(self._follow(), name="hyperpod-spool")

    async def catch_up(self) -> frozenset[str] | None:
        """Wait until the pods' current output is stored; for ended pods, all of it.

        Returns:
            The uids of the existing pods if the output of all of them is complete, else None.
        """
        followed_pods = await self._poll()
        for followed, pod in followed_pods:
            await followed.caught_up.wait()
            # A pod's phase changes some time after its container's end.
            if (pod.is_ended or pod.main.exit is not None) and not followed.task.done():
                await asyncio.wait([followed.task])
        is_complete = all(followed.spool.is_complete for followed, _ in followed_pods)
        return frozenset(pod.uid for _, pod in followed_pods) if is_complete else None

    async def close(self) -> None:
        """Stop following."""
        tasks = [followed.task for followed in self._followed_by_uid.values()]
        tasks += [self._task] if self._task is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        try:
            while time.monotonic() < self._active_until:
                with contextlib.suppress(HyperpodError):
                    await self._poll()
                await asyncio.sleep(_POLL_S)
        finally:
            for followed in self._followed_by_uid.values():
                followed.task.cancel()
            self._followed_by_uid.clear()

    async def _poll(self) -> list[tuple[_Followed, RunPod]]:
        """Start reading new pods; returns all existing pods with their followers."""
        if self._modes is None:
            self._modes = await asyncio.to_thread(Modes.from_bundle, self._bundle)
        pod_recorder = PodRecorder(self._bundle, self._location.name)
        snapshot = (await self._poller.get_all([self._location]))[self._location.run_id]
        followed_pods = []
        for rank, pod in await asyncio.to_thread(pod_recorder.rank_pods, snapshot.pods):
            if self._is_due(pod.uid):
                common = (rank, self._modes, pod_recorder, self._location.namespace)
                spool = await asyncio.to_thread(RawPod, self._bundle, pod, *common)
                if self._is_due(pod.uid):
                    self._reset(pod, spool)
            followed_pods.append((self._followed_by_uid[pod.uid], pod))
        return followed_pods

    def _is_due(self, uid: str) -> bool:
        """Whether to read a pod: it is new, or its last read failed a while ago."""
        followed = self._followed_by_uid.get(uid)
        if followed is None:
            return True
        failed = followed.task.done() and not followed.spool.is_complete
        return failed and time.monotonic() - followed.started_at > _RETRY_S

    def _reset(self, pod: RunPod, spool: PodSpool) -> None:
        caught_up = asyncio.Event()
        task = asyncio.create_task(self._read(spool, pod, caught_up), name="hyperpod-spool-pod")
        self._followed_by_uid[pod.uid] = _Followed(spool, caught_up, task, time.monotonic())

    async def _read(self, spool: PodSpool, pod: RunPod, caught_up: asyncio.Event) -> None:
        try:
            if spool.is_complete:
                return
            client = await self._connection.client()
            changes = await self._poller.changes(self._location, pod.name)
            log = PodLog(client, self._location.namespace, pod.name, pod.container, news=changes)
            with contextlib.suppress(UnreachableError):  # a follower retries
                await spool.catch_up(log)
            caught_up.set()
            if not spool.is_complete:
                async with self._semaphore:
                    await spool.follow(log)
        except (HyperpodError, OSError) as error:  # for example a full disk
            self.problem = error
            _LOG.debug("the log of %s cannot be fetched: %s", pod.name, error)
        finally:
            caught_up.set()


class Spooler:
    """All active runs of one cluster."""

    def __init__(self, connection: ClusterConnection, poller: RunPoller) -> None:
        self._connection = connection
        self._poller = poller
        self._runs: dict[str, RunSpool] = {}
        self._semaphore = asyncio.Semaphore(STREAMS)

    def follow(self, bundle: BundleReader, location: RunLocation) -> RunSpool:
        self._runs = {run_id: run for run_id, run in self._runs.items() if not run.idle}
        if bundle.run_id not in self._runs:
            self._runs[bundle.run_id] = RunSpool(
                bundle, location, self._connection, self._poller, self._semaphore
            )
        run = self._runs[bundle.run_id]
        run.mark_active()
        return run

    async def catch_up(
        self, bundle: BundleReader, location: RunLocation, seconds: float
    ) -> frozenset[str] | None:
        """Store the current output of a run's pods, and follow them for a while.

        Args:
            bundle: The run.
            location: The location of its job and pods.
            seconds: The timeout; after it, the fetch continues in the background.

        Returns:
            The uids of its pods if the output of all of them is complete, else None.
        """
        run = self.follow(bundle, location)
        try:
            async with asyncio.timeout(seconds):
                return await run.catch_up()
        except TimeoutError:
            return None

    def problem(self, run_id: str) -> HyperpodError | OSError | None:
        """Why a run's output could not be fetched; None otherwise."""
        run = self._runs.get(run_id)
        return run.problem if run is not None else None

    async def close(self) -> None:
        """Stop following all runs."""
        for run in self._runs.values():
            await run.close()
        self._runs.clear()


def is_done(bundle: BundleReader) -> bool:
    """Whether all output of a run's pods is stored. Blocking."""
    return descent.is_file(bundle.records / _DONE_FILE)


def mark_done(bundle: BundleReader) -> None:
    """Record that the output is complete. Blocking."""
    with contextlib.suppress(OSError, StorageError):
        modes, path = Modes.from_bundle(bundle), bundle.records / _DONE_FILE
        modes.make(path.parent)
        descent.replace(path, atomic.to_json({"time": time.time()}), mode=modes.file)
