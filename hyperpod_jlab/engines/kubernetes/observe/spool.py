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
    Item,
    PodLog,
    PodLogCursor,
    PodLogGap,
    PodLogLine,
    Portion,
    Started,
    when,
)
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import unix_time
from hyperpod_jlab.engines.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import Begun, NativeRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod, ranked
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLook, RunSnapshot, Where
from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    FOLDER,
    FrameReader,
    LogBytes,
    Modes,
    Piece,
    RecordFile,
    SpooledLog,
    SpooledRecords,
    attempt_of,
    note_in_log,
    note_lost,
)
from hyperpod_jlab.engines.kubernetes.observe.verdicts import BY_CLUSTER
from hyperpod_jlab.engines.kubernetes.waiting.messages import told
from hyperpod_jlab.engines.kubernetes.workloads import Eviction, eviction_of
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# What one pod prints, put into the run's records folder.
#
# How far it was read is kept beside. That is written after everything before it was, so whatever is broken off, and by whomever, is done again and comes out the same.

_KEEP_EVERY = 0.5
_LONGEST_LINE = 1 << 20


def spool_name(pod: str, uid: str) -> str:
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


_KEPT = TypeAdapter(SpoolPosition)


class PodSpool(ABC):
    """One pod of a run."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        self.pod = pod
        self._bundle = bundle
        self._modes = modes
        self._path = bundle.records / spool_name(pod.name, pod.uid)
        self._files: dict[Path, SpooledLog] = {}
        self._pieces: dict[Path, list[Piece]] = {}
        self._kept_at = 0.0
        try:
            self._kept = _KEPT.validate_json(descent.read(self._path))
        except (OSError, ValidationError):  # all is done again
            self._kept = SpoolPosition()
        self._now = self._kept

    @property
    def over(self) -> bool:
        """Whether everything that can come has come."""
        return self._kept.cursor.over

    async def catch_up(self, log: PodLog) -> None:
        """Put away what is there now."""
        await self._take(log.read(self._kept.cursor))

    async def follow(self, log: PodLog) -> None:
        """Put away what comes until nothing more can."""
        await self._take(log.follow(self._kept.cursor))

    @abstractmethod
    def _begin(self) -> None:
        """Reading begins at what was kept."""

    @abstractmethod
    def _put(self, items: Iterable[Item]) -> bool:
        """Put items away; whether one may go on behind them, nothing of them being held. Blocking."""

    def _add(self, path: str, offset: int, data: bytes, stamp: int) -> None:
        """Take bytes of a log, to be written with the next `_write`."""
        piece = Piece(offset, data, stamp)
        self._pieces.setdefault(self._bundle.records / path, []).append(piece)

    def _say(self, path: str, data: bytes, stamp: int) -> None:
        """Take bytes that do not say where they belong: behind the last ones."""
        self._add(path, self._now.said, data, stamp)
        self._now = replace(self._now, said=self._now.said + len(data))

    def _number(self, told: int, number: int) -> None:
        """An attempt that the pod counts as `told` has this number here."""
        self._now = replace(self._now, attempts={**self._now.attempts, told: number})

    def _write(self) -> None:
        for path, found in self._pieces.items():
            if path not in self._files:
                claims = self._bundle.records / FOLDER
                self._files[path] = SpooledLog(path, claims, self._modes)
            self._files[path].write(found)
        self._pieces.clear()

    async def _take(self, portions: AsyncGenerator[Portion, None]) -> None:
        self._now = self._kept
        self._pieces.clear()
        self._begin()
        try:
            async with aclosing(portions):
                async for portion in portions:
                    await asyncio.to_thread(self._step, portion)
        finally:
            await asyncio.to_thread(self._close)

    def _step(self, portion: Portion) -> None:
        clean = self._put(portion.items)
        self._write()
        self._now = replace(self._now, cursor=portion.cursor)
        if clean or portion.cursor.over:
            self._kept = self._now
            if self.over or time.monotonic() - self._kept_at > _KEEP_EVERY:
                self._keep()

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        self._modes.make(self._path.parent)
        descent.replace(self._path, _KEPT.dump_json(self._kept) + b"\n", mode=self._modes.file)

    def _close(self) -> None:
        if self._kept != SpoolPosition():
            self._keep()
        for file in self._files.values():
            file.close()
        self._files.clear()


class FramedPod(PodSpool):
    """A pod in which our launcher prints frames: its logs byte by byte, its records as files."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        super().__init__(bundle, pod, modes)
        self._records = SpooledRecords(bundle.records, modes)
        # What pods print beside their launchers' frames.
        self._beside = f"logs/pods/{pod.name}.{pod.uid[:8]}.log"

    def _begin(self) -> None:
        self._frames = FrameReader()
        self._line = bytearray()
        self._stamp = 0

    def _put(self, items: Iterable[Item]) -> bool:
        for item in items:
            if not isinstance(item, PodLogLine):
                continue
            if item.starts:
                self._line, self._stamp = bytearray(), item.stamp
            self._line += item.data
            # A line that never ends is cut: it is none of the launcher's.
            if item.ends or len(self._line) > _LONGEST_LINE:
                line, self._line = bytes(self._line), bytearray()
                self._put_line(line)
        return not self._line and not self._frames.midway

    def _put_line(self, line: bytes) -> None:
        frame = self._frames.read(line)
        if isinstance(frame, LogBytes):
            number = self._now.attempts.get(frame.attempt, frame.attempt)
            path = replace(frame, attempt=number).path
            self._add(path, frame.offset, frame.data, self._stamp)
        elif isinstance(frame, RecordFile):
            self._write()  # what a record tells of logs is told when they are there
            self._put_record(frame)
        elif not self._frames.midway:
            self._say(self._beside, line + b"\n", self._stamp)

    def _put_record(self, file: RecordFile) -> None:
        told = attempt_of(file.path)
        if told is None:
            self._records.put(file, None)
        elif file.path.endswith("/claim.json"):
            self._number(told, self._records.attempt(told, file.content))
        else:
            self._records.put(file, self._now.attempts.get(told, told))


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
        stand_in: Numbers the attempts.
        namespace: Of the pod.
    """

    def __init__(
        self,
        bundle: BundleReader,
        pod: RunPod,
        rank: int,
        modes: Modes,
        stand_in: NativeRecorder,
        namespace: str,
    ) -> None:
        super().__init__(bundle, pod, modes)
        self._rank = rank
        self._stand_in = stand_in
        self._namespace = namespace

    def _begin(self) -> None:
        self._restart = self._now.cursor.restart
        self._stamp = 0

    def _put(self, items: Iterable[Item]) -> bool:
        for item in items:
            if isinstance(item, Started):
                self._restart = item.restart
                self._now = replace(self._now, said=0)
                self._log()
            elif isinstance(item, PodLogLine):
                self._stamp = item.stamp
                self._say(self._log(), item.data + b"\n" * item.ends, item.stamp)
            elif isinstance(item, PodLogGap):
                self._say(self._log(), _GAPS[item.reason], self._stamp)
        return True

    def _log(self) -> str:
        """The log of the container that is read, in its attempt."""
        number = self._now.attempts.get(self._restart)
        if number is None:
            number = self._stand_in.number(Begun.of(self.pod, self._rank, self._restart))
            self._number(self._restart, number)
            self._note_others(number)
        return f"logs/attempt-{number}/node-{self._rank}.rank-0.log"

    def _note_others(self, attempt: int) -> None:
        """Say in the node's own log which containers of the pod are not shown."""
        pod = self.pod
        if not pod.others:
            return
        words = f"hyperpod: the log of this node is the output of the container {pod.container}; for the other containers ({', '.join(pod.others)}) use: kubectl logs -n {self._namespace} {pod.name} -c {pod.others[0]}\n"
        with contextlib.suppress(OSError, StorageError):
            note_in_log(self._bundle, attempt, self._rank, words, "others")


