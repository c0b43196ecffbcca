"""Polls runs in the cluster: each run's object and pods.

A single query for few runs fetches just these. For a server, and for many runs, lists are watched:
one per kind and one of pods in a namespace, shared by all callers. A run's object may contain its
code, so lists are expensive.
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
from hyperpod_jlab.engines.kubernetes.api.pod_state import PodChanges
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind, jobs_path
from hyperpod_jlab.engines.kubernetes.observe.pods import (
    REDUCE,
    JobRow,
    RunPod,
    Tasks,
    find_position,
    parse_pod,
    sort_pods,
)
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.storage.records import BundleReader

_FEW = 4
_TTL_S = 1.0
"""Seconds for which a run's snapshot is cached."""
_OLDEST = 15.0
"""Maximum age in seconds of an informer's rows while its watch is broken."""
_ACTIVE_S = 180.0
_DELETED_TTL_S = 60.0
"""Seconds before a missing job is queried again."""
_CONCURRENCY = 16
_MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class RunLocation:
    """The location of a run's object.

    Attributes:
        run_id: The run.
        kind: The object's kind.
        namespace: Its namespace.
        name: Its name.
        native: Whether its pods run without our launcher.
        array: The indices of an array, or of the array that a task belongs to; None for any other
            run.
        task: The index in the array's Job, for a task.
    """

    run_id: str
    kind: Kind
    namespace: str
    name: str
    native: bool = False
    array: str | None = None
    task: int | None = None

    @property
    def is_array(self) -> bool:
        """Whether it is a whole array."""
        return self.array is not None and self.task is None

    @property
    def parent(self) -> RunLocation:
        """The array that a task belongs to; otherwise the run itself."""
        if self.task is None:
            return self
        return replace(self, run_id=split_run_id(self.run_id)[0], task=None)

    @property
    def path(self) -> str:
        """The path of its kind and namespace."""
        return jobs_path(self.kind, self.namespace)

    @property
    def is_labelled(self) -> bool:
        """Whether its pods have their run's label."""
        return not self.native and self.kind.labels_pods

    @property
    def selector(self) -> str:
        """The label selector of its pods."""
        if not self.is_labelled:
            return self.kind.pods_selector(self.name)
        return f"{RUN_LABEL}={self.parent.run_id}"


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run in the cluster: its object (None if it does not exist), its pods by node rank, and the snapshot's time (Unix seconds)."""

    job: JobRow | None
    pods: tuple[RunPod, ...]
    time: float

    def tasks(self) -> Tasks:
        """An array's tasks."""
        return Tasks(self.job.job if self.job is not None else None, self.pods)

    def for_task(self, tasks: Tasks, position: int) -> RunSnapshot:
        """The same for one task of an array."""
        job = self.job and replace(self.job, task=tasks.build_task(position))
        return RunSnapshot(job, tasks.pods(position), self.time)


