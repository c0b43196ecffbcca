"""Requests about the task governance of HyperPod clusters on EKS."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from typing_extensions import TypedDict

from hyperpod_jlab.clusters.aws_routes import AwsAged, HyperpodQuery, age_of
from hyperpod_jlab.clusters.routes import Quota
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.features.governance.service import joined
from hyperpod_jlab.server.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.core.cluster import Queue as ModelQueue
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.runs.facade import Hyperpod

_ALONG = 1.0
"""Seconds that are waited for Kueue's queues; until they come the answer is shown without."""


class Allocation(TypedDict):
    """What a team has, or may borrow, of one instance type; null where AWS does not say it. `partitions` is the number of parts of GPUs of the kind `partition`."""

    instance_type: str
    count: int | None
    accelerators: int | None
    cpus: float | None
    memory_gib: float | None
    partition: str | None
    partitions: int | None


class TeamQuota(TypedDict):
    """What a team has of a cluster. `status`, `sharing` and `preemption` are AWS' words, `state` ours; `used` is what Kueue says of its cluster queue (null: not known)."""

    quota_id: str
    name: str
    team: str
    state: str
    status: str
    enabled: bool
    weight: int | None
    allocated: list[Allocation]
    sharing: str | None
    borrow_percent: int | None
    borrow_most: list[Allocation]
    preemption: str | None
    reason: str | None
    namespace: str
    queue: str
    used: list[Quota] | None
    running: int | None
    waiting: int | None


class PriorityClass(TypedDict):
    """How important work is: of a greater weight goes first. `label` is what its jobs are labelled with."""

    name: str
    weight: int
    label: str


class ClusterPolicy(TypedDict):
    """How waiting work is ordered and idle compute shared: `fair_share` and `idle_sharing` are AWS' words."""

    policy_id: str
    name: str
    state: str
    status: str
    fair_share: str | None
    idle_sharing: str | None
    priorities: list[PriorityClass]
    reason: str | None


class HyperpodGovernance(AwsAged):
    """The task governance of a HyperPod cluster."""

    cluster: str
    quotas: list[TeamQuota]
    policies: list[ClusterPolicy]


async def show_governance(call: Call, cluster: str, query: HyperpodQuery) -> HyperpodGovernance:
    """The task governance of a HyperPod cluster on EKS, by its name or ARN; what is in use where the configuration has the cluster."""
    hyperpod = await call.hyperpod()
    watch = hyperpod.watch_in(region_of(cluster))
    shown = await watch.governance(cluster, refresh=query.refresh)
    found = await watch.cluster(cluster)
    use = await _queues(call, hyperpod, found.rows[0])
    told = joined(shown.rows[0], use)
    age = age_of(shown, told.notes)
    age["loading"] = age["loading"] or isinstance(use, _SlowError)
    plain: dict[str, Any] = told.to_dict()
    return cast("HyperpodGovernance", {**plain, **age})


class _SlowError(UnreachableError):
    """The scheduler has not answered yet."""


async def _queues(
    call: Call, hyperpod: Hyperpod, cluster: HyperpodCluster
) -> Sequence[ModelQueue] | HyperpodError | None:
    """Kueue's queues where the configuration has the cluster, or why there are none (yet)."""
    if not cluster.configured_as:
        return None
    name = cluster.configured_as[0]
    look = call.process.snapshots.last(("queues", name), lambda: hyperpod.queues(name))
    try:
        return (await asyncio.wait_for(look, _ALONG)).said
    except TimeoutError:
        return _SlowError(f"{name} has not answered yet")
    except HyperpodError as error:
        return error