# --------------------------------------------------------------------------------------------------
# Attempts that nobody saw: what the cluster still tells of them, written down before the records of the pods that came after.
#
# Of pods that were removed before their logs were fetched, events tell for a while (an hour by default) that they ran, where, and for how long. Kueue's workload keeps that it
# was evicted.

_MADE = re.compile(r"Created pod: ([a-z0-9][a-z0-9.-]{0,252})")
_RANK = re.compile(
    r"-(?:(?P<master>master-0)|worker-(?P<worker>\d{1,6})|(?:node-0-)?(?P<index>\d{1,6})-[a-z0-9]{5})"
)
_MOST_PODS = 64
"""Pods of one run for which the events are asked for."""
_AT_ONCE = 8
_LATE = 15.0
"""Seconds after an eviction in which its pods are told to end."""


Why: TypeAlias = tuple[str, str, str]
"""Why something ended: a verdict, a sentence and a reason code."""


@dataclass(frozen=True)
class GonePod:
    """A pod that is no more, as events tell of it.

    Attributes:
        rank: Its place among the run's nodes.
        began: When its container began (Unix seconds).
        ended: When it was told to end; None when no event says so.
        why: Why it ended, when its events say who ended it.
    """

    rank: int
    uid: str
    name: str
    node: str
    began: float
    ended: float | None
    why: Why | None


