"""The cluster as its tables show it: nodes, queues and everybody's jobs, from few looks that all who ask share."""

from __future__ import annotations

import asyncio
import contextlib
import grp
import os
import pwd
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from hyperpod_jlab.model.cluster import UNUSABLE, Cluster, Job, Node, Queue
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.shared import SharedQueue
from hyperpod_jlab.orchestrators.slurm.tables.job_rows import JobRows
from hyperpod_jlab.orchestrators.slurm.tables.nodes import (
    SlurmNode,
    node_rows,
    nodes_command,
    parse_nodes,
)
from hyperpod_jlab.orchestrators.slurm.tables.queues import (
    COMMAND,
    SlurmPartition,
    parse_partitions,
    queue_rows,
)
from hyperpod_jlab.orchestrators.slurm.watch import Snapshot, Watch

FRESH = 5.0
"""Age in seconds up to which somebody who opens or refreshes a table is shown an earlier look."""

IDLE = 57.0
"""The same for the line of the cluster that panels keep, each of which asks once a minute."""

SELDOM = 600.0
"""The same for what changes only by an administrator's hand, where it is not what is asked for."""

Rows = TypeVar("Rows")


class ClusterView:
    """Tables of one cluster.

    A panel that only shows the clusters costs one squeue a minute and one sinfo in ten; a page that is open and not refreshed costs nothing.

    Args:
        client: The cluster's commands.
        jobs: Everybody's jobs.
        mine: This user's jobs.
        here: Whether the commands run on this machine, so that users and groups are the same there.
    """

    def __init__(
        self,
        client: SlurmClient,
        jobs: SharedQueue,
        mine: SharedQueue,
        *,
        here: bool,
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._mine = mine
        self._here = here
        self._names: frozenset[str] = frozenset()
        self.node_watch: Watch[dict[str, SlurmNode]] = Watch(self._look_at_nodes)
        self.queue_watch: Watch[list[SlurmPartition]] = Watch(self._look_at_queues)
        self._node_rows: _Made[list[Node]] = _Made()
        self._rows = JobRows()
        self._job_rows: _Made[list[Job]] = _Made()

    async def nodes(self) -> list[Node]:
        """All nodes, with the jobs on them."""
        nodes, jobs = await asyncio.gather(self.node_watch.get(FRESH), self._jobs.get(FRESH))
        return await self._rows_of_nodes(nodes, jobs)

    async def queues(self) -> list[Queue]:
        """All partitions."""
        partitions, nodes, jobs = await asyncio.gather(
            self.queue_watch.get(FRESH), self.node_watch.get(FRESH), self._jobs.get(FRESH)
        )
        rows = await self._rows_of_nodes(nodes, jobs)
        groups = await asyncio.to_thread(self._groups)
        return await asyncio.to_thread(queue_rows, partitions, rows, jobs.jobs, groups)

    async def jobs(self) -> list[Job]:
        """Everybody's jobs; those that ended as long as the controller remembers them."""
        snapshot = await self._jobs.get(FRESH)
        me = await self._me(snapshot)
        return await self._job_rows.of(
            (snapshot.time, me), lambda: self._rows.of(snapshot.jobs, me)
        )

    async def cluster(self, name: str, kind: str) -> Cluster:
        """The cluster in one line."""
        jobs, nodes = await asyncio.gather(self._jobs.get(IDLE), self.node_watch.get(SELDOM))
        states = [node.state for node in nodes.values()]
        return Cluster(
            name=name,
            orchestrator=kind,
            default=False,
            state="up",
            reason="; ".join(self._client.transport.notes) or None,
            nodes=len(states),
            running=sum(not job.ended and not job.waiting for job in jobs.jobs),
            waiting=sum(job.waiting for job in jobs.jobs),
            detail={
                "nodes_unusable": sum(state in UNUSABLE for state in states),
                "scheduler_calls": self._client.calls_last_minute,
            },
        )

    async def _look_at_nodes(self) -> dict[str, SlurmNode]:
        argv, mark = nodes_command()
        return await asyncio.to_thread(parse_nodes, await self._client.ask(argv), mark)

    async def _look_at_queues(self) -> list[SlurmPartition]:
        return parse_partitions(await self._client.ask(COMMAND))

    async def _rows_of_nodes(self, nodes: dict[str, SlurmNode], jobs: Snapshot) -> list[Node]:
        key = (id(nodes), jobs.time)
        return await self._node_rows.of(key, lambda: node_rows(nodes.values(), jobs.jobs), nodes)

    async def _me(self, everybodys: Snapshot) -> frozenset[str]:
        """This user's name on the cluster: where only a login node knows it, as its own jobs say."""
        if self._here:
            return frozenset({_name_here()})
        if everybodys.jobs:
            mine = await self._mine.get(SELDOM if self._names else IDLE)
            self._names |= {job.user for job in mine.jobs}
        return self._names

    def _groups(self) -> frozenset[str] | None:
        """The groups of this user, where they are those of this machine. None for root, who may do everything."""
        if not self._here or os.geteuid() == 0:
            return None
        return _groups_of(_name_here())


class _Made(Generic[Rows]):
    """Rows that were made of some looks, kept until there is a newer look: tables are asked for page by page."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self._rows: Rows | None = None
        self._held: Any = None

    async def of(self, key: Hashable, make: Callable[[], Rows], held: Any = None) -> Rows:
        """The rows for a key.

        Args:
            key: Names the looks.
            make: Makes the rows; run in a thread.
            held: What the key names by its identity, kept so that no other thing gets the same.
        """
        if self._rows is None or key != self._key:
            rows = await asyncio.to_thread(make)
            self._key, self._rows, self._held = key, rows, held
            return rows
        return self._rows


def _name_here() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _groups_of(user: str) -> frozenset[str] | None:
    try:
        numbers = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return None
    names = set()
    for number in numbers:
        with contextlib.suppress(KeyError):
            names.add(grp.getgrgid(number).gr_name)
    return frozenset(names)
