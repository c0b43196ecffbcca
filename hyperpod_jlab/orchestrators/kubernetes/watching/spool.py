"""The logs and records of runs without shared storage: fetched from their pods into the records folder, by whoever looks at a run.

Any number of processes may do so at the same time (see `spool_files` and `spool_records`). Somebody who looks once (``hpj show``, ``hpj logs``) gets what there
is by then; while somebody looks again and again (a server, ``hpj logs -f``), the pods are followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, StorageError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.api.pod_log import PodLog
from hyperpod_jlab.orchestrators.kubernetes.api.pod_state import when
from hyperpod_jlab.orchestrators.kubernetes.watching.framed_pod import FramedPod
from hyperpod_jlab.orchestrators.kubernetes.watching.look import RunLook, Seen, Where
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_ranks import ranked
from hyperpod_jlab.orchestrators.kubernetes.watching.pod_spool import (
    FOLDER,
    PodSpool,
    spool_name,
)
from hyperpod_jlab.orchestrators.kubernetes.watching.raw_pod import RawPod
from hyperpod_jlab.orchestrators.kubernetes.watching.run_pods import RunPod
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes
from hyperpod_jlab.orchestrators.kubernetes.watching.stand_in import StandIn
from hyperpod_jlab.orchestrators.kubernetes.watching.unseen import find_unseen
from hyperpod_jlab.orchestrators.kubernetes.watching.unseen_records import note_unseen
from hyperpod_jlab.storage import atomic, descent
from hyperpod_jlab.storage.records import BundleReader

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