@dataclass(frozen=True)
class Unseen:
    """An attempt that nobody saw.

    Attributes:
        key: Tells it from all others, whichever process finds it.
        pods: Its pods, by rank; none when only Kueue tells of it.
        ended: When it was over, at the latest.
    """

    key: str
    pods: tuple[GonePod, ...]
    began: float
    ended: float
    why: Why


async def find_unseen(
    client: KubeClient, where: Where, job: Mapping[str, Any] | None, present: Mapping[str, float]
) -> list[Unseen]:
    """The attempts of pods that are no more, the oldest first; none where this user may see neither events nor workloads.

    Args:
        client: The cluster.
        where: The run's job.
        job: Its object, if it is there.
        present: When each present pod was made, by uid.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    gone = await _gone_pods(client, where, job, present.keys())
    eviction = await eviction_of(client, job) if job is not None else None
    found = attempts_of(gone, present.values(), eviction)
    if not found and eviction is not None:
        earlier = [made for made in present.values() if made < eviction.time]
        found = [] if earlier else [_evicted(eviction)]
    return found


def attempts_of(
    gone: Sequence[GonePod], present: Iterable[float], eviction: Eviction | None
) -> list[Unseen]:
    """Pods that are no more as attempts: one for each pod of node 0.

    Where another pod outlived it, that pod's launcher counts the attempts, and its log has their records.

    Args:
        gone: The pods.
        present: When the pods were made that are there.
        eviction: Kueue's last one.
    """
    first = sorted((pod for pod in gone if pod.rank == 0), key=lambda pod: pod.began)
    oldest = min(present, default=float("inf"))
    found = []
    for place, pod in enumerate(first):
        after = first[place + 1].began if place + 1 < len(first) else float("inf")
        before = first[place - 1].ended or pod.began if place else float("-inf")
        if oldest <= (pod.ended or pod.began):
            continue
        newest = {one.rank: one for one in gone if before <= one.began < after}
        pods = tuple(newest[rank] for rank in sorted(newest))
        ended = max([one.ended for one in pods if one.ended is not None], default=None)
        over = min(after, oldest) if ended is None else ended
        over = over if over != float("inf") else pod.began
        why = _why(pods, over, eviction)
        found.append(Unseen(f"pod-{pod.uid}", pods, pod.began, over, why))
    return found


def _why(pods: Sequence[GonePod], ended: float, eviction: Eviction | None) -> Why:
    for pod in pods:
        if pod.why is not None:
            return pod.why
    if eviction is not None and -_LATE < ended - eviction.time < _LATE:
        return eviction.verdict, eviction.words, eviction.code
    return "REQUEUED", "its pods were removed", "requeued"


def _evicted(eviction: Eviction) -> Unseen:
    """What Kueue alone tells: that the run had its quota, not whether its pods began."""
    often = f" {eviction.count} times, last" if eviction.count > 1 else ""
    seconds = f" after {eviction.admitted:.0f} s" if eviction.admitted else ""
    reason = f"it was requeued{often}{seconds}: {eviction.words}"
    key = f"eviction-{eviction.uid}-{eviction.count}"
    why = (eviction.verdict, reason, eviction.code)
    return Unseen(key, (), eviction.time - eviction.admitted, eviction.time, why)


async def _gone_pods(
    client: KubeClient, where: Where, job: Mapping[str, Any] | None, present: Iterable[str]
) -> list[GonePod]:
    owner = (where.kind.name, where.name)
    if where.kind.name == TrainJob.name:  # its runtime's job makes them
        owner = ("Job", f"{where.name}-node-0")
    events = await _events(client, where.namespace, *owner)
    uid = str((job or {}).get("metadata", {}).get("uid", ""))
    if uid and owner[1] == where.name:
        events = [one for one in events if one["involvedObject"].get("uid") == uid]
    said = (_MADE.match(str(one.get("message") or "")) for one in events)
    names = sorted({found[1] for found in said if found is not None})
    if where.task is not None:
        names = [name for name in names if _rank(where.name, name) == where.task]
    room = asyncio.Semaphore(_AT_ONCE)

    async def ask(name: str) -> list[GonePod]:
        async with room:
            listed = await _events(client, where.namespace, "Pod", name)
        uids = {str(one["involvedObject"].get("uid")) for one in listed}
        rank = _rank(where.name, name) if where.task is None else 0
        found = [
            _gone_pod(
                rank, name, uid, [one for one in listed if one["involvedObject"].get("uid") == uid]
            )
            for uid in sorted(uids.difference(present))
        ]
        return [pod for pod in found if pod is not None]

    return [pod for pods in await asyncio.gather(*map(ask, names[:_MOST_PODS])) for pod in pods]


def _gone_pod(
    rank: int, name: str, uid: str, events: Sequence[Mapping[str, Any]]
) -> GonePod | None:
    """A pod by its events; None for one whose container never began."""
    started = [
        one
        for one in events
        if one.get("reason") == "Started"
        and "spec.containers{" in str(one["involvedObject"].get("fieldPath") or "")
    ]
    if not started:
        return None
    first = min(started, key=_time)
    node = (first.get("source") or {}).get("host") or first.get("reportingInstance") or ""
    ends = [_time(one) for one in events if one.get("reason") == "Killing"]
    why = None
    for one in events:
        reason = str(one.get("reason"))
        reason = reason.replace("TaintManagerEviction", "DeletionByTaintManager")
        if reason in BY_CLUSTER:
            verdict, code = BY_CLUSTER[reason]
            why = (verdict, told(reason, str(one.get("message") or "")).words, code)
    return GonePod(rank, uid, name, str(node), _time(first), max(ends, default=None), why)


def _rank(job: str, name: str) -> int:
    """A pod's place among the run's nodes by its name, as the operators make them: 0 for one that does not say."""
    found = _RANK.fullmatch(name.removeprefix(job))
    if found is None or found["master"]:
        return 0
    return int(found["index"]) if found["index"] else int(found["worker"]) + 1


def _time(event: Mapping[str, Any]) -> float:
    text = event.get("firstTimestamp") or event.get("eventTime") or event.get("lastTimestamp")
    return unix_time(text, 0.0)


async def _events(
    client: KubeClient, namespace: str, kind: str, name: str
) -> list[Mapping[str, Any]]:
    """The events about an object; none where events may not be seen."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    try:
        answer = await client.get(
            f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector, limit="500"
        )
    except (DeniedError, NotFoundError):
        return []
    found = answer.get("items") or []
    return [one for one in found if isinstance(one.get("involvedObject"), Mapping)]


