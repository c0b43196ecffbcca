"""What is left when a run has ended: pods that go on after their job has failed, which the operator leaves as they are, and what stood beside the job."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.train_job import TrainJob
from hyperpod_jlab.orchestrators.kubernetes.sending.companion_objects import remove
from hyperpod_jlab.orchestrators.kubernetes.sending.sent import read_sent
from hyperpod_jlab.orchestrators.kubernetes.watching.look import Seen, Where
from hyperpod_jlab.storage.records import BundleReader

_LOG = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds after a job's end in which its pods may end by themselves."""


class Leftovers:
    """Ends such pods, each once, and jobs that go on though their run has failed; where this user may not, they give up by themselves.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._seen: set[str] = set()
        self._alone: set[str] = set()

    async def end(self, bundle: BundleReader, where: Where, seen: Seen, word: Observation) -> None:
        """Look at a run that has ended.

        Args:
            bundle: The run.
            where: Its job.
            seen: What the cluster has of it.
            word: Its end.
        """
        left = [
            pod
            for pod in seen.pods
            if not (pod.ended or pod.state.deleting or pod.uid in self._seen)
        ]
        if not left or seen.job is None or where.native or where.task is not None:
            return
        ended = seen.job.observe(seen.time)
        goes_on = ended.state != "ended"
        late = seen.time - (word if goes_on else ended).time > PATIENCE
        if not late or not await asyncio.to_thread(lambda: bundle.is_own):
            return
        self._seen.update(pod.uid for pod in left)
        if goes_on and where.kind.name != TrainJob.name:  # it has a limit
            return
        if goes_on:  # its job would make its pods anew
            await self._delete(f"{where.path}/{where.name}", seen.job.uid)
            return
        for pod in left:
            await self._delete(f"/api/v1/namespaces/{where.namespace}/pods/{pod.name}", pod.uid)

    async def remove_companions(self, bundle: BundleReader, where: Where) -> None:
        """Remove what stood beside the job of a run of this user's that has ended: its manifest in the bundle says what that was, whoever sees the end.

        Args:
            bundle: The run.
            where: Its job.
        """
        if not where.accompanied or bundle.run_id in self._alone:
            return
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return
        self._alone.add(bundle.run_id)
        try:
            sent = await asyncio.to_thread(read_sent, bundle)
            await remove(await self._connection.client(), sent)
        except UnreachableError:
            self._alone.discard(bundle.run_id)  # the next look comes
        except HyperpodError as error:
            _LOG.warning("what stood beside the job of %s stays: %s", bundle.run_id, error)

    async def _delete(self, path: str, uid: str) -> None:
        client = await self._connection.client()
        with contextlib.suppress(HyperpodError):
            await client.delete(path, {"preconditions": {"uid": uid}})
