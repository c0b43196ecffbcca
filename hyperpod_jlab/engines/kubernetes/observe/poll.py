"""Looks at runs in the cluster: the object and the pods of each.

Somebody who asks once for few runs gets just these; for a server, and for many runs, lists are watched, one of each kind and one of pods in a namespace, whoever
asks. A run's object may hold its code, so that lists are no small thing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import DeniedError, NotFoundError
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.engines.kubernetes.api.pod_log import PodNews
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind, jobs_path
from hyperpod_jlab.engines.kubernetes.observe.pods import (
    REDUCE,
    JobRow,
    RunPod,
    Tasks,
    in_order,
    place_in,
    run_pod,
)
from hyperpod_jlab.engines.kubernetes.submit.companions import is_kept
from hyperpod_jlab.engines.kubernetes.submit.sent import adopted_uid, read_sent
from hyperpod_jlab.storage.records import BundleReader

_FEW = 4
_FRESH = 1.0
"""Seconds for which what was seen of a run serves whoever asks."""
_OLDEST = 15.0
"""Seconds for which what a watch knew last will do while it is broken."""
_ACTIVE_SECONDS = 180.0
_GONE = 60.0
"""Seconds for which a job that is not there is not asked for again."""
_AT_ONCE = 16
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Where:
    """Where a run's object is.

    Attributes:
        run_id: The run.
        kind: The object's kind.
        namespace: Its namespace.
        name: Its name.
        uid: Its own id, for an adopted job: a later object of the same name is another one. None for those that have their run's label.
        native: Whether its pods run without our launcher.
        accompanied: Whether objects stand beside it that go when it has ended.
        array: The indices of an array, or of the array that a task belongs to; None for any other run.
        task: The index in the array's Job, for a task.
    """

    run_id: str
    kind: Kind
    namespace: str
    name: str
    uid: str | None
    native: bool = False
    accompanied: bool = False
    array: str | None = None
    task: int | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is an array as a whole."""
        return self.array is not None and self.task is None

    @property
    def whole(self) -> Where:
        """The array that a task belongs to; any other run itself."""
        if self.task is None:
            return self
        return replace(self, run_id=split_run_id(self.run_id)[0], task=None)

    @property
    def path(self) -> str:
        """Where objects of its kind and namespace are."""
        return jobs_path(self.kind, self.namespace)

    @property
    def labelled(self) -> bool:
        """Whether its pods have their run's label."""
        return not self.native and self.kind.labels_pods

    @property
    def selector(self) -> str:
        """The labels of its pods."""
        if not self.labelled:
            return self.kind.pods_selector(self.name)
        return f"{RUN_LABEL}={self.whole.run_id}"


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """What the cluster has of a run: its object (None: it is not there), its pods by node rank, and when that was so (Unix seconds)."""

    job: JobRow | None
    pods: tuple[RunPod, ...]
    time: float

    def tasks(self) -> Tasks:
        """An array's tasks."""
        return Tasks(self.job.job if self.job is not None else None, self.pods)

    def of_task(self, tasks: Tasks, place: int) -> RunSnapshot:
        """The same of one task of an array."""
        job = self.job and replace(self.job, task=tasks.task(place))
        return RunSnapshot(job, tasks.pods(place), self.time)