# ------------------------------------------------------------------------------------------ records

OBSERVER = "events"
"""Who tells of these attempts: what is left in the cluster."""


def note_unseen(
    bundle: BundleReader, scheduler_id: str, found: Sequence[Unseen], modes: Modes
) -> None:
    """Write down attempts that nobody saw, unless some of their pods were seen after all, or a later attempt is there; each once. Blocking.

    Args:
        bundle: The run.
        scheduler_id: Its job's name.
        found: The attempts, the oldest first.
        modes: For what is made in the bundle.
    """
    with contextlib.suppress(OSError, StorageError):  # the next who looks does it
        for unseen in found:
            records = bundle.read()
            if _is_new(bundle, records, unseen):
                _note(bundle, scheduler_id, unseen, modes, records)


def _is_new(bundle: BundleReader, records: RunRecords, unseen: Unseen) -> bool:
    if any(descent.is_file(bundle.records / spool_name(pod.name, pod.uid)) for pod in unseen.pods):
        return False
    claims = [one.claim for one in records.attempts if one.claim is not None]
    if any(claim.incarnation == unseen.key for claim in claims):
        return False
    if not unseen.pods:
        return not records.attempts
    starts = [node.started_at for one in records.attempts for node in one.nodes]
    return max([*(claim.time for claim in claims), *starts], default=0.0) < unseen.began


