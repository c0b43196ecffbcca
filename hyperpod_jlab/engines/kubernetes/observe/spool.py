"""The logs and records of runs without shared storage: fetched from their pods into the records folder, by whoever looks at a run.

Any number of processes may do so at the same time (see `spool_files` and `spool_records`). Somebody who looks once (``hpj show``, ``hpj logs``) gets what there
is by then; while somebody looks again and again (a server, ``hpj logs -f``), the pods are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    NotFoundError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.cluster import Connection
from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    Cursor,
    Entry,
    Gap,
    Item,
    PodLog,
    Portion,
    Started,
    when,
)
from hyperpod_jlab.engines.kubernetes.kinds.kind import unix_time
from hyperpod_jlab.engines.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import Begun, StandIn
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod, ranked
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLook, Seen, Where
from hyperpod_jlab.engines.kubernetes.observe.spool_files import (
    FrameReader,
    LogBytes,
    Modes,
    Piece,
    RecordFile,
    SpooledLog,
    SpooledRecords,
    attempt_of,
    is_claim,
)
from hyperpod_jlab.engines.kubernetes.observe.verdicts import BY_CLUSTER
from hyperpod_jlab.engines.kubernetes.waiting.messages import told
from hyperpod_jlab.engines.kubernetes.workloads import Eviction, eviction_of
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Attempts that nobody saw, by what the cluster still tells of them.
#
# Of pods that were removed before anybody fetched what they said, events tell for a while (an hour, unless the API server was told otherwise) that they ran, where, and
# for how long. Kueue's workload keeps that it was evicted.

_MADE = re.compile(r"Created pod: ([a-z0-9][a-z0-9.-]{0,252})")
_RANK = re.compile(
    r"-(?:(?P<master>master-0)|worker-(?P<worker>\d{1,6})|(?:node-0-)?(?P<index>\d{1,6})-[a-z0-9]{5})"
)
_MOST_PODS = 64
"""Pods of one run for which the events are asked for."""
_AT_ONCE = 8


@dataclass(frozen=True)
class GonePod:
    """A pod that is no more, as events tell of it.

    Attributes:
        rank: Its place among the run's nodes.
        uid: Its own id.
        name: Its name.
        node: Where it ran.
        began: When its container began (Unix seconds).
        ended: When it was told to end; None when no event says so.
        why: A verdict, a sentence and a reason code, when its events say who ended it.
    """

    rank: int
    uid: str
    name: str
    node: str
    began: float
    ended: float | None
    why: tuple[str, str, str] | None


@dataclass(frozen=True)
class Unseen:
    """An attempt that nobody saw.

    Attributes:
        key: Tells it from all others, whoever finds it.
        pods: Its pods, by rank; none when only Kueue tells of it.
        began: When it began.
        ended: When it was over, at the latest.
        verdict: Why it ended, as a verdict.
        reason: And as a sentence.
        code: And as a word.
    """

    key: str
    pods: tuple[GonePod, ...]
    began: float
    ended: float
    verdict: str
    reason: str
    code: str


async def find_unseen(
    client: KubeClient, where: Where, job: Mapping[str, Any] | None, present: Mapping[str, float]
) -> list[Unseen]:
    """The attempts of pods that are no more, the oldest first; none where this user may see neither events nor workloads.

    Args:
        client: The cluster.
        where: The run's job.
        job: It, as far as it is there.
        present: When each pod was made that is there, by uid.

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
        over = ended if ended is not None else min(after, oldest)
        over = over if over != float("inf") else pod.began
        verdict, reason, code = _why(pods, over, eviction)
        found.append(Unseen(f"pod-{pod.uid}", pods, pod.began, over, verdict, reason, code))
    return found


_LATE = 15.0
"""Seconds after an eviction in which its pods are told to end."""


def _why(pods: Sequence[GonePod], ended: float, eviction: Eviction | None) -> tuple[str, str, str]:
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
    reason = f"it was put back into its queue{often}{seconds}: {eviction.words}"
    began = eviction.time - eviction.admitted
    key = f"eviction-{eviction.uid}-{eviction.count}"
    return Unseen(key, (), began, eviction.time, eviction.verdict, reason, eviction.code)


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
    names = names[:_MOST_PODS]
    room = asyncio.Semaphore(_AT_ONCE)

    async def ask(name: str) -> list[Mapping[str, Any]]:
        async with room:
            return await _events(client, where.namespace, "Pod", name)

    here = set(present)
    found: list[GonePod] = []
    for name, listed in zip(names, await asyncio.gather(*map(ask, names)), strict=True):
        by_uid: dict[str, list[Mapping[str, Any]]] = {}
        for one in listed:
            by_uid.setdefault(str(one["involvedObject"].get("uid")), []).append(one)
        for uid, of_pod in by_uid.items():
            rank = _rank(where.name, name) if where.task is None else 0
            pod = None if uid in here else _gone_pod(rank, name, uid, of_pod)
            found += [pod] if pod is not None else []
    return found


