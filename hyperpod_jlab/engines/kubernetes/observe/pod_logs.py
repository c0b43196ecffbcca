"""Follows the pods of users' own manifests: each process that polls such a run copies its pods' output into the run's bundle.

A one-time command (``hpj show``, ``hpj logs``) gets the pods' output so far; for a continuous one
(a server, ``hpj logs -f``), the pods are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass

from hyperpod_jlab.core.errors import HyperpodError, StorageError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pod_log import FOLDER, LogFile, PodLog, make_folder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunPoller
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage import files as atomic
from hyperpod_jlab.storage.records import BundleReader

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

    log: PodLog
    caught_up: asyncio.Event
    task: asyncio.Task[None]
    started_at: float


class RunFollower:
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
            self._task = asyncio.create_task(self._follow(), name="hyperpod-pod-logs")

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
        is_complete = all(followed.log.is_complete for followed, _ in followed_pods)
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
        recorder = PodRecorder(self._bundle, self._location.name)
        snapshot = (await self._poller.get_all([self._location]))[self._location.run_id]
        client = await self._connection.client()
        followed_pods = []
        for rank, pod in await asyncio.to_thread(recorder.rank_pods, snapshot.pods):
            if self._is_due(pod.uid):
                changes = await self._poller.changes(self._location, pod.name)
                scope = (client, self._location.namespace, changes)
                log = await asyncio.to_thread(PodLog, self._bundle, pod, rank, recorder, *scope)
                if self._is_due(pod.uid):
                    self._start(pod, log)
            followed_pods.append((self._followed_by_uid[pod.uid], pod))
        return followed_pods

    def _is_due(self, uid: str) -> bool:
        """Whether to read a pod: it is new, or its last read failed a while ago."""
        followed = self._followed_by_uid.get(uid)
        if followed is None:
            return True
        failed = followed.task.done() and not followed.log.is_complete
        return failed and time.monotonic() - followed.started_at > _RETRY_S

    def _start(self, pod: RunPod, log: PodLog) -> None:
        caught_up = asyncio.Event()
        task = asyncio.create_task(self._copy(log, pod, caught_up), name="hyperpod-pod-log")
        self._followed_by_uid[pod.uid] = _Followed(log, caught_up, task, time.monotonic())

    async def _copy(self, log: PodLog, pod: RunPod, caught_up: asyncio.Event) -> None:
        try:
            with contextlib.suppress(UnreachableError):  # a follower retries
                await log.copy(follow=False)
            caught_up.set()
            if not log.is_complete:
                async with self._semaphore:
                    await log.copy(follow=True)
        except (HyperpodError, OSError) as error:  # for example a full disk
            self.problem = error
            _LOG.debug("the log of %s cannot be fetched: %s", pod.name, error)
        finally:
            caught_up.set()


class PodLogFollower:
    """All active runs of one cluster."""

    def __init__(self, connection: ClusterConnection, poller: RunPoller) -> None:
        self._connection = connection
        self._poller = poller
        self._runs: dict[str, RunFollower] = {}
        self._semaphore = asyncio.Semaphore(STREAMS)

    def follow(self, bundle: BundleReader, location: RunLocation) -> RunFollower:
        self._runs = {run_id: run for run_id, run in self._runs.items() if not run.idle}
        if bundle.run_id not in self._runs:
            self._runs[bundle.run_id] = RunFollower(bundle, location, self._connection, self._poller, self._semaphore)
        run = self._runs[bundle.run_id]
        run.mark_active()
        return run

    async def catch_up(self, bundle: BundleReader, location: RunLocation, seconds: float) -> frozenset[str] | None:
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
        path = bundle.records / _DONE_FILE
        make_folder(bundle, path.parent)
        document = atomic.to_json({"time": time.time()})
        descent.replace(path, document, mode=bundle.file_mode)


_LOST = b"hyperpod: the pods of this run are gone, and with them their log, which was not read before\n"


def note_lost(bundle: BundleReader) -> None:
    """Say in the log of a run without any that its pods are gone. Blocking."""
    with contextlib.suppress(OSError, StorageError):
        log = LogFile(bundle, bundle.records / "logs/attempt-1/node-0.log")
        log.write(0, _LOST, time.time_ns())
        log.close()