def _note(
    bundle: BundleReader, scheduler_id: str, unseen: Unseen, modes: Modes, records: RunRecords
) -> None:
    claim = {"scheduler_id": scheduler_id, "incarnation": unseen.key, "time": unseen.began}
    told = max((one.number for one in records.attempts), default=0) + 1
    number = SpooledRecords(bundle.records, modes).attempt(told, atomic.to_json(claim))
    for pod in unseen.pods:
        path = bundle.records / "status" / f"attempt-{number}" / f"node-{pod.rank}.json"
        if not descent.is_file(path):
            begun = Begun(pod.rank, pod.uid, 0, pod.name, pod.node, pod.began)
            descent.create(path, atomic.to_json(begun.record()), mode=modes.file)
    for rank in [pod.rank for pod in unseen.pods] or [0]:
        note_lost(bundle, number, rank)
    verdict, reason, code = unseen.why
    word = Observation(
        time=unseen.ended,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        attempt=number,
        state="waiting",
        verdict=verdict,
        reason=f"{reason}; its log is lost",
        reason_code=code,
    )
    bundle.add_observation(word)


_LOG = logging.getLogger(__name__)

STREAMS = 512
"""Pods that one process follows at a time."""

_ACTIVE_SECONDS = 90.0
"""Seconds for which a run is followed after somebody looked at it."""
_LOOK_EVERY = 1.0
_TRY_AGAIN = 5.0
"""Seconds after which a pod that could not be read, or written down, is tried again."""
_DONE = f"{FOLDER}/done.json"
_AT_FIRST = 5.0
"""Seconds after a job in which its first pods are made: no others were there before them."""
_ASK_AGAIN = 60.0
"""Seconds after which a job without pods is asked again whether it had some."""


@dataclass
class _Followed:
    """A pod that is read: whether what it had said at first has been put away, the task that goes on, and since when."""

    spool: PodSpool
    caught_up: asyncio.Event
    task: asyncio.Task[None]
    began: float


