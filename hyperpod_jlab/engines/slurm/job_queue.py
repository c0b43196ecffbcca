"""A Slurm cluster's queue: shared snapshots and queries derived from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.engines.protocol import SubmitResult
from hyperpod_jlab.engines.slurm.accounting import find_by_folder
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.native import read_sending
from hyperpod_jlab.engines.slurm.observe import newest
from hyperpod_jlab.engines.slurm.queue import (
    PollInterval,
    SharedQueue,
    Snapshot,
    cache_path,
    local_user_name,
    queue_snapshot,
)
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader


class JobQueue:
    """The queue of one cluster.

    Args:
        client: The cluster's commands.
        facts: Cached facts about the cluster.
        pace: The poll interval.
        config: How to connect to the cluster.
    """

    def __init__(self, client: SlurmClient, facts: ClusterFacts, pace: PollInterval, config: SlurmCluster) -> None:
        self._client = client
        self._facts = facts
        self._pace = pace
        self.user_queue = SharedQueue(lambda: queue_snapshot(client.squeue(["--me"])), cache_path("mine", config))
        """Snapshots of this user's jobs."""
        self.all_queue = SharedQueue(lambda: queue_snapshot(client.squeue()), cache_path("all", config))
        """Snapshots of all jobs."""
        self._user = local_user_name() if config.transport == "here" else ""
        self._own: tuple[Snapshot, Snapshot] | None = None
        self._last_own: Snapshot | None = None

    async def own_jobs(self) -> Snapshot:
        """This user's jobs. While a page shows the whole cluster, they come from the same snapshot as its tables, so that both always agree."""
        everybodys = self.all_queue.fresh(self._pace.table_max_age)
        if everybodys is None or not await self.user_name():
            snapshot = await self.user_queue.get(self._pace.max_age)
        else:
            snapshot = await self._own_part(everybodys)
        previous, self._last_own = self._last_own, snapshot
        if previous is not None and snapshot is not previous and snapshot.has_changed_since(previous):
            self._pace.on_event()
        return snapshot

    async def all_jobs(self) -> Snapshot:
        return await self.all_queue.get(max(5.0, self._pace.max_age))

    async def user_name(self) -> str:
        """This user's name on the cluster; empty if the cluster has none. Makes no scheduler call."""
        if not self._user:
            self._user = (await self._facts.probe()).user
        return self._user

    async def _own_part(self, everybodys: Snapshot) -> Snapshot:
        if self._own is None or self._own[0] is not everybodys:
            own = [job for job in everybodys.jobs if job.user == self._user]
            self._own = everybodys, Snapshot.build(everybodys.time, own)
        return self._own[1]

    def changed(self) -> None:
        """Invalidate all snapshots after a possible change, and expect more of them soon."""
        self.forget()
        self._pace.on_event()

    def forget(self) -> None:
        """Invalidate all snapshots."""
        self.user_queue.forget()
        self.all_queue.forget()

    async def cancel(self, job_id: str) -> None:
        """Cancel a job that is not ours to keep."""
        await self._client.scancel(job_id)

    async def hides_jobs(self) -> bool:
        """Whether the cluster hides other users' jobs."""
        return "jobs" in (await self._facts.settings()).private

    async def nodes_down(self, names: Iterable[str]) -> bool:
        """Whether one of these nodes is down."""
        node_list = ",".join(names)
        if not node_list:
            return False
        output = await self._client.query(["sinfo", "--noheader", f"--nodes={node_list}", "--format=%T"])
        return any(state.startswith(("down", "fail")) for state in output.split())


# --------------------------------------------------------------------------------------------------
# Finding the jobs of runs.


class JobFinder:
    """Finds the jobs of this user's runs: by the run id in the job's comment while the controller knows the job, then by working folder in the accounting.

    Args:
        client: The cluster's commands.
        queue: The cluster's queue.
        facts: Cached facts about the cluster.
        paths: The partition's paths on this machine and on the nodes.
    """

    def __init__(self, client: SlurmClient, queue: JobQueue, facts: ClusterFacts, paths: PathMap) -> None:
        self._client = client
        self._queue = queue
        self._facts = facts
        self._paths = paths

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return None
        self._queue.changed()
        snapshot = await self._queue.user_queue.get(0.0)
        job = newest(snapshot.by_run.get(bundle.run_id, ()), None)
        if job is not None:
            return SubmitResult(job.array_job_id)
        folder: str | None = str(self._paths.to_cluster_path(str(bundle.folder)))
        sending = await asyncio.to_thread(read_sending, bundle)
        if sending is not None:
            folder = sending.folder
        if folder is None:
            return None
        head = await asyncio.to_thread(bundle.head)
        job_id = await find_by_folder(self._client, folder, head.created_at, await self._facts.uid())
        return SubmitResult(job_id) if job_id is not None else None
