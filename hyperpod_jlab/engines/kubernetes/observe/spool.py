"""The logs and records of runs without shared storage: fetched from their pods into the records folder, by whoever looks at a run.

Any number of processes may do so at the same time (see `spool_files`). A command that looks once (``hpj show``, ``hpj logs``) gets what the pods have said by then; for
one that looks again and again (a server, ``hpj logs -f``), the pods are followed.
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
# What one pod prints, put into the run's records folder.
#
# How far it was read is kept beside. That is written after everything before it was, so whatever is broken off, and by whomever, is done again and comes out the same.

_SAVE_INTERVAL_S = 0.5
_MAX_LINE = 1 << 20


def spool_path(pod: str, uid: str) -> str:
    """The place in the records folder of what says how far a pod's log was read."""
    return f"{FOLDER}/{pod}.{uid[:8]}.json"


@dataclass(frozen=True)
class SpoolPosition:
    """How far a pod's log was put into the records folder.

    Attributes:
        cursor: Where to go on.
        attempts: The numbers of attempts here, by what the pod counts.
        said: Bytes of the file for lines that do not say where they belong.
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
        except (OSError, ValidationError):  # all is done again
            self._saved = SpoolPosition()
        self._position = self._saved

    @property
    def is_complete(self) -> bool:
        """Whether everything that can come has come."""
        return self._saved.cursor.over

    async def catch_up(self, log: PodLog) -> None:
        """Put away what is there now."""
        await self._consume(log.read(self._saved.cursor))

    async def follow(self, log: PodLog) -> None:
        """Put away what comes until nothing more can."""
        await self._consume(log.follow(self._saved.cursor))

    @abstractmethod
    def _reset(self) -> None:
        """Reading begins at what was kept."""

    @abstractmethod
    def _store(self, items: Iterable[Item]) -> bool:
        """Put items away; whether one may go on behind them, nothing of them being held. Blocking."""

    def _add_segment(self, path: str, offset: int, data: bytes, timestamp_ns: int) -> None:
        """Take bytes of a log, to be written with the next `_write`."""
        segment = LogSegment(offset, data, timestamp_ns)
        self._pending_segments.setdefault(self._bundle.records / path, []).append(segment)

    def _append(self, path: str, data: bytes, timestamp_ns: int) -> None:
        """Take bytes that do not say where they belong: behind the last ones."""
        self._add_segment(path, self._position.said, data, timestamp_ns)
        self._position = replace(self._position, said=self._position.said + len(data))

    def _set_attempt_number(self, printed_attempt: int, number: int) -> None:
        """An attempt that the pod counts as `printed_attempt` has this number here."""
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
    """A pod in which our launcher prints frames: its logs byte by byte, its records as files."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        super().__init__(bundle, pod, modes)
        self._records = SpooledRecords(bundle.records, modes)
        # What pods print beside their launchers' frames.
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
            # A line that never ends is cut: it is none of the launcher's.
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
            self._write()  # what a record tells of logs is told when they are there
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
    """A pod without our launcher: what it prints is the log of its node, one attempt for each of its containers.

    Args:
        bundle: The run.
        pod: The pod.
        rank: Its place among the run's nodes.
        modes: For what is made in the bundle.
        pod_recorder: Numbers the attempts.
        namespace: Of the pod.
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
        """The log of the container that is read, in its attempt."""
        number = self._position.attempts.get(self._restart)
        if number is None:
            number = self._pod_recorder.find_number(
                ContainerStart.from_pod(self.pod, self._rank, self._restart)
            )
            self._set_attempt_number(self._restart, number)
            self._note_other_containers(number)
        return f"logs/attempt-{number}/node-{self._rank}.rank-0.log"

    def _note_other_containers(self, attempt: int) -> None:
        """Say in the node's own log which containers of the pod are not shown."""
        pod = self.pod
        if not pod.other_containers:
            return
        text = f"hyperpod: the log of this node is the output of the container {pod.container}; for the other containers ({', '.join(pod.other_containers)}) use: kubectl logs -n {self._namespace} {pod.name} -c {pod.other_containers[0]}\n"
        with contextlib.suppress(OSError, StorageError):
            append_note(self._bundle, attempt, self._rank, text, "others")