class RunSpool:
    """One run; `room` bounds how many pods are followed."""

    def __init__(
        self,
        bundle: BundleReader,
        where: Where,
        connection: ClusterConnection,
        look: RunLook,
        room: asyncio.Semaphore,
    ) -> None:
        self._bundle = bundle
        self._where = where
        self._connection = connection
        self._looks = look
        self._room = room
        self._modes: Modes | None = None
        self._followed: dict[str, _Followed] = {}
        self._task: asyncio.Task[None] | None = None
        self._wanted_until = 0.0
        self._judged: frozenset[str] | None = None
        self._judged_at = 0.0
        self.trouble: HyperpodError | OSError | None = None
        """Why something could not be fetched; None when all is well."""

    @property
    def idle(self) -> bool:
        """Whether nothing is done for it."""
        return self._task is None or self._task.done()

    def want(self) -> None:
        """Somebody looks at the run: follow its pods for a while."""
        self._wanted_until = time.monotonic() + _ACTIVE_SECONDS
        if self.idle:
            self._task = asyncio.create_task(self._follow(), name="hyperpod-spool")

    async def catch_up(self) -> frozenset[str] | None:
        """Wait until all that the pods have said by now is put away; of those that have ended, all that they ever said.

        Returns:
            The uids of the pods that the cluster has when nothing more is to come of any of them, else None.
        """
        found = await self._look()
        for followed, pod in found:
            await followed.caught_up.wait()
            # A pod's phase comes some time after its container's end.
            if (pod.ended or pod.main.exit is not None) and not followed.task.done():
                await asyncio.wait([followed.task])
        over = all(followed.spool.over for followed, _ in found)
        return frozenset(pod.uid for _, pod in found) if over else None

    async def close(self) -> None:
        """Follow no more."""
        tasks = [one.task for one in self._followed.values()]
        tasks += [self._task] if self._task is not None else []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _follow(self) -> None:
        try:
            while time.monotonic() < self._wanted_until:
                with contextlib.suppress(HyperpodError):
                    await self._look()
                await asyncio.sleep(_LOOK_EVERY)
        finally:
            for one in self._followed.values():
                one.task.cancel()
            self._followed.clear()

    async def _look(self) -> list[tuple[_Followed, RunPod]]:
        """Begin to read the pods that are new; all pods that the cluster has, with what is read of them."""
        if self._modes is None:
            self._modes = await asyncio.to_thread(Modes.of, self._bundle)
        stand_in = NativeRecorder(self._bundle, self._where.name)
        seen = (await self._looks.look([self._where]))[self._where.run_id]
        await self._note_unseen(seen, self._modes)
        rank_pods = stand_in.ranked if self._where.native else ranked
        found = []
        for rank, pod in await asyncio.to_thread(rank_pods, seen.pods):
            if self._is_due(pod.uid):
                spool: PodSpool
                if self._where.native:
                    of_pod = (rank, self._modes, stand_in, self._where.namespace)
                    spool = await asyncio.to_thread(RawPod, self._bundle, pod, *of_pod)
                else:
                    spool = await asyncio.to_thread(FramedPod, self._bundle, pod, self._modes)
                if self._is_due(pod.uid):
                    self._begin(pod, spool)
            found.append((self._followed[pod.uid], pod))
        return found

    async def _note_unseen(self, seen: RunSnapshot, modes: Modes) -> None:
        """Before pods are read for the first time: write down the attempts before them that nobody saw."""
        uids = frozenset(pod.uid for pod in seen.pods)
        now = time.monotonic()
        if uids == self._judged and (uids or now - self._judged_at < _ASK_AGAIN):
            return
        if await asyncio.to_thread(self._may_be_later, seen):
            client = await self._connection.client()
            job = seen.job.job if seen.job is not None else None
            present = {pod.uid: pod.created or 0.0 for pod in seen.pods}
            found = await find_unseen(client, self._where, job, present)
            await asyncio.to_thread(note_unseen, self._bundle, self._where.name, found, modes)
        self._judged, self._judged_at = uids, now

    def _may_be_later(self, seen: RunSnapshot) -> bool:
        """Whether there may have been pods before those that are there. Blocking."""
        names = [spool_name(pod.name, pod.uid) for pod in seen.pods]
        if any(descent.is_file(self._bundle.records / name) for name in names):
            return False
        sent = when(seen.job.job["metadata"].get("creationTimestamp")) if seen.job else None
        made = min((pod.created or 0.0 for pod in seen.pods), default=time.time())
        return sent is None or made - sent > _AT_FIRST

    def _is_due(self, uid: str) -> bool:
        """Whether a pod is to be read: it is new, or reading it failed a while ago."""
        known = self._followed.get(uid)
        if known is None:
            return True
        failed = known.task.done() and not known.spool.over
        return failed and time.monotonic() - known.began > _TRY_AGAIN

    def _begin(self, pod: RunPod, spool: PodSpool) -> None:
        event = asyncio.Event()
        task = asyncio.create_task(self._read(spool, pod, event), name="hyperpod-spool-pod")
        self._followed[pod.uid] = _Followed(spool, event, task, time.monotonic())

    async def _read(self, spool: PodSpool, pod: RunPod, caught_up: asyncio.Event) -> None:
        try:
            if spool.over:
                return
            client = await self._connection.client()
            news = await self._looks.news(self._where, pod.name)
            log = PodLog(client, self._where.namespace, pod.name, pod.container, news=news)
            with contextlib.suppress(UnreachableError):  # a follower is patient
                await spool.catch_up(log)
            caught_up.set()
            if not spool.over:
                async with self._room:
                    await spool.follow(log)
        except (HyperpodError, OSError) as error:  # such as a full disk
            self.trouble = error
            _LOG.debug("the log of %s cannot be fetched: %s", pod.name, error)
        finally:
            caught_up.set()


