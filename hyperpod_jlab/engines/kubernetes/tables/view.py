"""The cluster's tables, within this user's permissions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from hyperpod_jlab.core.cluster import UNUSABLE, Cluster, Job, Node, Queue, Row, Rows, gpu_totals
from hyperpod_jlab.core.errors import DeniedError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.tables.jobs import JobContext, JobLister, job_rows
from hyperpod_jlab.engines.kubernetes.tables.kueue import KueueReader, queue_rows
from hyperpod_jlab.engines.kubernetes.tables.lists import (
    MISSING_PERMISSION,
    NODES,
    PODS,
    ListCache,
    ListResult,
    Namespaces,
    denied_error,
    hidden_note,
    permission_text,
)
from hyperpod_jlab.engines.kubernetes.tables.nodes import NodeRows, node_facts
from hyperpod_jlab.engines.kubernetes.tables.pods import ACTIVE, PodRow, pod_row
from hyperpod_jlab.engines.kubernetes.targets import this_user

_NO_KUEUE_NOTE = "the cluster has no queues (Kueue is not installed): runs start as soon as nodes have free resources"


class KubernetesTables:
    """The tables of a cluster.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self.list_cache = ListCache(connection)
        self.kueue = KueueReader(self.list_cache)
        self.job_lister = JobLister(self.list_cache)
        self._node_rows = NodeRows()
        self._namespaces = Namespaces(connection, self.list_cache)

    async def cluster(self, name: str, kind: str) -> Cluster:
        """The cluster's summary; it is misconfigured if the namespace of its runs does not exist."""
        nodes, jobs, problem = await asyncio.gather(
            _rows_or_denied(self._nodes()), _rows_or_denied(self.jobs()), self._namespaces.problem()
        )
        notes = [
            note
            for result in (nodes, jobs)
            for note in ([result.message] if isinstance(result, DeniedError) else result.notes)
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
            gpus=() if isinstance(nodes, DeniedError) else gpu_totals(nodes),
            detail=detail,
        )

    async def nodes(self) -> Rows[Node]:
        """All nodes, with their free resources if the pods of all namespaces are readable; empty with a note if the user may not read nodes."""
        rows = await _rows_or_denied(self._nodes())
        return Rows([], [rows.message]) if isinstance(rows, DeniedError) else rows

    async def _nodes(self) -> Rows[Node]:
        """The same.

        Raises:
            DeniedError: The user may not read nodes.
        """
        nodes, pods = await asyncio.gather(self.list_cache.everywhere(NODES, node_facts), self.pods())
        if nodes.rows is None:
            raise denied_error(NODES, None, "the cluster's nodes")
        pod_rows = pods.rows if pods.missing_permission is None else None
        own_namespace = self._connection.namespace
        rows = await asyncio.to_thread(self._node_rows.convert, nodes.rows, pod_rows, own_namespace)
        if pod_rows is not None:
            return Rows(rows)
        subject = "free resources of the nodes and the jobs on them"
        return Rows(rows, [hidden_note(subject, permission_text(PODS))])

    async def pods(self) -> ListResult[PodRow]:
        """The pods that hold resources, or wait for them."""
        result = await self.list_cache.everywhere(PODS, pod_row, fields=ACTIVE)
        if result.rows is None:
            return ListResult(None, result.missing_permission)
        return ListResult([row for row in result.rows if row is not None], result.missing_permission)

    async def queues(self) -> Rows[Queue]:
        """Kueue's local queues; empty with a note without Kueue."""
        snapshot = await self.kueue.load()
        if snapshot is None:
            return Rows([], [_NO_KUEUE_NOTE])
        own_namespace = self._connection.namespace
        other_namespaces = {local_queue.namespace for local_queue in snapshot.local_queues} - {own_namespace}
        usable_namespaces = await self._namespaces.filter_usable(sorted(other_namespaces))
        rows = await asyncio.to_thread(
            queue_rows, snapshot.local_queues, snapshot.queues, own_namespace, usable_namespaces
        )
        return Rows(rows, snapshot.notes)

    async def jobs(self) -> Rows[Job]:
        """The readable jobs of all users.

        Raises:
            DeniedError: The user may read none.
        """
        results, pods, workloads = await asyncio.gather(self.job_lister.load(), self.pods(), self.kueue.workloads())
        context = JobContext(
            namespace=self._connection.namespace,
            current_user=this_user(),
            pods=pods.rows or [],
            workloads=(workloads.rows or []) if workloads is not None else [],
        )
        return Rows(await asyncio.to_thread(job_rows, results.jobs, context), results.notes)

    async def client(self) -> KubeClient:
        return await self._connection.client()

    async def choices(self) -> dict[str, list[str]]:
        """The choices for a spec, within the user's permissions: the namespace's queues, priority classes, namespaces, instance types and groups."""
        queues, namespaces, nodes = await asyncio.gather(
            self.kueue.choices(), self._namespaces.names(), self.list_cache.everywhere(NODES, node_facts)
        )
        facts = nodes.rows or []
        extra_choices = {
            "kubernetes.namespace": namespaces or (),
            "resources.instance_type": {fact.instance_type for fact in facts if fact.instance_type},
            "resources.instance_group": {fact.instance_group for fact in facts if fact.instance_group},
        }
        return {**queues, **{field: sorted(names) for field, names in extra_choices.items() if names}}


async def _rows_or_denied(rows: Awaitable[Rows[Row]]) -> Rows[Row] | DeniedError:
    """A table, or its missing permission."""
    try:
        return await rows
    except DeniedError as error:
        if error.code != MISSING_PERMISSION:
            raise
        return error
