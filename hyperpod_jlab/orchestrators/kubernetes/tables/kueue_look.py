"""Looking at Kueue: its queues, what they may give, its workloads, as far as this user's rights go."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import (
    GROUP,
    VISIBILITY,
    ClusterQueueRow,
    LocalQueueRow,
    WorkloadRow,
    cluster_queue,
    local_queue,
    priority_class,
    workload,
)
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import Kind, Looks, Seen, hidden_note


@dataclass(frozen=True)
class KueueSeen:
    """Kueue as this user sees it.

    Attributes:
        locals_: The local queues that may be seen.
        queues: The cluster queues by name; None when they may not be seen.
        notes: What is hidden, a sentence each.
        hidden: The right without which not all local queues could be seen, in words; None when all were.
        seen_in: The one namespace whose local queues were seen all the same.
    """

    locals_: tuple[LocalQueueRow, ...]
    queues: Mapping[str, ClusterQueueRow] | None
    notes: tuple[str, ...]
    hidden: str | None = None
    seen_in: str | None = None

    def hidden_in(self, namespace: str) -> str | None:
        """The right without which the local queues of a namespace cannot be seen, in words; None when they are."""
        return None if namespace == self.seen_in else self.hidden

    def local(self, namespace: str, name: str) -> LocalQueueRow | None:
        """A local queue."""
        found = [one for one in self.locals_ if (one.namespace, one.name) == (namespace, name)]
        return found[0] if found else None

    def cluster_queue_of(self, local: LocalQueueRow) -> ClusterQueueRow | None:
        """The cluster queue of a local one, where it may be seen."""
        return (self.queues or {}).get(local.cluster_queue)


class KueueLook:
    """Looks at Kueue."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks

    async def look(self) -> KueueSeen | None:
        """The queues; None without Kueue.

        Raises:
            UnreachableError: The API server does not answer.
        """
        version = await self._looks.version(GROUP)
        if version is None:
            return None
        local_kind = Kind(version, "localqueues")
        queue_kind = Kind(version, "clusterqueues", namespaced=False)
        try:
            locals_, queues = await asyncio.gather(
                self._looks.everywhere(local_kind, local_queue),
                self._looks.everywhere(queue_kind, cluster_queue),
            )
        except NotFoundError:
            return None
        notes = []
        if locals_.rows is None:
            notes.append(hidden_note("the queues", str(locals_.hidden)))
        elif locals_.hidden is not None:
            notes.append(hidden_note("queues of other namespaces", locals_.hidden))
        if queues.rows is None:
            notes.append(hidden_note("the queues' quotas", str(queues.hidden)))
        return KueueSeen(
            tuple(locals_.rows or ()),
            {one.name: one for one in queues.rows} if queues.rows is not None else None,
            tuple(notes),
            hidden=locals_.hidden,
            seen_in=self._looks.namespace if locals_.rows is not None else None,
        )

    async def workloads(self) -> Seen[WorkloadRow] | None:
        """The workloads; None without Kueue."""
        version = await self._looks.version(GROUP)
        if version is None:
            return None
        try:
            return await self._looks.everywhere(Kind(version, "workloads"), workload)
        except NotFoundError:
            return None

    async def priority_classes(self) -> dict[str, int] | None:
        """The priority classes of workloads with their values; None when they may not be seen, or without Kueue."""
        version = await self._looks.version(GROUP)
        if version is None:
            return None
        kind = Kind(version, "workloadpriorityclasses", namespaced=False)
        try:
            seen = await self._looks.everywhere(kind, priority_class)
        except NotFoundError:
            return None
        return dict(seen.rows) if seen.rows is not None else None

    async def line(self, namespace: str, queue: str) -> list[tuple[str, str]] | None:
        """Those who wait in a local queue, first come first, as namespace and name of their workloads; None when Kueue does not tell."""
        version = await self._looks.version(VISIBILITY)
        if version is None:
            return None
        kind = Kind(version, "localqueues")
        try:
            found = await self._looks.object(f"{kind.path(namespace)}/{queue}/pendingworkloads")
        except HyperpodError:  # an aggregated API: it may be away while all else is well
            return None
        items = sorted(
            found.get("items") or [], key=lambda one: int(one.get("positionInLocalQueue") or 0)
        )
        return [
            (str(one["metadata"].get("namespace", "")), str(one["metadata"]["name"]))
            for one in items
        ]

    async def choices(self) -> dict[str, list[str]]:
        """What may be given in a spec: the queues of the namespace, the priority classes from high to low; what may not be seen is left out."""
        found, classes = await asyncio.gather(self.look(), self.priority_classes())
        names: dict[str, list[str]] = {}
        if found is not None and found.locals_:
            here = self._looks.namespace
            names["queue"] = sorted(one.name for one in found.locals_ if one.namespace == here)
        if classes:
            names["priority"] = sorted(classes, key=lambda name: (-classes[name], name))
        return names
