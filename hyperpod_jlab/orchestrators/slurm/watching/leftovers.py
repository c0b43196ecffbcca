"""Waiting jobs that are to run nothing: doubles of a run that another job holds, and those of runs that have succeeded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.records import Claim
from hyperpod_jlab.model.state import Moment, derive
from hyperpod_jlab.orchestrators.slurm.watch import Snapshot
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader


class Leftovers:
    """Ends such jobs, each once. The launcher would let none of them run, so that none need wait.

    Args:
        end: Ends a job by its id.
    """

    def __init__(self, end: Callable[[str], Awaitable[None]]) -> None:
        self._end = end
        self._seen: set[str] = set()

    async def end(
        self, partition: Partition, snapshot: Snapshot, claims: Mapping[str, Claim | None]
    ) -> None:
        """Look through this user's waiting jobs.

        Args:
            partition: Where the runs lie.
            snapshot: The queue.
            claims: Of this user's runs that are asked about just now, arrays left out: who holds them, or None.
        """
        for run_id, jobs in snapshot.by_run.items():
            waiting = {job.array_job_id for job in jobs if job.waiting} - self._seen
            if not waiting:
                continue
            if run_id in claims:
                claim = claims[run_id]
                waiting = waiting - {claim.scheduler_id} if claim is not None else set()
            else:  # a controller that lost sight of its nodes may have put it back into the queue
                self._seen |= waiting
                if not await asyncio.to_thread(_has_succeeded, partition, run_id):
                    continue
            for job_id in waiting:
                self._seen.add(job_id)
                with contextlib.suppress(HyperpodError):
                    await self._end(job_id)


def _has_succeeded(partition: Partition, run_id: str) -> bool:
    """Whether a run's own records say that it has. Blocking."""
    try:
        bundle = BundleReader(partition, run_id)
        if not bundle.is_own:  # another user's run of this id says nothing of this user's jobs
            return False
        records = bundle.read()
    except HyperpodError:
        return False
    if records.head.array is not None:  # its children have records of their own
        return False
    return derive(records, Moment(time.time(), "alive")).state == "succeeded"
