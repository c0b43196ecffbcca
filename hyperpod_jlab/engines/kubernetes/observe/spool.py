"""Logs and records of runs without shared storage: fetched from their pods into the records folder by each process that polls the run.

Any number of processes may do so concurrently (see `spool_files`). A one-time command (``hpj
show``, ``hpj logs``) gets the pods' output so far; for a continuous one (a server, ``hpj logs
-f``), the pods are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    NotFoundError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    ContainerStarted,
    Item,
    PodLog,
    PodLogCursor,
    PodLogGap,
    PodLogLine,
    Portion,
    parse_timestamp,
)
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import parse_time
from hyperpod_jlab.engines.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import ContainerStart, PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod, assign_ranks
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunPoller, RunSnapshot
from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    FOLDER,
    FrameReader,
    LogBytes,
    LogSegment,
    Modes,
    RecordFile,
    SpooledLog,
    SpooledRecords,
    append_note,
    mark_lost,
    parse_attempt,
)
from hyperpod_jlab.engines.kubernetes.observe.verdicts import END_BY_REASON
from hyperpod_jlab.engines.kubernetes.waiting.messages import explain_reason
from hyperpod_jlab.engines.kubernetes.workloads import Eviction, find_eviction
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


class FramedPod(PodSpool):
    """A pod whose launcher prints frames: its logs byte by byte, its records as files."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        super().__init__(bundle, pod, modes)
        self._records = SpooledRecords(bundle.records, modes)
        # Pod output outside of the launchers' frames.
        self._other_output = f"logs/pods/{pod.name}.{pod.uid[:8]}.log"

    def _reset(self) -> None:
        self._frames = FrameReader()
        self._line = bytearray()
        self._timestamp_ns = 0

    def _store(self, items: Iterable[Item]) -> bool:
        for item in items:
            if not isinstance(item, PodLogLine):
                continue
            if item.starts:
                self._line, self._timestamp_ns = bytearray(), item.stamp
            self._line += item.data
            # A line without end is cut: it is not the launcher's.
            if item.ends or len(self._line) > _MAX_LINE:
                line, self._line = bytes(self._line), bytearray()
                self._store_line(line)
        return not self._line and not self._frames.midway

    def _store_line(self, line: bytes) -> None:
        frame = self._frames.read(line)
        if isinstance(frame, LogBytes):
            number = self._position.attempts.get(frame.attempt, frame.attempt)
            path = replace(frame, attempt=number).path
            self._add_segment(path, frame.offset, frame.data, self._timestamp_ns)
        elif isinstance(frame, RecordFile):
            self._write()  # logs must be stored before the records that refer to them
            self._store_record(frame)
        elif not self._frames.midway:
            self._append(self._other_output, line + b"\n", self._timestamp_ns)

    def _store_record(self, file: RecordFile) -> None:
        printed_attempt = parse_attempt(file.path)
        if printed_attempt is None:
            self._records.store(file, None)
        elif file.path.endswith("/claim.json"):
            self._set_attempt_number(
                printed_attempt, self._records.attempt(printed_attempt, file.content)
            )
        else:
            self._records.store(file, self._position.attempts.get(printed_attempt, printed_attempt))


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


# --------------------------------------------------------------------------------------------------
# Missed attempts: reconstructed from what the cluster still knows, and recorded before the records
# of later pods.
#
# If pods were deleted before their logs were fetched, events show for a while (an hour by default)
# that they ran, on which node, and for how long. Kueue's workload records an eviction.

_CREATED_POD = re.compile(r"Created pod: ([a-z0-9][a-z0-9.-]{0,252})")
_RANK = re.compile(
    r"-(?:(?P<master>master-0)|worker-(?P<worker>\d{1,6})|(?:node-0-)?(?P<index>\d{1,6})-[a-z0-9]{5})"
)
_MAX_PODS = 64
"""Maximum number of pods of one run whose events are queried."""
_CONCURRENCY = 8
_EVICTION_MARGIN_S = 15.0
"""Maximum seconds between an eviction and the end of its pods, before or after it."""


EndReason: TypeAlias = tuple[str, str, str]
"""Why an attempt ended: a verdict, a sentence and a reason code."""


