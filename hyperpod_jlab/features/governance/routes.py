"""Requests about the task governance of HyperPod clusters on EKS."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyperpod_jlab.clusters.aws_routes import AwsAged, HyperpodQuery, age_of
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.features.governance.models import Governance
from hyperpod_jlab.features.governance.service import joined, read_governance
from hyperpod_jlab.server.call import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hyperpod_jlab.core.cluster import Queue as ModelQueue
    from hyperpod_jlab.core.hyperpod import HyperpodCluster
    from hyperpod_jlab.run.services import Hyperpod

_ALONG = 1.0
"""Seconds that are waited for Kueue's queues; until they come the answer is shown without."""


@dataclass(frozen=True, kw_only=True)
class HyperpodGovernance(AwsAged, Governance):
    """The task governance of a HyperPod cluster."""


async def show_governance(call: Call, cluster: str, query: HyperpodQuery) -> HyperpodGovernance:
    """The task governance of a HyperPod cluster on EKS, by its name or ARN; what is in use where the configuration has the cluster."""
    hyperpod = await call.hyperpod()
    watch = hyperpod.watch_in(region_of(cluster))
    shown = await watch.of_cluster("governance", cluster, read_governance, refresh=query.refresh)
    found = await watch.cluster(cluster)
    use = await _queues(call, hyperpod, found.rows[0])
    told = joined(shown.rows[0], use)
    age = age_of(shown, told.notes, loading=isinstance(use, _SlowError))
    return HyperpodGovernance(**{**vars(told), **vars(age)})


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