class RunLook:
    """Looks at the runs of one cluster.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._where: dict[tuple[str, int], Where] = {}
        self._seen: Cache[str, RunSnapshot] = Cache(limit=_MOST)
        self._gone: Cache[str, None] = Cache(_GONE, limit=_MOST)
        self._sorted: dict[str, tuple[int, Mapping[str, tuple[RunPod, ...]]]] = {}
        self._marked = float("-inf")
        self._room = asyncio.Semaphore(_AT_ONCE)

    def mark_active(self) -> None:
        """Somebody goes on looking: lists are watched."""
        self._marked = time.monotonic()

    def forget(self) -> None:
        """Something was or may have been changed: what was seen before counts no more."""
        self._seen.clear()
        self._gone.clear()

    async def where(self, bundle: BundleReader) -> Where:
        """Where a run's object is.

        Raises:
            StorageError: Its manifest cannot be read.
        """
        key = bundle.run_id, await asyncio.to_thread(lambda: bundle.owner)
        found = self._where.get(key)
        if found is None and bundle.index is not None:
            array = await self.where(bundle.array())
            found = task_of(array, bundle.index)
        elif found is None:
            found = await asyncio.to_thread(_read_where, bundle)
        self._where[key] = found
        return found

    async def look(self, places: Sequence[Where]) -> dict[str, RunSnapshot]:
        """What the cluster has of runs, by run id.

        Raises:
            DeniedError: This user may not see them.
            UnreachableError: The cluster does not answer.
        """
        found = await self._look([*dict.fromkeys(one.whole for one in places)])
        arrays = {one.whole.run_id for one in places if one.task is not None}
        tasks = {run_id: found[run_id].tasks() for run_id in arrays}
        for one in places:
            if one.task is not None:
                array = one.whole.run_id
                found[one.run_id] = found[array].of_task(tasks[array], one.task)
        return found

    async def _look(self, places: Sequence[Where]) -> dict[str, RunSnapshot]:
        found: dict[str, RunSnapshot] = {}
        asked = []
        for one in places:
            seen = self._seen.last(one.run_id)
            if seen is not None and self._seen.is_fresh(one.run_id, _FRESH):
                found[one.run_id] = seen.value
            else:
                asked.append(one)
        watched = [one for one in asked if one.labelled]
        if self._is_marked() or len(watched) > _FEW:
            found |= await self._watch(watched)
        single = [one for one in asked if one.run_id not in found]
        looks = [
            self._seen.get(one.run_id, partial(self._ask, one), max_age=_FRESH) for one in single
        ]
        for place, told in zip(single, await asyncio.gather(*looks), strict=True):
            found[place.run_id] = told
        return found

    async def anew(self, place: Where) -> RunSnapshot:
        """What the cluster has of a run now, whatever was seen before, and whatever a watch tells.

        Raises:
            DeniedError: This user may not see it.
            UnreachableError: The cluster does not answer.
        """
        self._seen.forget(place.whole.run_id)  # a look that is under way may have begun too early
        seen = await self._seen.get(place.whole.run_id, partial(self._ask, place.whole))
        return seen if place.task is None else seen.of_task(seen.tasks(), place.task)

    async def pods(self, place: Where) -> tuple[RunPod, ...]:
        """A run's pods."""
        return (await self.look([place]))[place.run_id].pods

    async def news(self, place: Where, pod: str) -> PodNews | None:
        """Who tells when a pod changes; None when it has to be asked for."""
        if not self._is_marked() or not place.labelled:
            return None
        watches = await self._connection.watches()
        path = f"/api/v1/namespaces/{place.namespace}/pods"
        return watches.of(path, run_pod, labels=RUN_LABEL).one(pod)

    def _is_marked(self) -> bool:
        return time.monotonic() - self._marked < _ACTIVE_SECONDS

    async def _watch(self, places: Sequence[Where]) -> dict[str, RunSnapshot]:
        """By the watches; those whose object they do not show are left out, for it may be too new, or be gone."""
        watches = await self._connection.watches()
        found: dict[str, RunSnapshot] = {}
        for path, kind, namespace in {(one.path, one.kind.name, one.namespace) for one in places}:
            jobs = watches.of(path, REDUCE[kind], labels=RUN_LABEL)
            pods = watches.of(f"/api/v1/namespaces/{namespace}/pods", run_pod, labels=RUN_LABEL)
            try:
                job_rows, pod_rows = await asyncio.gather(jobs.rows(_OLDEST), pods.rows(_OLDEST))
            except (DeniedError, NotFoundError):
                continue  # lists may be denied where single objects are not
            seen_at = time.time() - max(jobs.age, pods.age)
            by_run = self._by_run(namespace, pods.version, pod_rows.values())
            for place in places:
                job = job_rows.get(place.name) if place.path == path else None
                if job is not None and job.run_id == place.run_id:
                    found[place.run_id] = RunSnapshot(job, by_run.get(place.run_id, ()), seen_at)
                elif place.path == path and self._gone.is_fresh(place.run_id):
                    found[place.run_id] = RunSnapshot(None, (), seen_at)
        return found

    def _by_run(
        self, namespace: str, version: int, pods: Iterable[RunPod]
    ) -> Mapping[str, tuple[RunPod, ...]]:
        """Pods by run, sorted once for all who ask before something changes."""
        known = self._sorted.get(namespace)
        if known is not None and known[0] == version:
            return known[1]
        found: dict[str, list[RunPod]] = {}
        for pod in pods:
            found.setdefault(pod.run_id, []).append(pod)
        rows = {run_id: tuple(in_order(listed)) for run_id, listed in found.items()}
        self._sorted[namespace] = (version, rows)
        return rows

    async def _ask(self, place: Where) -> RunSnapshot:
        """By requests for just this run."""
        client = await self._connection.client()
        asked = time.time()
        async with self._room:
            job: JobRow | None = None
            try:
                job = REDUCE[place.kind.name](await client.get(f"{place.path}/{place.name}"))
            except NotFoundError:
                self._gone.put(place.run_id, None)
            if job is not None and not _is_it(job, place):
                job = None
            path = f"/api/v1/namespaces/{place.namespace}/pods"
            try:
                listed = await client.get(path, labelSelector=place.selector)
                pods = in_order([run_pod(one) for one in listed.get("items") or []])
            except DeniedError:
                pods = []
        return RunSnapshot(job, tuple(pods), asked)


def _is_it(job: JobRow, place: Where) -> bool:
    return job.run_id == place.run_id if place.uid is None else job.uid == place.uid


def task_of(array: Where, index: int) -> Where:
    """A task of an array, by its index in the array."""
    run_id = f"{array.run_id}.{index}"
    return replace(array, run_id=run_id, task=place_in(array.array or "", index))


def _read_where(bundle: BundleReader) -> Where:
    sent = read_sent(bundle)
    spec = bundle.spec()
    return Where(
        bundle.run_id,
        sent.kind,
        sent.namespace,
        sent.name,
        adopted_uid(bundle),
        native=spec.source.kind == "native",
        accompanied=any(not is_kept(one) for one in sent.companions),
        array=spec.array,
    )
