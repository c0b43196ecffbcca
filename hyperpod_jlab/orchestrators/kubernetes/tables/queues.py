"""Kueue's local queues as tables show them: what is left of their quota, who waits, why nothing starts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from hyperpod_jlab.model.cluster import Queue, Quota, Resource
from hyperpod_jlab.orchestrators.kubernetes.tables.devices import (
    is_device,
    resources,
)
from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import (
    ClusterQueueRow,
    LocalQueueRow,
    available,
)

_PROBLEMS = {
    "ClusterQueueDoesNotExist": "its cluster queue {queue} does not exist; ask the cluster's admin",
    "ClusterQueueIsInactive": "its cluster queue {queue} admits nothing now",
    "Stopped": "an admin stopped it",
    "Terminating": "it is being removed",
    "FlavorNotFound": "a flavor of its quota does not exist: {said}",
    "CheckNotFoundOrInactive": "an admission check of its does not exist, or does not work: {said}",
}
"""Kueue's words for why a queue is not active (pkg/constants, apis/kueue/v1beta1), and ours."""

_SAID = re.compile(r"^Can't (?:admit|submit) new workloads(?: to clusterQueue)?:? ?")


def problem_words(problem: tuple[str, str], cluster_queue: str) -> str:
    """Why nothing starts from a queue, in words."""
    reason, message = problem
    said = _SAID.sub("", message).strip().rstrip(".")
    known = _PROBLEMS.get(reason)
    if known is not None:
        return known.format(queue=cluster_queue, said=said)
    return f"Kueue says: {reason}: {said}" if said else f"Kueue says: {reason}"


def why_closed(local: LocalQueueRow, queue: ClusterQueueRow | None) -> str | None:
    """Why nothing starts from a local queue, or None when all is well."""
    if local.problem is not None and local.problem[0] == "Stopped":
        return "an admin stopped it: jobs wait, none starts"
    if queue is not None and queue.problem is not None:
        words = problem_words(queue.problem, queue.name)
        return f"its cluster queue {queue.name}: {words}"
    if local.problem is not None:
        return problem_words(local.problem, local.cluster_queue)
    return None


def queue_rows(
    locals_: Iterable[LocalQueueRow],
    queues: Mapping[str, ClusterQueueRow] | None,
    namespace: str,
    usable: Collection[str] | None = None,
) -> list[Queue]:
    """The local queues as tables show them.

    Args:
        locals_: The local queues.
        queues: The cluster queues by name; None when they may not be seen, so that no quota is known.
        namespace: The namespace of this cluster's runs, whose queues need no more than their name.
        usable: Namespaces that this user may send runs to; None when that is not known beyond the own one.
    """
    return [_row(one, queues, namespace, usable) for one in locals_]


def _row(
    local: LocalQueueRow,
    queues: Mapping[str, ClusterQueueRow] | None,
    namespace: str,
    usable: Collection[str] | None,
) -> Queue:
    queue = (queues or {}).get(local.cluster_queue)
    here = local.namespace == namespace
    closed = why_closed(local, queue)
    quotas = _quotas(queue, list((queues or {}).values())) if queue is not None else ()
    devices = _devices(quotas)
    computing = [one for one in devices if one.accelerator]
    cpus = [one for one in quotas if one.resource == "cpu"]
    return Queue(
        name=local.name if here else f"{local.namespace}/{local.name}",
        state="down" if closed is not None else "up",
        reason=closed,
        usable=True if here else (local.namespace in usable if usable is not None else None),
        cluster_queue=local.cluster_queue,
        cpus=int(sum(one.most for one in cpus)) if cpus else None,
        cpus_free=int(sum(one.free for one in cpus)) if cpus else None,
        accelerators=sum(one.total for one in computing),
        accelerators_free=sum(one.free for one in computing),
        resources=devices,
        quotas=quotas,
        running=local.running,
        waiting=local.waiting,
    )


def _quotas(queue: ClusterQueueRow, queues: Sequence[ClusterQueueRow]) -> tuple[Quota, ...]:
    found = []
    for one in queue.quotas:
        free, most = available(queue, one, queues)
        found.append(
            Quota(
                flavor=one.flavor,
                resource=one.resource,
                nominal=one.nominal / 1000,
                used=one.used / 1000,
                borrowed=one.borrowed / 1000,
                free=free / 1000,
                most=most / 1000,
            )
        )
    return tuple(found)


def _devices(quotas: Sequence[Quota]) -> tuple[Resource, ...]:
    """What the queue can ever give of devices, and what of it is free now, all flavors together."""
    has: dict[str, int] = {}
    taken: dict[str, int] = {}
    for one in quotas:
        if is_device(one.resource):
            has[one.resource] = has.get(one.resource, 0) + int(one.most) * 1000
            gone = int(one.most - one.free) * 1000
            taken[one.resource] = taken.get(one.resource, 0) + gone
    return resources(has, taken)