# --------------------------------------------------------------------------------------------------
# Attempts that nobody saw: what the cluster still tells of them, written down before the records of the pods that came after.
#
# Of pods that were removed before their logs were fetched, events tell for a while (an hour by default) that they ran, where, and for how long. Kueue's workload keeps that it
# was evicted.

_CREATED_POD = re.compile(r"Created pod: ([a-z0-9][a-z0-9.-]{0,252})")
_RANK = re.compile(
    r"-(?:(?P<master>master-0)|worker-(?P<worker>\d{1,6})|(?:node-0-)?(?P<index>\d{1,6})-[a-z0-9]{5})"
)
_MAX_PODS = 64
"""Pods of one run for which the events are asked for."""
_CONCURRENCY = 8
_EVICTION_MARGIN_S = 15.0
"""Seconds after an eviction in which its pods are told to end."""


EndReason: TypeAlias = tuple[str, str, str]
"""Why something ended: a verdict, a sentence and a reason code."""


@dataclass(frozen=True)
class DeletedPod:
    """A pod that is no more, as events tell of it.

    Attributes:
        rank: Its place among the run's nodes.
        started_at: When its container began (Unix seconds).
        ended_at: When it was told to end; None when no event says so.
        end_reason: Why it ended, when its events say who ended it.
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
    """An attempt that nobody saw.

    Attributes:
        key: Tells it from all others, whichever process finds it.
        pods: Its pods, by rank; none when only Kueue tells of it.
        ended_at: When it was over, at the latest.
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
    """The attempts of pods that are no more, the oldest first; none where this user may see neither events nor workloads.

    Args:
        client: The cluster.
        location: The run's job.
        job: Its object, if it is there.
        present: When each present pod was made, by uid.

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
    """Pods that are no more as attempts: one for each pod of node 0.

    Where another pod outlived it, that pod's launcher counts the attempts, and its log has their records.

    Args:
        deleted_pods: The pods.
        present: When the pods were made that are there.
        eviction: Kueue's last one.
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
    """What Kueue alone tells: that the run had its quota, not whether its pods began."""
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
    if location.kind.name == TrainJob.name:  # its runtime's job makes them
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
    """A pod by its events; None for one whose container never began."""
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
    """A pod's place among the run's nodes by its name, as the operators make them: 0 for one that does not say."""
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
    """The events about an object; none where events may not be seen."""
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
"""Who tells of these attempts: what is left in the cluster."""


def record_missed_attempts(
    bundle: BundleReader, scheduler_id: str, missed_attempts: Sequence[MissedAttempt], modes: Modes
) -> None:
    """Write down attempts that nobody saw, unless some of their pods were seen after all, or a later attempt is there; each once. Blocking.

    Args:
        bundle: The run.
        scheduler_id: Its job's name.
        missed_attempts: The attempts, the oldest first.
        modes: For what is made in the bundle.
    """
    with contextlib.suppress(OSError, StorageError):  # the next who looks does it
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
"""Pods that one process follows at a time."""

_ACTIVE_S = 90.0
"""Seconds for which a run is followed after somebody looked at it."""
_POLL_S = 1.0
_RETRY_S = 5.0
"""Seconds after which a pod that could not be read, or written down, is tried again."""
_DONE_FILE = f"{FOLDER}/done.json"
_FIRST_CHECK_S = 5.0
"""Seconds after a job in which its first pods are made: no others were there before them."""
_RECHECK_S = 60.0
"""Seconds after which a job without pods is asked again whether it had some."""