@dataclass(frozen=True)
class DeletedPod:
    """A deleted pod, reconstructed from events.

    Attributes:
        rank: Its rank among the run's nodes.
        started_at: When its container started (Unix seconds).
        ended_at: When it was terminated; None without an event.
        end_reason: Why it ended, if its events say so.
    """

    rank: int
    uid: str
    name: str
    node: str
    started_at: float
    ended_at: float | None
    end_reason: EndReason | None


@dataclass(frozen=True)
class MissedAttempt:
    """An attempt that no process observed.

    Attributes:
        key: Identifies it, the same in every process.
        pods: Its pods by rank; empty when only Kueue has it.
        ended_at: The latest possible time of its end.
    """

    key: str
    pods: tuple[DeletedPod, ...]
    started_at: float
    ended_at: float
    end_reason: EndReason


async def find_missed_attempts(
    client: KubeClient,
    location: RunLocation,
    job: Mapping[str, Any] | None,
    present: Mapping[str, float],
) -> list[MissedAttempt]:
    """The attempts of deleted pods, oldest first; empty if this user may read neither events nor workloads.

    Args:
        client: The cluster.
        location: The run's job.
        job: Its object, if it exists.
        present: Creation times of the existing pods, by uid.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    deleted_pods = await _find_deleted_pods(client, location, job, present.keys())
    eviction = await find_eviction(client, job) if job is not None else None
    missed_attempts = group_attempts(deleted_pods, present.values(), eviction)
    if not missed_attempts and eviction is not None:
        earlier = [created for created in present.values() if created < eviction.time]
        missed_attempts = [] if earlier else [_evicted(eviction)]
    return missed_attempts


def group_attempts(
    deleted_pods: Sequence[DeletedPod], present: Iterable[float], eviction: Eviction | None
) -> list[MissedAttempt]:
    """Group deleted pods into attempts: one for each pod of node 0.

    If another pod outlived it, that pod's launcher counts the attempts, and its log has their
    records.

    Args:
        deleted_pods: The pods.
        present: Creation times of the existing pods.
        eviction: Kueue's last eviction.
    """
    first = sorted((pod for pod in deleted_pods if pod.rank == 0), key=lambda pod: pod.started_at)
    oldest = min(present, default=float("inf"))
    attempts = []
    for index, pod in enumerate(first):
        next_started_at = first[index + 1].started_at if index + 1 < len(first) else float("inf")
        previous_ended_at = first[index - 1].ended_at or pod.started_at if index else float("-inf")
        if oldest <= (pod.ended_at or pod.started_at):
            continue
        newest = {
            item.rank: item
            for item in deleted_pods
            if previous_ended_at <= item.started_at < next_started_at
        }
        pods = tuple(newest[rank] for rank in sorted(newest))
        ended_at = max([item.ended_at for item in pods if item.ended_at is not None], default=None)
        attempt_ended_at = min(next_started_at, oldest) if ended_at is None else ended_at
        attempt_ended_at = attempt_ended_at if attempt_ended_at != float("inf") else pod.started_at
        end_reason = _find_end_reason(pods, attempt_ended_at, eviction)
        attempts.append(
            MissedAttempt(f"pod-{pod.uid}", pods, pod.started_at, attempt_ended_at, end_reason)
        )
    return attempts


def _find_end_reason(
    pods: Sequence[DeletedPod], ended_at: float, eviction: Eviction | None
) -> EndReason:
    for pod in pods:
        if pod.end_reason is not None:
            return pod.end_reason
    if eviction is not None and -_EVICTION_MARGIN_S < ended_at - eviction.time < _EVICTION_MARGIN_S:
        return eviction.verdict, eviction.message, eviction.code
    return "REQUEUED", "its pods were removed", "requeued"


def _evicted(eviction: Eviction) -> MissedAttempt:
    """The attempt that only Kueue knows: the run had quota, but it is unknown whether its pods started."""
    count_text = f" {eviction.count} times, last" if eviction.count > 1 else ""
    seconds = f" after {eviction.admitted:.0f} s" if eviction.admitted else ""
    reason = f"it was requeued{count_text}{seconds}: {eviction.message}"
    key = f"eviction-{eviction.uid}-{eviction.count}"
    end_reason = (eviction.verdict, reason, eviction.code)
    return MissedAttempt(key, (), eviction.time - eviction.admitted, eviction.time, end_reason)


async def _find_deleted_pods(
    client: KubeClient, location: RunLocation, job: Mapping[str, Any] | None, present: Iterable[str]
) -> list[DeletedPod]:
    owner = (location.kind.name, location.name)
    if location.kind.name == TrainJob.name:  # its runtime's job creates them
        owner = ("Job", f"{location.name}-node-0")
    events = await _events(client, location.namespace, *owner)
    uid = str((job or {}).get("metadata", {}).get("uid", ""))
    if uid and owner[1] == location.name:
        events = [event for event in events if event["involvedObject"].get("uid") == uid]
    created_matches = (_CREATED_POD.match(str(event.get("message") or "")) for event in events)
    names = sorted({match[1] for match in created_matches if match is not None})
    if location.task is not None:
        names = [name for name in names if _rank(location.name, name) == location.task]
    semaphore = asyncio.Semaphore(_CONCURRENCY)

    async def load_pod(name: str) -> list[DeletedPod]:
        async with semaphore:
            events = await _events(client, location.namespace, "Pod", name)
        uids = {str(event["involvedObject"].get("uid")) for event in events}
        rank = _rank(location.name, name) if location.task is None else 0
        pods = [
            _build_deleted_pod(
                rank,
                name,
                uid,
                [event for event in events if event["involvedObject"].get("uid") == uid],
            )
            for uid in sorted(uids.difference(present))
        ]
        return [pod for pod in pods if pod is not None]

    return [pod for pods in await asyncio.gather(*map(load_pod, names[:_MAX_PODS])) for pod in pods]


def _build_deleted_pod(
    rank: int, name: str, uid: str, events: Sequence[Mapping[str, Any]]
) -> DeletedPod | None:
    """A pod from its events; None if its container never started."""
    start_times = [
        event
        for event in events
        if event.get("reason") == "Started"
        and "spec.containers{" in str(event["involvedObject"].get("fieldPath") or "")
    ]
    if not start_times:
        return None
    first = min(start_times, key=_time)
    node = (first.get("source") or {}).get("host") or first.get("reportingInstance") or ""
    end_times = [_time(event) for event in events if event.get("reason") == "Killing"]
    end_reason = None
    for event in events:
        reason = str(event.get("reason"))
        reason = reason.replace("TaintManagerEviction", "DeletionByTaintManager")
        if reason in END_BY_REASON:
            verdict, code = END_BY_REASON[reason]
            end_reason = (
                verdict,
                explain_reason(reason, str(event.get("message") or "")).message,
                code,
            )
    return DeletedPod(
        rank, uid, name, str(node), _time(first), max(end_times, default=None), end_reason
    )


def _rank(job: str, name: str) -> int:
    """A pod's rank from its name, as the operators name pods; 0 when the name has none."""
    match = _RANK.fullmatch(name.removeprefix(job))
    if match is None or match["master"]:
        return 0
    return int(match["index"]) if match["index"] else int(match["worker"]) + 1