class RunPoller:
    """Polls the runs of one cluster.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._locations: dict[tuple[str, int], RunLocation] = {}
        self._snapshots: Cache[str, RunSnapshot] = Cache(limit=_MAX_ENTRIES)
        self._deleted: Cache[str, None] = Cache(_DELETED_TTL_S, limit=_MAX_ENTRIES)
        self._sorted: dict[str, tuple[int, Mapping[str, tuple[RunPod, ...]]]] = {}
        self._active_at = float("-inf")
        self._semaphore = asyncio.Semaphore(_CONCURRENCY)

    def mark_active(self) -> None:
        """Note continued use: lists are watched."""
        self._active_at = time.monotonic()

    def forget(self) -> None:
        """Invalidate cached snapshots after a possible change."""
        self._snapshots.clear()
        self._deleted.clear()

    async def locate(self, bundle: BundleReader) -> RunLocation:
        """Locate a run's object.

        Raises:
            StorageError: The run's manifest is unreadable.
        """
        key = bundle.run_id, await asyncio.to_thread(lambda: bundle.owner)
        location = self._locations.get(key)
        if location is None and bundle.index is not None:
            array = await self.locate(bundle.array())
            location = task_location(array, bundle.index)
        elif location is None:
            location = await asyncio.to_thread(_read_location, bundle)
        self._locations[key] = location
        return location

    async def get_all(self, locations: Sequence[RunLocation]) -> dict[str, RunSnapshot]:
        """Snapshots of runs, by run id.

        Raises:
            DeniedError: This user may not read them.
            UnreachableError: The cluster does not answer.
        """
        snapshots = await self._refresh([*dict.fromkeys(location.parent for location in locations)])
        arrays = {location.parent.run_id for location in locations if location.task is not None}
        tasks = {run_id: snapshots[run_id].tasks() for run_id in arrays}
        for location in locations:
            if location.task is not None:
                array = location.parent.run_id
                snapshots[location.run_id] = snapshots[array].for_task(tasks[array], location.task)
        return snapshots

    async def _refresh(self, locations: Sequence[RunLocation]) -> dict[str, RunSnapshot]:
        snapshots: dict[str, RunSnapshot] = {}
        polled = []
        for location in locations:
            cached = self._snapshots.last(location.run_id)
            if cached is not None and self._snapshots.is_fresh(location.run_id, _TTL_S):
                snapshots[location.run_id] = cached.value
            else:
                polled.append(location)
        labelled_locations = [location for location in polled if location.is_labelled]
        if self._is_active() or len(labelled_locations) > _FEW:
            snapshots |= await self._from_informers(labelled_locations)
        single = [location for location in polled if location.run_id not in snapshots]
        queries = [
            self._snapshots.get(location.run_id, partial(self._query, location), max_age=_TTL_S) for location in single
        ]
        for location, snapshot in zip(single, await asyncio.gather(*queries), strict=True):
            snapshots[location.run_id] = snapshot
        return snapshots

    async def refresh(self, location: RunLocation) -> RunSnapshot:
        """A new snapshot of a run, bypassing caches and watches.

        Raises:
            DeniedError: This user may not read it.
            UnreachableError: The cluster does not answer.
        """
        self._snapshots.forget(location.parent.run_id)  # a query in progress may have started too early
        entry = await self._snapshots.get(location.parent.run_id, partial(self._query, location.parent))
        return entry if location.task is None else entry.for_task(entry.tasks(), location.task)

    async def pods(self, location: RunLocation) -> tuple[RunPod, ...]:
        """A run's pods."""
        return (await self.get_all([location]))[location.run_id].pods

    async def changes(self, location: RunLocation, pod: str) -> PodChanges | None:
        """Reports changes of a pod; None when it must be polled."""
        if not self._is_active() or not location.is_labelled:
            return None
        watches = await self._connection.informers()
        path = f"/api/v1/namespaces/{location.namespace}/pods"
        return watches.get(path, parse_pod, labels=RUN_LABEL).row_watch(pod)

    def _is_active(self) -> bool:
        return time.monotonic() - self._active_at < _ACTIVE_S

    async def _from_informers(self, locations: Sequence[RunLocation]) -> dict[str, RunSnapshot]:
        """From the informers. Runs without an object there are left out, because the object may be too new, or deleted."""
        watches = await self._connection.informers()
        snapshots: dict[str, RunSnapshot] = {}
        for path, kind, namespace in {
            (location.path, location.kind.name, location.namespace) for location in locations
        }:
            jobs = watches.get(path, REDUCE[kind], labels=RUN_LABEL)
            pods = watches.get(f"/api/v1/namespaces/{namespace}/pods", parse_pod, labels=RUN_LABEL)
            try:
                job_rows, pod_rows = await asyncio.gather(jobs.rows(_OLDEST), pods.rows(_OLDEST))
            except (DeniedError, NotFoundError):
                continue  # the user may lack permission for lists but not for single objects
            observed_at = time.time() - max(jobs.age, pods.age)
            pods_by_run = self._group_by_run(namespace, pods.version, pod_rows.values())
            for current in locations:
                job = job_rows.get(current.name) if current.path == path else None
                if job is not None and job.run_id == current.run_id:
                    snapshots[current.run_id] = RunSnapshot(job, pods_by_run.get(current.run_id, ()), observed_at)
                elif current.path == path and self._deleted.is_fresh(current.run_id):
                    snapshots[current.run_id] = RunSnapshot(None, (), observed_at)
        return snapshots

    def _group_by_run(self, namespace: str, version: int, pods: Iterable[RunPod]) -> Mapping[str, tuple[RunPod, ...]]:
        """Pods by run, sorted once per change for all callers."""
        cached = self._sorted.get(namespace)
        if cached is not None and cached[0] == version:
            return cached[1]
        pods_by_run: dict[str, list[RunPod]] = {}
        for pod in pods:
            pods_by_run.setdefault(pod.run_id, []).append(pod)
        rows = {run_id: tuple(sort_pods(run_pods)) for run_id, run_pods in pods_by_run.items()}
        self._sorted[namespace] = (version, rows)
        return rows

    async def _query(self, location: RunLocation) -> RunSnapshot:
        """By requests for this run only."""
        client = await self._connection.client()
        asked_at = time.time()
        async with self._semaphore:
            job: JobRow | None = None
            try:
                job = REDUCE[location.kind.name](await client.get(f"{location.path}/{location.name}"))
            except NotFoundError:
                self._deleted.put(location.run_id, None)
            if job is not None and job.run_id != location.run_id:
                job = None
            path = f"/api/v1/namespaces/{location.namespace}/pods"
            try:
                response = await client.get(path, labelSelector=location.selector)
                pods = sort_pods([parse_pod(item) for item in response.get("items") or []])
            except DeniedError:
                pods = []
        return RunSnapshot(job, tuple(pods), asked_at)


def task_location(array: RunLocation, index: int) -> RunLocation:
    """An array task's location, by its index in the array."""
    run_id = f"{array.run_id}.{index}"
    return replace(array, run_id=run_id, task=find_position(array.array or "", index))


def _read_location(bundle: BundleReader) -> RunLocation:
    sent = read_sent(bundle)
    spec = bundle.spec()
    return RunLocation(
        bundle.run_id, sent.kind, sent.namespace, sent.name, native=spec.source.kind == "native", array=spec.array
    )