@dataclass
class _Followed:
    """A pod that is read: whether what it had said at first has been put away, the task that goes on, and since when."""

    spool: PodSpool
    caught_up: asyncio.Event
    task: asyncio.Task[None]
    started_at: float


class RunSpool:
    """One run; `semaphore` bounds how many pods are followed."""

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
        """Why something could not be fetched; None when all is well."""

    @property
    def idle(self) -> bool:
        """Whether nothing is done for it."""
        return self._task is None or self._task.done()

    def mark_active(self) -> None:
        """Somebody looks at the run: follow its pods for a while."""
        self._active_until = time.monotonic() + _ACTIVE_S
        if self.idle:
            self._task = asyncio.create_task(self._follow(), name="hyperpod-spool")

    async def catch_up(self) -> frozenset[str] | None:
        """Wait until all that the pods have said by now is put away; of those that have ended, all that they ever said.

        Returns:
            The uids of the pods that the cluster has when nothing more is to come of any of them, else None.
        """
        followed_pods = await self._poll()
        for followed, pod in followed_pods:
            await followed.caught_up.wait()
            # A pod's phase comes some time after its container's end.
            if (pod.is_ended or pod.main.exit is not None) and not followed.task.done():
                await asyncio.wait([followed.task])
        is_complete = all(followed.spool.is_complete for followed, _ in followed_pods)
        return frozenset(pod.uid for _, pod in followed_pods) if is_complete else None

    async def close(self) -> None:
        """Follow no more."""
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
        """Begin to read the pods that are new; all pods that the cluster has, with what is read of them."""
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
        """Before pods are read for the first time: write down the attempts before them that nobody saw."""
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
        """Whether there may have been pods before those that are there. Blocking."""
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
        """Whether a pod is to be read: it is new, or reading it failed a while ago."""
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
            with contextlib.suppress(UnreachableError):  # a follower is patient
                await spool.catch_up(log)
            caught_up.set()
            if not spool.is_complete:
                async with self._semaphore:
                    await spool.follow(log)
        except (HyperpodError, OSError) as error:  # such as a full disk
            self.problem = error
            _LOG.debug("the log of %s cannot be fetched: %s", pod.name, error)
        finally:
            caught_up.set()


class Spooler:
    """All runs of one cluster that are looked at."""

    def __init__(self, connection: ClusterConnection, poller: RunPoller) -> None:
        self._connection = connection
        self._poller = poller
        self._runs: dict[str, RunSpool] = {}
        self._semaphore = asyncio.Semaphore(STREAMS)

    def follow(self, bundle: BundleReader, location: RunLocation) -> RunSpool:
        """Follow a run for a while."""
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
        """Put away what a run's pods have said by now, and follow them for a while.

        Args:
            bundle: The run.
            location: Where its job and its pods are.
            seconds: How long to wait for it at the most; then it goes on by itself.

        Returns:
            The uids of its pods when nothing is left to be fetched of any of them, else None.
        """
        run = self.follow(bundle, location)
        try:
            async with asyncio.timeout(seconds):
                return await run.catch_up()
        except TimeoutError:
            return None

    def problem(self, run_id: str) -> HyperpodError | OSError | None:
        """Why something of a run could not be fetched; None when all is well."""
        run = self._runs.get(run_id)
        return run.problem if run is not None else None

    async def close(self) -> None:
        """Follow nothing any more."""
        for run in self._runs.values():
            await run.close()
        self._runs.clear()


def is_done(bundle: BundleReader) -> bool:
    """Whether all that a run's pods ever said is there. Blocking."""
    return descent.is_file(bundle.records / _DONE_FILE)


def mark_done(bundle: BundleReader) -> None:
    """Write down that nothing more can come. Blocking."""
    with contextlib.suppress(OSError, StorageError):
        modes, path = Modes.from_bundle(bundle), bundle.records / _DONE_FILE
        modes.make(path.parent)
        descent.replace(path, atomic.to_json({"time": time.time()}), mode=modes.file)