def _gone_pod(
    rank: int, name: str, uid: str, events: Sequence[Mapping[str, Any]]
) -> GonePod | None:
    """A pod by its events; None for one whose container never began."""
    started = [
        one
        for one in events
        if one.get("reason") == "Started" and "spec.containers{" in _field(one)
    ]
    if not started:
        return None
    ends = [_time(one) for one in events if one.get("reason") == "Killing"]
    why = None
    for one in events:
        if one.get("reason") in BY_CLUSTER or one.get("reason") == "TaintManagerEviction":
            reason = str(one["reason"]).replace("TaintManagerEviction", "DeletionByTaintManager")
            verdict, code = BY_CLUSTER[reason]
            why = (verdict, told(reason, str(one.get("message") or "")).words, code)
    first = min(started, key=_time)
    node = (first.get("source") or {}).get("host") or first.get("reportingInstance") or ""
    began = _time(first)
    return GonePod(rank, uid, name, str(node), began, max(ends) if ends else None, why)


def _rank(job: str, name: str) -> int:
    """A pod's place among the run's nodes by its name, as the operators make them: 0 for one that does not say."""
    found = _RANK.fullmatch(name.removeprefix(job))
    if found is None or found["master"]:
        return 0
    return int(found["index"]) if found["index"] else int(found["worker"]) + 1


def _field(event: Mapping[str, Any]) -> str:
    return str(event["involvedObject"].get("fieldPath") or "")


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


# --------------------------------------------------------------------------------------------------
# What one pod prints, put into the run's records folder, whoever makes what of it (see `framed_pod` and `raw_pod`).
#
# How far it was read is kept beside, as the pod log's cursor; it is written after everything before it was, so whatever is broken off, and by whomever, is done
# again and comes out the same.

FOLDER = "spool"
"""In the records folder: how far each pod's log was read, and what of logs is lost."""

_KEEP_EVERY = 0.5


def spool_name(pod: str, uid: str) -> str:
    """The place in the records folder of what says how far a pod's log was read."""
    return f"{FOLDER}/{pod}.{uid[:8]}.json"