class Spooler:
    """All runs of one cluster that are looked at."""

    def __init__(self, connection: ClusterConnection, look: RunLook) -> None:
        self._connection = connection
        self._looks = look
        self._runs: dict[str, RunSpool] = {}
        self._room = asyncio.Semaphore(STREAMS)

    def follow(self, bundle: BundleReader, where: Where) -> RunSpool:
        """Follow a run for a while."""
        self._runs = {run_id: run for run_id, run in self._runs.items() if not run.idle}
        if bundle.run_id not in self._runs:
            self._runs[bundle.run_id] = RunSpool(
                bundle, where, self._connection, self._looks, self._room
            )
        run = self._runs[bundle.run_id]
        run.want()
        return run

    async def catch_up(
        self, bundle: BundleReader, where: Where, seconds: float
    ) -> frozenset[str] | None:
        """Put away what a run's pods have said by now, and follow them for a while.

        Args:
            bundle: The run.
            where: Where its job and its pods are.
            seconds: How long to wait for it at the most; then it goes on by itself.

        Returns:
            The uids of its pods when nothing is left to be fetched of any of them, else None.
        """
        run = self.follow(bundle, where)
        try:
            async with asyncio.timeout(seconds):
                return await run.catch_up()
        except TimeoutError:
            return None

    def trouble(self, run_id: str) -> HyperpodError | OSError | None:
        """Why something of a run could not be fetched; None when all is well."""
        run = self._runs.get(run_id)
        return run.trouble if run is not None else None

    async def close(self) -> None:
        """Follow nothing any more."""
        for run in self._runs.values():
            await run.close()
        self._runs.clear()


def is_done(bundle: BundleReader) -> bool:
    """Whether all that a run's pods ever said is there. Blocking."""
    return descent.is_file(bundle.records / _DONE)


def note_done(bundle: BundleReader) -> None:
    """Write down that nothing more can come. Blocking."""
    with contextlib.suppress(OSError, StorageError):
        modes, path = Modes.of(bundle), bundle.records / _DONE
        modes.make(path.parent)
        descent.replace(path, atomic.to_json({"time": time.time()}), mode=modes.file)
