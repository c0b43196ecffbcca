"""The task governance of a HyperPod cluster: quotas and policies as AWS has them, with what of them is in use."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.cache import CachedRows
from hyperpod_jlab.core.cluster import Queue
from hyperpod_jlab.core.errors import (
    HyperpodError,
    NotFoundError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.features.governance.aws import list_policies, list_quotas, quota_failure
from hyperpod_jlab.features.governance.models import ClusterPolicy, Governance, TeamQuota, with_use
from hyperpod_jlab.run.services import Hyperpod

_MAX_FAILURES = 10
"""Failed quotas that AWS is asked about: each is a call of its own."""


async def read_governance(aws: Aws, cluster: HyperpodCluster) -> Governance:
    """What AWS has of a cluster's task governance. Of quotas and policies one may be missing: then a note says why.

    Args:
        aws: AWS in the cluster's region.
        cluster: The cluster, described.

    Raises:
        UnsupportedError: It is no cluster on EKS, which has none.
        HyperpodError: Neither could be had (see `aws.errors`).
    """
    if not cluster.on_eks:
        raise UnsupportedError(
            f"only clusters on EKS have task governance; {cluster.name} is not on EKS",
            code="no_governance",
            hint=f"see the limits of its Slurm partitions: hpj queues {(*cluster.configured_as, 'NAME')[0]}",
            detail={"orchestrator": cluster.orchestrator},
        )
    quotas, policies = await asyncio.gather(
        list_quotas(aws, cluster.arn), list_policies(aws, cluster.arn), return_exceptions=True
    )
    notes: list[str] = []
    if isinstance(quotas, BaseException):
        if not isinstance(quotas, HyperpodError) or isinstance(policies, BaseException):
            raise quotas
        notes.append(f"AWS did not return the quotas: {quotas}")
        quotas = []
    if isinstance(policies, BaseException):
        if not isinstance(policies, HyperpodError):
            raise policies
        notes.append(f"AWS did not return the cluster's policy: {policies}")
        policies = []
    explained_quotas, unexplained = await _explain_failures(aws, quotas)
    notes += unexplained + _undescribed_notes(policies)
    if not quotas and not policies and not notes:
        notes.append(
            "the cluster has no quotas and no policy; an administrator creates them in the SageMaker console, under Task governance"
        )
    return Governance(cluster.name, tuple(explained_quotas), tuple(policies), tuple(notes))


def with_usage(
    governance: Governance, queues: Sequence[Queue] | HyperpodError | None
) -> Governance:
    """Governance with what Kueue says is in use.

    Args:
        governance: What AWS has.
        queues: The queues; why there are none; None: the configuration does not have the cluster, so that nobody was asked.
    """
    if not governance.quotas:
        return governance
    if queues is None:
        note = "the cluster is not configured, so its usage is unknown"
        return replace(governance, notes=(*governance.notes, note))
    if isinstance(queues, HyperpodError):
        note = f"the usage is unknown: {queues}"
        return replace(governance, notes=(*governance.notes, note))
    return replace(governance, quotas=with_use(governance.quotas, queues))


async def _explain_failures(
    aws: Aws, quotas: Sequence[TeamQuota]
) -> tuple[list[TeamQuota], list[str]]:
    """The quotas with why they failed, and what is to be said where AWS does not tell it."""
    failed_quotas = [quota for quota in quotas if quota.failed][:_MAX_FAILURES]
    failures = await asyncio.gather(
        *(quota_failure(aws, quota.quota_id) for quota in failed_quotas), return_exceptions=True
    )
    reasons: dict[str, str | None] = {}
    notes: dict[str, None] = {}
    for quota, reason in zip(failed_quotas, failures, strict=True):
        if isinstance(reason, NotFoundError):
            continue
        if isinstance(reason, HyperpodError):
            notes[f"the reason why quotas failed is unknown: {reason}"] = None
        elif isinstance(reason, BaseException):
            raise reason
        else:
            reasons[quota.quota_id] = reason
    updated = [replace(item, reason=reasons.get(item.quota_id, item.reason)) for item in quotas]
    return updated, list(notes)


def _undescribed_notes(policies: Sequence[ClusterPolicy]) -> list[str]:
    return [
        f"the policy {policy.name}: {policy.reason}"
        for policy in policies
        if policy.reason and policy.state != "failed"
    ]


_QUEUES_WAIT_S = 1.0
"""Seconds to wait for Kueue's queues; until they come the answer is shown without."""


class SlowSchedulerError(UnreachableError):
    """The scheduler has not answered yet."""


async def read_joined_governance(
    services: Hyperpod,
    cluster: str | None,
    region: str | None = None,
    *,
    refresh: bool = False,
    wait: float = _QUEUES_WAIT_S,
) -> tuple[CachedRows[Governance], bool]:
    """The task governance of a HyperPod cluster on EKS, a list of one, with what of it is in use where the cluster is configured.

    Args:
        services: The services.
        cluster: The cluster (see `Clusters.resolve_hyperpod`).
        region: Its region; default: see `aws.session.Aws`.
        refresh: Ask AWS now.
        wait: Seconds to wait for Kueue's queues.

    Returns:
        It, and whether the queues are on their way.

    Raises:
        UnsupportedError: It is not on EKS.
        NotFoundError: There is no such cluster.
        HyperpodError: See `aws.errors`.
    """
    resolved = await services.clusters.resolve_hyperpod(cluster, region)
    aws = services.hyperpod_clusters(resolved.region)
    cached = await aws.read_for_cluster(
        "governance", resolved.aws_name, read_governance, refresh=refresh
    )
    queues = await _queues(services, await aws.describe(resolved.aws_name), wait)
    rows = [with_usage(governance, queues) for governance in cached.rows]
    return replace(cached, rows=rows), isinstance(queues, SlowSchedulerError)


async def _queues(
    services: Hyperpod, cluster: HyperpodCluster, wait: float
) -> Sequence[Queue] | HyperpodError | None:
    """Kueue's queues where the cluster is configured, or why there are none (yet)."""
    if not cluster.configured_as:
        return None
    name = cluster.configured_as[0]
    query = services.snapshots.last(("queues", name), lambda: services.queues(name))
    try:
        return (await asyncio.wait_for(query, wait)).value
    except TimeoutError:
        return SlowSchedulerError(f"{name} has not answered yet")
    except HyperpodError as error:
        return error
