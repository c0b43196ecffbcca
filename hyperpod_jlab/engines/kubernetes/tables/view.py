"""The cluster as tables, as far as this user's rights go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from hyperpod_jlab.core.cluster import UNUSABLE, Cluster, Job, Node, Queue, Row, Rows
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobContext, JobLister, job_rows
from hyperpod_jlab.engines.kubernetes.tables.kueue import KueueReader, queue_rows
from hyperpod_jlab.engines.kubernetes.tables.lists import (
    MISSING_RIGHT,
    NODES,
    PODS,
    ListCache,
    Namespaces,
    Seen,
    denied,
    hidden_note,
    missing_right,
)
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeRows, node_facts
from hyperpod_jlab.engines.kubernetes.tables.pods import ACTIVE, PodRow, pod_row
from hyperpod_jlab.engines.kubernetes.targets import this_user

_NO_KUEUE = "the cluster has no queues (Kueue is not installed): runs start as soon as nodes have free resources"


class KubernetesTables:
    """What the cluster holds, for those who look at it.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self.looks = ListCache(connection)
        self.kueue = KueueReader(self.looks)
        self.job_look = JobLister(self.looks)
        self._node_rows = NodeRows()
        self._namespaces = Namespaces(connection, self.looks)

    async def cluster(self, name: str, kind: str) -> Cluster:
        """The cluster in one line; where the namespace of its runs is not there it is misconfigured."""
        nodes, jobs, problem = await asyncio.gather(
            _or_denied(self._nodes()), _or_denied(self.jobs()), self._namespaces.problem()
        )
        notes = [
            note
            for seen in (nodes, jobs)
            for note in ([seen.message] if isinstance(seen, DeniedError) else seen.notes)
        ]
        states = [] if isinstance(jobs, DeniedError) else [job.state for job in jobs]
        detail: dict[str, int] = {}
        if not isinstance(nodes, DeniedError):
            detail["nodes_unusable"] = sum(node.state in UNUSABLE for node in nodes)
            detail["accelerators"] = sum(node.accelerators for node in nodes)
            if not nodes.notes:
                detail["accelerators_free"] = sum(node.accelerators_free or 0 for node in nodes)
        return Cluster(
            name=name,
            orchestrator=kind,
            default=False,
            state="up" if problem is None else "misconfigured",
            reason=problem,
            notes=tuple(notes),
            nodes=None if isinstance(nodes, DeniedError) else len(nodes),
            running=states.count("running"),
            waiting=states.count("waiting") + states.count("held"),
            detail=detail,
        )

    async def nodes(self) -> Rows[Node]:
        """All nodes, with what is free on them as far as the pods of all namespaces may be seen; none, and a sentence, for who may not see nodes."""
        found = await _or_denied(self._nodes())
        return Rows([], [found.message]) if isinstance(found, DeniedError) else found

    async def _nodes(self) -> Rows[Node]:
        """The same.

        Raises:
            DeniedError: Nodes may not be seen at all.
        """
        nodes, pods = await asyncio.gather(self.looks.everywhere(NODES, node_facts), self.pods())
        if nodes.rows is None:
            raise denied(NODES, None, "the cluster's nodes")
        held = pods.rows if pods.hidden is None else None
        here = self._connection.namespace
        rows = await asyncio.to_thread(self._node_rows.of, nodes.rows, held, here)
        if held is not None:
            return Rows(rows)
        subject = "free resources of the nodes and the jobs on them"
        return Rows(rows, [hidden_note(subject, missing_right(PODS))])

    async def pods(self) -> Seen[PodRow]:
        """The pods that hold something, or wait for it."""
        seen = await self.looks.everywhere(PODS, pod_row, fields=ACTIVE)
        if seen.rows is None:
            return Seen(None, seen.hidden)
        return Seen([row for row in seen.rows if row is not None], seen.hidden)

    async def queues(self) -> Rows[Queue]:
        """Kueue's local queues; none, and a sentence, where there is no Kueue."""
        found = await self.kueue.look()
        if found is None:
            return Rows([], [_NO_KUEUE])
        here = self._connection.namespace
        others = {one.namespace for one in found.locals_} - {here}
        usable = await self._namespaces.usable(sorted(others))
        rows = await asyncio.to_thread(queue_rows, found.locals_, found.queues, here, usable)
        return Rows(rows, found.notes)

    async def jobs(self) -> Rows[Job]:
        """The jobs of all users, as far as they may be seen.

        Raises:
            DeniedError: None may be seen.
        """
        found, pods, workloads = await asyncio.gather(
            self.job_look.look(), self.pods(), self.kueue.workloads()
        )
        context = JobContext(
            namespace=self._connection.namespace,
            me=this_user(),
            pods=pods.rows or [],
            workloads=(workloads.rows or []) if workloads is not None else [],
        )
        return Rows(await asyncio.to_thread(job_rows, found.jobs, context), found.notes)

    async def client(self) -> KubeClient:
        """The cluster's client."""
        return await self._connection.client()

    async def choices(self) -> dict[str, list[str]]:
        """What may be given in a spec, as far as it may be seen: queues of the namespace, priority classes, namespaces, types and groups of instances."""
        queues, namespaces, nodes = await asyncio.gather(
            self.kueue.choices(), self._namespaces.names(), self.looks.everywhere(NODES, node_facts)
        )
        facts = nodes.rows or []
        more = {
            "kubernetes.namespace": namespaces or (),
            "resources.instance_type": {one.instance_type for one in facts if one.instance_type},
            "resources.instance_group": {one.instance_group for one in facts if one.instance_group},
        }
        return {**queues, **{field: sorted(names) for field, names in more.items() if names}}


async def _or_denied(look: Awaitable[Rows[Row]]) -> Rows[Row] | DeniedError:
    """A table, or which right is missing."""
    try:
        return await look
    except DeniedError as error:
        if error.code != MISSING_RIGHT:
            raise
        return error