@dataclass(frozen=True)
class Kept:
    """How far a pod's log was put into the records folder.

    Attributes:
        cursor: Where to go on.
        attempts: The numbers of attempts here, by what the pod counts.
        said: Bytes of the file for lines that say themselves nothing of where they belong.
    """

    cursor: Cursor = field(default_factory=Cursor)
    attempts: Mapping[int, int] = field(default_factory=dict)
    said: int = 0

    def to_json(self) -> bytes:
        """As it is kept."""
        attempts = {str(told): number for told, number in self.attempts.items()}
        return atomic.to_json(
            {"cursor": self.cursor.to_dict(), "attempts": attempts, "said": self.said}
        )

    @classmethod
    def read(cls, path: Path) -> Kept:
        """What was kept; nothing when it cannot be read: then all is done again."""
        try:
            found = json.loads(descent.read(path))
            attempts = {int(told): int(number) for told, number in found["attempts"].items()}
            return cls(Cursor.from_dict(found["cursor"]), attempts, int(found["said"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()


class PodSpool(ABC):
    """One pod of a run.

    Args:
        bundle: The run.
        pod: The pod.
        modes: For what is made in the bundle.
    """

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        self.pod = pod
        self._modes = modes
        self._folder = bundle.records / FOLDER
        self._logs = bundle.records / "logs"
        self._path = bundle.records / spool_name(pod.name, pod.uid)
        self._files: dict[Path, SpooledLog] = {}
        self._kept = Kept.read(self._path)
        self._kept_at = 0.0
        self._now = self._kept

    @property
    def over(self) -> bool:
        """Whether everything that can come has come."""
        return self._kept.cursor.over

    async def catch_up(self, log: PodLog) -> None:
        """Put away what is there now."""
        await self._take(log.read(self._cursor))

    async def follow(self, log: PodLog) -> None:
        """Put away what comes until nothing more can."""
        await self._take(log.follow(self._cursor))

    @abstractmethod
    def _begin(self) -> None:
        """Reading begins at what was kept."""

    @abstractmethod
    def _put(self, portion: Portion) -> bool:
        """Put a portion away; whether one may go on behind it, nothing of it being held. Blocking."""

    def _count(self, *, attempts: Mapping[int, int] | None = None, said: int | None = None) -> None:
        """Note how far one has come."""
        self._now = replace(
            self._now,
            attempts=self._now.attempts if attempts is None else attempts,
            said=self._now.said if said is None else said,
        )

    def _write(self, pieces: Mapping[Path, Sequence[Piece]]) -> None:
        """Put pieces into log files."""
        for path, found in pieces.items():
            if path not in self._files:
                self._files[path] = SpooledLog(path, self._folder, self._modes)
            self._files[path].write(found)

    @property
    def _cursor(self) -> Cursor | None:
        return self._kept.cursor if self._kept.cursor != Cursor() else None

    async def _take(self, portions: AsyncGenerator[Portion, None]) -> None:
        self._now = self._kept
        self._begin()
        try:
            async with aclosing(portions):
                async for portion in portions:
                    await asyncio.to_thread(self._step, portion)
        finally:
            await asyncio.to_thread(self._close)

    def _step(self, portion: Portion) -> None:
        clean = self._put(portion)
        self._now = replace(self._now, cursor=portion.cursor)
        if clean or portion.cursor.over:
            self._kept = self._now
            if self.over or time.monotonic() - self._kept_at > _KEEP_EVERY:
                self._keep()

    def _keep(self) -> None:
        self._kept_at = time.monotonic()
        self._modes.make(self._folder)
        descent.replace(self._path, self._kept.to_json(), mode=self._modes.file)

    def _close(self) -> None:
        if self._kept != Kept():
            self._keep()
        for file in self._files.values():
            file.close()
        self._files.clear()


# --------------------------------------------------------------------------------------------------
# A pod in which our launcher prints frames: its logs byte by byte, its records as files.

PODS_FOLDER = "pods"
"""In the folder of logs: what pods print beside their launchers' frames."""

_LONGEST_LINE = 1 << 20


class FramedPod(PodSpool):
    """See the module."""

    def __init__(self, bundle: BundleReader, pod: RunPod, modes: Modes) -> None:
        super().__init__(bundle, pod, modes)
        self._records = SpooledRecords(bundle.records, modes)
        self._beside = self._logs / PODS_FOLDER / f"{pod.name}.{pod.uid[:8]}.log"

    def _begin(self) -> None:
        self._frames = FrameReader()
        self._line: list[bytes] = []
        self._length = 0
        self._stamp = 0

    def _put(self, portion: Portion) -> bool:
        pieces: dict[Path, list[Piece]] = {}
        for stamp, line in self._lines(portion.items):
            frame = self._frames.read(line)
            if isinstance(frame, LogBytes):
                path = self._logs / self._log_name(frame)
                pieces.setdefault(path, []).append(Piece(frame.offset, frame.data, stamp))
            elif isinstance(frame, RecordFile):
                self._write(pieces)  # what a record tells of logs is told when they are there
                pieces.clear()
                self._put_record(frame)
            elif not self._frames.midway:
                said = Piece(self._now.said, line + b"\n", stamp)
                pieces.setdefault(self._beside, []).append(said)
                self._count(said=said.offset + len(said.data))
        self._write(pieces)
        return not self._line and not self._frames.midway

    def _lines(self, items: Iterable[Item]) -> Iterable[tuple[int, bytes]]:
        """Whole lines with their times; one that never ends is cut, for it is none of the launcher's."""
        for item in items:
            if not isinstance(item, Entry):
                continue
            if item.starts:
                self._line, self._length, self._stamp = [], 0, item.stamp
            self._line.append(item.data)
            self._length += len(item.data)
            if item.ends or self._length > _LONGEST_LINE:
                line, self._line, self._length = b"".join(self._line), [], 0
                yield self._stamp, line

    def _log_name(self, frame: LogBytes) -> str:
        number = self._now.attempts.get(frame.attempt, frame.attempt)
        rank = "" if frame.local_rank is None else f".rank-{frame.local_rank}"
        return f"attempt-{number}/node-{frame.node}{rank}.log"

    def _put_record(self, file: RecordFile) -> None:
        told = attempt_of(file.path)
        if told is not None and file.content is not None and is_claim(file.path):
            number = self._records.attempt(told, file.content)
            self._count(attempts={**self._now.attempts, told: number})
            return
        self._records.put(file, None if told is None else self._now.attempts.get(told, told))


# --------------------------------------------------------------------------------------------------
# What a log lacks: a line in the node's own log says so, such as of pods that were removed before all was fetched.

_CUT_OFF = b"hyperpod: this node never told its end (it was killed, or its pod removed): what it said last may be lost\n"

_LOST = b"hyperpod: the log of this node is lost: the cluster keeps little of what pods print, and it was not fetched in time\n"


def note_cut_off(bundle: BundleReader, records: RunRecords, begun: Iterable[int]) -> None:
    """Say of each node that never told its end that its logs may lack theirs, or that there are none; once, whoever comes. Blocking.

    Args:
        bundle: The run.
        records: Its records.
        begun: Ranks of the nodes whose containers have begun.
    """
    folder = bundle.records / FOLDER
    last = records.attempts[-1] if records.attempts else None
    told = {node.node_rank for node in last.nodes} if last is not None else set()
    number = last.number if last is not None else 1
    with contextlib.suppress(OSError, StorageError):
        for attempt in records.attempts:
            for node in attempt.nodes:
                if node.ended_at is None:
                    _say(bundle, folder, (attempt.number, node.node_rank), _CUT_OFF)
            if attempt is not last:
                known = {node.node_rank for node in attempt.nodes}
                for rank in sorted({*range(records.head.nodes)} - known):
                    note_lost(bundle, attempt.number, rank)
        for rank in sorted({*begun} - told):
            note_lost(bundle, number, rank)


def note_lost(bundle: BundleReader, attempt: int, rank: int) -> None:
    """Say in a node's log of an attempt that it is lost; once, whoever comes. Blocking."""
    _say(bundle, bundle.records / FOLDER, (attempt, rank), _LOST)


def note_others(bundle: BundleReader, attempt: int, rank: int, pod: RunPod, namespace: str) -> None:
    """Say in a node's log which containers of its pod are not shown; once, whoever comes. Blocking."""
    if not pod.others:
        return
    listed = ", ".join(pod.others)
    words = (
        f"hyperpod: the log of this node is what the container {pod.container} prints; those of the others ({listed}) are shown by: "
        f"kubectl logs -n {namespace} {pod.name} -c {pod.others[0]}\n"
    )
    with contextlib.suppress(OSError, StorageError):
        _say(bundle, bundle.records / FOLDER, (attempt, rank), words.encode(), "others")


def _say(
    bundle: BundleReader,
    folder: Path,
    which: tuple[int, int],
    words: bytes,
    what: str = "cut-off",
) -> None:
    attempt, rank = which
    Modes(bundle.folder, bundle.folder_mode, bundle.file_mode).make(folder)
    name = f"attempt-{attempt}.node-{rank}.{what}.json"
    if descent.create(folder / name, b"{}\n", mode=bundle.file_mode):
        _append(bundle, attempt, rank, words)


def _append(bundle: BundleReader, attempt: int, rank: int, words: bytes) -> None:
    path = bundle.records / "logs" / f"attempt-{attempt}" / f"node-{rank}.log"
    Modes(bundle.folder, bundle.folder_mode, bundle.file_mode).make(path.parent)
    descriptor = descent.open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, bundle.file_mode)
    try:
        os.write(descriptor, words)
    finally:
        os.close(descriptor)


# --------------------------------------------------------------------------------------------------
# The records of attempts that nobody saw (see `unseen`): written down by whoever finds them first, before those of the pods that came after.

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
        modes: For what is made.
    """
    with contextlib.suppress(
        OSError, StorageError
    ):  # as with all that is fetched: the next who looks does it
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
    folder = bundle.records / "status" / f"attempt-{number}"
    for pod in unseen.pods:
        path = folder / f"node-{pod.rank}.json"
        if not descent.is_file(path):
            descent.create(path, _record(pod), mode=modes.file)
    for rank in [pod.rank for pod in unseen.pods] or [0]:
        note_lost(bundle, number, rank)
    word = Observation(
        time=unseen.ended,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        attempt=number,
        state="waiting",
        verdict=unseen.verdict,
        reason=f"{unseen.reason}; its log was not kept",
        reason_code=unseen.code,
    )
    bundle.add_observation(word)


def _record(pod: GonePod) -> bytes:
    return atomic.to_json(
        {
            "format": 1,
            "node_rank": pod.rank,
            "node": pod.node,
            "host": pod.name,
            "started_at": pod.began,
            "ended_at": None,
            "exit_code": None,
            "signal": None,
            "error": None,
            "pod_uid": pod.uid,
            "restart": 0,
        }
    )


# --------------------------------------------------------------------------------------------------
# A pod without our launcher: what it prints is the log of its node, one attempt for each of its containers.

_GAPS = {
    "rotated": b"hyperpod: lines are missing here: the node had begun a new file before they were fetched\n",
    "restarted": b"hyperpod: lines are missing here: the container was started again before they were fetched\n",
    "deleted": b"hyperpod: lines may be missing here: the pod was removed before they were fetched\n",
}


class RawPod(PodSpool):
    """See the module.

    Args:
        bundle: The run.
        pod: The pod.
        rank: Its place among the run's nodes.
        modes: For what is made in the bundle.
        stand_in: Numbers the attempts.
        namespace: Where the pod is.
    """

    def __init__(
        self,
        bundle: BundleReader,
        pod: RunPod,
        rank: int,
        modes: Modes,
        stand_in: StandIn,
        namespace: str,
    ) -> None:
        super().__init__(bundle, pod, modes)
        self._bundle = bundle
        self._namespace = namespace
        self._rank = rank
        self._stand_in = stand_in

    def _begin(self) -> None:
        self._restart = self._now.cursor.restart
        self._stamp = 0

    def _put(self, portion: Portion) -> bool:
        pieces: dict[Path, list[Piece]] = {}
        for item in portion.items:
            if isinstance(item, Started):
                self._restart = item.restart
                self._count(said=0)
                self._number()
            elif isinstance(item, Entry):
                self._stamp = item.stamp
                self._add(pieces, item.data + (b"\n" if item.ends else b""))
            elif isinstance(item, Gap):
                self._add(pieces, _GAPS[item.reason])
        self._write(pieces)
        return True

    def _add(self, pieces: dict[Path, list[Piece]], data: bytes) -> None:
        path = self._logs / f"attempt-{self._number()}" / f"node-{self._rank}.rank-0.log"
        pieces.setdefault(path, []).append(Piece(self._now.said, data, self._stamp))
        self._count(said=self._now.said + len(data))

    def _number(self) -> int:
        """The attempt of the container that is read."""
        number = self._now.attempts.get(self._restart)
        if number is None:
            number = self._stand_in.number(Begun.of(self.pod, self._rank, self._restart))
            self._count(attempts={**self._now.attempts, self._restart: number})
            note_others(self._bundle, number, self._rank, self.pod, self._namespace)
        return number


_LOG = logging.getLogger(__name__)

STREAMS = 512
"""Pods that one process follows at a time."""

_ATTENDED = 90.0
"""Seconds for which a run is followed after somebody looked at it."""
_LOOK_EVERY = 1.0
_TRY_AGAIN = 5.0
"""Seconds after which a pod that could not be read, or written down, is tried again."""
_DONE = "done.json"
_AT_FIRST = 5.0
"""Seconds after a job in which its first pods are made: no others were there before them."""
_ASK_AGAIN = 60.0
"""Seconds after which a job without pods is asked again whether it had some."""


@dataclass
class _Followed:
    """A pod that is read: whether what there was at first has been put away, the task that goes on, and since when."""

    spool: PodSpool
    caught_up: asyncio.Event
    task: asyncio.Task[None]
    began: float


class RunSpool:
    """One run.

    Args:
        bundle: The run.
        where: Where its job and its pods are.
        connection: The cluster.
        look: Tells which pods it has.
        room: Bounds how many pods are followed.
    """

    def __init__(
        self,
        bundle: BundleReader,
        where: Where,
        connection: Connection,
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
        self._wanted_until = time.monotonic() + _ATTENDED
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
            ended = pod.ended or pod.main.exit is not None
            if ended and not followed.task.done():
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
        """Begin to read the pods that are new; all pods that the cluster has, with who reads them."""
        if self._modes is None:
            self._modes = await asyncio.to_thread(modes_of, self._bundle)
        modes = self._modes
        found = []
        seen = (await self._looks.look([self._where]))[self._where.run_id]
        await self._note_unseen(seen, modes)
        for rank, pod in await asyncio.to_thread(self._ranked, seen.pods, modes):
            if self._is_due(pod.uid):
                spool = await asyncio.to_thread(self._spool_of, pod, rank, modes)
                if self._is_due(pod.uid):
                    self._begin(pod, spool)
            found.append((self._followed[pod.uid], pod))
        return found

    async def _note_unseen(self, seen: Seen, modes: Modes) -> None:
        """Before pods are read for the first time: write down the attempts before them that nobody saw."""
        uids = frozenset(pod.uid for pod in seen.pods)
        now = time.monotonic()
        if uids == self._judged and (uids or now - self._judged_at < _ASK_AGAIN):
            return
        if not await asyncio.to_thread(self._may_be_later, seen):
            self._judged, self._judged_at = uids, now
            return
        client = await self._connection.client()
        job = seen.job.job if seen.job is not None else None
        present = {pod.uid: pod.created or 0.0 for pod in seen.pods}
        found = await find_unseen(client, self._where, job, present)
        await asyncio.to_thread(note_unseen, self._bundle, self._where.name, found, modes)
        self._judged, self._judged_at = uids, now

    def _may_be_later(self, seen: Seen) -> bool:
        """Whether there may have been pods before those that are there. Blocking."""
        if any(
            descent.is_file(self._bundle.records / spool_name(pod.name, pod.uid))
            for pod in seen.pods
        ):
            return False
        sent = when(seen.job.job["metadata"].get("creationTimestamp")) if seen.job else None
        made = min((pod.created or 0.0 for pod in seen.pods), default=time.time())
        return sent is None or made - sent > _AT_FIRST

    def _ranked(self, pods: Sequence[RunPod], modes: Modes) -> list[tuple[int, RunPod]]:
        if self._where.native:
            return StandIn(self._bundle, self._where.name, modes).ranked(pods)
        return ranked(pods)

    def _is_due(self, uid: str) -> bool:
        """Whether a pod is to be read: it is new, or reading it failed a while ago."""
        known = self._followed.get(uid)
        if known is None:
            return True
        failed = known.task.done() and not known.spool.over
        return failed and time.monotonic() - known.began > _TRY_AGAIN

    def _spool_of(self, pod: RunPod, rank: int, modes: Modes) -> PodSpool:
        if self._where.native:
            stand_in = StandIn(self._bundle, self._where.name, modes)
            namespace = self._where.namespace
            return RawPod(self._bundle, pod, rank, modes, stand_in, namespace)
        return FramedPod(self._bundle, pod, modes)

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
    """All runs of one cluster that are looked at.

    Args:
        connection: The cluster.
        look: Tells a run's pods.
    """

    def __init__(self, connection: Connection, look: RunLook) -> None:
        self._connection = connection
        self._looks = look
        self._runs: dict[str, RunSpool] = {}
        self._room = asyncio.Semaphore(STREAMS)

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

    def follow(self, bundle: BundleReader, where: Where) -> RunSpool:
        """Follow a run for a while."""
        for run_id in [run_id for run_id, run in self._runs.items() if run.idle]:
            del self._runs[run_id]
        if bundle.run_id not in self._runs:
            self._runs[bundle.run_id] = RunSpool(
                bundle, where, self._connection, self._looks, self._room
            )
        run = self._runs[bundle.run_id]
        run.want()
        return run

    async def close(self) -> None:
        """Follow nothing any more."""
        for run in self._runs.values():
            await run.close()
        self._runs.clear()


def is_done(bundle: BundleReader) -> bool:
    """Whether all that a run's pods ever said is there. Blocking."""
    return descent.is_file(bundle.records / FOLDER / _DONE)


def note_done(bundle: BundleReader) -> None:
    """Write down that nothing more can come. Blocking."""
    with contextlib.suppress(OSError, StorageError):
        modes = modes_of(bundle)
        modes.make(bundle.records / FOLDER)
        descent.replace(
            bundle.records / FOLDER / _DONE, atomic.to_json({"time": time.time()}), mode=modes.file
        )


def modes_of(bundle: BundleReader) -> Modes:
    """The modes of what is made in a bundle of this user's. Blocking.

    Raises:
        StorageDeniedError: It is another user's: nothing is written there.
    """
    bundle.check_writable(bundle.folder)
    return Modes(bundle.folder, bundle.folder_mode, bundle.file_mode)