def _time(event: Mapping[str, Any]) -> float:
    text = event.get("firstTimestamp") or event.get("eventTime") or event.get("lastTimestamp")
    return parse_time(text, 0.0)


async def _events(
    client: KubeClient, namespace: str, kind: str, name: str
) -> list[Mapping[str, Any]]:
    """The events about an object; empty if this user may not read events."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        response = await client.get(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector, limit="500"
        )
    except (DeniedError, NotFoundError):
        return []
    items = response.get("items") or []
    return [item for item in items if isinstance(item.get("involvedObject"), Mapping)]


# ------------------------------------------------------------------------------------------ records

OBSERVER = "events"
"""The source of these attempts' records: the cluster's events."""


def record_missed_attempts(
    bundle: BundleReader, scheduler_id: str, missed_attempts: Sequence[MissedAttempt], modes: Modes
) -> None:
    """Record missed attempts, each once, unless some of their pods were observed after all or a later attempt exists. Blocking.

    Args:
        bundle: The run.
        scheduler_id: Its job's name.
        missed_attempts: The attempts, oldest first.
        modes: Modes of new files in the bundle.
    """
    with contextlib.suppress(OSError, StorageError):  # the next observer retries
        for missed in missed_attempts:
            records = bundle.read()
            if _is_new(bundle, records, missed):
                _record_attempt(bundle, scheduler_id, missed, modes, records)


def _is_new(bundle: BundleReader, records: RunRecords, missed: MissedAttempt) -> bool:
    if any(descent.is_file(bundle.records / spool_path(pod.name, pod.uid)) for pod in missed.pods):
        return False
    claims = [attempt.claim for attempt in records.attempts if attempt.claim is not None]
    if any(claim.incarnation == missed.key for claim in claims):
        return False
    if not missed.pods:
        return not records.attempts
    start_times = [node.started_at for attempt in records.attempts for node in attempt.nodes]
    return max([*(claim.time for claim in claims), *start_times], default=0.0) < missed.started_at


def _record_attempt(
    bundle: BundleReader,
    scheduler_id: str,
    missed: MissedAttempt,
    modes: Modes,
    records: RunRecords,
) -> None:
    claim = {"scheduler_id": scheduler_id, "incarnation": missed.key, "time": missed.started_at}
    next_number = max((attempt.number for attempt in records.attempts), default=0) + 1
    number = SpooledRecords(bundle.records, modes).attempt(next_number, atomic.to_json(claim))
    for pod in missed.pods:
        path = bundle.records / "status" / f"attempt-{number}" / f"node-{pod.rank}.json"
        if not descent.is_file(path):
            container_start = ContainerStart(
                pod.rank, pod.uid, 0, pod.name, pod.node, pod.started_at
            )
            descent.create(path, atomic.to_json(container_start.record()), mode=modes.file)
    for rank in [pod.rank for pod in missed.pods] or [0]:
        mark_lost(bundle, number, rank)
    verdict, reason, code = missed.end_reason
    observation = Observation(
        time=missed.ended_at,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        attempt=number,
        state="waiting",
        verdict=verdict,
        reason=f"{reason}; its log is lost",
        reason_code=code,
    )
    bundle.add_observation(observation)


_LOG = logging.getLogger(__name__)

STREAMS = 512
"""Maximum number of pods that one process follows."""

_ACTIVE_S = 90.0
"""Seconds for which a run is followed after the last call."""
_POLL_S = 1.0
_RETRY_S = 5.0
"""Seconds before a pod that could not be read or stored is retried."""
_DONE_FILE = f"{FOLDER}/done.json"
_FIRST_CHECK_S = 5.0
"""Seconds after a job's creation in which its first pods appear, so that none can have been missed."""
_RECHECK_S = 60.0
"""Seconds before a job without pods is checked again for missed ones."""


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
        self._checked_pods: frozenset[str] | None = None
        self._checked_at = 0.0
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
        await self._record_missed(snapshot, self._modes)
        rank_pods = pod_recorder.rank_pods if self._location.native else assign_ranks
        followed_pods = []
        for rank, pod in await asyncio.to_thread(rank_pods, snapshot.pods):
            if self._is_due(pod.uid):
                spool: PodSpool
                if self._location.native:
                    common = (rank, self._modes, pod_recorder, self._location.namespace)
                    spool = await asyncio.to_thread(RawPod, self._bundle, pod, *common)
                else:
                    spool = await asyncio.to_thread(FramedPod, self._bundle, pod, self._modes)
                if self._is_due(pod.uid):
                    self._reset(pod, spool)
            followed_pods.append((self._followed_by_uid[pod.uid], pod))
        return followed_pods

    async def _record_missed(self, snapshot: RunSnapshot, modes: Modes) -> None:
        """Before the first pods are read, record the missed attempts before them."""
        uids = frozenset(pod.uid for pod in snapshot.pods)
        now = time.monotonic()
        if uids == self._checked_pods and (uids or now - self._checked_at < _RECHECK_S):
            return
        if await asyncio.to_thread(self._may_have_missed, snapshot):
            client = await self._connection.client()
            job = snapshot.job.job if snapshot.job is not None else None
            present = {pod.uid: pod.created or 0.0 for pod in snapshot.pods}
            missed_attempts = await find_missed_attempts(client, self._location, job, present)
            await asyncio.to_thread(
                record_missed_attempts, self._bundle, self._location.name, missed_attempts, modes
            )
        self._checked_pods, self._checked_at = uids, now

    def _may_have_missed(self, snapshot: RunSnapshot) -> bool:
        """Whether pods may have existed before the current ones. Blocking."""
        names = [spool_path(pod.name, pod.uid) for pod in snapshot.pods]
        if any(descent.is_file(self._bundle.records / name) for name in names):
            return False
        sent = (
            parse_timestamp(snapshot.job.job["metadata"].get("creationTimestamp"))
            if snapshot.job
            else None
        )
        first_created = min((pod.created or 0.0 for pod in snapshot.pods), default=time.time())
        return sent is None or first_created - sent > _FIRST_CHECK_S

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
